//! Lists the fuzz targets, or writes the seeds of one into a directory: `seeds [TARGET DIRECTORY]`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program of a few lines for `./fuzz`"
)]

use std::path::Path;
use std::process::ExitCode;

use portolan_fuzz::targets;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, directory] = arguments.as_slice() else {
        for target in targets() {
            println!("{}\t{}", target.name, target.about);
        }
        return ExitCode::SUCCESS;
    };
    let Some(target) = targets().into_iter().find(|target| target.name == *name) else {
        eprintln!("there is no fuzz target `{name}`");
        return ExitCode::from(2);
    };
    for (number, seed) in (target.seeds)().iter().enumerate() {
        let path = Path::new(directory).join(format!("seed-{number}"));
        if let Err(error) = std::fs::write(&path, seed) {
            eprintln!("cannot write {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
