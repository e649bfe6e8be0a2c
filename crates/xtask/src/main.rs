//! Tasks of this repository: `cargo run -p xtask -- gen NAME [--check]` writes committed tables again, or only says
//! whether they are current.
//!
//! Each generator is one file here with a `generate()` that returns the text of one file of the repository.

mod audit_table;
mod extract;
mod fieldspec_table;
mod flux_definitions;
mod generator;
mod go_module;
mod kubernetes_types;
mod protobuf;
mod schema_table;
mod served;

use std::process::ExitCode;

use anyhow::{Result, bail};

use generator::{Generator, Mode};

/// Every generator by name.
const GENERATORS: &[Generator] = &[
    Generator {
        name: "audit-table",
        output: "crates/portolan-audit/src/table/rows.rs",
        generate: audit_table::generate,
    },
    Generator {
        name: "served",
        output: "crates/portolan-object/src/kind/served/table.rs",
        generate: served::generate,
    },
    Generator {
        name: "kustomize-extract",
        output: "crates/portolan-kustomize/data/schema.txt",
        generate: extract::generate,
    },
    Generator {
        name: "kustomize-schema",
        output: "crates/portolan-kustomize/src/schema/table.rs",
        generate: schema_table::generate,
    },
    Generator {
        name: "kustomize-fieldspecs",
        output: "crates/portolan-kustomize/src/config/table.rs",
        generate: fieldspec_table::generate,
    },
    Generator {
        name: "kubernetes-types",
        output: "crates/portolan-schema/data/kubernetes.txt",
        generate: kubernetes_types::generate,
    },
    Generator {
        name: "flux-definitions",
        output: "crates/portolan-schema/data/flux.jsonl",
        generate: flux_definitions::generate,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (names, mode) = match words.as_slice() {
        ["gen", names @ .., "--check"] => (names, Mode::Check),
        ["gen", names @ ..] => (names, Mode::Write),
        _ => bail!("usage: cargo run -p xtask -- gen [NAME…] [--check]"),
    };
    for name in names {
        if !GENERATORS.iter().any(|generator| generator.name == *name) {
            bail!("no generator is called `{name}`");
        }
    }
    let chosen = |generator: &&Generator| names.is_empty() || names.contains(&generator.name);
    for generator in GENERATORS.iter().filter(chosen) {
        report(&generator.run(mode)?);
    }
    Ok(())
}

#[expect(
    clippy::print_stderr,
    reason = "the tasks' only way to talk to a person"
)]
fn report(line: &str) {
    eprintln!("{line}");
}
