//! Files made with sops 3.11.0 and decrypted by it, beside what we make of them.

use portolan_object::holds_placeholder;
use portolan_sops::{
    Format, Keys, Mac, SopsError, decrypt, decrypt_documents, decrypt_file, is_sops, placeholders,
};
use portolan_yaml::{Dialect, Node, Tag, parse, to_json};

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).expect("a fixture")
}

fn text(name: &str) -> String {
    String::from_utf8(fixture(name)).expect("text")
}

fn documents(name: &str) -> Vec<Node> {
    parse(text(name), Dialect::Kustomize).expect("YAML")
}

fn document(name: &str) -> Node {
    documents(name).remove(0)
}

fn keys() -> Keys {
    Keys::parse(&text("key.txt")).expect("keys")
}

/// Every file is decrypted to the very bytes that sops prints.
fn check(name: &str, plain: &str) {
    let format = Format::of_path(name);
    let got = decrypt_file(&fixture(name), format, &keys(), Mac::Check).expect(name);
    assert_eq!(
        String::from_utf8_lossy(got.reveal()),
        String::from_utf8_lossy(&fixture(plain)),
        "{name}"
    );
}

#[test]
fn yaml_files_are_decrypted_by_every_kind_of_rule() {
    for rule in [
        "secret",
        "mac-only",
        "unencrypted-regex",
        "encrypted-suffix",
        "comment-regex",
    ] {
        check(&format!("{rule}.yaml"), &format!("{rule}.plain.yaml"));
    }
}

#[test]
fn every_type_of_value_comes_back() {
    check("types.yaml", "types.plain.yaml");
    check("types.json", "types.plain.json");
}

#[test]
fn texts_are_printed_in_the_style_that_sops_chooses() {
    check("literals.yaml", "literals.plain.yaml");
}

#[test]
fn several_documents_share_one_key_and_one_code() {
    check("multi.yaml", "multi.plain.yaml");
    let plain = decrypt_documents(&documents("multi.yaml"), &keys(), Mac::Check).expect("plain");
    assert_eq!(plain, documents("multi.plain.yaml"));
}

#[test]
fn a_list_of_objects_is_one_document() {
    check("list.yaml", "list.plain.yaml");
}

#[test]
fn dotenv_and_binary_files_are_decrypted() {
    check("vars.env", "vars.plain.env");
    check("blob.bin", "blob.plain.bin");
}

#[test]
fn a_tree_is_decrypted_to_the_tree_of_the_plain_file() {
    for name in ["secret", "types", "literals"] {
        let sealed = document(&format!("{name}.yaml"));
        assert!(is_sops(&sealed));
        let plain = decrypt(&sealed, &keys(), Mac::Check).expect(name);
        assert!(!is_sops(&plain));
        assert_eq!(plain, document(&format!("{name}.plain.yaml")), "{name}");
    }
}

#[test]
fn a_wrong_and_a_missing_key_are_told_apart() {
    let other = Keys::parse(&text("other-key.txt")).expect("keys");
    let sealed = document("secret.yaml");
    let message = |keys| {
        decrypt(&sealed, keys, Mac::Check)
            .expect_err("refused")
            .to_string()
    };
    let recipient = "`age1p78xweph5szdmj74gycxspjumxx0uf8530y84ktgxrdkr7ygde0s6vhjan`";
    assert_eq!(
        message(&other),
        format!("none of the given age keys opens the document; it is encrypted for {recipient}")
    );
    assert_eq!(
        message(&Keys::none()),
        format!("no age key was given; the document is encrypted for {recipient}")
    );
}

#[test]
fn a_changed_plain_value_breaks_the_code() {
    let changed = text("secret.yaml").replace("name: harbour", "name: pirates");
    let sealed = parse(changed, Dialect::Kustomize).expect("YAML").remove(0);
    assert_eq!(decrypt(&sealed, &keys(), Mac::Check), Err(SopsError::Mac));
    assert!(decrypt(&sealed, &keys(), Mac::Ignore).is_ok());
}

/// Only encrypted values count there, so what a transformer adds does not matter.
#[test]
fn a_changed_plain_value_does_not_matter_when_only_encrypted_ones_count() {
    let changed = text("mac-only.yaml").replace("name: harbour", "name: pirates");
    let sealed = parse(changed, Dialect::Kustomize).expect("YAML").remove(0);
    assert!(decrypt(&sealed, &keys(), Mac::Check).is_ok());
}

#[test]
fn a_sealed_value_opens_only_under_its_own_key() {
    let moved = text("secret.yaml").replace("password:", "passphrase:");
    let sealed = parse(moved, Dialect::Kustomize).expect("YAML").remove(0);
    let error = decrypt(&sealed, &keys(), Mac::Ignore).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "`stringData.passphrase` cannot be decrypted: it was changed or moved after it was encrypted"
    );
}

#[test]
fn a_value_that_should_be_sealed_and_is_not_is_refused_without_showing_it() {
    let mut sealed = document("secret.yaml");
    let data = sealed
        .get_mut("stringData")
        .and_then(Node::as_map_mut)
        .expect("a map");
    data.insert("user", Node::string("planted-value"));
    let error = decrypt(&sealed, &keys(), Mac::Ignore).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "`stringData.user` should be encrypted and is not"
    );
    assert!(!format!("{error:?}").contains("planted"));
}

#[test]
fn damage_anywhere_in_a_file_is_an_error_and_never_a_panic() {
    let whole = fixture("secret.yaml");
    for cut in (0..whole.len()).step_by(7) {
        let _ = decrypt_file(&whole[..cut], Format::Yaml, &keys(), Mac::Check);
        let mut changed = whole.clone();
        changed[cut] = b'x';
        let _ = decrypt_file(&changed, Format::Yaml, &keys(), Mac::Check);
    }
    for name in ["vars.env", "types.json", "blob.bin"] {
        let whole = fixture(name);
        for cut in (0..whole.len()).step_by(31) {
            let _ = decrypt_file(&whole[..cut], Format::of_path(name), &keys(), Mac::Check);
        }
    }
}

#[test]
fn without_a_key_every_value_keeps_its_type() {
    let closed = placeholders(&document("types.yaml"));
    let scalar = |path: &[&str]| closed.at_path(path).and_then(Node::as_scalar);
    for path in [&["map", "a:b"][..], &["multi"], &["text"], &["unicode"]] {
        let scalar = scalar(path).expect("a scalar");
        assert_eq!(scalar.tag, Tag::Str, "{path:?}");
        assert!(holds_placeholder(&scalar.text), "{path:?}");
    }
    for key in ["big", "exponent", "float", "negative", "number"] {
        let scalar = scalar(&[key]).expect("a scalar");
        assert_eq!(scalar.tag, Tag::Int, "{key}");
        assert!(holds_placeholder(&scalar.text), "{key}: {}", scalar.text);
    }
    for key in ["no", "yes"] {
        assert_eq!(
            closed.get(key).and_then(Node::as_bool),
            Some(false),
            "{key}"
        );
    }
    let shown = to_json(&closed).expect("JSON");
    assert!(shown.contains("\"plain_unencrypted\":\"shown\""), "{shown}");
    assert!(shown.contains("\"nothing\":null"), "{shown}");
    assert!(!shown.contains("sops"), "{shown}");
}

/// Two variables of one Secret may be parts of two names.
#[test]
fn every_sealed_text_has_a_placeholder_of_its_own() {
    let secret = "kind: Secret\nmetadata: {name: cluster, namespace: a}\nstringData:\n  A: ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]\n  B: ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]\nsops: {mac: x}\n";
    let closed = placeholders(&parse(secret, Dialect::Kustomize).expect("YAML")[0]);
    let text = |key| closed.at_path(&["stringData", key]).and_then(Node::as_str);
    assert!(text("A").is_some_and(holds_placeholder));
    assert_ne!(text("A"), text("B"));
}

/// Nobody can tell without a key whether it still says the same.
#[test]
fn what_is_sealed_anew_has_another_placeholder() {
    let closed = |data: &str, key: &str, kind: &str| {
        let object = format!(
            "kind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  {key}: ENC[AES256_GCM,data:{data},iv:eA==,tag:eA==,type:{kind}]\nsops: {{mac: x}}\n"
        );
        let closed = placeholders(&parse(object, Dialect::Kustomize).expect("YAML")[0]);
        let value = closed.at_path(&["data", key]).and_then(Node::as_scalar);
        value.expect("a scalar").text.clone()
    };
    for (key, kind) in [
        ("a", "str"),
        ("a", "int"),
        ("a.yaml", "str"),
        ("a.json", "str"),
    ] {
        assert_eq!(closed("eA==", key, kind), closed("eA==", key, kind));
        assert_ne!(
            closed("eA==", key, kind),
            closed("eQ==", key, kind),
            "{key} {kind}"
        );
    }
    for key in ["a.yaml", "a.json"] {
        let file = closed("eA==", key, "str");
        let file = parse(file.to_string(), Dialect::Helm).expect("YAML");
        assert_eq!(
            to_json(&file[0]).expect("JSON"),
            "{}",
            "whoever reads it finds nothing"
        );
    }
}

#[test]
fn keys_of_other_kinds_are_named() {
    let sealed =
        "a: x\nsops:\n  pgp:\n    - fp: F\n      enc: x\n  lastmodified: \"x\"\n  mac: x\n";
    let sealed = parse(sealed, Dialect::Kustomize).expect("YAML").remove(0);
    let error = decrypt(&sealed, &keys(), Mac::Check).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "the document is encrypted for PGP only; age keys cannot open it"
    );
}

#[test]
fn very_deep_documents_are_refused() {
    let mut sealed = document("types.yaml");
    let deep = (0..1000).fold(Node::null(), |node, _| {
        let mut map = Node::map();
        map.as_map_mut().expect("a map").insert("a", node);
        map
    });
    sealed.as_map_mut().expect("a map").insert("deep", deep);
    assert_eq!(
        decrypt(&sealed, &keys(), Mac::Ignore),
        Err(SopsError::TooDeep(256))
    );
    let _ = placeholders(&sealed);
}

#[test]
fn a_file_printed_by_another_program_is_printed_anew() {
    let quoted: String = text("multi.yaml")
        .lines()
        .map(|line| match line.split_once(": ENC[") {
            Some((key, sealed)) => format!("{key}: \"ENC[{sealed}\"\n"),
            None => format!("{line}\n"),
        })
        .collect();
    let plain = decrypt_file(quoted.as_bytes(), Format::Yaml, &keys(), Mac::Check).expect("plain");
    assert_eq!(plain.reveal_text(), Some("a: one\n---\nb: two\n"));
}

#[test]
fn encrypted_files_are_told_apart_by_their_look() {
    for (name, format) in [
        ("secret.yaml", Some(Format::Yaml)),
        ("types.json", Some(Format::Json)),
        ("vars.env", Some(Format::Dotenv)),
        ("blob.bin", Some(Format::Binary)),
        ("secret.plain.yaml", None),
        ("blob.plain.bin", None),
    ] {
        assert_eq!(Format::detect(name, &fixture(name)), format, "{name}");
    }
}
