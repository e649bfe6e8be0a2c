//! Many at once: a graph with failures, readers that die, commands that wait, builds beside a collection.
//!
//! `./test --long` does each count in full.

mod portolan;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portolan::project::{Project, statuses};
use portolan::{wait_for, wait_until};
use serde_json::Value;

/// How often four builds and a collection run at once, and with `PORTOLAN_LONG`.
const TOGETHER: [usize; 2] = [4, 100];

/// The longest time between a fact and its event. 50 ms are asked for and printed; a loaded machine gets more.
const LONGEST_DELAY: Duration = Duration::from_secs(2);

fn artifact(name: &str, needs: &str, script: &str) -> String {
    format!(
        "  - name: {name}\n    image: registry.example/{name}\n    needs: [{needs}]\n    command: {{run: [sh, -c, '{script}'], output: files, inputs: [web/index.html], set: {{NAME: {name}}}}}\n"
    )
}

const MAKE: &str = "echo a > $PORTOLAN_OUT/a";

/// Five groups of ten: the first of each fails, the next two need it, one of these indirectly.
#[test]
fn a_graph_of_fifty_with_five_failures_builds_everything_else() {
    let mut artifacts = String::new();
    for group in 0..5 {
        let name = |number: usize| format!("a{group}{number}");
        artifacts += &artifact(&name(0), "", &format!("echo cause {group} >&2; exit 7"));
        artifacts += &artifact(&name(1), &name(0), MAKE);
        artifacts += &artifact(&name(2), &name(1), MAKE);
        for number in 3..10 {
            let need = if number > 3 {
                name(number - 1)
            } else {
                String::new()
            };
            artifacts += &artifact(&name(number), &need, MAKE);
        }
    }
    let project = Project::new(&artifacts);
    let (result, code) = project.build(&["--jobs", "8"]);
    assert_eq!(code, 1);
    let mut counts = BTreeMap::new();
    for (name, status) in statuses(&result) {
        let expected = match &name[2..] {
            "0" => "failed",
            "1" | "2" => "skipped",
            _ => "built",
        };
        assert_eq!(status, expected, "{name}");
        *counts.entry(status).or_insert(0) += 1;
    }
    assert_eq!(
        counts,
        BTreeMap::from([("built", 35), ("failed", 5), ("skipped", 10)])
    );
    let again = project.run(&["ship", "build", "--jobs", "8"]);
    assert_eq!(again.code, 1, "{again}");
    for group in 0..5 {
        let cause = format!("cause {group}");
        assert_eq!(
            again.stdout.matches(&cause).count(),
            1,
            "each cause once: {again}"
        );
        // What a failure skipped stands with it.
        let block = again
            .stdout
            .split(&format!("✗ a{group}0"))
            .nth(1)
            .unwrap_or_default();
        let block = block.split("✗ ").next().unwrap_or_default();
        for skipped in [format!("a{group}1"), format!("a{group}2")] {
            assert!(block.contains(&skipped), "{skipped}: {again}");
        }
    }
    assert!(
        again.stdout.contains("35 cached, 5 failed, 10 skipped"),
        "{again}"
    );
}

/// A build whose events are read through its socket.
struct Running {
    project: Project,
    build: Option<Child>,
    socket: PathBuf,
}

impl Running {
    fn start(artifacts: &str) -> Self {
        let project = Project::new(artifacts);
        let build = project
            .command(&["ship", "build", "--jobs", "8"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        let socket = || {
            let runs = fs::read_dir(project.path(".portolan/portolan/runs")).ok()?;
            let mut sockets = runs.flatten().map(|run| run.path().join("api.sock"));
            sockets.find(|socket| UnixStream::connect(socket).is_ok())
        };
        wait_until(|| socket().is_some());
        Self {
            socket: socket().expect("it is there"),
            build: Some(build),
            project,
        }
    }

    /// Asks for events; the answer follows the head.
    fn events(&self, query: &str) -> BufReader<UnixStream> {
        let mut stream = UnixStream::connect(&self.socket).expect("it listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a timeout");
        let request =
            format!("GET /api/ship/v1/events?{query} HTTP/1.0\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while reader.read_line(&mut line).expect("a head") > 2 {
            line.clear();
        }
        reader
    }

    fn end(&mut self) -> portolan::Answer {
        wait_for(self.build.take().expect("it was started"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut build) = self.build.take() {
            let _ = build.kill();
            let _ = build.wait();
        }
    }
}

/// Each reader gets a few hundred bytes and dies in the middle of a line; the next goes on after the last whole one.
#[test]
fn a_reader_that_dies_a_thousand_times_reads_the_same_stream() {
    let script = "i=0; while test $i -lt 1500; do echo line $i; i=$((i+1)); done; while ! test -e go; do sleep 0.02; done; echo a > $PORTOLAN_OUT/a";
    let mut running = Running::start(&artifact("noisy", "", script));
    let all = |running: &Running| {
        let mut text = String::new();
        running
            .events("follow=false")
            .read_to_string(&mut text)
            .expect("events");
        text
    };
    wait_until(|| all(&running).contains("line 1499\""));
    let whole = all(&running);
    let (mut read, mut last, mut deaths) = (String::new(), 0, 0_u64);
    while read.len() < whole.len() {
        let mut reader = running.events(&format!("follow=false&after={last}"));
        let mut piece = vec![0; 150 + usize::try_from(deaths * 37 % 200).expect("small")];
        let mut length = 0;
        while length < piece.len() {
            match reader.read(&mut piece[length..]).expect("bytes") {
                0 => break,
                count => length += count,
            }
        }
        let text = String::from_utf8_lossy(&piece[..length]);
        let lines = text.rfind('\n').map_or("", |end| &text[..=end]);
        if let Some(line) = lines.lines().last() {
            let event: Value = serde_json::from_str(line).expect("JSON");
            last = event["seq"].as_u64().expect("a number");
        }
        read.push_str(lines);
        deaths += 1;
    }
    assert_eq!(read, whole);
    assert!(deaths >= 1000, "{deaths} readers died");
    running.project.write("go", "");
    assert_eq!(running.end().code, 0);
}

fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
}

#[test]
fn starts_and_ends_are_told_at_once_while_eight_commands_wait() {
    let script = "date +%s%N > started-$NAME; while ! test -e go-$NAME; do sleep 0.01; done; echo a > $PORTOLAN_OUT/a; date +%s%N > ended-$NAME";
    let artifacts: String = (0..8)
        .map(|number| artifact(&format!("w{number}"), "", script))
        .collect();
    let mut running = Running::start(&artifacts);
    let mut events = running.events("follow=true");
    let reader = std::thread::spawn(move || {
        let mut seen = BTreeMap::new();
        let mut line = String::new();
        while events.read_line(&mut line).unwrap_or(0) > 0 {
            let at = now();
            if let Ok(event) = serde_json::from_str::<Value>(&line) {
                let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
                seen.entry((text("key"), text("event"))).or_insert(at);
            }
            line.clear();
        }
        seen
    });
    let names: Vec<String> = (0..8).map(|number| format!("w{number}")).collect();
    let fact = |what: &str, name: &str| {
        let text = fs::read_to_string(running.project.path(&format!("{what}-{name}"))).ok()?;
        text.trim().parse().ok().map(Duration::from_nanos)
    };
    wait_until(|| names.iter().all(|name| fact("started", name).is_some()));
    for name in &names {
        running.project.write(&format!("go-{name}"), "");
    }
    let facts: Vec<(Duration, Duration)> = {
        wait_until(|| names.iter().all(|name| fact("ended", name).is_some()));
        let both = |name: &String| Some((fact("started", name)?, fact("ended", name)?));
        names.iter().filter_map(both).collect()
    };
    assert_eq!(running.end().code, 0);
    let seen = reader.join().expect("no panic");
    let mut slowest = Duration::ZERO;
    for (name, (started, ended)) in names.iter().zip(facts) {
        for (event, fact) in [("started", started), ("done", ended)] {
            let key = (format!("artifact/{name}"), event.to_owned());
            let told = seen.get(&key).expect("an event");
            slowest = slowest.max(told.saturating_sub(fact));
        }
    }
    eprintln!("the slowest of 16 events came {slowest:?} after the fact");
    assert!(slowest < LONGEST_DELAY, "{slowest:?}");
}

#[test]
fn four_builds_and_a_collection_at_once_break_nothing() {
    let is_long = std::env::var_os("PORTOLAN_LONG").is_some();
    let times = TOGETHER[usize::from(is_long)];
    let mut artifacts = artifact("made", "", MAKE);
    for number in 0..4 {
        let files = format!(
            "  - {{name: files{number}, image: x{number}, oci: {{context: web, labels: {{n: \"{number}\"}}}}}}\n"
        );
        artifacts += &files;
    }
    let project = Project::new(&artifacts);
    assert_eq!(project.build(&[]).1, 0, "the store is there");
    for time in 0..times {
        // Something new to build, and something old to collect.
        project.write("web/index.html", &format!("page {time}"));
        let spawn = |args: &[&str]| {
            let mut command = project.command(args);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command
                .spawn()
                .expect("the binary was built with this test")
        };
        let mut all: Vec<Child> = (0..4).map(|_| spawn(&["ship", "build"])).collect();
        all.push(spawn(&["ship", "gc", "--max-age", "0s"]));
        for child in all {
            let answer = wait_for(child);
            assert_eq!(answer.code, 0, "time {time}: {answer}");
        }
        let (result, code) = project.build(&[]);
        assert_eq!(code, 0, "time {time}: {result:#}");
        for image in result["artifacts"].as_array().expect("a list") {
            assert_eq!(image["status"], "cached", "time {time}: {result:#}");
            assert_whole(&project, image["digest"].as_str().expect("a digest"));
        }
    }
    eprintln!(
        "four builds and a collection at once: {times} of {}",
        TOGETHER[1]
    );
}

/// Everything that an image names is in the store.
fn assert_whole(project: &Project, digest: &str) {
    let blob = digest.replace("sha256:", "");
    let path = project.path(&format!(".portolan/blobs/sha256/{blob}"));
    let text = fs::read(&path).unwrap_or_else(|error| unreachable!("{digest}: {error}"));
    // Layers are no documents.
    let Ok(document) = serde_json::from_slice::<Value>(&text) else {
        return;
    };
    let lists = ["manifests", "layers"].map(|field| document[field].as_array().cloned());
    let parts = lists
        .into_iter()
        .flatten()
        .flatten()
        .chain(document.get("config").cloned());
    for part in parts {
        if let Some(digest) = part["digest"].as_str() {
            assert_whole(project, digest);
        }
    }
}
