//! Every fuzz target over its seeds and over inputs that lie near them: no panic, no input that takes long.

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use portolan_fuzz::{Target, targets};
use portolan_testbed::mutate;

/// What one input may take on a machine that is busy with other things.
const SOON: Duration = Duration::from_secs(20);

/// Inputs made for each target, and with `PORTOLAN_LONG`.
const MUTATIONS: u64 = 2_000;
const LONG_MUTATIONS: u64 = 50_000;

/// Runs a target on a stack as small as a worker's; returns what is wrong, with the input to see it again.
fn attempt(target: Target, what: &str, input: &[u8]) -> Option<String> {
    let start = Instant::now();
    let panicked = catch_unwind(|| (target.run)(input)).is_err();
    let took = start.elapsed();
    let wrong = match (panicked, took > SOON) {
        (false, false) => return None,
        (true, _) => "panicked".to_owned(),
        (false, true) => format!("took {took:?}"),
    };
    let input = input.escape_ascii();
    Some(format!("{} {wrong} on {what}:\n{input}", target.name))
}

fn try_all(target: Target, mutations: u64) -> Vec<String> {
    let seeds = (target.seeds)();
    let near: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
    let given = seeds.iter().enumerate();
    let given = given.filter_map(|(at, seed)| attempt(target, &format!("seed {at}"), seed));
    let made = (0..mutations).filter_map(|number| {
        attempt(
            target,
            &format!("mutation {number}"),
            &mutate(number, &near),
        )
    });
    given.chain(made).take(3).collect()
}

#[test]
fn no_target_panics_or_runs_on() {
    let is_long = std::env::var_os("PORTOLAN_LONG").is_some();
    let mutations = if is_long { LONG_MUTATIONS } else { MUTATIONS };
    let all = targets();
    let (front, back) = all.split_at(all.len() / 2);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = [front, back]
            .map(|half| {
                let work = move || {
                    let tried = half.iter().flat_map(|target| {
                        let start = Instant::now();
                        let wrong = try_all(*target, mutations);
                        eprintln!(
                            "{}: {mutations} of {LONG_MUTATIONS} in {:?}",
                            target.name,
                            start.elapsed()
                        );
                        wrong
                    });
                    tried.collect::<Vec<String>>()
                };
                let worker = std::thread::Builder::new().stack_size(2 << 20);
                worker.spawn_scoped(scope, work).expect("a thread")
            })
            .into_iter()
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("panics are caught"))
            .collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn names_are_told_apart_and_every_target_takes_a_seed() {
    let all = targets();
    assert!(all.windows(2).all(|pair| pair[0].name < pair[1].name));
    let refused: Vec<&str> = all
        .iter()
        .filter(|target| !(target.seeds)().iter().any(|seed| (target.run)(seed)))
        .map(|target| target.name)
        .collect();
    assert!(refused.is_empty(), "{refused:?}");
}
