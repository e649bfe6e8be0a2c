//! The rules that every run must keep, stated locally: a unit's outcome follows from its own deed and from the outcomes
//! of the units next to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use portolan_engine::{Event, Failure, Key, Outcome, Phase, State, WaitError};

use super::random_run::RandomRun;
use super::spec::{Deed, Shape, key};

pub(crate) fn check(shape: &Shape, run: &RandomRun) {
    assert_eq!(*run.seen.complaints.lock().unwrap(), Vec::<String>::new());
    every_added_unit_has_one_outcome(shape, run);
    every_attempt_ran_once(run);
    every_outcome_is_explained(shape, run);
    the_journal_tells_every_life_in_order(run);
    folding_the_journal_gives_the_report(run);
    outputs_are_held_as_long_as_somebody_may_read_them(shape, run);
}

fn every_added_unit_has_one_outcome(shape: &Shape, run: &RandomRun) {
    let added = run.seen.added.lock().unwrap();
    let known: Vec<_> = added
        .iter()
        .filter(|unit| outcome(run, **unit).is_some())
        .collect();
    assert_eq!(
        known.len(),
        run.report.units().len(),
        "a unit that nobody added"
    );
    let unasked: Vec<_> = added
        .iter()
        .filter(|unit| outcome(run, **unit).is_none())
        .collect();
    assert!(
        unasked.iter().all(|unit| shape.units[**unit].is_lazy),
        "{unasked:?} were forgotten"
    );
    assert_eq!(unasked.len(), run.report.unasked());
}

fn every_attempt_ran_once(run: &RandomRun) {
    let mut starts = run.seen.starts.lock().unwrap().clone();
    starts.sort_unstable();
    let mut expected = Vec::new();
    for unit in 0..100 {
        let attempts = run
            .report
            .get(&key(unit))
            .map_or(0, |report| report.attempts);
        expected.extend((1..=attempts).map(|attempt| (unit, attempt)));
    }
    // An asynchronous unit may be called off between its start and its first line.
    let cancelled = run.seen.has_cancelled.load(Ordering::SeqCst) == 1;
    assert!(starts == expected || cancelled && starts.iter().all(|start| expected.contains(start)));
    starts.dedup();
    assert_eq!(
        starts.len(),
        run.seen.starts.lock().unwrap().len(),
        "an attempt ran twice"
    );
}

fn every_outcome_is_explained(shape: &Shape, run: &RandomRun) {
    for unit in 0..shape.units.len() {
        let Some(outcome) = outcome(run, unit) else {
            continue;
        };
        let explained = match outcome {
            Outcome::Cancelled => cancellation_is_explained(shape, run, unit),
            Outcome::Done(_) => all_done(shape, run, unit) && succeeds(shape.units[unit].deed),
            Outcome::Skipped { because } => {
                is_failed(run, because) && reaches(shape, run, unit, because)
            }
            Outcome::Failed(failure) => failure_is_explained(shape, run, unit, failure),
        };
        assert!(
            explained,
            "{unit} ended with {outcome:?} for no reason\n{}",
            run.report
        );
    }
}

fn cancellation_is_explained(shape: &Shape, run: &RandomRun, unit: usize) -> bool {
    let has_cancelled = run.seen.has_cancelled.load(Ordering::SeqCst) == 1;
    let Some(cancel) = shape.cancel.filter(|_| has_cancelled) else {
        return false;
    };
    let Some(whom) = cancel.whom else { return true };
    let is_cancelled = |next| matches!(outcome(run, next), Some(Outcome::Cancelled));
    ancestry(shape, unit).any(|elder| elder == whom) || neighbours(shape, unit).any(is_cancelled)
}

/// The unit, the one that added it, and so on.
fn ancestry(shape: &Shape, unit: usize) -> impl Iterator<Item = usize> {
    let parent =
        |child: &usize| (0..shape.units.len()).find(|unit| shape.units[*unit].adds.contains(child));
    std::iter::successors(Some(unit), parent)
}

fn succeeds(deed: Deed) -> bool {
    matches!(deed, Deed::Succeed | Deed::Dawdle | Deed::Flake(1 | 2))
}

fn failure_is_explained(shape: &Shape, run: &RandomRun, unit: usize, failure: &Failure) -> bool {
    match failure.error().downcast_ref() {
        Some(WaitError::Cycle { cycle }) => cycle.windows(2).all(|step| has_link(shape, step)),
        Some(WaitError::Missing { key }) => run.report.get(key).is_none(),
        Some(WaitError::Released { key: gone }) => {
            neighbours(shape, unit).any(|next| key(next) == *gone && shape.units[next].is_transient)
        }
        Some(_) => false,
        None => all_done(shape, run, unit) && !succeeds(shape.units[unit].deed),
    }
}

fn all_done(shape: &Shape, run: &RandomRun, unit: usize) -> bool {
    neighbours(shape, unit).all(|next| outcome(run, next).is_some_and(Outcome::is_done))
}

/// The first neighbour that was not done hands on its own root.
fn reaches(shape: &Shape, run: &RandomRun, unit: usize, root: &Key) -> bool {
    neighbours(shape, unit).any(|next| {
        key(next) == *root && is_failed(run, root)
            || matches!(outcome(run, next), Some(Outcome::Skipped { because }) if because == root)
    })
}

fn has_link(shape: &Shape, step: &[Key]) -> bool {
    (0..shape.units.len()).any(|unit| {
        key(unit) == step[0] && neighbours(shape, unit).any(|next| key(next) == step[1])
    })
}

fn neighbours(shape: &Shape, unit: usize) -> impl Iterator<Item = usize> {
    shape.units[unit]
        .needs
        .iter()
        .chain(&shape.units[unit].waits)
        .copied()
}

fn outcome(run: &RandomRun, unit: usize) -> Option<&Outcome> {
    run.report.get(&key(unit)).map(|report| &report.outcome)
}

fn is_failed(run: &RandomRun, key: &Key) -> bool {
    run.report
        .get(key)
        .is_some_and(|report| matches!(report.outcome, Outcome::Failed(_)))
}

fn the_journal_tells_every_life_in_order(run: &RandomRun) {
    let mut lives = BTreeMap::<&Key, Vec<&Event>>::new();
    for (position, record) in run.records.iter().enumerate() {
        assert_eq!(record.seq, position as u64 + 1);
        let is_first = position == 0;
        let is_last = position + 1 == run.records.len();
        assert_eq!(record.event == Event::Began, is_first);
        assert_eq!(matches!(record.event, Event::Ended { .. }), is_last);
        if is_first || is_last {
            continue;
        }
        lives.entry(&record.key).or_default().push(&record.event);
    }
    for (key, events) in lives {
        let mut attempt = 0;
        let mut is_running = false;
        for (position, event) in events.iter().enumerate() {
            let is_last = position + 1 == events.len();
            let holds = match event {
                Event::Queued => position == 0,
                Event::Started { attempt: started } => {
                    attempt += 1;
                    !std::mem::replace(&mut is_running, true) && *started == attempt
                }
                Event::Progress(_) | Event::Log { .. } | Event::Dropped { .. } => is_running,
                Event::Retrying {
                    attempt: failed, ..
                } => std::mem::replace(&mut is_running, false) && *failed == attempt,
                Event::Done { .. } => is_running && last_progress_is_kept(&events),
                Event::Failed { .. } | Event::Skipped { .. } | Event::Cancelled { .. } => true,
                Event::Began
                | Event::Ended { .. }
                | Event::Interrupted
                | Event::Published { .. } => false,
            };
            assert!(holds && event.is_end() == is_last, "{key}: {events:?}");
        }
    }
}

/// The report is still there, so every output is held but those of transient units that were read.
fn outputs_are_held_as_long_as_somebody_may_read_them(shape: &Shape, run: &RandomRun) {
    let held = run.seen.held.lock().unwrap().clone();
    let read = run.seen.read.lock().unwrap().clone();
    let added = run.seen.added.lock().unwrap().clone();
    let started: BTreeSet<usize> = run
        .seen
        .starts
        .lock()
        .unwrap()
        .iter()
        .map(|start| start.0)
        .collect();
    for unit in 0..shape.units.len() {
        let is_done = outcome(run, unit).is_some_and(Outcome::is_done);
        let needing = |by: &usize| shape.units[*by].needs.contains(&unit);
        let has_ended = |by: &usize| outcome(run, *by).is_some();
        // A unit that was added and never asked for still may be.
        let is_awaited = added.iter().any(|by| needing(by) && !has_ended(by));
        let was_read = read.contains(&unit) || started.iter().any(needing);
        let has_readers =
            (0..shape.units.len()).any(|by| neighbours(shape, by).any(|next| next == unit));
        let expected = if !is_done {
            Some(false)
        } else if !shape.units[unit].is_transient || !has_readers {
            Some(true)
        } else {
            // A reader that was called off may or may not have been there when the unit ended, and one that is still
            // awaited may have been added after the last one.
            (was_read && !is_awaited).then_some(false)
        };
        let is_held = held.contains(&unit);
        assert!(
            expected.is_none_or(|expected| expected == is_held),
            "{unit} is held: {is_held}"
        );
    }
}

fn last_progress_is_kept(events: &[&Event]) -> bool {
    let mut told = events.iter().rev().filter_map(|event| match event {
        Event::Progress(progress) => Some(progress.done),
        _ => None,
    });
    told.next() == Some(2)
}

fn folding_the_journal_gives_the_report(run: &RandomRun) {
    let folded: State = run.records.iter().collect();
    assert_eq!(folded, run.state);
    assert_eq!(folded.len(), run.report.units().len());
    for ((key, report), (folded_key, state)) in run.report.units().zip(folded.units()) {
        assert_eq!(key, folded_key);
        let phase = match &report.outcome {
            Outcome::Done(_) => Phase::Done,
            Outcome::Failed(failure) => Phase::Failed {
                error: failure.to_string(),
            },
            Outcome::Skipped { because } => Phase::Skipped {
                because: because.clone(),
            },
            Outcome::Cancelled => Phase::Cancelled,
        };
        assert_eq!((&state.phase, state.attempts), (&phase, report.attempts));
        assert_eq!(u128::from(state.took_us), report.took.as_micros());
    }
}
