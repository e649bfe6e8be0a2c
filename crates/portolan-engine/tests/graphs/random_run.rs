//! Runs a random graph and writes down what the units themselves saw.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock};
use std::time::Duration;

use portolan_engine::{
    Canceller, Class, Context, Failure, Journal, JournalOptions, Record, Report, Retry, Run, State,
    Unit, WaitError,
};

use super::spec::{Deed, Shape, Spec, key};

/// What came out of a run.
pub(crate) struct RandomRun {
    pub(crate) report: Report,
    pub(crate) seen: Seen,
    pub(crate) records: Vec<Record>,
    pub(crate) state: State,
}

/// What the units saw.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) added: Mutex<BTreeSet<usize>>,
    /// Every start, as unit and attempt.
    pub(crate) starts: Mutex<Vec<(usize, u32)>>,
    done: Mutex<BTreeSet<usize>>,
    pub(crate) complaints: Mutex<Vec<String>>,
    running: [AtomicUsize; 3],
    pub(crate) has_cancelled: AtomicUsize,
    /// Units whose output somebody got while waiting for it.
    pub(crate) read: Mutex<BTreeSet<usize>>,
    /// Units whose output is still held by somebody.
    pub(crate) held: Arc<Mutex<BTreeSet<usize>>>,
}

/// What a unit makes; known to be held until it is dropped.
pub(crate) struct Product {
    unit: usize,
    held: Arc<Mutex<BTreeSet<usize>>>,
}

impl Drop for Product {
    fn drop(&mut self) {
        // A failed assertion drops the report as well, and must stay the only panic.
        if let Ok(mut held) = self.held.lock() {
            held.remove(&self.unit);
        }
    }
}

/// What every unit of a run can reach.
struct Stage {
    shape: Shape,
    seen: Seen,
    canceller: OnceLock<Canceller>,
}

/// Keeps the expected panics out of the test's output.
pub(crate) fn silence_panics_of_units() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<&str>() != Some(&"on purpose") {
                before(info);
            }
        }));
    });
}

impl RandomRun {
    pub(crate) fn run(shape: &Shape, threads: usize) -> Self {
        let mut builder = match threads {
            1 => tokio::runtime::Builder::new_current_thread(),
            _ => tokio::runtime::Builder::new_multi_thread(),
        };
        let runtime = builder.enable_time().build().unwrap();
        runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(20), Self::finish(shape))
                .await
                .expect("every run ends")
        })
    }

    async fn finish(shape: &Shape) -> Self {
        let journal = Journal::in_memory(JournalOptions::default());
        let run = Run::new(shape.limits, journal.clone());
        let stage = Arc::new(Stage {
            shape: shape.clone(),
            seen: Seen::default(),
            canceller: OnceLock::new(),
        });
        let _ = stage.canceller.set(run.canceller());
        for unit in shape.first_units() {
            stage.seen.added.lock().unwrap().insert(unit);
            run.add(key(unit), &needs(&shape.units[unit]), build(&stage, unit));
        }
        let report = run.finish().await;
        journal.close();
        let mut records = Vec::new();
        let mut reader = journal.after(0);
        while let Some(batch) = reader.next().await.unwrap() {
            records.extend(batch.iter().cloned());
        }
        let stage = Arc::into_inner(stage).expect("no unit outlives the run");
        Self {
            report,
            seen: stage.seen,
            records,
            state: journal.state(),
        }
    }
}

fn needs(spec: &Spec) -> Vec<portolan_engine::Key> {
    spec.needs.iter().map(|need| key(*need)).collect()
}

fn build(stage: &Arc<Stage>, unit: usize) -> Unit<Product> {
    let spec = &stage.shape.units[unit];
    let retry = Retry::attempts(3).rest(Duration::from_micros(10), Duration::from_micros(50));
    let on_stage = Arc::clone(stage);
    let asynchronous = move |cx: Context| {
        let stage = Arc::clone(&on_stage);
        async move { perform(&stage, unit, &cx).await }
    };
    let built = match spec.class {
        Class::Cpu => {
            let stage = Arc::clone(stage);
            retry.cpu(move |cx| perform_sync(&stage, unit, cx))
        }
        Class::Io => retry.io(asynchronous),
        Class::Process => retry.process(asynchronous),
    };
    let built = if spec.is_lazy { built.lazy() } else { built };
    if spec.is_transient {
        built.transient()
    } else {
        built
    }
}

fn perform_sync(stage: &Arc<Stage>, unit: usize, cx: &Context) -> Result<Product, Failure> {
    let _running = stage.enter(unit);
    stage.begin(unit, cx);
    stage.add_children(unit, cx, stage.shape.units[unit].adds_late);
    stage.add_children(unit, cx, !stage.shape.units[unit].adds_late);
    if stage.shape.units[unit].deed == Deed::Dawdle {
        std::thread::sleep(Duration::from_micros(200));
    }
    stage.conclude(unit, cx)
}

async fn perform(stage: &Arc<Stage>, unit: usize, cx: &Context) -> Result<Product, Failure> {
    let spec = &stage.shape.units[unit];
    let mut running = Some(stage.enter(unit));
    stage.begin(unit, cx);
    if !spec.adds_late {
        stage.add_children(unit, cx, false);
    }
    for wait in &spec.waits {
        running.take();
        let output = cx.output::<Product>(&key(*wait)).await?;
        running = Some(stage.enter(unit));
        stage.seen.read.lock().unwrap().insert(*wait);
        stage.expect(output.unit == *wait, || {
            format!("{unit} got the output of {} for {wait}", output.unit)
        });
    }
    if spec.adds_late {
        stage.add_children(unit, cx, true);
    }
    if spec.deed == Deed::Dawdle {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let number = cx.compute(move || unit).await;
    stage.expect(number == unit, || format!("{unit} computed {number}"));
    stage.conclude(unit, cx)
}

impl Stage {
    /// Counts the unit against its class for as long as it runs without waiting.
    fn enter(&self, unit: usize) -> impl Drop + use<'_> {
        struct Running<'a>(&'a AtomicUsize);
        impl Drop for Running<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let (slot, limit) = match self.shape.units[unit].class {
            Class::Cpu => (0, self.shape.limits.cpu),
            Class::Io => (1, self.shape.limits.io),
            Class::Process => (2, self.shape.limits.process),
        };
        let before = self.seen.running[slot].fetch_add(1, Ordering::SeqCst);
        self.expect(before < limit, || {
            format!("{unit} is one too many of its class")
        });
        Running(&self.seen.running[slot])
    }

    fn begin(&self, unit: usize, cx: &Context) {
        self.seen.starts.lock().unwrap().push((unit, cx.attempt()));
        let done = self.seen.done.lock().unwrap().clone();
        for need in &self.shape.units[unit].needs {
            self.expect(done.contains(need), || {
                format!("{unit} started before {need} was done")
            });
            // Of a transient unit it may have been let go before this one was added.
            let is_transient = self.shape.units[*need].is_transient;
            let has_it = match cx.need::<Product>(&key(*need)) {
                Ok(product) => product.unit == *need,
                Err(error) => is_transient && matches!(error, WaitError::Released { .. }),
            };
            self.expect(has_it, || format!("{unit} lacks {need}"));
        }
        cx.log(format!("{unit} begins"));
        cx.progress(1, Some(2), "begun");
        cx.progress(2, Some(2), "ended");
        if let Some(cancel) = self.shape.cancel.filter(|cancel| cancel.by == unit) {
            self.seen.has_cancelled.store(1, Ordering::SeqCst);
            let canceller = self.canceller.get().expect("set before the run");
            match cancel.whom {
                Some(whom) => canceller.cancel_unit(&key(whom)),
                None => canceller.cancel(),
            }
        }
    }

    fn add_children(self: &Arc<Self>, unit: usize, cx: &Context, is_late: bool) {
        if self.shape.units[unit].adds_late != is_late {
            return;
        }
        for child in &self.shape.units[unit].adds {
            self.seen.added.lock().unwrap().insert(*child);
            cx.add(
                key(*child),
                &needs(&self.shape.units[*child]),
                build(self, *child),
            );
        }
    }

    fn conclude(&self, unit: usize, cx: &Context) -> Result<Product, Failure> {
        match self.shape.units[unit].deed {
            Deed::Fail => return Err(Failure::message("on purpose").is_final()),
            Deed::Panic => panic!("on purpose"),
            Deed::Flake(times) if cx.attempt() <= times => return Err(Failure::message("flaky")),
            Deed::Flake(_) | Deed::Succeed | Deed::Dawdle => {}
        }
        self.seen.done.lock().unwrap().insert(unit);
        self.seen.held.lock().unwrap().insert(unit);
        Ok(Product {
            unit,
            held: Arc::clone(&self.seen.held),
        })
    }

    fn expect(&self, holds: bool, complaint: impl FnOnce() -> String) {
        if !holds {
            self.seen.complaints.lock().unwrap().push(complaint());
        }
    }
}
