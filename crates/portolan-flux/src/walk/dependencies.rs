//! Checks `dependsOn`: whether everything named exists, and whether anything waits for itself.

use std::collections::{BTreeMap, BTreeSet};

use portolan_yaml::Position;

use crate::api::{Dependency, NamespacedName};

/// Something wrong with a dependency.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding<'a> {
    /// Who depends.
    pub(crate) of: &'a NamespacedName,
    /// On whom.
    pub(crate) on: &'a NamespacedName,
    /// Where that is written.
    pub(crate) at: Position,
    /// The way back to where it began; none when the other does not exist.
    pub(crate) circle: Option<Vec<&'a NamespacedName>>,
}

/// Finds dependencies on what does not exist, and each circle once.
pub(crate) fn check<'a>(
    objects: impl Iterator<Item = (&'a NamespacedName, &'a [Dependency])>,
) -> Vec<Finding<'a>> {
    let graph: BTreeMap<_, _> = objects.collect();
    let mut findings = Vec::new();
    let mut finished = BTreeSet::new();
    for (of, dependencies) in &graph {
        for dependency in *dependencies {
            if !graph.contains_key(&dependency.id) {
                findings.push(Finding {
                    of,
                    on: &dependency.id,
                    at: dependency.at,
                    circle: None,
                });
            }
        }
        follow(of, &graph, &mut finished, &mut findings);
    }
    findings
}

/// Follows dependencies depth first, without recursion: their chain may be as long as the repository is large.
fn follow<'a>(
    start: &'a NamespacedName,
    graph: &BTreeMap<&'a NamespacedName, &'a [Dependency]>,
    finished: &mut BTreeSet<&'a NamespacedName>,
    findings: &mut Vec<Finding<'a>>,
) {
    let mut way: Vec<(&NamespacedName, std::slice::Iter<'a, Dependency>)> = Vec::new();
    let enter = |id: &'a NamespacedName| {
        let dependencies = graph.get(id).copied().unwrap_or_default();
        (id, dependencies.iter())
    };
    if !finished.contains(start) {
        way.push(enter(start));
    }
    while let Some((of, rest)) = way.last_mut() {
        let of = *of;
        let Some(next) = rest.next() else {
            finished.insert(of);
            way.pop();
            continue;
        };
        if let Some(from) = way.iter().position(|(id, _)| **id == next.id) {
            let circle = way.iter().skip(from).map(|(id, _)| *id);
            let circle = circle.chain(std::iter::once(&next.id)).collect::<Vec<_>>();
            findings.push(circle_finding(circle, graph, next));
        } else if graph.contains_key(&next.id) && !finished.contains(&next.id) {
            way.push(enter(&next.id));
        }
    }
}

/// A circle is told of where it was entered.
fn circle_finding<'a>(
    circle: Vec<&'a NamespacedName>,
    graph: &BTreeMap<&'a NamespacedName, &'a [Dependency]>,
    last: &'a Dependency,
) -> Finding<'a> {
    let of = circle.first().copied().unwrap_or(&last.id);
    let on = circle.get(1).copied().unwrap_or(&last.id);
    let named = graph.get(of).copied().unwrap_or_default().iter();
    let at = named
        .filter(|dependency| dependency.id == *on)
        .map(|dependency| dependency.at)
        .next()
        .unwrap_or(last.at);
    Finding {
        of,
        on,
        at,
        circle: Some(circle),
    }
}
