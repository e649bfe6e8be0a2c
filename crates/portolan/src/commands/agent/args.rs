//! The arguments of `portolan agent`, and the files that they name.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_identity::{CaPin, JoinToken};
use portolan_modules::Root;
use zeroize::Zeroizing;

use crate::error::CommandError;

/// Make this machine a node of a fleet, and stay connected to a server
///
/// The first start asks the server for a certificate: with a join token (`portolan fleet join-token create` prints it with the pin),
/// or without one, until somebody approves the key (`portolan fleet nodes approve`). The key never leaves the data directory. Later
/// starts need neither the token nor the pin; the certificate is renewed at half its life.
///
/// No `PORTOLAN_…` variable of the clients is read. SIGTERM ends the agent in good order. When another program takes the place of this
/// one, as an upgrade does, the agent becomes that program before its next step; commands go on meanwhile.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan agent --server https://fleet.example.com:7443 --token-file join.token --ca-pin sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae --name web-1 --data /var/lib/portolan-agent
  portolan agent --server https://fleet.example.com:7443 --name web-1 --data /var/lib/portolan-agent
  portolan agent --data /var/lib/portolan-agent --show-key
  portolan agent --data /var/lib/portolan-agent --acknowledge-damage")]
pub(crate) struct AgentArgs {
    /// The address of the server
    #[arg(
        long,
        value_name = "URL",
        required_unless_present_any = ["show_key", "acknowledge_damage"],
        help_heading = "Node"
    )]
    pub(super) server: Option<String>,

    /// The name of the node
    #[arg(
        long,
        value_name = "NAME",
        required_unless_present_any = ["show_key", "acknowledge_damage"],
        help_heading = "Node"
    )]
    pub(super) name: Option<String>,

    /// The directory of the key, the certificate and the journal
    #[arg(long, value_name = "DIRECTORY", help_heading = "Node")]
    pub(super) data: Utf8PathBuf,

    /// The directory that stands for `/`, to try things; without it, the machine's own
    #[arg(long, value_name = "DIRECTORY", help_heading = "Node")]
    root: Option<Utf8PathBuf>,

    /// Take `reboot` steps below --root: they change the boot id there, and the agent starts anew. Without it, they are refused
    #[arg(long, requires = "root", help_heading = "Node")]
    pub(super) fake_boot: bool,

    /// Take single commands that users with the right `exec` give; without it, the node takes books alone
    #[arg(long, help_heading = "Node")]
    pub(super) allow_exec: bool,

    /// Put damaged journals aside and end: their books, which the node has refused since, are run again. Look at the node first, because
    /// nobody knows which of their steps were done, and stop its agent
    #[arg(long, conflicts_with = "show_key", help_heading = "Node")]
    pub(super) acknowledge_damage: bool,

    /// The UDP address for gossip with other agents, which notice sooner than the server that a node is down; others use the
    /// address that the server sees, unless one is given here
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "0.0.0.0:0",
        help_heading = "Gossip"
    )]
    pub(super) gossip_listen: std::net::SocketAddr,

    /// Do not talk to other agents: the connection to the server alone decides whether the node is down
    #[arg(long, help_heading = "Gossip")]
    pub(super) no_gossip: bool,

    /// The file with the join token, for the first start
    #[arg(long, value_name = "FILE", help_heading = "Enrolment")]
    token_file: Option<Utf8PathBuf>,

    /// The pin of the server's authority, for the first start
    #[arg(long, value_name = "PIN", help_heading = "Enrolment")]
    ca_pin: Option<String>,

    /// Print the fingerprint of the node's key, which is made if there is none, and end
    #[arg(long, help_heading = "Enrolment")]
    pub(super) show_key: bool,
}

impl AgentArgs {
    pub(super) fn ca_pin(&self) -> Result<CaPin, CommandError> {
        let Some(pin) = &self.ca_pin else {
            let mut error = CommandError::usage("the first start needs --ca-pin");
            let hint =
                "`portolan fleet join-token create` prints the pin of the server's authority";
            error.hints.push(hint.to_owned());
            return Err(error);
        };
        let parsed = pin.parse();
        parsed.map_err(|error| CommandError::usage(format!("--ca-pin: {error}")))
    }

    pub(super) fn root(&self) -> Result<Root, CommandError> {
        let root = match &self.root {
            Some(path) => Root::other(path),
            None => Root::machine(),
        };
        root.map_err(CommandError::user)
    }

    pub(super) fn join_token(&self) -> Result<Option<JoinToken>, CommandError> {
        self.token_file.as_deref().map(read_token).transpose()
    }
}

/// Reads a join token. The text of anything else is neither sent nor shown.
fn read_token(path: &Utf8Path) -> Result<JoinToken, CommandError> {
    let text = std::fs::read_to_string(path).map(Zeroizing::new);
    let text = text.map_err(|error| {
        let context = format!("cannot read `{path}`");
        CommandError::user(anyhow::Error::new(error).context(context))
    })?;
    text.trim().parse().map_err(|_| {
        let mut error = CommandError::usage(format!("`{path}` does not hold a join token"));
        let hint = "make one with `portolan fleet join-token create`; tokens of users are for `portolan fleet`";
        error.hints.push(hint.to_owned());
        error
    })
}
