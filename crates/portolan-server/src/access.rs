//! What each identity may do: roles and bindings, and the rule that nobody gives more than they have.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use parking_lot::RwLock;
use portolan_kinds::wire::{RoleBindingSpec, RoleRule, RoleSpec, SubjectKind};
use portolan_kinds::{KindObject, find_kind};
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::error::{ApiError, RefusalReason};
use crate::node_access::NodeIdentity;
use crate::token::Identity;

/// What a request wants to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Action<'a> {
    pub(crate) verb: &'a str,
    pub(crate) kind: &'a str,
    /// `None` for global kinds, and for all namespaces.
    pub(crate) namespace: Option<&'a str>,
    /// `None` for all objects.
    pub(crate) name: Option<&'a str>,
}

/// A right that somebody has, and why.
#[derive(Debug, Clone)]
pub(crate) struct Right {
    /// `None`: everywhere.
    pub(crate) namespace: Option<String>,
    pub(crate) rule: Arc<RoleRule>,
    /// The binding and role, in words.
    pub(crate) because: Arc<str>,
}

/// The rights of everybody, as of the roles and bindings in the cache.
pub(crate) struct Access {
    cache: Cache,
    compiled: RwLock<(u64, Arc<Rights>)>,
}

#[derive(Default)]
struct Rights {
    users: BTreeMap<String, Vec<Right>>,
    groups: BTreeMap<String, Vec<Right>>,
}

impl Access {
    pub(crate) fn new(cache: Cache) -> Self {
        Self {
            cache,
            compiled: RwLock::default(),
        }
    }

    /// Whether somebody may do something; the error tells which rule is missing.
    pub(crate) fn check(
        &self,
        identity: &Identity,
        action: &Action<'_>,
    ) -> Result<Right, ApiError> {
        if let Some(node) = &identity.node {
            return node_right(node, action).ok_or_else(|| forbidden(identity, action));
        }
        let rights = self.current();
        let found = rights.of(identity).find(|right| right.allows(action));
        found.cloned().ok_or_else(|| forbidden(identity, action))
    }

    /// All rights of somebody.
    pub(crate) fn rights_of(&self, identity: &Identity) -> Vec<Right> {
        // Roles and bindings do not count for nodes.
        if identity.node.is_some() {
            return Vec::new();
        }
        self.current().of(identity).cloned().collect()
    }

    /// Refuses roles, bindings and repositories that would give more than their author has.
    pub(crate) fn check_escalation(
        &self,
        identity: &Identity,
        object: &KindObject,
    ) -> Result<(), ApiError> {
        let own = self.rights_of(identity);
        let namespace = object.namespace();
        let rules: Vec<RoleRule> = match object.kind.name {
            "Role" | "ClusterRole" => rules_of(object),
            "RoleBinding" | "ClusterRoleBinding" => self.bound_rules(object),
            "Repository" => {
                let account = object.spec.get("serviceAccount").and_then(Value::as_str);
                return self.check_impersonation(identity, account.unwrap_or_default(), &[]);
            }
            _ => return Ok(()),
        };
        let missing = rules.iter().find(|rule| !covers(&own, rule, namespace));
        match missing {
            None => Ok(()),
            Some(rule) => Err(escalation(object.kind.name, rule)),
        }
    }

    /// Refuses to act for somebody who has more rights.
    pub(crate) fn check_impersonation(
        &self,
        identity: &Identity,
        user: &str,
        groups: &[String],
    ) -> Result<(), ApiError> {
        if identity.user == user && groups.iter().all(|group| identity.groups.contains(group)) {
            return Ok(());
        }
        let own = self.rights_of(identity);
        let other = Identity {
            user: user.to_owned(),
            groups: groups.to_vec(),
            ..Identity::default()
        };
        let theirs = self.rights_of(&other);
        let missing = theirs
            .iter()
            .find(|right| !covers(&own, &right.rule, right.namespace.as_deref()));
        match missing {
            None => Ok(()),
            Some(right) => Err(escalation(&format!("user {user}"), &right.rule)),
        }
    }

    /// The rules of the role that a binding names; a role that does not exist yet could become anything.
    fn bound_rules(&self, binding: &KindObject) -> Vec<RoleRule> {
        let everything = || {
            vec![RoleRule {
                verbs: vec!["*".to_owned()],
                kinds: vec!["*".to_owned()],
                names: Vec::new(),
            }]
        };
        let Ok(spec) = binding.typed_spec::<RoleBindingSpec>() else {
            return everything();
        };
        let role = spec.role.unwrap_or_default();
        let found = find_kind(role.kind()).and_then(|kind| {
            let key = crate::keys::ObjectKey::new(kind, binding.namespace(), role.name());
            self.cache.object(&key)
        });
        found.map_or_else(everything, |role| rules_of(&role))
    }

    fn current(&self) -> Arc<Rights> {
        let version = self.cache.rights_version();
        {
            let compiled = self.compiled.read();
            if compiled.0 == version {
                return Arc::clone(&compiled.1);
            }
        }
        let rights = Arc::new(self.compile());
        *self.compiled.write() = (version, Arc::clone(&rights));
        rights
    }

    fn compile(&self) -> Rights {
        let mut rights = Rights::default();
        for kind in ["ClusterRoleBinding", "RoleBinding"]
            .into_iter()
            .filter_map(find_kind)
        {
            for binding in self.cache.objects(kind, None) {
                self.add_binding(&binding, &mut rights);
            }
        }
        rights
    }

    fn add_binding(&self, binding: &KindObject, rights: &mut Rights) {
        let Ok(spec) = binding.typed_spec::<RoleBindingSpec>() else {
            return;
        };
        let role = spec.role.unwrap_or_default();
        let Some(kind) = find_kind(role.kind()) else {
            return;
        };
        let key = crate::keys::ObjectKey::new(kind, binding.namespace(), role.name());
        let Some(found) = self.cache.object(&key) else {
            return;
        };
        let because: Arc<str> = format!(
            "{} gives it by {} {}",
            crate::objects::shown(binding),
            role.kind(),
            role.name()
        )
        .into();
        let given: Vec<Right> = rules_of(&found)
            .into_iter()
            .map(|rule| Right {
                namespace: binding.namespace().map(str::to_owned),
                rule: Arc::new(rule),
                because: Arc::clone(&because),
            })
            .collect();
        for subject in &spec.subjects {
            let table = match subject.kind() {
                SubjectKind::User => &mut rights.users,
                SubjectKind::Group => &mut rights.groups,
                SubjectKind::Unspecified => continue,
            };
            let entry = table.entry(subject.name().to_owned()).or_default();
            entry.extend(given.iter().cloned());
        }
    }
}

impl Rights {
    /// The rights that roles and bindings give a user, and the groups of the user.
    fn of<'r>(&'r self, identity: &'r Identity) -> impl Iterator<Item = &'r Right> {
        let of_user = self.users.get(&identity.user).into_iter().flatten();
        let groups = identity.groups.iter();
        let of_groups = groups.filter_map(|group| self.groups.get(group)).flatten();
        of_user.chain(of_groups)
    }
}

impl Right {
    fn allows(&self, action: &Action<'_>) -> bool {
        let in_scope = match &self.namespace {
            None => true,
            Some(own) => action.namespace == Some(own.as_str()),
        };
        let names = &self.rule.names;
        let name_fits = names.is_empty()
            || action
                .name
                .is_some_and(|name| names.iter().any(|one| one == name));
        in_scope
            && name_fits
            && has(&self.rule.verbs, action.verb)
            && has(&self.rule.kinds, action.kind)
    }

    /// The right as JSON.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "namespace": self.namespace, "verbs": self.rule.verbs, "kinds": self.rule.kinds,
            "names": self.rule.names, "because": &*self.because,
        })
    }
}

/// The right of a node to something that its certificate gives.
fn node_right(node: &NodeIdentity, action: &Action<'_>) -> Option<Right> {
    let rule = RoleRule {
        verbs: vec![action.verb.to_owned()],
        kinds: vec![action.kind.to_owned()],
        names: Vec::new(),
    };
    node.allows(action).then(|| Right {
        namespace: None,
        rule: Arc::new(rule),
        because: format!("the certificate of node {} gives it", node.name).into(),
    })
}

/// Every verb but `read-secret`, `run`, `approve` and `exec` is part of `*`, and they are too: `*` is everything.
fn has(words: &[String], wanted: &str) -> bool {
    words.iter().any(|word| word == "*" || word == wanted)
}

/// Whether the rights include every one that a rule gives in a namespace, or everywhere.
fn covers(own: &[Right], rule: &RoleRule, namespace: Option<&str>) -> bool {
    let names: Vec<Option<&str>> = if rule.names.is_empty() {
        vec![None]
    } else {
        rule.names.iter().map(|name| Some(name.as_str())).collect()
    };
    rule.verbs.iter().all(|verb| {
        rule.kinds.iter().all(|kind| {
            names.iter().all(|name| {
                let action = Action {
                    verb,
                    kind,
                    namespace,
                    name: *name,
                };
                own.iter().any(|right| right.allows(&action))
            })
        })
    })
}

fn rules_of(role: &KindObject) -> Vec<RoleRule> {
    role.typed_spec::<RoleSpec>()
        .map_or_else(|_| Vec::new(), |spec| spec.rules)
}

fn forbidden(identity: &Identity, action: &Action<'_>) -> ApiError {
    let place = match action.namespace {
        Some(namespace) => format!(" in namespace {namespace}"),
        None => String::new(),
    };
    let message = format!(
        "user {} may not {} {}{}{place}",
        identity.user,
        action.verb,
        action.kind,
        action
            .name
            .map(|name| format!(" {name}"))
            .unwrap_or_default(),
    );
    let rule =
        json!({"verbs": [action.verb], "kinds": [action.kind], "namespace": action.namespace});
    ApiError::new(StatusCode::FORBIDDEN, RefusalReason::Forbidden, message)
        .hint(format!(
            "a role with {{verbs: [{}], kinds: [{}]}} allows it",
            action.verb, action.kind
        ))
        .details(json!({ "missing": rule }))
}

fn escalation(what: &str, rule: &RoleRule) -> ApiError {
    let message = format!(
        "{what} has rights that you do not have: {} on {}",
        rule.verbs.join(", "),
        rule.kinds.join(", ")
    );
    ApiError::new(StatusCode::FORBIDDEN, RefusalReason::Forbidden, message)
        .hint("nobody can give more rights than they have")
        .details(
            json!({"missing": {"verbs": rule.verbs, "kinds": rule.kinds, "names": rule.names}}),
        )
}
