//! Images of ours read by programs of others: skopeo, umoci, buildah.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_image::{
    Base, BuildIo, Compression, ConfigSpec, CopySpec, Descriptor, ImageSpec, LayerOptions, Memo,
    ScanOptions, build_image, build_index, referrers_tag, scan, write_referrer, write_referrers,
};
use portolan_layout::{Directory, Run, Store};
use portolan_testbed::has_program;

struct Place {
    _directory: tempfile::TempDir,
    root: Utf8PathBuf,
}

fn place() -> Place {
    let directory = tempfile::tempdir().expect("a directory");
    let root = Utf8PathBuf::from_path_buf(directory.path().to_owned()).expect("UTF-8");
    fill(&root.join("context"));
    Place {
        _directory: directory,
        root,
    }
}

/// Files of every kind that an image can hold.
fn fill(context: &Utf8Path) {
    let long = format!("long/{}/{}", "d".repeat(120), "f".repeat(140));
    let files = [
        ("app/run", 0o755, vec![7; 3_000_000]),
        ("app/data.txt", 0o644, b"data\n".repeat(5_000)),
        ("app/ünïcode/ß", 0o644, b"letters".to_vec()),
        ("etc/with space", 0o644, Vec::new()),
        (&long, 0o755, b"long".to_vec()),
    ];
    for (path, mode, content) in files {
        let path = context.join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("it is made");
        std::fs::write(&path, content).expect("it is written");
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&path, permissions).expect("it is set");
    }
    for number in 0..30 {
        let directory = context.join(format!("srv/d{number}"));
        std::fs::create_dir_all(&directory).expect("it is made");
        std::fs::write(directory.join("f"), format!("{number}")).expect("it is written");
    }
    std::fs::create_dir_all(context.join("var/empty")).expect("it is made");
    symlink("../app/run", context.join("etc/link")).expect("it is linked");
    symlink("x/".repeat(90), context.join("etc/far")).expect("it is linked");
}

fn spec(platform: &str, compression: Compression) -> ImageSpec {
    ImageSpec {
        config: ConfigSpec {
            entrypoint: Some(vec!["/app/run".to_owned()]),
            env: vec![("MODE".to_owned(), "test".to_owned())],
            labels: BTreeMap::from([("of".to_owned(), "us".to_owned())]),
            ..ConfigSpec::default()
        },
        platform: platform.parse().expect("a platform"),
        layers: LayerOptions {
            compression,
            modified: 1_700_000_000,
        },
        buckets: 8,
    }
}

fn built(run: &Run<'_>, context: &Utf8Path, spec: &ImageSpec, base: Option<&Base>) -> Descriptor {
    let source = Directory::open(context).expect("a directory");
    let copy = CopySpec {
        to: "/".to_owned(),
        ..CopySpec::default()
    };
    let options = ScanOptions {
        ignore: &[],
        never: &[],
        memo: &Memo::default(),
        now: 0,
        threads: 2,
    };
    let found = scan(&source, &[copy], &options).expect("a good context");
    let io = BuildIo {
        source: &source,
        memo: &Memo::default(),
        cache: run,
        blocks: &(),
        sink: run,
        threads: 2,
    };
    let image = build_image(&found.entries, spec, base, &io);
    image.expect("an image").manifest
}

/// Runs a program and returns what it prints; it must succeed.
fn run(program: &str, args: &[&str]) -> String {
    run_in(Utf8Path::new("."), program, args)
}

fn run_in(directory: &Utf8Path, program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .current_dir(directory)
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {args:?}\n{text}\n{error}"
    );
    text
}

/// Paths below a directory, with kind, execute bit and content.
fn tree(root: &Utf8Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in directory.read_dir_utf8().expect("a directory") {
            let path = entry.expect("an entry").into_path();
            let metadata = path.symlink_metadata().expect("it is there");
            let shown = if metadata.is_dir() {
                left.push(path.clone());
                "directory".to_owned()
            } else if metadata.is_symlink() {
                format!("-> {}", path.read_link_utf8().expect("a link"))
            } else {
                let content = std::fs::read(&path).expect("a file");
                let mode = metadata.permissions().mode() & 0o100;
                format!("{mode:o} {}", portolan_digest::Digest::of(&content))
            };
            let name = path.strip_prefix(root).expect("below it").to_string();
            found.insert(name, shown);
        }
    }
    found
}

/// A store with an image `web` of the context.
fn store_with_web(place: &Place) -> Store {
    let store = Store::open(&place.root.join("store")).expect("a store");
    let run_of = store.begin().expect("a run");
    let context = place.root.join("context");
    let spec = spec("linux/amd64", Compression::default());
    let image = built(&run_of, &context, &spec, None);
    run_of.tag("web", &image).expect("a name");
    drop(run_of);
    store
}

#[test]
fn skopeo_reads_and_copies_images_of_every_compression() {
    if !has_program("skopeo", "--version") {
        return;
    }
    let place = place();
    let store = Store::open(&place.root.join("store")).unwrap();
    let run_of = store.begin().unwrap();
    for (name, compression) in [
        ("gzip", Compression::default()),
        ("zstd", Compression::Zstd),
    ] {
        let image = built(
            &run_of,
            &place.root.join("context"),
            &spec("linux/amd64", compression),
            None,
        );
        run_of.tag(name, &image).unwrap();
        let from = format!("oci:{}:{name}", store.root());
        let told: serde_json::Value =
            serde_json::from_str(&run("skopeo", &["inspect", &from])).unwrap();
        assert_eq!(told["Digest"], image.digest.to_string());
        assert_eq!(told["Labels"]["of"], "us");
        assert_eq!(told["Created"], "2023-11-14T22:13:20Z");
        let to = format!("oci:{}:copy-{name}", place.root.join("copy"));
        run("skopeo", &["copy", &from, &to]);
    }
    let copied = Store::open(&place.root.join("copy"))
        .unwrap()
        .refs()
        .unwrap();
    let ours = store.refs().unwrap();
    assert_eq!(copied["copy-gzip"].digest, ours["gzip"].digest);
    assert_eq!(copied["copy-zstd"].digest, ours["zstd"].digest);
}

#[test]
fn umoci_unpacks_a_tree_equal_to_the_source() {
    if !has_program("umoci", "--version") {
        return;
    }
    let place = place();
    let store = store_with_web(&place);
    let bundle = place.root.join("bundle");
    let image = format!("{}:web", store.root());
    run(
        "umoci",
        &["unpack", "--rootless", "--image", &image, bundle.as_str()],
    );
    assert_eq!(
        tree(&bundle.join("rootfs")),
        tree(&place.root.join("context"))
    );
}

/// The base is made by umoci and has `/bin` as a link, as Debian has it.
#[test]
fn an_image_on_a_base_unpacks_to_both_with_links_of_the_base_kept() {
    if !has_program("umoci", "--version") {
        return;
    }
    let place = place();
    let layout = place.root.join("base");
    let image = format!("{layout}:base");
    run("umoci", &["init", "--layout", layout.as_str()]);
    run("umoci", &["new", "--image", &image]);
    let rootfs = place.root.join("rootfs");
    std::fs::create_dir_all(rootfs.join("usr/bin")).unwrap();
    std::fs::write(rootfs.join("usr/bin/sh"), b"sh").unwrap();
    symlink("usr/bin", rootfs.join("bin")).unwrap();
    run(
        "umoci",
        &[
            "insert",
            "--rootless",
            "--image",
            &image,
            rootfs.as_str(),
            "/",
        ],
    );
    let base_store = Store::open(&layout).unwrap();
    let digest = base_store.refs().unwrap()["base"].digest;

    let store = Store::open(&place.root.join("store")).unwrap();
    let run_of = store.begin().unwrap();
    // A base's blobs are copied into the store, as a pull does it.
    for name in layout.join("blobs/sha256").read_dir_utf8().unwrap() {
        let path = name.unwrap().into_path();
        std::fs::copy(
            &path,
            store
                .root()
                .join("blobs/sha256")
                .join(path.file_name().unwrap()),
        )
        .unwrap();
    }
    let base = Base::read(&run_of, &digest, &"linux/amd64".parse().unwrap(), &run_of).unwrap();
    let context = place.root.join("more");
    std::fs::create_dir_all(context.join("bin")).unwrap();
    std::fs::write(context.join("bin/tool"), b"tool").unwrap();
    let image = built(
        &run_of,
        &context,
        &spec("linux/amd64", Compression::default()),
        Some(&base),
    );
    run_of.tag("web", &image).unwrap();
    let bundle = place.root.join("bundle");
    run(
        "umoci",
        &[
            "unpack",
            "--rootless",
            "--image",
            &format!("{}:web", store.root()),
            bundle.as_str(),
        ],
    );
    let mut expected = tree(&rootfs);
    expected.insert(
        "usr/bin/tool".to_owned(),
        tree(&context)["bin/tool"].clone(),
    );
    assert_eq!(tree(&bundle.join("rootfs")), expected);
}

#[test]
fn an_index_of_two_platforms_and_its_referrers_are_found_by_others() {
    if !has_program("skopeo", "--version") {
        return;
    }
    let place = place();
    let store = Store::open(&place.root.join("store")).unwrap();
    let run_of = store.begin().unwrap();
    let images = ["linux/amd64", "linux/arm64"].map(|platform| {
        built(
            &run_of,
            &place.root.join("context"),
            &spec(platform, Compression::default()),
            None,
        )
    });
    let index = build_index(&images, &run_of).unwrap();
    run_of.tag("web", &index).unwrap();
    let note = write_referrer(&index, "application/spdx+json", b"{}", &run_of).unwrap();
    let notes = write_referrers(vec![note], &run_of).unwrap();
    run_of.tag(&referrers_tag(&index.digest), &notes).unwrap();
    let from = format!("oci:{}:web", store.root());
    for architecture in ["amd64", "arm64"] {
        let args = [
            "--override-arch",
            architecture,
            "--override-os",
            "linux",
            "inspect",
            &from,
        ];
        let told: serde_json::Value = serde_json::from_str(&run("skopeo", &args)).unwrap();
        assert_eq!(told["Architecture"], architecture);
    }
    run(
        "skopeo",
        &[
            "copy",
            "--all",
            &from,
            &format!("oci:{}:web", place.root.join("copy")),
        ],
    );
    let copied = Store::open(&place.root.join("copy"))
        .unwrap()
        .refs()
        .unwrap();
    assert_eq!(
        copied["web"].digest, index.digest,
        "nothing that is said about an image is part of it"
    );
}

/// buildah shows the files of a container to root only.
#[test]
fn buildah_takes_an_image_as_its_base() {
    if !has_program("buildah", "--version") {
        return;
    }
    let place = place();
    store_with_web(&place);
    let (storage, state) = (place.root.join("containers"), place.root.join("state"));
    let common = [
        "--root",
        storage.as_str(),
        "--runroot",
        state.as_str(),
        "--storage-driver",
        "vfs",
    ];
    let with = |args: &[&str]| run_in(&place.root, "buildah", &[&common[..], args].concat());
    // buildah makes a name of the path, which must be in lower case: it is called beside the store.
    let container = with(&["from", "oci:store:web"]).trim().to_owned();
    let told: serde_json::Value = serde_json::from_str(&with(&["inspect", &container])).unwrap();
    assert_eq!(told["OCIv1"]["config"]["Entrypoint"][0], "/app/run");
    if std::os::unix::fs::MetadataExt::uid(&place.root.metadata().unwrap()) != 0 {
        println!("SKIPPED: only root sees the files of a container");
        return;
    }
    let mounted = Utf8PathBuf::from(with(&["mount", &container]).trim());
    let found = tree(&mounted);
    with(&["rm", &container]);
    assert_eq!(found, tree(&place.root.join("context")));
}
