//! Facts that programs of the machine's owner print.

use std::time::Duration;

use camino::Utf8Path;
use serde_json::{Map, Value};

use super::FactSource;
use crate::root::{FileKind, Follow};

/// How long one program may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The most programs that are started.
const MAX_PROGRAMS: usize = 100;

/// The most bytes that one program may print.
const MAX_BYTES: usize = 64 << 10;

/// Every executable file of the directory prints JSON, which is kept under the file's name without its ending.
pub(super) fn custom(source: &FactSource<'_>) -> Result<Value, String> {
    let directory = &source.custom;
    if !source.has_directory(directory.as_str()) {
        return Ok(Value::Object(Map::new()));
    }
    let names = source.host.root.list(directory);
    let names = names.map_err(|error| format!("cannot read `{directory}`: {error}"))?;
    let programs = names.iter().map(|name| directory.join(name));
    let programs = programs.filter(|path| is_program(source, path));
    let mut facts = Map::new();
    for program in programs.take(MAX_PROGRAMS) {
        let name = program.file_stem().unwrap_or_default();
        match run(source, &program) {
            Ok(value) => {
                facts.insert(name.to_owned(), value);
            }
            // One that fails must not hide the others; what it would have said is missing.
            Err(error) => tracing::warn!(%program, error, "a program for facts failed"),
        }
    }
    Ok(Value::Object(facts))
}

fn is_program(source: &FactSource<'_>, path: &Utf8Path) -> bool {
    let status = source.host.root.status(path, Follow::Yes).ok().flatten();
    status.is_some_and(|status| status.kind == FileKind::File && status.mode & 0o111 != 0)
}

fn run(source: &FactSource<'_>, program: &Utf8Path) -> Result<Value, String> {
    let program = source.host.program_path(program);
    let output = source.output(&[program.as_str()], TIMEOUT)?;
    if output.len() > MAX_BYTES {
        return Err(format!("it printed more than {MAX_BYTES} bytes"));
    }
    serde_json::from_slice(&output).map_err(|error| format!("it printed no JSON: {error}"))
}
