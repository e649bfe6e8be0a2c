//! The results of a scan, kept by release and by object, so a change of one affects no other.
//!
//! ```text
//! releases  shop/web ─▶ Release (uid, revision, findings)
//! live      policy/v1 poddisruptionbudgets ─▶ Live ─▶ shop/web ─▶ findings
//! requests  findings of the API server's own count
//! ```
//!
//! A clone shares its contents. No more findings are kept than the limit allows; the others are only counted.

use std::collections::{BTreeMap, BTreeSet};

use portolan_audit::{Checker, Counts, Finding, Report, merge};
use portolan_cluster::{Driver, RecordRef, Resource};
use serde::{Deserialize, Serialize};

use super::shared::Shared;

/// What was found in a record, with what makes it the same record: a scan that meets it again need not fetch it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Release {
    pub(crate) driver: Driver,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) revision: i64,
    pub(crate) objects: usize,
    pub(crate) findings: Vec<Finding>,
}

/// The objects of a resource: how many there are, and what is wrong with those that are not fine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Live {
    pub(crate) resource: Resource,
    /// The state that a watch can go on from.
    pub(crate) resume: String,
    pub(crate) objects: usize,
    /// By `namespace/name`.
    pub(crate) findings: BTreeMap<String, Shared<Vec<Finding>>>,
    /// How many findings that are, and for how many there was no room.
    kept: usize,
    left_out: usize,
}

/// Everything a scan learnt; a part of the snapshot on disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Knowledge {
    /// By `namespace/release`.
    releases: BTreeMap<String, Shared<Release>>,
    /// By the resource's id.
    live: BTreeMap<String, Live>,
    /// Findings that belong to no object.
    pub(crate) requests: Vec<Finding>,
    /// What is odd, though the scan went well.
    pub(crate) warnings: Vec<String>,
    /// For each driver the state a watch can go on from.
    pub(crate) resume: BTreeMap<Driver, String>,
    /// How many findings are kept, and how many may be.
    kept: usize,
    limit: usize,
    left_out: usize,
}

/// What a record's release is known by.
pub(crate) fn key(record: &RecordRef) -> String {
    format!("{}/{}", record.namespace, record.release)
}

impl Release {
    /// Whether this is what was found in the record as it is now.
    pub(crate) fn is_of(&self, record: &RecordRef) -> bool {
        self.uid == record.uid && self.resource_version == record.resource_version
    }

    /// The same with no more than so many findings.
    fn shortened_to(&self, count: usize) -> Self {
        Self {
            driver: self.driver,
            uid: self.uid.clone(),
            resource_version: self.resource_version.clone(),
            findings: self.findings.iter().take(count).cloned().collect(),
            ..*self
        }
    }
}

impl Live {
    /// A resource of which nothing is known yet.
    pub(crate) fn new(resource: Resource) -> Self {
        Self {
            resource,
            resume: String::new(),
            objects: 0,
            findings: BTreeMap::new(),
            kept: 0,
            left_out: 0,
        }
    }

    /// Puts findings of an object in place of those before, as long as there are no more than `room` in all.
    pub(crate) fn put(&mut self, object: String, mut findings: Vec<Finding>, room: usize) {
        if let Some(before) = self.findings.remove(&object) {
            self.kept -= before.len();
        }
        if findings.is_empty() {
            return;
        }
        if self.kept + findings.len() > room {
            self.left_out += findings.len();
            return;
        }
        self.kept += findings.len();
        // Room for four would be kept for each of many that have one.
        findings.shrink_to_fit();
        self.findings.insert(object, Shared::new(findings));
    }

    fn shrink_to(&mut self, room: usize) {
        while self.kept > room {
            let Some((_, findings)) = self.findings.pop_last() else {
                return;
            };
            self.kept -= findings.len();
            self.left_out += findings.len();
        }
    }
}

impl Knowledge {
    /// Nothing yet, and room for so many findings.
    pub(crate) fn with_room_for(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    pub(crate) fn releases(&self) -> &BTreeMap<String, Shared<Release>> {
        &self.releases
    }

    pub(crate) fn live(&self) -> &BTreeMap<String, Live> {
        &self.live
    }

    /// How many findings there is still room for.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.kept)
    }

    /// How many findings there was no room for.
    pub(crate) fn left_out(&self) -> usize {
        let live: usize = self.live.values().map(|live| live.left_out).sum();
        self.left_out + live
    }

    /// Whether two scans found the same.
    pub(crate) fn finds_as(&self, other: &Self) -> bool {
        let same = |(ours, theirs): (&Live, &Live)| ours.findings == theirs.findings;
        self.releases == other.releases
            && self.live.len() == other.live.len()
            && self.live.values().zip(other.live.values()).all(same)
    }

    /// Whether a deployed record says more than what is known of its release.
    pub(crate) fn is_news(&self, record: &RecordRef) -> bool {
        let known = self.releases.get(&key(record));
        known.is_none_or(|known| record.revision >= known.revision && !known.is_of(record))
    }

    /// Puts a release in place of what was known of it.
    pub(crate) fn put_release(&mut self, key: String, release: Shared<Release>) {
        self.drop_release(&key);
        let room = self.room();
        let over = release.findings.len().saturating_sub(room);
        let release = if over == 0 {
            release
        } else {
            self.left_out += over;
            Shared::new(release.shortened_to(room))
        };
        self.kept += release.findings.len();
        self.releases.insert(key, release);
    }

    /// Takes a release out when this record is what is known of it.
    pub(crate) fn forget(&mut self, record: &RecordRef) {
        let key = key(record);
        let known = self.releases.get(&key);
        if known.is_some_and(|known| known.uid == record.uid) {
            self.drop_release(&key);
        }
    }

    /// Takes out the releases of a driver that are not among those listed.
    pub(crate) fn keep_listed(&mut self, driver: Driver, listed: &[RecordRef]) {
        let listed: BTreeSet<String> = listed.iter().map(key).collect();
        let gone = |(key, release): &(&String, &Shared<Release>)| {
            release.driver == driver && !listed.contains(*key)
        };
        let gone: Vec<String> = self
            .releases
            .iter()
            .filter(gone)
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            self.drop_release(&key);
        }
    }

    fn drop_release(&mut self, key: &str) {
        if let Some(release) = self.releases.remove(key) {
            self.kept -= release.findings.len();
        }
    }

    /// Puts a resource in place of what was known of it, as far as there is room.
    pub(crate) fn put_live(&mut self, mut live: Live) {
        let id = live.resource.id();
        if let Some(before) = self.live.remove(&id) {
            self.kept -= before.kept;
        }
        live.shrink_to(self.room());
        self.kept += live.kept;
        self.live.insert(id, live);
    }

    /// Puts findings of an object in place of those before; none when it is fine, or gone.
    pub(crate) fn put_object(&mut self, resource: &str, object: String, findings: Vec<Finding>) {
        let room = self.room();
        let Some(live) = self.live.get_mut(resource) else {
            return;
        };
        let before = live.kept;
        live.put(object, findings, before + room);
        self.kept = self.kept - before + live.kept;
    }

    /// The answer in one piece.
    pub(crate) fn report(&self, checker: &Checker) -> Report {
        let releases = self.releases.values();
        let live = self.live.values().flat_map(|live| live.findings.values());
        let found = live
            .flat_map(|findings| findings.iter())
            .chain(releases.clone().flat_map(|release| &release.findings))
            .chain(&self.requests);
        let in_releases: usize = releases.map(|release| release.objects).sum();
        let in_cluster: usize = self.live.values().map(|live| live.objects).sum();
        let counts = Counts {
            releases: self.releases.len(),
            objects: in_releases + in_cluster,
            ..Counts::default()
        };
        let mut report = Report::new(merge(found.cloned().collect()), counts, &checker.target);
        report.warnings.extend(self.warnings.iter().cloned());
        report.warnings.extend(self.note());
        report
    }

    /// What was not looked at, so that nothing is known about it.
    pub(crate) fn unseen(&self) -> BTreeSet<String> {
        let left_out = self.left_out() > 0;
        let note = left_out.then(|| "findings are left out".to_owned());
        self.warnings.iter().cloned().chain(note).collect()
    }

    fn note(&self) -> Option<String> {
        let (limit, left_out) = (self.limit, self.left_out());
        (left_out > 0).then(|| {
            format!(
                "there are more than {limit} findings: {left_out} are left out; --max-findings makes room for more, \
                 --namespace looks at less"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_audit::{Site, Subject};

    fn finding(name: &str) -> Finding {
        let subject = Subject {
            api_version: "policy/v1beta1".to_owned(),
            kind: "PodDisruptionBudget".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        };
        let found = Checker::default().check_api(subject, &Site::default());
        found.expect("it was removed in 1.25")
    }

    fn budgets() -> Live {
        Live::new(Resource {
            api_version: "policy/v1".to_owned(),
            kind: "PodDisruptionBudget".to_owned(),
            name: "poddisruptionbudgets".to_owned(),
            namespaced: true,
            watchable: true,
        })
    }

    fn release(findings: Vec<Finding>) -> Shared<Release> {
        Shared::new(Release {
            driver: Driver::Secret,
            uid: String::new(),
            resource_version: String::new(),
            revision: 1,
            objects: findings.len(),
            findings,
        })
    }

    #[test]
    fn no_more_findings_are_kept_than_there_is_room_for_and_the_rest_is_told() {
        let mut knowledge = Knowledge::with_room_for(3);
        knowledge.put_release(
            "shop/web".to_owned(),
            release(vec![finding("a"), finding("b")]),
        );
        let mut live = budgets();
        for name in ["c", "d", "e"] {
            live.put(format!("shop/{name}"), vec![finding(name)], 100);
        }
        knowledge.put_live(live);
        assert_eq!((knowledge.room(), knowledge.left_out()), (0, 2));
        let report = knowledge.report(&Checker::default());
        assert_eq!(report.findings.len(), 3);
        let note = report.warnings.last().expect("a note");
        assert!(
            note.starts_with("there are more than 3 findings: 2 are left out"),
            "{note}"
        );
    }

    #[test]
    fn what_goes_makes_room() {
        let id = "policy/v1 poddisruptionbudgets";
        let mut knowledge = Knowledge::with_room_for(2);
        knowledge.put_live(budgets());
        knowledge.put_object(id, "shop/a".to_owned(), vec![finding("a"), finding("a")]);
        knowledge.put_object(id, "shop/b".to_owned(), vec![finding("b")]);
        assert_eq!((knowledge.room(), knowledge.left_out()), (0, 1));
        knowledge.put_object(id, "shop/a".to_owned(), Vec::new());
        assert_eq!(knowledge.room(), 2);
        knowledge.put_release("shop/web".to_owned(), release(vec![finding("c"); 5]));
        assert_eq!((knowledge.room(), knowledge.left_out()), (0, 4));
        knowledge.keep_listed(Driver::Secret, &[]);
        assert_eq!(knowledge.room(), 2);
    }
}
