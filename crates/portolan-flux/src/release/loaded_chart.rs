//! A chart in memory, with what is known about it before it is rendered.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use portolan_helm::{Capabilities, Chart, ChartFile, Metadata, Package, PackedPackage};
use portolan_object::{Digest, Object, Origin, Place, defined_kinds};
use portolan_yaml::{Dialect, Position};

use crate::release::ReleaseDictionaries;
use crate::release::chart_places::ChartPlaces;
use crate::release::flux_mention::may_print_flux;
use crate::release::looked_up::LookedUp;
use crate::release::quick_scan::QuickScan;
use crate::release::template_lines::TemplateLines;
use crate::session::fingerprint::Fingerprint;

/// A chart, and what can be told of it before it is rendered.
#[derive(Debug)]
pub struct LoadedChart {
    held: Mutex<HeldChart>,
    name: String,
    version: String,
    digest: Digest,
    places: ChartPlaces,
    /// What its places depend on besides its files: the directory that it lies in.
    place_digest: Digest,
    asks: Asks,
    mentions: Mentions,
    looked_up: LookedUp,
    crds: OnceLock<BTreeSet<String>>,
    pub(crate) lines: TemplateLines,
    /// What the objects of its releases have in common, for those that are packed.
    pub(crate) dictionaries: ReleaseDictionaries,
    /// Whether it is content with these kinds; a session seldom sees more than one Kubernetes.
    content: OnceLock<(Arc<Capabilities>, bool)>,
}

/// A chart in the form that it is needed in: at least one of them is there.
#[derive(Debug, Default)]
struct HeldChart {
    plain: Option<Arc<Chart>>,
    packed: Option<PackedPackage>,
}

/// What a chart's templates want to know of the cluster's kinds.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asks {
    /// Whether these are served.
    exactly: BTreeSet<String>,
    /// Whether something that begins with one of these is served.
    beginning: BTreeSet<String>,
    /// Something that shows only when it is rendered.
    anything: bool,
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
    pub(crate) fn new(
        package: Package,
        places: ChartPlaces,
        digest: Digest,
        place_digest: Digest,
    ) -> Self {
        let mut asks = Asks::default();
        let mut mentions = Mentions::default();
        let mut looked_up = LookedUp::default();
        for_each_template(&package, &mut |text| {
            asks.read(text);
            looked_up.read(text.as_bytes());
            mentions.definitions |= text.contains(DEFINITION);
            mentions.flux |= may_print_flux(text.as_bytes());
        });
        let Metadata { name, version, .. } = package.metadata.clone();
        let held = HeldChart {
            plain: Some(Arc::new(Chart::new(package))),
            packed: None,
        };
        Self {
            held: Mutex::new(held),
            name,
            version,
            digest,
            places,
            place_digest,
            asks,
            mentions,
            looked_up,
            crds: OnceLock::new(),
            lines: TemplateLines::default(),
            dictionaries: ReleaseDictionaries::default(),
            content: OnceLock::new(),
        }
    }

    /// The chart itself; unpacks it if it is packed.
    pub fn chart(&self) -> Arc<Chart> {
        let HeldChart { plain, packed } = &mut *self.held.lock();
        let unpacked = || {
            let package = packed.as_ref().map(PackedPackage::unpack);
            Arc::new(Chart::new(package.expect("what is not plain is packed")))
        };
        Arc::clone(plain.get_or_insert_with(unpacked))
    }

    /// Keeps the chart in little memory until somebody asks for it, and forgets its parsed templates.
    pub(crate) fn pack(&self) {
        let HeldChart { plain, packed } = &mut *self.held.lock();
        if let (Some(chart), None) = (&plain, &packed) {
            *packed = Some(chart.package().pack());
        }
        *plain = None;
    }

    /// The chart's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The chart's version, with what Flux adds to it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The digest of its files.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The place of a line of one of its files, which is called as Helm calls it.
    pub(crate) fn place(&self, file: &str, at: Position) -> Place {
        let chart = (self.name(), self.version());
        self.places.place(chart, file, at)
    }

    /// The digest of where it lies, which shows in the places of what it prints and nowhere else.
    pub(crate) fn place_digest(&self) -> Digest {
        self.place_digest
    }

    /// What it may do to others.
    pub(crate) fn scan(&self) -> QuickScan {
        QuickScan {
            may_emit_flux: self.may_emit_flux(),
            may_define_kinds: self.may_define_kinds() || !self.crds().is_empty(),
            looked_up: self.looked_up.clone(),
            is_unfetched: false,
        }
    }

    /// What its templates may look up.
    pub(crate) fn looked_up(&self) -> &LookedUp {
        &self.looked_up
    }

    /// Whether a word stands in its templates.
    pub(crate) fn mentions(&self, word: &str) -> bool {
        let mut is_mentioned = false;
        for_each_template(self.chart().package(), &mut |text| {
            is_mentioned = is_mentioned || text.contains(word);
        });
        is_mentioned
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
    pub(crate) fn needs_only(&self, base: &Arc<Capabilities>) -> bool {
        let compute = || (Arc::clone(base), self.is_answered_by(base));
        match self.content.get_or_init(compute) {
            (known, needs_only_base) if Arc::ptr_eq(known, base) => *needs_only_base,
            _ => self.is_answered_by(base),
        }
    }

    fn is_answered_by(&self, base: &Capabilities) -> bool {
        let asks = &self.asks;
        let mut exactly = asks.exactly.iter();
        !asks.anything && asks.beginning.is_empty() && exactly.all(|version| serves(base, version))
    }

    /// The API groups whose kinds it asks for beyond what Kubernetes itself serves; nothing when only rendering it tells.
    pub(crate) fn groups_asked_for(&self, base: &Capabilities) -> Option<BTreeSet<String>> {
        let asks = &self.asks;
        let exactly = asks.exactly.iter().filter(|version| !serves(base, version));
        let group = |version: &String| Some(version.split_once('/')?.0.to_owned());
        let groups = exactly.chain(&asks.beginning).map(group);
        groups.collect::<Option<_>>().filter(|_| !asks.anything)
    }

    /// Adds what of the cluster's kinds decides its render.
    pub(crate) fn fingerprint_capabilities(
        &self,
        capabilities: &Capabilities,
        key: &mut Fingerprint,
    ) {
        key.text(&capabilities.kube_version.to_string());
        let asks = &self.asks;
        for version in &asks.exactly {
            key.flag(serves(capabilities, version));
        }
        let is_asked_for = |version: &&String| {
            let mut beginning = asks.beginning.iter();
            asks.anything || beginning.any(|beginning| version.starts_with(beginning))
        };
        let served = capabilities.api_versions.iter();
        for version in served.filter(is_asked_for) {
            key.text(version);
        }
    }

    /// The kinds that the files of its `crds/` directories define.
    pub(crate) fn crds(&self) -> &BTreeSet<String> {
        self.crds.get_or_init(|| {
            let mut served = BTreeSet::new();
            for_each_crd_file(self.chart().package(), &mut |file| {
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
            let argument = after.strip_prefix(".Has").map(str::trim_start);
            if let Some(version) = argument.and_then(literal) {
                self.exactly.insert(version.to_owned());
            } else if let Some(beginning) = argument.and_then(beginning) {
                self.beginning.insert(beginning.to_owned());
            } else {
                self.anything = true;
            }
        }
    }
}

/// The text in `"text"`.
fn literal(argument: &str) -> Option<&str> {
    let quote = argument
        .chars()
        .next()
        .filter(|first| matches!(first, '"' | '`'))?;
    argument
        .get(1..)?
        .split_once(quote)
        .map(|(version, _)| version)
}

/// What `(printf "group/version/%s" …)` begins with, if that names the group.
fn beginning(argument: &str) -> Option<&str> {
    let format = argument.strip_prefix('(')?.trim_start();
    let format = literal(format.strip_prefix("printf")?.trim_start())?;
    let (beginning, _) = format.split_once('%')?;
    beginning.contains('/').then_some(beginning)
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
        let mut asks = Asks::default();
        asks.read(text);
        asks
    }

    #[test]
    fn questions_by_literal_are_known_before_rendering() {
        let text = r#"{{ if .Capabilities.APIVersions.Has "a/v1" }}{{ if not (.Capabilities.APIVersions.Has  `b/v1/C`) }}"#;
        let wanted = ["a/v1", "b/v1/C"].map(str::to_owned);
        assert_eq!(asks(text).exactly, wanted.into());
        assert!(!asks(text).anything);
    }

    #[test]
    fn questions_that_name_the_group_are_known_as_far_as_that() {
        let text = r#"{{ if .Capabilities.APIVersions.Has (printf "a.io/v1/%s" .kind) }}"#;
        assert_eq!(asks(text).beginning, ["a.io/v1/".to_owned()].into());
        assert!(!asks(text).anything);
    }

    #[test]
    fn any_other_question_may_be_about_anything() {
        for text in [
            "{{ range .Capabilities.APIVersions }}",
            "{{ .Capabilities.APIVersions.Has .version }}",
            r#"{{ .Capabilities.APIVersions.Has (printf "%s/v1" .group) }}"#,
        ] {
            assert!(asks(text).anything, "{text}");
        }
    }
}
