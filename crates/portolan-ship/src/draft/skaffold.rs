//! A document of a Skaffold configuration: what it builds, tests and deploys, and what it does in its dev loop. What has no
//! counterpart is named.

mod deploy;
mod dev;

use self::deploy::Steps;
use self::dev::DevLines;
use portolan_yaml::{Dialect, Entry, List, Node, parse};

use super::{Draft, DraftArtifact, document, plain_name, quoted, unique};

/// The longest configuration that is read.
const MAX_BYTES: usize = 4 << 20;

/// Why a configuration cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkaffoldError {
    /// It is too long.
    #[error("the file has {0} bytes; the most is {MAX_BYTES}")]
    TooLong(usize),
    /// It is not YAML.
    #[error("line {line}: {message}")]
    Syntax {
        /// Where.
        line: u32,
        /// What is wrong.
        message: String,
    },
    /// It is something else.
    #[error("there is no document with `apiVersion: skaffold/…` and `kind: Config`")]
    NotSkaffold,
    /// It builds nothing.
    #[error("the configuration has no `build.artifacts`")]
    NoArtifacts,
}

/// Converts the artifacts of the first configuration in a file.
pub fn draft_of_skaffold(text: &str) -> Result<Draft, SkaffoldError> {
    if text.len() > MAX_BYTES {
        return Err(SkaffoldError::TooLong(text.len()));
    }
    let documents = parse(text.to_owned(), Dialect::Helm).map_err(|errors| {
        let first = errors.first();
        SkaffoldError::Syntax {
            line: first.at.line,
            message: first.message.clone(),
        }
    })?;
    let is_skaffold = |node: &&Node| {
        let version =
            word(node, "apiVersion").is_some_and(|version| version.starts_with("skaffold/"));
        version && word(node, "kind") == Some("Config")
    };
    let mut configs = documents.iter().filter(is_skaffold);
    let config = configs.next().ok_or(SkaffoldError::NotSkaffold)?;
    let mut conversion = Conversion::default();
    for other in configs {
        conversion.lost(format!("the configuration at line {}", other.at.line));
    }
    conversion.read(config);
    if conversion.artifacts.is_empty() {
        return Err(SkaffoldError::NoArtifacts);
    }
    let name = config
        .get("metadata")
        .and_then(|metadata| word(metadata, "name"));
    let name = plain_name(name.unwrap_or("project"));
    Ok(Draft {
        text: document(&name, &conversion.artifacts, &conversion.parts()),
        artifacts: conversion.artifacts.len(),
        is_whole: conversion.lost.is_empty(),
        notes: [conversion.lost, conversion.notes].concat(),
    })
}

#[derive(Default)]
struct Conversion {
    artifacts: Vec<DraftArtifact>,
    /// The lines below `tests:`.
    tests: Vec<String>,
    steps: Steps,
    dev: DevLines,
    /// What has no counterpart.
    lost: Vec<String>,
    /// What is different.
    notes: Vec<String>,
}

impl Conversion {
    fn lost(&mut self, what: impl std::fmt::Display) {
        self.lost.push(format!("{what} is not converted"));
    }

    fn read(&mut self, config: &Node) {
        // The other parts name artifacts by their images.
        if let Some(build) = config.get("build") {
            self.build(build);
        }
        for (key, value) in entries(config) {
            match key {
                "apiVersion" | "kind" | "metadata" | "build" => {}
                "test" => self.tests(value),
                "manifests" => self.manifests(value),
                "deploy" => self.deploy(value),
                "portForward" => self.port_forward(value),
                _ => self.lost(format!("`{key}` (line {})", value.at.line)),
            }
        }
        self.default_manifests();
    }

    /// The parts of the document beside artifacts that there are.
    fn parts(&self) -> Vec<(&'static str, Vec<String>)> {
        let mut parts = vec![
            ("tests", self.tests.clone()),
            ("deploy", self.steps.lines()),
            ("dev", self.dev.lines()),
        ];
        parts.retain(|(_, lines)| !lines.is_empty());
        parts
    }

    /// The artifact that makes an image.
    fn artifact_of(&self, image: &str) -> Option<&str> {
        let found = self.artifacts.iter().find(|it| it.image == image)?;
        Some(&found.name)
    }

    /// Commands that test an image.
    fn tests(&mut self, list: &Node) {
        for (at, test) in items(list).enumerate() {
            let path = format!("test[{at}]");
            let artifact = word(test, "image").and_then(|image| self.artifact_of(image));
            let Some(artifact) = artifact.map(str::to_owned) else {
                self.lost(format!("`{path}` (line {})", test.at.line));
                continue;
            };
            for (key, value) in entries(test) {
                match key {
                    "image" => {}
                    "custom" => {
                        for (number, command) in items(value).enumerate() {
                            let name = format!("{artifact}-{at}-{number}");
                            self.custom_test(command, &name, &artifact, &format!("{path}.custom"));
                        }
                    }
                    _ => self.lost(format!("`{path}.{key}` (line {})", value.at.line)),
                }
            }
        }
    }

    fn custom_test(&mut self, test: &Node, name: &str, artifact: &str, path: &str) {
        let command = quoted(word(test, "command").unwrap_or_default());
        let mut fields = vec![format!("run: [sh, -ec, {command}]")];
        for (key, value) in entries(test) {
            match key {
                "command" => {}
                "timeoutSeconds" => {
                    fields.extend(scalar(value).map(|seconds| format!("timeout: {seconds}s")));
                }
                _ => self.lost(format!("`{path}.{key}` (line {})", value.at.line)),
            }
        }
        self.notes.push(format!(
            "`{path}`: the command gets the image as a layout and a digest in $PORTOLAN_IMAGE instead of $IMAGE"
        ));
        let (name, artifact) = (quoted(name), quoted(artifact));
        self.tests.push(format!(
            "- {{name: {name}, artifacts: [{artifact}], command: {{{}}}}}",
            fields.join(", ")
        ));
    }

    fn build(&mut self, build: &Node) {
        for (key, value) in entries(build) {
            match key {
                "artifacts" => {
                    for (at, artifact) in items(value).enumerate() {
                        self.artifact(artifact, &format!("build.artifacts[{at}]"));
                    }
                }
                "tagPolicy" => self.notes.push(
                    "`build.tagPolicy` is not needed: images are named by their digest".to_owned(),
                ),
                // How many at once is for the command line, and a push for `--push`.
                "local" => {}
                _ => self.lost(format!("`build.{key}` (line {})", value.at.line)),
            }
        }
    }

    fn artifact(&mut self, artifact: &Node, path: &str) {
        let image = word(artifact, "image").unwrap_or_default().to_owned();
        let last = image.rsplit('/').next().unwrap_or_default();
        let name = unique(&plain_name(last), &self.artifacts);
        let context = word(artifact, "context").unwrap_or(".");
        let mut source = None;
        let mut needs = Vec::new();
        for (key, value) in entries(artifact) {
            match key {
                "image" | "context" => {}
                "sync" => self.sync(value, &name, &format!("{path}.sync")),
                "docker" => source = Some(self.docker(value, context, &format!("{path}.docker"))),
                "custom" => source = Some(self.custom(value, context, &format!("{path}.custom"))),
                "requires" => {
                    for need in items(value) {
                        let image = word(need, "image").unwrap_or_default();
                        let last = image.rsplit('/').next().unwrap_or_default();
                        needs.push(plain_name(last));
                        if word(need, "alias").is_some() {
                            self.notes.push(format!("`{path}.requires[].alias`: the build argument must be given by hand in `args`"));
                        }
                    }
                }
                _ => self.lost(format!("`{path}.{key}` (line {})", value.at.line)),
            }
        }
        // Skaffold's own default.
        let source =
            source.unwrap_or_else(|| vec![format!("dockerfile: {{context: {}}}", quoted(context))]);
        let is_known = artifact.get("docker").is_some() || artifact.get("custom").is_some();
        let other = ["buildpacks", "jib", "bazel", "ko", "kaniko"];
        if !is_known && let Some(other) = other.iter().find(|kind| artifact.get(kind).is_some()) {
            self.notes.push(format!(
                "`{path}` was built by {other}, and is now built of a Dockerfile: write a `command` in its place"
            ));
        }
        self.artifacts.push(DraftArtifact {
            name,
            image,
            needs,
            source,
        });
    }

    fn docker(&mut self, docker: &Node, context: &str, path: &str) -> Vec<String> {
        let mut lines = vec![
            "dockerfile:".to_owned(),
            format!("  context: {}", quoted(context)),
        ];
        for (key, value) in entries(docker) {
            let text = value.as_str().unwrap_or_default();
            match key {
                "dockerfile" => lines.push(format!("  file: {}", quoted(text))),
                "target" => lines.push(format!("  target: {}", quoted(text))),
                "cacheFrom" => {
                    let images = items(value).filter_map(Node::as_str).map(quoted);
                    let images: Vec<String> = images.collect();
                    lines.push(format!("  cacheFrom: [{}]", images.join(", ")));
                }
                "buildArgs" => {
                    lines.push("  args:".to_owned());
                    for (name, value) in entries(value) {
                        let scalar = value.as_scalar().map(|scalar| scalar.text.to_string());
                        let text = scalar.unwrap_or_default();
                        if text.contains("{{") {
                            self.lost(format!("the template in `{path}.buildArgs.{name}`"));
                        }
                        lines.push(format!("    {}: {}", quoted(name), quoted(&text)));
                    }
                }
                "secrets" => {
                    lines.push("  secrets:".to_owned());
                    for secret in items(value) {
                        let id = word(secret, "id").unwrap_or_default();
                        let from = match (word(secret, "env"), word(secret, "src")) {
                            (Some(env), _) => format!("env: {}", quoted(env)),
                            (None, Some(src)) => format!("file: {}", quoted(src)),
                            (None, None) => format!("env: {}", quoted(id)),
                        };
                        lines.push(format!("    {}: {{{from}}}", quoted(id)));
                    }
                }
                _ => self.lost(format!("`{path}.{key}` (line {})", value.at.line)),
            }
        }
        lines
    }

    fn custom(&mut self, custom: &Node, context: &str, path: &str) -> Vec<String> {
        let command = word(custom, "buildCommand").unwrap_or_default();
        self.notes.push(format!(
            "`{path}`: the command must leave an OCI layout in $PORTOLAN_OUT instead of pushing $IMAGE"
        ));
        let mut lines = vec![
            "command:".to_owned(),
            format!("  run: [sh, -ec, {}]", quoted(command)),
            format!("  dir: {}", quoted(context)),
        ];
        for (key, value) in entries(custom) {
            match key {
                "buildCommand" => {}
                "dependencies" => {
                    let paths = value.get("paths").map(items).into_iter().flatten();
                    let paths: Vec<String> = paths.filter_map(Node::as_str).map(quoted).collect();
                    lines.push(format!("  inputs: [{}]", paths.join(", ")));
                    for (key, value) in entries(value).filter(|(key, _)| *key != "paths") {
                        self.lost(format!(
                            "`{path}.dependencies.{key}` (line {})",
                            value.at.line
                        ));
                    }
                }
                _ => self.lost(format!("`{path}.{key}` (line {})", value.at.line)),
            }
        }
        lines
    }
}

fn entries(node: &Node) -> impl Iterator<Item = (&str, &Node)> {
    let map = node.as_map().into_iter().flatten();
    map.map(|Entry { key, value }| (key.as_str(), value))
}

fn items(node: &Node) -> impl Iterator<Item = &Node> {
    node.as_list().into_iter().flat_map(List::iter)
}

/// A text, a number or a truth value as it is written.
fn scalar(node: &Node) -> Option<String> {
    node.as_scalar().map(|scalar| scalar.text.to_string())
}

fn word<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.get(key).and_then(Node::as_str)
}

#[cfg(test)]
mod tests;
