//! A directory that stands for `/`: nothing is read, written or removed outside it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_modules::{FileKind, Follow, Host, ModuleError, NewFile, Program, Root, RootError};
use tokio_util::sync::CancellationToken;

/// A directory with `root`, which stands for `/`, and a file beside it that nobody may touch.
struct Place {
    _directory: tempfile::TempDir,
    path: Utf8PathBuf,
    root: Root,
}

fn place() -> Place {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path =
        Utf8PathBuf::from_path_buf(directory.path().to_owned()).expect("a directory for the test");
    fs::create_dir(path.join("root")).expect("a directory for the test");
    fs::create_dir(path.join("root/etc")).expect("a directory for the test");
    fs::create_dir(path.join("outside")).expect("a directory for the test");
    fs::write(path.join("outside/file"), "untouched").expect("a directory for the test");
    Place {
        root: Root::other(&path.join("root")).expect("a directory for the test"),
        path,
        _directory: directory,
    }
}

fn new(content: &str) -> NewFile<'_> {
    NewFile {
        content: content.as_bytes(),
        mode: None,
        uid: None,
        gid: None,
    }
}

#[test]
fn the_machines_root_and_directories_of_others_are_refused() {
    assert!(matches!(
        Root::other("/".into()),
        Err(RootError::Machine(_))
    ));
    assert!(matches!(
        Root::other("/proc/self/root".into()),
        Err(RootError::Machine(_))
    ));
    assert!(matches!(
        Root::other("/nowhere".into()),
        Err(RootError::Open { .. })
    ));
    let place = place();
    let other = place.path.join("other");
    fs::create_dir(&other).unwrap();
    // Only the administrator can give a directory away; others have one that is not theirs.
    let refused = if std::os::unix::fs::chown(&other, Some(12345), None).is_ok() {
        Root::other(&other)
    } else {
        Root::other("/etc".into())
    };
    assert!(matches!(refused, Err(RootError::Owner { .. })));
}

#[test]
fn links_and_dots_end_inside() {
    let place = place();
    let outside = place.path.join("outside");
    let below = place.path.join("root");
    symlink(&outside, below.join("absolute")).unwrap();
    symlink("../../../../outside", below.join("etc/relative")).unwrap();
    symlink("/proc/self/root", below.join("magic")).unwrap();
    for path in [
        "/absolute/file",
        "/etc/relative/file",
        "/magic/etc/hostname",
        "/../outside/file",
    ] {
        let path = Utf8Path::new(path);
        assert_eq!(
            place.root.status(path, Follow::Yes).unwrap(),
            None,
            "{path}"
        );
        assert_eq!(place.root.read(path, 100).unwrap(), None, "{path}");
        assert!(place.root.replace(path, &new("x")).is_err(), "{path}");
        assert!(place.root.make_directory(path, 0o755).is_err(), "{path}");
        assert!(place.root.remove_file(path).is_err(), "{path}");
        assert!(place.root.symlink("x", path).is_err(), "{path}");
        place.root.remove_all(path).unwrap();
    }
    assert_eq!(
        fs::read_to_string(outside.join("file")).unwrap(),
        "untouched"
    );
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    // An absolute link means a path below the root.
    fs::create_dir_all(below.join(outside.as_str().trim_start_matches('/'))).unwrap();
    place
        .root
        .replace("/absolute/file".into(), &new("inside"))
        .unwrap();
    let inside = below
        .join(outside.as_str().trim_start_matches('/'))
        .join("file");
    assert_eq!(fs::read_to_string(inside).unwrap(), "inside");
    assert_eq!(
        fs::read_to_string(outside.join("file")).unwrap(),
        "untouched"
    );
}

#[test]
fn removing_a_tree_follows_no_link() {
    let place = place();
    let below = place.path.join("root");
    fs::create_dir_all(below.join("tree/a/b")).unwrap();
    fs::write(below.join("tree/a/file"), "x").unwrap();
    symlink(place.path.join("outside"), below.join("tree/a/link")).unwrap();
    place.root.remove_all("/tree".into()).unwrap();
    assert!(!below.join("tree").exists());
    assert!(place.path.join("outside/file").exists());
}

#[test]
fn a_tree_that_is_too_deep_is_refused() {
    let place = place();
    let mut path = place.path.join("root/deep");
    for _ in 0..300 {
        path.push("d");
    }
    fs::create_dir_all(&path).unwrap();
    let error = place.root.remove_all("/deep".into()).unwrap_err();
    assert!(error.to_string().contains("too deep"), "{error}");
}

#[test]
fn a_replaced_file_keeps_mode_and_attributes_and_leaves_nothing_beside_it() {
    let place = place();
    let file = place.path.join("root/etc/web.conf");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).unwrap();
    let has_attributes = rustix::fs::setxattr(
        file.as_std_path(),
        "user.portolan",
        b"kept",
        rustix::fs::XattrFlags::empty(),
    )
    .is_ok();
    let kept = place
        .root
        .replace("/etc/web.conf".into(), &new("new"))
        .unwrap();
    assert!(kept.lost.is_empty());
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    assert_eq!(
        file.metadata().unwrap().permissions().mode() & 0o7777,
        0o604
    );
    if has_attributes {
        let mut value = Vec::with_capacity(16);
        let spare = rustix::buffer::spare_capacity(&mut value);
        rustix::fs::getxattr(file.as_std_path(), "user.portolan", spare).unwrap();
        assert_eq!(value, b"kept");
    }
    // A staged file that is given up leaves nothing.
    drop(place.root.stage("/etc/web.conf".into(), &new("x")).unwrap());
    assert_eq!(place.root.list("/etc".into()).unwrap(), ["web.conf"]);
}

#[test]
fn pipes_and_large_files_are_not_read() {
    let place = place();
    let pipe = place.path.join("root/pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, pipe.as_std_path(), mode).unwrap();
    assert!(place.root.read("/pipe".into(), 100).is_err());
    let status = place.root.status("/pipe".into(), Follow::No).unwrap();
    assert_eq!(status.unwrap().kind, FileKind::Other);
    fs::write(place.path.join("root/big"), vec![0; 101]).unwrap();
    assert!(place.root.read("/big".into(), 100).is_err());
    assert_eq!(
        place.root.read("/big".into(), 101).unwrap().unwrap().len(),
        101
    );
}

#[test]
fn a_link_replaces_a_file_but_no_directory() {
    let place = place();
    fs::write(place.path.join("root/file"), "x").unwrap();
    place.root.symlink("/etc", "/file".into()).unwrap();
    assert_eq!(
        place.root.read_link("/file".into()).unwrap().unwrap(),
        "/etc"
    );
    assert!(place.root.symlink("x", "/etc".into()).is_err());
    place.root.replace("/a".into(), &new("a")).unwrap();
    place.root.hard_link("/a".into(), "/b".into()).unwrap();
    place.root.hard_link("/a".into(), "/b".into()).unwrap();
    assert_eq!(
        place
            .root
            .status("/a".into(), Follow::No)
            .unwrap()
            .unwrap()
            .links,
        2
    );
    assert_eq!(
        place.root.list("/".into()).unwrap(),
        ["a", "b", "etc", "file"]
    );
}

// === programs ===

fn host(place: &Place) -> Host {
    Host::local(Arc::new(
        Root::other(&place.path.join("root")).expect("the root of the test"),
    ))
}

fn run(host: &Host, program: Program) -> Result<portolan_modules::Exit, ModuleError> {
    host.processes.run(&host.command(program), &host.stop)
}

#[test]
fn a_program_gets_its_input_and_its_output_is_kept() {
    let place = place();
    let host = host(&place);
    let mut command = host.command(Program::Shell(
        "cat; echo \"$PORTOLAN_ROOT\" >&2; pwd >&2; exit 3".into(),
    ));
    command.input = vec![b'x'; 300_000];
    let exit = host.processes.run(&command, &host.stop).unwrap();
    assert_eq!(exit.code, 3);
    let root = place.path.join("root").canonicalize_utf8().unwrap();
    assert_eq!(
        String::from_utf8(exit.stderr).unwrap(),
        format!("{root}\n{root}\n")
    );
    let printed = String::from_utf8(exit.stdout).unwrap();
    let kept = portolan_modules::KEPT_OUTPUT_BYTES;
    assert!(printed.contains(&format!("… {} bytes left out …", 300_000 - 2 * kept)));
    assert!(printed.len() < 2 * kept + 100);
}

#[test]
fn a_script_runs_by_its_interpreter_line() {
    let place = place();
    let script = b"#!/bin/sh -e\nfalse\necho not reached\n";
    let exit = run(&host(&place), Program::Script(script.as_slice().into())).unwrap();
    assert_eq!((exit.code, exit.stdout.len()), (1, 0));
    let error = run(&host(&place), Program::Script(b"echo".as_slice().into())).unwrap_err();
    assert_eq!(error.hint(), Some("begin it with a line such as #!/bin/sh"));
}

#[test]
fn everything_that_a_program_started_ends_when_its_time_is_up() {
    let place = place();
    let host = host(&place);
    // The child holds the pipe; if it lived on, the wait for its output would take its time.
    let mark = place.path.join("root/mark");
    let text = format!("(sleep 600; touch {mark}) & echo started; sleep 600");
    let mut command = host.command(Program::Shell(text));
    command.timeout = Duration::from_millis(300);
    let began = Instant::now();
    let error = host.processes.run(&command, &host.stop).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("did not end within 0.3 s\nstarted"),
        "{error}"
    );
    assert!(began.elapsed() < Duration::from_mins(5));
}

#[test]
fn a_stopped_step_stops_its_program() {
    let place = place();
    let host = host(&place);
    let stop = CancellationToken::new();
    let stopper = stop.clone();
    let command = host.command(Program::Shell(
        "trap '' TERM; touch started; exec sleep 600".into(),
    ));
    let started = place.path.join("root/started");
    let ended = std::thread::scope(|scope| {
        let ended = scope.spawn(|| host.processes.run(&command, &stop));
        while !started.exists() {
            std::thread::yield_now();
        }
        stopper.cancel();
        ended.join().unwrap()
    });
    assert!(matches!(ended, Err(ModuleError::Stopped)));
}

#[test]
fn a_program_that_is_missing_is_told() {
    let place = place();
    let error = run(
        &host(&place),
        Program::Arguments(vec!["no-such-program".into()]),
    )
    .unwrap_err();
    assert!(error.to_string().contains("no-such-program"), "{error}");
}

/// As the administrator only: others cannot become somebody else.
#[test]
fn a_program_runs_as_the_account_of_the_root_directory_with_its_groups() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = place();
    // A program of that account must be able to enter the directory.
    for directory in [place.path.clone(), place.path.join("root")] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let etc = place.path.join("root/etc");
    fs::write(etc.join("passwd"), "web:x:23456:23457::/srv/web:/bin/sh\n").unwrap();
    fs::write(etc.join("group"), "web:x:23457:\nextra:x:23458:web\n").unwrap();
    let mut host = host(&place);
    host.account = Some(portolan_modules::Account {
        user: "web".into(),
        group: None,
    });
    let exit = run(
        &host,
        Program::Shell("id -u; id -g; id -G; echo $HOME".into()),
    )
    .unwrap();
    let printed = String::from_utf8(exit.stdout).unwrap();
    assert_eq!(
        printed,
        "23456\n23457\n23457 23458\n/srv/web\n",
        "{:?}",
        String::from_utf8_lossy(&exit.stderr)
    );
    // Our own identity is as it was.
    assert!(rustix::process::geteuid().is_root());
    fs::write(place.path.join("root/proof"), "").unwrap();
}

/// As the administrator only: others cannot confine a program.
#[test]
fn a_confined_program_sees_only_the_root_directory() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = place();
    let below = place.path.join("root");
    // A static program is not at hand everywhere: the dynamic one with what it loads.
    let copied = std::process::Command::new("sh")
        .arg("-c")
        .arg(format!(
            "set -e; for f in /bin/sh $(ldd /bin/sh | grep -o '/[^ ]*'); do mkdir -p {below}$(dirname $f); cp -L $f {below}$f; done"
        ))
        .status()
        .unwrap();
    assert!(copied.success());
    let mut host = host(&place);
    host.is_confined = true;
    let exit = run(
        &host,
        Program::Shell("echo /*; pwd; echo $PORTOLAN_ROOT".into()),
    )
    .unwrap();
    let printed = String::from_utf8(exit.stdout).unwrap();
    assert!(printed.starts_with("/bin /etc /lib"), "{printed}");
    assert!(printed.ends_with("\n/\n/\n"), "{printed}");
    assert!(std::path::Path::new("/proc").exists());
}
