//! Groups findings: the same finding in several clusters, and several findings with one cause.
//!
//! ```text
//! findings of every cluster ──merge_clusters──▶ one each, with its clusters ──group──▶ one Group for each cause
//! ```

use std::collections::HashMap;

use portolan_object::{Finding, ObjectId, Owner, Place, Severity};
use portolan_yaml::Text;

/// Findings of one cause, in the order they were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The one to show.
    pub first: Finding,
    /// The others; often none.
    pub others: Vec<Finding>,
}

/// Joins findings that differ in nothing but their cluster; each has all of its clusters then.
pub fn merge_clusters(findings: Vec<Finding>) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::new();
    let mut known: HashMap<Sameness, usize> = HashMap::new();
    for finding in findings {
        match known.get(&Sameness::of(&finding)) {
            Some(&at) => {
                let clusters = &mut merged[at].clusters;
                let new = finding.clusters.into_iter();
                let new: Vec<Text> = new.filter(|name| !clusters.contains(name)).collect();
                clusters.extend(new);
            }
            None => {
                known.insert(Sameness::of(&finding), merged.len());
                merged.push(finding);
            }
        }
    }
    merged
}

/// What makes two findings the same but for their cluster.
#[derive(PartialEq, Eq, Hash)]
struct Sameness {
    rule: &'static str,
    severity: Severity,
    owner: Option<Owner>,
    object: Option<ObjectId>,
    field: Option<String>,
    messages: Vec<String>,
    place: Option<Place>,
}

impl Sameness {
    fn of(finding: &Finding) -> Self {
        let owner = finding.owner.clone();
        Self {
            rule: finding.rule.id,
            severity: finding.severity,
            owner: owner.map(|owner| owner.in_cluster("")),
            object: finding.object.clone(),
            field: finding.field.clone(),
            messages: finding.messages.clone(),
            place: finding.place.clone(),
        }
    }
}

/// Groups findings by rule and cause. Those without a cause are of one cause if one line says the same of all of them.
pub fn group(findings: Vec<Finding>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: HashMap<(&'static str, Severity, String), usize> = HashMap::new();
    for finding in findings {
        let Some(cause) = cause_key(&finding) else {
            groups.push(Group::new(finding));
            continue;
        };
        let key = (finding.rule.id, finding.severity, cause);
        match known.get(&key) {
            Some(&at) => groups[at].others.push(finding),
            None => {
                known.insert(key, groups.len());
                groups.push(Group::new(finding));
            }
        }
    }
    groups
}

/// What findings of one cause have in common, as text; `None` if a finding stands for itself.
pub fn cause_key(finding: &Finding) -> Option<String> {
    if let Some(cause) = &finding.cause {
        return Some(cause.to_string());
    }
    let place = finding.place.as_ref()?;
    let file = place.file.trim_start_matches('/');
    let (line, column) = (place.at.line, place.at.column);
    (line > 0).then(|| format!("{file}:{line}:{column}: {}", finding.message()))
}

impl Group {
    fn new(first: Finding) -> Self {
        Self {
            first,
            others: Vec::new(),
        }
    }

    /// What is wrong, in a line: of one finding what it says, of several how many there are and why.
    pub fn heading(&self) -> String {
        let first = &self.first;
        if self.others.is_empty() {
            return sentence(first);
        }
        let count = self.others.len() + 1;
        match &first.cause {
            Some(cause) => format!("{count} {cause} (first: {})", first.subject()),
            None => format!("{} (and {} more)", sentence(first), self.others.len()),
        }
    }

    /// The advice, each once.
    pub fn hints(&self) -> Vec<&str> {
        // Advice that names one of them is of no use for the others.
        let all = std::iter::once(&self.first).chain(&self.others);
        let is_common = |hint: &&String| all.clone().all(|finding| finding.hints.contains(hint));
        let common = self.first.hints.iter().filter(is_common);
        common.map(String::as_str).collect()
    }
}

/// `Deployment shop/web (Kustomization flux-system/apps): what is wrong: why`
fn sentence(finding: &Finding) -> String {
    let owner = match (&finding.object, &finding.owner) {
        (Some(_), Some(owner)) => format!(" ({owner})"),
        _ => String::new(),
    };
    match finding.subject().as_str() {
        // A finding about a whole cluster has no subject.
        "" => finding.message(),
        subject => format!("{subject}{owner}: {}", finding.message()),
    }
}

#[cfg(test)]
mod tests {
    use portolan_object::{Cause, OwnerKind, Rule};

    use super::*;

    static RULE: Rule = Rule {
        id: "chart/unavailable",
        severity: Severity::Error,
        summary: "",
        help: "",
    };

    fn unavailable(name: &str, host: &str) -> Finding {
        Finding {
            owner: Some(Owner::new(OwnerKind::Release, "apps", name.to_owned())),
            cause: Some(Cause {
                many: "charts cannot be fetched",
                why: format!("no connection to {host}"),
            }),
            hints: vec![
                "check the network".to_owned(),
                format!("`--source {name}=DIR`"),
            ],
            ..Finding::new(&RULE, format!("cannot fetch chart `{name}`"))
        }
    }

    #[test]
    fn one_cause_is_one_group_with_the_advice_that_fits_all() {
        let findings = vec![
            unavailable("a", "ghcr.io"),
            unavailable("b", "quay.io"),
            unavailable("c", "ghcr.io"),
        ];
        let groups = group(findings);
        let headings: Vec<String> = groups.iter().map(Group::heading).collect();
        assert_eq!(
            headings,
            [
                "2 charts cannot be fetched: no connection to ghcr.io (first: HelmRelease apps/a)",
                "HelmRelease apps/b: cannot fetch chart `b`",
            ]
        );
        assert_eq!(groups[0].hints(), ["check the network"]);
        assert_eq!(groups[1].hints().len(), 2);
    }

    #[test]
    fn a_finding_of_two_clusters_is_one_with_both() {
        let seen = |cluster: &str| unavailable("a", "ghcr.io").in_cluster(&cluster.into());
        let merged = merge_clusters(vec![seen("production"), seen("staging"), seen("staging")]);
        assert_eq!(merged.len(), 1);
        let clusters: Vec<&str> = merged[0].clusters.iter().map(Text::as_str).collect();
        assert_eq!(clusters, ["production", "staging"]);
    }

    #[test]
    fn one_line_that_causes_several_findings_is_one_group() {
        let at = |name: &str, line| Finding {
            cause: None,
            place: Some(Place::line("/base/web.yaml", line)),
            messages: vec!["unknown field".to_owned()],
            ..unavailable(name, "")
        };
        let groups = group(vec![at("a", 3), at("b", 3), at("c", 4)]);
        let headings: Vec<String> = groups.iter().map(Group::heading).collect();
        assert_eq!(
            headings,
            [
                "HelmRelease apps/a: unknown field (and 1 more)",
                "HelmRelease apps/c: unknown field",
            ]
        );
    }
}
