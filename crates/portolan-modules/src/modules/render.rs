//! `render`: a kustomize overlay, a Helm chart or a Flux repository becomes a file of objects.
//!
//! Nothing is fetched, and nothing outside the source is read: its files are copied first.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_engine::with_causes;
use portolan_ship::{
    AfterFailure, DeploySource, DeployStep, DevSettings, FluxSource, HelmSource, Ship,
};
use serde_json::{Map, Value};

use super::attributes::{GROUP, MODE, OWNER};
use super::file::{PARENTS, parse_parents};
use super::write::{FileWork, Look, WriteOptions};
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::Attributes;
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::manifests::{difference, objects_of, to_yaml};
use crate::parameters::{Parameters, read_path};
use crate::plan::Plan;
use crate::source_tree::{SourceTree, TreeLook};
use crate::view::View;

/// The module `render`.
pub(super) static RENDER: ModuleDefinition = ModuleDefinition {
    name: "render",
    summary: "Renders a kustomize overlay, a Helm chart or a Flux repository into a file of Kubernetes objects. \
              Nothing is fetched.",
    parameters: &[
        ParameterDefinition::required(
            "source",
            ParameterType::Text,
            "The directory that all files are in: of the book, or of the node if it begins with `/`.",
        ),
        ParameterDefinition::required(
            "path",
            ParameterType::Path,
            "The file that the objects are written to.",
        ),
        ParameterDefinition::optional(
            "kustomize",
            ParameterType::Text,
            "The directory of the overlay, below `source`.",
        ),
        ParameterDefinition::optional(
            "chart",
            ParameterType::Text,
            "The directory or archive of the chart, below `source`.",
        ),
        ParameterDefinition::optional(
            "flux",
            ParameterType::Text,
            "The directory of the cluster, below `source`, which is the root of the Flux repository.",
        ),
        ParameterDefinition::optional(
            "only",
            ParameterType::TextList,
            "For `flux`: the Kustomizations and HelmReleases that are taken; all by default.",
        ),
        ParameterDefinition::optional(
            "release",
            ParameterType::Text,
            "For `chart`: the name of the release; the last part of `chart` by default.",
        ),
        ParameterDefinition::optional(
            "namespace",
            ParameterType::Text,
            "For `chart`: the namespace of the release; `default` by default.",
        ),
        ParameterDefinition::optional(
            "valuesFiles",
            ParameterType::TextList,
            "For `chart`: files of values below `source`, later ones over earlier ones.",
        ),
        ParameterDefinition::optional(
            "values",
            ParameterType::Map,
            "For `chart`: values over those of the files.",
        ),
        MODE,
        OWNER,
        GROUP,
        PARENTS,
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

/// The file in the copy that has the values of the step.
const VALUES_FILE: &str = ".portolan-values.yaml";

struct Render {
    source: Utf8PathBuf,
    path: Utf8PathBuf,
    step: DeployStep,
    values: Map<String, Value>,
    options: WriteOptions,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let kind = parameters.exactly_one(&["kustomize", "chart", "flux"])?;
    for (name, needs) in [
        ("only", "flux"),
        ("release", "chart"),
        ("namespace", "chart"),
        ("valuesFiles", "chart"),
        ("values", "chart"),
    ] {
        if parameters.has(name) && needs != kind {
            parameters.fault(name, format!("is for `{needs}`"));
        }
    }
    let inner = inner_path(parameters, kind);
    let only = parameters.text_list("only").unwrap_or_default();
    let release = parameters.line("release").map(str::to_owned);
    let namespace = parameters.line("namespace").map(str::to_owned);
    let mut values_files = parameters.text_list("valuesFiles").unwrap_or_default();
    let values = parameters.map("values").cloned().unwrap_or_default();
    let options = WriteOptions {
        attributes: Attributes::parse(parameters),
        parents: parse_parents(parameters),
        follow: true,
        ..WriteOptions::default()
    };
    let source = source_path(parameters);
    let path = parameters.path("path");
    let inner = inner?;
    let source_of_step = match kind {
        "kustomize" => DeploySource::Kustomize(inner),
        "flux" => DeploySource::Flux(FluxSource { path: inner, only }),
        _ => {
            if !values.is_empty() {
                values_files.push(VALUES_FILE.to_owned());
            }
            let name = Utf8Path::new(&inner).file_name().unwrap_or("release");
            DeploySource::Helm(HelmSource {
                release: release.unwrap_or_else(|| name.to_owned()),
                chart: inner,
                values: values_files,
                set: BTreeMap::new(),
                images: BTreeMap::new(),
                create_namespace: false,
                history_max: 0,
                on_failure: AfterFailure::Keep,
            })
        }
    };
    let mut step = DeployStep::of_files("render", Vec::new());
    step.source = source_of_step;
    step.namespace = namespace;
    Some(Box::new(Render {
        source: source?,
        path: path?,
        step,
        values,
        options,
    }))
}

/// A path below the source.
fn inner_path(parameters: &mut Parameters<'_>, name: &'static str) -> Option<String> {
    let text = parameters.line(name)?;
    let path = Utf8Path::new(text);
    if path.is_absolute() || path.components().any(|part| part.as_str() == "..") {
        parameters.fault(name, "must be a path below `source`, without `..`");
        return None;
    }
    Some(text.to_owned())
}

/// A directory of the book, or one of the host.
pub(super) fn source_path(parameters: &mut Parameters<'_>) -> Option<Utf8PathBuf> {
    let text = parameters.line("source")?;
    if !text.starts_with('/') {
        return Some(text.into());
    }
    let path = read_path(text);
    if path.is_none() {
        parameters.fault("source", "must be a path without `..`");
    }
    path
}

impl Action for Render {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        Ok(match self.look(view)? {
            Look::Work(work) => work.into_plan(),
            Look::Unknown(reason) => Plan::unknown(reason),
        })
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        match self.look(&View::of(host))? {
            Look::Work(work) => {
                plan.confirm(&Plan::of_changes(work.changes.clone()))?;
                self.options.write(host, &work)
            }
            Look::Unknown(reason) => Err(ModuleError::failed("write", &self.path, reason)),
        }
    }
}

impl Render {
    fn look(&self, view: &View<'_>) -> Result<Look, ModuleError> {
        let Some(objects) = self.objects(view)? else {
            let reason = format!("an earlier step writes files below `{}`", self.source);
            return Ok(Look::Unknown(reason));
        };
        let text: Arc<[u8]> = to_yaml(&objects)?.into_bytes().into();
        let old = std::cell::RefCell::new(None);
        let mut look = self.options.look(view, &self.path, &|content| {
            *old.borrow_mut() = content.map(<[u8]>::to_vec);
            Ok(Some(Arc::clone(&text)))
        })?;
        if let Look::Work(work) = &mut look {
            hide_secrets(work, old.into_inner().as_deref(), &text, &objects);
        }
        Ok(look)
    }

    /// The objects; `None` if an earlier step of the check writes files that they come from.
    fn objects(&self, view: &View<'_>) -> Result<Option<Vec<Value>>, ModuleError> {
        let TreeLook::Tree(mut tree) = SourceTree::copy(view, &self.source)? else {
            return Ok(None);
        };
        if !self.values.is_empty() {
            // JSON is YAML.
            let text = Value::Object(self.values.clone()).to_string();
            tree.write(VALUES_FILE.into(), text.as_bytes())
                .map_err(|error| ModuleError::failed("write", VALUES_FILE, error))?;
        }
        let ship = Ship {
            name: "render".to_owned(),
            artifacts: Vec::new(),
            tests: Vec::new(),
            deploy: vec![self.step.clone()],
            verify: Vec::new(),
            dev: DevSettings::default(),
        };
        let failed = |error: portolan_ship::RenderError| {
            ModuleError::failed("render", &self.source, with_causes(&error))
        };
        let steps = portolan_ship::render(&ship, tree.path()?);
        let steps = steps.map_err(|(_, error)| failed(error))?;
        let mut objects = Vec::new();
        for step in &steps {
            objects.extend(step.with_images(&ship, &BTreeMap::new()).map_err(failed)?);
        }
        Ok(Some(objects))
    }
}

/// A diff shows no value of a Secret; what is said about owner and permissions stays.
fn hide_secrets(work: &mut FileWork, old: Option<&[u8]>, new: &[u8], objects: &[Value]) {
    let Some(change) = work.changes.last_mut() else {
        return;
    };
    let name = change.subject.to_string();
    let shown = crate::unified::unified(&name, old, Some(new));
    let Some(rest) = change
        .diff
        .strip_prefix(&shown)
        .filter(|_| !shown.is_empty())
    else {
        return;
    };
    let hidden = match old.map(objects_of) {
        None => difference(&name, None, Some(objects)),
        Some(Some(old)) => difference(&name, Some(&old), Some(objects)),
        Some(None) => "the file had something else than objects\n".to_owned(),
    };
    let hidden = if hidden.is_empty() {
        "the same objects, written in another way\n".to_owned()
    } else {
        hidden
    };
    change.diff = format!("{hidden}{rest}");
}
