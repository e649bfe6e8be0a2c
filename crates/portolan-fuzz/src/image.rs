//! Inputs of image builds.

use portolan_image::{Ignore, LayerFiles, Manifest, Memo, read_patterns};

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "image-base-layer",
        about: "the names in a layer of a base image",
        run: base_layer,
        seeds: || vec![layer(), b"\0".repeat(1024)],
    },
    Target {
        name: "image-ignore",
        about: "a `.dockerignore` file and a path, cut at a line of `%%`",
        run: ignore,
        seeds: || {
            texts(&[
                "a\n!a/b\n%%\na/b/c",
                "**/[a-z]*\n!\\*?\n[^a]{2}\n%%\nx/y",
                "\u{feff}#\n/a|b*\n[[:alpha:]]\n%%\na",
            ])
        },
    },
    Target {
        name: "image-manifest",
        about: "the manifest of a base image",
        run: |bytes| serde_json::from_slice::<Manifest>(bytes).is_ok(),
        seeds: || {
            texts(&[
                "{\"schemaVersion\":2,\"config\":{\"mediaType\":\"a\",\"digest\":\"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\"size\":0},\"layers\":[]}",
            ])
        },
    },
    Target {
        name: "image-memo",
        about: "digests of files remembered from before",
        run: memo,
        seeds: || {
            vec![
                Memo::default().to_bytes(),
                [&b"ptlmemo1"[..], &[7; 144]].concat(),
            ]
        },
    },
];

fn base_layer(bytes: &[u8]) -> bool {
    let Ok(files) = LayerFiles::read(bytes) else {
        return false;
    };
    assert_eq!(
        LayerFiles::from_bytes(&files.to_bytes()).as_ref(),
        Some(&files)
    );
    let mut index = portolan_image::FileIndex::default();
    index.add(&files);
    let _ = index.resolve("usr/bin/x", true);
    true
}

fn ignore(bytes: &[u8]) -> bool {
    let Some(mut pieces) = crate::pieces(bytes) else {
        return false;
    };
    let (text, path) = (
        pieces.next().unwrap_or_default(),
        pieces.next().unwrap_or_default(),
    );
    let Ok(patterns) = read_patterns(text.as_bytes()) else {
        return false;
    };
    let Ok(ignore) = Ignore::new(patterns.iter().map(String::as_str)) else {
        return false;
    };
    let _ = ignore.may_take_in_below(path);
    ignore.is_left_out(path).is_ok()
}

fn memo(bytes: &[u8]) -> bool {
    let Some(memo) = Memo::from_bytes(bytes) else {
        return false;
    };
    let written = memo.to_bytes();
    let again = Memo::from_bytes(&written).map(|again| again.to_bytes());
    assert_eq!(again, Some(written));
    true
}

/// A layer with a directory, a link, a long name and a whiteout.
fn layer() -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let long = "directory/".repeat(20);
    for (name, kind) in [
        ("usr/", tar::EntryType::Directory),
        ("bin", tar::EntryType::Symlink),
        (&long, tar::EntryType::Directory),
        (".wh.old", tar::EntryType::Regular),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        let added = match kind {
            tar::EntryType::Symlink => builder.append_link(&mut header, name, "usr/bin"),
            _ => builder.append_data(&mut header, name, &b""[..]),
        };
        added.expect("memory takes it");
    }
    builder.into_inner().expect("memory takes it")
}
