//! `portolan fleet edit`: an object, changed in an editor.

use std::io::Write as _;
use std::process::Command;

use portolan_kinds::KindObject;
use portolan_server::{FleetError, FleetMethod};

use super::connection::{ConnectionArgs, told};
use super::object_args::{NamespaceArgs, paths};
use super::shown;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Change an object in an editor
///
/// The editor is that of `PORTOLAN_EDITOR`, `VISUAL` or `EDITOR`, or vi. If somebody else changed the object meanwhile, nothing is
/// written, and the edited text is kept in a file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet edit variable region -n web
  EDITOR=nano portolan fleet edit node/db-1")]
pub(crate) struct EditArgs {
    /// KIND NAME or KIND/NAME
    #[arg(value_name = "OBJECT", required = true, num_args = 1..=2)]
    object: Vec<String>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn edit(args: &EditArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let namespace = &args.namespace.namespace;
    let paths = paths(&args.object, |kind| {
        kind.is_namespaced.then(|| namespace.clone())
    })?;
    let [path] = paths.as_slice() else {
        return Err(CommandError::usage("one object can be edited at a time"));
    };
    let address = path.to_string();
    let before = app
        .runtime()?
        .block_on(client.request(FleetMethod::Get, &address, &[], None));
    let before = shown::yaml(&before.map_err(told)?)?;
    let mut file = tempfile::Builder::new()
        .prefix("portolan-edit-")
        .suffix(".yaml")
        .tempfile()?;
    file.write_all(before.as_bytes())?;
    file.flush()?;
    run_editor(file.path())?;
    let after = std::fs::read_to_string(file.path())?;
    if after == before {
        app.printer.say_unless_quiet("nothing was changed");
        return Ok(ExitStatus::Clean);
    }
    let written = KindObject::read_text(&after).map_err(|faults| {
        let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
        CommandError::usage(texts.join("\n"))
    });
    let sent = written.and_then(|object| {
        let body = object.to_json().to_string();
        let put = client.request(FleetMethod::Put, &address, &[], Some(&body));
        let sent: Result<_, FleetError> = app.runtime()?.block_on(put);
        sent.map_err(told)
    });
    match sent {
        Ok(object) => {
            app.printer
                .data(format!("{} edited\n", shown::name(&object)))?;
            Ok(ExitStatus::Clean)
        }
        Err(error) => {
            let (_, kept) = file
                .keep()
                .map_err(|error| CommandError::from(error.error))?;
            Err(error.hint(format!("the edited text is in {}", kept.display())))
        }
    }
}

fn run_editor(path: &std::path::Path) -> Result<(), CommandError> {
    let set = |name: &str| {
        std::env::var(name)
            .ok()
            .filter(|text| !text.trim().is_empty())
    };
    let editor = ["PORTOLAN_EDITOR", "VISUAL", "EDITOR"]
        .into_iter()
        .find_map(set);
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let status = Command::new(program)
        .args(words)
        .arg(path)
        .status()
        .map_err(|error| {
            CommandError::user(
                anyhow::Error::new(error).context(format!("cannot start the editor `{editor}`")),
            )
        })?;
    if status.success() {
        Ok(())
    } else {
        Err(CommandError::usage(
            "the editor failed; nothing was changed",
        ))
    }
}
