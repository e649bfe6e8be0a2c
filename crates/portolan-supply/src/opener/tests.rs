//! Uses the test documents of portolan-sops, made with sops 3.11.0.

use portolan_object::holds_placeholder;

use super::*;

fn fixture(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/../portolan-sops/tests/fixtures/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read(path).unwrap()
}

fn how() -> Decryption {
    Decryption {
        provider: "sops".into(),
        secret: None,
    }
}

fn opener(key: Option<&str>) -> Opener {
    let keys = key.map(|name| {
        let text = String::from_utf8(fixture(name)).unwrap();
        Keys::parse(&text).unwrap()
    });
    Opener::new(
        keys.unwrap_or_default(),
        WithoutKeys::default(),
        Arc::default(),
    )
}

fn json(node: &Node) -> String {
    portolan_yaml::to_json(node).unwrap()
}

/// A Secret as a generator makes it from an encrypted file.
fn generated(file: &str) -> Node {
    let data = STANDARD.encode(fixture(file));
    let text = format!("kind: Secret\nmetadata: {{name: a}}\ndata: {{{file}: {data}}}\n");
    parse(text, Dialect::Kustomize).unwrap().remove(0)
}

#[test]
fn a_sealed_object_is_opened_even_when_kustomize_has_changed_it() {
    let mut object = documents(&fixture("secret.yaml")).remove(0);
    let metadata = object
        .get_mut("metadata")
        .and_then(Node::as_map_mut)
        .unwrap();
    metadata.insert("namespace", Node::string("changed"));
    let opened = opener(Some("key.txt"))
        .object(&object, &how())
        .unwrap()
        .unwrap();
    assert!(!json(&opened).contains("ENC["));
    assert!(json(&opened).contains("\"namespace\":\"changed\""));
}

#[test]
fn a_sealed_file_in_the_data_of_a_secret_is_opened() {
    for file in ["vars.env", "blob.bin", "types.json"] {
        let opened = opener(Some("key.txt"))
            .object(&generated(file), &how())
            .unwrap()
            .unwrap();
        let plain = STANDARD.encode(fixture(&file.replacen('.', ".plain.", 1)));
        assert!(json(&opened).contains(&plain), "{file}");
    }
}

#[test]
fn a_plain_object_is_left_alone() {
    let plain = documents(b"kind: Secret\ndata: {a: YQ==}\n").remove(0);
    assert!(
        opener(Some("key.txt"))
            .object(&plain, &how())
            .unwrap()
            .is_none()
    );
}

#[test]
fn without_a_key_there_are_placeholders_and_they_are_counted() {
    let opener = opener(None);
    let object = documents(&fixture("secret.yaml")).remove(0);
    let closed = opener.object(&object, &how()).unwrap().unwrap();
    assert!(holds_placeholder(&json(&closed)));
    let file = opener
        .file("/vars.env".into(), &fixture("vars.env"), &how())
        .unwrap()
        .unwrap();
    let text = String::from_utf8(file).unwrap();
    assert!(
        holds_placeholder(&text) && !text.contains("sops_"),
        "{text}"
    );
    assert_eq!(opener.left_closed(), 2);
}

#[test]
fn a_wrong_key_is_told() {
    let error = opener(Some("other-key.txt"))
        .file("/app/secret.yaml".into(), &fixture("secret.yaml"), &how())
        .unwrap_err();
    let cause = error.to_string();
    assert!(
        cause.starts_with("none of the given age keys opens"),
        "{cause}"
    );
}

#[test]
fn a_changed_file_is_refused() {
    let text = String::from_utf8(fixture("secret.yaml")).unwrap();
    let changed = text.replace("name: harbour", "name: pirates");
    let error = opener(Some("key.txt"))
        .file("/secret.yaml".into(), changed.as_bytes(), &how())
        .unwrap_err();
    let cause = error.to_string();
    assert!(
        cause.contains("message authentication code does not match"),
        "{cause}"
    );
}

#[test]
fn an_object_that_wants_to_stay_closed_does() {
    let text = String::from_utf8(fixture("secret.yaml")).unwrap();
    let marked = text.replacen(
        "metadata:\n",
        "metadata:\n    annotations:\n        kustomize.toolkit.fluxcd.io/decrypt: disabled\n",
        1,
    );
    let left = opener(Some("key.txt"))
        .file("/a.yaml".into(), marked.as_bytes(), &how())
        .unwrap();
    assert!(left.is_none());
}

#[test]
fn what_was_opened_is_known_to_be_secret() {
    let secrets = Arc::new(KnownSecrets::default());
    let keys = Keys::parse(std::str::from_utf8(&fixture("key.txt")).unwrap()).unwrap();
    let opener = Opener::new(keys, WithoutKeys::default(), Arc::clone(&secrets));
    opener
        .file("/vars.env".into(), &fixture("vars.env"), &how())
        .unwrap();
    let plain = String::from_utf8(fixture("vars.plain.env")).unwrap();
    let mut values = plain
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.1));
    // A plain word is a name far oftener than a secret.
    let secret = values.find(|value| value.len() > 11).unwrap();
    assert!(secrets.mask().holds(secret), "{secret}");
}

#[test]
fn without_a_key_what_is_sealed_can_stay_as_it_is_written() {
    let opener = Opener::new(Keys::none(), WithoutKeys::AsWritten, Arc::default());
    let object = documents(&fixture("secret.yaml")).remove(0);
    assert!(opener.object(&object, &how()).unwrap().is_none());
    let file = opener.file("/vars.env".into(), &fixture("vars.env"), &how());
    assert!(file.unwrap().is_none());
    assert_eq!(opener.left_closed(), 1, "the object, which is told of");
}
