//! What is wrong with a rendered cluster, one entry per object, root causes with what they caused.

use std::error::Error;

use portolan_engine::{Outcome, Report};
use portolan_object::{Object, Place};
use portolan_yaml::Node;

use crate::api::{DataKind, FieldError, NamespacedName};
use crate::build::BuildError;
use crate::index::Index;
use crate::render::{RenderedRelease, Rendering};
use crate::walk::Walked;

/// How grave a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Flux would refuse.
    Error,
    /// Flux would go on once something outside of the repository has happened.
    Note,
}

/// One thing that is wrong with one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How grave it is.
    pub severity: Severity,
    /// The object's kind.
    pub kind: &'static str,
    /// The object's name.
    pub id: NamespacedName,
    /// What is wrong, then why, one sentence each.
    pub messages: Vec<String>,
    /// Where.
    pub place: Option<Place>,
    /// What to do.
    pub hints: Vec<String>,
}

/// Everything that is wrong, by kind and name.
pub fn problems(rendering: &Rendering, report: &Report) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (id, walked) in &rendering.walk.kustomizations {
        kustomization_problems(id, walked, &rendering.walk.index, report, &mut problems);
    }
    for (id, release) in &rendering.releases {
        release_problems(id, release, &rendering.walk.index, report, &mut problems);
    }
    problems
}

fn kustomization_problems(
    id: &NamespacedName,
    walked: &Walked,
    index: &Index,
    report: &Report,
    problems: &mut Vec<Problem>,
) {
    let declared = walked
        .definition
        .as_ref()
        .and_then(|object| object.origin.place().cloned());
    let mut add = |severity, messages: Vec<String>, place: Option<Place>, hints| {
        let place = place.or_else(|| declared.clone());
        problems.push(Problem {
            severity,
            kind: "Kustomization",
            id: id.clone(),
            messages,
            place,
            hints,
        });
    };
    if let Err(errors) = &walked.spec {
        for error in errors {
            add(
                Severity::Error,
                vec![error.to_string()],
                field_place(walked.definition.as_ref(), error),
                vec![],
            );
        }
    }
    if let Some(source) = &walked.unavailable {
        let hint = format!("`--source {}=DIR` gives its files", source.id);
        add(
            Severity::Error,
            vec![format!("{source} is not this repository")],
            None,
            vec![hint],
        );
    }
    for reference in &walked.missing {
        let (severity, message, hints) =
            missing(reference.kind, &id.namespace, &reference.name, index);
        add(severity, vec![message], None, hints);
    }
    if let Some(Outcome::Failed(failure)) =
        walked.unit.as_ref().and_then(|key| outcome(report, key))
    {
        let place = match failure.error().downcast_ref::<BuildError>() {
            Some(BuildError::Substitution { place, .. }) => place.clone(),
            _ => None,
        };
        add(Severity::Error, chain(failure.error()), place, vec![]);
    }
    let unset = walked.built.iter().flat_map(|built| &built.unset);
    for (place, variable) in unset.filter(|_| walked.missing.is_empty()) {
        let messages = vec![variable.message.clone(), format!("in `{}`", variable.line)];
        let hint = "give it a default (`${NAME:=value}`), or set it in `postBuild`".to_owned();
        add(Severity::Error, messages, Some(place.clone()), vec![hint]);
    }
}

fn release_problems(
    id: &NamespacedName,
    release: &RenderedRelease,
    index: &Index,
    report: &Report,
    problems: &mut Vec<Problem>,
) {
    let declared = release.definition.origin.place().cloned();
    let mut add = |severity, messages: Vec<String>, place: Option<Place>, hints| {
        let place = place.or_else(|| declared.clone());
        problems.push(Problem {
            severity,
            kind: "HelmRelease",
            id: id.clone(),
            messages,
            place,
            hints,
        });
    };
    if let Err(errors) = &release.spec {
        for error in errors {
            add(
                Severity::Error,
                vec![error.to_string()],
                field_place(Some(&release.definition), error),
                vec![],
            );
        }
    }
    for reference in &release.composed.missing {
        let (severity, message, hints) =
            missing(reference.kind, &id.namespace, &reference.name, index);
        add(severity, vec![message], None, hints);
    }
    for error in &release.composed.errors {
        add(Severity::Error, vec![error.to_string()], None, vec![]);
    }
    if let Some(error) = &release.chart_error {
        add(Severity::Error, chain(error), None, vec![]);
    }
    match release.unit.as_ref().and_then(|key| outcome(report, key)) {
        Some(Outcome::Failed(failure)) => {
            add(Severity::Error, chain(failure.error()), None, vec![]);
        }
        Some(Outcome::Skipped { because }) => {
            let root = outcome(report, because);
            let messages = match root {
                Some(Outcome::Failed(failure)) => chain(failure.error()),
                _ => vec![format!("`{because}` failed")],
            };
            add(Severity::Error, messages, None, vec![]);
        }
        _ => {}
    }
}

fn outcome<'a>(report: &'a Report, key: &portolan_engine::Key) -> Option<&'a Outcome> {
    report.get(key).map(|unit| &unit.outcome)
}

/// An error and its causes, one sentence each.
fn chain(error: &(dyn Error + 'static)) -> Vec<String> {
    let mut messages = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        messages.push(error.to_string());
        cause = error.source();
    }
    messages
}

/// A field's own line, in the file of the object that has it.
fn field_place(object: Option<&Object>, error: &FieldError) -> Option<Place> {
    let file = object?.origin.place()?.file.clone();
    (error.at.line > 0).then(|| Place::new(file, error.at))
}

/// What to say of data that nothing emits: a note when something in the repository makes it in the cluster.
fn missing(
    kind: DataKind,
    namespace: &str,
    name: &str,
    index: &Index,
) -> (Severity, String, Vec<String>) {
    let message = format!("missing {} {namespace}/{name}", kind.as_str());
    match producer(namespace, name, index) {
        Some(producer) => (
            Severity::Note,
            format!("{message}: {producer} makes it in the cluster"),
            vec![],
        ),
        None => {
            let hint = "mark the reference `optional: true` if it may be missing".to_owned();
            (Severity::Error, message, vec![hint])
        }
    }
}

/// An object that makes a Secret or ConfigMap of this name in the cluster.
fn producer(namespace: &str, name: &str, index: &Index) -> Option<String> {
    const PRODUCERS: [(&str, &str, &[&str]); 5] = [
        (
            "external-secrets.io",
            "ExternalSecret",
            &["spec", "target", "name"],
        ),
        (
            "bitnami.com",
            "SealedSecret",
            &["spec", "template", "metadata", "name"],
        ),
        ("cert-manager.io", "Certificate", &["spec", "secretName"]),
        ("objectbucket.io", "ObjectBucketClaim", &[]),
        ("onepassword.com", "OnePasswordItem", &[]),
    ];
    PRODUCERS.into_iter().find_map(|(group, kind, path)| {
        let makes = |object: &Object| {
            let target = object
                .node()
                .at_path(path)
                .and_then(Node::as_str)
                .unwrap_or(object.name());
            object.namespace() == namespace && target == name
        };
        let found = index
            .of_kind(group, kind)
            .find(|(_, object)| makes(object))?
            .1;
        Some(format!("{kind} {}/{}", found.namespace(), found.name()))
    })
}
