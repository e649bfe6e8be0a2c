//! Content that is too large for the store, on two servers with one etcd: one of them is killed, and nothing is lost.

mod portolan;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use portolan_testbed::{Etcd, EtcdSetup};
use serde_json::Value;

use crate::portolan::wait_until;

const BLOBS: &str = "/api/v1alpha/namespaces/default/blobs";

/// A server as a process. All of them use the token and the authority of the first.
struct Server {
    child: Child,
    data: PathBuf,
    first: PathBuf,
    url: String,
}

impl Server {
    fn start(etcd: &Etcd, first: &Path, data: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--etcd",
                &etcd.url,
                "--data",
            ])
            .arg(data)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        let stderr = child.stderr.take().expect("it was asked for");
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("listening on https://"));
        let line = line.expect("it listens");
        let port = line.trim().rsplit(':').next().expect("a port").to_owned();
        // Whoever stops reading would block the server.
        std::thread::spawn(move || lines.for_each(drop));
        let server = Self {
            child,
            data: data.to_owned(),
            first: first.to_owned(),
            url: format!("https://localhost:{port}"),
        };
        wait_until(|| server.curl("/readyz", &[]).0 == 200);
        server
    }

    fn curl(&self, path: &str, options: &[&str]) -> (u16, Vec<u8>) {
        let file = |name: &str| self.first.join(name).to_str().expect("UTF-8").to_owned();
        let token = fs::read_to_string(file("admin.token")).unwrap_or_default();
        let output = Command::new("curl")
            .args(["-sS", "--max-time", "30", "-w", "\n%{http_code}"])
            .args(["--cacert", &file("ca.pem")])
            .args(["-H", &format!("Authorization: Bearer {}", token.trim())])
            .args(options)
            .arg(format!("{}{path}", self.url))
            .output()
            .expect("curl is installed");
        let mut body = output.stdout;
        let line = body.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        let status = String::from_utf8_lossy(&body.split_off(line))
            .trim()
            .parse();
        (status.unwrap_or(0), body)
    }

    /// Puts a file; returns the status and the answer.
    fn put(&self, file: &Path) -> (u16, Value) {
        let content = format!("@{}", file.to_str().expect("UTF-8"));
        let octets = "content-type: application/octet-stream";
        let (status, body) = self.curl(BLOBS, &["-H", octets, "--data-binary", &content]);
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    fn get(&self, digest: &str) -> (u16, Vec<u8>) {
        self.curl(&format!("{BLOBS}/{digest}"), &[])
    }

    /// The file of a blob on this server's disk.
    fn file(&self, digest: &str) -> PathBuf {
        let digits = digest.strip_prefix("sha256:").expect("a digest");
        self.data.join("blobs").join(&digits[..2]).join(digits)
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_digest_is_stored_when_two_servers_have_the_content() {
    let Some(etcd) = Etcd::start(&EtcdSetup::default()) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let [a, b, c] = ["a", "b", "c"].map(|name| directory.path().join(name));
    let mut first = Server::start(&etcd, &a, &a);
    let content =
        |seed: u8| -> Vec<u8> { (0..900_000_u32).map(|n| seed ^ (n % 251) as u8).collect() };
    let file = |seed: u8| {
        let path = directory.path().join(format!("content-{seed}"));
        fs::write(&path, content(seed)).expect("written");
        path
    };
    let digest = |answer: &Value| answer["digest"].as_str().expect("a digest").to_owned();
    let servers = |answer: &Value| answer["servers"].as_array().map_or(0, Vec::len);

    // Alone, one copy is all there can be.
    let (status, alone) = first.put(&file(1));
    assert_eq!((status, servers(&alone)), (201, 1), "{alone}");
    for data in [&b, &c] {
        fs::create_dir_all(data).expect("a directory");
        fs::copy(a.join("secrets.key"), data.join("secrets.key")).expect("copied");
    }
    let second = Server::start(&etcd, &a, &b);
    let (status, made) = first.put(&file(2));
    assert_eq!((status, servers(&made)), (201, 2), "{made}");
    assert!(
        second.file(&digest(&made)).is_file(),
        "on both disks before the answer"
    );
    // What was alone gets its second copy.
    wait_until(|| second.file(&digest(&alone)).is_file());

    first.kill();
    for (seed, answer) in [(1, &alone), (2, &made)] {
        let (status, body) = second.get(&digest(answer));
        assert!(status == 200 && body == content(seed), "{status}");
    }
    // As long as the dead server counts as alive, there is no second copy and no answer that says so.
    let third_file = file(3);
    wait_until(|| second.put(&third_file).0 == 201);

    // A third server gets what the dead one had, and gives it.
    let third = Server::start(&etcd, &a, &c);
    wait_until(|| third.file(&digest(&made)).is_file());
    fs::write(second.file(&digest(&made)), "damaged").expect("written");
    let (status, body) = second.get(&digest(&made));
    assert!(
        status == 200 && body == content(2),
        "{status}: the damaged copy is not given"
    );
    assert_eq!(third.get(&digest(&alone)).0, 200);

    // Nobody but servers reads files past their namespaces.
    let digits = digest(&made);
    let (status, refused) = second.curl(&format!("/api/v1alpha/blobs/{digits}"), &[]);
    assert_eq!(status, 403, "{}", String::from_utf8_lossy(&refused));
    assert_eq!(second.get(&format!("sha256:{}", "0".repeat(64))).0, 404);
    assert_eq!(second.get("nonsense").0, 400);
    let one = format!("{BLOBS}/{digits}");
    assert_eq!(second.curl(&one, &["-X", "DELETE"]).0, 200);
    assert_eq!(third.get(&digits).0, 404);
    let large = directory.path().join("large");
    let too_much = vec![0; (1 << 20) + 1];
    fs::write(&large, &too_much).expect("written");
    // The server may close the connection before curl has sent everything.
    assert_ne!(second.put(&large).0, 201);
    let name = portolan_store::blob::BlobName::of(&too_much);
    assert_eq!(second.get(&format!("sha256:{name}")).0, 404);
}
