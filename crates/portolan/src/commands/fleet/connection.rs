//! Which server is asked, and as whom: options, then environment, then the context of `fleet login`.

use std::path::{Path, PathBuf};

use portolan_http::Secret;
use portolan_server::{FleetClient, FleetContext, FleetContexts, FleetCredential, FleetError};

use crate::error::CommandError;

/// The server and the identity.
#[derive(Debug, clap::Args)]
pub(crate) struct ConnectionArgs {
    /// The address of the server, such as `https://localhost:7443`
    #[arg(long, value_name = "URL", help_heading = "Server")]
    pub(crate) server: Option<String>,

    /// The file with the token
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(crate) token_file: Option<PathBuf>,

    /// The certificate of the server's authority, trusted besides the machine's
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(crate) ca_file: Option<PathBuf>,

    /// The context to use instead of the current one
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    pub(crate) context: Option<String>,
}

impl ConnectionArgs {
    /// Connects; nothing is sent yet.
    pub(crate) fn connect(&self) -> Result<FleetClient, CommandError> {
        let context = self.context()?;
        let from_variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let server = self
            .server
            .clone()
            .or_else(|| from_variable("PORTOLAN_SERVER"));
        let server = server.or_else(|| Some(context.as_ref()?.server.clone()));
        let Some(server) = server else {
            return Err(CommandError::usage("no server is known")
                .hint("name it with --server and --token-file, or remember it with `portolan fleet login`"));
        };
        let named = |own: &Option<PathBuf>, name: &str| {
            own.clone()
                .or_else(|| from_variable(name).map(PathBuf::from))
        };
        let remembered = context.as_ref().and_then(|one| one.ca_file.clone());
        let authority = named(&self.ca_file, "PORTOLAN_CA_FILE").or(remembered);
        // A certificate is remembered by a context only; a token that is named goes before it.
        let token_file = named(&self.token_file, "PORTOLAN_TOKEN_FILE");
        let certificate = context.as_ref().and_then(|one| one.certificate.as_ref());
        let credential = match (token_file, certificate) {
            (None, Some((certificate, key))) => by_certificate(certificate, key)?,
            (named, _) => by_token(named.or_else(|| context?.token_file))?,
        };
        connect(&server, credential, authority.as_deref())
    }

    fn context(&self) -> Result<Option<FleetContext>, CommandError> {
        if self.context.is_none() && self.server.is_some() {
            return Ok(None);
        }
        let contexts = match contexts_file() {
            Some(file) => FleetContexts::read(&file).map_err(CommandError::user)?,
            None => FleetContexts::default(),
        };
        let Some(name) = self.context.as_ref().or(contexts.current.as_ref()) else {
            return Ok(None);
        };
        let found = contexts.all.get(name).cloned();
        if found.is_none() && self.context.is_some() {
            let known: Vec<&str> = contexts.all.keys().map(String::as_str).collect();
            return Err(CommandError::usage(format!("there is no context `{name}`"))
                .hint(format!("there are: {}", known.join(", "))));
        }
        Ok(found)
    }
}

/// A client of a server; nothing is sent yet.
pub(super) fn connect(
    server: &str,
    credential: FleetCredential,
    authority: Option<&Path>,
) -> Result<FleetClient, CommandError> {
    let authorities = authority.map(read).transpose()?;
    let authorities = authorities.into_iter().collect();
    FleetClient::with_credential(server, credential, authorities).map_err(told)
}

fn by_token(file: Option<PathBuf>) -> Result<FleetCredential, CommandError> {
    let Some(file) = file else {
        return Err(
            CommandError::usage("no token is known").hint("name its file with --token-file")
        );
    };
    let token = Secret::from(read(&file)?.trim().to_owned());
    Ok(FleetCredential::Token(token))
}

/// Reads a client certificate and its key.
pub(super) fn by_certificate(
    certificate: &Path,
    key: &Path,
) -> Result<FleetCredential, CommandError> {
    Ok(FleetCredential::Certificate {
        certificate: read(certificate)?,
        key: Secret::from(read(key)?),
    })
}

/// The file of contexts; `None` without a home directory.
pub(super) fn contexts_file() -> Option<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let directory =
        set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(directory.join("portolan/contexts.json"))
}

fn read(path: &Path) -> Result<String, CommandError> {
    std::fs::read_to_string(path).map_err(|error| {
        let context = format!("cannot read `{}`", path.display());
        CommandError::user(anyhow::Error::new(error).context(context))
    })
}

/// An error of the server as a command tells it: every fault of an object, and advice.
pub(crate) fn told(error: FleetError) -> CommandError {
    let FleetError::Refused {
        message,
        hint,
        details,
        ..
    } = &error
    else {
        return CommandError::user(error);
    };
    let faults = details["faults"].as_array().into_iter().flatten();
    let faults: Vec<String> = faults
        .map(|fault| {
            let hint = fault["hint"].as_str().map(|hint| format!(" ({hint})"));
            let (path, message) = (fault["path"].as_str(), fault["message"].as_str());
            format!(
                "`{}` {}{}",
                path.unwrap_or_default(),
                message.unwrap_or_default(),
                hint.unwrap_or_default()
            )
        })
        .collect();
    let text = if faults.is_empty() {
        message.clone()
    } else {
        faults.join("\n")
    };
    let told = CommandError::usage(text);
    match hint {
        Some(hint) => told.hint(hint.clone()),
        None => told,
    }
}
