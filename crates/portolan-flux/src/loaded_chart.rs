//! A chart in memory, with what can be told of it before it is rendered.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use portolan_helm::{Capabilities, Chart, ChartFile, Package};
use portolan_object::{Digest, Object, Origin, defined_kinds};
use portolan_yaml::Dialect;

use crate::fingerprint::Fingerprint;

/// A chart, and what can be told of it before it is rendered.
#[derive(Debug)]
pub struct LoadedChart {
    chart: Chart,
    digest: Digest,
    asks: Asks,
    mentions: Mentions,
    crds: OnceLock<BTreeSet<String>>,
    /// Whether it is content with these kinds; a session seldom sees more than one Kubernetes.
    content: OnceLock<(Arc<Capabilities>, bool)>,
}

/// What a chart's templates want to know of the cluster's kinds.
#[derive(Debug, PartialEq, Eq)]
enum Asks {
    /// Whether these are served, and nothing else.
    For(BTreeSet<String>),
    /// Something that shows only when it is rendered.
    Anything,
}

/// Words in templates without which they cannot print certain objects.
#[derive(Debug, Default, Clone, Copy)]
struct Mentions {
    definitions: bool,
    flux: bool,
}

/// What every API group of Flux ends in.
pub(crate) const FLUX_GROUPS: &str = "toolkit.fluxcd.io";
/// The kind that defines kinds.
pub(crate) const DEFINITION: &str = "CustomResourceDefinition";

impl LoadedChart {
    pub(crate) fn new(package: Package, digest: Digest) -> Self {
        let mut asks = Asks::For(BTreeSet::new());
        let mut mentions = Mentions::default();
        for_each_template(&package, &mut |text| {
            asks.read(text);
            mentions.definitions |= text.contains(DEFINITION);
            mentions.flux |= text.contains(FLUX_GROUPS);
        });
        Self {
            chart: Chart::new(package),
            digest,
            asks,
            mentions,
            crds: OnceLock::new(),
            content: OnceLock::new(),
        }
    }

    /// The chart itself.
    pub fn chart(&self) -> &Chart {
        &self.chart
    }

    /// The chart's name.
    pub fn name(&self) -> &str {
        &self.chart.package().metadata.name
    }

    /// The chart's version, with what Flux adds to it.
    pub fn version(&self) -> &str {
        &self.chart.package().metadata.version
    }

    /// The digest of its files.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether its templates may print definitions of kinds.
    pub(crate) fn may_define_kinds(&self) -> bool {
        self.mentions.definitions
    }

    /// Whether its templates may print objects of Flux.
    pub(crate) fn may_emit_flux(&self) -> bool {
        self.mentions.flux
    }

    /// Whether all it wants to know of the cluster is known from what Kubernetes itself serves.
    pub(crate) fn is_content_with(&self, base: &Arc<Capabilities>) -> bool {
        let compute = || (Arc::clone(base), self.is_answered_by(base));
        match self.content.get_or_init(compute) {
            (known, is_content) if Arc::ptr_eq(known, base) => *is_content,
            _ => self.is_answered_by(base),
        }
    }

    fn is_answered_by(&self, base: &Capabilities) -> bool {
        match &self.asks {
            Asks::Anything => false,
            Asks::For(wanted) => wanted.iter().all(|version| serves(base, version)),
        }
    }

    /// Adds what of the cluster's kinds decides its render.
    pub(crate) fn fingerprint_capabilities(
        &self,
        capabilities: &Capabilities,
        key: &mut Fingerprint,
    ) {
        key.text(&capabilities.kube_version.version);
        match &self.asks {
            Asks::Anything => capabilities
                .api_versions
                .iter()
                .for_each(|version| key.text(version)),
            Asks::For(wanted) => wanted
                .iter()
                .for_each(|version| key.flag(serves(capabilities, version))),
        }
    }

    /// The kinds that the files of its `crds/` directories define.
    pub(crate) fn crds(&self) -> &BTreeSet<String> {
        self.crds.get_or_init(|| {
            let mut served = BTreeSet::new();
            for_each_crd_file(self.chart.package(), &mut |file| {
                let documents = portolan_yaml::parse_bytes(&file.content, Dialect::Kustomize);
                for node in documents.unwrap_or_default() {
                    if let Ok(object) = Object::new(node, Origin::default()) {
                        add_defined(&mut served, &object);
                    }
                }
            });
            served
        })
    }
}

impl Asks {
    /// Finds the questions in a template's text.
    fn read(&mut self, text: &str) {
        for after in text.split(".APIVersions").skip(1) {
            let Self::For(wanted) = self else { return };
            match literal(after) {
                Some(version) => {
                    wanted.insert(version.to_owned());
                }
                None => *self = Self::Anything,
            }
        }
    }
}

/// The text in `.Has "text"`.
fn literal(after: &str) -> Option<&str> {
    let argument = after.strip_prefix(".Has")?.trim_start();
    let quote = argument
        .chars()
        .next()
        .filter(|first| matches!(first, '"' | '`'))?;
    argument
        .get(1..)?
        .split_once(quote)
        .map(|(version, _)| version)
}

fn serves(capabilities: &Capabilities, version: &str) -> bool {
    capabilities
        .api_versions
        .iter()
        .any(|served| served == version)
}

/// Adds the group versions and kinds that a definition has served.
pub(crate) fn add_defined(served: &mut BTreeSet<String>, definition: &Object) {
    if !definition.gvk().is("apiextensions.k8s.io", DEFINITION) {
        return;
    }
    for kind in defined_kinds(definition.node()) {
        let api_version = kind.gvk.api_version();
        served.insert(format!("{api_version}/{}", kind.gvk.kind));
        served.insert(api_version);
    }
}

fn for_each_template(package: &Package, visit: &mut impl FnMut(&str)) {
    for file in &package.templates {
        visit(&String::from_utf8_lossy(&file.content));
    }
    for subchart in &package.subcharts {
        for_each_template(subchart, visit);
    }
}

fn for_each_crd_file(package: &Package, visit: &mut impl FnMut(&ChartFile)) {
    package
        .files
        .iter()
        .filter(|file| file.name.starts_with("crds/"))
        .for_each(&mut *visit);
    for subchart in &package.subcharts {
        for_each_crd_file(subchart, visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(text: &str) -> Asks {
        let mut asks = Asks::For(BTreeSet::new());
        asks.read(text);
        asks
    }

    #[test]
    fn questions_by_literal_are_known_before_rendering() {
        let text = r#"{{ if .Capabilities.APIVersions.Has "a/v1" }}{{ if not (.Capabilities.APIVersions.Has  `b/v1/C`) }}"#;
        let wanted = ["a/v1", "b/v1/C"].map(str::to_owned);
        assert_eq!(asks(text), Asks::For(wanted.into()));
    }

    #[test]
    fn any_other_question_may_be_about_anything() {
        assert_eq!(
            asks("{{ range .Capabilities.APIVersions }}"),
            Asks::Anything
        );
        assert_eq!(
            asks("{{ .Capabilities.APIVersions.Has .version }}"),
            Asks::Anything
        );
    }
}
