//! Tasks of this repository: `cargo run -p xtask -- gen NAME [--check]` writes committed tables again, or only says
//! whether they are current; `cargo run -p xtask -- deb PROGRAM DIRECTORY` writes a Debian package of a built program.
//!
//! Each generator is one file here with a `generate()` that returns the text of one file of the repository. Code for
//! `.proto` files has a table of its own, because one row makes several files.

mod audit_table;
mod deb;
mod extract;
mod fieldspec_table;
mod flux_definitions;
mod generator;
mod go_module;
mod kubernetes_types;
mod proto_code;
mod protobuf;
mod schema_table;
mod served;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use generator::{Generator, Mode};
use proto_code::ProtoCode;

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

/// Every set of `.proto` files by name.
const PROTO_CODE: &[ProtoCode] = &[
    ProtoCode {
        name: "agent-protocol",
        sources: "crates/portolan-agent/proto",
        files: &["portolan/agent/v1alpha/agent.proto"],
        output: "crates/portolan-agent/src/wire",
        server: true,
        client: true,
        descriptors: false,
    },
    ProtoCode {
        name: "etcd-protocol",
        sources: "crates/portolan-store/proto",
        files: &["etcd.proto"],
        output: "crates/portolan-store/src/etcd/wire",
        server: false,
        client: false,
        descriptors: false,
    },
    ProtoCode {
        name: "skaffold-api",
        sources: "crates/portolan-ship/proto",
        files: &["skaffold_v2.proto"],
        output: "crates/portolan-ship/src/skaffold/wire",
        server: true,
        client: false,
        descriptors: true,
    },
    ProtoCode {
        name: "kinds",
        sources: "crates/portolan-kinds/proto",
        files: &[
            "portolan/v1alpha/api.proto",
            "portolan/v1alpha/beacon.proto",
            "portolan/v1alpha/config.proto",
            "portolan/v1alpha/cron_job.proto",
            "portolan/v1alpha/event.proto",
            "portolan/v1alpha/metadata.proto",
            "portolan/v1alpha/namespace.proto",
            "portolan/v1alpha/node.proto",
            "portolan/v1alpha/node_grant.proto",
            "portolan/v1alpha/node_group.proto",
            "portolan/v1alpha/repository.proto",
            "portolan/v1alpha/role.proto",
            "portolan/v1alpha/run.proto",
            "portolan/v1alpha/secret.proto",
            "portolan/v1alpha/share.proto",
            "portolan/v1alpha/stored.proto",
            "portolan/v1alpha/task_book.proto",
            "portolan/v1alpha/trigger.proto",
            "portolan/v1alpha/value.proto",
            "portolan/v1alpha/variable.proto",
            "portolan/v1alpha/webhook.proto",
        ],
        output: "crates/portolan-kinds/src/wire",
        server: false,
        client: false,
        descriptors: true,
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
        ["deb", program, directory] => {
            let written = deb::write(Path::new(program), Path::new(directory))?;
            report(&format!("written: {}", written.display()));
            return Ok(());
        }
        _ => bail!("usage: cargo run -p xtask -- gen [NAME…] [--check], or deb PROGRAM DIRECTORY"),
    };
    let known = |name: &str| {
        let mut all = GENERATORS.iter().map(|generator| generator.name);
        all.any(|one| one == name) || PROTO_CODE.iter().any(|set| set.name == name)
    };
    if let Some(name) = names.iter().find(|name| !known(name)) {
        bail!("no generator is called `{name}`");
    }
    let chosen = |name: &str| names.is_empty() || names.contains(&name);
    for generator in GENERATORS.iter().filter(|one| chosen(one.name)) {
        report(&generator.run(mode)?);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for set in PROTO_CODE.iter().filter(|set| chosen(set.name)) {
        report(&set.run(&root, mode)?);
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
