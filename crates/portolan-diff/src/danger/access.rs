//! Who may do more than before.

use std::collections::BTreeSet;

use portolan_object::{Object, Rule, Severity};
use portolan_yaml::Node;

use super::{Finder, World, text};

pub(super) static WIDENED: Rule = Rule {
    id: "rbac-widened",
    severity: Severity::Warning,
    summary: "a role allows more than before, or more subjects have it",
    help: "The change gives rights that nobody had to ask for before. Look at each verb and resource that the \
           message names; take back what is not needed.",
};

pub(super) static EVERYTHING: Rule = Rule {
    id: "rbac-everything",
    severity: Severity::Error,
    summary: "a subject gets the right to do everything, or to give rights to others",
    help: "Whoever has it can take the whole cluster over: name the verbs, groups and resources that are needed \
           instead of `*`, `escalate`, `bind` or `impersonate`.",
};

/// The most rights that a message lists.
const MAX_LISTED: usize = 4;

/// What a rule of a role allows: `get secrets`, `* deployments.apps`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    verb: String,
    resource: String,
}

pub(super) fn lint(finder: &mut Finder<'_, '_>, world: &World<'_>) {
    let Some(new) = finder.after() else { return };
    let group = "rbac.authorization.k8s.io";
    let gvk = new.object.gvk();
    if gvk.is(group, "Role") || gvk.is(group, "ClusterRole") {
        lint_role(finder, new.object);
    } else if gvk.is(group, "RoleBinding") || gvk.is(group, "ClusterRoleBinding") {
        lint_binding(finder, new.object, world);
    }
}

fn lint_role(finder: &mut Finder<'_, '_>, new: &Object) {
    let before = finder
        .both()
        .map(|(old, _)| rights(old.object))
        .unwrap_or_default();
    let gained: Vec<Right> = rights(new)
        .into_iter()
        .filter(|right| !before.iter().any(|other| other.covers(right)))
        .collect();
    let grave: Vec<&Right> = gained.iter().filter(|right| right.is_grave()).collect();
    if !grave.is_empty() {
        finder.report(&EVERYTHING, format!("it newly allows {}", listed(&grave)));
    } else if !gained.is_empty() && finder.both().is_some() {
        let gained: Vec<&Right> = gained.iter().collect();
        finder.report(&WIDENED, format!("it newly allows {}", listed(&gained)));
    }
}

fn listed(rights: &[&Right]) -> String {
    let named: Vec<String> = rights
        .iter()
        .take(MAX_LISTED)
        .map(|right| format!("`{} {}`", right.verb, right.resource))
        .collect();
    match rights.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

impl Right {
    fn covers(&self, other: &Self) -> bool {
        let covers = |one: &str, other: &str| one == "*" || one == other;
        covers(&self.verb, &other.verb)
            && (covers(&self.resource, &other.resource) || self.resource == "*.*")
    }

    /// Everything, or what leads to everything.
    fn is_grave(&self) -> bool {
        let all_verbs = self.verb == "*";
        let all_resources = self.resource.starts_with("*.") || self.resource == "*";
        let reads_secrets =
            self.resource == "secrets" && matches!(&*self.verb, "*" | "get" | "list" | "watch");
        (all_verbs && all_resources)
            || matches!(&*self.verb, "escalate" | "bind" | "impersonate")
            || reads_secrets
    }
}

fn rights(role: &Object) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    let rules = role.node().get("rules").and_then(Node::as_list);
    for rule in rules.into_iter().flatten() {
        let verbs = texts(rule, "verbs");
        for resource in resources(rule) {
            rights.extend(verbs.iter().map(|verb| Right {
                verb: verb.clone(),
                resource: resource.clone(),
            }));
        }
    }
    rights
}

/// `deployments.apps`, `secrets`, `*.*`, and paths as they are.
fn resources(rule: &Node) -> Vec<String> {
    let groups = texts(rule, "apiGroups");
    let mut resources = texts(rule, "nonResourceURLs");
    for resource in texts(rule, "resources") {
        for group in &groups {
            let dot = if group.is_empty() { "" } else { "." };
            resources.push(format!("{resource}{dot}{group}"));
        }
    }
    resources
}

fn texts(rule: &Node, field: &str) -> Vec<String> {
    let list = rule.get(field).and_then(Node::as_list);
    let texts = list.into_iter().flatten().filter_map(Node::as_str);
    texts.map(str::to_owned).collect()
}

fn lint_binding(finder: &mut Finder<'_, '_>, new: &Object, world: &World<'_>) {
    let subjects = |object: &Object| -> BTreeSet<String> {
        let list = object.node().get("subjects").and_then(Node::as_list);
        list.into_iter().flatten().map(subject).collect()
    };
    let before = finder
        .both()
        .map(|(old, _)| subjects(old.object))
        .unwrap_or_default();
    let gained: Vec<String> = subjects(new).difference(&before).cloned().collect();
    if gained.is_empty() {
        return;
    }
    let role = text(new.node(), &["roleRef", "name"]).unwrap_or_default();
    let message = format!("{} newly have the role `{role}`", gained.join(", "));
    if role == "cluster-admin" || is_grave_role(new, role, world) {
        finder.report(&EVERYTHING, message);
    } else if finder.both().is_some() {
        finder.report(&WIDENED, message);
    }
}

/// Whether the role that a binding names allows everything.
fn is_grave_role(binding: &Object, role: &str, world: &World<'_>) -> bool {
    let kind = text(binding.node(), &["roleRef", "kind"]).unwrap_or_default();
    let mut roles = world.new.objects().filter(|(object, _)| {
        object.kind() == kind
            && object.name() == role
            && (kind == "ClusterRole" || object.namespace() == binding.namespace())
    });
    roles.any(|(role, _)| {
        rights(role)
            .iter()
            .any(|right| right.verb == "*" && right.resource.starts_with("*."))
    })
}

fn subject(node: &Node) -> String {
    let field = |name: &str| text(node, &[name]).unwrap_or_default();
    match field("namespace") {
        "" => format!("{} {}", field("kind"), field("name")),
        namespace => format!("{} {namespace}/{}", field("kind"), field("name")),
    }
}
