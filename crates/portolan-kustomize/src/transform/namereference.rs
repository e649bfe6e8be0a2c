//! Name references: fields that name a renamed resource get its new name.
//!
//! Renamed resources are found by their old names through one index. The table says which fields of each type can
//! name a resource.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::rc::Rc;

use portolan_budget::Budget;
use portolan_yaml::{Node, Text, Value};

use crate::config::{BackReference, Config, FieldSpec};
use crate::error::{During, Error, Result};
use crate::resource::id::{Gvk, NO_NAMESPACE, effective_namespace};
use crate::resource::set::ResourceSet;
use crate::resource::{Previous, Resource};
use crate::schema::Schema;
use crate::value::cost::RESOURCE_STEPS;
use crate::value::field::{NewTag, set_field, set_scalar, text, wrong_shape};
use crate::value::fieldspec::{Missing, walk};

/// Updates all references.
pub(crate) fn fix_references(
    set: &mut ResourceSet,
    config: &Config,
    schema: &Schema,
    budget: &Budget,
) -> Result<()> {
    let mut table = Table {
        references: config.references(),
        by_type: HashMap::new(),
        budget,
    };
    let named = table.named_types(set, schema)?;
    let targets = Targets::collect(set, &named, schema, budget)?;
    for position in 0..set.len() {
        let Some(resource) = set.get_mut(position) else {
            continue;
        };
        resource.history.check()?;
        let original = resource.original_id(schema).gvk;
        let fields = table.fields(&original)?;
        budget.step(fields.len() as u64)?;
        if fields.is_empty() {
            continue;
        }
        let referrer = Referrer::new(resource, schema)?;
        for (target, spec) in fields.iter() {
            let reference = Reference {
                targets: &targets,
                referrer: &referrer,
                target,
                spec,
                budget,
            };
            let node = &mut resource.node;
            walk(node, Some(&spec.path), Missing::Leave, &mut |field| {
                reference.update(field)
            })
            .during(|| {
                format!(
                    "updating name reference in `{}` field of `{}`",
                    spec.path, referrer.id
                )
            })?;
        }
    }
    set.renamed();
    Ok(())
}

type Fields = Rc<Vec<(Gvk, FieldSpec)>>;

/// The fields that can name something, by the type of the referrer.
struct Table<'a> {
    references: Vec<BackReference>,
    by_type: HashMap<Gvk, Fields>,
    budget: &'a Budget,
}

impl Table<'_> {
    /// The types that fields of these resources can name: what is of no such type need not be found.
    fn named_types(&mut self, set: &ResourceSet, schema: &Schema) -> Result<HashSet<Gvk>> {
        let mut types = HashSet::new();
        for resource in set {
            let gvk = resource.original_id(schema).gvk;
            if !self.by_type.contains_key(&gvk) {
                types.extend(self.fields(&gvk)?.iter().map(|(target, _)| target.clone()));
            }
        }
        Ok(types)
    }

    fn fields(&mut self, gvk: &Gvk) -> Result<Fields> {
        if let Some(fields) = self.by_type.get(gvk) {
            return Ok(Rc::clone(fields));
        }
        let mut fields = Vec::new();
        for reference in &self.references {
            self.budget.step(reference.referrers.len() as u64)?;
            let selected = reference
                .referrers
                .iter()
                .filter(|spec| gvk.is_selected(&spec.gvk));
            fields.extend(selected.map(|spec| (reference.target.clone(), spec.clone())));
        }
        let fields = Rc::new(fields);
        self.by_type.insert(gvk.clone(), Rc::clone(&fields));
        Ok(fields)
    }
}

/// What was renamed, by any of its old names.
struct Targets {
    all: Vec<Target>,
    /// By old name; made when the first referrer without a namespace asks.
    by_name: OnceCell<HashMap<Text, Vec<usize>>>,
    /// By old name and the namespace where they are now.
    by_place: HashMap<(Text, Text), Vec<usize>>,
    /// For each namespace that anything began in, where that is now: effective namespace and namespace as written.
    beginnings: HashMap<Text, HashSet<(Text, Text)>>,
}

/// A resource that references can follow.
struct Target {
    gvk: Gvk,
    name: Text,
    namespace: Text,
    /// As comparisons see it.
    effective: Text,
    is_cluster_scoped: bool,
    previous: Vec<Previous>,
    prefixes: Vec<Text>,
    suffixes: Vec<Text>,
}

impl Targets {
    fn collect(
        set: &ResourceSet,
        named: &HashSet<Gvk>,
        schema: &Schema,
        budget: &Budget,
    ) -> Result<Self> {
        let mut targets = Self {
            all: Vec::new(),
            by_name: OnceCell::new(),
            by_place: HashMap::new(),
            beginnings: HashMap::new(),
        };
        for resource in set {
            targets.note_beginning(resource, schema);
            let gvk = resource.gvk();
            let previous = &resource.history.previous;
            let comparisons = (named.len() as u64).saturating_mul(previous.len() as u64);
            budget.step(comparisons.saturating_add(RESOURCE_STEPS))?;
            if !named.iter().any(|pattern| was(&gvk, previous, pattern)) {
                continue;
            }
            let position = targets.all.len();
            let is_cluster_scoped = resource.is_cluster_scoped(schema);
            let namespace = resource.namespace();
            let effective = effective_namespace(&namespace, is_cluster_scoped);
            for previous in previous {
                let place = (previous.name.clone(), effective.clone());
                note(&mut targets.by_place, place, position);
            }
            targets.all.push(Target {
                gvk,
                name: resource.name(),
                effective,
                namespace,
                is_cluster_scoped,
                previous: previous.clone(),
                prefixes: resource.history.prefixes.clone(),
                suffixes: resource.history.suffixes.clone(),
            });
        }
        Ok(targets)
    }

    fn note_beginning(&mut self, resource: &Resource, schema: &Schema) {
        let began = resource.original_id(schema).namespace;
        let now = (
            resource.comparable_id(schema).namespace,
            resource.namespace(),
        );
        self.beginnings.entry(began).or_default().insert(now);
    }

    /// Whether anything that the referrer can see began in a namespace.
    fn is_beginning(&self, namespace: &Text, referrer: &Referrer) -> bool {
        let Some(places) = self
            .beginnings
            .get(namespace)
            .filter(|_| *namespace != *NO_NAMESPACE)
        else {
            return false;
        };
        referrer.is_cluster_scoped
            || places.iter().any(|(effective, written)| {
                *effective == *NO_NAMESPACE
                    || *effective == referrer.effective
                    || referrer.subjects.contains(written)
            })
    }

    fn by_name(&self) -> &HashMap<Text, Vec<usize>> {
        self.by_name.get_or_init(|| {
            let mut by_name = HashMap::new();
            for (position, target) in self.all.iter().enumerate() {
                for previous in &target.previous {
                    note(&mut by_name, previous.name.clone(), position);
                }
            }
            by_name
        })
    }

    /// What was once called so and that the referrer can see, in order.
    fn called<'a>(
        &'a self,
        name: &Text,
        referrer: &Referrer,
    ) -> impl Iterator<Item = &'a Target> + use<'a> {
        let mut positions: Vec<usize> = Vec::new();
        if referrer.is_cluster_scoped {
            positions.extend(self.by_name().get(name).into_iter().flatten());
        } else {
            let places = [&referrer.effective, &Text::from_static(NO_NAMESPACE)];
            for place in places.into_iter().chain(&referrer.subjects) {
                let key = (name.clone(), place.clone());
                positions.extend(self.by_place.get(&key).into_iter().flatten());
            }
            positions.sort_unstable();
            positions.dedup();
        }
        positions
            .into_iter()
            .filter_map(|position| self.all.get(position))
    }
}

/// Adds a position to an index, once.
fn note<K: Eq + Hash>(index: &mut HashMap<K, Vec<usize>>, key: K, position: usize) {
    let positions = index.entry(key).or_default();
    if positions.last() != Some(&position) {
        if positions.is_empty() {
            // Nearly all names are those of one resource.
            positions.reserve_exact(1);
        }
        positions.push(position);
    }
}

/// Whether something of a type was of another one under an old identity, whose group and version are the current ones.
fn was(gvk: &Gvk, previous: &[Previous], pattern: &Gvk) -> bool {
    previous.iter().any(|previous| {
        Gvk {
            kind: previous.kind.clone(),
            ..gvk.clone()
        }
        .is_selected(pattern)
    })
}

impl Target {
    /// Whether some old identity is of a type.
    fn was(&self, pattern: &Gvk) -> bool {
        was(&self.gvk, &self.previous, pattern)
    }

    fn original_namespace(&self) -> Text {
        self.previous.first().map_or_else(Text::default, |first| {
            effective_namespace(&first.namespace, false)
        })
    }
}

/// The resource whose fields are updated.
struct Referrer {
    id: String,
    is_cluster_scoped: bool,
    effective: Text,
    /// Namespaces of the service accounts that a role binding names.
    subjects: HashSet<Text>,
    /// The type that `roleRef` asks for.
    role: Option<Gvk>,
    prefixes: Vec<Text>,
    suffixes: Vec<Text>,
}

impl Referrer {
    fn new(resource: &Resource, schema: &Schema) -> Result<Self> {
        let id = resource.id();
        let is_cluster_scoped = resource.is_cluster_scoped(schema);
        let is_binding = id.gvk.kind.as_str() == "RoleBinding" && !is_cluster_scoped;
        Ok(Self {
            effective: effective_namespace(&id.namespace, is_cluster_scoped),
            is_cluster_scoped,
            subjects: if is_binding {
                subject_namespaces(resource)?
            } else {
                HashSet::new()
            },
            role: role_type(&resource.node),
            prefixes: resource.history.prefixes.clone(),
            suffixes: resource.history.suffixes.clone(),
            id: id.to_string(),
        })
    }

    /// Whether a target can be meant at all.
    fn can_see(&self, target: &Target) -> bool {
        if self.is_cluster_scoped || target.is_cluster_scoped {
            return true;
        }
        let is_same = self.effective == target.effective;
        let is_account = target.gvk.kind.as_str() == "ServiceAccount";
        is_same || (is_account && self.subjects.contains(&target.namespace))
    }
}

fn subject_namespaces(resource: &Resource) -> Result<HashSet<Text>> {
    let mut namespaces = HashSet::new();
    let subjects = resource.node.get("subjects").and_then(Node::as_list);
    for subject in subjects.into_iter().flatten() {
        let is_account = subject
            .get("kind")
            .is_some_and(|kind| text(kind).as_str() == "ServiceAccount");
        let Some(namespace) = subject.get("namespace").filter(|_| is_account) else {
            continue;
        };
        if namespace.as_str().is_none() {
            let id = resource.id();
            return Err(Error::refused(format!(
                "invalid input: namespace is blank for resource {id}"
            )));
        }
        namespaces.insert(text(namespace));
    }
    Ok(namespaces)
}

fn role_type(node: &Node) -> Option<Gvk> {
    let role = node.get("roleRef")?;
    let part = |name| role.get(name).map(text);
    Some(Gvk {
        group: part("apiGroup")?,
        version: Text::default(),
        kind: part("kind")?,
    })
}

/// One field of one referrer.
struct Reference<'a> {
    targets: &'a Targets,
    referrer: &'a Referrer,
    target: &'a Gvk,
    spec: &'a FieldSpec,
    budget: &'a Budget,
}

impl Reference<'_> {
    fn update(&self, field: &mut Node) -> Result<()> {
        if field.is_null() {
            return Ok(());
        }
        match &mut field.value {
            Value::Scalar(_) => self.update_name(field),
            Value::Map(_) => self.update_object(field),
            Value::List(list) => {
                for position in 0..list.len() {
                    if list
                        .get(position)
                        .is_some_and(|item| item.as_list().is_some())
                    {
                        return Err(Error::refused(
                            "expected to be either a string or a map of string",
                        ));
                    }
                    let Some(item) = list
                        .items_mut()
                        .get_mut(position)
                        .filter(|item| !item.is_null())
                    else {
                        continue;
                    };
                    match item.as_map() {
                        Some(_) => self.update_object(item)?,
                        None => self.update_name(item)?,
                    }
                }
                Ok(())
            }
        }
    }

    fn update_name(&self, field: &mut Node) -> Result<()> {
        let name = text(field);
        let same_name = |a: &Target, b: &Target| a.name == b.name;
        match self.choose(self.targets.called(&name, self.referrer), same_name)? {
            Some(target) if target.name != name => {
                set_scalar(field, target.name.clone(), NewTag::AsRead)
            }
            _ => Ok(()),
        }
    }

    /// A map with a name and perhaps a namespace: both follow.
    fn update_object(&self, field: &mut Node) -> Result<()> {
        let Some(name) = field.get("name") else {
            return Err(Error::refused("path config error; no 'name' field in node"));
        };
        let name = text(name);
        let candidates = self.in_namespace(&name, field.get("namespace").map(text))?;
        let same = |a: &Target, b: &Target| a.name == b.name && a.namespace == b.namespace;
        let Some(target) = self.choose(candidates.into_iter(), same)? else {
            return Ok(());
        };
        if target.name == name && target.namespace.is_empty() {
            return Ok(());
        }
        if field.as_map().is_none() {
            return Err(wrong_shape("MappingNode", field));
        }
        set_field(
            field,
            "name",
            crate::value::field::plain(target.name.clone()),
        )?;
        if !target.namespace.is_empty() {
            set_field(
                field,
                "namespace",
                crate::value::field::plain(target.namespace.clone()),
            )?;
        }
        Ok(())
    }

    /// Those that began in the namespace; if there are none in the build at all, those that are there now.
    fn in_namespace(&self, name: &Text, namespace: Option<Text>) -> Result<Vec<&Target>> {
        let called: Vec<&Target> = self.targets.called(name, self.referrer).collect();
        self.budget.step(called.len() as u64)?;
        let Some(namespace) = namespace else {
            return Ok(called);
        };
        let places = self.targets.beginnings.get(&namespace);
        self.budget.step(places.map_or(0, HashSet::len) as u64)?;
        let began = self.targets.is_beginning(&namespace, self.referrer);
        let is_meant = |target: &&Target| {
            if began {
                target.original_namespace() == namespace
            } else {
                target.effective == namespace
            }
        };
        Ok(called.into_iter().filter(is_meant).collect())
    }

    /// The one candidate that is meant: by type, then by namespace, then by what was put around its name.
    fn choose<'t>(
        &self,
        candidates: impl Iterator<Item = &'t Target>,
        is_same: impl Fn(&Target, &Target) -> bool,
    ) -> Result<Option<&'t Target>> {
        let referrer = self.referrer;
        let asks_role = self.spec.path.ends_with("roleRef/name");
        let role = referrer.role.as_ref().filter(|_| asks_role);
        let candidates: Vec<&Target> = candidates.collect();
        let identities = candidates.iter().map(|target| target.previous.len() as u64);
        self.budget.step(identities.sum::<u64>() * 2)?;
        let mut left: Vec<&Target> = candidates
            .into_iter()
            .filter(|target| target.was(self.target))
            .filter(|target| role.is_none_or(|role| target.was(role)))
            .filter(|target| referrer.can_see(target))
            .collect();
        if let [only] = left.as_slice() {
            return Ok(Some(only));
        }
        left.retain(|target| is_same_chain(target, referrer, true));
        if left.len() > 1 {
            left.retain(|target| is_same_chain(target, referrer, false));
        }
        let Some(first) = left.first() else {
            return Ok(None);
        };
        if left.iter().skip(1).all(|other| is_same(first, other)) {
            return Ok(Some(first));
        }
        let names: Vec<String> = left
            .iter()
            .map(|target| format!("{}/{}.{}", target.gvk, target.name, target.namespace))
            .collect();
        Err(Error::refused(format!(
            "found multiple possible referrals: {}",
            names.join(", ")
        )))
    }
}

fn is_same_chain(target: &Target, referrer: &Referrer, allow_empty: bool) -> bool {
    let is_same = |a: &[Text], b: &[Text]| {
        (allow_empty && (a.is_empty() || b.is_empty())) || ends_alike(a, b)
    };
    is_same(&target.prefixes, &referrer.prefixes) && is_same(&target.suffixes, &referrer.suffixes)
}

/// Whether the shorter list is the end of the longer one; an empty list only ends an empty one.
fn ends_alike(a: &[Text], b: &[Text]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if short.is_empty() {
        long.is_empty()
    } else {
        long.ends_with(short)
    }
}
