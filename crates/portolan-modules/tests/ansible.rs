//! The same work done by ansible-core and by our modules in twin trees must leave the same tree, but for the
//! differences that `COMPATIBILITY.md` lists.

mod bed;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use bed::Bed;
use camino::Utf8Path;
use serde_json::{Value, json};

/// One piece of work, in both languages.
struct Case {
    name: &'static str,
    /// What Ansible is told: a module and its arguments; `TOP` stands for the tree.
    theirs: (&'static str, Value),
    ours: (&'static str, Value),
    /// Whether the trees differ on purpose.
    differs: bool,
}

fn case(
    name: &'static str,
    theirs: (&'static str, Value),
    ours: (&'static str, Value),
    differs: bool,
) -> Case {
    Case {
        name,
        theirs,
        ours,
        differs,
    }
}

fn same(name: &'static str, theirs: (&'static str, Value), ours: (&'static str, Value)) -> Case {
    case(name, theirs, ours, false)
}

fn different(
    name: &'static str,
    theirs: (&'static str, Value),
    ours: (&'static str, Value),
) -> Case {
    case(name, theirs, ours, true)
}

fn cases() -> Vec<Case> {
    vec![
        same(
            "new-file",
            (
                "copy",
                json!({"dest": "TOP/new", "content": "a\r\nb", "mode": "0640"}),
            ),
            (
                "file",
                json!({"path": "/new", "content": "a\r\nb", "mode": "0640"}),
            ),
        ),
        same(
            "plain-file",
            ("copy", json!({"dest": "TOP/new", "content": "a"})),
            ("file", json!({"path": "/new", "content": "a"})),
        ),
        same(
            "replaced-file",
            ("copy", json!({"dest": "TOP/etc/lf", "content": "new\n"})),
            ("file", json!({"path": "/etc/lf", "content": "new\n"})),
        ),
        same(
            "file-through-a-link",
            (
                "copy",
                json!({"dest": "TOP/etc/link", "content": "new\n", "follow": true}),
            ),
            ("file", json!({"path": "/etc/link", "content": "new\n"})),
        ),
        same(
            "mode-only",
            ("file", json!({"path": "TOP/etc/lf", "mode": "0600"})),
            ("file", json!({"path": "/etc/lf", "mode": "0600"})),
        ),
        same(
            "removed-file",
            ("file", json!({"path": "TOP/etc/lf", "state": "absent"})),
            ("file", json!({"path": "/etc/lf", "state": "absent"})),
        ),
        same(
            "removed-link",
            ("file", json!({"path": "TOP/etc/link", "state": "absent"})),
            ("file", json!({"path": "/etc/link", "state": "absent"})),
        ),
        same(
            "new-directory",
            (
                "file",
                json!({"path": "TOP/d", "state": "directory", "mode": "0750"}),
            ),
            ("directory", json!({"path": "/d", "mode": "0750"})),
        ),
        same(
            "deep-directory",
            (
                "file",
                json!({"path": "TOP/d/e/f", "state": "directory", "mode": "0750"}),
            ),
            (
                "directory",
                json!({"path": "/d/e/f", "mode": "0750", "parents": {"mode": "0750"}}),
            ),
        ),
        same(
            "removed-directory",
            ("file", json!({"path": "TOP/etc", "state": "absent"})),
            ("directory", json!({"path": "/etc", "state": "absent"})),
        ),
        same(
            "new-link",
            (
                "file",
                json!({"path": "TOP/l", "src": "etc/lf", "state": "link"}),
            ),
            ("link", json!({"path": "/l", "to": "etc/lf"})),
        ),
        same(
            "changed-link",
            (
                "file",
                json!({"path": "TOP/etc/link", "src": "crlf", "state": "link"}),
            ),
            ("link", json!({"path": "/etc/link", "to": "crlf"})),
        ),
        same(
            "forced-link",
            (
                "file",
                json!({"path": "TOP/etc/lf", "src": "crlf", "state": "link", "force": true}),
            ),
            (
                "link",
                json!({"path": "/etc/lf", "to": "crlf", "force": true}),
            ),
        ),
        same(
            "hard-link",
            (
                "file",
                json!({"path": "TOP/etc/h", "src": "TOP/etc/lf", "state": "hard"}),
            ),
            (
                "link",
                json!({"path": "/etc/h", "to": "/etc/lf", "hard": true}),
            ),
        ),
        same(
            "new-line",
            ("lineinfile", json!({"path": "TOP/etc/lf", "line": "new"})),
            ("line", json!({"path": "/etc/lf", "line": "new"})),
        ),
        same(
            "line-that-is-there",
            (
                "lineinfile",
                json!({"path": "TOP/etc/lf", "line": "port=1"}),
            ),
            ("line", json!({"path": "/etc/lf", "line": "port=1"})),
        ),
        same(
            "last-match",
            (
                "lineinfile",
                json!({"path": "TOP/etc/lf", "line": "port=9", "regexp": "^port="}),
            ),
            (
                "line",
                json!({"path": "/etc/lf", "line": "port=9", "match": "^port="}),
            ),
        ),
        same(
            "line-after",
            (
                "lineinfile",
                json!({"path": "TOP/etc/lf", "line": "new", "insertafter": "^port"}),
            ),
            (
                "line",
                json!({"path": "/etc/lf", "line": "new", "after": "^port"}),
            ),
        ),
        same(
            "line-before",
            (
                "lineinfile",
                json!({"path": "TOP/etc/lf", "line": "new", "insertbefore": "^port"}),
            ),
            (
                "line",
                json!({"path": "/etc/lf", "line": "new", "before": "^port"}),
            ),
        ),
        same(
            "line-after-nothing",
            (
                "lineinfile",
                json!({"path": "TOP/etc/lf", "line": "new", "insertafter": "^zzz"}),
            ),
            (
                "line",
                json!({"path": "/etc/lf", "line": "new", "after": "^zzz"}),
            ),
        ),
        same(
            "removed-lines",
            (
                "lineinfile",
                json!({"path": "TOP/etc/lf", "regexp": "^port", "state": "absent"}),
            ),
            (
                "line",
                json!({"path": "/etc/lf", "match": "^port", "state": "absent"}),
            ),
        ),
        same(
            "appended-to-an-open-line",
            ("lineinfile", json!({"path": "TOP/etc/open", "line": "new"})),
            ("line", json!({"path": "/etc/open", "line": "new"})),
        ),
        same(
            "made-file",
            (
                "lineinfile",
                json!({"path": "TOP/made", "line": "new", "create": true}),
            ),
            (
                "line",
                json!({"path": "/made", "line": "new", "create": true}),
            ),
        ),
        different(
            "replaced-open-line",
            (
                "lineinfile",
                json!({"path": "TOP/etc/open", "line": "last2", "regexp": "^last"}),
            ),
            (
                "line",
                json!({"path": "/etc/open", "line": "last2", "match": "^last"}),
            ),
        ),
        different(
            "line-endings",
            ("lineinfile", json!({"path": "TOP/etc/crlf", "line": "new"})),
            ("line", json!({"path": "/etc/crlf", "line": "new"})),
        ),
        same(
            "new-block",
            (
                "blockinfile",
                json!({"path": "TOP/etc/lf", "block": "x\ny", "marker": "# {mark} of web"}),
            ),
            (
                "block",
                json!({"path": "/etc/lf", "block": "x\ny", "marker": "# {mark} of web"}),
            ),
        ),
        same(
            "changed-block",
            (
                "blockinfile",
                json!({"path": "TOP/etc/block", "block": "x\ny", "marker": "# {mark} of web"}),
            ),
            (
                "block",
                json!({"path": "/etc/block", "block": "x\ny", "marker": "# {mark} of web"}),
            ),
        ),
        same(
            "removed-block",
            (
                "blockinfile",
                json!({"path": "TOP/etc/block", "block": "", "marker": "# {mark} of web"}),
            ),
            (
                "block",
                json!({"path": "/etc/block", "block": "", "marker": "# {mark} of web"}),
            ),
        ),
        same(
            "block-after",
            (
                "blockinfile",
                json!({"path": "TOP/etc/lf", "block": "x", "marker": "# {mark} of web", "insertafter": "^host"}),
            ),
            (
                "block",
                json!({"path": "/etc/lf", "block": "x", "marker": "# {mark} of web", "after": "^host"}),
            ),
        ),
        different(
            "doubled-markers",
            (
                "blockinfile",
                json!({"path": "TOP/etc/doubled", "block": "x", "marker": "# {mark} of web"}),
            ),
            (
                "block",
                json!({"path": "/etc/doubled", "block": "x", "marker": "# {mark} of web"}),
            ),
        ),
        different(
            "missing-parents",
            ("file", json!({"path": "TOP/p/q", "state": "directory"})),
            ("directory", json!({"path": "/p/q"})),
        ),
        different(
            "recursive-mode",
            (
                "file",
                json!({"path": "TOP/etc", "state": "directory", "recurse": true, "mode": "0700"}),
            ),
            (
                "directory",
                json!({"path": "/etc", "recurse": true, "mode": "0700"}),
            ),
        ),
    ]
}

/// The tree that each piece of work begins with.
fn populate(top: &Utf8Path) {
    let etc = top.join("etc");
    fs::create_dir_all(&etc).expect("a directory");
    fs::set_permissions(&etc, fs::Permissions::from_mode(0o755)).expect("permissions");
    for (name, content) in [
        ("lf", "host=a\nport=1\nport=2\nend\n"),
        ("crlf", "a\r\nb\r\n"),
        ("open", "first\nlast"),
        ("block", "a\n# BEGIN of web\nold\n# END of web\nb\n"),
        (
            "doubled",
            "# BEGIN of web\n1\n# END of web\n# BEGIN of web\n2\n# END of web\n",
        ),
    ] {
        fs::write(etc.join(name), content).expect("a file");
        fs::set_permissions(etc.join(name), fs::Permissions::from_mode(0o644))
            .expect("permissions");
    }
    symlink("lf", etc.join("link")).expect("a link");
}

/// A tree as text; users, groups and times are left out.
fn tree(top: &Utf8Path, path: &Utf8Path, out: &mut String) {
    let found = fs::symlink_metadata(path).expect("something in the tree");
    let shown = path.strip_prefix(top).expect("a path below");
    let content = if found.is_symlink() {
        fs::read_link(path).expect("a link").display().to_string()
    } else if found.is_file() {
        format!(
            "{:o} {:?}",
            found.permissions().mode(),
            fs::read_to_string(path).expect("a text")
        )
    } else {
        format!("{:o}", found.permissions().mode())
    };
    let _ = writeln!(out, "{shown} {content}");
    if found.is_dir() {
        let entries = path.read_dir_utf8().expect("a directory");
        let mut paths: Vec<_> = entries
            .map(|entry| entry.expect("an entry").into_path())
            .collect();
        paths.sort();
        for path in paths {
            tree(top, &path, out);
        }
    }
}

fn tree_of(top: &Utf8Path) -> String {
    let mut out = String::new();
    tree(top, top, &mut out);
    out
}

#[test]
fn trees_are_as_ansible_leaves_them_but_for_listed_differences() {
    let program = "ansible-playbook";
    if std::process::Command::new(program)
        .arg("--version")
        .output()
        .is_err()
    {
        assert!(
            std::env::var_os("CI").is_none(),
            "`{program}` is not installed"
        );
        eprintln!("SKIPPED: `{program}` is not installed; ./test installs it");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(directory.path()).unwrap();
    let mut tasks = Vec::new();
    for case in cases() {
        let top = path.join(case.name);
        populate(&top);
        let arguments = case.theirs.1.to_string().replace("TOP", top.as_str());
        let arguments: Value = serde_json::from_str(&arguments).unwrap();
        tasks.push(json!({
            "name": case.name,
            (format!("ansible.builtin.{}", case.theirs.0)): arguments,
            "ignore_errors": true
        }));
    }
    let play = json!([{"hosts": "localhost", "gather_facts": false, "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"}, "tasks": tasks}]);
    fs::write(path.join("play.yml"), play.to_string()).unwrap();
    let output = std::process::Command::new(program)
        .args(["-i", "localhost,", "-c", "local", "play.yml"])
        .env("ANSIBLE_LOCAL_TEMP", path.join("tmp").as_str())
        .env("ANSIBLE_REMOTE_TEMP", path.join("tmp").as_str())
        .current_dir(path)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    let document = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../COMPATIBILITY.md"
    ))
    .unwrap();
    for case in cases() {
        let bed = Bed::new();
        fs::remove_dir_all(bed.path("/etc")).unwrap();
        populate(&bed.path("/"));
        let result = bed.converge(case.ours.0, &case.ours.1);
        let (theirs, ours) = (path.join(case.name), bed.path("/"));
        let top = fs::metadata(&ours).unwrap().permissions();
        fs::set_permissions(&theirs, top).unwrap();
        let (theirs, ours) = (tree_of(&theirs), tree_of(&ours));
        if case.differs {
            assert_ne!(theirs, ours, "{} does not differ any more", case.name);
            assert!(
                document.contains(&format!("`{}`", case.name)),
                "COMPATIBILITY.md does not list {}",
                case.name
            );
        } else {
            assert_eq!(theirs, ours, "{}: {:?}", case.name, result.err());
        }
    }
}
