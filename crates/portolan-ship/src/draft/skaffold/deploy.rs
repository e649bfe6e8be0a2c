//! What a Skaffold configuration deploys: manifests, overlays and releases of Helm as deploy steps.

use portolan_yaml::Node;

use super::{Conversion, entries, items, quoted, scalar, word};
use crate::draft::plain_name;

/// What Skaffold deploys with kubectl if nothing is said.
const DEFAULT_MANIFESTS: &str = "k8s/*.yaml";

/// Deploy steps, and what all of them have in common.
#[derive(Default)]
pub(super) struct Steps {
    /// The name of each, and its own lines.
    named: Vec<(String, Vec<String>)>,
    /// Lines of every step.
    common: Vec<String>,
    /// The namespace of steps that say none.
    namespace: Option<String>,
    timeout: Option<String>,
    tolerates_failures: bool,
    /// Whether kubectl is asked for, even without manifests.
    uses_kubectl: bool,
}

// === impl Steps ===

impl Steps {
    fn add(&mut self, name: &str, lines: Vec<String>) -> String {
        let name = plain_name(name);
        let is_taken = |name: &String| self.named.iter().any(|(taken, _)| taken == name);
        let mut names = (1_u32..).map(|number| match number {
            1 => name.clone(),
            number => format!("{name}-{number}"),
        });
        let free = names.find(|name| !is_taken(name)).unwrap_or_default();
        self.named.push((free.clone(), lines));
        free
    }

    /// The lines below `deploy:`.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, own) in &self.named {
            lines.push(format!("- name: {}", quoted(name)));
            let has_namespace = own.iter().any(|line| line.starts_with("namespace: "));
            let namespace = self.namespace.iter().filter(|_| !has_namespace);
            let namespace = namespace.map(|name| format!("namespace: {}", quoted(name)));
            let common = self.common.iter().cloned().chain(self.wait());
            let all = namespace.chain(common).chain(own.iter().cloned());
            lines.extend(all.map(|line| format!("  {line}")));
        }
        lines
    }

    fn wait(&self) -> Option<String> {
        let timeout = self.timeout.iter().map(|time| format!("timeout: {time}"));
        let tolerates = self
            .tolerates_failures
            .then(|| "failFast: false".to_owned());
        let fields: Vec<String> = timeout.chain(tolerates).collect();
        (!fields.is_empty()).then(|| format!("wait: {{{}}}", fields.join(", ")))
    }
}

// === impl Conversion ===

impl Conversion {
    pub(super) fn manifests(&mut self, manifests: &Node) {
        for (key, value) in entries(manifests) {
            match key {
                "rawYaml" => self.raw_manifests(value, "manifests.rawYaml"),
                "kustomize" => self.kustomize(value, "manifests.kustomize"),
                _ => self.lost(format!("`manifests.{key}` (line {})", value.at.line)),
            }
        }
    }

    pub(super) fn deploy(&mut self, deploy: &Node) {
        for (key, value) in entries(deploy) {
            match key {
                "kubectl" => self.kubectl(value),
                "kustomize" => self.kustomize(value, "deploy.kustomize"),
                "helm" => self.helm(value),
                "kubeContext" => {
                    let context = quoted(value.as_str().unwrap_or_default());
                    self.steps.common.push(format!("context: {context}"));
                }
                "statusCheckDeadlineSeconds" => {
                    match scalar(value).and_then(|text| text.parse::<u32>().ok()) {
                        Some(seconds) => self.steps.timeout = Some(format!("{seconds}s")),
                        None => self.lost(format!("`deploy.{key}` (line {})", value.at.line)),
                    }
                }
                "statusCheck" if scalar(value).as_deref() == Some("true") => {}
                "tolerateFailuresUntilDeadline" => {
                    self.steps.tolerates_failures = scalar(value).as_deref() == Some("true");
                }
                _ => self.lost(format!("`deploy.{key}` (line {})", value.at.line)),
            }
        }
    }

    /// What Skaffold does where neither manifests nor releases are named.
    pub(super) fn default_manifests(&mut self) {
        if self.steps.uses_kubectl && self.steps.named.is_empty() {
            self.notes.push(format!(
                "`deploy.kubectl` names no manifests, so `{DEFAULT_MANIFESTS}` is deployed"
            ));
            let lines = vec!["manifests: {paths: [k8s]}".to_owned()];
            self.steps.add("manifests", lines);
        }
    }

    fn kubectl(&mut self, kubectl: &Node) {
        self.steps.uses_kubectl = true;
        for (key, value) in entries(kubectl) {
            match key {
                "manifests" => self.raw_manifests(value, "deploy.kubectl.manifests"),
                "defaultNamespace" => {
                    self.steps.namespace = value.as_str().map(str::to_owned);
                }
                _ => self.lost(format!("`deploy.kubectl.{key}` (line {})", value.at.line)),
            }
        }
    }

    /// Files and patterns; a pattern becomes the directory that it is about.
    fn raw_manifests(&mut self, list: &Node, path: &str) {
        let mut paths: Vec<String> = Vec::new();
        for item in items(list) {
            let text = item.as_str().unwrap_or_default();
            let file = text.strip_prefix("./").unwrap_or(text);
            let before = file.split(['*', '?', '[', '{']).next().unwrap_or_default();
            let is_pattern = before.len() < file.len();
            let directory = before.rsplit_once('/').map(|(directory, _)| directory);
            let found = match directory {
                _ if file.is_empty() || file.contains("://") || file.contains("{{") => None,
                _ if !is_pattern => Some(file),
                Some(directory) => {
                    self.notes.push(format!(
                        "`{path}`: all manifests below `{directory}` are deployed, not only `{text}`"
                    ));
                    Some(directory)
                }
                None => None,
            };
            match found {
                Some(found) => {
                    let found = quoted(found);
                    if !paths.contains(&found) {
                        paths.push(found);
                    }
                }
                None => self.lost(format!("`{text}` of `{path}` (line {})", item.at.line)),
            }
        }
        if !paths.is_empty() {
            let lines = vec![format!("manifests: {{paths: [{}]}}", paths.join(", "))];
            self.steps.add("manifests", lines);
        }
    }

    fn kustomize(&mut self, kustomize: &Node, path: &str) {
        let mut paths = vec![".".to_owned()];
        for (key, value) in entries(kustomize) {
            match key {
                "paths" => paths = items(value).filter_map(scalar).collect(),
                "defaultNamespace" => {
                    self.steps.namespace = value.as_str().map(str::to_owned);
                }
                _ => self.lost(format!("`{path}.{key}` (line {})", value.at.line)),
            }
        }
        for path in paths {
            let lines = vec![format!("kustomize: {{path: {}}}", quoted(&path))];
            self.steps.add("kustomize", lines);
        }
    }

    fn helm(&mut self, helm: &Node) {
        let mut last = None;
        for (key, value) in entries(helm) {
            if key != "releases" {
                self.lost(format!("`deploy.helm.{key}` (line {})", value.at.line));
                continue;
            }
            for (at, release) in items(value).enumerate() {
                let path = format!("deploy.helm.releases[{at}]");
                last = self.release(release, &path, last.as_deref()).or(last);
            }
        }
    }

    /// A release, after the one before it; returns its name.
    fn release(&mut self, release: &Node, path: &str, last: Option<&str>) -> Option<String> {
        let Some(chart) = word(release, "chartPath") else {
            let line = release.at.line;
            self.lost(format!(
                "`{path}` (line {line}), which has no chart of the project,"
            ));
            return None;
        };
        let name = word(release, "name").unwrap_or("release");
        let mut lines = Vec::new();
        if let Some(last) = last {
            // Skaffold installs one after the other.
            lines.push(format!("needs: [{}]", quoted(last)));
        }
        let mut fields = vec![
            format!("chart: {}", quoted(chart)),
            format!("release: {}", quoted(name)),
        ];
        for (key, value) in entries(release) {
            match key {
                "name" | "chartPath" => {}
                "namespace" => {
                    let namespace = quoted(value.as_str().unwrap_or_default());
                    lines.push(format!("namespace: {namespace}"));
                }
                "createNamespace" => {
                    let flag = scalar(value).as_deref() == Some("true");
                    fields.push(format!("createNamespace: {flag}"));
                }
                "valuesFiles" => {
                    let files: Vec<String> = items(value).filter_map(scalar).collect();
                    let files: Vec<String> = files.iter().map(|file| quoted(file)).collect();
                    fields.push(format!("values: [{}]", files.join(", ")));
                }
                "setValues" => self.set_values(value, path, &mut fields),
                "artifactOverrides" => self.overrides(value, path, &mut fields),
                _ => self.lost(format!("`{path}.{key}` (line {})", value.at.line)),
            }
        }
        lines.push("helm:".to_owned());
        lines.extend(fields.into_iter().map(|field| format!("  {field}")));
        Some(self.steps.add(name, lines))
    }

    fn set_values(&mut self, values: &Node, path: &str, fields: &mut Vec<String>) {
        let mut set = Vec::new();
        for (key, value) in entries(values) {
            match scalar(value).filter(|text| !text.contains("{{")) {
                Some(text) => set.push(format!("{}: {}", quoted(key), quoted(&text))),
                None => self.lost(format!("`{path}.setValues.{key}` (line {})", value.at.line)),
            }
        }
        if !set.is_empty() {
            fields.push(format!("set: {{{}}}", set.join(", ")));
        }
    }

    /// Values that are an image of an artifact.
    fn overrides(&mut self, values: &Node, path: &str, fields: &mut Vec<String>) {
        let mut images = Vec::new();
        for (key, value) in entries(values) {
            match value.as_str().and_then(|image| self.artifact_of(image)) {
                Some(artifact) => images.push(format!("{}: {}", quoted(key), quoted(artifact))),
                None => self.lost(format!(
                    "`{path}.artifactOverrides.{key}` (line {})",
                    value.at.line
                )),
            }
        }
        if !images.is_empty() {
            fields.push(format!("images: {{{}}}", images.join(", ")));
        }
    }
}
