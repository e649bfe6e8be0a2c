//! Who may do what: roles and their bindings.

use portolan_object::NameRule;

use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(crate) fn check(root: &Spot<'_>, out: &mut Refusals) {
    match root.text("kind") {
        Some(kind @ ("ClusterRole" | "Role")) => {
            for rule in root.items("rules") {
                allowed(&rule, kind, out);
            }
        }
        Some(kind @ ("ClusterRoleBinding" | "RoleBinding")) => bound(root, kind, out),
        _ => {}
    }
}

fn allowed(rule: &Spot<'_>, kind: &str, out: &mut Refusals) {
    if !rule.has_items("verbs") {
        out.missing(rule, "verbs");
    }
    if let Some(urls) = rule
        .field("nonResourceURLs")
        .filter(|_| rule.has_items("nonResourceURLs"))
    {
        if kind == "Role" {
            let message = "may only be there in a ClusterRole";
            out.add(Fault::Conflict, &urls, message);
        } else if rule.has_items("resources") || rule.has_items("apiGroups") {
            let message = "`nonResourceURLs` and `resources` exclude each other";
            out.add(Fault::Conflict, rule, message);
        }
        return;
    }
    for field in ["apiGroups", "resources"] {
        if !rule.has_items(field) {
            out.missing(rule, field);
        }
    }
}

fn bound(binding: &Spot<'_>, kind: &str, out: &mut Refusals) {
    if let Some(role) = binding.field("roleRef") {
        let kinds: &[&str] = match kind {
            "RoleBinding" => &["ClusterRole", "Role"],
            _ => &["ClusterRole"],
        };
        out.one_of(&role, "kind", kinds);
        out.one_of(&role, "apiGroup", &[GROUP]);
    }
    for subject in binding.items("subjects") {
        out.one_of(&subject, "kind", &["Group", "ServiceAccount", "User"]);
        match subject.text("kind") {
            Some("ServiceAccount") => {
                out.named(&subject, "name", NameRule::Subdomain);
                // Inside a namespace it is only never matched.
                let needs_namespace = kind == "ClusterRoleBinding";
                if needs_namespace && subject.text("namespace").is_none_or(str::is_empty) {
                    out.missing(&subject, "namespace");
                }
            }
            Some("Group" | "User") => out.one_of(&subject, "apiGroup", &[GROUP]),
            _ => {}
        }
    }
}
