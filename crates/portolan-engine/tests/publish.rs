//! Events from outside of units: typed on both ends, numbered with all others.

#![expect(clippy::unwrap_used, reason = "what a test sets up must work")]

use portolan_engine::{
    DomainEvent, Event, Journal, JournalOptions, Limits, PublishError, Record, Run, RunId, Unit,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Promoted {
    revision: String,
    weight: u8,
}

impl DomainEvent for Promoted {
    const TOPIC: &'static str = "rollout.promoted";
}

#[derive(Debug, Serialize, Deserialize)]
struct Fired;

impl DomainEvent for Fired {
    const TOPIC: &'static str = "beacon.fired";
}

fn promoted() -> Promoted {
    Promoted {
        revision: "abc".into(),
        weight: 100,
    }
}

fn records(journal: &Journal) -> Vec<Record> {
    let mut reader = journal.after(0);
    let mut records = Vec::new();
    while let Some(batch) = reader.try_next().unwrap() {
        records.extend(batch.iter().cloned());
    }
    records
}

#[tokio::test]
async fn what_is_published_is_read_back_as_its_type_among_the_events_of_units() {
    let journal = Journal::in_memory(JournalOptions::default());
    let publisher = journal.publisher::<Promoted>();
    let run = Run::new(Limits::default(), journal.clone());
    let inside = publisher.clone();
    run.add(
        "unit",
        &[],
        Unit::cpu(move |_| Ok(inside.publish("rollout/shop/web", &promoted())?)),
    );
    assert!(run.finish().await.is_success());
    let number = publisher.publish("rollout/shop/web", &promoted()).unwrap();

    let records = records(&journal);
    let published: Vec<&Record> = records
        .iter()
        .filter(|record| record.published::<Promoted>().is_some())
        .collect();
    assert_eq!(published.len(), 2);
    assert_eq!(published[1].seq, number);
    assert_eq!(published[1].run, RunId::NONE);
    assert_eq!(
        published[1].published::<Promoted>().unwrap().unwrap(),
        promoted()
    );
    assert!(published[1].published::<Fired>().is_none());
    assert_eq!(journal.state().len(), 1, "a published event is no unit");
}

#[test]
fn on_the_wire_the_data_is_json_and_not_text() {
    let journal = Journal::in_memory(JournalOptions::default());
    let publisher = journal.publisher::<Promoted>();
    publisher.publish("rollout/shop/web", &promoted()).unwrap();
    let record = &records(&journal)[0];
    let json = record.to_json();
    assert!(
        json.ends_with(r#""run":0,"key":"rollout/shop/web","event":"published","topic":"rollout.promoted","data":{"revision":"abc","weight":100}}"#),
        "{json}"
    );
    assert_eq!(&Record::from_json(&json).unwrap(), record);
}

#[test]
fn an_event_beyond_the_limit_is_refused_and_not_cut() {
    let journal = Journal::in_memory(JournalOptions::default());
    let large = Promoted {
        revision: "x".repeat(1 << 20),
        weight: 1,
    };
    let error = journal.publisher().publish("a", &large).unwrap_err();
    assert!(matches!(error, PublishError::TooLarge { .. }), "{error}");
    assert_eq!(journal.last(), 0);
}

#[tokio::test]
async fn a_unit_says_what_it_made_in_its_last_event() {
    let journal = Journal::in_memory(JournalOptions::default());
    let run = Run::new(Limits::default(), journal.clone());
    run.add(
        "artifact/web",
        &[],
        Unit::cpu(|cx| {
            cx.summary(&promoted())?;
            Ok(())
        }),
    );
    run.add(
        "broken",
        &[],
        Unit::cpu(|cx| {
            cx.summary(&promoted())?;
            Err::<(), _>(portolan_engine::Failure::message("no"))
        }),
    );
    run.finish().await;
    let summaries: Vec<_> = records(&journal)
        .into_iter()
        .filter_map(|record| match record.event {
            Event::Done { summary, .. } => Some(summary),
            _ => None,
        })
        .collect();
    let said = r#"{"revision":"abc","weight":100}"#.to_owned();
    assert_eq!(summaries, [Some(said.clone())]);
    let state = journal.state();
    let unit = |key: &str| state.get(&key.into()).unwrap().summary.clone();
    assert_eq!(unit("artifact/web"), Some(said));
    assert_eq!(unit("broken"), None, "a failed unit made nothing");
}
