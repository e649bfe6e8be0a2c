//! CustomResourceDefinitions: their name and the version that objects are stored in.

use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};

pub(crate) fn check(root: &Spot<'_>, out: &mut Refusals) {
    let (Some(metadata), Some(spec)) = (root.field("metadata"), root.field("spec")) else {
        return;
    };
    named_for_its_kind(&metadata, &spec, out);
    // Definitions of the first generation say their versions otherwise.
    if root.text("apiVersion") != Some("apiextensions.k8s.io/v1") {
        return;
    }
    out.one_of(&spec, "scope", &["Cluster", "Namespaced"]);
    let stored = spec
        .items("versions")
        .filter(|version| version.is_true("storage"));
    let stored = stored.count();
    if let Some(versions) = spec.field("versions")
        && stored != 1
    {
        let message = format!("exactly one version must be stored, not {stored}");
        out.add(Fault::Value, &versions, message);
    }
    out.distinct(&spec, "versions", "name");
}

fn named_for_its_kind(metadata: &Spot<'_>, spec: &Spot<'_>, out: &mut Refusals) {
    let plural = spec
        .field("names")
        .and_then(|names| names.text("plural").map(str::to_owned));
    let (Some(name), Some(plural), Some(group)) =
        (metadata.field("name"), plural, spec.text("group"))
    else {
        return;
    };
    let expected = format!("{plural}.{group}");
    if name.node.as_str() != Some(&expected) {
        out.add(Fault::Name, &name, format!("must be `{expected}`"));
    }
}
