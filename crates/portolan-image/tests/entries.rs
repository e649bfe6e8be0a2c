//! Entries of a context: what is in, what is out, what is refused, and what changes the digest.

use portolan_image::{
    CopySpec, Keep, Memo, Memory, Node, Notice, Owner, Scan, ScanError, ScanOptions,
    ignore_patterns, scan,
};

fn whole() -> CopySpec {
    CopySpec {
        to: "/".to_owned(),
        ..CopySpec::default()
    }
}

fn options<'a>(memo: &'a Memo, ignore: &'a [String]) -> ScanOptions<'a> {
    ScanOptions {
        ignore,
        never: &[],
        memo,
        now: 0,
        threads: 2,
    }
}

fn scanned(source: &Memory, copies: &[CopySpec]) -> Result<Scan, ScanError> {
    let ignore = ignore_patterns(source, None)?;
    scan(source, copies, &options(&Memo::default(), &ignore))
}

fn entries(source: &Memory, copies: &[CopySpec]) -> Vec<String> {
    let scan = scanned(source, copies).expect("a good context");
    let entries = scan.entries.iter().map(|entry| {
        let kind = match &entry.node {
            Node::Directory => "/".to_owned(),
            Node::File { size, .. } => format!(" {size}"),
            Node::Link(target) => format!(" -> {target}"),
        };
        format!("{}{kind} {:o}", entry.path, entry.mode)
    });
    entries.collect()
}

fn context() -> Memory {
    let mut files = Memory::default();
    files
        .file("bin/run", 0o755, b"run")
        .file("etc/a", 0o600, b"a")
        .file("etc/b", 0o664, b"bb")
        .link("etc/c", "a")
        .directory("var/empty", 0o700);
    files
}

#[test]
fn modes_are_folded_and_links_and_empty_directories_are_kept() {
    let found = entries(&context(), &[whole()]);
    let expected = [
        "bin/ 755",
        "bin/run 3 755",
        "etc/ 755",
        "etc/a 1 644",
        "etc/b 2 644",
        "etc/c -> a 777",
        "var/ 755",
        "var/empty/ 755",
    ];
    assert_eq!(found, expected);
}

#[test]
fn copies_move_files_and_the_last_one_wins() {
    let copies = [
        CopySpec {
            from: "etc".to_owned(),
            to: "/app/conf".to_owned(),
            ..CopySpec::default()
        },
        CopySpec {
            from: "bin/run".to_owned(),
            to: "/app/conf/a".to_owned(),
            mode: Some(0o4711),
            ..CopySpec::default()
        },
        CopySpec {
            from: "bin/run".to_owned(),
            to: "/usr/bin/".to_owned(),
            ..CopySpec::default()
        },
    ];
    let expected = [
        "app/ 755",
        "app/conf/ 755",
        "app/conf/a 3 4711",
        "app/conf/b 2 644",
        "app/conf/c -> a 777",
        "usr/ 755",
        "usr/bin/ 755",
        "usr/bin/run 3 755",
    ];
    assert_eq!(entries(&context(), &copies), expected);
}

#[test]
fn what_a_copy_names_must_be_there_and_inside() {
    let check = |from: &str, to: &str, expected: &str| {
        let copy = CopySpec {
            from: from.to_owned(),
            to: to.to_owned(),
            ..CopySpec::default()
        };
        let error = scanned(&context(), &[copy]).unwrap_err().to_string();
        assert_eq!(error, format!("cannot copy `{from}` to `{to}`: {expected}"));
    };
    check("../x", "/", "the path leads out of the context");
    check("nothing", "/", "it does not exist");
    check(
        "bin",
        "relative",
        "the place in the image must begin with `/`",
    );
    check(
        "etc/c/x",
        "/",
        "`etc/c` is a symbolic link, and links are not followed",
    );
    check("bin/run", "/.", "a file needs a name in the image");
}

#[test]
fn the_ignore_file_counts_and_that_of_a_file_wins() {
    let mut files = context();
    files.file(".dockerignore", 0o644, b"etc\n!etc/b\n.dockerignore");
    files.file("x.dockerignore", 0o644, b"*\n!bin");
    let expected = [
        "bin/ 755",
        "bin/run 3 755",
        "etc/ 755",
        "etc/b 2 644",
        "var/ 755",
        "var/empty/ 755",
        "x.dockerignore 6 644",
    ];
    assert_eq!(entries(&files, &[whole()]), expected);
    assert_eq!(ignore_patterns(&files, Some("x")).unwrap(), ["*", "!bin"]);
    assert_eq!(
        ignore_patterns(&files, Some("y")).unwrap(),
        ["etc", "!etc/b", ".dockerignore"]
    );
    let left_out = CopySpec {
        from: "etc/a".to_owned(),
        ..whole()
    };
    let error = scanned(&files, &[left_out]).unwrap_err().to_string();
    assert!(error.ends_with("the ignore file leaves it out"), "{error}");
}

#[test]
fn git_and_the_store_are_never_copied() {
    let mut files = context();
    files
        .file(".git/config", 0o644, b"")
        .file("sub/.git", 0o644, b"")
        .file("cache/store/index.json", 0o644, b"");
    let memo = Memo::default();
    let options = ScanOptions {
        never: &["cache/store".to_owned()],
        ..options(&memo, &[])
    };
    let scan = scan(&files, &[whole()], &options).unwrap();
    let paths: Vec<&str> = scan
        .entries
        .iter()
        .map(|entry| entry.path.as_str())
        .collect();
    assert!(
        !paths
            .iter()
            .any(|path| path.contains("git") || path.contains("store")),
        "{paths:?}"
    );
    assert!(paths.contains(&"cache") && paths.contains(&"sub"));
}

#[test]
fn what_no_image_can_hold_is_named_all_of_it() {
    let mut files = context();
    files
        .special("dev/null", "device")
        .special("dev/pipe", "FIFO")
        .special("run/socket", "socket")
        .file("etc/.wh.passwd", 0o644, b"");
    let error = scanned(&files, &[whole()]).unwrap_err().to_string();
    let expected = "`dev/null` is a device; `dev/pipe` is a FIFO; `etc/.wh.passwd` has a name that begins with `.wh.`, which in a \
                    layer deletes a file of the layers below; `run/socket` is a socket";
    assert_eq!(error, expected);
}

#[test]
fn special_bits_capabilities_and_attributes_are_noticed_or_kept() {
    let mut files = context();
    files
        .file("bin/su", 0o4755, b"su")
        .attribute("bin/su", "security.capability", b"\x01")
        .attribute("bin/su", "user.note", b"x")
        .file("etc/A", 0o644, b"");
    let scan = scanned(&files, &[whole()]).unwrap();
    let told: Vec<String> = scan.notices.iter().map(ToString::to_string).collect();
    let expected = [
        "`bin/su` loses setuid",
        "`bin/su` loses the attributes user.note",
        "`bin/su` loses its capabilities",
        "`/etc/A` and `/etc/a` differ in case only",
    ];
    assert_eq!(told, expected);
    assert!(scan.notices.iter().all(|notice| !notice.hint().is_empty()));
    let keep = CopySpec {
        keep: Keep {
            special_bits: true,
            capabilities: true,
        },
        ..whole()
    };
    let kept = scanned(&files, &[keep]).unwrap();
    let su = kept
        .entries
        .iter()
        .find(|entry| entry.path == "bin/su")
        .unwrap();
    assert_eq!(
        (su.mode, su.capability.as_deref()),
        (0o4755, Some(&b"\x01"[..]))
    );
    let attributes =
        |notice: &Notice| matches!(notice, Notice::Attributes { .. } | Notice::CaseEqual { .. });
    assert!(kept.notices.iter().all(attributes), "{:?}", kept.notices);
}

#[test]
fn a_file_in_the_place_of_a_directory_is_an_error() {
    let copies = [
        whole(),
        CopySpec {
            from: "bin/run".to_owned(),
            to: "/etc".to_owned(),
            ..CopySpec::default()
        },
    ];
    let error = scanned(&context(), &copies).unwrap_err().to_string();
    assert_eq!(
        error,
        "`/etc` is a directory of one copy and a file or link of another"
    );
}

#[test]
fn each_kind_of_change_changes_the_digest_and_nothing_else_does() {
    let digest = |files: &Memory, copy: &CopySpec| {
        scanned(files, std::slice::from_ref(copy)).unwrap().digest()
    };
    let before = digest(&context(), &whole());
    let changed = |what: &str, change: fn(&mut Memory) -> &mut Memory| {
        let mut files = context();
        change(&mut files);
        assert_ne!(digest(&files, &whole()), before, "{what}");
    };
    changed("content", |files| files.file("etc/a", 0o600, b"b"));
    changed("execute bit", |files| files.file("etc/a", 0o700, b"a"));
    changed("rename", |files| {
        files.remove("etc/a").file("etc/z", 0o600, b"a")
    });
    changed("move", |files| {
        files.remove("etc/a").file("bin/a", 0o600, b"a")
    });
    changed("link target", |files| files.link("etc/c", "b"));
    changed("file for link", |files| files.file("etc/c", 0o644, b"a"));
    changed("new", |files| files.file("etc/n", 0o600, b""));
    changed("removed", |files| files.remove("etc/a"));
    changed("empty directory", |files| files.remove("var/empty"));
    let same = |what: &str, change: fn(&mut Memory) -> &mut Memory| {
        let mut files = context();
        change(&mut files);
        assert_eq!(digest(&files, &whole()), before, "{what}");
    };
    same("umask", |files| {
        files
            .file("etc/a", 0o664, b"a")
            .file("bin/run", 0o700, b"run")
    });
    same("directory mode", |files| {
        files.directory("var/empty", 0o755)
    });
    let owned = CopySpec {
        owner: Owner {
            user: 65532,
            group: 0,
        },
        ..whole()
    };
    assert_ne!(digest(&context(), &owned), before, "owner");
}

mod changing {
    use std::io::{self, Read};
    use std::sync::atomic::{AtomicI64, Ordering};

    use portolan_image::{Listed, OpenFile, Source, Stamp};

    use super::*;

    /// A source whose files change as often as said while they are read.
    struct Restless {
        files: Memory,
        changes: AtomicI64,
    }

    struct File {
        inner: Box<dyn OpenFile>,
        changes: bool,
        asked: std::cell::Cell<i64>,
    }

    impl Read for File {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.inner.read(buffer)
        }
    }

    impl OpenFile for File {
        fn stamp(&self) -> io::Result<Stamp> {
            let asked = self.asked.get();
            self.asked.set(asked + i64::from(self.changes));
            Ok(Stamp {
                changed: asked,
                ..self.inner.stamp()?
            })
        }
    }

    impl Source for Restless {
        fn list(&self, directory: &str) -> io::Result<Vec<Listed>> {
            self.files.list(directory)
        }

        fn open(&self, path: &str) -> io::Result<Box<dyn OpenFile>> {
            Ok(Box::new(File {
                inner: self.files.open(path)?,
                changes: self.changes.fetch_sub(1, Ordering::Relaxed) > 0,
                asked: 0.into(),
            }))
        }

        fn attribute_names(&self, _: &str) -> io::Result<Vec<String>> {
            Ok(Vec::new())
        }

        fn attribute(&self, _: &str, _: &str) -> io::Result<Option<Vec<u8>>> {
            Ok(None)
        }
    }

    /// Lists a directory that is gone when it is entered.
    struct Vanishing(Memory);

    impl Source for Vanishing {
        fn list(&self, directory: &str) -> io::Result<Vec<Listed>> {
            if directory == "gone" {
                return Err(io::ErrorKind::NotFound.into());
            }
            self.0.list(directory)
        }

        fn open(&self, path: &str) -> io::Result<Box<dyn OpenFile>> {
            self.0.open(path)
        }

        fn attribute_names(&self, _: &str) -> io::Result<Vec<String>> {
            Ok(Vec::new())
        }

        fn attribute(&self, _: &str, _: &str) -> io::Result<Option<Vec<u8>>> {
            Ok(None)
        }
    }

    #[test]
    fn a_directory_that_vanishes_during_the_search_is_named() {
        let mut files = Memory::default();
        files
            .file("gone/a", 0o644, b"a")
            .file("kept/b", 0o644, b"b");
        let memo = Memo::default();
        let found = scan(&Vanishing(files), &[whole()], &options(&memo, &[]));
        let error = found.unwrap_err().to_string();
        assert!(
            error.contains("`gone` vanished while the files were looked for"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_read_three_times_and_then_refused() {
        let mut files = Memory::default();
        files.file("a", 0o644, b"a");
        let scanned = |changes: i64| {
            let source = Restless {
                files: files.clone(),
                changes: changes.into(),
            };
            scan(&source, &[whole()], &options(&Memo::default(), &[]))
        };
        assert!(scanned(2).is_ok());
        let error = scanned(3).unwrap_err().to_string();
        assert_eq!(error, "`a` changed while it was read, 3 times");
    }
}

#[test]
fn a_memo_knows_a_file_in_one_state_and_never_a_young_one() {
    use portolan_image::{Stamp, YOUNG};
    let stamp = Stamp {
        device: 1,
        inode: 2,
        size: 3,
        modified: 4,
        changed: 5,
    };
    let mut memo = Memo::default();
    memo.insert(stamp, [7; 32], 5 + YOUNG);
    assert!(memo.is_empty());
    memo.insert(stamp, [7; 32], 6 + YOUNG);
    assert_eq!(memo.get(&stamp), Some([7; 32]));
    let written = memo.to_bytes();
    let again = Memo::from_bytes(&written).unwrap();
    assert_eq!(
        (again.get(&stamp), again.to_bytes()),
        (Some([7; 32]), written.clone())
    );
    for other in [
        Stamp { size: 4, ..stamp },
        Stamp {
            modified: 5,
            ..stamp
        },
        Stamp {
            changed: 6,
            ..stamp
        },
        Stamp { inode: 3, ..stamp },
    ] {
        assert_eq!(again.get(&other), None);
    }
    assert!(Memo::from_bytes(&written[1..]).is_none());
    assert!(Memo::from_bytes(&written[..written.len() - 1]).is_none());
}
