//! What is known about a machine: its system, network, disks, packages, services, users, and what its own programs say.
//!
//! ```text
//! FactSource ──gather(part)──▶ one part, now
//!      └── FactCache ──▶ all parts, each with its age
//! ```
//!
//! Below another root directory the system, users, packages and services are those of that directory; kernel and network
//! are the machine's, and say so with `fromHost`. A part that cannot be found out is missing, never empty.

mod custom;
mod disks;
mod network;
mod packages;
mod services;
mod system;
mod users;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::Utf8PathBuf;
use serde_json::{Map, Value};

use crate::host::Host;
use crate::process::{Command, Program};
use crate::root::{FileKind, Follow};

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A part of the facts: its name, and what finds it out.
type Part = (&'static str, fn(&FactSource<'_>) -> Result<Value, String>);

/// Every part, in the order of the reference.
const PARTS: [Part; 11] = [
    ("os", system::os),
    ("kernel", system::kernel),
    ("hostname", system::hostname),
    ("cpus", system::cpus),
    ("memory", system::memory),
    ("network", network::network),
    ("disks", disks::disks),
    ("packages", packages::packages),
    ("services", services::services),
    ("users", users::users),
    ("custom", custom::custom),
];

/// Where facts come from.
pub struct FactSource<'a> {
    /// The machine.
    pub host: &'a Host,
    /// The directory of the machine's own programs that print facts.
    pub custom: Utf8PathBuf,
}

/// Facts with their age.
#[derive(Debug, Clone, Default)]
pub struct FactCache {
    parts: BTreeMap<&'static str, Gathered>,
}

#[derive(Debug, Clone)]
struct Gathered {
    value: Result<Value, String>,
    /// When it was found out, on the caller's clock.
    at: Duration,
}

impl FactSource<'_> {
    /// Finds out one part.
    ///
    /// # Errors
    /// Why it is not known, as a sentence without a full stop.
    pub fn gather(&self, part: &str) -> Result<Value, String> {
        let known = PARTS.iter().find(|(name, _)| *name == part);
        let (_, gather) = known.ok_or_else(|| format!("there are no facts called `{part}`"))?;
        gather(self)
    }

    /// A text file below the root directory; `None` if there is none.
    fn read_own(&self, path: &str) -> Result<Option<String>, String> {
        let content = self.host.root.read(path.into(), MAX_FILE_BYTES);
        let content = content.map_err(|error| format!("cannot read `{path}`: {error}"))?;
        Ok(content.map(|content| String::from_utf8_lossy(&content).into_owned()))
    }

    /// Whether there is a directory below the root directory.
    fn has_directory(&self, path: &str) -> bool {
        let status = self.host.root.status(path.into(), Follow::Yes);
        status.is_ok_and(|status| status.is_some_and(|status| status.kind == FileKind::Directory))
    }

    /// What a program prints.
    fn output(&self, arguments: &[&str], timeout: Duration) -> Result<Vec<u8>, String> {
        let arguments: Vec<String> = arguments.iter().map(|one| (*one).to_owned()).collect();
        let name = arguments.first().cloned().unwrap_or_default();
        let command = Command {
            timeout,
            leaves_nothing: true,
            ..self.host.command(Program::Arguments(arguments))
        };
        let exit = self.host.processes.run(&command, &self.host.stop);
        let exit = exit.map_err(|error| error.to_string())?;
        if exit.code == 0 {
            return Ok(exit.stdout);
        }
        Err(format!("`{name}` ended with {}", exit.code))
    }
}

/// A text file of the running kernel.
fn read_kernel(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("cannot read `{path}`: {error}"))
}

impl FactCache {
    /// The names of all parts.
    pub fn parts() -> impl Iterator<Item = &'static str> {
        PARTS.iter().map(|(name, _)| *name)
    }

    /// Finds out again what is older than `oldest`; only the wanted parts, or all. `now` is any clock that goes forward.
    pub fn refresh(
        &mut self,
        source: &FactSource<'_>,
        wanted: Option<&BTreeSet<String>>,
        now: Duration,
        oldest: Duration,
    ) {
        for (name, gather) in &PARTS {
            let is_wanted = wanted.is_none_or(|wanted| wanted.contains(*name));
            let known = self.parts.get(name);
            let is_fresh = known.is_some_and(|known| now.saturating_sub(known.at) < oldest);
            if is_wanted && !is_fresh {
                let value = gather(source);
                self.parts.insert(name, Gathered { value, at: now });
            }
        }
    }

    /// Everything that is known.
    pub fn values(&self) -> Value {
        let known = self.parts.iter().filter_map(|(name, part)| {
            let value = part.value.as_ref().ok()?;
            Some(((*name).to_owned(), value.clone()))
        });
        Value::Object(known.collect())
    }

    /// How long ago each part was found out, in seconds.
    pub fn ages(&self, now: Duration) -> Map<String, Value> {
        let parts = self.parts.iter();
        let ages = parts.map(|(name, part)| {
            let age = now.saturating_sub(part.at).as_secs();
            ((*name).to_owned(), age.into())
        });
        ages.collect()
    }

    /// What is not known, and why.
    pub fn problems(&self) -> BTreeMap<&'static str, &str> {
        let parts = self.parts.iter();
        parts
            .filter_map(|(name, part)| Some((*name, part.value.as_ref().err()?.as_str())))
            .collect()
    }
}
