//! Skaffold's event API: a client generated from our `.proto`, and plain HTTP requests as curl sends them. No client that
//! Skaffold's authors wrote is run here.

mod portolan;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use portolan::project::Project;
use portolan::{wait_for, wait_until};
use serde_json::{Value, json};

/// A build that waits at gates, and is served meanwhile.
struct Served {
    project: Project,
    build: Option<Child>,
    grpc: u16,
    http: u16,
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Waits in its command for a file.
fn gated(name: &str, more: &str) -> String {
    format!(
        "  - name: {name}\n    image: registry.example/{name}\n{more}    command: {{run: [sh, -c, 'echo {name} says this; while ! test -e go-{name}; do sleep 0.02; done; test ! -e fail-{name} && echo a > $PORTOLAN_OUT/a'], output: files, inputs: [web/index.html], set: {{NAME: {name}}}}}\n"
    )
}

impl Served {
    fn start(artifacts: &str) -> Self {
        let project = Project::new(artifacts);
        let (grpc, http) = (free_port(), free_port());
        let ports = [grpc.to_string(), http.to_string()];
        let build = project
            .command(&[
                "ship",
                "build",
                "--rpc-port",
                &ports[0],
                "--rpc-http-port",
                &ports[1],
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        wait_until(|| TcpStream::connect(("127.0.0.1", http)).is_ok());
        Self {
            project,
            build: Some(build),
            grpc,
            http,
        }
    }

    /// Sends a request, and returns the status and the body.
    fn send(&self, line: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.http)).expect("it listens");
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).expect("a timeout");
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status.unwrap_or(0), body.to_owned())
    }

    fn host(&self) -> String {
        format!("host: localhost:{}\r\n", self.http)
    }

    fn state(&self) -> Value {
        let (status, body) = self.send("GET /v2/state", &self.host(), "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// The client whose code is generated from the `.proto`.
    fn python(&self, wanted: &str) -> Command {
        let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
        let mut command = Command::new("python3");
        command
            .arg(format!("{tests}/skaffold_client.py"))
            .arg(format!("{tests}/../../portolan-ship/proto"))
            .args([&format!("127.0.0.1:{}", self.grpc), wanted])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts a client that follows events, and waits until the first has come; they go to a file.
    fn follow(&self) -> (Child, PathBuf) {
        let path = self.project.path("followed.jsonl");
        let file = fs::File::create(&path).expect("a file");
        let follower = self.python("events").stdout(file).spawn();
        let follower = follower.expect("python with grpcio, which ./test installs");
        wait_until(|| fs::read_to_string(&path).is_ok_and(|text| text.contains("metaEvent")));
        (follower, path)
    }

    fn ask(&self, wanted: &str) -> Value {
        let asked = self.python(wanted).spawn();
        let answer = wait_for(asked.expect("python with grpcio, which ./test installs"));
        assert_eq!(answer.code, 0, "{answer}");
        serde_json::from_str(&answer.stdout).expect("JSON")
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

/// The steps of an artifact and their states, in order.
fn steps(events: &[Value], image: &str) -> Vec<String> {
    let of_image = events.iter().filter_map(|event| {
        let event = &event["buildSubtaskEvent"];
        (event["artifact"] == image).then(|| {
            let text = |field: &str| event[field].as_str().unwrap_or_default();
            format!("{} {}", text("step"), text("status"))
        })
    });
    of_image.collect()
}

fn json_lines(text: &str) -> Vec<Value> {
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    lines.collect()
}

#[test]
fn clients_of_skaffold_see_states_at_gates_and_events_as_they_come() {
    let artifacts = gated("a", "") + &gated("b", "    needs: [a]\n");
    let mut served = Served::start(&artifacts);
    let (a, b) = ("registry.example/a", "registry.example/b");
    wait_until(|| served.state()["buildState"]["artifacts"][a] == "InProgress");
    let state = served.state();
    assert_eq!(
        state["buildState"]["artifacts"],
        json!({a: "InProgress", b: "NotStarted"})
    );
    // Every field, set or not.
    assert_eq!(
        state["deployState"],
        json!({"status": "NotStarted", "autoTrigger": false, "statusCode": "OK"})
    );
    assert_eq!(state["debuggingContainers"], json!([]));
    assert_eq!(state["metadata"]["build"]["artifacts"][0]["type"], "CUSTOM");
    let by_grpc = served.ask("state");
    assert_eq!(
        by_grpc["buildState"]["artifacts"],
        state["buildState"]["artifacts"]
    );
    let services = served.ask("services");
    assert!(
        services.to_string().contains("proto.v2.SkaffoldV2Service"),
        "{services}"
    );

    let (follower, followed) = served.follow();
    served.open("a");
    wait_until(|| served.state()["buildState"]["artifacts"][b] == "InProgress");
    assert_eq!(served.state()["buildState"]["artifacts"][a], "Complete");
    served.project.write("fail-b", "");
    served.open("b");
    assert_eq!(served.end().code, 1);
    let answer = wait_for(follower);
    assert_eq!(answer.code, 0, "{answer}");
    let events = json_lines(&fs::read_to_string(followed).expect("events"));
    assert!(
        events[0]["metaEvent"]["metadata"]["runID"].is_string(),
        "{events:#?}"
    );
    let built = [
        "Cache InProgress",
        "Cache Failed",
        "Build InProgress",
        "Build Succeeded",
    ];
    assert_eq!(steps(&events, a), built);
    let failed = [
        "Cache InProgress",
        "Cache Failed",
        "Build InProgress",
        "Build Failed",
    ];
    assert_eq!(steps(&events, b), failed);
    let tasks: Vec<&Value> = events
        .iter()
        .filter_map(|event| event["taskEvent"].get("status"))
        .collect();
    assert_eq!(tasks, [&json!("InProgress"), &json!("Failed")]);
    let has_line = |event: &Value| event["skaffoldLogEvent"]["message"] == "a says this\n";
    assert!(events.iter().any(has_line), "{events:#?}");
    let last = &events[events.len() - 1]["terminationEvent"];
    assert_eq!(
        (&last["status"], &last["err"]["errCode"]),
        (&json!("Failed"), &json!("BUILD_UNKNOWN"))
    );
}

#[test]
fn what_is_there_is_complete_and_streams_are_lines_of_results() {
    let mut first = Served::start(&gated("a", ""));
    first.open("a");
    assert_eq!(first.end().code, 0);
    // The second build finds the first artifact, and waits at the gate of another.
    let document = fs::read_to_string(first.project.path("portolan.yaml")).expect("it is there");
    first
        .project
        .write("portolan.yaml", &(document + &gated("b", "")));
    let (grpc, http) = (free_port(), free_port());
    let ports = [grpc.to_string(), http.to_string()];
    let build = first
        .project
        .command(&[
            "ship",
            "build",
            "--rpc-port",
            &ports[0],
            "--rpc-http-port",
            &ports[1],
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary was built with this test");
    first.build = Some(build);
    (first.grpc, first.http) = (grpc, http);
    wait_until(|| TcpStream::connect(("127.0.0.1", http)).is_ok());
    let image = "registry.example/a";
    wait_until(|| first.state()["buildState"]["artifacts"][image] == "Complete");
    let follower = std::thread::scope(|scope| {
        let follower = scope.spawn(|| first.send("GET /v2/events", &first.host(), ""));
        first.open("b");
        follower.join().expect("an answer")
    });
    let (status, body) = follower;
    assert_eq!(status, 200, "{body}");
    let lines: Vec<Value> = body
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let results: Vec<Value> = lines.iter().map(|line| line["result"].clone()).collect();
    assert_eq!(
        steps(&results, image),
        ["Cache InProgress", "Cache Succeeded"]
    );
    let started = &results
        .iter()
        .find(|event| event.get("taskEvent").is_some())
        .expect("a task")["taskEvent"];
    assert_eq!(started["actionableErr"], Value::Null);
    assert!(started.get("actionableErr").is_some(), "unset, and there");
}

#[test]
fn a_page_and_another_name_are_refused_and_so_is_what_only_a_dev_loop_can_do() {
    let served = Served::start(&gated("a", ""));
    let port = served.http;
    let (status, body) = served.send("GET /v2/state", "host: evil.example\r\n", "");
    assert_eq!(status, 421, "{body}");
    let foreign = format!("host: localhost:{port}\r\norigin: http://evil.example\r\n");
    assert_eq!(served.send("GET /v2/state", &foreign, "").0, 403);
    let (status, body) = served.send("POST /v2/execute", &served.host(), r#"{"build": true}"#);
    let told: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &told["code"]), (400, &json!(9)), "{body}");
    let (status, body) = served.send("PUT /v2/build/auto_execute", &served.host(), "no JSON");
    assert_eq!(status, 400, "{body}");
    let (status, body) = served.send("POST /v2/events/handle", &served.host(), "{}");
    let told: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &told["code"]), (501, &json!(12)), "{body}");
}

/// The process of the run is gone; its files say the same, over HTTP and over gRPC.
#[test]
fn a_run_that_has_ended_is_read_by_the_same_addresses() {
    let mut served = Served::start(&(gated("a", "") + &gated("b", "    needs: [a]\n")));
    let (a, b) = ("registry.example/a", "registry.example/b");
    served.project.write("fail-b", "");
    served.open("a");
    served.open("b");
    assert_eq!(served.end().code, 1);
    let (grpc, http) = (free_port(), free_port());
    let ports = [grpc.to_string(), http.to_string()];
    let options = ["--rpc-port", &ports[0], "--rpc-http-port", &ports[1]];
    let server = served
        .project
        .command(&[&["events", "--listen", "127.0.0.1:0"], &options[..]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    let server_id = server.id().to_string();
    served.build = Some(server);
    (served.grpc, served.http) = (grpc, http);
    wait_until(|| TcpStream::connect(("127.0.0.1", http)).is_ok());
    let expected = json!({a: "Complete", b: "Failed"});
    assert_eq!(served.state()["buildState"]["artifacts"], expected);
    assert_eq!(served.ask("state")["buildState"]["artifacts"], expected);
    let (status, body) = served.send("GET /v2/events", &served.host(), "");
    assert_eq!(status, 200, "{body}");
    let lines = body.lines().filter(|line| line.starts_with('{'));
    let results: Vec<Value> = lines
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["result"].clone())
        .collect();
    let last = results.last().expect("events");
    assert_eq!(last["terminationEvent"]["status"], "Failed", "{last:#}");
    // It can be read and not steered.
    let (status, body) = served.send("POST /v2/execute", &served.host(), r#"{"build": true}"#);
    assert_eq!(status, 400, "{body}");
    let ended = Command::new("kill").args(["-INT", &server_id]).status();
    assert!(ended.expect("kill").success());
    assert_eq!(served.end().code, 130);
}
