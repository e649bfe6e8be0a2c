//! `portolan fleet explain`: documentation of kinds and fields, without a server.

use std::fmt::Write as _;

use portolan_kinds::{FieldExplanation, KindExplanation};

use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::table::Tone;

/// Print the documentation of a kind or a field
///
/// No server is asked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet explain repository
  portolan fleet explain variable.spec.for
  portolan fleet explain role.spec.rules.verbs")]
pub(crate) struct ExplainArgs {
    /// KIND or KIND.FIELD
    #[arg(value_name = "PATH")]
    path: String,
}

pub(crate) fn explain(args: &ExplainArgs, printer: &Printer) -> CommandResult {
    let explained = portolan_kinds::explain(&args.path);
    let explained = explained.map_err(|(message, hint)| CommandError::usage(message).hint(hint))?;
    printer.data(text(&explained, printer.canvas().styled))?;
    Ok(ExitStatus::Clean)
}

fn text(explained: &KindExplanation, styled: bool) -> String {
    let name = if explained.path.is_empty() {
        explained.kind.to_owned()
    } else {
        format!("{}.{}", explained.kind, explained.path)
    };
    let mut text = format!(
        "{} <{}>\n  {}\n",
        Tone::Name.paint(&name, styled),
        explained.shape,
        explained.doc
    );
    for demand in &explained.demands {
        let _ = writeln!(text, "  {demand}");
    }
    if !explained.fields.is_empty() {
        text.push_str("\nFIELDS\n");
    }
    for FieldExplanation {
        name,
        shape,
        doc,
        demands,
    } in &explained.fields
    {
        let name = Tone::Name.paint(name, styled);
        let _ = writeln!(text, "  {name} <{shape}>\n    {doc}");
        for demand in demands {
            let _ = writeln!(text, "    {demand}");
        }
    }
    text
}
