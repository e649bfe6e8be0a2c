//! `--events FILE`: the journal as JSON lines, for programs that follow a run.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use portolan_engine::{ReadError, Reader};

use crate::error::CommandError;
use crate::printer::{Hidden, Printer};

/// Where events are written, if anywhere.
pub(super) struct Sink(Option<Target>);

struct Target {
    out: Box<dyn Write + Send>,
    /// As error messages call it.
    name: String,
}

impl Sink {
    /// Opens the file that the user named; `-` is standard output.
    pub(super) fn open(printer: &Printer) -> Result<Self, CommandError> {
        let Some(path) = printer.events() else {
            return Ok(Self(None));
        };
        if path == "-" {
            return Ok(Self(Some(Target {
                out: Box::new(io::stdout()),
                name: "standard output".to_owned(),
            })));
        }
        let file = File::create(path).map_err(|error| {
            CommandError::user(
                anyhow::Error::new(error).context(format!("cannot write events to `{path}`")),
            )
        })?;
        Ok(Self(Some(Target {
            out: Box::new(BufWriter::new(file)),
            name: format!("`{path}`"),
        })))
    }
}

/// Writes every event until the journal is closed; events that went by too fast to be kept are named.
pub(super) async fn follow(
    mut reader: Reader,
    sink: Sink,
    hidden: Hidden,
) -> Result<(), CommandError> {
    let Some(Target { mut out, name }) = sink.0 else {
        return Ok(());
    };
    let failed = |error| CommandError::output(&name, error);
    loop {
        match reader.next().await {
            Ok(Some(batch)) => {
                for record in batch.iter() {
                    writeln!(out, "{}", hidden.clean(&record.to_json())).map_err(failed)?;
                }
                out.flush().map_err(failed)?;
            }
            Ok(None) => return Ok(()),
            Err(ReadError::Forgotten { next, oldest }) => {
                writeln!(
                    out,
                    r#"{{"event":"forgotten","from":{next},"to":{}}}"#,
                    oldest - 1
                )
                .map_err(failed)?;
                reader.seek(oldest - 1);
            }
            Err(error) => return Err(CommandError::user(error)),
        }
    }
}
