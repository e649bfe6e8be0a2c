//! The value that a chart's `values.schema.json` refuses: its path comes from the schema's own message, its place
//! from the release or the object that `valuesFrom` names.

use portolan_object::{Object, Place};
use portolan_vfs::Vfs;
use portolan_yaml::{Dialect, Node};

use crate::problem::written::written_in_text;
use crate::release::ReleaseError;
use crate::render::RenderedRelease;
use crate::walk::index::Index;

/// The keys and item numbers that lead to a value.
type Steps = Vec<String>;

/// The first value that a schema refused and that is written in the release itself.
pub(crate) fn in_release<'a>(error: &ReleaseError, definition: &'a Object) -> Option<&'a Node> {
    let values = definition.node().at_path(&["spec", "values"])?;
    refused(error)
        .iter()
        .filter(|steps| !steps.is_empty())
        .find_map(|steps| follow(values, steps))
}

/// Where the first value that a schema refused is written in what the release refers to.
pub(crate) fn in_references(
    error: &ReleaseError,
    release: &RenderedRelease,
    index: &Index,
    files: &dyn Vfs,
) -> Option<Place> {
    let spec = release.spec.as_ref().ok()?;
    let refused = refused(error);
    let mut references = spec.values_from.iter().rev();
    references.find_map(|reference| {
        let id = reference.data_id(&spec.id.namespace);
        let data = index.data(&id)?;
        let text = std::str::from_utf8(data.get(reference.key.as_str())?).ok()?;
        if reference.target_path.is_some() {
            return None;
        }
        let values = portolan_yaml::parse_one(text.to_owned(), Dialect::Helm).ok()?;
        let mut refused = refused.iter().filter(|steps| !steps.is_empty());
        let node = refused.find_map(|steps| follow(&values, steps))?;
        let (_, object) = index.named("", reference.kind.as_str(), &id.1)?;
        written_in_text(object, &reference.key, text, node.at, files)
    })
}

/// The values that a schema refused, as its messages name them.
fn refused(error: &ReleaseError) -> Vec<Steps> {
    let ReleaseError::Template { chart, source, .. } = error else {
        return Vec::new();
    };
    match source.as_ref() {
        portolan_helm::Error::Schema(report) => steps_of(&report.0, chart),
        _ => Vec::new(),
    }
}

/// A report has the name of each chart on a line, and below it a line for each value.
fn steps_of(report: &str, chart: &str) -> Vec<Steps> {
    let mut below: Option<&str> = None;
    let mut found = Vec::new();
    for line in report.lines() {
        match line.strip_prefix("- ") {
            Some(message) => found.extend(steps_in(message).map(|steps| {
                let below = below.map(str::to_owned);
                below.into_iter().chain(steps).collect()
            })),
            None => below = line.strip_suffix(':').filter(|name| *name != chart),
        }
    }
    found
}

/// `at '/a/0': …` as Helm 4 has it, `a.0: …` as Helm 3 has it.
fn steps_in(message: &str) -> Option<Steps> {
    if let Some(rest) = message.strip_prefix("at '") {
        let (pointer, _) = rest.split_once('\'')?;
        let steps = pointer.split('/').skip(1);
        let unescaped = steps.map(|step| step.replace("~1", "/").replace("~0", "~"));
        return Some(unescaped.collect());
    }
    let (path, _) = message.split_once(": ")?;
    Some(match path {
        "(root)" => Vec::new(),
        path => path.split('.').map(str::to_owned).collect(),
    })
}

fn follow<'a>(values: &'a Node, steps: &[String]) -> Option<&'a Node> {
    steps.iter().try_fold(values, |node, step| {
        node.get(step).or_else(|| {
            let at: usize = step.parse().ok()?;
            node.as_list()?.iter().nth(at)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_both_validators_name_their_values() {
        let report = "web:\n- at '/a~1b/0': got string, want integer\nbase:\n- at '/c': no\n";
        assert_eq!(
            steps_of(report, "web"),
            [vec!["a/b", "0"], vec!["base", "c"]]
        );
        let report = "web:\n- a.b: Invalid type. Expected: integer, given: string\n- (root): x is required\n";
        assert_eq!(steps_of(report, "web"), [vec!["a", "b"], vec![]]);
    }
}
