//! `repository` with a signed repository in a directory, and the packages that come from it.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use portolan_modules::{Ahead, PlannedOutcome, View};
use portolan_testbed::{HttpServer, Reply};
use serde_json::{Value, json};

use crate::bed::{Bed, action, faults, is_root};

/// A root with an empty database of dpkg, and a repository beside it that is signed.
struct System {
    bed: Bed,
    keys: tempfile::TempDir,
}

impl System {
    /// `None` where a program is missing or the tests do not run as root.
    fn new() -> Option<Self> {
        let programs = [
            ("apt-get", "--version"),
            ("gpg", "--version"),
            ("dpkg-scanpackages", "--version"),
        ];
        if !is_root()
            || !programs
                .iter()
                .all(|(program, option)| portolan_testbed::has_program(program, option))
        {
            return None;
        }
        let bed = Bed::new();
        for directory in [
            "var/lib/dpkg/info",
            "var/lib/dpkg/updates",
            "var/lib/apt/lists/partial",
            "var/cache/apt/archives/partial",
            "var/log/apt",
            "etc/apt/sources.list.d",
            "etc/apt/preferences.d",
        ] {
            fs::create_dir_all(bed.root.join(directory)).unwrap();
        }
        bed.write("var/lib/dpkg/status", "");
        let system = Self {
            bed,
            // The path of a socket in it must be short.
            keys: tempfile::tempdir_in("/tmp").unwrap(),
        };
        system.gpg(&[
            "--quick-gen-key",
            "T <t@example.org>",
            "ed25519",
            "sign",
            "never",
        ]);
        system.publish("tiny");
        Some(system)
    }

    fn gpg(&self, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new("gpg")
            .args([
                "--batch",
                "--quiet",
                "--yes",
                "--passphrase",
                "",
                "--homedir",
            ])
            .arg(self.keys.path())
            .args(arguments)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        output.stdout
    }

    fn key(&self) -> String {
        String::from_utf8(self.gpg(&["--armor", "--export", "t@example.org"])).unwrap()
    }

    /// The fingerprint as `GnuPG` prints it.
    fn fingerprint(&self) -> String {
        let listed = self.gpg(&["--with-colons", "--fingerprint", "t@example.org"]);
        let listed = String::from_utf8(listed).unwrap();
        let line = listed
            .lines()
            .find(|line| line.starts_with("fpr:"))
            .unwrap();
        line.split(':').nth(9).unwrap().to_owned()
    }

    fn repository(&self) -> String {
        self.bed.root.join("repo").into_string()
    }

    /// Puts a package into the repository, and signs it.
    fn publish(&self, name: &str) {
        let work = self.bed.root.join("tmp/work");
        fs::create_dir_all(work.join("DEBIAN")).unwrap();
        let control = format!(
            "Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: T <t@example.org>\nDescription: {name}\n"
        );
        fs::write(work.join("DEBIAN/control"), control).unwrap();
        let repository = self.bed.root.join("repo");
        let dist = repository.join("dists/stable");
        let architecture = output("dpkg", &["--print-architecture"], "/");
        let architecture = architecture.trim();
        let index = format!("main/binary-{architecture}/Packages");
        fs::create_dir_all(dist.join(&index).parent().unwrap()).unwrap();
        fs::create_dir_all(repository.join("pool")).unwrap();
        let file = repository.join(format!("pool/{name}.deb"));
        output(
            "dpkg-deb",
            &[
                "--build",
                "--root-owner-group",
                work.as_str(),
                file.as_str(),
            ],
            "/",
        );
        fs::remove_dir_all(&work).unwrap();
        let packages = output("dpkg-scanpackages", &["pool"], repository.as_str());
        fs::write(dist.join(&index), &packages).unwrap();
        let release = format!(
            "Suite: stable\nCodename: stable\nComponents: main\nArchitectures: {architecture}\nDate: Sat, 01 Aug 2026 00:00:00 UTC\nSHA256:\n {} {} {index}\n",
            portolan_digest::Digest::of(packages.as_bytes()).hex(),
            packages.len()
        );
        fs::write(dist.join("Release"), release).unwrap();
        let release = dist.join("Release");
        self.gpg(&[
            "--clearsign",
            "--output",
            dist.join("InRelease").as_str(),
            release.as_str(),
        ]);
    }

    fn step(&self, key: &str) -> Value {
        json!({
            "name": "shop",
            "uris": [format!("copy:{}", self.repository())],
            "suites": ["stable"],
            "components": ["main"],
            "key": key,
            "fingerprint": self.fingerprint(),
        })
    }
}

fn output(program: &str, arguments: &[&str], directory: &str) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_repository_with_its_key_is_added_and_its_packages_can_be_installed() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    let (plan, _) = bed.converge("repository", &system.step(&system.key()));
    assert_eq!(
        plan.changes()[0].diff,
        format!(
            "+uris: copy:{}\n+suites: stable\n+components: main\n+key: {}\n",
            system.repository(),
            system.fingerprint()
        )
    );
    let text = bed.read("etc/apt/sources.list.d/shop.sources");
    assert!(
        text.contains("\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n"),
        "{text}"
    );
    // The change forced a refresh: no step with `refresh` is needed.
    bed.converge("package", &json!({"name": "tiny"}));
    let (plan, _) = bed.converge("repository", &json!({"name": "shop", "state": "absent"}));
    assert!(
        plan.changes()[0].diff.starts_with("-uris: copy:"),
        "{plan:?}"
    );
    assert!(
        !bed.root
            .join("etc/apt/sources.list.d/shop.sources")
            .exists()
    );
}

/// The key is what is trusted for all time, so its fingerprint decides, and none comes in beside it.
#[test]
fn another_key_is_refused_before_anything_is_written() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    let mut step = system.step(&system.key());
    step["fingerprint"] = json!("0123456789ABCDEF0123456789ABCDEF01234567");
    let told = bed.fails("repository", &step);
    assert!(
        told.contains(&format!("it has the fingerprint {}", system.fingerprint())),
        "{told}"
    );
    system.gpg(&[
        "--quick-gen-key",
        "X <x@example.org>",
        "ed25519",
        "sign",
        "never",
    ]);
    let both = String::from_utf8(system.gpg(&["--armor", "--export"])).unwrap();
    let told = bed.fails("repository", &system.step(&both));
    assert!(told.contains("it has the fingerprint"), "{told}");
    let told = bed.fails("repository", &system.step("no\nkey"));
    assert!(told.contains("not a public OpenPGP key"), "{told}");
}

/// What is signed by somebody else is refused by apt, and the file does not come into place.
#[test]
fn a_repository_that_cannot_be_fetched_is_not_added() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    system.gpg(&[
        "--quick-gen-key",
        "X <x@example.org>",
        "ed25519",
        "sign",
        "never",
    ]);
    let other = system.gpg(&["--armor", "--export", "x@example.org"]);
    let other = String::from_utf8(other).unwrap();
    let listed = system.gpg(&["--with-colons", "--fingerprint", "x@example.org"]);
    let listed = String::from_utf8(listed).unwrap();
    let line = listed
        .lines()
        .find(|line| line.starts_with("fpr:"))
        .unwrap();
    let mut step = system.step(&other);
    step["fingerprint"] = json!(line.split(':').nth(9).unwrap());
    let error = bed.apply("repository", &step).unwrap_err();
    assert!(error.to_string().contains("NO_PUBKEY"), "{error}");
    assert!(
        !bed.root
            .join("etc/apt/sources.list.d/shop.sources")
            .exists()
    );
    let mut missing = system.step(&system.key());
    missing["uris"] = json!(["copy:/nowhere"]);
    assert!(bed.apply("repository", &missing).is_err());
    assert!(
        !bed.root
            .join("etc/apt/sources.list.d/shop.sources")
            .exists()
    );
    bed.converge("repository", &system.step(&system.key()));
}

#[test]
fn a_key_comes_from_an_address_a_path_or_the_book() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    let key = system.key();
    let server = HttpServer::start(move |_| Reply::ok(key.clone()));
    let step = system.step(&format!("{}/key.asc", server.url()));
    bed.converge("repository", &step);
    // A key that is there already is not fetched again.
    drop(server);
    bed.converge("repository", &step);
    fs::create_dir_all(bed.root.join("usr/share/keyrings")).unwrap();
    let binary = system.gpg(&["--export", "t@example.org"]);
    fs::write(bed.root.join("usr/share/keyrings/shop.gpg"), binary).unwrap();
    let (plan, _) = bed.converge("repository", &system.step("/usr/share/keyrings/shop.gpg"));
    assert!(
        matches!(plan.outcome, PlannedOutcome::Unchanged),
        "{plan:?}"
    );
    let told = bed.fails("repository", &system.step("keys/shop.asc"));
    assert!(
        told.contains("the book came without `keys/shop.asc`"),
        "{told}"
    );
}

#[test]
fn a_file_that_somebody_edited_is_put_back() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    let step = system.step(&system.key());
    bed.converge("repository", &step);
    let path = "etc/apt/sources.list.d/shop.sources";
    let right = bed.read(path);
    bed.write(path, &right.replace("Suites: stable", "Suites: unstable"));
    let (plan, _) = bed.converge("repository", &step);
    assert_eq!(
        plan.changes()[0].diff,
        "-suites: unstable\n+suites: stable\n"
    );
    bed.write(path, &format!("{right}\nEnabled: no\n"));
    let (plan, _) = bed.converge("repository", &step);
    assert!(plan.changes()[0].diff.contains("-Enabled: no"), "{plan:?}");
    assert_eq!(bed.read(path), right);
}

#[test]
fn a_repository_that_nobody_signed_is_taken_only_if_the_step_says_so() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    fs::remove_file(bed.root.join("repo/dists/stable/InRelease")).unwrap();
    let mut step = system.step("");
    for name in ["key", "fingerprint"] {
        step.as_object_mut().unwrap().remove(name);
    }
    assert!(bed.apply("repository", &step).is_err());
    step["trusted"] = json!(true);
    bed.converge("repository", &step);
    bed.converge("package", &json!({"name": "tiny"}));
}

/// A check cannot know what a new repository has, and says so.
#[test]
fn a_check_does_not_guess_what_a_new_repository_has() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    let mut ahead = Ahead::default();
    let plan = bed.plan("repository", &system.step(&system.key())).unwrap();
    ahead.add(&plan.predictions);
    let view = View {
        host: &bed.host,
        ahead,
    };
    let plan = action("package", &json!({"name": "tiny"}))
        .plan(&view)
        .unwrap();
    assert!(
        matches!(plan.outcome, PlannedOutcome::Unknown { .. }),
        "{plan:?}"
    );
}

#[test]
fn links_and_roots_without_packages_are_refused() {
    let bed = Bed::new();
    let step = json!({"name": "x", "uris": ["https://x.example"], "suites": ["./"]});
    let told = bed.fails("repository", &step);
    assert!(told.contains("no database of rpm"), "{told}");
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    let lists = bed.root.join("etc/apt/sources.list.d");
    fs::remove_dir(&lists).unwrap();
    symlink(&bed.outside, &lists).unwrap();
    let error = bed
        .apply("repository", &system.step(&system.key()))
        .unwrap_err();
    assert!(error.to_string().contains("it is a link"), "{error}");
}

#[test]
fn parameters_that_do_not_fit_are_told() {
    let step = |name: &str, value: Value| {
        let mut step = json!({"name": "x", "uris": ["https://x.example"], "suites": ["s"], "components": ["main"]});
        step[name] = value;
        faults("repository", &step)
    };
    assert!(step("name", json!("../x")).contains("apt ignores other files"));
    assert!(step("name", json!("-x")).contains("apt ignores other files"));
    assert!(step("uris", json!(["a b"])).contains("`uris` cannot have `a b`"));
    assert!(step("suites", json!(["a\nTrusted:"])).contains("cannot have"));
    assert!(step("key", json!("a.asc")).contains("`fingerprint` is missing"));
    assert!(step("fingerprint", json!("E0058AB07A7F8B32")).contains("whole fingerprint"));
    assert!(step("suites", json!(["./"])).contains("cannot stand beside a suite"));
    assert!(step("key", json!("ftp://x.example/key")).contains("https://"));
    assert!(faults("repository", &json!({"name": "x"})).contains("`uris` is missing"));
}
