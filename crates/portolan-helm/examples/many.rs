//! Renders one parsed chart with many value sets, and the same from a fresh load each time, and prints both speeds.

use std::time::Instant;

use camino::Utf8PathBuf;
use portolan_helm::values::{SetKind, set};
use portolan_helm::{Chart, Release, TemplateInput, template};
use portolan_vfs::Disk;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = Utf8PathBuf::from(args.next().ok_or("usage: many CHART COUNT")?);
    let count: u32 = args.next().ok_or("usage: many CHART COUNT")?.parse()?;
    let disk = Disk::open(&path)?;
    let input = |number: u32| -> Result<TemplateInput, Box<dyn std::error::Error>> {
        let mut input = TemplateInput::new(Release::new(format!("rel-{number}"), "apps"));
        let text = format!("global.bench{number}=x,replicaCount={number}");
        set(&mut input.values, &text, SetKind::Typed)?;
        input.skip_schema_validation = true;
        Ok(input)
    };
    let fresh_count = (count / 20).max(1);
    let start = Instant::now();
    for number in 0..fresh_count {
        let chart = Chart::load(&disk, "/".into())?;
        std::hint::black_box(template(&chart, &input(number)?)?);
    }
    let fresh = start.elapsed() / fresh_count;
    let chart = Chart::load(&disk, "/".into())?;
    let start = Instant::now();
    for number in 0..count {
        std::hint::black_box(template(&chart, &input(number)?)?);
    }
    let parsed = start.elapsed() / count;
    let name = path.file_name().unwrap_or("chart");
    let ratio = fresh.as_secs_f64() / parsed.as_secs_f64();
    #[expect(clippy::print_stdout, reason = "an example prints its answer")]
    {
        println!(
            "| helm: {count} value sets on one parsed {name} | {parsed:.2?} each | loaded afresh {fresh:.2?} each | {ratio:.1}× | ≥ 5× |"
        );
    }
    Ok(())
}
