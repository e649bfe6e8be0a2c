//! A run that prints lines into a journal.

use portolan_engine::{Failure, Journal, Limits, Run, Unit};

/// Prints lines in a run of their own.
pub(crate) async fn say(journal: &Journal, lines: u64) {
    let run = Run::new(Limits::default(), journal.clone());
    let talk = Unit::cpu(move |cx| {
        (0..lines).for_each(|line| cx.log(format!("line {line}")));
        Ok::<_, Failure>(())
    });
    run.add("speaker", &[], talk);
    assert!(run.finish().await.is_success());
}
