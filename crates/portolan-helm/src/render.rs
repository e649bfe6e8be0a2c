//! The entry point: renders a chart with its input to documents.

use std::rc::Rc;
use std::sync::Arc;

use portolan_budget::{Budget, Exceeded};
use portolan_gotmpl::Map;

use crate::capabilities::Capabilities;
use crate::chart::Chart;
use crate::dependency::{Plan, is_compatible};
use crate::engine::{Lookup, MEMORY_PER_OUTPUT, TemplateError};
use crate::manifest::{Hook, Manifest, ManifestError, RenderedFile, sort};
use crate::package::{Content, Package};
use crate::parallel;
use crate::profile::Profile;
use crate::release::{NameError, Release};
use crate::values::Tree;
use crate::values::coalesce::{Coalescer, Nulls, TypeMismatch};
use crate::values::schema::{self, SchemaError, SchemaSource};

/// Everything a render depends on beside the chart.
#[derive(Clone)]
pub struct TemplateInput {
    /// The release.
    pub release: Release,
    /// The values the user gave: a table.
    pub values: Tree,
    /// The cluster.
    pub capabilities: Arc<Capabilities>,
    /// Which Helm to reproduce.
    pub profile: Profile,
    /// Does not check values against `values.schema.json`.
    pub skip_schema_validation: bool,
    /// What brings schemas that `values.schema.json` refers to; without one, such a chart is refused. A chart asks it
    /// when it is rendered first.
    pub schemas: Option<Arc<dyn SchemaSource>>,
    /// Adds the notes of subcharts to the chart's own.
    pub subchart_notes: bool,
    /// The time templates see, in nanoseconds since 1970.
    pub now: i128,
    /// What chance follows from in place of the release's name; keys are then of the kinds that sprig makes.
    pub live_seed: Option<String>,
    /// What `lookup` finds; nothing without one, as in `helm template`.
    pub lookup: Option<Arc<dyn Lookup>>,
    /// What one render may use. Clones share it: an input for another render gets [`Budget::renewed`].
    pub budget: Budget,
}

impl TemplateInput {
    /// The input of a first installation on Helm's default cluster, without values.
    pub fn new(release: Release) -> Self {
        Self {
            release,
            values: Tree::empty_table(),
            capabilities: Arc::new(Capabilities::default()),
            profile: Profile::default(),
            skip_schema_validation: false,
            schemas: None,
            subchart_notes: false,
            now: 0,
            live_seed: None,
            lookup: None,
            budget: Budget::default(),
        }
    }
}

/// What a chart gives.
#[derive(Debug, Default)]
pub struct Rendered {
    /// The objects, in the order they are installed.
    pub manifests: Vec<Manifest>,
    /// The hooks, in the same order.
    pub hooks: Vec<Hook>,
    /// The files of `crds/`, the chart's own first.
    pub crds: Vec<Crd>,
    /// `NOTES.txt`, rendered.
    pub notes: String,
    /// What Helm prints to its log.
    pub warnings: Vec<String>,
    /// Which Helm was reproduced.
    pub profile: Profile,
}

/// A file of a chart's `crds/`: never rendered.
#[derive(Debug, Clone)]
pub struct Crd {
    /// Its path from the top chart.
    pub path: String,
    /// Its content.
    pub content: Content,
}

/// Why a chart was not rendered. The texts are Helm's.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The release's name breaks the rules.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A library chart has nothing to install.
    #[error("{0} charts are not installable")]
    NotInstallable(String),
    /// Helm 4 knows charts of version 3, and installs none.
    #[error("invalid chart apiVersion")]
    ApiVersion,
    /// `charts/` lacks charts that `Chart.yaml` lists.
    #[error(
        "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {0}"
    )]
    MissingDependencies(String),
    /// The values for a subchart are no table.
    #[error(transparent)]
    TypeMismatch(#[from] TypeMismatch),
    /// The chart does not work with this Kubernetes.
    #[error("chart requires kubeVersion: {range} which is incompatible with Kubernetes {version}")]
    KubeVersion {
        /// The versions the chart works with.
        range: String,
        /// The version it is rendered for.
        version: String,
    },
    /// The values break a schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The check of the values was stopped: it reached a limit, or somebody asked for the end.
    #[error("cannot check the values against `{file}`: {}", exceeded.with_option())]
    SchemaStopped {
        /// The schema, from the top chart.
        file: String,
        /// The limit.
        exceeded: Exceeded,
    },
    /// A template cannot be parsed, or failed while it ran.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A template's output is no object.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl Error {
    /// Returns the limit that was reached, or that somebody asked for the end, when that is the reason.
    pub fn exceeded(&self) -> Option<Exceeded> {
        match self {
            Self::SchemaStopped { exceeded, .. }
            | Self::Template(TemplateError::Stopped { exceeded, .. }) => Some(*exceeded),
            _ => None,
        }
    }
}

/// Renders a chart as `helm template` does.
pub fn template(chart: &Chart, input: &TemplateInput) -> Result<Rendered, Error> {
    let package = chart.package();
    check_package(package, input.profile)?;
    input.release.validate()?;
    let mut warnings = package.warnings.clone();
    let mut value_warnings = Vec::new();
    let preparation = chart.prepare(&input.values, input.profile, &mut warnings, |plan| {
        checked_values(plan, input, &mut value_warnings)
    })?;
    let values = preparation.beside?;
    check_kube_version(package, input)?;
    let prepared = preparation.prepared?;
    warnings.append(&mut value_warnings);
    let plan = &prepared.plan;
    let templates = &prepared.templates;
    let (mut files, executed) = parallel::map_produced(
        preparation.parsed,
        |(path, text)| RenderedFile::new(path, text, &chart.heads, input.profile),
        |rendered| templates.render(plan, &values, input, rendered),
    );
    executed?;
    let bytes: usize = files.iter().map(|file| file.content.len()).sum();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let notes = take_notes(&mut files, plan, input.subchart_notes);
    let sorted = sort(files, input.profile, &mut warnings)?;
    let mut crds = Vec::new();
    collect_crds(plan, &mut crds);
    input
        .budget
        .release(bytes.saturating_mul(MEMORY_PER_OUTPUT));
    Ok(Rendered {
        manifests: sorted.manifests,
        hooks: sorted.hooks,
        crds,
        notes,
        warnings,
        profile: input.profile,
    })
}

/// The values that templates see, checked against the charts' schemas.
fn checked_values(
    plan: &Plan,
    input: &TemplateInput,
    warnings: &mut Vec<String>,
) -> Result<Rc<Map>, Error> {
    let mut coalescer = Coalescer {
        profile: input.profile,
        warnings,
    };
    let values = coalescer.values(plan, &input.values, Nulls::Delete)?;
    if !input.skip_schema_validation {
        schema::validate(plan, &values, input)?;
    }
    Ok(values)
}

fn check_package(package: &Package, profile: Profile) -> Result<(), Error> {
    if profile == Profile::Helm4 && package.metadata.api_version == "v3" {
        return Err(Error::ApiVersion);
    }
    let kind = package.metadata.chart_type.as_str();
    if !matches!(kind, "" | "application") {
        return Err(Error::NotInstallable(kind.to_owned()));
    }
    let missing = package.missing_dependencies();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::MissingDependencies(missing.join(", ")))
    }
}

fn check_kube_version(package: &Package, input: &TemplateInput) -> Result<(), Error> {
    let range = &package.metadata.kube_version;
    let kube_version = &input.capabilities.kube_version;
    let version = match input.profile {
        Profile::Helm3 => kube_version.to_string(),
        Profile::Helm4 => kube_version.without_suffix().to_string(),
    };
    if range.is_empty() || is_compatible(range, &version) {
        return Ok(());
    }
    Err(Error::KubeVersion {
        range: range.clone(),
        version: kube_version.to_string(),
    })
}

/// Takes every `NOTES.txt` out of the rendered files and joins those that are wanted.
fn take_notes(files: &mut Vec<RenderedFile>, plan: &Plan, subcharts: bool) -> String {
    let own = format!("{}/templates/NOTES.txt", plan.name());
    let mut notes = Vec::new();
    files.retain(|file| {
        if !file.path.ends_with("NOTES.txt") {
            return true;
        }
        if subcharts || file.path == own.as_str() {
            notes.push(file.content.to_string());
        }
        false
    });
    notes.join("\n")
}

fn collect_crds(plan: &Plan, crds: &mut Vec<Crd>) {
    for file in &plan.package().files {
        let is_manifest = file.name.rsplit_once('.').is_some_and(|(_, extension)| {
            ["yaml", "yml", "json"]
                .iter()
                .any(|known| extension.eq_ignore_ascii_case(known))
        });
        if file.name.starts_with("crds/") && is_manifest {
            crds.push(Crd {
                path: format!("{}/{}", plan.path(), file.name),
                content: file.content.clone(),
            });
        }
    }
    for dependency in plan.dependencies() {
        collect_crds(dependency, crds);
    }
}
