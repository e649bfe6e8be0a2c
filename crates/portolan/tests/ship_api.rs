//! The event API of a running build: who may ask, and what is answered.

mod portolan;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use portolan::project::Project;
use portolan::{wait_for, wait_until};
use serde_json::Value;

/// A build that waits at a gate until the file `go` is there, and is served meanwhile.
struct Served {
    project: Arc<Project>,
    build: Option<Child>,
    address: String,
    token: String,
}

/// Waits in its command for a file.
fn gated(name: &str, more: &str) -> String {
    format!(
        "  - name: {name}\n    image: x\n{more}    command: {{run: [sh, -c, 'echo {name} began; while ! test -e go-{name}; do sleep 0.02; done; echo a > $PORTOLAN_OUT/a'], output: files, inputs: [web/index.html], set: {{NAME: {name}}}}}\n"
    )
}

impl Served {
    fn start(artifacts: &str) -> Self {
        let project = Project::new(artifacts);
        let build = project
            .command(&["ship", "build", "--jobs", "8", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        Self::of(Arc::new(project), build)
    }

    /// Waits until a process serves the newest run of a project.
    fn of(project: Arc<Project>, build: Child) -> Self {
        let session = || -> Option<Value> {
            let runs = fs::read_dir(project.path(".portolan/portolan/runs")).ok()?;
            let files = runs
                .flatten()
                .filter_map(|run| fs::read(run.path().join("session.json")).ok());
            let mut sessions = files.filter_map(|file| serde_json::from_slice(&file).ok());
            // A server that was killed leaves its file.
            sessions.find(|session: &Value| {
                let server = session["server"].as_str().unwrap_or_default();
                TcpStream::connect(server.trim_start_matches("http://")).is_ok()
            })
        };
        wait_until(|| session().is_some());
        let session = session().expect("it is there");
        let text = |key: &str| session[key].as_str().expect("a text").to_owned();
        Self {
            address: text("server").trim_start_matches("http://").to_owned(),
            token: text("token"),
            build: Some(build),
            project,
        }
    }

    /// Sends a request as it is, and returns the status and the body.
    fn raw(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a timeout");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status.unwrap_or(0), body.to_owned())
    }

    fn get(&self, target: &str) -> (u16, String) {
        self.send("GET", target, &[], "")
    }

    /// Sends a request with the token and the right host, and with more headers.
    fn send(&self, method: &str, target: &str, headers: &[&str], body: &str) -> (u16, String) {
        let (address, token, length) = (&self.address, &self.token, body.len());
        let more: String = headers.iter().flat_map(|header| [header, "\r\n"]).collect();
        self.raw(&format!(
            "{method} /api/ship/v1/{target} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\ncontent-length: {length}\r\n{more}\r\n{body}"
        ))
    }

    fn state(&self, target: &str) -> Value {
        let (status, body) = self.get(target);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap_or_else(|_| unreachable!("{body}"))
    }

    fn word(&self, artifact: &str) -> String {
        let state = self.state("state");
        state["artifacts"][artifact]["state"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    fn open(&self, name: &str) {
        self.project.write(&format!("go-{name}"), "");
    }

    fn end(&mut self) -> portolan::Answer {
        wait_for(self.build.take().expect("it was started"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut build) = self.build.take() {
            let _ = build.kill();
            let _ = build.wait();
        }
    }
}

#[test]
fn states_are_shown_exactly_at_each_gate_and_at_every_number_later() {
    let artifacts = gated("a", "") + &gated("b", "") + &gated("c", "    needs: [a]\n");
    let mut served = Served::start(&artifacts);
    let words = |state: &Value| {
        ["a", "b", "c"].map(|name| {
            state["artifacts"][name]["state"]
                .as_str()
                .unwrap_or("")
                .to_owned()
        })
    };
    wait_until(|| served.word("a") == "in progress" && served.word("b") == "in progress");
    let first = served.state("state");
    assert_eq!(words(&first), ["in progress", "in progress", "not started"]);
    assert_eq!(first["artifacts"]["c"]["skaffold"], "NotStarted");
    assert_eq!(first["phase"], "running");
    let first_seq = first["seq"].as_u64().expect("a number");
    served.open("a");
    wait_until(|| served.word("c") == "in progress");
    let second = served.state("state");
    assert_eq!(words(&second), ["complete", "in progress", "in progress"]);
    // Any moment of the past.
    let past = served.state(&format!("state?at={first_seq}"));
    assert_eq!(words(&past), words(&first));
    assert_eq!(served.state("state?at=1")["seq"], 1);
    assert_eq!(served.get("state?at=99999").0, 404);
    let (status, log) = served.get("log?artifact=b");
    assert_eq!((status, log.contains("b began")), (200, true), "{log}");
    assert_eq!(served.get("log?artifact=nothing").0, 404);
    let (status, runs) = served.get("runs");
    assert!(status == 200 && runs.contains("\"live\":true"), "{runs}");
    served.open("b");
    served.open("c");
    let answer = served.end();
    assert_eq!(answer.code, 0, "{answer}");
    let runs = fs::read_dir(served.project.path(".portolan/portolan/runs")).expect("runs");
    let run = runs.flatten().next().expect("a run").path();
    assert!(
        !run.join("session.json").exists(),
        "nobody answers any more"
    );
}

#[test]
fn events_are_lines_or_server_sent_and_go_on_after_a_number() {
    let mut served = Served::start(&gated("a", ""));
    wait_until(|| served.word("a") == "in progress");
    let (status, some) = served.get("events?follow=false");
    assert_eq!(status, 200, "{some}");
    let seqs = |text: &str| -> Vec<u64> {
        let lines = text.lines().filter(|line| line.starts_with('{'));
        lines
            .map(|line| {
                serde_json::from_str::<Value>(line).expect("JSON")["seq"]
                    .as_u64()
                    .expect("a number")
            })
            .collect()
    };
    // Bodies may come in chunks: their lengths stand on lines of their own.
    let seen = seqs(&some);
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    let open = |served: &Served| {
        served.open("a");
    };
    let token = served.token.clone();
    let address = served.address.clone();
    let follower = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(&address).expect("it listens");
        let request = format!(
            "GET /api/ship/v1/events HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\naccept: text/event-stream\r\nlast-event-id: 2\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    });
    open(&served);
    assert_eq!(served.end().code, 0);
    let text = follower.join().expect("no panic");
    let ids: Vec<u64> = text
        .lines()
        .filter_map(|line| line.strip_prefix("id: ")?.parse().ok())
        .collect();
    assert_eq!(ids, (3..3 + ids.len() as u64).collect::<Vec<_>>(), "{text}");
    assert!(text.contains("\"event\":\"ended\""), "{text}");
    assert!(text.contains("text/event-stream"), "{text}");
}

/// What is wrong with a request is answered as JSON, whatever it is.
#[test]
fn errors_are_json_everywhere() {
    let mut served = Served::start(&gated("a", ""));
    for (method, target, status, message) in [
        ("GET", "events?after=x", 400, "after"),
        (
            "GET",
            "events?afterwards=1",
            400,
            "unknown field `afterwards`",
        ),
        ("GET", "events?at=1", 400, "unknown field `at`"),
        ("GET", "state?at=-1", 400, "at"),
        ("GET", "state?at=999999", 404, "the last event"),
        ("GET", "runs?run=1", 400, "unknown field `run`"),
        ("GET", "log", 400, "?artifact=NAME"),
        ("GET", "log?artifact=b", 404, "no output"),
        ("GET", "state?run=none", 404, "no such run"),
        ("GET", "nothing", 404, "nothing at this path"),
        ("DELETE", "state", 405, "does not take this method"),
    ] {
        let (code, body) = served.send(method, target, &[], "");
        let error: Value = serde_json::from_str(&body).unwrap_or_else(|_| unreachable!("{body}"));
        assert_eq!(
            (code, &error["kind"]),
            (status, &"Error".into()),
            "{target}: {body}"
        );
        let text = error["error"].as_str().unwrap_or_default();
        assert!(text.contains(message), "{target}: {body}");
    }
    served.open("a");
    assert_eq!(served.end().code, 0);
}

/// The four attacks: a name that was made to point here, a form of another site, a body that needs no permission to be
/// sent, and another user of the machine.
#[test]
fn whoever_should_not_ask_is_refused() {
    let served = Served::start(&gated("a", ""));
    wait_until(|| served.word("a") == "in progress");
    let (address, token) = (served.address.clone(), served.token.clone());
    let port = address.rsplit(':').next().expect("a port");
    let cancel = r#"{"action":"cancel"}"#;
    let request = |host: &str, more: &str, body: &str| {
        let length = body.len();
        format!(
            "POST /api/ship/v1/control HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n{more}\r\n{body}"
        )
    };
    let bearer = format!("authorization: Bearer {token}\r\n");
    let json = "content-type: application/json\r\n";
    // DNS rebinding.
    let (status, _) = served.raw(&request(
        &format!("evil.example:{port}"),
        &format!("{bearer}{json}"),
        cancel,
    ));
    assert_eq!(status, 421);
    let (status, _) = served.raw(&request("127.0.0.1", &format!("{bearer}{json}"), cancel));
    assert_eq!(status, 421, "another port");
    // A form of another site.
    for foreign in [
        "origin: https://evil.example\r\n",
        "origin: null\r\n",
        "sec-fetch-site: cross-site\r\n",
    ] {
        let (status, _) = served.raw(&request(
            &address,
            &format!("{bearer}{json}{foreign}"),
            cancel,
        ));
        assert_eq!(status, 403, "{foreign}");
    }
    // A body that a browser sends without asking.
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        let (status, _) = served.raw(&request(
            &address,
            &format!("{bearer}content-type: {kind}\r\n"),
            cancel,
        ));
        assert_eq!(status, 415, "{kind}");
    }
    // Another user has no token: the file is the owner's alone.
    for wrong in [
        "",
        "authorization: Bearer 0000\r\n",
        "authorization: Basic YTpi\r\n",
    ] {
        let (status, body) = served.raw(&request(&address, &format!("{json}{wrong}"), cancel));
        assert_eq!(status, 401, "{body}");
        assert!(!body.contains(&token));
    }
    for target in ["state", "events", "log?artifact=a", "runs"] {
        let (status, _) = served.raw(&format!(
            "GET /api/ship/v1/{target} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
        ));
        assert_eq!(status, 401, "{target}");
    }
    let runs = fs::read_dir(served.project.path(".portolan/portolan/runs")).expect("runs");
    for run in runs.flatten() {
        let mode = |path: &std::path::Path| {
            fs::metadata(path)
                .expect("it is there")
                .permissions()
                .mode()
                & 0o777
        };
        assert_eq!(mode(&run.path()), 0o700);
        assert_eq!(mode(&run.path().join("session.json")), 0o600);
    }
    // Nothing of that did anything.
    assert_eq!(served.word("a"), "in progress");
    assert!(
        !served
            .send("OPTIONS", "state", &["origin: https://evil.example"], "")
            .1
            .contains("access-control")
    );
}

#[test]
fn the_owner_asks_through_a_socket_without_a_token() {
    let mut served = Served::start(&gated("a", ""));
    wait_until(|| served.word("a") == "in progress");
    let runs = fs::read_dir(served.project.path(".portolan/portolan/runs")).expect("runs");
    let run = runs.flatten().next().expect("a run").path();
    let socket = run.join("api.sock");
    let mode = |path: &Path| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    // Another user can neither reach it nor open it.
    assert_eq!((mode(&run), mode(&socket)), (0o700, 0o600));
    let ask = |headers: &str| {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        let request =
            format!("GET /api/ship/v1/state HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    let answer = ask("host: localhost\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\"in progress\""), "{answer}");
    let answer = ask("host: evil.example\r\n");
    assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
    let answer = ask("host: localhost\r\norigin: http://evil.example\r\n");
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    served.open("a");
    assert_eq!(served.end().code, 0);
    assert!(!socket.exists(), "nobody answers any more");
}

#[test]
fn one_artifact_or_all_are_cancelled_and_a_late_order_is_told_the_outcome() {
    let mut served = Served::start(&(gated("a", "") + &gated("b", "") + &gated("c", "")));
    wait_until(|| {
        ["a", "b", "c"]
            .iter()
            .all(|name| served.word(name) == "in progress")
    });
    let json = ["content-type: application/json"];
    let order = |text: &str| served.send("POST", "control", &json, text);
    served.open("c");
    wait_until(|| served.word("c") == "complete");
    let (status, late) = order(r#"{"requestId":"7","action":"cancel","artifact":"c"}"#);
    let late: Value = serde_json::from_str(&late).expect("JSON");
    assert_eq!(
        (status, &late["accepted"], &late["requestId"]),
        (200, &false.into(), &"7".into()),
        "{late}"
    );
    assert_eq!(late["state"]["state"], "complete");
    let (status, one) = order(r#"{"action":"cancel","artifact":"a"}"#);
    assert!(status == 200 && one.contains("\"accepted\":true"), "{one}");
    wait_until(|| served.word("a") == "cancelled");
    assert_eq!(served.word("b"), "in progress");
    assert_eq!(order(r#"{"action":"cancel","artifact":"nothing"}"#).0, 404);
    assert_eq!(order(r#"{"action":"explode"}"#).0, 400);
    assert_eq!(order(r#"{"action":"cancel"}"#).0, 200);
    let answer = served.end();
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stdout.contains("1 built, 2 cancelled"), "{answer}");
}

/// The second attempt of `a` goes well because the file `fixed` is there by then; `b` holds the run open.
#[test]
fn an_artifact_that_failed_is_tried_again_with_what_it_skipped() {
    let flaky = "  - name: a\n    image: x\n    command: {run: [sh, -c, 'test -e fixed || exit 3; echo a > $PORTOLAN_OUT/a'], output: files, inputs: [web/index.html], hermetic: false}\n";
    let dependent = "  - name: c\n    image: z\n    needs: [a]\n    oci: {context: web}\n";
    let mut served = Served::start(&format!("{flaky}{dependent}{}", gated("b", "")));
    wait_until(|| served.word("a") == "failed" && served.word("c") == "skipped");
    let json = ["content-type: application/json"];
    let order = |text: &str| {
        let (status, answer) = served.send("POST", "control", &json, text);
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        (status, answer)
    };
    let (status, running) = order(r#"{"action":"retry","artifact":"b"}"#);
    assert_eq!(
        (status, &running["accepted"]),
        (200, &false.into()),
        "{running}"
    );
    assert_eq!(order(r#"{"action":"retry"}"#).0, 400);
    served.project.write("fixed", "");
    let (status, again) = order(r#"{"action":"retry","artifact":"a"}"#);
    assert_eq!((status, &again["accepted"]), (200, &true.into()), "{again}");
    assert_eq!(
        again["queued"],
        serde_json::json!(["artifact/a", "artifact/c"])
    );
    wait_until(|| served.word("a") == "complete" && served.word("c") == "complete");
    served.open("b");
    let answer = served.end();
    assert_eq!(answer.code, 0, "{answer}");
    assert!(answer.stdout.contains("3 built"), "{answer}");
}

/// A test, a step and a verification may have the same name: each stands where it is.
#[test]
fn every_stage_has_a_place_of_its_own_in_the_state() {
    let stages = "  tests:\n  - {name: same, artifacts: [a], command: {run: ['true']}}\n  verify:\n  - {name: same, command: {run: ['false']}}\n";
    let document = format!("  - {{name: a, image: x, oci: {{context: web}}}}\n{stages}");
    let project = Arc::new(Project::new(&document));
    let tested = project.run(&["ship", "test"]);
    assert_eq!(tested.code, 0, "{tested}");
    let state = ended_state(&project);
    assert_eq!(state["artifacts"]["a"]["state"], "complete", "{state:#}");
    assert_eq!(state["tests"]["same/a"]["state"], "complete", "{state:#}");
    let verified = project.run(&["ship", "verify"]);
    assert_eq!(verified.code, 1, "{verified}");
    let state = ended_state(&project);
    assert_eq!(
        state["verifications"]["same"]["state"], "failed",
        "{state:#}"
    );
    // The server before was killed, and is replaced by another one.
    assert_eq!(ended_state(&project), state);
}

/// The state of the newest run, as `portolan events` serves it when the run has ended.
fn ended_state(project: &Arc<Project>) -> Value {
    let server = project
        .command(&["events", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary was built with this test");
    let served = Served::of(Arc::clone(project), server);
    served.state("state")
}

/// Three places: one that takes all three never runs beside another, and one that asks for more than there are runs alone.
#[test]
fn a_heavy_artifact_takes_the_places_of_several() {
    let artifact = |name: &str, weight: usize| {
        format!(
            "  - name: {name}\n    image: x\n    weight: {weight}\n    command: {{run: [sh, -c, 'echo + {name} >> log; sleep 0.1; echo - {name} >> log; echo a > $PORTOLAN_OUT/a'], output: files, inputs: [web/index.html], hermetic: false, set: {{NAME: {name}}}}}\n"
        )
    };
    let project = Project::new(
        &(artifact("a", 1) + &artifact("b", 3) + &artifact("c", 1) + &artifact("d", 9)),
    );
    let built = project.run(&["ship", "build", "--jobs", "3"]);
    assert_eq!(built.code, 0, "{built}");
    let log = fs::read_to_string(project.path("log")).expect("a log");
    for heavy in ["b", "d"] {
        let alone = format!("+ {heavy}\n- {heavy}\n");
        assert!(log.contains(&alone), "{log}");
    }
}

/// The body of an answer that is sent in pieces, without what marks these and without signs of life.
fn body_of(answer: &str) -> String {
    let (head, mut rest) = answer.split_once("\r\n\r\n").expect("a head");
    if !head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        return rest.to_owned();
    }
    let mut body = String::new();
    while let Some((length, more)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a length");
        body.push_str(&more[..length]);
        rest = more[length..].trim_start_matches("\r\n");
        if length == 0 {
            break;
        }
    }
    let lines = body.lines().filter(|line| !line.is_empty());
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// A reader that never reads, and many that do.
#[test]
fn a_stuck_reader_stops_nothing_and_others_see_everything() {
    let noisy = "  - name: noisy\n    image: x\n    command: {run: [sh, -c, 'i=0; while test $i -lt 3000; do echo line $i of a program that talks much; i=$((i+1)); done; while ! test -e go-noisy; do sleep 0.02; done; echo a > $PORTOLAN_OUT/a'], output: files, inputs: [web/index.html]}\n";
    let mut served = Served::start(noisy);
    let ask = |served: &Served| {
        let mut stream = TcpStream::connect(&served.address).expect("it listens");
        let request = format!(
            "GET /api/ship/v1/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
            served.address, served.token
        );
        stream.write_all(request.as_bytes()).expect("sent");
        stream
    };
    let stuck = ask(&served);
    let readers: Vec<_> = (0..100)
        .map(|_| {
            let mut stream = ask(&served);
            std::thread::spawn(move || {
                let mut text = String::new();
                stream.read_to_string(&mut text).map(|_| text)
            })
        })
        .collect();
    wait_until(|| served.get("log?artifact=noisy").1.contains("line 2999 of"));
    served.open("noisy");
    let answer = served.end();
    assert_eq!(answer.code, 0, "{answer}");
    drop(stuck);
    // Nothing is lost, repeated or out of order: each has what the files have.
    let known = served.project.run(&["events"]).stdout;
    for reader in readers {
        let text = reader.join().expect("no panic").expect("an answer");
        assert!(body_of(&text) == known, "{}", &text[..text.len().min(2000)]);
    }
}
