//! Stored logins: Docker's `config.json`, its credential helpers, and Kubernetes' `.dockerconfigjson` of the same shape.
//!
//! For a registry, the first of these that has a login is used: its own helper (`credHelpers`), the common one
//! (`credsStore`), the file itself (`auths`, whose keys may be as narrow as `host/path`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use portolan_http::{Credentials, Secret};
use serde::Deserialize;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::{DockerConfigError, Repository};

/// Stored logins of any number of registries.
///
/// Those of a file are read when a registry asks for a login: a broken file is nobody's concern before that.
#[derive(Debug, Clone, Default)]
pub struct DockerConfig {
    file: Option<PathBuf>,
    content: OnceLock<Content>,
}

#[derive(Debug, Clone, Default)]
struct Content {
    logins: BTreeMap<String, Login>,
    helpers: BTreeMap<String, String>,
    store: Option<String>,
}

/// A way to show who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// User name and password.
    Basic(Credentials),
    /// A refresh token, traded for an access token at the registry's token service.
    IdentityToken(Secret),
}

/// Credential helpers ask key rings and cloud services; none takes longer than this unless it waits for a person.
const HELPER_TIMEOUT: Duration = Duration::from_secs(30);

// === impl DockerConfig ===

impl DockerConfig {
    /// Names a file; a missing one holds no logins.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            file: Some(path.into()),
            content: OnceLock::new(),
        }
    }

    /// Reads the text of a `config.json` or `.dockerconfigjson`.
    pub fn parse(text: &[u8]) -> Result<Self, DockerConfigError> {
        Content::parse(text).map(Self::of)
    }

    /// One login for one registry, as given on a command line or by a Secret with `username` and `password`.
    pub fn single(registry: &str, credentials: Credentials) -> Self {
        let login = Login::Basic(credentials);
        Self::of(Content {
            logins: BTreeMap::from([(registry_key(registry), login)]),
            ..Content::default()
        })
    }

    /// The login for a repository, from helpers or the file.
    pub async fn login(&self, repository: &Repository) -> Result<Option<Login>, DockerConfigError> {
        self.content()?.login(repository).await
    }

    fn of(content: Content) -> Self {
        Self {
            file: None,
            content: OnceLock::from(content),
        }
    }

    fn content(&self) -> Result<&Content, DockerConfigError> {
        if let Some(content) = self.content.get() {
            return Ok(content);
        }
        let read = self.file.as_deref().map(Content::load).transpose()?;
        Ok(self.content.get_or_init(|| read.unwrap_or_default()))
    }
}

// === impl Content ===

impl Content {
    fn load(path: &Path) -> Result<Self, DockerConfigError> {
        let shown = || path.display().to_string();
        match std::fs::read(path) {
            Ok(text) => Self::parse(&text).map_err(|source| DockerConfigError::File {
                path: shown(),
                source: Box::new(source),
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(DockerConfigError::Read {
                path: shown(),
                source,
            }),
        }
    }

    fn parse(text: &[u8]) -> Result<Self, DockerConfigError> {
        let wire: wire::Config = serde_json::from_slice(text).map_err(DockerConfigError::Parse)?;
        let mut logins = BTreeMap::new();
        for (registry, entry) in wire.auths {
            if let Some(login) = entry.login(&registry)? {
                logins.insert(registry_key(&registry), login);
            }
        }
        let helpers = wire.cred_helpers.into_iter();
        Ok(Self {
            logins,
            helpers: helpers
                .map(|(registry, helper)| (registry_key(&registry), helper))
                .collect(),
            store: wire.creds_store.filter(|store| !store.is_empty()),
        })
    }

    async fn login(&self, repository: &Repository) -> Result<Option<Login>, DockerConfigError> {
        let registry = registry_key(repository.registry());
        if let Some(helper) = self.helpers.get(&registry) {
            return ask_helper(helper, &registry).await;
        }
        if let Some(store) = &self.store
            && let Some(login) = ask_helper(store, &registry).await?
        {
            return Ok(Some(login));
        }
        Ok(self.stored(&registry, repository.name()))
    }

    /// The login with the longest key that the repository's path begins with.
    fn stored(&self, registry: &str, name: &str) -> Option<Login> {
        let full = format!("{registry}/{name}");
        let mut key = full.as_str();
        loop {
            if let Some(login) = self.logins.get(key) {
                return Some(login.clone());
            }
            key = key.rsplit_once('/')?.0;
        }
    }
}

/// The key of a registry without scheme, API path and Docker Hub's other names.
fn registry_key(written: &str) -> String {
    let bare = written
        .trim_start_matches("https://")
        .trim_start_matches("http://")
        .trim_start_matches("oci://")
        .trim_end_matches('/');
    let bare = bare.trim_end_matches("/v1").trim_end_matches("/v2");
    match bare {
        "index.docker.io" | "registry-1.docker.io" => "docker.io".to_owned(),
        other => other.to_owned(),
    }
}

/// The address that Docker's own tools hand to helpers.
fn helper_address(registry: &str) -> &str {
    match registry {
        "docker.io" => "https://index.docker.io/v1/",
        other => other,
    }
}

async fn ask_helper(name: &str, registry: &str) -> Result<Option<Login>, DockerConfigError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if name.is_empty() || !name.bytes().all(allowed) {
        return Err(DockerConfigError::HelperName {
            name: name.to_owned(),
        });
    }
    let program = format!("docker-credential-{name}");
    let failed = |reason: String| DockerConfigError::HelperFailed {
        program: program.clone(),
        registry: registry.to_owned(),
        reason,
    };
    let answer = tokio::time::timeout(HELPER_TIMEOUT, run_helper(&program, registry)).await;
    let answer = answer.map_err(|_| failed("it did not answer in time".to_owned()))?;
    let answer = answer.map_err(|source| DockerConfigError::HelperStart {
        program: program.clone(),
        source,
    })?;
    if !answer.status.success() {
        let said = String::from_utf8_lossy(&answer.stdout);
        // The one message that the helper protocol fixes: it is not a failure.
        if said.contains("credentials not found") {
            return Ok(None);
        }
        return Err(failed(said.trim().to_owned()));
    }
    // The answer holds the password, so the parser's message must not quote it.
    let answer: wire::HelperAnswer = serde_json::from_slice(&answer.stdout)
        .map_err(|_| failed("its answer is not JSON with Username and Secret".to_owned()))?;
    Ok(answer.into_login())
}

async fn run_helper(program: &str, registry: &str) -> std::io::Result<std::process::Output> {
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A helper that does not read its input has answered already.
        let _ = stdin.write_all(helper_address(registry).as_bytes()).await;
    }
    child.wait_with_output().await
}

/// The JSON text of the file and of helpers.
mod wire {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::{BTreeMap, Credentials, Deserialize, DockerConfigError, Login};

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct Config {
        #[serde(default)]
        pub(super) auths: BTreeMap<String, Entry>,
        #[serde(default)]
        pub(super) cred_helpers: BTreeMap<String, String>,
        pub(super) creds_store: Option<String>,
    }

    #[derive(Deserialize, Default)]
    #[serde(default)]
    pub(super) struct Entry {
        auth: String,
        username: String,
        password: String,
        identitytoken: String,
    }

    impl Entry {
        pub(super) fn login(self, registry: &str) -> Result<Option<Login>, DockerConfigError> {
            if !self.identitytoken.is_empty() {
                return Ok(Some(Login::IdentityToken(self.identitytoken.into())));
            }
            if !self.auth.is_empty() {
                let decoded = decode(&self.auth).ok_or_else(|| DockerConfigError::Auth {
                    registry: registry.to_owned(),
                })?;
                return Ok(Some(Login::Basic(decoded)));
            }
            let has_login = !self.username.is_empty() || !self.password.is_empty();
            let login = Login::Basic(Credentials::new(self.username, self.password));
            Ok(has_login.then_some(login))
        }
    }

    fn decode(auth: &str) -> Option<Credentials> {
        let bytes = STANDARD.decode(auth.trim()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (username, password) = text.split_once(':')?;
        Some(Credentials::new(username, password.trim_end_matches('\0')))
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    pub(super) struct HelperAnswer {
        username: String,
        secret: String,
    }

    impl HelperAnswer {
        /// The helper protocol marks identity tokens by this user name.
        pub(super) fn into_login(self) -> Option<Login> {
            if self.secret.is_empty() {
                return None;
            }
            Some(match self.username.as_str() {
                "<token>" => Login::IdentityToken(self.secret.into()),
                _ => Login::Basic(Credentials::new(self.username, self.secret)),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(config: &str, repository: &str) -> Option<String> {
        let config = Content::parse(config.as_bytes()).unwrap();
        let repository: Repository = repository.parse().unwrap();
        let registry = registry_key(repository.registry());
        match config.stored(&registry, repository.name())? {
            Login::Basic(login) => Some(format!("{}:{}", login.username, login.password.expose())),
            Login::IdentityToken(token) => Some(token.expose().to_owned()),
        }
    }

    #[test]
    fn a_login_is_found_by_host_and_by_the_longest_path() {
        let config = r#"{"auths": {
            "ghcr.io": {"auth": "YWRhOnB3"},
            "ghcr.io/org/team": {"username": "bob", "password": "x"},
            "https://index.docker.io/v1/": {"identitytoken": "t"}
        }}"#;
        assert_eq!(
            stored(config, "ghcr.io/other/app").as_deref(),
            Some("ada:pw")
        );
        assert_eq!(
            stored(config, "ghcr.io/org/team/app").as_deref(),
            Some("bob:x")
        );
        assert_eq!(stored(config, "docker.io/nginx").as_deref(), Some("t"));
        assert_eq!(stored(config, "quay.io/app"), None);
    }

    #[test]
    fn a_broken_login_is_an_error_that_names_the_registry() {
        let error = DockerConfig::parse(br#"{"auths":{"ghcr.io":{"auth":"%%"}}}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the stored login of `ghcr.io` is not base64 of `user:password`"
        );
    }

    #[tokio::test]
    async fn a_broken_file_is_an_error_only_when_a_login_is_wanted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.json");
        std::fs::write(&path, "{").unwrap();
        let config = DockerConfig::at(&path);
        let repository: Repository = "ghcr.io/a".parse().unwrap();
        let error = config.login(&repository).await.unwrap_err();
        let text = format!("cannot use the logins in `{}`", path.display());
        assert_eq!(error.to_string(), text);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(config.login(&repository).await.unwrap(), None);
    }

    #[test]
    fn an_empty_entry_beside_a_store_holds_no_login() {
        assert_eq!(stored(r#"{"auths":{"ghcr.io":{}}}"#, "ghcr.io/a"), None);
    }

    #[tokio::test]
    async fn a_helper_name_with_a_slash_is_never_run() {
        let error = ask_helper("../evil", "ghcr.io").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "`../evil` is not a credential helper's name"
        );
    }
}
