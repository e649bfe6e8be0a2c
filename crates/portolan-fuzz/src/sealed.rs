//! Files that SOPS encrypted, and keys.

use std::sync::LazyLock;

use portolan_sops::{Format, Keys, Mac, decrypt_documents, decrypt_file, is_sops, placeholders};
use portolan_yaml::{Dialect, parse_bytes};

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "sops-file",
        about: "a sealed file in each of its formats",
        run: file,
        seeds: || {
            vec![
                include_bytes!("../../portolan-sops/tests/fixtures/secret.yaml").to_vec(),
                include_bytes!("../../portolan-sops/tests/fixtures/comment-regex.yaml").to_vec(),
                include_bytes!("../../portolan-sops/tests/fixtures/types.json").to_vec(),
                include_bytes!("../../portolan-sops/tests/fixtures/vars.env").to_vec(),
                include_bytes!("../../portolan-sops/tests/fixtures/blob.bin").to_vec(),
            ]
        },
    },
    Target {
        name: "sops-document",
        about: "sealed documents, opened and replaced by placeholders",
        run: documents,
        seeds: || {
            vec![
                include_bytes!("../../portolan-sops/tests/fixtures/multi.yaml").to_vec(),
                include_bytes!("../../portolan-sops/tests/fixtures/list.yaml").to_vec(),
                include_bytes!("../../portolan-sops/tests/fixtures/encrypted-suffix.yaml").to_vec(),
            ]
        },
    },
    Target {
        name: "sops-keys",
        about: "a file of age keys",
        run: |bytes| std::str::from_utf8(bytes).is_ok_and(|text| Keys::parse(text).is_ok()),
        seeds: || {
            texts(&[
                KEYS,
                "# a comment\n\nAGE-SECRET-KEY-1",
                "AGE-PLUGIN-YUBIKEY-1",
            ])
        },
    },
];

const KEYS: &str = include_str!("../../portolan-sops/tests/fixtures/key.txt");

static OPENS: LazyLock<Keys> = LazyLock::new(|| Keys::parse(KEYS).expect("the fixture's key"));

fn file(bytes: &[u8]) -> bool {
    let _ = Format::detect("a.json", bytes);
    let formats = [Format::Yaml, Format::Json, Format::Dotenv, Format::Binary];
    let opened = formats.map(|format| decrypt_file(bytes, format, &OPENS, Mac::Ignore).is_ok());
    opened.contains(&true)
}

fn documents(bytes: &[u8]) -> bool {
    let Ok(nodes) = parse_bytes(bytes, Dialect::Helm) else {
        return false;
    };
    for node in nodes.iter().filter(|node| is_sops(node)) {
        let _ = placeholders(node);
    }
    decrypt_documents(&nodes, &OPENS, Mac::Ignore).is_ok()
}
