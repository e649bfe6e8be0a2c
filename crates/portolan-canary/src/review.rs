//! Checks rollouts in files or in a rendered repository against the CRD and against the advice of `lint`.

use portolan_object::{
    FieldPath, Finding, KubeVersion, Object, ObjectId, Origin, Place, Rule, Severity,
};
use portolan_rollout::{GROUP, KIND, analysis_crds_yaml, crd_yaml, peak_replicas};
use portolan_schema::{Catalogue, Verdict};
use portolan_yaml::{Dialect, Errors, Node, parse_bytes, parse_one};

use crate::lint::lint;
use crate::rollout::spec_of;

/// What was found in some files.
#[derive(Debug, Default)]
pub struct Review {
    /// What is wrong, in order of the files.
    pub findings: Vec<Finding>,
    /// Each rollout with the most pods that it has at once; `None` if its spec is not understood.
    pub rollouts: Vec<(ObjectId, Option<u32>)>,
}

static REFUSED: Rule = Rule {
    id: "rollout/refused",
    severity: Severity::Error,
    summary: "the definition refuses the object",
    help: "An API server would not take it; the message says why. `portolan crds` prints the definition.",
};

/// Returns the definitions of the kinds.
pub fn definitions() -> Vec<Node> {
    let all = std::iter::once(crd_yaml()).chain(analysis_crds_yaml());
    all.filter_map(|text| parse_one(text, Dialect::Helm).ok())
        .collect()
}

/// Looks at every rollout and analysis in some files, each with its name and content. An error names the file that cannot
/// be read.
pub fn review(files: &[(String, Vec<u8>)]) -> Result<Review, (String, Errors)> {
    let mut read: Vec<(&str, Object)> = Vec::new();
    for (name, bytes) in files {
        let documents =
            parse_bytes(bytes, Dialect::Kustomize).map_err(|errors| (name.clone(), errors))?;
        let objects = documents
            .into_iter()
            .filter_map(|node| Object::new(node, Origin::default()).ok());
        read.extend(objects.map(|object| (name.as_str(), object)));
    }
    let objects: Vec<_> = read
        .iter()
        .map(|(_, object)| (object.id().clone(), object))
        .collect();
    Ok(review_objects(&objects, |index, field| {
        let (file, object) = &read[index];
        let at = FieldPath::parse(field).written_in(object.node()).at;
        Some(Place::new((*file).to_owned(), at))
    }))
}

/// Looks at every rollout and analysis among the objects of one cluster, each with what names it there. `place` tells
/// where a field of the object with a number stands.
pub fn review_objects(
    objects: &[(ObjectId, &Object)],
    place: impl Fn(usize, &str) -> Option<Place>,
) -> Review {
    let mut catalogue = Catalogue::of(KubeVersion::DEFAULT);
    for definition in definitions() {
        catalogue.define(&definition);
    }
    let mut review = Review::default();
    for (index, (id, object)) in objects.iter().enumerate() {
        if object.gvk().group.as_str() != GROUP {
            continue;
        }
        let mut tell = |rule, message: String, field: String| {
            review.findings.push(Finding {
                object: Some(id.clone()),
                place: place(index, &field),
                field: Some(field),
                ..Finding::new(rule, message)
            });
        };
        if let Verdict::Checked(violations) = catalogue.check(object) {
            for violation in violations
                .iter()
                .filter(|violation| violation.problem.is_refused())
            {
                tell(&REFUSED, violation.to_string(), violation.path.to_string());
            }
        }
        for advice in lint(object, objects.iter().map(|(_, other)| *other)) {
            tell(
                advice.rule,
                format!("{}: {}", advice.field, advice.message),
                advice.field,
            );
        }
        if object.kind() == KIND {
            let spec = spec_of(object.node());
            let peak = spec.ok().map(|spec| peak_replicas(&spec));
            review.rollouts.push((id.clone(), peak));
        }
    }
    review
}
