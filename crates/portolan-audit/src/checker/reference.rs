//! APIs that an object refers to: scale targets, RBAC rules, webhook rules.

use portolan_yaml::{Node, Position};

use super::{Checker, Subjected, explain};
use crate::finding::Finding;
use crate::level::Level;
use crate::lifecycle::{Lifecycle, Stage, split};

impl Checker {
    /// Whether objects of this kind name other APIs, or say in which versions others are stored: then more than their
    /// metadata has to be read.
    pub fn reads_contents(kind: &str) -> bool {
        matches!(
            kind,
            "CustomResourceDefinition"
                | "HorizontalPodAutoscaler"
                | "ScaledObject"
                | "VerticalPodAutoscaler"
                | "Role"
                | "ClusterRole"
                | "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
        )
    }

    /// Adds a finding for every API the object names that the target deprecates or no longer serves.
    pub(super) fn references(&self, object: &Subjected<'_>, findings: &mut Vec<Finding>) {
        match object.kind {
            "HorizontalPodAutoscaler" | "ScaledObject" => {
                self.reference(object, "spec.scaleTargetRef", findings);
            }
            "VerticalPodAutoscaler" => self.reference(object, "spec.targetRef", findings),
            "Role" | "ClusterRole" if object.group == "rbac.authorization.k8s.io" => {
                self.role_rules(object, findings);
            }
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                self.webhooks(object, findings);
            }
            _ => {}
        }
    }

    /// `apiVersion` and `kind` below a path.
    fn reference(&self, object: &Subjected<'_>, path: &str, findings: &mut Vec<Finding>) {
        let steps: Vec<&str> = path.split('.').collect();
        let Some(target) = object.node.at_path(&steps) else {
            return;
        };
        let text = |key: &str| target.get(key).and_then(Node::as_str);
        let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) else {
            return;
        };
        let (group, version) = split(api_version);
        let Some(row) = self.table.get(group, version, kind) else {
            return;
        };
        if self.is_leaving(row) {
            let at = target.get("apiVersion").map_or(target.at, |node| node.at);
            let name = text("name").unwrap_or_default();
            findings.push(self.refer(
                object,
                row,
                path,
                at,
                &format!("{path} names {kind} {name}"),
            ));
        }
    }

    /// A rule of a role names groups and resources, no versions: it is stale when no version is served any more.
    ///
    /// The rules of a role that gathers those of others are theirs.
    fn role_rules(&self, object: &Subjected<'_>, findings: &mut Vec<Finding>) {
        if object.node.get("aggregationRule").is_some() {
            return;
        }
        for rule in items(object.node.get("rules")) {
            let groups: Vec<&str> = texts(rule.get("apiGroups")).map(|(text, _)| text).collect();
            for (group, at) in texts(rule.get("apiGroups")) {
                let resources = texts(rule.get("resources"));
                let gone =
                    resources.filter_map(|(resource, _)| self.gone_resource(group, resource, None));
                // Rules often name the old group beside the new one, for clusters of both ages.
                let covered = |row: &Lifecycle| {
                    let replacement = row.replacement.as_ref();
                    replacement
                        .is_some_and(|api| groups.contains(&&*api.group) && api.group != group)
                };
                if let Some(row) = gone.into_iter().find(|row| !covered(row)) {
                    let words = format!("a rule grants {}.{group}", row.resource);
                    findings.push(self.refer(object, row, "rules", at, &words));
                }
            }
        }
    }

    fn webhooks(&self, object: &Subjected<'_>, findings: &mut Vec<Finding>) {
        for webhook in items(object.node.get("webhooks")) {
            for rule in items(webhook.get("rules")) {
                self.webhook_rule(object, webhook, rule, findings);
            }
        }
    }

    fn webhook_rule(
        &self,
        object: &Subjected<'_>,
        webhook: &Node,
        rule: &Node,
        findings: &mut Vec<Finding>,
    ) {
        let versions: Vec<&str> = texts(rule.get("apiVersions"))
            .map(|(text, _)| text)
            .collect();
        let name = webhook
            .get("name")
            .and_then(Node::as_str)
            .unwrap_or_default();
        for (group, at) in texts(rule.get("apiGroups")) {
            for (resource, _) in texts(rule.get("resources")) {
                let resource = resource.split('/').next().unwrap_or(resource);
                if let Some(row) = self.gone_resource(group, resource, Some(&versions)) {
                    let words = format!("webhook `{name}` is called for {resource}.{group}");
                    findings.push(self.refer(object, row, "webhooks[].rules", at, &words));
                }
            }
        }
    }

    /// The newest row of a resource of which the target serves no version (of those listed).
    fn gone_resource(
        &self,
        group: &str,
        resource: &str,
        versions: Option<&[&str]>,
    ) -> Option<&Lifecycle> {
        if versions.is_some_and(|versions| versions.contains(&"*")) {
            return None;
        }
        let listed =
            |row: &&Lifecycle| versions.is_none_or(|listed| listed.contains(&&*row.api.version));
        let rows: Vec<&Lifecycle> = self
            .table
            .resource(group, resource)
            .filter(listed)
            .collect();
        let gone = |row: &&Lifecycle| {
            self.target
                .release_for(row)
                .is_some_and(|release| row.stage(release) == Stage::Removed)
        };
        rows.iter()
            .all(gone)
            .then(|| rows.into_iter().max_by_key(|row| row.removed))
            .flatten()
    }

    fn is_leaving(&self, row: &Lifecycle) -> bool {
        let release = self.target.release_for(row);
        release
            .is_some_and(|release| matches!(row.stage(release), Stage::Removed | Stage::Deprecated))
    }

    fn refer(
        &self,
        object: &Subjected<'_>,
        row: &Lifecycle,
        path: &str,
        at: Position,
        words: &str,
    ) -> Finding {
        let state = match (row.removed, row.deprecated) {
            (Some(gone), _) if gone <= self.target.release() => {
                format!("no longer served from {gone} on")
            }
            (_, Some(since)) => format!("deprecated since {since}"),
            _ => "about to go".to_owned(),
        };
        let message = format!("{words}, but {} is {state}", row.api);
        let mut finding = object.finding(Level::Reference, at, message);
        explain(
            &mut finding,
            row,
            self.table.replacement_in(row, self.target.release()),
        );
        finding.path = Some(path.to_owned());
        finding.with_id()
    }
}

fn items(node: Option<&Node>) -> impl Iterator<Item = &Node> {
    node.and_then(Node::as_list)
        .into_iter()
        .flat_map(|list| list.iter())
}

fn texts(node: Option<&Node>) -> impl Iterator<Item = (&str, Position)> {
    items(node).filter_map(|item| Some((item.as_str()?, item.at)))
}
