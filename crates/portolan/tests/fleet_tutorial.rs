//! The tutorials of `docs/fleet.md` and `docs/fleet-live.md`, command by command, with the files of `examples/fleet`.

mod portolan;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::portolan::{Answer, wait_until};

const PAGE: &str = include_str!("../../../docs/fleet.md");
const LIVE_PAGE: &str = include_str!("../../../docs/fleet-live.md");

/// The commands of a part of a page, without what is said about them.
fn commands(page: &'static str, part: &str) -> Vec<&'static str> {
    let (_, text) = page.split_once(&format!("## {part}\n")).expect(part);
    let text = text.split_once("\n## ").map_or(text, |(text, _)| text);
    let lines = text.lines().filter_map(|line| line.strip_prefix("$ "));
    let commands = lines.map(|line| line.split_once(" #").map_or(line, |(line, _)| line).trim());
    commands.collect()
}

/// Somebody who follows the page.
struct Reader {
    directory: tempfile::TempDir,
    sandbox: Option<Child>,
}

impl Reader {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fleet");
        copy(&examples, &directory.path().join("examples/fleet"));
        Self {
            directory,
            sandbox: None,
        }
    }

    fn place(&self) -> PathBuf {
        self.directory.path().join("examples/fleet")
    }

    /// A command line in the directory of the examples, with a home of its own.
    fn shell(&self, line: &str) -> Answer {
        let program = Path::new(env!("CARGO_BIN_EXE_portolan"));
        let programs = program.parent().expect("a directory").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(self.place())
            .env("PATH", format!("{programs}:{path}"))
            .env("XDG_CONFIG_HOME", self.directory.path().join("config"))
            .stdin(Stdio::null())
            .output();
        Answer::of(&output.expect("a shell"))
    }

    /// Starts a sandbox, and logs in as it says.
    fn start_sandbox(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args(words)
            .arg("--directory")
            .arg(self.directory.path().join("sandbox"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        let stderr = child.stderr.take().expect("it was asked for");
        self.sandbox = Some(child);
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let login = lines.find(|line| line.contains("portolan fleet login"));
        let login = login.expect("the sandbox starts");
        // Whoever stops reading would block the sandbox.
        std::thread::spawn(move || lines.for_each(drop));
        let answer = self.shell(login.trim());
        assert_eq!(answer.code, 0, "{login}: {answer}");
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(mut sandbox) = self.sandbox.take() {
            let _ = sandbox.kill();
            let _ = sandbox.wait();
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("the examples") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, target).expect("copied");
        }
    }
}

/// A check that finds changes ends with 1, everything else with 0.
fn assert_ended(line: &str, answer: &Answer) {
    let expected = i32::from(line.contains("--check"));
    assert_eq!(answer.code, expected, "{line}: {answer}");
}

#[test]
fn five_minutes_on_one_machine_go_as_the_page_says() {
    let reader = Reader::new();
    let mut last = String::new();
    for line in commands(PAGE, "Five minutes")
        .into_iter()
        .filter(|line| !line.starts_with("cd "))
    {
        let answer = reader.shell(line);
        assert_ended(line, &answer);
        last = answer.stdout;
    }
    assert!(last.contains("4 ok") && !last.contains("changed"), "{last}");
}

#[test]
fn three_nodes_with_etcd_and_a_web_service_go_as_the_page_says() {
    let mut reader = Reader::new();
    let mut run = String::new();
    let mut runs_of_etcd = 0;
    for line in commands(PAGE, "Many nodes, to try") {
        if line.starts_with("cd ") {
            continue;
        }
        if line.starts_with("portolan fleet sandbox") {
            reader.start_sandbox(line);
            continue;
        }
        // The page shows the name of somebody's run.
        let words: Vec<&str> = line.split_whitespace().collect();
        let line = match words[..] {
            ["portolan", "fleet", "logs", _, ..] => {
                format!("portolan fleet logs {run} {}", words[4..].join(" "))
            }
            _ => line.to_owned(),
        };
        let answer = reader.shell(&line);
        assert_ended(&line, &answer);
        if line.starts_with("portolan fleet runs list") {
            let found = answer
                .stdout
                .split_whitespace()
                .find(|word| word.starts_with("etcd-"));
            run = found.unwrap_or_else(|| panic!("{answer}")).to_owned();
        }
        if line.contains("etcd.yaml") && !line.contains("--check") {
            runs_of_etcd += 1;
            let expected = if runs_of_etcd == 1 {
                "3 changed"
            } else {
                "3 ok"
            };
            assert!(answer.stdout.contains(expected), "{line}: {answer}");
        }
    }
    let root = reader.directory.path().join("sandbox/nodes");
    for node in ["node-1", "node-2", "node-3"] {
        let settings = fs::read_to_string(root.join(node).join("root/etc/default/etcd"));
        let settings = settings.expect("the settings of etcd");
        let members =
            "node-1=http://node-1:2380,node-2=http://node-2:2380,node-3=http://node-3:2380";
        assert!(settings.contains(members), "{settings}");
        assert!(
            settings.contains(&format!("ETCD_NAME={node}\n")),
            "{settings}"
        );
    }
    assert!(!root.join("node-1/root/etc/web").exists());
    let version = fs::read_to_string(root.join("node-2/root/etc/web/version"));
    assert_eq!(version.expect("the web service"), "1.5.0\n");
}

#[test]
fn a_fleet_that_acts_by_itself_goes_as_the_page_says() {
    let mut reader = Reader::new();
    let mut printed = String::new();
    for line in commands(LIVE_PAGE, "Try it") {
        if line.starts_with("portolan fleet sandbox") {
            reader.start_sandbox(line);
        } else if !line.starts_with("cd ") {
            let answer = reader.shell(line);
            assert_eq!(answer.code, 0, "{line}: {answer}");
            printed.push_str(&answer.stdout);
        }
    }
    assert!(
        printed.contains("label: \"north/front\"\n  used       all nodes Variable label"),
        "{printed}"
    );
    assert!(
        printed.contains("→ runs the TaskBook note with nodes=2, run=\"web-1\""),
        "{printed}"
    );
    let releases = |node: &str| {
        let file = format!("sandbox/nodes/{node}/root/etc/releases");
        fs::read_to_string(reader.directory.path().join(file)).unwrap_or_default()
    };
    for node in ["node-2", "node-3"] {
        wait_until(|| releases(node).starts_with("north/front web-"));
        assert!(
            releases(node).ends_with(" changed 2\n"),
            "{}",
            releases(node)
        );
    }
    wait_until(|| {
        let runs = reader.shell("portolan fleet runs list -n shop --book note");
        runs.stdout.contains("succeeded")
    });
    let file = |node: &str, path: &str| {
        let root = reader.directory.path().join("sandbox/nodes").join(node);
        root.join("root").join(path)
    };
    let motd = file("node-2", "etc/motd");
    let is_restored = || {
        let text = fs::read_to_string(&motd).unwrap_or_default();
        text.contains("this machine is looked after\n")
    };
    wait_until(is_restored);
    // A beacon waits while a run changes what it watches: what is changed meanwhile is not told apart from the run.
    let sees_good = |beacon: &str| {
        let seen = reader.shell("portolan fleet beacons -n shop").stdout;
        let mut of_node = seen.lines().filter(|line| line.contains(" node-2 "));
        of_node.any(|line| line.starts_with(beacon) && line.contains(" yes "))
    };
    wait_until(|| sees_good("motd"));
    fs::remove_file(&motd).expect("removed");
    wait_until(is_restored);
    // What was edited by hand is a drift of its book, which is put right.
    let banner = file("node-2", "etc/banner");
    let is_as_the_book_says =
        || fs::read_to_string(&banner).is_ok_and(|text| text == "only for friends\n");
    wait_until(is_as_the_book_says);
    wait_until(|| sees_good("banner"));
    fs::write(&banner, "for everybody\n").expect("written");
    wait_until(is_as_the_book_says);
    let token = fs::read_to_string(file("node-1", "etc/web-token")).expect("a token");
    assert!(!token.trim().is_empty());
    for node in ["node-1", "node-2", "node-3"] {
        let given = fs::read_to_string(file(node, "etc/token"));
        assert_eq!(given.expect("the token"), token, "{node}");
    }
}
