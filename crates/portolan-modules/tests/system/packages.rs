//! `package` with apt and dpkg, on a root with a database of its own and a repository in a directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::{Arc, Mutex};

use portolan_modules::{Ahead, Exit, ModuleError, PlannedOutcome, Processes, Program, View};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bed::{Bed, action, faults, is_root};

/// A root with an empty database, and a repository beside it.
struct System {
    bed: Bed,
}

impl System {
    /// `None` where apt is missing or the tests do not run as root.
    fn new() -> Option<Self> {
        if !is_root() || !portolan_testbed::has_program("apt-get", "--version") {
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
        let line = format!("deb [trusted=yes] copy:{}/repo ./\n", bed.root);
        bed.write("etc/apt/sources.list", &line);
        let system = Self { bed };
        system.add("tiny", "1:1.0-1", "");
        system.add("tiny", "1:2.0-1", "");
        system.add("base", "1", "Conflicts: other\n");
        system.add("other", "1", "");
        system.add("server", "1", "Provides: virtual-server\n");
        system.update();
        Some(system)
    }

    /// Puts a package into the repository.
    fn add(&self, name: &str, version: &str, fields: &str) {
        let work = self.bed.root.join("tmp/work");
        fs::create_dir_all(work.join("DEBIAN")).unwrap();
        fs::create_dir_all(work.join(format!("etc/{name}"))).unwrap();
        fs::write(work.join(format!("etc/{name}/settings")), version).unwrap();
        fs::write(
            work.join("DEBIAN/conffiles"),
            format!("/etc/{name}/settings\n"),
        )
        .unwrap();
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: T <t@example.org>\n{fields}Description: {name}\n"
        );
        fs::write(work.join("DEBIAN/control"), control).unwrap();
        fs::create_dir_all(self.bed.root.join("repo")).unwrap();
        let file = self
            .bed
            .root
            .join(format!("repo/{name}_{}.deb", version.replace(':', "_")));
        run(
            "dpkg-deb",
            &[
                "--build",
                "--root-owner-group",
                work.as_str(),
                file.as_str(),
            ],
        );
        fs::remove_dir_all(&work).unwrap();
        let repository = self.bed.root.join("repo");
        let index = Command::new("dpkg-scanpackages")
            .args(["--multiversion", "."])
            .current_dir(&repository)
            .output()
            .unwrap();
        fs::write(repository.join("Packages"), index.stdout).unwrap();
    }

    /// Fetches the lists of packages, as a step with `refresh` does.
    fn update(&self) {
        self.bed
            .apply("package", &json!({"name": "server", "refresh": true}))
            .unwrap();
        self.bed.converge(
            "package",
            &json!({"name": "server", "state": "absent", "purge": true}),
        );
    }

    fn version(&self, name: &str) -> Option<String> {
        let status = self.bed.read("var/lib/dpkg/status");
        let packages = portolan_modules::formats::parse_status(&status);
        let package = packages
            .into_iter()
            .find(|package| package.has_name(name) && package.is_installed());
        package.map(|package| package.version)
    }
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_package_is_installed_updated_and_removed() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    let (plan, applied) = bed.converge("package", &json!({"name": "tiny", "version": "1:1.0-1"}));
    assert_eq!(plan.changes()[0].diff, "+version: 1:1.0-1\n");
    assert_eq!(applied.result["version"], "1:1.0-1");
    assert_eq!(bed.read("etc/tiny/settings"), "1:1.0-1");
    bed.converge("package", &json!({"names": ["tiny", "other"]}));
    assert_eq!(
        system.version("tiny").as_deref(),
        Some("1:1.0-1"),
        "present is satisfied"
    );
    let (plan, _) = bed.converge("package", &json!({"name": "tiny", "state": "latest"}));
    assert_eq!(
        plan.changes()[0].diff,
        "-version: 1:1.0-1\n+version: 1:2.0-1\n"
    );
    assert_eq!(plan.before["version"], "1:1.0-1");
    bed.converge("package", &json!({"name": "tiny", "state": "absent"}));
    assert!(bed.root.join("etc/tiny/settings").exists(), "settings stay");
    assert_eq!(system.version("tiny"), None, "only settings left is absent");
    bed.converge(
        "package",
        &json!({"name": "tiny", "state": "absent", "purge": true}),
    );
    assert!(!bed.root.join("etc/tiny/settings").exists());
}

#[test]
fn an_older_version_needs_permission() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    bed.converge("package", &json!({"name": "tiny"}));
    let told = bed.fails("package", &json!({"name": "tiny", "version": "1:1.0-1"}));
    assert!(told.contains("1:1.0-1 is older than 1:2.0-1"), "{told}");
    bed.converge(
        "package",
        &json!({"name": "tiny", "version": "1:1.0-1", "allowDowngrade": true}),
    );
    assert_eq!(system.version("tiny").as_deref(), Some("1:1.0-1"));
}

#[test]
fn a_removal_that_nobody_asked_for_fails() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    bed.converge("package", &json!({"name": "other"}));
    let told = bed.fails("package", &json!({"name": "base"}));
    assert!(told.contains("this would remove other"), "{told}");
}

#[test]
fn a_virtual_package_is_its_provider() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    let (plan, _) = bed.converge("package", &json!({"name": "virtual-server"}));
    assert_eq!(plan.changes()[0].subject.to_string(), "package server");
    let plan = bed
        .plan("package", &json!({"name": "virtual-server"}))
        .unwrap();
    assert_eq!(plan.notes, ["`virtual-server` is provided by server"]);
}

#[test]
fn a_held_package_stays() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    bed.converge(
        "package",
        &json!({"name": "tiny", "version": "1:1.0-1", "hold": true}),
    );
    assert!(
        bed.read("var/lib/dpkg/status")
            .contains("Status: hold ok installed")
    );
    let told = bed.fails("package", &json!({"name": "tiny", "version": "1:2.0-1"}));
    assert!(told.contains("it is held (use `hold: false`"), "{told}");
    bed.converge(
        "package",
        &json!({"name": "tiny", "version": "1:2.0-1", "hold": false}),
    );
    assert!(
        bed.read("var/lib/dpkg/status")
            .contains("Status: install ok installed")
    );
}

/// Fetching the lists is no change; whether it leads to one shows only afterwards.
#[test]
fn a_refresh_is_no_change_and_finds_new_packages() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    system.add("late", "1", "");
    let told = bed.fails("package", &json!({"name": "late"}));
    assert!(told.contains("use `refresh: true`"), "{told}");
    bed.converge("package", &json!({"name": "late", "refresh": true}));
    let latest = json!({"name": "late", "state": "latest", "refresh": true});
    let (plan, applied) = bed.apply("package", &latest).unwrap();
    assert!(
        matches!(plan.outcome, PlannedOutcome::Unknown { .. }),
        "{plan:?}"
    );
    assert!(!applied.is_changed);
    system.add("late", "2", "");
    let (_, applied) = bed.apply("package", &latest).unwrap();
    assert!(applied.is_changed);
    assert_eq!(applied.result["version"], "2");
}

#[test]
fn an_interrupted_dpkg_is_told_and_repaired_on_demand() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    bed.converge("package", &json!({"name": "tiny"}));
    let status = bed.read("var/lib/dpkg/status");
    bed.write(
        "var/lib/dpkg/status",
        &status.replace("install ok installed", "install ok unpacked"),
    );
    let told = bed.fails("package", &json!({"name": "other"}));
    assert!(
        told.contains("dpkg was interrupted while it worked on tiny"),
        "{told}"
    );
    bed.converge("package", &json!({"name": "other", "repair": true}));
    assert_eq!(system.version("tiny").as_deref(), Some("1:2.0-1"));
}

/// A changed file of settings is kept by an update, without a question.
#[test]
fn changed_settings_are_kept() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    bed.converge("package", &json!({"name": "tiny", "version": "1:1.0-1"}));
    bed.write("etc/tiny/settings", "mine");
    bed.converge("package", &json!({"name": "tiny", "state": "latest"}));
    assert_eq!(bed.read("etc/tiny/settings"), "mine");
}

#[test]
fn the_holder_of_the_lock_is_named() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    bed.write("var/lib/dpkg/lock-frontend", "");
    let path = bed.root.join("var/lib/dpkg/lock-frontend");
    // The lock of dpkg is one of `fcntl`; this program holds one until its input ends.
    let script = "import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()";
    let mut holder = Command::new("python3")
        .args(["-c", script, path.as_str()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(holder.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    let step = json!({"name": "tiny", "lockTimeout": "1s"});
    let error = bed.apply("package", &step).unwrap_err();
    let hint = error.hint().unwrap();
    assert!(
        hint.contains(&format!("process {}", holder.id())),
        "{error}: {hint}"
    );
    assert!(hint.contains("lockTimeout"));
    drop(holder.stdin.take());
    holder.wait().unwrap();
    bed.converge("package", &step);
}

#[test]
fn a_root_without_a_database_and_links_are_refused() {
    let bed = Bed::new();
    let told = bed.fails("package", &json!({"name": "tiny"}));
    assert!(
        told.contains("there is no `/var/lib/dpkg/status`"),
        "{told}"
    );
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    symlink(&bed.outside, bed.root.join("usr")).unwrap();
    let told = bed.fails("package", &json!({"name": "tiny"}));
    assert!(told.contains("it is a link"), "{told}");
}

/// Settings of apt below the root cannot start programs on the machine.
#[test]
fn hooks_of_the_root_are_not_run() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    let mark = bed.outside.join("hooked");
    bed.write(
        "etc/apt/apt.conf.d/99hook",
        &format!("DPkg::Pre-Invoke {{ \"touch {mark}\"; }};\n"),
    );
    bed.write(
        "etc/apt/apt.conf",
        &format!("APT::Update::Pre-Invoke {{ \"touch {mark}\"; }};\n"),
    );
    bed.converge("package", &json!({"name": "tiny", "refresh": true}));
    assert!(!mark.exists());
}

/// Remembers the programs that are started, and starts them.
struct Watched {
    inner: Arc<dyn Processes>,
    started: Mutex<Vec<portolan_modules::Command>>,
}

impl Processes for Watched {
    fn run(
        &self,
        command: &portolan_modules::Command,
        stop: &CancellationToken,
    ) -> Result<Exit, ModuleError> {
        self.started.lock().unwrap().push(command.clone());
        self.inner.run(command, stop)
    }
}

/// No question is asked, changed settings are kept, and no service is restarted behind the book's back.
#[test]
fn programs_of_apt_ask_nothing_and_restart_nothing() {
    let Some(mut system) = System::new() else {
        return;
    };
    let watched = Arc::new(Watched {
        inner: Arc::clone(&system.bed.host.processes),
        started: Mutex::default(),
    });
    system.bed.host.processes = watched.clone();
    system.bed.converge("package", &json!({"name": "tiny"}));
    let started = watched.started.lock().unwrap();
    let mut installs = started.iter().filter_map(|command| match &command.program {
        Program::Arguments(words) if words.contains(&"--yes".to_owned()) => Some((words, command)),
        _ => None,
    });
    let (words, command) = installs.next_back().unwrap();
    for option in [
        "Dpkg::Options::=--force-confdef",
        "Dpkg::Options::=--force-confold",
    ] {
        assert!(words.contains(&option.to_owned()), "{words:?}");
    }
    assert_eq!(command.environment["DEBIAN_FRONTEND"], "noninteractive");
    assert_eq!(command.environment["NEEDRESTART_SUSPEND"], "1");
}

#[test]
fn a_check_knows_packages_of_earlier_steps() {
    let Some(system) = System::new() else {
        return;
    };
    let bed = &system.bed;
    let mut ahead = Ahead::default();
    ahead.add(
        &bed.plan("package", &json!({"name": "tiny"}))
            .unwrap()
            .predictions,
    );
    let view = View {
        host: &bed.host,
        ahead,
    };
    let plan = action("package", &json!({"name": "tiny"}))
        .plan(&view)
        .unwrap();
    assert!(
        matches!(plan.outcome, PlannedOutcome::Unchanged),
        "{plan:?}"
    );
}

#[test]
fn parameters_that_do_not_fit_are_told() {
    assert!(faults("package", &json!({"name": "-y"})).contains("not the name of a package"));
    assert!(
        faults("package", &json!({"names": ["a", "b/c"]})).contains("not the name of a package")
    );
    assert!(faults("package", &json!({"name": "a", "version": "1 2"})).contains("no version has"));
    assert!(
        faults("package", &json!({"names": ["a", "b"], "version": "1"})).contains("one package")
    );
    assert!(
        faults(
            "package",
            &json!({"name": "a", "version": "1", "state": "latest"})
        )
        .contains("state: present")
    );
}
