//! `portolan serve` and `portolan fleet`, as real processes over TLS.

mod portolan;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::portolan::{Answer, portolan, wait_until};

struct Server {
    child: Child,
    directory: PathBuf,
    address: String,
}

impl Server {
    fn start(directory: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(directory)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        let stderr = child.stderr.take().expect("it was asked for");
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("listening on https://"));
        let line = line.expect("it listens");
        let address = line
            .rsplit_once("https://")
            .expect("an address")
            .1
            .trim()
            .to_owned();
        // Whoever stops reading would block the server.
        std::thread::spawn(move || lines.for_each(drop));
        let server = Self {
            child,
            directory: directory.to_owned(),
            address,
        };
        wait_until(|| server.curl(&["/readyz"]).starts_with("ok"));
        server
    }

    fn url(&self) -> String {
        let port = self.address.rsplit_once(':').expect("a port").1;
        format!("https://localhost:{port}")
    }

    fn file(&self, name: &str) -> String {
        self.directory
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    }

    fn fleet(&self, args: &[&str]) -> Answer {
        let (url, token, authority) = (self.url(), self.file("admin.token"), self.file("ca.pem"));
        let own = [
            "--server",
            &url,
            "--token-file",
            &token,
            "--ca-file",
            &authority,
        ];
        portolan(&[&["fleet"][..], args, &own].concat())
    }

    /// What curl gets, as any other program would.
    fn curl(&self, args: &[&str]) -> String {
        let token = fs::read_to_string(self.file("admin.token")).unwrap_or_default();
        let (path, options) = args.split_first().expect("a path");
        let output = Command::new("curl")
            .args(["-sS", "--max-time", "5", "--cacert", &self.file("ca.pem")])
            .args(["-H", &format!("Authorization: Bearer {}", token.trim())])
            .args(options)
            .arg(format!("{}{path}", self.url()))
            .output()
            .expect("curl is installed");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const OBJECTS: &str = "\
apiVersion: v1alpha
kind: Variable
metadata: {name: region, namespace: shop}
spec: {for: {groups: [web]}, values: {region: north}}
---
apiVersion: v1alpha
kind: Namespace
metadata: {name: shop}
spec: {description: the shop}
";

#[test]
fn a_first_start_makes_everything_and_objects_survive_a_kill() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let objects = directory.path().join("objects.yaml");
    fs::write(&objects, OBJECTS).expect("written");
    let objects = objects.to_str().expect("UTF-8");
    let mut server = Server::start(&data);
    for private in ["admin.token", "secrets.key", "audit.log"] {
        let mode = fs::metadata(data.join(private))
            .expect(private)
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{private}");
    }
    // The authority's key is in the store, sealed, and nowhere else.
    assert!(!data.join("ca.key").exists());
    let applied = server.fleet(&["apply", "-f", objects]);
    assert_eq!(
        (applied.code, applied.stdout.as_str()),
        (0, "namespace/shop created\nvariable/region created\n"),
        "{applied}"
    );
    let again = server.fleet(&["apply", "-f", objects]);
    assert_eq!(
        again.stdout, "namespace/shop unchanged\nvariable/region unchanged\n",
        "{again}"
    );
    let listed = server.fleet(&["get", "variables", "-A"]);
    let columns: Vec<&str> = listed
        .stdout
        .lines()
        .nth(1)
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    assert_eq!(
        columns[..5],
        ["shop", "region", "-", "web", "region"],
        "{listed}"
    );

    // Nothing that was answered is lost, however the server ends.
    server.child.kill().expect("killed");
    server.child.wait().expect("ended");
    drop(server);
    let server = Server::start(&data);
    let got = server.fleet(&["get", "var/region", "-n", "shop", "-o", "yaml"]);
    assert!(got.stdout.contains("region: north"), "{got}");

    fs::write(
        directory.path().join("objects.yaml"),
        OBJECTS.replace("north", "south"),
    )
    .expect("written");
    let diff = server.fleet(&["diff", "-f", objects]);
    assert_eq!(diff.code, 1, "{diff}");
    assert_eq!(
        diff.stdout,
        "variable/region would change\n  spec.values.region\n-   \"north\"\n+   \"south\"\n"
    );
    assert_eq!(server.fleet(&["apply", "-f", objects]).code, 0);
    let history = server.fleet(&["history", "var/region", "-n", "shop"]);
    assert!(
        history.stdout.contains("admin") && history.stdout.contains("spec.values.region"),
        "{history}"
    );
    let refused = server.fleet(&["delete", "namespace", "shop"]);
    assert!(
        refused.code == 2 && refused.stderr.contains("with 1 object that depends on it"),
        "{refused}"
    );
    assert_eq!(
        server.fleet(&["delete", "namespace", "shop", "--yes"]).code,
        0
    );
    wait_until(|| server.fleet(&["get", "namespace", "shop"]).code == 2);
}

#[test]
fn curl_is_a_client_like_any_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(&directory.path().join("data"));
    let body = "{\"apiVersion\":\"v1alpha\",\"kind\":\"Node\",\"metadata\":{\"name\":\"db-1\"},\"spec\":{}}";
    let created = server.curl(&[
        "/api/v1alpha/nodes",
        "-X",
        "POST",
        "-H",
        "content-type: application/json",
        "-d",
        body,
    ]);
    assert!(created.contains("\"uuid\""), "{created}");
    let yaml = "apiVersion: v1alpha\nkind: Node\nmetadata: {name: db-2}\nspec: {netwrk: {}}\n";
    let refused = server.curl(&[
        "/api/v1alpha/nodes",
        "-X",
        "POST",
        "-H",
        "content-type: application/yaml",
        "--data-binary",
        yaml,
    ]);
    assert!(
        refused.contains("did you mean `network`?") && refused.contains("\"line\":4"),
        "{refused}"
    );
    let watched = server.curl(&["/api/v1alpha/nodes?watch=true", "--max-time", "1"]);
    assert!(
        watched.starts_with("{\"type\":\"ADDED\"") && watched.contains("BOOKMARK"),
        "{watched}"
    );
    assert!(server.curl(&["/openapi.json"]).contains("\"3.1.0\""));
    assert!(
        server
            .curl(&["/metrics"])
            .contains("portolan_listen_requests_total")
    );
    let stranger = server.curl(&["/api/v1alpha/nodes", "-H", "Origin: https://evil.example"]);
    assert!(stranger.contains("pages of other sites"), "{stranger}");
}

/// A certificate is a client's identity like a token: only the signing request leaves the machine, and it can be ended.
#[test]
fn a_person_gets_a_certificate_whose_key_stays_here() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(&directory.path().join("data"));
    let out = directory.path().to_str().expect("UTF-8");
    let make = ["auth", "certificate", "anna", "--life", "1h", "--out", out];
    let made = server.fleet(&make);
    assert_eq!(made.code, 0, "{made}");
    let id = made.stdout.split(' ').nth(1).expect("an id").to_owned();
    let file = |name: &str| {
        directory
            .path()
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    };
    let (certificate, key) = (file("anna.pem"), file("anna.key"));
    for private in [&certificate, &key] {
        let mode = fs::metadata(private).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{private}");
    }
    let again = server.fleet(&make);
    assert!(
        again.code == 2 && again.stderr.contains("exists already"),
        "{again}"
    );

    let ask = |options: &[&str], path: &str| {
        let output = Command::new("curl")
            .args(["-sS", "--max-time", "10", "-w", "\n%{http_code}"])
            .args(["--cacert", &server.file("ca.pem")])
            .args(["--cert", &certificate, "--key", &key])
            .args(options)
            .arg(format!("{}{path}", server.url()))
            .output()
            .expect("curl is installed");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let who = ask(&[], "/api/v1alpha/auth/rights");
    assert!(
        who.contains("\"user\":\"anna\"") && who.ends_with("200"),
        "{who}"
    );
    let refused = ask(&[], "/api/v1alpha/nodes");
    assert!(refused.ends_with("403"), "{refused}");
    let token = fs::read_to_string(server.file("admin.token")).expect("a token");
    let bearer = format!("Authorization: Bearer {}", token.trim());
    let both = ask(&["-H", &bearer], "/api/v1alpha/nodes");
    assert!(both.ends_with("401"), "{both}");

    let role = file("role.yaml");
    fs::write(&role, READS_NODES).expect("written");
    let applied = server.fleet(&["apply", "-f", &role]);
    assert_eq!(applied.code, 0, "{applied}");
    wait_until(|| ask(&[], "/api/v1alpha/nodes").ends_with("200"));
    let fleet = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .arg("fleet")
            .args(args)
            .env("XDG_CONFIG_HOME", directory.path())
            .output()
            .expect("the binary was built with this test");
        Answer::of(&output)
    };
    let (url, authority) = (server.url(), server.file("ca.pem"));
    let login = ["login", "--server", &url, "--ca-file", &authority];
    let files = ["--certificate-file", &certificate, "--key-file", &key];
    let login = fleet(&[&login[..], &files].concat());
    assert!(login.stderr.contains("user anna at"), "{login}");
    let listed = fleet(&["get", "nodes"]);
    assert_eq!(listed.code, 0, "{listed}");

    let ended = server.fleet(&["auth", "token", "--end", &id]);
    assert_eq!(ended.code, 0, "{ended}");
    let gone = ask(&[], "/api/v1alpha/nodes");
    assert!(
        gone.contains("does not work any more") && gone.ends_with("401"),
        "{gone}"
    );
    let log = fs::read_to_string(server.file("audit.log")).expect("a log");
    assert!(!log.contains("PRIVATE KEY"), "the key was sent");
    let refusals = log.lines().filter(|line| line.contains("\"status\":401"));
    assert_eq!(refusals.count(), 2, "{log}");
}

const READS_NODES: &str = "\
apiVersion: v1alpha
kind: ClusterRole
metadata: {name: reads-nodes}
spec: {rules: [{verbs: [get, list], kinds: [Node]}]}
---
apiVersion: v1alpha
kind: ClusterRoleBinding
metadata: {name: anna}
spec: {role: {kind: ClusterRole, name: reads-nodes}, subjects: [{kind: user, name: anna}]}
";

#[test]
fn a_store_that_a_server_has_open_is_backed_up_by_the_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let _server = Server::start(&data);
    let data = data.to_str().expect("UTF-8");
    let to = directory.path().join("x.backup");
    let to = to.to_str().expect("UTF-8");
    let refused = portolan(&["store", "backup", "--data", data, "--to", to]);
    assert_eq!(refused.code, 2, "{refused}");
    for part in ["stop the server", "`portolan serve --backup-dir DIR`"] {
        assert!(refused.stderr.contains(part), "{part}: {refused}");
    }
}

#[test]
fn a_login_is_remembered_and_tokens_are_made_and_ended() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(&directory.path().join("data"));
    let fleet = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .arg("fleet")
            .args(args)
            .env("XDG_CONFIG_HOME", directory.path())
            .env_remove("PORTOLAN_SERVER")
            .output()
            .expect("the binary was built with this test");
        Answer::of(&output)
    };
    let nowhere = fleet(&["get", "nodes"]);
    assert!(
        nowhere.code == 2 && nowhere.stderr.contains("portolan fleet login"),
        "{nowhere}"
    );
    let (url, token, authority) = (
        server.url(),
        server.file("admin.token"),
        server.file("ca.pem"),
    );
    let login = fleet(&[
        "login",
        "--server",
        &url,
        "--token-file",
        &token,
        "--ca-file",
        &authority,
    ]);
    assert!(
        login.code == 0 && login.stderr.contains("user admin at"),
        "{login}"
    );
    assert_eq!(fleet(&["auth", "can-i", "delete", "nodes"]).stdout, "yes\n");
    let made = fleet(&["auth", "token", "--user", "ci", "--life", "1h"]);
    assert!(made.stdout.starts_with("ptl_"), "{made}");
    let file = directory.path().join("ci.token");
    fs::write(&file, &made.stdout).expect("written");
    let file = file.to_str().expect("UTF-8");
    let why = fleet(&["auth", "why", "get", "nodes", "--token-file", file]);
    assert_eq!(
        (why.code, why.stdout.as_str()),
        (1, "no: user ci may not get Node\n"),
        "{why}"
    );
    let forbidden = fleet(&["get", "nodes", "--token-file", file]);
    assert!(
        forbidden
            .stderr
            .contains("a role with {verbs: [list], kinds: [Node]} allows it"),
        "{forbidden}"
    );
    let listed = fleet(&["auth", "token", "--list"]);
    assert!(
        listed.stdout.contains("ci") && !listed.stdout.contains("ptl_"),
        "{listed}"
    );
    assert_eq!(
        fleet(&["auth", "token", "--end", &made.stdout[4..20]]).code,
        0
    );
    let ended = fleet(&["get", "nodes", "--token-file", file]);
    assert!(ended.stderr.contains("does not work any more"), "{ended}");
    let status = fleet(&["status"]);
    assert!(
        status.code == 0 && status.stdout.contains("embedded"),
        "{status}"
    );
    assert!(status.stdout.contains("(as this machine's)"), "{status}");
    let explained = fleet(&["explain", "variable.spec.for"]);
    assert!(
        explained
            .stdout
            .contains("one node, or the nodes of groups")
            || explained.stdout.contains("The nodes that get the values"),
        "{explained}"
    );
}
