//! What the user can do about a problem.

use std::error::Error;

use portolan_engine::causes;
use portolan_vfs::VfsError;

use crate::api::Kustomization;
use crate::kustomization::build::BuildError;
use crate::kustomization::generate::{self, GenerateError};
use crate::release::ReleaseError;
use crate::release::chart::ChartError;
use crate::source::outside::{Advised, OutsideCause};
use crate::walk::resource_set::ResourceSetError;

/// A field has the wrong type, or is not there.
pub(crate) const FIELD: &str = "the API server refuses the object until this is fixed; put numbers and booleans in quotes to make them strings";

/// What those who tried to bring something from outside advise.
pub(crate) fn from_outside(error: &(dyn Error + 'static)) -> Vec<String> {
    let own = causes(error).filter_map(|cause| cause.downcast_ref::<Advised>());
    let fetched = fetch_failure(error).into_iter().flat_map(causes);
    let advised = own.chain(fetched.filter_map(|cause| cause.downcast_ref::<Advised>()));
    advised.map(|advised| advised.hint.clone()).collect()
}

/// Why kustomize could not fetch something, which its error holds as text.
fn fetch_failure<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let mut builds = causes(error).filter_map(|cause| cause.downcast_ref::<BuildError>());
    builds.find_map(|error| match error {
        BuildError::Kustomize { source, .. } => source.fetch_failure(),
        _ => None,
    })
}

/// The reason that something from outside shares with everything else that fails for it.
pub(crate) fn shared_reason(error: &(dyn Error + 'static)) -> Option<String> {
    let fetched = || OutsideCause::of(fetch_failure(error)?);
    let cause = OutsideCause::of(error).or_else(fetched);
    cause.map(ToString::to_string)
}

/// A file that is there and cannot be had.
pub fn on_files(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let is_foreign =
        |cause: &(dyn Error + 'static)| matches!(cause.downcast_ref(), Some(VfsError::NotUtf8(_)));
    let is_foreign = causes(error).any(is_foreign);
    is_foreign.then_some("give it a name in UTF-8, or leave it out in `.sourceignore` by a pattern")
}

/// A Kustomization that cannot be built.
pub(crate) fn on_build(error: &BuildError, spec: &Kustomization) -> String {
    if let Some(advice) = on_files(error) {
        return advice.to_owned();
    }
    let directory = generate::directory(spec);
    let path = match directory.as_str().trim_start_matches('/') {
        "" => ".",
        path => path,
    };
    match error {
        BuildError::Generate(GenerateError::NoPath(_)) => {
            format!("paths begin at the top of {}", spec.source)
        }
        BuildError::Generate(_) => {
            format!("without a kustomization.yaml everything below `{path}` is applied: fix the file, or leave it out in `.sourceignore`")
        }
        BuildError::Kustomize { .. } => {
            format!("`portolan kustomize build {path}` tries the directory alone")
        }
        BuildError::Substitution { .. } => {
            "`$${` keeps `${` as it is; the annotation `kustomize.toolkit.fluxcd.io/substitute: disabled` keeps the whole object".to_owned()
        }
        BuildError::Decrypt { .. } | BuildError::DecryptFile { .. } => {
            "`--age-key-file FILE` names the key; without one, placeholders are built".to_owned()
        }
        BuildError::Duplicate(_) => "give the variables other values, or the objects other names".to_owned(),
    }
}

/// A chart that is not to be had.
pub(crate) fn on_chart(error: &ChartError) -> Option<String> {
    match error {
        ChartError::NotCached(_) => Some("`portolan fetch` brings it".to_owned()),
        ChartError::Unavailable(source) => {
            Some(format!("`--source {}=DIR` gives its files", source.id))
        }
        ChartError::NoSource(source) => Some(format!(
            "fix the name or the namespace, or add the {} to what Flux applies",
            source.kind
        )),
        ChartError::WrongKind(_) => {
            Some("charts come from a HelmRepository, OCIRepository, GitRepository or Bucket".to_owned())
        }
        ChartError::Load { .. } => {
            Some("in a GitRepository or Bucket, `chart` is the path of the chart's directory from the top".to_owned())
        }
        ChartError::NoDependency { .. } | ChartError::WrongDependency { .. } => {
            Some("fix `dependencies` in the chart's Chart.yaml".to_owned())
        }
        ChartError::ValuesFile { .. } => {
            Some("`valuesFiles` begin at the top of the source; `ignoreMissingValuesFiles: true` passes over those that are not there".to_owned())
        }
        ChartError::InvalidVersion(_) | ChartError::OtherVersion { .. } => {
            Some("helm-controller refuses a chart whose version is not that of its tag: push it again under its own version".to_owned())
        }
        ChartError::Fetch { .. } => None,
    }
}

/// A release that cannot be rendered.
pub(crate) fn on_release(error: &ReleaseError) -> &'static str {
    match error {
        ReleaseError::Template { source, .. }
            if matches!(**source, portolan_helm::Error::Schema(_)) =>
        {
            "fix `values`, what `valuesFrom` names or the chart's own values.yaml"
        }
        ReleaseError::Template { .. } => {
            "values come from `valuesFrom` and `values` of the release, and from the chart's own values.yaml"
        }
        ReleaseError::NotYaml { .. } => {
            "the template must give YAML with these values: look at its quotes and indentation"
        }
        ReleaseError::Schema { .. } => {
            "`install.disableSchemaValidation: true` leaves the schema out"
        }
        ReleaseError::PostRenderer { .. } => "`postRenderers` must fit what the chart gives",
    }
}

/// A ResourceSet that gives nothing.
pub(crate) fn on_resource_set(error: &ResourceSetError) -> &'static str {
    match error {
        ResourceSetError::Template(_) => {
            "`<< inputs.NAME >>` needs NAME in every set of `inputs` and of what `inputsFrom` names"
        }
        ResourceSetError::NotYaml { .. } => {
            "the template must give YAML with these inputs: look at its quotes and indentation"
        }
        ResourceSetError::TooManyInputs => {
            "`inputStrategy: {name: Permute}` multiplies the inputs of its providers: take `Flatten`, or fewer"
        }
    }
}
