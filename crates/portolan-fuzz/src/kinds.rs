//! Objects of the control plane: as clients send them, as the store holds them, and what else a request brings.

use portolan_kinds::{KINDS, KindObject, decode, encode, message, read_span};
use portolan_server::{KeyEncryptionKey, fuzz_request};

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "kinds-object",
        about: "an object in YAML or JSON: what is taken prints as something that is taken again and is equal",
        run: object,
        seeds: || {
            texts(&[
                "apiVersion: v1alpha\nkind: Variable\nmetadata: {name: a, namespace: b}\nspec: {values: {x: [1, 2.5, null]}}\n",
                "{\"apiVersion\":\"v1alpha\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"values\":{\"p\":\"x\"}}}",
                "metadata: {kind: Node, apiVersion: v1alpha, name: a}\nspec: {network: {daemonPorts: [{name: a, port: 0}]}}\n",
            ])
        },
    },
    Target {
        name: "kinds-spec",
        about: "the protobuf bytes of a spec: what is taken gives the same value again",
        run: spec,
        seeds: || {
            let spec = serde_json::json!({"values": {"a": [1, {"b": "c"}], "d": -1.5}});
            let bytes = message("ClusterVariableSpec").map(|schema| encode(schema, &spec));
            vec![
                bytes.unwrap_or_default(),
                vec![0x12, 0xff, 0xff, 0xff, 0x7f],
            ]
        },
    },
    Target {
        name: "kinds-request",
        about: "the path and query of a request, selectors and page tokens in it",
        run: |bytes| std::str::from_utf8(bytes).is_ok_and(fuzz_request),
        seeds: || {
            texts(&[
                "/api/v1alpha/namespaces/web/variables/region?apply=true&dryRun=false",
                "/api/v1alpha/nodes?labelSelector=role%20in%20(a,b)&fieldSelector=status.state!%3Dready&limit=5",
                "/api/v1alpha/nodes?continue=1.7~L3BvcnRvbGFu&watch=true&resourceVersion=1.4",
                "/api/v1alpha/auth/tokens/%2e%2e%2f",
            ])
        },
    },
    Target {
        name: "kinds-settings",
        about: "spans of time and files of keys",
        run: settings,
        seeds: || {
            texts(&[
                "1h30m",
                "90s",
                "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n# old\n",
            ])
        },
    },
];

fn object(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let Ok(object) = KindObject::read_text(text) else {
        return false;
    };
    let printed = object.to_json().to_string();
    let again = KindObject::read_text(&printed);
    assert_eq!(again.as_ref(), Ok(&object), "{printed}");
    let mut stored = object.clone();
    stored
        .set_spec_bytes(&object.spec_bytes())
        .expect("its own bytes");
    assert_eq!(stored, object);
    true
}

fn spec(bytes: &[u8]) -> bool {
    let mut is_taken = false;
    for kind in KINDS {
        let schema = message(kind.spec).expect("every kind has one");
        if let Ok(value) = decode(schema, bytes) {
            assert_eq!(
                decode(schema, &encode(schema, &value)),
                Ok(value),
                "{}",
                kind.name
            );
            is_taken = true;
        }
    }
    is_taken
}

fn settings(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    read_span(text).is_ok() | KeyEncryptionKey::read_all(text).is_ok()
}
