//! Checks objects against their types.

use std::collections::HashSet;
use std::fmt::Write as _;

use portolan_object::{KubeVersion, Object, Rule};
use portolan_schema::{Catalogue, Problem, Verdict, Violation};

use crate::api::Apis;
use crate::finding::{Found, Subject};
use crate::locate::is_unknown;
use crate::places::Places;
use crate::rule::{
    BROKEN_RULE, INVALID_VALUE, MISSING_FIELD, NOT_JUDGED, NOT_SERVED, NOT_SERVED_YET,
    UNKNOWN_FIELD, WRONG_TYPE,
};

pub(crate) fn check(
    subject: &Subject<'_>,
    index: usize,
    (catalogue, apis): (&Catalogue, &Apis),
    places: &Places<'_>,
    findings: &mut Vec<Found>,
) {
    let object = subject.object;
    match catalogue.check(object) {
        Verdict::Unknown => {}
        Verdict::NotServed { since } => {
            let since = since.or_else(|| apis.introduced(object));
            findings.push(not_served(object, index, catalogue, since));
        }
        Verdict::Checked(violations) => {
            findings.extend(
                violations
                    .iter()
                    .filter(|violation| !is_unknown(subject, &violation.path))
                    .map(|violation| finding(violation, subject, index, places)),
            );
        }
    }
}

/// The finding about a kind that the release does not serve. If nobody chose the release and a later one serves the
/// kind, the cluster may well be of that one.
fn not_served(
    object: &Object,
    index: usize,
    catalogue: &Catalogue,
    since: Option<KubeVersion>,
) -> Found {
    let release = catalogue.asked();
    let mut message = format!(
        "Kubernetes {release} does not serve {} {}",
        object.gvk().api_version(),
        object.kind()
    );
    if let Some(since) = since {
        let _ = write!(message, "; {since} does");
    }
    Found {
        rule: match since {
            Some(_) if catalogue.is_assumed() => &NOT_SERVED_YET,
            _ => &NOT_SERVED,
        },
        subject: index,
        message,
        place: object.place(),
    }
}

/// Keeps the first finding of each rule that could not be judged: it is the same for every object of a kind.
pub(crate) fn tell_unjudged_once(subjects: &[Subject<'_>], findings: &mut Vec<Found>) {
    let mut told = HashSet::new();
    findings.retain(|finding| {
        let gvk = subjects.get(finding.subject).map(|subject| &subject.id.gvk);
        // The path may differ, the rule and the reason do not.
        let words = finding
            .message
            .split_once("rule `")
            .map(|(_, words)| words.to_owned());
        finding.rule != &NOT_JUDGED || words.is_none() || told.insert((gvk, words))
    });
}

fn finding(
    violation: &Violation,
    subject: &Subject<'_>,
    index: usize,
    places: &Places<'_>,
) -> Found {
    Found {
        rule: rule_of(&violation.problem),
        subject: index,
        message: violation.to_string(),
        place: places.of(subject, &violation.path),
    }
}

fn rule_of(problem: &Problem) -> &'static Rule {
    match problem {
        Problem::UnknownField { .. } => &UNKNOWN_FIELD,
        Problem::MissingField { .. } => &MISSING_FIELD,
        Problem::WrongType { .. } => &WRONG_TYPE,
        Problem::Invalid { .. } => &INVALID_VALUE,
        Problem::Rule { .. } => &BROKEN_RULE,
        Problem::NotJudged { .. } => &NOT_JUDGED,
    }
}
