//! The lifecycle table: the compiled-in rows, and a user's rules, which are looked up first.
//!
//! ```text
//! data/*.txt ──xtask gen audit-table──▶ table/rows.rs ─┐
//! rules file ──────────────────────────────────────────┴─▶ Table ──▶ row of an API
//! ```

mod rows;

use std::collections::BTreeSet;

use portolan_object::KubeVersion;

use crate::deprecation::Deprecation;
use crate::lifecycle::{Api, Lifecycle, Stage};
use crate::migration::Migration;
use crate::release::Release;

/// The newest release of Kubernetes that the table knows.
pub const NEWEST: KubeVersion = rows::NEWEST;

/// Lifecycles by group, kind and version.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// A user's rows, sorted; they win over those compiled in.
    added: Vec<Lifecycle>,
}

impl Table {
    /// The compiled-in table with rows that add to it or stand before its own.
    pub fn with(mut added: Vec<Lifecycle>) -> Self {
        // Of two rules for the same API the later one counts.
        added.reverse();
        added.sort_by(|a, b| a.api.key().cmp(&b.api.key()));
        added.dedup_by(|later, earlier| later.api == earlier.api);
        Self { added }
    }

    /// The row of an API.
    pub fn get(&self, group: &str, version: &str, kind: &str) -> Option<&Lifecycle> {
        let key = (group, kind, version);
        find(&self.added, key).or_else(|| find(rows::LIFECYCLES, key))
    }

    /// The row of an API.
    pub fn row(&self, api: &Api) -> Option<&Lifecycle> {
        self.get(&api.group, &api.version, &api.kind)
    }

    /// Every row in order, those of rules in place of those they override.
    pub fn rows(&self) -> impl Iterator<Item = &Lifecycle> {
        let kept = |row: &&Lifecycle| find(&self.added, row.api.key()).is_none();
        self.added
            .iter()
            .chain(rows::LIFECYCLES.iter().filter(kept))
    }

    /// The components that rows speak of, in order.
    pub fn components(&self) -> BTreeSet<&str> {
        self.rows().map(|row| &*row.component).collect()
    }

    /// The versions of a kind that are known.
    pub fn versions<'a>(&'a self, group: &str, kind: &str) -> impl Iterator<Item = &'a Lifecycle> {
        let of_kind = move |rows: &'a [Lifecycle]| {
            let start =
                rows.partition_point(|row| (&*row.api.group, &*row.api.kind) < (group, kind));
            rows.iter()
                .skip(start)
                .take_while(move |row| row.api.group == group && row.api.kind == kind)
        };
        of_kind(&self.added).chain(of_kind(rows::LIFECYCLES))
    }

    /// The rows of a resource of a group, whatever the version.
    pub fn resource<'a>(
        &'a self,
        group: &str,
        resource: &str,
    ) -> impl Iterator<Item = &'a Lifecycle> {
        let of_group = move |rows: &'a [Lifecycle]| {
            let start = rows.partition_point(|row| *row.api.group < *group);
            rows.iter()
                .skip(start)
                .take_while(move |row| row.api.group == group)
        };
        let rows = of_group(&self.added).chain(of_group(rows::LIFECYCLES));
        rows.filter(move |row| row.resource == resource)
    }

    /// The end of a chain of replacements, for a release: the first API on it that the release serves and does not
    /// deprecate, else the last one.
    pub fn replacement_in(&self, row: &Lifecycle, release: Release) -> Option<Api> {
        let mut next = row.replacement.clone()?;
        // Chains are short; the bound is for rules that replace in a circle.
        for _ in 0..8 {
            let Some(row) = self.row(&next) else { break };
            let gone = matches!(row.stage(release), Stage::Removed | Stage::Deprecated);
            match &row.replacement {
                Some(after) if gone => next = after.clone(),
                _ => break,
            }
        }
        Some(next)
    }
}

/// Every deprecated field, value, annotation and label.
pub(crate) fn deprecations() -> &'static [Deprecation] {
    rows::DEPRECATIONS
}

/// What changes in an object of this kind that leaves this API version.
pub(crate) fn migration(api: &Api) -> Option<&'static Migration> {
    let from = api.api_version();
    rows::MIGRATIONS
        .iter()
        .find(|migration| migration.kind == api.kind && migration.from.contains(&from.as_str()))
}

fn find<'a>(rows: &'a [Lifecycle], key: (&str, &str, &str)) -> Option<&'a Lifecycle> {
    let index = rows.binary_search_by(|row| row.api.key().cmp(&key)).ok()?;
    rows.get(index)
}

#[cfg(test)]
mod tests;
