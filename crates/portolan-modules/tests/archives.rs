//! The edges of the modules `archive` and `download`.

mod bed;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use bed::{Bed, diffs, faults, shown};
use portolan_digest::Digest;
use portolan_testbed::{HttpServer, Reply};
use serde_json::json;
use tar::{Builder, EntryType, Header};

/// A tar archive of entries: a kind, a path, a mode, and a content or target.
fn tarball(entries: &[(EntryType, &str, u32, &str)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, path, mode, text) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(*mode);
        // Names are written as they are: the library would refuse the hostile ones.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        let content = if *kind == EntryType::Regular {
            text.as_bytes()
        } else {
            &[]
        };
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.as_old_mut().linkname[..text.len()].copy_from_slice(text.as_bytes());
        }
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content).expect("an entry");
    }
    builder.into_inner().expect("an archive")
}

const FILE: EntryType = EntryType::Regular;

fn sample(text: &str) -> Vec<u8> {
    tarball(&[
        (EntryType::Directory, "app-1/", 0o755, ""),
        (FILE, "app-1/bin/run", 0o755, text),
        (FILE, "app-1/conf", 0o640, "c"),
        (EntryType::Symlink, "app-1/bin/link", 0o777, "../conf"),
        (EntryType::Link, "app-1/hard", 0o644, "app-1/conf"),
    ])
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("a compressed archive");
    encoder.finish().expect("a compressed archive")
}

#[test]
fn an_archive_is_unpacked_beside_and_put_in_place_and_replaced_as_a_whole() {
    let zstd = zstd::encode_all(sample("two").as_slice(), 1).unwrap();
    let bed = Bed::with_files(&[
        ("one.tar.gz", &gzip(&sample("one"))),
        ("two.tar.zst", &zstd),
        ("plain.tar", &sample("3")),
    ]);
    let with = |source: &str| json!({"source": source, "into": "/opt", "strip": 1});
    bed.converge("archive", &with("one.tar.gz")).unwrap();
    assert_eq!(
        (bed.read("/opt/bin/run"), bed.mode("/opt/bin/run")),
        ("one".to_owned(), 0o755)
    );
    assert_eq!(
        (bed.read("/opt/bin/link"), bed.mode("/opt/hard")),
        ("c".to_owned(), 0o640)
    );
    bed.write("/opt/by-hand", "goes with the old directory");
    let (plan, applied) = bed.converge("archive", &with("two.tar.zst")).unwrap();
    assert!(diffs(&plan).contains(" → "), "{}", diffs(&plan));
    assert_eq!(applied.result["entries"], 4);
    assert_eq!(bed.read("/opt/bin/run"), "two");
    assert!(!bed.path("/opt/by-hand").exists());
    bed.converge("archive", &with("plain.tar")).unwrap();
    let names: Vec<_> = fs::read_dir(bed.path("/")).unwrap().collect();
    assert_eq!(names.len(), 2, "nothing is left beside it");
}

#[test]
fn what_could_do_harm_is_refused_and_leaves_nothing() {
    for (kind, path, mode, text, expected) in [
        (FILE, "/etc/x", 0o644, "", "an absolute path"),
        (FILE, "a/../../x", 0o644, "", "a path that leads upwards"),
        (
            EntryType::Symlink,
            "a",
            0o777,
            "../x",
            "leads out of the archive",
        ),
        (
            EntryType::Symlink,
            "a",
            0o777,
            "/etc",
            "leads out of the archive",
        ),
        (
            EntryType::Symlink,
            "d/a",
            0o777,
            "b/../../..",
            "leads out of the archive",
        ),
        (
            EntryType::Link,
            "a",
            0o644,
            "../x",
            "a path that leads upwards",
        ),
        (EntryType::Char, "a", 0o644, "", "it is a device"),
        (EntryType::Fifo, "a", 0o644, "", "it is a device"),
        (FILE, "a", 0o4755, "", "setuid"),
        (FILE, ".portolan-archive", 0o644, "", "the name is taken"),
    ] {
        let bed = Bed::with_files(&[(
            "a.tar",
            &tarball(&[(FILE, "good", 0o644, ""), (kind, path, mode, text)]),
        )]);
        let error = bed
            .converge("archive", &json!({"source": "a.tar", "into": "/opt"}))
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{path}: {error}");
        assert_eq!(fs::read_dir(bed.path("/")).unwrap().count(), 1, "{path}");
        bed.assert_outside_untouched();
    }
    // A file below a link of the same archive.
    let through = tarball(&[
        (EntryType::Directory, "d", 0o755, ""),
        (EntryType::Symlink, "l", 0o777, "d"),
        (FILE, "l/x", 0o644, ""),
    ]);
    let bed = Bed::with_files(&[("a.tar", &through)]);
    let parameters = json!({"source": "a.tar", "into": "/opt"});
    let plan = bed.plan("archive", &parameters).unwrap();
    let error = bed::action("archive", &parameters)
        .apply(&bed.host, &plan)
        .unwrap_err();
    assert!(error.to_string().contains("`l` cannot be made"), "{error}");
    assert_eq!(fs::read_dir(bed.path("/")).unwrap().count(), 1);
}

#[test]
fn a_directory_of_others_is_not_replaced() {
    let bed = Bed::with_files(&[("a.tar", &sample("x"))]);
    let error = bed
        .plan("archive", &json!({"source": "a.tar", "into": "/etc"}))
        .unwrap_err();
    assert!(
        shown(&error).contains("files that this module did not put there"),
        "{}",
        shown(&error)
    );
    assert!(faults("archive", &json!({"source": "a", "into": "/"})).contains("root directory"));
    assert!(
        faults("archive", &json!({"url": "http://x/y", "into": "/o"}))
            .contains("known by its digest")
    );
    assert!(faults("archive", &json!({"into": "/o"})).contains("needs one of `source`, `url`"));
    let wrong = json!({"source": "a.tar", "into": "/o", "sha256": "0".repeat(64)});
    assert!(
        bed.plan("archive", &wrong)
            .unwrap_err()
            .to_string()
            .contains("not 000")
    );
}

#[test]
fn what_is_not_a_tar_archive_is_told() {
    let bed = Bed::with_files(&[(
        "a.tar",
        b"PK\x03\x04 this is something else, and it is long enough".as_slice(),
    )]);
    let error = bed
        .plan("archive", &json!({"source": "a.tar", "into": "/o"}))
        .unwrap_err();
    assert!(
        error.to_string().contains("not a whole tar archive"),
        "{error}"
    );
}

#[test]
fn a_download_is_known_by_its_digest() {
    let server = HttpServer::start(|_| Reply::ok("content"));
    let bed = Bed::new();
    let digest = Digest::of(b"content").hex();
    let parameters = json!({"url": format!("{}/x?token=1", server.url()), "sha256": digest, "path": "/etc/x", "mode": "0600"});
    let (plan, _) = bed.converge("download", &parameters).unwrap();
    assert!(
        diffs(&plan).starts_with(&format!("sha256: {digest}\nfrom: http://127.0.0.1")),
        "{}",
        diffs(&plan)
    );
    assert_eq!(
        (bed.read("/etc/x"), bed.mode("/etc/x")),
        ("content".to_owned(), 0o600)
    );
    assert_eq!(
        server.requests().len(),
        1,
        "what is there is not fetched again"
    );
    // Another content is refused, and what was there stays.
    let wrong = json!({"url": server.url(), "sha256": "0".repeat(64), "path": "/etc/x"});
    let plan = bed.plan("download", &wrong).unwrap();
    let error = bed::action("download", &wrong)
        .apply(&bed.host, &plan)
        .unwrap_err();
    assert!(
        error.to_string().contains("has the sha256 digest"),
        "{error}"
    );
    assert_eq!(bed.read("/etc/x"), "content");
    assert_eq!(fs::read_dir(bed.path("/etc")).unwrap().count(), 3);
    assert!(
        faults(
            "download",
            &json!({"url": "ftp://x", "sha256": "1", "path": "/x"})
        )
        .contains("64 hexadecimal")
    );
}

#[test]
fn an_archive_is_fetched_and_unpacked() {
    let archive = gzip(&sample("fetched"));
    let digest = Digest::of(&archive).hex();
    let server = HttpServer::start(move |_| Reply::ok(archive.clone()));
    let bed = Bed::new();
    let parameters = json!({"url": server.url(), "sha256": digest, "into": "/opt", "strip": 1});
    bed.converge("archive", &parameters).unwrap();
    assert_eq!(bed.read("/opt/bin/run"), "fetched");
    let mode = fs::metadata(bed.path("/opt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert_eq!(
        fs::read_dir(bed.path("/")).unwrap().count(),
        2,
        "the download is gone"
    );
}
