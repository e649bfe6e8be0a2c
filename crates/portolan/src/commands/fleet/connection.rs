//! Which server is asked, and as whom: options, then environment, then the context of `fleet login`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use portolan_http::Secret;
use portolan_server::{FleetClient, FleetError};
use serde_json::{Value, json};

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

/// A server that was remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) server: String,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) ca_file: Option<PathBuf>,
}

/// The servers that were remembered.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    pub(crate) current: Option<String>,
    pub(crate) all: BTreeMap<String, Context>,
}

impl ConnectionArgs {
    /// Connects; nothing is sent yet.
    pub(crate) fn connect(&self) -> Result<FleetClient, CommandError> {
        let context = self.context()?.unwrap_or_default();
        let from_variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let server = self
            .server
            .clone()
            .or_else(|| from_variable("PORTOLAN_SERVER"));
        let server = server.or(Some(context.server).filter(|server| !server.is_empty()));
        let Some(server) = server else {
            return Err(CommandError::usage("no server is known")
                .hint("name it with --server and --token-file, or remember it with `portolan fleet login`"));
        };
        let path = |own: &Option<PathBuf>, name: &str, remembered: Option<PathBuf>| {
            let own = own
                .clone()
                .or_else(|| from_variable(name).map(PathBuf::from));
            own.or(remembered)
        };
        let token_file = path(&self.token_file, "PORTOLAN_TOKEN_FILE", context.token_file);
        let Some(token_file) = token_file else {
            return Err(
                CommandError::usage("no token is known").hint("name its file with --token-file")
            );
        };
        let token = Secret::from(read(&token_file)?.trim().to_owned());
        let authority = path(&self.ca_file, "PORTOLAN_CA_FILE", context.ca_file);
        let authorities = authority.as_deref().map(read).transpose()?;
        FleetClient::new(&server, token, authorities.into_iter().collect()).map_err(told)
    }

    fn context(&self) -> Result<Option<Context>, CommandError> {
        if self.context.is_none() && self.server.is_some() {
            return Ok(None);
        }
        let contexts = Contexts::read()?;
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

impl Contexts {
    /// Reads the file of contexts; none if there is no file.
    pub(crate) fn read() -> Result<Self, CommandError> {
        let Some(path) = path() else {
            return Ok(Self::default());
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(cannot("read", &path, error)),
        };
        let value: Value = serde_json::from_str(&text).map_err(|error| {
            let context = format!("`{}` is not a file of contexts", path.display());
            CommandError::user(anyhow::Error::new(error).context(context))
        })?;
        let text = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
        let all = value["contexts"].as_object().into_iter().flatten();
        Ok(Self {
            current: text(&value, "current"),
            all: all
                .map(|(name, one)| {
                    let context = Context {
                        server: text(one, "server").unwrap_or_default(),
                        token_file: text(one, "tokenFile").map(PathBuf::from),
                        ca_file: text(one, "caFile").map(PathBuf::from),
                    };
                    (name.clone(), context)
                })
                .collect(),
        })
    }

    /// Writes the file, for its owner alone. It holds names of files, not tokens.
    pub(crate) fn write(&self) -> Result<PathBuf, CommandError> {
        let Some(path) = path() else {
            return Err(
                CommandError::usage("there is no home directory to remember it in")
                    .hint("set HOME"),
            );
        };
        let all: serde_json::Map<String, Value> = self
            .all
            .iter()
            .map(|(name, one)| {
                let value = json!({"server": one.server, "tokenFile": one.token_file, "caFile": one.ca_file});
                (name.clone(), value)
            })
            .collect();
        let value = json!({"current": self.current, "contexts": all});
        let written = || {
            if let Some(directory) = path.parent() {
                std::fs::create_dir_all(directory)?;
            }
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&path)?;
            file.write_all(format!("{value:#}\n").as_bytes())
        };
        written().map_err(|error| cannot("write", &path, error))?;
        Ok(path)
    }
}

fn path() -> Option<PathBuf> {
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
    std::fs::read_to_string(path).map_err(|error| cannot("read", path, error))
}

fn cannot(act: &str, path: &Path, error: std::io::Error) -> CommandError {
    CommandError::user(
        anyhow::Error::new(error).context(format!("cannot {act} `{}`", path.display())),
    )
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
