//! Every parser of outside input as one function that takes any bytes and must neither panic nor run without end.
//!
//! ```text
//! seeds (good and hostile inputs) ──┬─▶ as they are, and mutated 2,000 times ──▶ Target::run    `./test`, any compiler
//!                                   └─▶ libFuzzer, guided by coverage ─────────▶ Target::run    `./fuzz`, nightly
//! ```
//!
//! A target is a line in one of the tables below: [`targets`] gathers them, and both runners take all of them from
//! there. A target may assert more than "no panic", for example that printed output parses to the same value again.

#![warn(missing_docs)]

mod audit;
mod detect;
mod fleet;
mod flux;
mod git;
mod helm;
mod identity;
mod image;
mod journal;
mod kinds;
mod kustomize;
mod packed;
mod prometheus;
mod registry;
mod schema;
mod sealed;
mod settings;
mod sources;
mod store;
mod system;
mod templates;
mod text;
mod trigger;
mod yaml;

/// One parser to be tried.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, as in `./fuzz yaml-helm`.
    pub name: &'static str,
    /// What the bytes are taken for.
    pub about: &'static str,
    /// Tries any bytes and returns whether they were taken for what they should be; a panic is a finding.
    pub run: fn(&[u8]) -> bool,
    /// Good and hostile inputs to begin from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets, sorted by name.
pub fn targets() -> Vec<Target> {
    let tables = [
        audit::TARGETS,
        detect::TARGETS,
        fleet::TARGETS,
        flux::TARGETS,
        git::TARGETS,
        helm::TARGETS,
        identity::TARGETS,
        image::TARGETS,
        journal::TARGETS,
        kinds::TARGETS,
        kustomize::TARGETS,
        prometheus::TARGETS,
        registry::TARGETS,
        schema::TARGETS,
        sealed::TARGETS,
        settings::TARGETS,
        sources::TARGETS,
        store::TARGETS,
        system::TARGETS,
        templates::TARGETS,
        text::TARGETS,
        trigger::TARGETS,
        yaml::TARGETS,
    ];
    let mut all = tables.concat();
    all.sort_unstable_by_key(|target| target.name);
    all
}

/// Seeds written as text.
fn texts(seeds: &[&str]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}

/// Cuts an input into pieces at lines of `%%`, for targets that take more than one text.
fn pieces(input: &[u8]) -> Option<impl Iterator<Item = &str>> {
    Some(std::str::from_utf8(input).ok()?.split("\n%%\n"))
}
