//! The journal in the log: how each unit ended.

use portolan_engine::{Event, ReadError, Reader, Record};
use tracing::{debug, warn};

use crate::printer::Hidden;

/// Logs every end until the journal is closed.
pub(super) async fn follow(mut reader: Reader, hidden: Hidden) {
    if !tracing::enabled!(tracing::Level::WARN) {
        return;
    }
    loop {
        match reader.next().await {
            Ok(Some(batch)) => batch.iter().for_each(|record| log(record, &hidden)),
            Err(ReadError::Forgotten { oldest, .. }) => reader.seek(oldest - 1),
            Ok(None) | Err(_) => return,
        }
    }
}

fn log(record: &Record, hidden: &Hidden) {
    let unit = &record.key;
    match &record.event {
        Event::Done { took_us, .. } => debug!(%unit, took_us, "unit done"),
        Event::Failed { error, .. } => {
            warn!(%unit, error = %hidden.clean_message(error), "unit failed");
        }
        Event::Skipped { because, .. } => warn!(%unit, %because, "unit skipped"),
        Event::Cancelled { .. } => warn!(%unit, "unit cancelled"),
        Event::Retrying { error, .. } => {
            warn!(%unit, error = %hidden.clean_message(error), "unit tried again");
        }
        _ => {}
    }
}
