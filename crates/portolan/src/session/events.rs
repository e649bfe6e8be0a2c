//! `--events FILE`: the journal as JSON lines, for programs that follow a run.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use portolan_engine::{Line, ReadError, Reader};
use portolan_object::API_VERSION;

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
                    writeln!(out, "{}", hidden.clean(&typed(&record.to_json()))).map_err(failed)?;
                }
                out.flush().map_err(failed)?;
            }
            Ok(None) => return Ok(()),
            Err(ReadError::Forgotten { next, oldest }) => {
                let (from, to) = (next, oldest - 1);
                let line = Line::Forgotten { from, to }.to_json();
                writeln!(out, "{}", typed(&line)).map_err(failed)?;
                reader.seek(to);
            }
            Err(error) => return Err(CommandError::user(error)),
        }
    }
}

/// An event as an object of Portolan's own kind.
pub(crate) fn typed(event: &str) -> String {
    let fields = event.strip_prefix('{').unwrap_or(event);
    format!("{{\"apiVersion\":\"{API_VERSION}\",\"kind\":\"Event\",{fields}")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use portolan_engine::{Journal, JournalOptions, Limits, Run, Unit};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn every_line_can_be_read_back_also_when_events_were_forgotten() {
        let journal = Journal::in_memory(JournalOptions {
            ring_bytes: 100 << 10,
            log_bytes: u64::MAX,
            ..JournalOptions::default()
        });
        let run = Run::new(Limits::default(), journal.clone());
        let talk = Unit::cpu(|cx| {
            (0..10_000).for_each(|line| cx.log(line.to_string()));
            Ok(())
        });
        run.add("talker", &[], talk);
        assert!(run.finish().await.is_success());
        journal.close();
        let written = Written::default();
        let sink = Sink(Some(Target {
            out: Box::new(written.clone()),
            name: "a buffer".to_owned(),
        }));
        follow(journal.after(0), sink, Hidden::default())
            .await
            .unwrap();
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let head = "{\"apiVersion\":\"portolan.dev/v1alpha1\",\"kind\":\"Event\",";
        assert!(text.lines().all(|line| line.starts_with(head)));
        let lines: Vec<_> = text
            .lines()
            .map(|line| Line::from_json(line).unwrap())
            .collect();
        let Some(Line::Forgotten { from: 1, to }) = lines.first() else {
            panic!("the first events cannot still be there");
        };
        let Some(Line::Record(next)) = lines.get(1) else {
            panic!("events follow a gap");
        };
        assert_eq!(next.seq, to + 1);
    }
}
