//! The checker: takes an object and gives findings, in the same way for files, charts, releases and live objects.
//!
//! ```text
//! Node ──▶ api version ─┐
//!      ──▶ fields       ├─▶ findings, each with the evidence given
//!      ──▶ references   │
//!      ──▶ stored versions ┘
//! ```

mod api;
mod field;
mod reference;
mod stored_version;

use portolan_object::FieldPath;
use portolan_yaml::{Node, Position};
use sha2::{Digest, Sha256};

use crate::finding::{Evidence, Finding, Subject, short_hex};
use crate::fix;
use crate::level::Level;
use crate::lifecycle::{Api, KUBERNETES, Lifecycle, split};
use crate::release::Release;
use crate::table::{self, Table};
use crate::target::Target;

/// Checks objects for a target.
#[derive(Debug, Clone, Default)]
pub struct Checker {
    /// What is known about APIs.
    pub table: Table,
    /// What the objects are to run on.
    pub target: Target,
}

/// Where an object stands, as its findings tell it.
#[derive(Debug, Clone, Default)]
pub struct Site {
    /// The file; `None` for what is not in one.
    pub file: Option<String>,
    /// What shows the object.
    pub evidence: Vec<Evidence>,
    /// The namespace of objects that do not say theirs.
    pub namespace: String,
}

/// Text fields of an object that every check needs.
pub(crate) struct Subjected<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) node: &'a Node,
    pub(crate) subject: Subject,
    pub(crate) site: &'a Site,
}

/// A document's API version and kind, when it is an object at all.
pub fn head(node: &Node) -> Option<(&str, &str)> {
    let text = |key: &str| {
        node.get(key)
            .and_then(Node::as_str)
            .filter(|text| !text.is_empty())
    };
    Some((text("apiVersion")?, text("kind")?))
}

impl Checker {
    /// A checker for a target, with the compiled-in table.
    pub fn new(target: Target) -> Self {
        Self {
            table: Table::default(),
            target,
        }
    }

    /// Tells checkers apart: two with the same fingerprint find the same things in an object.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for row in self.table.rows() {
            hash.update(format!("{row:?}"));
        }
        hash.update(format!("{:?}", (table::deprecations(), &self.target)));
        short_hex(&hash.finalize())
    }

    /// Everything that is wrong with an object; nothing when it is none.
    pub fn check(&self, node: &Node, site: &Site) -> Vec<Finding> {
        let Some((api_version, kind)) = head(node) else {
            return Vec::new();
        };
        let (group, version) = split(api_version);
        let object = Subjected {
            group,
            version,
            kind,
            node,
            subject: self.subject(node, api_version, kind, site),
            site,
        };
        let mut findings = Vec::new();
        findings.extend(self.api(&object));
        self.fields(&object, &mut findings);
        self.references(&object, &mut findings);
        self.stored_versions(&object, &mut findings);
        findings
    }

    /// What an API version means for an object of which no more is known.
    pub fn check_api(&self, subject: Subject, site: &Site) -> Option<Finding> {
        let null = Node::null();
        let api_version = subject.api_version.clone();
        let kind = subject.kind.clone();
        let (group, version) = split(&api_version);
        self.api(&Subjected {
            group,
            version,
            kind: &kind,
            node: &null,
            subject,
            site,
        })
    }

    /// What an API server means by calling an API deprecated, and removed from a release on. The table has the last
    /// word where it knows the API; others, of definitions mostly, are told as the server tells them.
    pub fn check_requested(
        &self,
        subject: Subject,
        removed: Option<Release>,
        site: &Site,
    ) -> Option<Finding> {
        let (group, version) = split(&subject.api_version);
        if self.table.get(group, version, &subject.kind).is_some() {
            return self.check_api(subject, site);
        }
        let null = Node::null();
        let object = Subjected {
            group,
            version,
            kind: &subject.kind,
            node: &null,
            subject: subject.clone(),
            site,
        };
        let level = match removed {
            Some(gone) if gone <= self.target.release() => Level::Removed,
            Some(_) => Level::RemovedNext,
            None => Level::Deprecated,
        };
        let message = format!("the API server calls {} deprecated", subject.api_version);
        let mut finding = object.finding(level, null.at, message);
        finding.removed_in = removed;
        Some(finding)
    }

    fn subject(&self, node: &Node, api_version: &str, kind: &str, site: &Site) -> Subject {
        let metadata = node.get("metadata");
        let text = |key: &str| {
            let value = metadata
                .and_then(|metadata| metadata.get(key))
                .and_then(Node::as_str);
            value.unwrap_or_default().to_owned()
        };
        let mut namespace = text("namespace");
        if namespace.is_empty() && !site.namespace.is_empty() {
            let (group, version) = split(api_version);
            let row = self.table.get(group, version, kind);
            if row.and_then(|row| row.namespaced).unwrap_or(true) {
                namespace.clone_from(&site.namespace);
            }
        }
        let mut name = text("name");
        if name.is_empty() {
            name = text("generateName");
        }
        Subject {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace,
            name,
        }
    }
}

impl Subjected<'_> {
    /// A finding about this object at a place in it.
    pub(crate) fn finding(&self, level: Level, at: Position, message: String) -> Finding {
        let file = self.site.file.clone();
        let line = (at.line > 0 && file.is_some()).then_some(at.line);
        let mut evidence = self.site.evidence.clone();
        if let (Some(file), Some(line)) = (&file, line) {
            let seen = Evidence::File {
                file: file.clone(),
                line,
            };
            evidence.insert(0, seen);
        }
        Finding {
            id: String::new(),
            level,
            file,
            line,
            column: line.map(|_| at.column),
            subject: self.subject.clone(),
            component: KUBERNETES.to_owned(),
            deprecated_in: None,
            removed_in: None,
            replacement: None,
            path: None,
            message,
            changes: Vec::new(),
            migrate_between: None,
            fixable: false,
            accepted: None,
            evidence,
        }
        .with_id()
    }

    /// Where the API version is written.
    pub(crate) fn api_version_at(&self) -> Position {
        FieldPath::top("apiVersion").written_in(self.node).at
    }
}

/// How a row is to be told in a finding: releases, replacement and what changes.
pub(crate) fn explain(finding: &mut Finding, row: &Lifecycle, replacement: Option<Api>) {
    finding.component = row.component.to_string();
    finding.deprecated_in = row.deprecated;
    finding.removed_in = row.removed;
    finding.replacement = replacement.map(|api| {
        if api.kind == row.api.kind {
            api.api_version()
        } else {
            api.to_string()
        }
    });
}

/// The releases that serve both an API and its replacement.
pub(crate) fn overlap(row: &Lifecycle, replacement: &Lifecycle) -> Option<(Release, Release)> {
    let start = replacement.introduced?.max(row.introduced?);
    let end = row.removed?.before()?;
    (start <= end).then_some((start, end))
}

/// Whether the change can be written by `--fix`.
pub(crate) fn is_fixable(row: &Lifecycle, node: &Node) -> bool {
    row.replacement
        .as_ref()
        .is_some_and(|replacement| fix::is_mechanical(&row.api, replacement, node))
}
