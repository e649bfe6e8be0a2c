//! `portolan fleet convert`: a play of Ansible, as a TaskBook.

use camino::Utf8PathBuf;
use portolan_fleet::{ConvertedPlay, convert_playbook};
use portolan_object::counted;

use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::input::Input;

/// Convert a playbook of Ansible into a TaskBook
///
/// The book goes to standard output. What has no counterpart is reported with its line; a task without one becomes a step that
/// fails, so that nothing is missed. The exit code is 1 when something has no counterpart. Template files are not converted:
/// names in them need `vars.`, `inputs.` or `facts.`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet convert site.yml > book.yaml
  portolan fleet convert site.yml --play 2 > db.yaml
  portolan fleet lint book.yaml")]
pub(crate) struct ConvertArgs {
    /// The playbook; `-` is standard input
    #[arg(value_name = "PLAYBOOK")]
    playbook: Utf8PathBuf,

    /// The play, counted from 1; needed when there are several
    #[arg(long, value_name = "NUMBER", help_heading = "Selection")]
    play: Option<usize>,
}

pub(crate) fn convert(args: &ConvertArgs, app: &App) -> CommandResult {
    let input = Input::read(&args.playbook)?;
    let text = String::from_utf8(input.bytes);
    let path = &args.playbook;
    let text = text.map_err(|_| CommandError::usage(format!("`{path}` is not UTF-8")))?;
    let name = path.file_stem().unwrap_or("book");
    let plays = convert_playbook(&text, name);
    let plays = plays.map_err(|error| CommandError::usage(format!("`{path}`: {error}")))?;
    let play = chosen(&plays, args)?;
    app.printer.data(play.text.clone())?;
    for note in &play.notes {
        let place = match note.line {
            0 => path.to_string(),
            line => format!("{path}:{line}"),
        };
        app.printer
            .say_unless_quiet(&format!("{place}: {}", note.message));
    }
    if play.notes.is_empty() {
        return Ok(ExitStatus::Clean);
    }
    let count = counted(play.notes.len(), "note");
    app.printer.say_unless_quiet(&format!("{count} to look at"));
    Ok(ExitStatus::Findings)
}

fn chosen<'p>(
    plays: &'p [ConvertedPlay],
    args: &ConvertArgs,
) -> Result<&'p ConvertedPlay, CommandError> {
    let count = plays.len();
    let number = match (args.play, plays) {
        (None, [play]) => return Ok(play),
        (Some(number), _) => number,
        (None, _) => {
            let message = format!("the playbook has {count} plays: choose one with `--play`");
            return Err(CommandError::usage(message));
        }
    };
    let play = number.checked_sub(1).and_then(|at| plays.get(at));
    play.ok_or_else(|| CommandError::usage(format!("the playbook has {count} plays, not {number}")))
}
