//! Files land below their directory, whole, whatever stands in the way.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and says why"
)]

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_files::{OutputDir, WriteError, write_file};

struct Place {
    _held: tempfile::TempDir,
    root: Utf8PathBuf,
    out: OutputDir,
}

/// A directory `out` to write to, and beside it a directory `beside` that must stay empty.
fn place() -> Place {
    let held = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::try_from(held.path().canonicalize().unwrap()).unwrap();
    fs::create_dir(root.join("beside")).unwrap();
    let out = OutputDir::create(&root.join("out")).unwrap();
    Place {
        _held: held,
        root,
        out,
    }
}

impl Place {
    fn refuses(&self, path: &str) -> WriteError {
        let error = self.out.write(path.into(), b"x").unwrap_err();
        let beside = fs::read_dir(self.root.join("beside")).unwrap().count();
        assert_eq!(beside, 0, "{path}");
        error
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.join("out")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn a_file_is_written_and_replaced_with_its_permissions() {
    let place = place();
    let path = place.out.write("a/b/c.yaml".into(), b"1").unwrap();
    assert_eq!(path, place.root.join("out/a/b/c.yaml"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    place.out.write("a/b/c.yaml".into(), b"2").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"2");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(place.names(), ["a"]);
}

#[test]
fn no_name_leads_out() {
    let place = place();
    for path in [
        "../beside/x",
        "..",
        ".",
        "",
        "a/../../beside/x",
        "a//x",
        "./x",
        "/beside/x",
        "a/",
        "a/..",
        "a\0b",
    ] {
        let error = place.refuses(path);
        assert!(
            matches!(error, WriteError::BadName { .. }),
            "{path}: {error}"
        );
    }
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn links_below_the_root_are_refused_by_name() {
    let place = place();
    let root = &place.root;
    symlink(root.join("beside"), root.join("out/dir")).unwrap();
    symlink(root.join("beside/x"), root.join("out/file")).unwrap();
    fs::create_dir(root.join("out/in")).unwrap();
    symlink("../../beside", root.join("out/in/deep")).unwrap();
    for (path, link) in [
        ("dir/x", "out/dir"),
        ("file", "out/file"),
        ("in/deep/more/x", "out/in/deep"),
    ] {
        let error = place.refuses(path);
        let WriteError::Link { link: found, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(*found, root.join(link));
    }
}

#[test]
fn a_root_that_becomes_a_link_does_not_move_what_was_opened() {
    let place = place();
    fs::rename(place.root.join("out"), place.root.join("moved")).unwrap();
    symlink(place.root.join("beside"), place.root.join("out")).unwrap();
    place.out.write("x".into(), b"1").unwrap();
    assert_eq!(fs::read(place.root.join("moved/x")).unwrap(), b"1");
    assert_eq!(fs::read_dir(place.root.join("beside")).unwrap().count(), 0);
}

#[test]
fn a_directory_or_a_pipe_in_the_way_is_told() {
    let place = place();
    fs::create_dir(place.root.join("out/a")).unwrap();
    let error = place.refuses("a");
    assert!(
        matches!(&error, WriteError::Io { source, .. } if source.kind() == io::ErrorKind::IsADirectory)
    );
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.root.join("out/pipe").as_std_path(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o666),
        0,
    )
    .unwrap();
    assert!(matches!(place.refuses("pipe"), WriteError::Special { .. }));
    assert!(
        matches!(&place.refuses("pipe/x"), WriteError::Io { source, .. } if source.kind() == io::ErrorKind::NotADirectory)
    );
}

#[test]
fn a_write_that_fails_leaves_the_old_file_and_no_other() {
    let place = place();
    place.out.write("a".into(), b"old").unwrap();
    let failed = place.out.write_with("a".into(), |file| {
        io::Write::write_all(file, b"half")?;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    });
    let error = failed.unwrap_err();
    assert_eq!(
        error.advice(),
        Some("free some space, or write to another place")
    );
    assert_eq!(fs::read(place.root.join("out/a")).unwrap(), b"old");
    assert_eq!(place.names(), ["a"]);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let place = place();
    fs::write(place.root.join("file"), "x").unwrap();
    let path = place.root.join("file/out");
    let error = OutputDir::create(&path).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot write `{path}`"));
}

#[test]
fn a_path_of_the_user_may_be_a_link_or_a_device() {
    let place = place();
    let root = &place.root;
    fs::write(root.join("real"), "old").unwrap();
    symlink("real", root.join("link")).unwrap();
    write_file(&root.join("link"), b"new").unwrap();
    assert_eq!(fs::read(root.join("real")).unwrap(), b"new");
    assert!(
        fs::symlink_metadata(root.join("link"))
            .unwrap()
            .is_symlink()
    );
    write_file(Utf8Path::new("/dev/null"), b"x").unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    write_file(&root.join("new/dir/file"), b"1").unwrap();
    assert_eq!(fs::read(root.join("new/dir/file")).unwrap(), b"1");
    assert!(write_file(root, b"x").is_err());
    let full = write_file(Utf8Path::new("/dev/full"), b"x").unwrap_err();
    assert_eq!(
        full.advice(),
        Some("free some space, or write to another place")
    );
}
