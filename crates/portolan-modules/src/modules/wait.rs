//! `wait`: goes on when a port accepts connections, a path exists, an address answers, or every node has a share.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use portolan_http::{Client, HttpOptions, Request, Response, Url};
use serde_json::{Map, Value, json};

use super::publish::read_share;
use crate::action::{Action, Applied, ModuleError};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::Plan;
use crate::root::Follow;
use crate::view::{Found, View};

/// The module `wait`.
pub(super) static WAIT: ModuleDefinition = ModuleDefinition {
    name: "wait",
    summary: "Waits until a port accepts connections, a path exists, an address answers, or every node that a share is for has it.",
    parameters: &[
        ParameterDefinition::optional(
            "port",
            ParameterType::Integer,
            "A TCP port that accepts connections.",
        ),
        ParameterDefinition::optional(
            "host",
            ParameterType::Text,
            "The host of `port`; this one by default.",
        ),
        ParameterDefinition::optional("path", ParameterType::Path, "A path that exists."),
        ParameterDefinition::optional(
            "http",
            ParameterType::Text,
            "An address that answers with `status`, in place of `port` and `path`.",
        ),
        ParameterDefinition::optional(
            "status",
            ParameterType::Integer,
            "The status of the answer; one from 200 to 299 by default.",
        ),
        ParameterDefinition::optional(
            "share",
            ParameterType::Text,
            "A Share in the namespace of the run that every node that it is for has fetched, in place of the others.",
        ),
        ParameterDefinition::optional(
            "version",
            ParameterType::Integer,
            "The version of `share`; the newest one by default.",
        ),
        ParameterDefinition::optional(
            "skipDown",
            ParameterType::Boolean,
            "Does not wait for nodes that are down or have left (default false), for `share`.",
        ),
        ParameterDefinition::optional(
            "timeout",
            ParameterType::Duration,
            "How long to wait; five minutes by default.",
        ),
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

/// How long to wait unless the step says otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);

/// The longest single try.
const LONGEST_TRY: Duration = Duration::from_secs(10);

/// The time between two tries.
const INTERVAL: Duration = Duration::from_millis(250);

/// How many nodes that lack a share a message names.
const NAMED: usize = 10;

/// The most of an answer that is kept in the result.
const MAX_BODY_BYTES: u64 = 64 << 10;

struct Wait {
    goal: Goal,
    timeout: Duration,
}

enum Goal {
    Port { host: String, port: u16 },
    Path(Utf8PathBuf),
    Http { url: Url, status: Option<u16> },
    Share(ShareGoal),
}

/// Every node that a share is for has it.
struct ShareGoal {
    share: String,
    version: Option<u64>,
    skip_down: bool,
}

/// What a try found: the result, or why the wait goes on.
type Try = Result<Map<String, Value>, String>;

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let timeout = parameters.duration("timeout").unwrap_or(DEFAULT_TIMEOUT);
    let status = parameters
        .integer("status", 100..=599)
        .and_then(|status| u16::try_from(status).ok());
    let host = parameters.line("host");
    let version = parameters.integer("version", 1..=i64::from(u32::MAX));
    let skip_down = parameters.optional_boolean("skipDown");
    let goal = match parameters.exactly_one(&["port", "path", "http", "share"])? {
        "share" => Goal::Share(ShareGoal {
            share: read_share(parameters)?,
            version: version.and_then(|version| u64::try_from(version).ok()),
            skip_down: skip_down.unwrap_or(false),
        }),
        _ if version.is_some() || skip_down.is_some() => {
            let name = if version.is_some() {
                "version"
            } else {
                "skipDown"
            };
            parameters.fault(name, "stands beside `share`");
            return None;
        }
        "port" => Goal::Port {
            port: u16::try_from(parameters.integer("port", 1..=65535)?).ok()?,
            host: host.unwrap_or("127.0.0.1").to_owned(),
        },
        "path" => Goal::Path(parameters.path("path")?),
        _ => {
            let text = parameters.line("http")?;
            let url = Url::parse(text).ok();
            let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
            let Some(url) = url else {
                parameters.fault(
                    "http",
                    "must be an address that begins with http:// or https://",
                );
                return None;
            };
            Goal::Http { url, status }
        }
    };
    Some(Box::new(Wait { goal, timeout }))
}

impl Action for Wait {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        if let Goal::Path(path) = &self.goal
            && view.find(path, Follow::Yes)?.1 != Found::Absent
        {
            return Ok(Plan::unchanged());
        }
        if !view.ahead.is_empty() {
            return Ok(Plan::unknown("earlier steps may change what it waits for"));
        }
        Ok(match self.goal.try_once(view.host, LONGEST_TRY) {
            Ok(_) => Plan::unchanged(),
            Err(reason) => Plan::unknown(format!("it would wait: {reason}")),
        })
    }

    fn apply(&self, host: &Host, _plan: &Plan) -> Result<Applied, ModuleError> {
        let end = Instant::now() + self.timeout;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let reason = match self.goal.try_once(host, left.clamp(INTERVAL, LONGEST_TRY)) {
                Ok(result) => {
                    return Ok(Applied {
                        result,
                        ..Applied::default()
                    });
                }
                Err(reason) => reason,
            };
            if host.stop.is_cancelled() {
                return Err(ModuleError::Stopped);
            }
            if Instant::now() >= end {
                let seconds = self.timeout.as_secs_f64();
                let reason = format!("after {seconds} s, {reason}");
                return Err(ModuleError::failed("wait for", self.goal.name(), reason));
            }
            std::thread::sleep(INTERVAL);
        }
    }
}

impl Goal {
    fn name(&self) -> String {
        match self {
            Self::Port { host, port } => format!("{host}:{port}"),
            Self::Path(path) => path.to_string(),
            Self::Http { url, .. } => portolan_http::shown(url),
            Self::Share(goal) => format!("share {}", goal.share),
        }
    }

    fn try_once(&self, machine: &Host, patience: Duration) -> Try {
        match self {
            Self::Port { host, port } => connect(host, *port, patience),
            Self::Path(path) => match machine.root.status(path, Follow::Yes) {
                Ok(Some(_)) => Ok(Map::new()),
                Ok(None) => Err("it does not exist".to_owned()),
                Err(error) => Err(error.to_string()),
            },
            Self::Http { url, status } => ask(url, *status, patience),
            Self::Share(goal) => goal.try_once(machine),
        }
    }
}

impl ShareGoal {
    fn try_once(&self, machine: &Host) -> Try {
        let asked = machine
            .shares
            .lacking(&self.share, self.version, &machine.stop);
        let found = asked.map_err(|error| error.to_string())?;
        if found.version == 0 {
            return Err("there is no version yet".to_owned());
        }
        let (mut lacking, mut down) = (Vec::new(), Vec::new());
        for one in &found.named {
            if self.skip_down && one.is_down {
                down.push(one.node.clone());
            } else {
                lacking.push(format!("{} ({})", one.node, one.reason));
            }
        }
        // Those that are not named come after those that can still get it.
        let unnamed = found.count.saturating_sub(found.named.len());
        if lacking.is_empty() && (unnamed == 0 || self.skip_down) {
            let mut result = Map::new();
            result.insert("version".to_owned(), json!(found.version));
            result.insert("without".to_owned(), json!(down));
            return Ok(result);
        }
        let more = lacking.len().saturating_sub(NAMED) + unnamed;
        lacking.truncate(NAMED);
        let more = if more == 0 {
            String::new()
        } else {
            format!(" and {more} more")
        };
        Err(format!(
            "version {} is missing on {}{more}",
            found.version,
            lacking.join(", ")
        ))
    }
}

fn connect(host: &str, port: u16, patience: Duration) -> Try {
    let addresses = (host, port)
        .to_socket_addrs()
        .map_err(|error| error.to_string())?;
    let mut reason = "the name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(_) => return Ok(Map::new()),
            Err(error) => reason = format!("{address}: {error}"),
        }
    }
    Err(reason)
}

fn ask(url: &Url, wanted: Option<u16>, patience: Duration) -> Try {
    let (status, body) = get(url, patience)?;
    let is_wanted = match wanted {
        Some(wanted) => status == wanted,
        None => (200..300).contains(&status),
    };
    if !is_wanted {
        return Err(format!("it answers with status {status}"));
    }
    let mut result = Map::new();
    result.insert("status".to_owned(), json!(status));
    result.insert("body".to_owned(), json!(String::from_utf8_lossy(&body)));
    Ok(result)
}

/// The status and the beginning of an answer. A client of its own for each try: one remembers hosts that do not answer.
fn get(url: &Url, patience: Duration) -> Result<(u16, Vec<u8>), String> {
    let options = HttpOptions {
        connect_timeout: patience,
        response_timeout: patience,
        request_timeout: patience,
        idle_timeout: patience,
        retries: 0,
        ..HttpOptions::default()
    };
    let client = Client::new(&options).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let answer = async {
        let response: Response = client.send(&Request::get(url.clone())).await?;
        let status = response.status();
        // A long answer is an answer too.
        let body = response.bytes(MAX_BODY_BYTES).await.unwrap_or_default();
        Ok::<_, portolan_http::HttpError>((status, body))
    };
    runtime
        .block_on(async { tokio::time::timeout(patience, answer).await })
        .map_err(|_| "it does not answer in time".to_owned())?
        .map_err(|error| format!("{:#}", Chain(&error)))
}

/// An error with its causes on one line.
struct Chain<'e>(&'e dyn std::error::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(out, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
