//! Images: keys, configs, manifests, bases, referrers.

use portolan_digest::Digest;
use portolan_image::{
    Base, BlobSink as _, BuildError, BuildIo, BuiltImage, Compression, ConfigSpec, CopySpec,
    Descriptor, IN_TOTO, ImageSpec, LayerFiles, LayerOptions, Manifest, Memo, Memory, MemoryBlobs,
    Platform, ProvenanceSubject, SPDX, SbomSubject, Scan, ScanOptions, build_image, build_index,
    image_key, media_type, provenance, sbom, scan, write_referrer,
};
use serde_json::{Value, json};

fn scanned(files: &Memory) -> Scan {
    let copy = CopySpec {
        to: "/".to_owned(),
        ..CopySpec::default()
    };
    let options = ScanOptions {
        ignore: &[],
        never: &[],
        memo: &Memo::default(),
        now: 0,
        threads: 1,
    };
    scan(files, &[copy], &options).expect("a good context")
}

fn platform(text: &str) -> Platform {
    text.parse().expect("a platform")
}

fn spec() -> ImageSpec {
    ImageSpec {
        config: ConfigSpec {
            entrypoint: Some(vec!["/app/run".to_owned()]),
            env: vec![
                ("B".to_owned(), "2".to_owned()),
                ("A".to_owned(), "1".to_owned()),
            ],
            ports: vec!["8080/tcp".to_owned()],
            ..ConfigSpec::default()
        },
        platform: platform("linux/amd64"),
        layers: LayerOptions {
            compression: Compression::default(),
            modified: 0,
        },
        buckets: 8,
    }
}

fn files() -> Memory {
    let mut files = Memory::default();
    files
        .file("app/run", 0o755, b"run")
        .file("app/data/x", 0o644, b"x");
    files
}

fn built(
    files: &Memory,
    spec: &ImageSpec,
    base: Option<&Base>,
    blobs: &MemoryBlobs,
) -> Result<BuiltImage, BuildError> {
    let io = BuildIo {
        source: files,
        memo: &Memo::default(),
        cache: &(),
        blocks: &(),
        sink: blobs,
        threads: 2,
    };
    build_image(&scanned(files).entries, spec, base, &io)
}

fn document(blobs: &MemoryBlobs, digest: &Digest) -> Value {
    serde_json::from_slice(&blobs.get(digest).expect("a blob")).expect("JSON")
}

fn config_of(blobs: &MemoryBlobs, image: &BuiltImage) -> Value {
    let manifest = document(blobs, &image.manifest.digest);
    let digest = manifest["config"]["digest"].as_str().expect("a digest");
    document(blobs, &digest.parse().expect("a digest"))
}

fn put(blobs: &MemoryBlobs, content: &[u8]) -> Digest {
    let digest = Digest::of(content);
    let mut writer = blobs.begin().expect("it works");
    writer.write_all(content).expect("it works");
    writer.commit(&digest).expect("it works");
    digest
}

/// A layer made by another program: names with their kind (`/` is a directory, `@` leads elsewhere).
fn foreign_layer(names: &[&str]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for name in names {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(0);
        if let Some((name, target)) = name.split_once('@') {
            header.set_entry_type(tar::EntryType::Symlink);
            builder
                .append_link(&mut header, name, target)
                .expect("it works");
            continue;
        }
        let kind = if name.ends_with('/') {
            tar::EntryType::Directory
        } else {
            tar::EntryType::Regular
        };
        header.set_entry_type(kind);
        builder
            .append_data(&mut header, name, &b""[..])
            .expect("it works");
    }
    builder.into_inner().expect("it works")
}

/// An image of Docker's kind with two layers.
fn docker_image(blobs: &MemoryBlobs) -> Digest {
    use std::io::Write as _;
    let long = format!("{}/", "usr/share/".repeat(20));
    let plain = [
        foreign_layer(&[
            "./",
            "usr/",
            "usr/bin/",
            "usr/bin/sh",
            "bin@usr/bin",
            "tmp/",
            "old/",
            "old/x",
            "opt@/srv/opt",
            &long,
        ]),
        foreign_layer(&[".wh.old", "tmp/.wh..wh..opq", "var/lib/file"]),
    ];
    let mut layers = Vec::new();
    for tar in &plain {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(tar).expect("it works");
        let packed = encoder.finish().expect("it works");
        layers.push(Descriptor::of(
            "application/vnd.docker.image.rootfs.diff.tar.gzip",
            &packed,
        ));
        put(blobs, &packed);
    }
    let config = json!({
        "architecture": "amd64", "os": "linux", "docker_version": "20", "container": "x",
        "config": {"Env": ["PATH=/bin", "A=0"], "Cmd": ["sh"], "User": "nobody", "Labels": {"of": "base"}},
        "rootfs": {"type": "layers", "diff_ids": plain.iter().map(|tar| Digest::of(tar).to_string()).collect::<Vec<_>>()},
        "history": [{"created_by": "a"}, {"created_by": "b", "empty_layer": true}, {"created_by": "c"}],
    });
    let config = config.to_string().into_bytes();
    put(blobs, &config);
    let manifest = json!({
        "schemaVersion": 2, "mediaType": media_type::DOCKER_MANIFEST,
        "config": Descriptor::of("application/vnd.docker.container.image.v1+json", &config),
        "layers": layers,
    });
    let manifest = manifest.to_string().into_bytes();
    put(blobs, &manifest);
    let mut entry = Descriptor::of(media_type::DOCKER_MANIFEST, &manifest);
    entry.platform = Some(platform("linux/amd64"));
    let index =
        json!({"schemaVersion": 2, "mediaType": media_type::DOCKER_INDEX, "manifests": [entry]});
    put(blobs, &index.to_string().into_bytes())
}

#[test]
fn an_image_from_nothing_has_a_config_in_one_form() {
    let blobs = MemoryBlobs::default();
    let image = built(&files(), &spec(), None, &blobs).unwrap();
    let config = config_of(&blobs, &image);
    assert_eq!(
        config["config"],
        json!({"Entrypoint": ["/app/run"], "Env": ["B=2", "A=1"], "ExposedPorts": {"8080/tcp": {}}})
    );
    assert_eq!(config["created"], "1970-01-01T00:00:00Z");
    assert_eq!(
        config["rootfs"]["diff_ids"].as_array().unwrap().len(),
        image.layers.len()
    );
    assert_eq!(
        config["history"].as_array().unwrap().len(),
        image.layers.len()
    );
    assert_eq!(
        config["history"][0],
        json!({"created": "1970-01-01T00:00:00Z", "created_by": "portolan"})
    );
    let again = built(&files(), &spec(), None, &MemoryBlobs::default()).unwrap();
    assert_eq!(again, image);
}

#[test]
fn a_docker_image_is_a_base_and_becomes_an_oci_image_as_a_whole() {
    let blobs = MemoryBlobs::default();
    let digest = docker_image(&blobs);
    let base = Base::read(&blobs, &digest, &platform("linux/amd64"), &()).unwrap();
    let mut files = files();
    files
        .file("bin/tool", 0o755, b"tool")
        .file("tmp/x", 0o644, b"")
        .file("opt/y", 0o644, b"")
        .file("old/z", 0o644, b"");
    let image = built(&files, &spec(), Some(&base), &blobs).unwrap();
    let manifest: Manifest =
        serde_json::from_slice(&blobs.get(&image.manifest.digest).unwrap()).unwrap();
    assert_eq!(manifest.media_type.as_deref(), Some(media_type::MANIFEST));
    assert!(
        manifest
            .layers
            .iter()
            .all(|layer| layer.media_type == media_type::TAR_GZIP)
    );
    assert_eq!(
        manifest.annotations.unwrap()["org.opencontainers.image.base.digest"],
        digest.to_string()
    );
    let config = config_of(&blobs, &image);
    assert_eq!(
        config["config"],
        json!({
            "Entrypoint": ["/app/run"], "Env": ["PATH=/bin", "A=1", "B=2"], "ExposedPorts": {"8080/tcp": {}},
            "Labels": {"of": "base"}, "User": "nobody",
        }),
        "a new entrypoint drops the arguments of the old one"
    );
    assert!(config.get("docker_version").is_none() && config.get("container").is_none());
    assert_eq!(
        config["history"].as_array().unwrap().len(),
        1 + image.layers.len()
    );
    let names = names_of(&blobs, &image.layers[2..]);
    for expected in [
        "usr/bin/tool",
        "tmp/x",
        "srv/",
        "srv/opt/",
        "srv/opt/y",
        "old/",
        "old/z",
    ] {
        assert!(
            names.iter().any(|name| name == expected),
            "{expected}: {names:?}"
        );
    }
    for there in ["bin/", "usr/", "usr/bin/", "tmp/", "opt/"] {
        assert!(
            !names.iter().any(|name| name == there),
            "{there}: {names:?}"
        );
    }
}

fn names_of(blobs: &MemoryBlobs, layers: &[Descriptor]) -> Vec<String> {
    let mut names = Vec::new();
    for layer in layers {
        let packed = blobs.get(&layer.digest).expect("it works");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed.as_slice()));
        for entry in archive.entries().expect("it works") {
            names.push(
                String::from_utf8(entry.expect("it works").path_bytes().into_owned())
                    .expect("it works"),
            );
        }
    }
    names
}

#[test]
fn files_that_a_link_of_the_base_makes_one_are_told() {
    let blobs = MemoryBlobs::default();
    let base = Base::read(&blobs, &docker_image(&blobs), &platform("linux/amd64"), &()).unwrap();
    let mut files = files();
    files
        .file("bin/tool", 0o755, b"a")
        .file("usr/bin/tool", 0o755, b"b");
    let error = built(&files, &spec(), Some(&base), &blobs).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`/bin/tool` and `/usr/bin/tool` are the same file through a link of the base image"
    );
}

#[test]
fn a_base_that_cannot_be_used_is_named() {
    let blobs = MemoryBlobs::default();
    let digest = docker_image(&blobs);
    let error = |blobs: &MemoryBlobs, digest: &Digest, on: &str| {
        Base::read(blobs, digest, &platform(on), &())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error(&blobs, &digest, "linux/arm64"),
        "the base image has no `linux/arm64`; it has `linux/amd64`"
    );
    let missing = Digest::of(b"missing");
    assert_eq!(
        error(&blobs, &missing, "linux/amd64"),
        format!("cannot read the blob `{missing}` of the base image")
    );
    let foreign = json!({
        "schemaVersion": 2, "config": Descriptor::new(media_type::CONFIG, put(&blobs, br#"{"rootfs":{"diff_ids":["sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]}}"#), 1),
        "layers": [Descriptor::of("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", b"")],
    });
    let foreign = put(&blobs, foreign.to_string().as_bytes());
    assert_eq!(
        error(&blobs, &foreign, "linux/amd64"),
        "the base image has a layer of the kind `application/vnd.docker.image.rootfs.foreign.diff.tar.gzip`, which cannot be built on"
    );
}

#[test]
fn names_of_broken_layers_are_an_error_and_never_a_panic() {
    let good = foreign_layer(&["a/", "a/b", &"n/".repeat(120)]);
    assert!(LayerFiles::read(good.as_slice()).is_ok());
    for at in (0..good.len()).step_by(7) {
        let mut broken = good.clone();
        broken[at] ^= 0x41;
        let _ = LayerFiles::read(broken.as_slice());
        let _ = LayerFiles::read(&good[..at]);
    }
}

#[test]
fn an_image_has_at_most_127_layers() {
    let blobs = MemoryBlobs::default();
    let mut base =
        Base::read(&blobs, &docker_image(&blobs), &platform("linux/amd64"), &()).unwrap();
    let layer = base.layers[0].clone();
    base.layers = vec![layer.clone(); 125];
    let mut files = files();
    for number in 0..50 {
        files.file(&format!("d{number}/f"), 0o644, b"");
    }
    assert_eq!(
        built(&files, &spec(), Some(&base), &blobs)
            .unwrap()
            .layers
            .len(),
        127
    );
    base.layers = vec![layer; 127];
    let error = built(&files, &spec(), Some(&base), &blobs)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "the base image has 127 layers, and an image has at most 127"
    );
}

#[test]
fn every_class_of_input_is_in_the_key() {
    let scan = scanned(&files());
    let key = |spec: &ImageSpec, base: Option<&Digest>, builder: &str| {
        image_key(&scan, spec, base, builder)
    };
    let before = key(&spec(), None, "1");
    assert_eq!(key(&spec(), None, "1"), before);
    assert_ne!(key(&spec(), None, "2"), before, "builder version");
    assert_ne!(key(&spec(), Some(&Digest::of(b"a")), "1"), before, "base");
    assert_ne!(
        key(&spec(), Some(&Digest::of(b"a")), "1"),
        key(&spec(), Some(&Digest::of(b"b")), "1"),
        "base digest"
    );
    let changed = |what: &str, change: fn(&mut ImageSpec)| {
        let mut other = spec();
        change(&mut other);
        assert_ne!(key(&other, None, "1"), before, "{what}");
    };
    changed("env value", |spec| spec.config.env[0].1 = "3".to_owned());
    changed("env name", |spec| spec.config.env[0].0 = "C".to_owned());
    changed("env order", |spec| spec.config.env.reverse());
    changed("argument", |spec| {
        spec.config
            .entrypoint
            .as_mut()
            .unwrap()
            .push("-v".to_owned());
    });
    changed("cmd for entrypoint", |spec| {
        std::mem::swap(&mut spec.config.cmd, &mut spec.config.entrypoint);
    });
    changed("no cmd", |spec| spec.config.cmd = Some(Vec::new()));
    changed("user", |spec| spec.config.user = Some("65532".to_owned()));
    changed("workdir", |spec| spec.config.workdir = Some("/".to_owned()));
    changed("port", |spec| spec.config.ports.push("9090/tcp".to_owned()));
    changed("label", |spec| {
        drop(spec.config.labels.insert("a".to_owned(), "b".to_owned()));
    });
    changed("platform", |spec| {
        spec.platform.architecture = "arm64".to_owned();
    });
    changed("compression", |spec| {
        spec.layers.compression = Compression::Zstd;
    });
    changed("level", |spec| {
        spec.layers.compression = Compression::Gzip { level: 1 }
    });
    changed("time", |spec| spec.layers.modified = 1);
    changed("buckets", |spec| spec.buckets = 4);
}

#[test]
fn what_is_said_about_an_image_is_no_part_of_it() {
    let blobs = MemoryBlobs::default();
    let amd = built(&files(), &spec(), None, &blobs).unwrap();
    let mut arm = spec();
    arm.platform = platform("linux/arm64/v8");
    let arm = built(&files(), &arm, None, &blobs).unwrap();
    assert_eq!(
        amd.layers, arm.layers,
        "layers are shared between platforms"
    );
    let index = build_index(&[arm.manifest.clone(), amd.manifest.clone()], &blobs).unwrap();
    assert_eq!(
        build_index(&[amd.manifest, arm.manifest], &blobs).unwrap(),
        index
    );
    let entries = scanned(&files()).entries;
    let subject = SbomSubject {
        name: "registry.example/shop/web",
        image: &index.digest,
        base: None,
        created: 0,
        tool: "portolan-0.1.0",
    };
    let bill = sbom(&subject, &entries, &files()).unwrap();
    let parsed: Value = serde_json::from_slice(&bill).unwrap();
    assert_eq!(parsed["files"][1]["fileName"], "/app/run");
    let sha1_of_run = "df6ad19037c97987c4ff9792810c0e145356717c";
    assert_eq!(
        parsed["files"][1]["checksums"][0]["checksumValue"],
        sha1_of_run
    );
    let origin = provenance(&ProvenanceSubject {
        name: subject.name,
        image: &index.digest,
        key: &Digest::of(b"key"),
        base: None,
        git: Some(("https://git.example/shop", "0123456789")),
        builder: ("https://portolan.dev/builder", "0.1.0"),
    });
    for (kind, document) in [(SPDX, &bill), (IN_TOTO, &origin)] {
        let referrer = write_referrer(&index, kind, document, &blobs).unwrap();
        let manifest: Manifest =
            serde_json::from_slice(&blobs.get(&referrer.digest).unwrap()).unwrap();
        assert_eq!(manifest.subject.unwrap().digest, index.digest);
        assert_eq!(manifest.artifact_type.as_deref(), Some(kind));
    }
}
