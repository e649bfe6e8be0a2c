//! The API version of the object itself.

use super::{Checker, Subjected, explain, is_fixable, overlap};
use crate::finding::Finding;
use crate::level::Level;
use crate::lifecycle::{Api, Basis, KUBERNETES, Lifecycle, Stage};
use crate::release::Release;
use crate::table::{self, NEWEST};

impl Checker {
    /// Whether an object of this kind can be in an API version that the target does not like.
    pub fn may_find(&self, kind: &str) -> bool {
        let mut rows = self.table.rows().filter(|row| row.api.kind == kind);
        rows.any(|row| self.judge(row).is_some())
    }

    /// What the target thinks of the object's API version.
    pub(super) fn api(&self, object: &Subjected<'_>) -> Option<Finding> {
        let Some(row) = self.table.get(object.group, object.version, object.kind) else {
            return self.unknown(object);
        };
        let (level, message) = self.judge(row)?;
        let mut finding = object.finding(level, object.api_version_at(), message);
        let release = self.target.release_for(row).unwrap_or(NEWEST.into());
        let replacement = if level == Level::NotYetServed {
            None
        } else if row.is_kubernetes() {
            self.table.replacement_in(row, release)
        } else {
            row.replacement.clone()
        };
        finding.fixable = level != Level::NotYetServed && is_fixable(row, object.node);
        if let Some(to) = &replacement {
            self.tell_replacement(&mut finding, row, to);
        }
        explain(&mut finding, row, replacement);
        Some(finding)
    }

    fn judge(&self, row: &Lifecycle) -> Option<(Level, String)> {
        let Some(release) = self.target.release_for(row) else {
            return judge_unnamed(row);
        };
        let name = product(row);
        match row.stage(release) {
            Stage::Removed => Some((Level::Removed, self.removed(row, name))),
            Stage::NotYet => {
                let since = row
                    .introduced
                    .map(|release| release.to_string())
                    .unwrap_or_default();
                Some((
                    Level::NotYetServed,
                    format!("{} is served from {name} {since} on", row.api),
                ))
            }
            stage => self.judge_served(row, release, stage == Stage::Deprecated),
        }
    }

    fn removed(&self, row: &Lifecycle, name: &str) -> String {
        let gone = row
            .removed
            .map(|release| release.to_string())
            .unwrap_or_default();
        let way = match self.target.from {
            Some(from) if row.is_kubernetes() && row.removed > Some(from.into()) => {
                format!(", on the way from {from} to {}", self.target.kubernetes)
            }
            _ => String::new(),
        };
        format!("{} is no longer served from {name} {gone} on{way}", row.api)
    }

    fn judge_served(
        &self,
        row: &Lifecycle,
        release: Release,
        deprecated: bool,
    ) -> Option<(Level, String)> {
        let name = product(row);
        let soon = row.is_kubernetes()
            && row
                .removed
                .is_some_and(|gone| gone <= release.plus(self.target.look_ahead));
        let planned = row.removed.map_or_else(String::new, |gone| {
            let sure = if row.basis == Basis::Implied {
                " unless that is postponed"
            } else {
                ""
            };
            format!("; {name} {gone} no longer serves it{sure}")
        });
        if soon {
            return Some((
                Level::RemovedNext,
                format!("{} is still served{planned}", row.api),
            ));
        }
        let since = row.deprecated.filter(|_| deprecated)?;
        Some((
            Level::Deprecated,
            format!("{} is deprecated since {name} {since}{planned}", row.api),
        ))
    }

    fn tell_replacement(&self, finding: &mut Finding, row: &Lifecycle, to: &Api) {
        if let Some(migration) = table::migration(&row.api) {
            finding.changes = migration.changes.iter().map(ToString::to_string).collect();
        }
        if let Some(target) = self
            .table
            .row(to)
            .filter(|target| target.component == row.component)
        {
            finding.migrate_between = overlap(row, target);
        }
    }

    /// A known kind of Kubernetes in a version that never was: a typing error, or an API newer than the table.
    fn unknown(&self, object: &Subjected<'_>) -> Option<Finding> {
        let mut known: Vec<&Lifecycle> = self
            .table
            .versions(object.group, object.kind)
            .filter(|row| row.component == KUBERNETES)
            .collect();
        if known.is_empty() || self.target.kubernetes > NEWEST {
            return None;
        }
        known.retain(|row| {
            matches!(
                row.stage(self.target.release()),
                Stage::Live | Stage::Deprecated
            )
        });
        let live = known
            .iter()
            .find(|row| row.stage(self.target.release()) == Stage::Live);
        let message = format!(
            "no release up to {NEWEST} serves {} as {}",
            object.kind, object.subject.api_version
        );
        let mut finding = object.finding(Level::UnknownApi, object.api_version_at(), message);
        finding.replacement = live.or(known.first()).map(|row| row.api.api_version());
        Some(finding)
    }
}

/// What a component is called in a sentence.
fn product(row: &Lifecycle) -> &str {
    if row.is_kubernetes() {
        "Kubernetes"
    } else {
        &row.component
    }
}

/// A component of which no release was named: what it removed some time is worth a word, no more.
fn judge_unnamed(row: &Lifecycle) -> Option<(Level, String)> {
    let name = product(row);
    let message = match (row.removed, row.deprecated) {
        (Some(gone), _) => format!("{} is no longer served from {name} {gone} on", row.api),
        (None, Some(since)) => format!("{} is deprecated since {name} {since}", row.api),
        (None, None) => return None,
    };
    Some((Level::Deprecated, message))
}
