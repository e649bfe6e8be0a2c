//! The Debian package: what dpkg says of it, and what is there after an installation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {text}{said}");
    text
}

/// The package of a program: this task itself, which is as good as any.
fn package(directory: &Path) -> PathBuf {
    let task = env!("CARGO_BIN_EXE_xtask");
    run(task, &["deb", task, directory.to_str().expect("UTF-8")]);
    let mut written = fs::read_dir(directory)
        .expect("a directory")
        .map(|one| one.expect("an entry").path());
    written.next().expect("a package")
}

fn is_debian() -> bool {
    if Path::new("/usr/bin/dpkg-deb").exists() {
        return true;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "`dpkg-deb` is not installed"
    );
    false
}

#[test]
fn the_package_says_what_it_is_and_has_no_scripts() {
    if !is_debian() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let package = package(directory.path());
    let package = package.to_str().unwrap();
    let field = |name: &str| {
        run("dpkg-deb", &["--field", package, name])
            .trim()
            .to_owned()
    };
    assert_eq!(field("Package"), "portolan");
    assert_eq!(field("Version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(
        field("Architecture"),
        run("dpkg", &["--print-architecture"]).trim()
    );
    assert!(
        field("Depends").starts_with("libc6 (>= 2."),
        "{}",
        field("Depends")
    );
    assert!(field("Installed-Size").parse::<u32>().unwrap() > 100);
    // `dpkg-deb --info` lists the files of the control archive.
    let info = run("dpkg-deb", &["--info", package]);
    for script in ["preinst", "postinst", "prerm", "postrm"] {
        assert!(!info.contains(script), "{info}");
    }
    let contents = run("dpkg-deb", &["--contents", package]);
    let owners = contents.lines().filter(|line| !line.contains("root/root"));
    assert_eq!(owners.count(), 0, "{contents}");
}

#[test]
fn an_installation_puts_the_program_and_its_unit_there_and_a_removal_takes_them_away() {
    if !is_debian() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let package = package(&directory.path().join("out"));
    let root = directory.path().join("root");
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    // What the package needs is there as this machine has it.
    let needed = run("dpkg-query", &["--status", "libc6", "libgcc-s1"]);
    fs::write(root.join("var/lib/dpkg/status"), needed).unwrap();
    let at_root = format!("--root={}", root.display());
    run("dpkg", &[&at_root, "--install", package.to_str().unwrap()]);
    let program = root.join("usr/bin/portolan");
    assert_eq!(
        fs::read(&program).unwrap(),
        fs::read(env!("CARGO_BIN_EXE_xtask")).unwrap()
    );
    let unit =
        fs::read_to_string(root.join("usr/lib/systemd/system/portolan-agent.service")).unwrap();
    assert!(unit.contains("\nKillMode=process\n"), "{unit}");
    assert!(
        unit.contains("ExecStart=/usr/bin/portolan agent "),
        "{unit}"
    );
    // Nothing is enabled, and nobody's settings are touched.
    assert!(!root.join("etc").exists());
    run("dpkg", &[&at_root, "--purge", "portolan"]);
    assert!(!program.exists());
    assert!(!root.join("usr/share/doc/portolan").exists());
}

#[test]
fn the_same_program_gives_the_same_package() {
    let directory = tempfile::tempdir().unwrap();
    let first = fs::read(package(&directory.path().join("a"))).unwrap();
    let second = fs::read(package(&directory.path().join("b"))).unwrap();
    assert!(first == second, "the packages differ");
}
