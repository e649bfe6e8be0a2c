//! `portolan fleet bootstrap`: makes a machine a node over the user's own SSH.

use std::time::Duration;

use camino::Utf8PathBuf;
use portolan_agent::{Bootstrap, BootstrapError, BootstrappedHost, SshTarget};
use portolan_server::{FleetClient, LabelChange};

use super::connection::{ConnectionArgs, told};
use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::agent::own_program;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// How long the agent has to ask the server, and to connect after that.
const AGENT_TIME: Duration = Duration::from_mins(1);

/// Make a machine that you reach by SSH a node
///
/// Your own `ssh` does all of it: it copies this program, installs the systemd unit, and lets the agent make its key there. The key's
/// fingerprint is read back over SSH, and exactly that key is approved on the server. The server gets no right to log in anywhere, and no
/// secret is sent. You need root on the machine, or sudo without a password, and the verb `approve` on the server.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet bootstrap root@web-1
  portolan fleet bootstrap deploy@10.0.0.7 --name web-7 --label role=web
  portolan fleet bootstrap root@arm-1 --program ./portolan-aarch64 --ssh-option ProxyJump=gate")]
pub(crate) struct BootstrapArgs {
    /// The machine, as `ssh` takes it
    #[arg(value_name = "USER@HOST")]
    destination: String,

    /// The name of the node; without it, that of the host
    #[arg(long, value_name = "NAME", help_heading = "Node")]
    name: Option<String>,

    /// A label of the node, such as role=web; can be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", help_heading = "Node")]
    labels: Vec<String>,

    /// The address of the server as the machine reaches it; without it, the one that this command uses
    #[arg(long, value_name = "URL", help_heading = "Node")]
    agent_server: Option<String>,

    /// The program for the machine; without it, this one
    #[arg(long, value_name = "FILE", help_heading = "Node")]
    program: Option<Utf8PathBuf>,

    /// The port of SSH
    #[arg(short, long, value_name = "PORT", help_heading = "SSH")]
    port: Option<u16>,

    /// A configuration file for `ssh` in place of your own
    #[arg(long, value_name = "FILE", help_heading = "SSH")]
    ssh_config: Option<Utf8PathBuf>,

    /// An option of `ssh`, as in its configuration file; can be repeated
    #[arg(long = "ssh-option", value_name = "OPTION", help_heading = "SSH")]
    ssh_options: Vec<String>,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn bootstrap(args: &BootstrapArgs, app: &App) -> CommandResult {
    let labels = args.labels()?;
    let client = args.connection.connect()?;
    let target = args.target();
    let name = match &args.name {
        Some(name) => name.clone(),
        None => target.host().to_owned(),
    };
    let wished = async { Ok((client.node(&name).await?, client.ca_pin().await?)) };
    let (known, pin) = app.wait(wished)?.map_err(told)?;
    if known.is_some() {
        let error = CommandError::usage(format!("there is a node `{name}` already"));
        return Err(error.hint(format!(
            "choose another name with --name, or throw it out with `portolan fleet nodes remove {name}`"
        )));
    }
    let server = args.agent_server.as_deref().unwrap_or(client.server());
    let bootstrap = Bootstrap {
        target,
        program: args.program.clone().map_or_else(own_program, Ok)?,
        server: server.to_owned(),
        ca_pin: pin.parse().map_err(CommandError::user)?,
        name: name.clone(),
    };
    let say = |text: &str| app.printer.say_unless_quiet(text);
    let host = bootstrap.install(&say).map_err(failed)?;
    let admitted = app.wait(admit(&client, &host, &name, &labels))?;
    if !admitted.map_err(told)? {
        let words = host.last_words();
        let error = CommandError::usage(format!(
            "the agent does not reach the server at {server}: {words}"
        ));
        return Err(error.hint("name an address that the machine can reach with --agent-server"));
    }
    app.printer.data(format!("node/{name} ready\n"))?;
    Ok(ExitStatus::Clean)
}

/// Approves the key that the host has shown, and waits for its agent. False if the agent does not come.
async fn admit(
    client: &FleetClient,
    host: &BootstrappedHost,
    name: &str,
    labels: &[LabelChange],
) -> Result<bool, portolan_server::FleetError> {
    let fingerprint = host.fingerprint().to_string();
    if !client.approve_key(&fingerprint, AGENT_TIME).await? {
        return Ok(false);
    }
    if !labels.is_empty() {
        client.change_node_labels(name, labels).await?;
    }
    client.wait_until_ready(name, AGENT_TIME).await
}

fn failed(error: BootstrapError) -> CommandError {
    let hint = error.hint();
    let mut failure = CommandError::user(error);
    failure.hints.extend(hint);
    failure
}

impl BootstrapArgs {
    fn target(&self) -> SshTarget {
        SshTarget {
            destination: self.destination.clone(),
            port: self.port,
            config: self.ssh_config.clone(),
            options: self.ssh_options.clone(),
        }
    }

    fn labels(&self) -> Result<Vec<LabelChange>, CommandError> {
        let read = |label: &String| match LabelChange::read(label) {
            Some(change @ LabelChange::Set(..)) => Ok(change),
            _ => {
                let message = format!("`{label}` is not a label such as role=web");
                Err(CommandError::usage(message))
            }
        };
        self.labels.iter().map(read).collect()
    }
}
