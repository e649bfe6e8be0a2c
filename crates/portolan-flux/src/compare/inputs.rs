//! The inputs of a release or a Kustomization, as a list that can be compared between two sides.
//!
//! ```text
//! spec, chart, values, versions ──▶ Inputs (before) ─┐
//!                                                    ├─▶ InputDifference … ; none means that both sides render alike
//! spec, chart, values, versions ──▶ Inputs (after)  ─┘
//! ```
//!
//! Rendering is a function of these inputs. So two equal lists mean equal objects, without any rendering, and two
//! different lists are a change even if neither side can be rendered. An unknown input never equals another input.
//! Data that nothing in a completely built repository emits is outside the repository. A change of the repository
//! does not affect it, so it is the same on both sides.

use std::collections::BTreeMap;

use portolan_helm::Capabilities;
use portolan_helm::values::Tree;
use portolan_object::Digest;
use portolan_yaml::{Node, Text};

use crate::api::{DataKind, HelmRelease, Kustomization, Source, SourceSpec};
use crate::kustomization::build;
use crate::kustomization::variables::Data;
use crate::release;
use crate::release::chart::{ChartError, Location, OciReference, ValuesFiles};
use crate::release::lookup::Answers;
use crate::release::values::Composed;
use crate::session::fingerprint::Fingerprint;
use crate::version::profile::Profile;

/// How much of one value is shown.
const MAX_SHOWN: usize = 120;

/// What kind of thing an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InputKind {
    /// The object itself, where it cannot be read.
    Definition,
    /// The chart's name, or its path in a tree.
    Chart,
    /// The chart's version, or the range of versions that will do.
    ChartVersion,
    /// Where the chart or the files come from.
    Source,
    /// The files of a chart that lies in the repository.
    ChartFiles,
    /// Files that take the place of the chart's `values.yaml`.
    ValuesFiles,
    /// One value, after substitution and `valuesFrom`.
    Values,
    /// An object that the chart looks up.
    LookedUp,
    /// The kustomize steps on what the chart gives.
    PostRenderers,
    /// The directory that a Kustomization builds.
    Path,
    /// The files that a Kustomization builds.
    Files,
    /// One variable of a Kustomization.
    Variables,
    /// Everything else that the object says about how it is rendered.
    Settings,
    /// The Kubernetes version reported to charts.
    KubernetesVersion,
    /// The API versions reported to charts.
    ApiVersions,
    /// The Flux version to emulate.
    FluxVersion,
}

/// One side of an input, as far as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputText {
    /// The side does not have it.
    Absent,
    /// The side has it, but what it is could not be found out.
    Unknown,
    /// It came out of a Secret.
    Hidden,
    /// It is too large or too shapeless to be shown.
    Opaque,
    /// What it is.
    Text(Text),
}

/// An input that is not the same on both sides, or may not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputDifference {
    /// What kind of thing it is.
    pub kind: InputKind,
    /// Which of its kind: the path of a value, the name of a variable; empty where there is only one.
    pub name: Text,
    /// The side that was.
    pub before: InputText,
    /// The side that is to be.
    pub after: InputText,
}

/// Everything that decides what a release or a Kustomization renders to.
#[derive(Debug, Clone, Default)]
pub struct Inputs(BTreeMap<(InputKind, Text), Input>);

#[derive(Debug, Clone)]
struct Input {
    shown: InputText,
    /// `None` if it is not known.
    digest: Option<Digest>,
}

/// A chart, as an input.
pub(crate) struct ChartInput<'a> {
    pub(crate) location: &'a Location,
    /// The source that a chart in a tree comes from, unless that is the repository itself.
    pub(crate) source: Option<&'a Source>,
    pub(crate) files: FilesInput,
}

/// A ConfigMap or Secret that variables come from, with its content where something emits it.
pub(crate) type VariableData<'a> = (DataKind, Text, Option<&'a Data>);

/// What holds for everything that is rendered on one side.
pub(crate) struct SideFacts<'a> {
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) profile: Profile,
    /// Whether everything was built that could emit data or sources, or the same is missing on both sides. If so, what
    /// is not there is no difference.
    pub(crate) is_whole: bool,
}

/// The files of a chart or a Kustomization, as an input.
pub(crate) enum FilesInput {
    /// They lie elsewhere; their source stands for them.
    Elsewhere,
    /// They are at hand and have this digest.
    Known(Digest),
    /// What they are could not be found out.
    Unknown,
}

/// The inputs that differ between two sides; a side without the object has no inputs.
pub fn input_differences(before: &Inputs, after: &Inputs) -> Vec<InputDifference> {
    let keys = before.0.keys().chain(after.0.keys());
    let keys: std::collections::BTreeSet<_> = keys.collect();
    let differing = keys.into_iter().filter(|key| {
        let digest = |side: &Inputs| side.0.get(key).and_then(|input| input.digest);
        digest(before).is_none() || digest(before) != digest(after)
    });
    differing
        .map(|(kind, name)| {
            let shown = |side: &Inputs| {
                let input = side.0.get(&(*kind, name.clone()));
                input.map_or(InputText::Absent, |input| input.shown.clone())
            };
            InputDifference {
                kind: *kind,
                name: name.clone(),
                before: shown(before),
                after: shown(after),
            }
        })
        .collect()
}

// === impl Inputs ===

impl Inputs {
    /// Of a release.
    pub(crate) fn of_release(
        release: &HelmRelease,
        composed: &Composed,
        chart: Result<ChartInput<'_>, &ChartError>,
        side: &SideFacts<'_>,
    ) -> Self {
        let mut inputs = Self::default();
        match chart {
            Ok(chart) => inputs.add_chart(&chart),
            Err(error) if side.is_whole => inputs.add_text(InputKind::Chart, &error.to_string()),
            Err(_) => inputs.add_unknown(InputKind::Chart, Text::default()),
        }
        inputs.add_values(release, composed, side);
        let mut post_renderers = Fingerprint::of("post-renderers");
        release::fingerprint_post_renderers(release, &mut post_renderers);
        inputs.add_opaque(InputKind::PostRenderers, post_renderers);
        let mut settings = Fingerprint::of("settings");
        release::fingerprint_settings(release, &mut settings);
        inputs.add_opaque(InputKind::Settings, settings);
        inputs.add_versions(side);
        inputs
    }

    /// Adds what a release's chart looked up, with what it found; a Secret may be among it.
    pub(crate) fn add_looked_up(&mut self, answers: &Answers) {
        for (question, answer) in answers.iter() {
            let mut digest = Fingerprint::of("looked up");
            digest.flag(answer.is_some());
            if let Some(answer) = answer {
                digest.digest(&answer);
            }
            let shown = match answer {
                Some(_) => InputText::Opaque,
                None => InputText::Absent,
            };
            let name = Text::from(question.to_string());
            self.add(InputKind::LookedUp, name, shown, Some(digest.finish()));
        }
    }

    /// Of a Kustomization; `data` is what its variables come from.
    pub(crate) fn of_kustomization(
        spec: &Kustomization,
        source: Option<&Source>,
        files: &FilesInput,
        data: &[VariableData<'_>],
        side: &SideFacts<'_>,
    ) -> Self {
        let mut inputs = Self::default();
        inputs.add_text(InputKind::Path, &spec.path);
        inputs.add_text(
            InputKind::Source,
            &described(&spec.source.to_string(), source),
        );
        inputs.add_files(InputKind::Files, files);
        let mut settings = Fingerprint::of("settings");
        build::fingerprint_settings(spec, &mut settings);
        inputs.add_opaque(InputKind::Settings, settings);
        for (name, value) in spec.post_build.iter().flat_map(|post| &post.substitute) {
            inputs.add_named(InputKind::Variables, name.clone(), value);
        }
        for (kind, name, data) in data {
            inputs.add_data(*kind, name, *data, side);
        }
        inputs.add_versions(side);
        inputs
    }

    /// Of an object that cannot be read: the object as it is.
    pub(crate) fn of_definition(definition: &Node) -> Self {
        let mut digest = Fingerprint::of("definition");
        digest.node(definition.get("spec"));
        let mut inputs = Self::default();
        inputs.add_opaque(InputKind::Definition, digest);
        inputs
    }

    fn add_chart(&mut self, chart: &ChartInput<'_>) {
        match chart.location {
            Location::Tree {
                source,
                path,
                values,
            } => {
                self.add_text(InputKind::Chart, path);
                let source = described(&source.to_string(), chart.source);
                self.add_text(InputKind::Source, &source);
                self.add_files(InputKind::ChartFiles, &chart.files);
                self.add_values_files(values);
            }
            Location::Repository {
                url,
                name,
                version,
                values,
            } => {
                self.add_text(InputKind::Chart, name);
                self.add_text(InputKind::ChartVersion, version);
                self.add_text(InputKind::Source, url);
                self.add_values_files(values);
            }
            Location::Registry {
                url,
                reference,
                layer,
                values,
                ..
            } => {
                let (parent, name) = url.rsplit_once('/').unwrap_or(("", url));
                self.add_text(InputKind::Chart, name);
                self.add_text(InputKind::ChartVersion, &shown_reference(reference));
                self.add_text(InputKind::Source, parent);
                if let Some(layer) = layer {
                    self.add_named(InputKind::Source, Text::from_static("layer"), layer);
                }
                self.add_values_files(values);
            }
        }
    }

    fn add_files(&mut self, kind: InputKind, files: &FilesInput) {
        match files {
            FilesInput::Elsewhere => {}
            FilesInput::Known(digest) => {
                self.add(kind, Text::default(), InputText::Opaque, Some(*digest));
            }
            FilesInput::Unknown => self.add_unknown(kind, Text::default()),
        }
    }

    fn add_values_files(&mut self, values: &ValuesFiles) {
        if !values.names.is_empty() {
            let optional = if values.ignore_missing {
                " (optional)"
            } else {
                ""
            };
            let names = format!("{}{optional}", values.names.join(", "));
            self.add_text(InputKind::ValuesFiles, &names);
        }
    }

    fn add_values(&mut self, release: &HelmRelease, composed: &Composed, side: &SideFacts<'_>) {
        let mut references = release.values_from.iter();
        let inline = release.values.as_ref().map(Tree::from_node);
        let leaves = Leaves {
            inline: inline.as_ref(),
            hides_others: references.any(|reference| reference.kind == DataKind::Secret),
        };
        leaves.add_all(&composed.values, self);
        for missing in &composed.missing {
            let name = format!("{} {}", missing.kind.as_str(), missing.name);
            self.add_missing(InputKind::Values, name, side);
        }
        for error in &composed.errors {
            let name = Text::from(error.to_string());
            self.add_named(InputKind::Values, name, "cannot be read");
        }
    }

    /// Data that variables come from.
    fn add_data(&mut self, kind: DataKind, name: &Text, data: Option<&Data>, side: &SideFacts<'_>) {
        let Some(data) = data else {
            let name = format!("{} {name}", kind.as_str());
            return self.add_missing(InputKind::Variables, name, side);
        };
        for (key, value) in data {
            let mut digest = Fingerprint::of("variable");
            digest.bytes(value);
            let shown = match (kind, std::str::from_utf8(value)) {
                (DataKind::Secret, _) => InputText::Hidden,
                (DataKind::ConfigMap, Ok(text)) => shown(text),
                (DataKind::ConfigMap, Err(_)) => InputText::Opaque,
            };
            let digest = Some(digest.finish());
            self.add(InputKind::Variables, key.clone(), shown, digest);
        }
    }

    fn add_missing(&mut self, kind: InputKind, name: String, side: &SideFacts<'_>) {
        if side.is_whole {
            self.add_named(kind, Text::from(name), "not in the repository");
        } else {
            self.add_unknown(kind, Text::from(name));
        }
    }

    fn add_versions(&mut self, side: &SideFacts<'_>) {
        let version = side.capabilities.kube_version.to_string();
        self.add_text(InputKind::KubernetesVersion, &version);
        let mut served = Fingerprint::of("API versions");
        for version in &side.capabilities.api_versions {
            served.text(version);
        }
        self.add_opaque(InputKind::ApiVersions, served);
        let Profile {
            strict_substitution,
            helm4,
        } = side.profile;
        let flux = match (strict_substitution, helm4) {
            (true, _) => "2.9 or newer",
            (false, true) => "2.8",
            (false, false) => "2.7 or older",
        };
        self.add_text(InputKind::FluxVersion, flux);
    }

    fn add_text(&mut self, kind: InputKind, text: &str) {
        self.add_named(kind, Text::default(), text);
    }

    fn add_named(&mut self, kind: InputKind, name: Text, text: &str) {
        let mut digest = Fingerprint::of("text");
        digest.text(text);
        self.add(kind, name, shown(text), Some(digest.finish()));
    }

    fn add_opaque(&mut self, kind: InputKind, digest: Fingerprint) {
        let digest = Some(digest.finish());
        self.add(kind, Text::default(), InputText::Opaque, digest);
    }

    fn add_unknown(&mut self, kind: InputKind, name: Text) {
        self.add(kind, name, InputText::Unknown, None);
    }

    fn add(&mut self, kind: InputKind, name: Text, shown: InputText, digest: Option<Digest>) {
        self.0.insert((kind, name), Input { shown, digest });
    }
}

/// The values of a release one by one; those that are not written in it may be secret.
struct Leaves<'a> {
    inline: Option<&'a Tree>,
    hides_others: bool,
}

impl Leaves<'_> {
    fn add_all(&self, values: &Tree, inputs: &mut Inputs) {
        self.add(values, self.inline, String::new(), inputs);
    }

    fn add(&self, value: &Tree, inline: Option<&Tree>, path: String, inputs: &mut Inputs) {
        match value {
            Tree::Table(table) if !table.is_empty() => {
                for (key, value) in table.iter() {
                    let path = if path.is_empty() {
                        key.to_string()
                    } else {
                        format!("{path}.{key}")
                    };
                    let inline = inline.and_then(Tree::as_table);
                    let inline = inline.and_then(|table| table.get(key));
                    self.add(value, inline, path, inputs);
                }
            }
            leaf => {
                let mut digest = Fingerprint::of("value");
                digest.tree(leaf);
                let shown = if self.hides_others && inline != Some(leaf) {
                    InputText::Hidden
                } else {
                    shown_leaf(leaf)
                };
                let digest = Some(digest.finish());
                inputs.add(InputKind::Values, Text::from(path), shown, digest);
            }
        }
    }
}

fn shown_leaf(leaf: &Tree) -> InputText {
    match leaf {
        Tree::Null => shown("null"),
        Tree::Bool(value) => shown(&value.to_string()),
        Tree::Int(value) => shown(&value.to_string()),
        Tree::Float(value) => shown(&value.to_string()),
        // As YAML has it: what reads as something else is quoted.
        Tree::Text(text) if reads_as_other(text) => shown(&format!("\"{text}\"")),
        Tree::Text(text) => shown(text),
        Tree::List(_) => InputText::Opaque,
        Tree::Table(_) => shown("{}"),
    }
}

/// Whether a text without quotes would be a number, a boolean or nothing.
fn reads_as_other(text: &str) -> bool {
    matches!(text, "" | "true" | "false" | "null" | "~") || text.parse::<f64>().is_ok()
}

fn shown(text: &str) -> InputText {
    let is_short = text.chars().nth(MAX_SHOWN).is_none() && !text.contains('\n');
    if is_short {
        InputText::Text(Text::from(text))
    } else {
        InputText::Opaque
    }
}

fn shown_reference(reference: &OciReference) -> String {
    match reference {
        OciReference::Digest(digest) => digest.to_string(),
        OciReference::Range {
            range,
            filter: Some(filter),
        } => format!("{range} (tags like {filter})"),
        OciReference::Range {
            range,
            filter: None,
        } => range.to_string(),
        OciReference::Tag(tag) => tag.to_string(),
    }
}

/// A source by name, with what it stands for where it is declared.
fn described(reference: &str, source: Option<&Source>) -> String {
    let Some(source) = source else {
        return reference.to_owned();
    };
    let first = |fields: &[&Option<Text>], otherwise: &str| {
        let mut set = fields.iter().filter_map(|field| field.as_deref());
        set.next().unwrap_or(otherwise).to_owned()
    };
    let content = match &source.spec {
        SourceSpec::Git { url, reference } => {
            let fields = [
                &reference.commit,
                &reference.name,
                &reference.semver,
                &reference.tag,
                &reference.branch,
            ];
            format!("{url} {}", first(&fields, "master"))
        }
        SourceSpec::Oci { url, reference, .. } => {
            let fields = [&reference.digest, &reference.semver, &reference.tag];
            format!("{url} {}", first(&fields, "latest"))
        }
        SourceSpec::Bucket {
            endpoint,
            name,
            prefix,
            ..
        } => format!("{endpoint}/{name}/{prefix}"),
        SourceSpec::HelmRepository { url, .. } => url.to_string(),
        SourceSpec::HelmChart(chart) => format!("{} {}", chart.chart, chart.version),
        SourceSpec::ExternalArtifact => String::new(),
    };
    let ignored = source.ignore.as_deref().unwrap_or_default();
    let ignored = if ignored.is_empty() {
        String::new()
    } else {
        format!(" without {}", ignored.replace('\n', " "))
    };
    format!("{reference} ({content}{ignored})")
}

impl InputKind {
    /// What it is called in messages and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Chart => "chart",
            Self::ChartVersion => "chart version",
            Self::Source => "source",
            Self::ChartFiles => "chart files",
            Self::ValuesFiles => "values files",
            Self::Values => "values",
            Self::LookedUp => "looked up",
            Self::PostRenderers => "post-renderers",
            Self::Path => "path",
            Self::Files => "files",
            Self::Variables => "variables",
            Self::Settings => "settings",
            Self::KubernetesVersion => "Kubernetes version",
            Self::ApiVersions => "API versions",
            Self::FluxVersion => "Flux version",
        }
    }
}

#[cfg(test)]
mod tests;
