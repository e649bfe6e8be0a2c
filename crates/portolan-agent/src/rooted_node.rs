//! A directory that stands for a machine: what a sandbox and the benches use as nodes.
//!
//! Many of them run in one process. Each has its own identity, journal and files, and nothing outside of the directory
//! changes.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_clock::{BootClock, SystemDate};
use portolan_identity::{CaPin, JoinToken};
use portolan_modules::{Root, RootError};

use crate::agent::{Agent, AgentNotice, AgentOptions};
use crate::data::{AgentData, DataError};

/// A node that is a directory.
#[derive(Debug, Clone)]
pub struct RootedNode {
    /// The name that it asks for.
    pub name: String,
    /// Where its root directory and the agent's data are.
    pub directory: Utf8PathBuf,
}

/// The server that rooted nodes belong to, and what they enrol with.
#[derive(Clone)]
pub struct RootedFleet {
    /// The server's address.
    pub server: String,
    /// What the server's authority is known by.
    pub ca_pin: CaPin,
    /// What the nodes enrol with.
    pub join_token: JoinToken,
    /// The program that starts commands as a shim.
    pub program: Utf8PathBuf,
}

/// Why a rooted node has no agent.
#[derive(Debug, thiserror::Error)]
pub enum RootedNodeError {
    /// A file of the node cannot be written.
    #[error("cannot make the files of node {name}")]
    Files {
        /// The node.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The directory cannot stand for a machine.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The data of the agent.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl RootedNode {
    /// The agent of the node. Files that a machine has are made if they are missing.
    ///
    /// # Errors
    /// When the files cannot be made, or the directory cannot be a root.
    pub fn agent(
        &self,
        fleet: &RootedFleet,
        notify: impl Fn(AgentNotice) + Send + Sync + 'static,
    ) -> Result<Agent, RootedNodeError> {
        let root = self.directory.join("root");
        self.make_files(&root)
            .map_err(|source| RootedNodeError::Files {
                name: self.name.clone(),
                source,
            })?;
        let data = AgentData::open(&self.directory.join("data"))?;
        let options = AgentOptions {
            server: fleet.server.clone(),
            ca_pin: Some(fleet.ca_pin),
            join_token: Some(fleet.join_token.clone()),
            name: self.name.clone(),
            root: Arc::new(Root::other(&root)?),
            program: fleet.program.clone(),
            allows_exec: false,
            fakes_boot: false,
            ends_when_replaced: false,
            gossip: Some((Ipv4Addr::LOCALHOST, 0).into()),
            clock: Arc::new(BootClock),
            date: Arc::new(SystemDate),
            notify: Box::new(notify),
        };
        Ok(Agent::new(data, options))
    }

    /// Makes the few files that a machine has.
    fn make_files(&self, root: &Utf8Path) -> io::Result<()> {
        for inside in ["etc", "root", "srv", "tmp", "usr/bin", "var/lib", "var/log"] {
            std::fs::create_dir_all(root.join(inside))?;
        }
        let files = [
            ("etc/hostname", format!("{}\n", self.name)),
            ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n".to_owned()),
            ("etc/group", "root:x:0:\n".to_owned()),
            (
                "etc/os-release",
                "ID=sandbox\nNAME=\"Portolan sandbox\"\nVERSION_ID=1\n".to_owned(),
            ),
        ];
        for (name, text) in files {
            if !root.join(name).exists() {
                std::fs::write(root.join(name), text)?;
            }
        }
        Ok(())
    }
}
