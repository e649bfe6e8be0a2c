//! Answers of a git server.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8Path;
use portolan_git::{FetchOptions, Mirror};
use portolan_testbed::{HttpServer, Reply};
use tempfile::TempDir;

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[Target {
    name: "git-server",
    about: "what a server says over HTTP when it is asked for its refs",
    run: server,
    seeds: || {
        let id = "0123456789012345678901234567890123456789";
        let old = "multi_ack thin-pack side-band-64k ofs-delta shallow symref=HEAD:refs/heads/main object-format=sha1";
        let greeting = packet("# service=git-upload-pack\n") + "0000";
        let refs = [
            packet(&format!("{id} HEAD\0{old}\n")),
            packet(&format!("{id} refs/heads/main\n")),
            packet(&format!("{id} refs/tags/v1\n")),
            packet(&format!("{id} refs/tags/v1^{{}}\n")),
        ];
        let new = [
            "version 2\n",
            "agent=git/2.47.3\n",
            "ls-refs=unborn\n",
            "fetch=shallow\n",
            "object-format=sha1\n",
        ];
        let new: String = new.map(packet).concat();
        texts(&[
            &format!("{greeting}{}0000", refs.concat()),
            &format!("{greeting}{new}0000"),
            &format!("{}0000", refs[1]),
            &format!("{greeting}{}0000", packet("ERR no\n")),
            "ffff",
        ])
    },
}];

/// A line as git frames it.
fn packet(line: &str) -> String {
    format!("{:04x}{line}", line.len() + 4)
}

/// What the server says to every request.
static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

static SERVER: LazyLock<HttpServer> = LazyLock::new(|| {
    HttpServer::start(|request| {
        let service = if request.target.contains("info/refs") {
            "application/x-git-upload-pack-advertisement"
        } else {
            "application/x-git-upload-pack-result"
        };
        let body = ANSWER
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        Reply::ok(body).header("content-type", service)
    })
});

/// One mirror for all answers: listing refs writes nothing into it.
static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));

fn server(bytes: &[u8]) -> bool {
    *ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = bytes.to_vec();
    let directory = Utf8Path::from_path(DIRECTORY.path()).expect("a path in UTF-8");
    let options = FetchOptions {
        timeout: Duration::from_secs(10),
        max_bytes: 1 << 20,
        ..FetchOptions::default()
    };
    let url = format!("{}/a.git", SERVER.url());
    let mirror = Mirror::new(&directory.join("mirror"), &url, options).expect("an address");
    mirror.refs().is_ok()
}
