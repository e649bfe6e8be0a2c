//! Git over HTTP: git's own `http-backend` behind the test's web server.

use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::http_server::read_headers;
use crate::{Reply, Request};

/// Answers a request from the repositories below `root`, as `git http-backend` does under a web server.
///
/// # Panics
/// When git cannot be started.
pub fn git_backend(root: &Path, request: &Request) -> Reply {
    let query = request
        .target
        .split_once('?')
        .map_or("", |(_, query)| query);
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", request.path())
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", request.header("content-type").unwrap_or(""))
        .env("GIT_PROTOCOL", request.header("git-protocol").unwrap_or(""))
        .env(
            "HTTP_CONTENT_ENCODING",
            request.header("content-encoding").unwrap_or(""),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git starts");
    let mut stdin = backend.stdin.take().expect("a pipe was asked for");
    stdin.write_all(&request.body).expect("git reads its input");
    drop(stdin);
    let output = backend.wait_with_output().expect("git ends");
    reply(&output.stdout)
}

/// Reads what a CGI program answers: headers, a blank line, the body.
fn reply(output: &[u8]) -> Reply {
    let mut reader = BufReader::new(output);
    let headers = read_headers(&mut reader).unwrap_or_default();
    let mut body = Vec::new();
    reader
        .read_to_end(&mut body)
        .expect("reading memory cannot fail");
    let status = headers.get("status").and_then(|text| text.get(..3));
    let mut reply = Reply::ok(body);
    reply.status = status.and_then(|text| text.parse().ok()).unwrap_or(200);
    reply.headers = headers.into_iter().collect();
    reply
}
