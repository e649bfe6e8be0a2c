//! What a run does, one example per rule.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what a test sets up must work"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portolan_engine::{
    CancellationToken, Event, Failure, Journal, JournalOptions, Key, Limits, Outcome, Report,
    Retry, Run, Unit, WaitError,
};

fn new_run() -> (Run, Journal) {
    let journal = Journal::in_memory(JournalOptions::default());
    (
        Run::new(
            Limits {
                cpu: 2,
                io: 2,
                process: 1,
            },
            journal.clone(),
        ),
        journal,
    )
}

fn key<T>(text: &str) -> Key<T> {
    text.into()
}

fn fail(text: &str) -> Unit<()> {
    let text = text.to_owned();
    Unit::cpu(move |_| Err::<(), _>(Failure::message(text)))
}

fn ok() -> Unit<()> {
    Unit::cpu(|_| Ok(()))
}

/// A unit that asks for the outputs of others, one after another.
fn asking(keys: &[&str]) -> Unit<()> {
    let keys: Vec<Key<()>> = keys.iter().map(|text| key(text)).collect();
    Unit::io(|cx| async move {
        for key in &keys {
            cx.output::<()>(key).await?;
        }
        Ok(())
    })
}

fn events(journal: &Journal, of: &str) -> Vec<Event> {
    let mut reader = journal.after(0);
    let mut events = Vec::new();
    while let Some(batch) = reader.try_next().unwrap() {
        let own = batch.iter().filter(|record| record.key == key(of));
        events.extend(own.map(|record| record.event.clone()));
    }
    events
}

fn error_of(report: &Report, unit: &str) -> String {
    match &report.get(&key(unit)).expect("the unit was queued").outcome {
        Outcome::Failed(failure) => failure.to_string(),
        other => panic!("`{unit}` ended with {other:?}"),
    }
}

#[tokio::test]
async fn a_run_without_units_succeeds() {
    let report = new_run().0.finish().await;
    assert!(report.is_success());
    assert_eq!(
        report.to_string(),
        "0 done, 0 failed, 0 skipped, 0 cancelled"
    );
}

#[tokio::test]
async fn adding_a_key_twice_is_the_same_unit() {
    let (run, journal) = new_run();
    assert!(run.add("a", &[], Unit::cpu(|_| Ok(1))));
    assert!(!run.add("a", &[], Unit::cpu(|_| Ok(2))));
    let report = run.finish().await;
    assert_eq!(report.output::<i32>(&key("a")).as_deref(), Some(&1));
    assert_eq!(events(&journal, "a").len(), 3);
}

#[tokio::test]
async fn a_failure_skips_what_needs_it_and_nothing_else() {
    let (run, _) = new_run();
    run.add("c", &[key("b")], ok());
    run.add("b", &[key("a")], ok());
    run.add("a", &[], fail("no such chart"));
    run.add("d", &[], ok());
    let report = run.finish().await;
    let roots = report.roots();
    assert_eq!(roots.len(), 1);
    assert_eq!(roots[0].caused, [&key("b"), &key("c")]);
    assert_eq!(
        report.to_string(),
        "`a` failed: no such chart\n  skipped `b`\n  skipped `c`\n1 done, 1 failed, 2 skipped, 0 cancelled"
    );
}

/// Which need failed first depends on the machine; which is named must not.
#[tokio::test]
async fn the_first_failed_need_in_order_is_the_one_named() {
    for _ in 0..20 {
        let (run, _) = new_run();
        run.add("late", &[key("x"), key("y")], ok());
        run.add("y", &[], fail("quick"));
        run.add(
            "x",
            &[],
            Retry::attempts(2)
                .rest(Duration::from_millis(1), Duration::from_millis(1))
                .cpu(|_| Err::<(), _>(Failure::message("slow"))),
        );
        let report = run.finish().await;
        let late = &report.get(&key("late")).unwrap().outcome;
        assert!(matches!(late, Outcome::Skipped { because } if *because == key("x")));
    }
}

#[tokio::test]
async fn a_lazy_unit_starts_when_it_is_needed_or_asked_for() {
    let (run, journal) = new_run();
    run.add("needed", &[], ok().lazy());
    run.add("asked", &[key("deeper")], ok().lazy());
    run.add("deeper", &[], ok().lazy());
    run.add("left", &[], ok().lazy());
    run.add("a", &[key("needed")], asking(&["asked"]));
    let report = run.finish().await;
    assert_eq!(report.counts().done, 4);
    assert_eq!(report.unasked(), 1);
    assert_eq!(events(&journal, "left"), []);
}

#[tokio::test]
async fn adding_a_lazy_unit_again_in_earnest_starts_it() {
    let (run, _) = new_run();
    run.add("a", &[], ok().lazy());
    run.add("a", &[], ok());
    assert_eq!(run.finish().await.counts().done, 1);
}

#[tokio::test]
async fn a_cycle_of_needs_is_a_failure_that_names_it() {
    let (run, _) = new_run();
    run.add("a", &[key("b")], ok());
    run.add("b", &[key("c")], ok());
    run.add("c", &[key("a")], ok());
    let report = run.finish().await;
    assert_eq!(
        error_of(&report, "c"),
        "cycle: `c` needs `a` needs `b` needs `c`"
    );
    assert_eq!(report.counts().skipped, 2);
}

#[tokio::test]
async fn a_unit_that_needs_or_awaits_itself_is_a_cycle() {
    let (run, _) = new_run();
    run.add("a", &[key("a")], ok());
    run.add("b", &[], asking(&["b"]));
    let report = run.finish().await;
    assert_eq!(error_of(&report, "a"), "cycle: `a` needs `a`");
    assert_eq!(error_of(&report, "b"), "cycle: `b` needs `b`");
}

#[tokio::test]
async fn a_cycle_that_closes_through_a_wait_is_found_at_the_wait() {
    let (run, _) = new_run();
    run.add("a", &[], asking(&["b"]));
    run.add("b", &[key("c")], ok().lazy());
    run.add("c", &[], asking(&["a"]).lazy());
    let report = run.finish().await;
    assert_eq!(
        error_of(&report, "c"),
        "cycle: `c` needs `a` needs `b` needs `c`"
    );
    assert_eq!(report.counts().skipped, 2);
}

/// Other units run on for as long as they like while the cycle is reported.
#[tokio::test]
async fn a_cycle_is_found_while_others_still_run() {
    let (run, _) = new_run();
    run.add(
        "long",
        &[],
        Unit::process(|cx| async move {
            let cycle = cx.output::<()>(&key("a")).await;
            assert!(matches!(cycle, Err(WaitError::Unavailable { .. })));
            Ok(())
        }),
    );
    run.add("a", &[], asking(&["b"]));
    run.add("b", &[], asking(&["a"]));
    let report = run.finish().await;
    assert_eq!((report.counts().done, report.counts().failed), (1, 1));
}

#[tokio::test]
async fn a_unit_that_nobody_adds_is_missing_and_not_waited_for_forever() {
    let (run, _) = new_run();
    run.add("a", &[key("nobody")], ok());
    run.add("b", &[], asking(&["nobody"]));
    let report = run.finish().await;
    assert_eq!(error_of(&report, "a"), "there is no unit `nobody`");
    assert_eq!(error_of(&report, "b"), "there is no unit `nobody`");
}

#[tokio::test]
async fn a_unit_may_be_asked_for_before_it_is_added() {
    let (run, _) = new_run();
    run.add("early", &[], asking(&["found"]));
    run.add(
        "finder",
        &[],
        Unit::io(|cx| async move {
            tokio::task::yield_now().await;
            cx.add("found", &[], ok().lazy());
            Ok(())
        }),
    );
    assert_eq!(run.finish().await.counts().done, 3);
}

/// With one place, a unit that kept its place while it waits would wait forever.
#[tokio::test]
async fn a_waiting_unit_gives_its_place_to_what_it_waits_for() {
    let journal = Journal::in_memory(JournalOptions::default());
    let run = Run::new(
        Limits {
            cpu: 1,
            io: 1,
            process: 1,
        },
        journal,
    );
    run.add(
        "a",
        &[],
        Unit::io(|cx| async move {
            let (b, c) = (key("b"), key("c"));
            let (b, c) = tokio::join!(cx.output::<()>(&b), cx.output::<()>(&c));
            b?;
            c?;
            Ok(())
        }),
    );
    run.add("b", &[], asking(&["c"]).lazy());
    run.add("c", &[], Unit::io(|_| async { Ok(()) }).lazy());
    assert_eq!(run.finish().await.counts().done, 3);
}

#[tokio::test]
async fn a_synchronous_unit_that_asks_for_more_than_its_needs_is_told_so() {
    let (run, _) = new_run();
    run.add(
        "a",
        &[],
        Unit::cpu(|cx| cx.need::<()>(&key("b")).map_err(Failure::from)),
    );
    run.add("b", &[key("a")], ok());
    let report = run.finish().await;
    assert_eq!(
        error_of(&report, "a"),
        "`b` is not done: a synchronous unit must name it in its needs"
    );
}

#[tokio::test]
async fn asking_for_the_wrong_type_says_both_types() {
    let (run, _) = new_run();
    run.add("number", &[], Unit::cpu(|_| Ok(1u8)));
    run.add("a", &[], asking(&["number"]));
    let report = run.finish().await;
    assert_eq!(
        error_of(&report, "a"),
        "the output of `number` is a `u8`, not a `()`"
    );
}

#[tokio::test]
async fn a_panic_is_the_failure_of_its_unit_alone() {
    let (run, _) = new_run();
    let again = Retry::attempts(3);
    run.add(
        "sync",
        &[],
        again.cpu(|_| -> Result<(), Failure> { panic!("index {}", 7) }),
    );
    run.add(
        "async",
        &[],
        again.io(|_| async { if true { panic!("late") } else { Ok(()) } }),
    );
    run.add(
        "computing",
        &[],
        Unit::io(|cx| async move {
            cx.compute(|| panic!("deep")).await;
            Ok(())
        }),
    );
    run.add("fine", &[], ok());
    let report = run.finish().await;
    assert_eq!(error_of(&report, "sync"), "panicked: index 7");
    assert_eq!(error_of(&report, "async"), "panicked: late");
    assert_eq!(error_of(&report, "computing"), "panicked: deep");
    assert_eq!(report.get(&key("sync")).unwrap().attempts, 1);
    assert_eq!(report.counts().done, 1);
}

#[tokio::test(start_paused = true)]
async fn a_flaky_unit_is_tried_again_after_a_rest() {
    let (run, journal) = new_run();
    run.add(
        "a",
        &[],
        Retry::attempts(3)
            .rest(Duration::from_mins(1), Duration::from_hours(1))
            .io(|cx| async move {
                if cx.attempt() < 3 {
                    Err(Failure::message("refused"))
                } else {
                    Ok(cx.attempt())
                }
            }),
    );
    let report = run.seed(7).finish().await;
    assert_eq!(report.output::<u32>(&key("a")).as_deref(), Some(&3));
    assert_eq!(report.get(&key("a")).unwrap().attempts, 3);
    let rests: Vec<u64> = events(&journal, "a")
        .into_iter()
        .filter_map(|event| match event {
            Event::Retrying {
                delay_ms, error, ..
            } if error == "refused" => Some(delay_ms),
            _ => None,
        })
        .collect();
    assert!((30_000..=60_000).contains(&rests[0]) && (60_000..=120_000).contains(&rests[1]));
    assert!(report.took() >= Duration::from_millis(rests.iter().sum()));
}

#[tokio::test]
async fn a_final_failure_is_not_tried_again() {
    let (run, _) = new_run();
    run.add(
        "a",
        &[],
        Retry::attempts(5).cpu(|_| Err::<(), _>(Failure::message("forbidden").is_final())),
    );
    assert_eq!(run.finish().await.get(&key("a")).unwrap().attempts, 1);
}

#[derive(Debug, thiserror::Error)]
#[error("cannot render")]
struct Wrapped(#[source] WaitError);

#[tokio::test]
async fn a_failed_wait_passed_on_as_a_cause_skips_the_unit() {
    let (run, _) = new_run();
    run.add("a", &[], fail("broken"));
    run.add(
        "b",
        &[],
        Unit::io(|cx| async move {
            cx.output::<()>(&key("a")).await.map_err(Wrapped)?;
            Ok(())
        }),
    );
    let report = run.finish().await;
    assert!(matches!(
        &report.get(&key("b")).unwrap().outcome,
        Outcome::Skipped { because } if *because == key("a")
    ));
}

#[tokio::test]
async fn cancelling_the_token_above_ends_what_runs_and_what_has_not_started() {
    let above = CancellationToken::new();
    let journal = Journal::in_memory(JournalOptions::default());
    let run = Run::new(
        Limits {
            cpu: 1,
            io: 1,
            process: 1,
        },
        journal,
    )
    .under(&above);
    run.add(
        "running",
        &[],
        Unit::io(move |_| async move {
            above.cancel();
            std::future::pending::<()>().await;
            Ok(())
        }),
    );
    run.add("in line", &[], Unit::io(|_| async { Ok(()) }));
    run.add("waiting", &[key("running")], ok());
    run.add(
        "computing",
        &[],
        Unit::cpu(|cx| {
            while !cx.is_cancelled() {
                std::thread::yield_now();
            }
            Err::<(), _>(Failure::message("stopped half-way"))
        }),
    );
    let report = run.finish().await;
    assert_eq!(report.counts().cancelled, 4);
}

#[tokio::test]
async fn a_run_that_is_cancelled_before_it_begins_starts_nothing() {
    let above = CancellationToken::new();
    let (run, journal) = new_run();
    run.add("computing", &[], ok());
    run.add("waiting", &[], Unit::io(|_| async { Ok(()) }));
    above.cancel();
    let report = run.under(&above).finish().await;
    assert_eq!(report.counts().cancelled, 2);
    let cancelled = [Event::Queued, Event::Cancelled { took_us: 0 }];
    assert_eq!(events(&journal, "computing"), cancelled);
    assert_eq!(events(&journal, "waiting"), cancelled);
}

#[tokio::test]
async fn a_graceful_unit_cleans_up_before_it_ends() {
    let cleaned = Arc::new(AtomicUsize::new(0));
    let (run, _) = new_run();
    let canceller = run.canceller();
    let seen = Arc::clone(&cleaned);
    run.add(
        "a",
        &[],
        Unit::process(move |cx| async move {
            canceller.cancel();
            cx.cancelled().await;
            tokio::task::yield_now().await;
            seen.fetch_add(1, Ordering::SeqCst);
            Err::<(), _>(Failure::message("interrupted"))
        })
        .graceful(),
    );
    assert_eq!(run.finish().await.counts().cancelled, 1);
    assert_eq!(cleaned.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn cancelling_one_unit_cancels_what_it_added_and_what_needs_it() {
    let (run, _) = new_run();
    let canceller = run.canceller();
    run.add(
        "parent",
        &[],
        Unit::io(move |cx| async move {
            cx.add(
                "child",
                &[],
                Unit::io(|_| std::future::pending::<Result<(), Failure>>()),
            );
            canceller.cancel_unit(cx.key());
            std::future::pending::<Result<(), Failure>>().await
        }),
    );
    run.add("after", &[key("parent")], ok());
    run.add("other", &[], ok());
    let counts = run.finish().await.counts();
    assert_eq!((counts.cancelled, counts.done), (3, 1));
}

#[tokio::test]
async fn a_resting_unit_can_be_cancelled() {
    let (run, _) = new_run();
    let canceller = run.canceller();
    let hour = Duration::from_hours(1);
    run.add(
        "a",
        &[],
        Retry::attempts(2)
            .rest(hour, hour)
            .io(|_| async { Err::<(), _>(Failure::message("down")) }),
    );
    run.add(
        "b",
        &[],
        Unit::io(|_| async move {
            tokio::task::yield_now().await;
            canceller.cancel();
            Ok(())
        }),
    );
    assert_eq!(run.finish().await.counts().cancelled, 1);
}

#[tokio::test]
async fn dropping_the_run_drops_what_waits() {
    struct SendsWhenDropped(tokio::sync::mpsc::UnboundedSender<()>);
    impl Drop for SendsWhenDropped {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let (run, _) = new_run();
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    run.add(
        "a",
        &[],
        Unit::io(move |_| async move {
            let _told = SendsWhenDropped(tell);
            let _ = begun.send(());
            std::future::pending::<Result<(), Failure>>().await
        }),
    );
    tokio::select! {
        _ = run.finish() => unreachable!("the unit never ends"),
        _ = has_begun => {}
    }
    told.recv().await.expect("the unit's future was dropped");
}

#[tokio::test]
async fn a_chain_of_a_hundred_thousand_needs_does_not_overflow_the_stack() {
    let (run, _) = new_run();
    run.add("0", &[], fail("at the root"));
    for link in 1..100_000 {
        run.add(link.to_string(), &[key(&(link - 1).to_string())], ok());
    }
    assert_eq!(run.finish().await.counts().skipped, 99_999);
}

#[tokio::test]
async fn a_chain_of_waits_found_while_running_does_not_overflow_the_stack() {
    fn link(depth: u32) -> Unit<u32> {
        Unit::io(move |cx| async move {
            if depth < 20_000 {
                let next = Key::from(format!("deep/{depth}"));
                cx.add(next.clone(), &[], link(depth + 1));
                cx.output::<u32>(&next).await?;
            }
            Ok(depth)
        })
    }
    let (run, _) = new_run();
    run.add("deep", &[], link(0));
    assert_eq!(run.finish().await.counts().done, 20_001);
}

#[tokio::test]
async fn a_context_that_outlives_its_unit_is_harmless() {
    let (run, journal) = new_run();
    let (give, take) = tokio::sync::oneshot::channel();
    run.add(
        "a",
        &[],
        Unit::cpu(move |cx| {
            let _ = give.send(cx.clone());
            Ok(())
        }),
    );
    run.finish().await;
    let cx = take.await.unwrap();
    let last = journal.last();
    cx.log("too late");
    cx.progress(1, None, "too late");
    assert!(!cx.add("b", &[], ok()));
    assert!(cx.output::<()>(&key("a")).await.is_err());
    assert!(cx.output::<()>(&key("c")).await.is_err());
    assert_eq!(journal.last(), last);
}

/// The output of a transient unit lives as long as one of its readers, and no longer.
#[tokio::test]
async fn the_output_of_a_transient_unit_is_let_go_after_its_last_reader() {
    let (run, _) = new_run();
    let large = Key::<Vec<u8>>::from("large");
    let weak = Arc::new(std::sync::Mutex::new(std::sync::Weak::new()));
    run.add(&large, &[], Unit::cpu(|_| Ok(vec![7; 1000])).transient());
    let (seen, wanted) = (Arc::clone(&weak), large.clone());
    let reader = Unit::io(move |cx| async move {
        let output = cx.output(&wanted).await?;
        *seen.lock().unwrap() = Arc::downgrade(&output);
        // While one reader has it, others get it.
        assert_eq!(cx.output(&wanted).await?.len(), 1000);
        Ok(output.len())
    });
    run.add("reader", &[large.untyped()], reader);
    let late = Unit::io(move |cx| async move {
        cx.output::<usize>(&"reader".into()).await?;
        cx.output::<Vec<u8>>(&"large".into()).await?;
        Ok(())
    });
    run.add("late", &[], late);
    let report = run.finish().await;
    assert!(weak.lock().unwrap().upgrade().is_none());
    assert_eq!(report.output(&large), None);
    assert!(report.get(&large.untyped()).unwrap().outcome.is_done());
    assert_eq!(
        error_of(&report, "late"),
        "the output of `large` was let go after its last reader"
    );
}

/// A unit that nobody reads is read from the report.
#[tokio::test]
async fn the_output_of_a_transient_unit_that_nobody_read_is_in_the_report() {
    let (run, _) = new_run();
    run.add("a", &[], Unit::cpu(|_| Ok(1)).transient());
    let report = run.finish().await;
    assert_eq!(report.output::<i32>(&key("a")).as_deref(), Some(&1));
}

/// A unit that takes two of three places, with two that take one each: never more than three at once, and the heavy one
/// gets its turn though light ones keep coming.
#[tokio::test]
async fn a_unit_takes_as_many_places_as_it_weighs() {
    let journal = Journal::in_memory(JournalOptions::default());
    let limits = Limits {
        cpu: 1,
        io: 3,
        process: 1,
    };
    let run = Run::new(limits, journal);
    let (taken, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let unit = |weight: usize| {
        let (taken, most) = (Arc::clone(&taken), Arc::clone(&most));
        let work = move |_| async move {
            let now = taken.fetch_add(weight, Ordering::SeqCst) + weight;
            most.fetch_max(now, Ordering::SeqCst);
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            taken.fetch_sub(weight, Ordering::SeqCst);
            Ok(())
        };
        Unit::io(work).weighing(weight)
    };
    for number in 0..30 {
        run.add(format!("light-{number}").as_str(), &[], unit(1));
        if number % 10 == 0 {
            run.add(format!("heavy-{number}").as_str(), &[], unit(2));
        }
    }
    // More than there are places is all of them.
    run.add("too heavy", &[], Unit::io(|_| async { Ok(()) }).weighing(9));
    let report = run.finish().await;
    assert!(report.is_success(), "{report}");
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_unit_that_failed_can_be_queued_again_with_what_it_skipped() {
    let (run, journal) = new_run();
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let flaky = Retry::attempts(1).io(move |_| {
        let attempt = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            match attempt {
                0 => Err(Failure::message("the first time")),
                _ => Ok(()),
            }
        }
    });
    let again = || Retry::attempts(1).io(|_| async { Ok(()) }).repeatable();
    run.add::<()>("flaky", &[], flaky.repeatable());
    run.add::<()>("after", &[key("flaky")], again());
    run.add::<()>("last", &[key("after")], again());
    let canceller = run.canceller();
    let mut reader = journal.after(0);
    let (asked, all) = (
        canceller.clone(),
        Arc::new(std::sync::Mutex::new(Vec::new())),
    );
    let queued = Arc::clone(&all);
    // Keeps the run open, waits until the others have ended, and has the first one tried again.
    run.add::<()>(
        "watcher",
        &[],
        Unit::io(move |_| async move {
            loop {
                let batch = reader.next().await.unwrap().unwrap();
                let is_skipped = |event: &Event| matches!(event, Event::Skipped { .. });
                let mut records = batch.iter();
                if records.any(|record| record.key == key("last") && is_skipped(&record.event)) {
                    assert!(asked.retry_unit(&key("watcher")).is_empty(), "it runs");
                    assert!(asked.retry_unit(&key("nobody")).is_empty());
                    *queued.lock().unwrap() = asked.retry_unit(&key("flaky"));
                    return Ok(());
                }
            }
        }),
    );
    let report = run.finish().await;
    assert!(report.is_success(), "{report}");
    let queued: Vec<String> = all.lock().unwrap().iter().map(Key::to_string).collect();
    assert_eq!(queued, ["flaky", "after", "last"]);
    assert_eq!(attempts.load(Ordering::SeqCst), 2);
    let names: Vec<&str> = events(&journal, "last").iter().map(Event::name).collect();
    assert_eq!(names, ["queued", "skipped", "queued", "started", "done"]);
    assert!(canceller.retry_unit(&key("flaky")).is_empty(), "it is over");
}
