//! A project for `portolan ship` in a directory of its own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::Answer;

/// A project.
pub(crate) struct Project {
    pub(crate) directory: TempDir,
    /// Variables of the environment.
    pub(crate) env: Vec<(&'static str, String)>,
}

/// The beginning of a document, up to its artifacts.
pub(crate) const HEAD: &str =
    "apiVersion: portolan.dev/v1alpha1\nkind: Ship\nmetadata: {name: shop}\nspec:\n  artifacts:\n";

/// An artifact of the files in `web`.
pub(crate) const WEB: &str =
    "  - {name: web, image: registry.example/shop/web, oci: {context: web}}\n";

impl Project {
    /// A project with these artifacts and a page in `web`.
    pub(crate) fn new(artifacts: &str) -> Self {
        let project = Self {
            directory: tempfile::tempdir().expect("a directory"),
            env: Vec::new(),
        };
        project.write("portolan.yaml", &format!("{HEAD}{artifacts}"));
        project.write("web/index.html", "a page");
        project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        command
            .args(args)
            .current_dir(self.directory.path())
            .envs(self.env.iter().map(|(name, value)| (*name, value.as_str())))
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        let output = self.command(args).output();
        Answer::of(&output.expect("the binary was built with this test"))
    }

    /// The answer of `ship build -o json`, and the exit code.
    pub(crate) fn build(&self, args: &[&str]) -> (Value, i32) {
        let answer = self.run(&[&["ship", "build", "-o", "json"], args].concat());
        let json = serde_json::from_str(&answer.stdout);
        (
            json.unwrap_or_else(|_| unreachable!("{answer}")),
            answer.code,
        )
    }
}

/// Name and status of each artifact.
pub(crate) fn statuses(result: &Value) -> Vec<(&str, &str)> {
    let artifacts = result["artifacts"].as_array().expect("a list");
    let statuses = artifacts
        .iter()
        .filter_map(|artifact| Some((artifact["name"].as_str()?, artifact["status"].as_str()?)));
    statuses.collect()
}
