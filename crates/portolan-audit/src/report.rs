//! The report of an audit, and its formats.

use std::fmt::Write as _;

use portolan_object::{KubeVersion, Rule, counted};
use portolan_report::{Case, Grid, Outcome, Run, Suite, Tool, github, junit, sarif};
use serde::{Deserialize, Serialize};

use crate::finding::Finding;
use crate::level::Level;
use crate::release::Release;
use crate::table::NEWEST;
use crate::target::Target;

/// Everything an audit has to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What was found.
    pub findings: Vec<Finding>,
    /// How much was checked.
    pub checked: Counts,
    /// What could not be looked at: `HelmRelease apps/web`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_checked: Vec<String>,
    /// The release of Kubernetes that objects were checked for.
    pub target: KubeVersion,
    /// The newest release of Kubernetes that the table knows.
    pub newest_known: KubeVersion,
    /// What stops working at each release on the way, when a way was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<Hop>,
    /// What is odd about the audit itself.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// How much was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Objects.
    pub objects: usize,
    /// Files read.
    pub files: usize,
    /// Charts rendered.
    pub charts: usize,
    /// Helm releases decoded.
    pub releases: usize,
}

/// One release on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The release.
    pub release: KubeVersion,
    /// The findings, by id, that it is the first to refuse.
    pub removed: Vec<String>,
}

/// A format that programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The whole report.
    Json,
    /// The same as YAML.
    Yaml,
    /// One row a finding.
    Csv,
    /// A table for a comment.
    Markdown,
    /// For code scanning.
    Sarif,
    /// For test reports.
    Junit,
    /// Annotations of GitHub Actions.
    Github,
}

/// The report as programs get it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    report: &'a Report,
}

impl Report {
    /// Returns the report with what names its form, to be serialised for programs.
    pub fn answer(&self) -> impl Serialize {
        Answer {
            api_version: portolan_object::API_VERSION,
            kind: "AuditReport",
            report: self,
        }
    }

    /// A report of findings that are already merged.
    pub fn new(findings: Vec<Finding>, checked: Counts, target: &Target) -> Self {
        let hops = match target.from {
            Some(_) => hops(&findings, target),
            None => Vec::new(),
        };
        Self {
            findings,
            checked,
            not_checked: Vec::new(),
            target: target.kubernetes,
            newest_known: NEWEST,
            hops,
            warnings: target.warning().into_iter().collect(),
        }
    }

    /// The findings that nobody has accepted.
    pub fn open(&self) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(|finding| finding.accepted.is_none())
    }

    /// The worst level among the open findings.
    pub fn worst(&self) -> Option<Level> {
        self.open().map(|finding| finding.level).max()
    }

    /// The report in a format; `version` is this program's.
    pub fn text(&self, format: Format, version: &str) -> String {
        match format {
            Format::Json => json(self),
            Format::Yaml => yaml(self),
            Format::Csv => self.grid().csv(),
            Format::Markdown => self.markdown(),
            Format::Sarif => {
                let name = "portolan audit";
                let run = Run {
                    tool: Tool { name, version },
                    rules: &rules(),
                    names_clusters: false,
                    properties: serde_json::Value::Null,
                };
                sarif(&run, &self.plain_findings())
            }
            Format::Junit => {
                let name = "portolan audit".to_owned();
                let cases = self.cases();
                let properties = vec![("kubernetes".to_owned(), self.target.to_string())];
                junit(&[Suite {
                    name,
                    properties,
                    cases,
                }])
            }
            Format::Github => github(&self.plain_findings()),
        }
    }

    /// What was checked and found, in a line.
    pub fn summary(&self) -> String {
        let open = self.open().count();
        let accepted = self.findings.len() - open;
        let mut text = counted(open, "finding");
        if accepted > 0 {
            let _ = write!(text, " and {accepted} accepted");
        }
        let Counts {
            objects,
            files,
            charts,
            releases,
        } = self.checked;
        let places = [(files, "file"), (charts, "chart"), (releases, "release")];
        let places: Vec<String> = places
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| counted(count, word))
            .collect();
        let _ = write!(text, ", {}", counted(objects, "object"));
        if !places.is_empty() {
            let _ = write!(text, " in {}", places.join(" and "));
        }
        let _ = write!(
            text,
            " checked for Kubernetes {}; the table knows up to {NEWEST}",
            self.target
        );
        if !self.not_checked.is_empty() {
            let count = self.not_checked.len();
            let _ = write!(
                text,
                "; not checked because they could not be rendered: {count}"
            );
        }
        text
    }

    fn markdown(&self) -> String {
        let mut grid = self.grid();
        grid.rows
            .retain(|row| row.last().is_none_or(String::is_empty));
        format!("{}\n{}\n", grid.markdown(), self.summary())
    }

    fn grid(&self) -> Grid {
        let release = |release: Option<Release>| {
            release
                .map(|release| release.to_string())
                .unwrap_or_default()
        };
        let row = |finding: &Finding| {
            let subject = &finding.subject;
            vec![
                finding.level.to_string(),
                finding.place(),
                subject.api_version.clone(),
                subject.kind.clone(),
                subject.namespace.clone(),
                subject.name.clone(),
                release(finding.deprecated_in),
                release(finding.removed_in),
                finding.replacement.clone().unwrap_or_default(),
                finding.message.clone(),
                finding.accepted.clone().unwrap_or_default(),
            ]
        };
        Grid {
            titles: vec![
                "level",
                "where",
                "apiVersion",
                "kind",
                "namespace",
                "name",
                "deprecatedIn",
                "removedIn",
                "replacement",
                "message",
                "accepted",
            ],
            rows: self.findings.iter().map(row).collect(),
        }
    }

    fn plain_findings(&self) -> Vec<portolan_object::Finding> {
        self.findings.iter().map(Finding::plain).collect()
    }

    fn cases(&self) -> Vec<Case> {
        let name = |finding: &Finding| {
            let name = format!(
                "{} {}",
                finding.plain().subject(),
                finding.subject.api_version
            );
            match name.trim() {
                "" => finding.level.to_string(),
                name => name.to_owned(),
            }
        };
        let case = |finding: &Finding| Case {
            name: name(finding),
            class: finding.place(),
            outcome: match &finding.accepted {
                Some(reason) => Outcome::Skipped(reason.clone()),
                None => Outcome::Failed {
                    kind: finding.level.to_string(),
                    message: finding.advice(),
                },
            },
        };
        let mut cases: Vec<Case> = self.findings.iter().map(case).collect();
        // A report without a case counts as no report.
        cases.push(Case {
            name: self.summary(),
            class: "portolan audit".to_owned(),
            outcome: Outcome::Passed,
        });
        cases
    }
}

fn hops(findings: &[Finding], target: &Target) -> Vec<Hop> {
    let at = |release: KubeVersion| {
        let gone = |finding: &&Finding| {
            finding.level == Level::Removed && finding.removed_in == Some(release.into())
        };
        findings
            .iter()
            .filter(gone)
            .map(|finding| finding.id.clone())
            .collect()
    };
    let hop = |release| Hop {
        release,
        removed: at(release),
    };
    target.hops().into_iter().map(hop).collect()
}

fn rules() -> Vec<&'static Rule> {
    Level::ALL.into_iter().map(Level::rule).collect()
}

fn json(report: &Report) -> String {
    // Serialising plain structs to a string cannot fail.
    let mut text = serde_json::to_string_pretty(&report.answer()).unwrap_or_default();
    text.push('\n');
    text
}

fn yaml(report: &Report) -> String {
    let text = serde_json::to_string(&report.answer()).unwrap_or_default();
    let node = portolan_yaml::from_json(&text).ok();
    node.and_then(|node| portolan_yaml::write_v2(&node).ok())
        .unwrap_or_default()
}
