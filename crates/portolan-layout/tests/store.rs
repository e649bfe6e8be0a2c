//! The store: names, records, many users at once, collections.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;
use portolan_image::{
    BuildError, BuildIo, Compression, ConfigSpec, CopySpec, Descriptor, ImageSpec, LayerOptions,
    Memo, Scan, ScanOptions, Source as _, build_image, referrers_tag, scan, write_referrer,
    write_referrers,
};
use portolan_layout::{ActionResult, Directory, Run, Store};

struct Place {
    _directory: tempfile::TempDir,
    root: Utf8PathBuf,
}

fn place() -> Place {
    let directory = tempfile::tempdir().expect("it works");
    let root = Utf8PathBuf::from_path_buf(directory.path().to_owned()).expect("it works");
    std::fs::create_dir(root.join("context")).expect("it works");
    Place {
        _directory: directory,
        root,
    }
}

impl Place {
    fn context(&self) -> Utf8PathBuf {
        self.root.join("context")
    }

    fn store(&self) -> Store {
        Store::open(&self.root.join("store")).expect("it works")
    }

    fn write(&self, path: &str, content: &[u8]) {
        let path = self.context().join(path);
        std::fs::create_dir_all(path.parent().expect("it works")).expect("it works");
        std::fs::write(path, content).expect("it works");
    }
}

fn scanned(context: &Utf8Path, memo: &Memo, now: i64) -> Scan {
    let copy = CopySpec {
        to: "/".to_owned(),
        ..CopySpec::default()
    };
    let options = ScanOptions {
        ignore: &[],
        never: &[],
        memo,
        now,
        threads: 2,
    };
    scan(
        &Directory::open(context).expect("it works"),
        &[copy],
        &options,
    )
    .expect("it works")
}

fn built(run: &Run<'_>, context: &Utf8Path) -> (Descriptor, usize) {
    let source = Directory::open(context).expect("it works");
    let spec = ImageSpec {
        config: ConfigSpec::default(),
        platform: "linux/amd64".parse().expect("it works"),
        layers: LayerOptions {
            compression: Compression::Zstd,
            modified: 0,
        },
        buckets: 4,
    };
    let io = BuildIo {
        source: &source,
        memo: &Memo::default(),
        cache: run,
        blocks: &(),
        sink: run,
        threads: 2,
    };
    let scan = scanned(context, &Memo::default(), 0);
    let image = build_image(&scan.entries, &spec, None, &io).expect("it works");
    (image.manifest, image.written)
}

fn ago(seconds: u64) -> SystemTime {
    SystemTime::now() - Duration::from_secs(seconds)
}

fn later() -> SystemTime {
    SystemTime::now() + Duration::from_mins(1)
}

#[test]
fn only_what_changed_is_written_again() {
    let place = place();
    for directory in 0..20 {
        place.write(
            &format!("d{directory}/f"),
            format!("{directory}").as_bytes(),
        );
    }
    let store = place.store();
    let run = store.begin().unwrap();
    let (first, written) = built(&run, &place.context());
    assert_eq!(written, 4);
    assert_eq!(built(&run, &place.context()), (first.clone(), 0));
    place.write("d3/f", b"changed");
    let (second, written) = built(&run, &place.context());
    assert_eq!(written, 1);
    assert_ne!(first.digest, second.digest);
}

#[test]
fn a_name_and_a_record_lead_to_an_image() {
    let place = place();
    place.write("a", b"a");
    let store = place.store();
    let key = Digest::of(b"key");
    {
        let run = store.begin().unwrap();
        let (image, _) = built(&run, &place.context());
        run.tag("web", &image).unwrap();
        let result = ActionResult {
            image,
            inputs: vec!["a".to_owned()],
        };
        assert_eq!(run.cached(&key).unwrap(), None);
        run.record(&key, &result).unwrap();
        assert_eq!(run.cached(&key).unwrap(), Some(result));
        assert!(run.tag("../x", &store.refs().unwrap()["web"]).is_err());
    }
    assert_eq!(Store::open(store.root()).unwrap().refs().unwrap().len(), 1);
    assert!(
        std::fs::read_dir(store.root().join("portolan/holds"))
            .unwrap()
            .next()
            .is_none()
    );
    // A blob that is gone makes the record worthless.
    let layers = store.refs().unwrap()["web"].digest;
    std::fs::remove_file(store.blob_path(&layers)).unwrap();
    assert_eq!(store.begin().unwrap().cached(&key).unwrap(), None);
}

#[test]
fn a_directory_with_other_things_in_it_is_not_made_a_store() {
    let place = place();
    place.write("x", b"");
    let error = Store::open(&place.context()).unwrap_err().to_string();
    assert!(
        error.ends_with("is neither empty nor an image layout"),
        "{error}"
    );
}

#[test]
fn a_collection_leaves_what_is_named_recorded_or_held() {
    let place = place();
    place.write("a", b"a");
    let store = place.store();
    let key = Digest::of(b"key");
    let run = store.begin().unwrap();
    let (image, _) = built(&run, &place.context());
    run.record(
        &key,
        &ActionResult {
            image: image.clone(),
            inputs: Vec::new(),
        },
    )
    .unwrap();
    // The live run holds it, though its record is old enough.
    assert_eq!(store.collect(later()).unwrap().blobs, 0);
    run.record(
        &key,
        &ActionResult {
            image: image.clone(),
            inputs: Vec::new(),
        },
    )
    .unwrap();
    drop(run);
    // The record keeps it.
    assert_eq!(store.collect(ago(3600)).unwrap().blobs, 0);
    let run = store.begin().unwrap();
    assert!(run.cached(&key).unwrap().is_some());
    run.tag("web", &image).unwrap();
    let note = write_referrer(&image, "text/plain", b"good", &run).unwrap();
    let notes = write_referrers(vec![note], &run).unwrap();
    run.tag(&referrers_tag(&image.digest), &notes).unwrap();
    drop(run);
    // The name keeps it and what refers to it.
    assert_eq!(store.collect(later()).unwrap().blobs, 0);
    assert!(store.remove_ref("web").unwrap());
    let collected = store.collect(later()).unwrap();
    assert!(collected.blobs >= 7 && collected.bytes > 0, "{collected:?}");
    assert!(store.refs().unwrap().is_empty());
    assert!(
        std::fs::read_dir(store.root().join("blobs/sha256"))
            .unwrap()
            .next()
            .is_none()
    );
}

#[test]
fn what_a_killed_run_left_is_collected() {
    let place = place();
    let store = place.store();
    let staging = store.root().join("portolan/staging/dead");
    std::fs::create_dir_all(&staging).unwrap();
    std::fs::write(staging.join(".half.portolan"), b"half").unwrap();
    std::fs::write(store.root().join("portolan/holds/dead"), b"").unwrap();
    store.collect(ago(0)).unwrap();
    assert!(!staging.exists() && !store.root().join("portolan/holds/dead").exists());
}

/// Four builds and a collection at once, 100 times: nobody finds a blob missing that it relies upon.
#[test]
fn builds_and_collections_at_once_do_not_disturb_each_other() {
    let place = place();
    let contexts: Vec<Utf8PathBuf> = (0..4)
        .map(|number| place.root.join(format!("c{number}")))
        .collect();
    for (number, context) in contexts.iter().enumerate() {
        std::fs::create_dir(context).unwrap();
        std::fs::write(context.join("shared"), b"shared").unwrap();
        std::fs::write(context.join("own"), format!("{number}")).unwrap();
    }
    let root = place.root.join("store");
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let builders: Vec<_> = contexts
            .iter()
            .enumerate()
            .map(|(number, context)| {
                let root = &root;
                scope.spawn(move || {
                    for round in 0..25 {
                        let store = Store::open(root).unwrap();
                        let run = store.begin().unwrap();
                        std::fs::write(context.join("round"), format!("{}", round % 3)).unwrap();
                        let (image, _) = built(&run, context);
                        run.tag(&format!("web{number}"), &image).unwrap();
                        check_whole(&store, &image);
                    }
                })
            })
            .collect();
        let collector = scope.spawn(|| {
            let store = Store::open(&root).unwrap();
            let mut collections = 0;
            while !is_done.load(Ordering::Relaxed) {
                store.collect(later()).unwrap();
                collections += 1;
            }
            collections
        });
        for builder in builders {
            builder.join().unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(collector.join().unwrap() > 0);
    });
    let store = Store::open(&root).unwrap();
    store.collect(later()).unwrap();
    let refs = store.refs().unwrap();
    assert_eq!(refs.len(), 4);
    for image in refs.values() {
        check_whole(&store, image);
    }
}

/// Every blob of an image is there and is what its digest says.
fn check_whole(store: &Store, image: &Descriptor) {
    let read = |digest: &Digest| {
        std::fs::read(store.blob_path(digest)).expect("a blob that is relied upon")
    };
    let manifest = read(&image.digest);
    let manifest: portolan_image::Manifest = serde_json::from_slice(&manifest).expect("it works");
    for descriptor in manifest.layers.iter().chain([&manifest.config]) {
        assert_eq!(Digest::of(&read(&descriptor.digest)), descriptor.digest);
    }
}

#[test]
fn the_digest_is_the_same_in_another_directory_umask_and_day() {
    let place = place();
    let fill = |context: &Utf8Path, names: &[&str], mode: u32| {
        for name in names {
            let path = context.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, name.as_bytes()).unwrap();
            let bits = if *name == "b/run" {
                mode
            } else {
                mode & !0o111
            };
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(bits)).unwrap();
        }
        symlink("run", context.join("b/link")).unwrap();
    };
    let other = place.root.join("elsewhere/deep");
    fill(&place.context(), &["a", "b/run", "c/d/e"], 0o755);
    fill(&other, &["c/d/e", "b/run", "a"], 0o700);
    let old = std::fs::File::options()
        .append(true)
        .open(other.join("a"))
        .unwrap();
    old.set_modified(ago(86_400 * 400)).unwrap();
    let digest = |context: &Utf8Path| scanned(context, &Memo::default(), 0).digest();
    let expected = digest(&place.context());
    assert_eq!(digest(&other), expected);
    // A touched file is the same file.
    old.set_modified(SystemTime::now()).unwrap();
    assert_eq!(digest(&other), expected);
    symlink("a", other.join("new")).unwrap();
    assert_ne!(digest(&other), expected);
}

#[test]
fn a_known_file_is_not_read_again_until_it_changes() {
    let place = place();
    place.write("a", b"aaaa");
    let now = i64::try_from(
        later()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_nanos(),
    )
    .unwrap();
    let first = scanned(&place.context(), &Memo::default(), now);
    assert_eq!(first.memo.len(), 1);
    let second = scanned(&place.context(), &first.memo, now);
    assert_eq!(second.digest(), first.digest());
    place.write("a", b"bbbb");
    let third = scanned(&place.context(), &second.memo, now);
    assert_ne!(third.digest(), first.digest());
}

#[test]
fn what_is_no_file_is_refused_and_links_are_not_followed() {
    let place = place();
    let context = place.context();
    place.write("inside/x", b"x");
    std::fs::write(place.root.join("secret"), b"secret").unwrap();
    symlink("../secret", context.join("out")).unwrap();
    symlink("inside", context.join("round")).unwrap();
    let source = Directory::open(&context).unwrap();
    assert!(source.open("out").is_err());
    assert!(source.open("round/x").is_err());
    assert!(source.open("../secret").is_err());
    assert!(source.open("inside").is_err());
    let found = scanned(&context, &Memo::default(), 0);
    let links = found
        .entries
        .iter()
        .filter(|entry| matches!(entry.node, portolan_image::Node::Link(_)));
    assert_eq!(links.count(), 2);
    let _socket = std::os::unix::net::UnixListener::bind(context.join("socket")).unwrap();
    let copy = CopySpec {
        to: "/".to_owned(),
        ..CopySpec::default()
    };
    let memo = Memo::default();
    let options = ScanOptions {
        ignore: &[],
        never: &[],
        memo: &memo,
        now: 0,
        threads: 1,
    };
    let error = scan(&source, &[copy], &options).unwrap_err().to_string();
    assert_eq!(error, "`socket` is a socket");
}

/// The same files, 100 times: in another directory, written in another order, with other times and permissions.
#[test]
fn the_same_files_give_the_same_image_100_times_of_100() {
    let place = place();
    let store = place.store();
    let run = store.begin().unwrap();
    let mut digests = std::collections::BTreeSet::new();
    for round in 0_usize..100 {
        let context = place
            .root
            .join(format!("{}/{round}", "x/".repeat(round % 5)));
        for number in 0..12 {
            let number = (number * 5 + round) % 12;
            let path = context.join(format!("d{}/f{number}", number % 4));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, format!("content {number}")).unwrap();
            let execute = if number == 3 { 0o100 } else { 0 };
            let mode = [0o600, 0o644, 0o664, 0o640][round % 4] | execute;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let file = std::fs::File::open(&path).unwrap();
            file.set_modified(ago(86_400 * round as u64)).unwrap();
        }
        digests.insert(built(&run, &context).0.digest.to_string());
    }
    assert_eq!(digests.len(), 1, "{digests:?}");
}

/// The layers of a directory of some megabytes in one bucket, with what is known of its files and blocks.
fn built_with(
    run: &Run<'_>,
    context: &Utf8Path,
    scan: &Scan,
    name: &str,
) -> Result<Digest, BuildError> {
    let source = Directory::open(context).expect("it works");
    let spec = ImageSpec {
        config: ConfigSpec::default(),
        platform: "linux/amd64".parse().expect("it works"),
        layers: LayerOptions {
            compression: Compression::default(),
            modified: 0,
        },
        buckets: 1,
    };
    let blocks = run.blocks(name);
    let io = BuildIo {
        source: &source,
        memo: &scan.memo,
        cache: &(),
        blocks: &blocks,
        sink: run,
        threads: 2,
    };
    let image = build_image(&scan.entries, &spec, None, &io)?;
    blocks.keep(image.layers.iter().map(|layer| &layer.digest));
    Ok(image.layers[0].digest)
}

#[test]
fn a_file_that_changes_between_the_key_and_the_layers_fails_the_image() {
    let place = place();
    place.write("a", b"aaaa");
    let store = place.store();
    let run = store.begin().unwrap();
    let found = scanned(&place.context(), &Memo::default(), i64::MAX);
    assert_eq!(found.memo.len(), 1, "its state is trusted");
    built_with(&run, &place.context(), &found, "web").unwrap();
    place.write("a", b"bbbb");
    let error = built_with(&run, &place.context(), &found, "web").unwrap_err();
    assert_eq!(error.to_string(), "`a` changed while the image was built");
}

/// Blocks of the last layer are copied; a damaged or missing blob costs time and nothing else.
#[test]
fn blocks_of_the_last_layer_are_used_again_and_damaged_ones_are_not() {
    let place = place();
    for file in 0..50_u8 {
        let content: Vec<u8> = (0..100_000_u32)
            .flat_map(|at| (at.wrapping_mul(at) ^ u32::from(file)).to_le_bytes())
            .take(100_000)
            .collect();
        place.write(&format!("f{file:02}"), &content);
    }
    let store = place.store();
    let run = store.begin().unwrap();
    let build = |name: &str| {
        let found = scanned(&place.context(), &Memo::default(), 0);
        built_with(&run, &place.context(), &found, name).unwrap()
    };
    let first = build("web");
    place.write("f25", &vec![1; 100_000]);
    let alone = build("another name, whose blocks are not known");
    let list = place
        .root
        .join("store/portolan/blocks")
        .join(Digest::of(b"web").hex());
    let of_first = std::fs::read(&list).unwrap();
    let lose = |digest: &Digest| std::fs::remove_file(store.blob_path(digest)).unwrap();
    lose(&alone);
    assert_eq!(build("web"), alone);

    let path = store.blob_path(&first);
    let mut damaged = std::fs::read(&path).unwrap();
    for byte in damaged.iter_mut().step_by(1000) {
        *byte ^= 1;
    }
    for blob in [Some(damaged), Some(Vec::new()), None] {
        match blob {
            Some(content) => std::fs::write(&path, content).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        std::fs::write(&list, &of_first).unwrap();
        lose(&alone);
        assert_eq!(build("web"), alone);
        check_whole_blob(&store, &alone);
    }
}

fn check_whole_blob(store: &Store, digest: &Digest) {
    let content = std::fs::read(store.blob_path(digest)).expect("it works");
    assert_eq!(Digest::of(&content), *digest);
}

#[test]
fn what_a_scan_remembers_is_there_for_the_next_run() {
    let place = place();
    place.write("a", b"a");
    let store = place.store();
    let now = i64::MAX;
    let found = scanned(&place.context(), &Memo::default(), now);
    store.begin().unwrap().keep_memo("any/../name", &found.memo);
    let again = store.begin().unwrap().memo("any/../name");
    assert_eq!(again.to_bytes(), found.memo.to_bytes());
    assert!(store.begin().unwrap().memo("other").is_empty());
}
