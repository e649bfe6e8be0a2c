// What a program can learn of a Flux repository with the crate `portolan-review`; try it on `examples/harbor`:
//
// ```text
// cargo run -p portolan-review --example review -- examples/harbor
// ```

use std::error::Error;
use std::fmt::Write as _;

use camino::Utf8Path;
use portolan_flux::Depth;
use portolan_review::{FluxRepository, QuietRunner, inventory, judge};

/// Renders a repository, and says what it holds and whether a cluster would accept it.
fn review(directory: &Utf8Path) -> Result<String, Box<dyn Error>> {
    let repository = FluxRepository::at(directory)?;
    let rendered = repository.render(Depth::Releases, &QuietRunner::new()?)?;
    let objects = inventory::objects(&rendered).len();
    let verdicts = judge::judge(&rendered, &judge::finding_settings(&rendered)?);
    let mut answer = format!("{objects} objects, {} errors\n", verdicts.errors());
    for finding in &verdicts.found {
        writeln!(answer, "{}: {}", finding.rule.id, finding.message())?;
    }
    Ok(answer)
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let answer = review(Utf8Path::new(&directory))?;
    std::io::Write::write_all(&mut std::io::stdout(), answer.as_bytes())?;
    Ok(())
}
