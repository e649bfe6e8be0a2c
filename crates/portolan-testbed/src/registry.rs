//! A container registry: Debian's `docker-registry`, with or without a login, with or without TLS.

use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::http_call::{Answer, call};
use crate::{Authority, has_program};

/// The user that a registry with a login knows.
pub const USER: &str = "ada";
/// That user's password.
pub const PASSWORD: &str = "hunter2";
/// `PASSWORD` as `htpasswd -B` writes it.
pub(crate) const HTPASSWD_HASH: &str =
    "$2b$05$abcdefghijklmnopqrstuuoXuKqgZXLiJqzfmMXDDhSFPIvxV7t8.";
/// The same as a header of basic authentication.
const BASIC: &str = "Basic YWRhOmh1bnRlcjI=";

/// How the registry is set up.
#[derive(Default)]
pub struct RegistrySetup<'a> {
    /// Whether it wants `USER` and `PASSWORD`.
    pub login: bool,
    /// Speaks TLS with the authority's server certificate. Pushing then needs a second registry on the same storage.
    pub tls: Option<&'a Authority>,
}

/// A running registry.
pub struct Registry {
    port: u16,
    process: Child,
    directory: TempDir,
}

impl Registry {
    /// Starts a registry, `None` when the program is not installed (see [`has_program`]).
    ///
    /// # Panics
    /// When it does not come up.
    pub fn start(setup: &RegistrySetup<'_>) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self::start_in(directory, setup)
    }

    /// Stops and starts again on the same storage with another set-up.
    ///
    /// # Panics
    /// When it does not come up.
    #[must_use]
    pub fn restart(mut self, setup: &RegistrySetup<'_>) -> Self {
        let empty = tempfile::tempdir().expect("a temporary directory");
        let directory = std::mem::replace(&mut self.directory, empty);
        drop(self);
        Self::start_in(directory, setup).expect("it was installed a moment ago")
    }

    fn start_in(directory: TempDir, setup: &RegistrySetup<'_>) -> Option<Self> {
        if !has_program("docker-registry", "--version") {
            return None;
        }
        let port = crate::port::free_port();
        let config = write_config(directory.path(), port, setup).expect("a configuration");
        let process = Command::new("docker-registry")
            .arg("serve")
            .arg(config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("docker-registry starts");
        let registry = Self {
            port,
            process,
            directory,
        };
        registry.wait();
        Some(registry)
    }

    /// Host and port, as written in references.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Pushes a blob.
    ///
    /// # Panics
    /// When the registry refuses it.
    pub fn push_blob(&self, repository: &str, digest: &str, content: &[u8]) {
        let started = self.call(
            "POST",
            &format!("/v2/{repository}/blobs/uploads/"),
            &[],
            b"",
        );
        assert_eq!(started.status, 202, "upload of a blob");
        let location = &started.headers["location"];
        let path = location.splitn(4, '/').nth(3).unwrap_or_default();
        let target = format!("/{path}&digest={digest}");
        let octets = [("content-type", "application/octet-stream")];
        let done = self.call("PUT", &target, &octets, content);
        assert_eq!(done.status, 201, "{}", String::from_utf8_lossy(&done.body));
    }

    /// Pushes a manifest under a tag or digest.
    ///
    /// # Panics
    /// When the registry refuses it.
    pub fn push_manifest(&self, repository: &str, tag: &str, media_type: &str, content: &[u8]) {
        let target = format!("/v2/{repository}/manifests/{tag}");
        let done = self.call("PUT", &target, &[("content-type", media_type)], content);
        assert_eq!(done.status, 201, "{}", String::from_utf8_lossy(&done.body));
    }

    fn call(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut headers = headers.to_vec();
        headers.push(("authorization", BASIC));
        call(self.port, method, target, &headers, body).expect("the registry answers")
    }

    /// Waits for an answer: a connection alone may be to a process that is starting and still holds our probe's socket.
    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let asked = || call(self.port, "GET", "/v2/", &[], b"");
        while !asked().is_ok_and(|answer| answer.status != 0) {
            assert!(
                Instant::now() < deadline,
                "docker-registry does not come up"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn write_config(
    directory: &std::path::Path,
    port: u16,
    setup: &RegistrySetup<'_>,
) -> std::io::Result<std::path::PathBuf> {
    let shown = directory.display();
    let mut text = format!(
        "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {shown}/storage}}}}\n\
         http:\n  addr: 127.0.0.1:{port}\n"
    );
    if let Some(authority) = setup.tls {
        std::fs::write(directory.join("tls.crt"), &authority.server_certificate)?;
        std::fs::write(directory.join("tls.key"), &authority.server_key)?;
        let _ = writeln!(
            text,
            "  tls: {{certificate: {shown}/tls.crt, key: {shown}/tls.key}}"
        );
    }
    if setup.login {
        let line = format!("{USER}:{HTPASSWD_HASH}\n");
        std::fs::write(directory.join("htpasswd"), line)?;
        let _ = writeln!(
            text,
            "auth: {{htpasswd: {{realm: test, path: {shown}/htpasswd}}}}"
        );
    }
    let config = directory.join("config.yml");
    std::fs::write(&config, text)?;
    Ok(config)
}
