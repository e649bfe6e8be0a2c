//! Renders one parsed chart with many value sets on all cores, and the same by a fresh program each time, and prints both
//! speeds: `many CHART COUNT PORTOLAN`.

use std::num::NonZero;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use portolan_helm::values::{SetKind, set};
use portolan_helm::{Chart, Release, TemplateInput, template};
use portolan_vfs::Disk;

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Fallible<()> {
    const USAGE: &str = "usage: many CHART COUNT PORTOLAN";
    let mut args = std::env::args().skip(1);
    let path = Utf8PathBuf::from(args.next().ok_or(USAGE)?);
    let count: u32 = args.next().ok_or(USAGE)?.parse()?;
    let portolan = args.next().ok_or(USAGE)?;

    let fresh_count = (count / 20).max(1);
    let start = Instant::now();
    for number in 0..fresh_count {
        run(&portolan, &path, number)?;
    }
    let fresh = start.elapsed() / fresh_count;

    let chart = Chart::load(&Disk::open(&path)?, "/".into())?;
    let parsed = render_all(&chart, count)?;

    let name = path.file_name().unwrap_or("chart");
    let ratio = fresh.as_secs_f64() / parsed.as_secs_f64();
    #[expect(clippy::print_stdout, reason = "an example prints its answer")]
    {
        println!(
            "| helm: {count} value sets on one parsed {name} | {parsed:.2?} each | a program for each {fresh:.2?} | {ratio:.1}× | ≥ 5× |"
        );
    }
    Ok(())
}

fn assignments(number: u32) -> String {
    format!("global.bench{number}=x,replicaCount={number}")
}

/// Renders in a program of its own.
fn run(portolan: &str, chart: &Utf8PathBuf, number: u32) -> Fallible<()> {
    let status = Command::new(portolan)
        .args(["helm", "template", "rel", chart.as_str(), "-n", "apps"])
        .args(["--skip-schema-validation", "--set", &assignments(number)])
        .stdout(Stdio::null())
        .status()?;
    status
        .success()
        .then_some(())
        .ok_or_else(|| "refused".into())
}

/// Renders all value sets, each thread taking the next, and tells how long one took.
fn render_all(chart: &Chart, count: u32) -> Fallible<Duration> {
    let next = AtomicU32::new(0);
    let work = || -> Fallible<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let mut input = TemplateInput::new(Release::new(format!("rel-{number}"), "apps"));
            set(&mut input.values, &assignments(number), SetKind::Typed)?;
            input.skip_schema_validation = true;
            std::hint::black_box(template(chart, &input)?);
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let start = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread died")??;
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    })?;
    Ok(start.elapsed() / count)
}
