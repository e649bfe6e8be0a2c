//! `portolan audit cluster` and `portolan audit serve`, against an API server of the test's own that can be made to fail.

mod portolan;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan::{portolan, wait_until};
use portolan_testbed::{HttpServer, Reply, Request};
use serde_json::json;

/// What the fake API server does: a status to answer with, or nothing at all.
const SILENT: u16 = 0;

/// An API server with one release that has a removed API, and a kubeconfig for it.
struct Fake {
    server: HttpServer,
    mood: Arc<AtomicU16>,
    directory: tempfile::TempDir,
}

impl Fake {
    fn start() -> Self {
        let mood = Arc::new(AtomicU16::new(200));
        let server = HttpServer::start({
            let mood = Arc::clone(&mood);
            move |request| match mood.load(Ordering::SeqCst) {
                200 => answer(request),
                SILENT => {
                    while mood.load(Ordering::SeqCst) == SILENT {
                        std::thread::yield_now();
                    }
                    Reply::status(500)
                }
                status => Reply::status(status).header("retry-after", "0"),
            }
        });
        let directory = tempfile::tempdir().expect("a directory");
        let config = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {{server: \"{}\"}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\nusers: [{{name: a, user: {{token: t}}}}]\n",
            server.url()
        );
        std::fs::write(directory.path().join("kubeconfig"), config).expect("a file");
        Self {
            server,
            mood,
            directory,
        }
    }

    fn kubeconfig(&self) -> String {
        self.directory
            .path()
            .join("kubeconfig")
            .display()
            .to_string()
    }

    fn set(&self, mood: u16) {
        self.mood.store(mood, Ordering::SeqCst);
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        // Lets go of requests that wait.
        self.set(500);
    }
}

fn answer(request: &Request) -> Reply {
    let manifest =
        "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata:\n  name: web\n";
    let record = json!({"name": "web", "manifest": manifest, "chart": {"metadata": {"name": "shop", "version": "1.2.3"}}});
    let labels = json!({"owner": "helm", "name": "web", "status": "deployed", "version": "3"});
    let name = "sh.helm.release.v1.web.v3";
    let body = match request.path() {
        "/version" => json!({"gitVersion": "v1.36.3"}),
        _ if request.target.contains("watch=1") => return Reply::ok(""),
        "/api/v1/secrets" => json!({
            "metadata": {"resourceVersion": "7"},
            "items": [{"metadata": {"name": name, "namespace": "shop", "uid": "u", "resourceVersion": "5", "labels": labels}}],
        }),
        "/api/v1/configmaps" => json!({"metadata": {"resourceVersion": "7"}, "items": []}),
        _ => json!({"data": {"release": STANDARD.encode(STANDARD.encode(record.to_string()))}}),
    };
    Reply::ok(body.to_string()).header("content-type", "application/json")
}

/// A running `portolan audit serve`.
struct Serve {
    child: Child,
    address: String,
}

impl Serve {
    fn start(fake: &Fake, state: &Path) -> Self {
        Self::start_and_read(&fake.kubeconfig(), state).0
    }

    /// Starts it; what it prints after its address is still to be read.
    fn start_and_read(kubeconfig: &str, state: &Path) -> (Self, BufReader<ChildStderr>) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args([
                "audit",
                "serve",
                "--only",
                "helm",
                "--listen",
                "127.0.0.1:0",
                "--ttl",
                "1s",
            ])
            .args(["--kubeconfig", kubeconfig, "--state"])
            .arg(state)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        let mut line = String::new();
        let stderr = child.stderr.take().expect("it was asked for");
        let mut stderr = BufReader::new(stderr);
        stderr.read_line(&mut line).expect("a line");
        let (_, address) = line.trim().rsplit_once("http://").expect("an address");
        let address = address.to_owned();
        (Self { child, address }, stderr)
    }

    /// The status and the body of an answer.
    fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("it takes requests");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a whole answer");
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        (status.expect("a status"), body.to_owned())
    }

    fn says(&self, line: &str) -> bool {
        self.get("/metrics").1.lines().any(|other| other == line)
    }

    fn wait_for(&self, line: &str) {
        wait_until(|| self.says(line));
    }
}

impl Drop for Serve {
    /// SIGKILL: nothing is tidied up.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn state(name: &str) -> String {
    format!("portolan_audit_scan_state{{portolan_audit_scan_state=\"{name}\"}} 1")
}

fn failure(name: &str) -> String {
    format!("portolan_audit_last_scan_error{{portolan_audit_last_scan_error=\"{name}\"}} 1")
}

#[test]
fn the_releases_of_a_cluster_are_audited() {
    let fake = Fake::start();
    let answer = portolan(&[
        "audit",
        "cluster",
        "--only",
        "helm",
        "--kubeconfig",
        &fake.kubeconfig(),
    ]);
    insta::assert_snapshot!(answer);
    let paths = fake.server.paths();
    assert_eq!(paths.len(), 4, "{paths:?}");
}

/// What was found stays and is served, whatever happens to the API server and to the process itself.
#[test]
fn the_last_good_answer_outlives_faults_and_the_process() {
    let fake = Fake::start();
    let directory = tempfile::tempdir().unwrap();
    let serve = Serve::start(&fake, directory.path());
    wait_until(|| serve.get("/readyz").0 == 200);
    let (_, findings) = serve.get("/api/v1/findings");
    assert!(findings.contains("policy/v1beta1"), "{findings}");
    for (mood, name) in [
        (500, "server"),
        (429, "throttled"),
        (401, "unauthorized"),
        (410, "gone"),
    ] {
        fake.set(mood);
        serve.wait_for(&failure(name));
        assert_eq!(serve.get("/api/v1/findings"), (200, findings.clone()));
        fake.set(200);
        serve.wait_for(&state("ready"));
    }

    fake.set(SILENT);
    serve.wait_for(&state("scanning"));
    // One scan at a time, however many ask: one for each would send hundreds of requests. Those of the one scan and of
    // watches that begin again may still be on the way.
    let asked = fake.server.requests().len();
    assert!((0..100).all(|_| serve.get("/metrics").0 == 200));
    let sent = fake.server.requests().len() - asked;
    assert!(sent < 10, "{sent} requests");
    drop(serve);
    let serve = Serve::start(&fake, directory.path());
    assert_eq!(serve.get("/api/v1/findings"), (200, findings));
    assert!(serve.says("portolan_audit_has_data 1"));
    assert_eq!(serve.get("/").0, 200);
}

#[test]
fn each_scan_is_one_line() {
    let fake = Fake::start();
    let directory = tempfile::tempdir().unwrap();
    let (serve, mut stderr) = Serve::start_and_read(&fake.kubeconfig(), directory.path());
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a line");
    assert!(line.starts_with("scan ended after "), "{line}");
    assert!(line.contains(" requests: 1 finding, "), "{line}");
    serve.wait_for(&state("ready"));
    fake.set(500);
    while !line.starts_with("scan failed after ") {
        line.clear();
        assert!(stderr.read_line(&mut line).expect("a line") > 0);
    }
    assert!(line.contains(": the API server answered 500 to "), "{line}");
}

/// A helper program that gives no credentials must not keep probes and scrapes waiting.
#[test]
fn the_port_is_open_before_there_are_credentials() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kubeconfig");
    let exec = "{apiVersion: client.authentication.k8s.io/v1, command: sleep, args: ['20'], interactiveMode: Never}";
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {{server: \"http://127.0.0.1:1\"}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\nusers: [{{name: a, user: {{exec: {exec}}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    let kubeconfig = path.to_str().expect("UTF-8");
    let (serve, _stderr) = Serve::start_and_read(kubeconfig, directory.path());
    assert_eq!(serve.get("/healthz").0, 200);
    assert_eq!(serve.get("/readyz"), (503, "not scanned yet\n".to_owned()));
    assert!(serve.says("portolan_audit_has_data 0"));
}

#[test]
fn not_scanned_yet_is_not_nothing_found() {
    let fake = Fake::start();
    fake.set(SILENT);
    let directory = tempfile::tempdir().unwrap();
    let serve = Serve::start(&fake, directory.path());
    assert_eq!(serve.get("/healthz").0, 200);
    assert_eq!(serve.get("/readyz").0, 503);
    assert_eq!(serve.get("/api/v1/findings").0, 503);
    assert!(serve.says("portolan_audit_has_data 0"));
    assert!(!serve.get("/metrics").1.contains("portolan_audit_findings"));
}
