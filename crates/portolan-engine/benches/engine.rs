//! What the engine itself costs per unit: 100,000 units that do nothing, in graphs that are both wide and deep.
//!
//! The aim is at most 10 µs per unit, from adding it to its line in the report, all events included.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use portolan_engine::{Journal, JournalOptions, Key, Limits, Run, Unit};
use tokio::runtime::Runtime;

const LAYERS: usize = 100;
const WIDTH: usize = 1000;

fn key<T>(layer: usize, column: usize) -> Key<T> {
    format!("layer/{layer}/unit/{column}").into()
}

/// The two units of the layer below that a unit needs.
fn needs(layer: usize, column: usize) -> Vec<Key> {
    match layer.checked_sub(1) {
        Some(below) => vec![key(below, column), key(below, (column + 1) % WIDTH)],
        None => vec![],
    }
}

fn new_run() -> Run {
    Run::new(
        Limits::default(),
        Journal::in_memory(JournalOptions::default()),
    )
}

/// A graph that is known from the beginning.
fn declared(unit: impl Fn() -> Unit<()>) -> Run {
    let run = new_run();
    for layer in 0..LAYERS {
        for column in 0..WIDTH {
            run.add(key(layer, column), &needs(layer, column), unit());
        }
    }
    run
}

/// A graph in which every column adds its next unit while it runs and waits for it.
fn discovered() -> Run {
    fn deeper(layer: usize, column: usize) -> Unit<()> {
        Unit::io(move |cx| async move {
            if layer + 1 < LAYERS {
                let next = key(layer + 1, column);
                cx.add(next.clone(), &[], deeper(layer + 1, column));
                cx.output::<()>(&next).await?;
            }
            Ok(())
        })
    }
    let run = new_run();
    for column in 0..WIDTH {
        run.add(key(0, column), &[], deeper(0, column));
    }
    run
}

fn bench(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = criterion.benchmark_group("100000 units");
    group
        .throughput(Throughput::Elements((LAYERS * WIDTH) as u64))
        .sample_size(10);
    let mut measure = |name: &str, build: &dyn Fn() -> Run| {
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || (),
                |()| {
                    let report = runtime.block_on(async { build().finish().await });
                    assert_eq!(report.counts().done, LAYERS * WIDTH);
                    report
                },
                BatchSize::PerIteration,
            );
        });
    };
    measure("synchronous", &|| declared(|| Unit::cpu(|_| Ok(()))));
    measure("asynchronous", &|| {
        declared(|| Unit::io(|_| async { Ok(()) }))
    });
    measure("discovered", &discovered);
}

criterion_group!(benches, bench);
criterion_main!(benches);
