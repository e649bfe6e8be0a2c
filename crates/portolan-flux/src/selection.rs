//! Which Kustomizations and HelmReleases are selected, and which of their objects, in `build`, `diff` and `test`.
//!
//! ```text
//! Selection ──demand──▶ what has to be rendered
//!           ──selects_owner, selects_object──▶ what is printed, compared or judged
//!           ──check──▶ what of it nothing has
//! ```

use portolan_object::{
    Candidate, Gvk, KindNames, NoMatch, Noun, Object, ObjectId, ObjectName, ObjectSelection,
    OwnerKind,
};
use portolan_yaml::Text;

use crate::api::NamespacedName;
use crate::demand::{Demand, Depth, Name, Wanted};

/// Owners, and objects of theirs.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Which kinds of owners.
    pub owners: OwnerKinds,
    /// Names and the namespace are those of owners; a name with another kind is that of an object, if owners of all
    /// kinds are meant. Labels and kinds are those of objects.
    pub objects: ObjectSelection,
}

/// Kinds of owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerKinds {
    /// Kustomizations.
    Kustomizations,
    /// HelmReleases.
    Releases,
    /// These, and whatever else applies objects.
    All,
}

/// What there is to select from.
#[derive(Debug)]
pub struct Selectable<'a> {
    /// What kinds are called.
    pub kinds: KindNames,
    /// Every owner.
    pub owners: Vec<SelectableOwner<'a>>,
    /// Every object with its owner's place in `owners`.
    pub objects: Vec<(usize, Candidate<'a>)>,
}

/// An owner that may be meant.
#[derive(Debug)]
pub struct SelectableOwner<'a> {
    /// Its names and labels.
    pub candidate: Candidate<'a>,
    /// Whether its objects are known.
    pub is_rendered: bool,
}

impl Selection {
    /// What has to be rendered: what is named and what that is made of, or everything of the kind.
    pub fn demand(&self) -> Demand {
        if self
            .objects
            .names
            .iter()
            .any(|name| self.names_object(name))
        {
            return Depth::Releases.into();
        }
        let wanted = |kinds: OwnerKinds, kind: OwnerKind| {
            if self.owners != kinds && self.owners != OwnerKinds::All {
                return Wanted::None;
            }
            match (self.objects.names.as_slice(), &self.objects.namespace) {
                ([], None) => Wanted::All,
                ([], Some(namespace)) => Wanted::In(Text::from(namespace.as_str())),
                (names, _) => Wanted::Named(self.names_of(names, kind)),
            }
        };
        Demand {
            kustomizations: wanted(OwnerKinds::Kustomizations, OwnerKind::Kustomization),
            releases: wanted(OwnerKinds::Releases, OwnerKind::Release),
        }
    }

    /// What has to be rendered if a name was not found: its first part may be a kind that the repository defines.
    /// `None` if no name can be of that form.
    pub fn wider_demand(&self) -> Option<Demand> {
        let is_named_so = |name: &ObjectName| name.kind_word().is_some() && !names_owner(name);
        let is_possible = self.owners == OwnerKinds::All;
        let mut names = self.objects.names.iter();
        (is_possible && names.any(is_named_so)).then(|| Depth::Releases.into())
    }

    fn names_of(&self, names: &[ObjectName], kind: OwnerKind) -> Vec<Name> {
        let kinds = KindNames::default();
        let may_be = |name: &&ObjectName| {
            let word = name.kind_word().filter(|_| names_owner(name));
            word.is_none_or(|word| kinds.is(word, &owner_gvk(kind)))
        };
        let name = |name: &ObjectName| Name {
            namespace: name
                .namespace()
                .or(self.objects.namespace.as_deref())
                .map(Text::from),
            name: Text::from(name.name()),
        };
        names.iter().filter(may_be).map(name).collect()
    }

    /// Whether a name is that of an object that owns nothing, by its kind.
    fn names_object(&self, name: &ObjectName) -> bool {
        let is_kind = |word: &str| KindNames::default().knows(word);
        self.owners == OwnerKinds::All
            && !names_owner(name)
            && name.kind_word().is_some_and(is_kind)
    }

    /// Whether an owner is meant, with all of its objects.
    pub fn selects_owner(&self, kinds: &KindNames, kind: OwnerKind, id: &NamespacedName) -> bool {
        self.owners.include(kind)
            && self.objects.has_namespace(&id.namespace)
            && (self.objects.names.is_empty()
                || self
                    .objects
                    .names
                    .iter()
                    .any(|name| name.matches(kinds, &owner_gvk(kind), &id.namespace, &id.name)))
    }

    /// Whether an object is meant that its owner, meant or not, brings.
    pub fn selects_object(
        &self,
        kinds: &KindNames,
        is_owner_meant: bool,
        id: &ObjectId,
        object: &Object,
    ) -> bool {
        self.objects.has_kind(kinds, &id.gvk)
            && self.objects.has_labels(Some(object))
            && (is_owner_meant || self.is_named(kinds, &id.gvk, &id.namespace, &id.name))
    }

    /// Whether objects are named one by one.
    pub fn may_name_objects(&self) -> bool {
        self.owners == OwnerKinds::All
            && self
                .objects
                .names
                .iter()
                .any(|name| name.kind_word().is_some())
    }

    /// Whether every object of every owner is meant.
    pub fn is_everything(&self) -> bool {
        self.owners == OwnerKinds::All && self.objects.is_everything()
    }

    fn is_named(&self, kinds: &KindNames, gvk: &Gvk, namespace: &str, name: &str) -> bool {
        let is_it = |one: &ObjectName| {
            one.kind_word().is_some_and(|word| kinds.is(word, gvk))
                && one.matches(kinds, gvk, namespace, name)
        };
        self.owners == OwnerKinds::All
            && OwnerKind::of(gvk).is_none()
            && self.objects.has_namespace(namespace)
            && self.objects.names.iter().any(is_it)
    }

    /// Refuses whatever of the selection nothing has, with what is near to it.
    pub fn check(&self, there: &Selectable<'_>) -> Result<(), NoMatch> {
        let noun = self.owners.noun();
        let owners = there.owners.iter().map(|owner| &owner.candidate);
        let owners: Vec<&Candidate<'_>> = owners
            .filter(|one| OwnerKind::of(&one.gvk).is_some_and(|kind| self.owners.include(kind)))
            .collect();
        self.check_namespace(noun, &owners, there)?;
        let missing = self.missing(&owners, there);
        if missing.is_empty() {
            return self.check_objects(there);
        }
        let objects = there.objects.iter().map(|(_, one)| one.clone());
        Err(if missing.iter().all(|name| self.names_object(name)) {
            let objects: Vec<_> = objects.collect();
            NoMatch::object_names(OBJECT, &there.kinds, &missing, &objects)
        } else {
            let owners: Vec<_> = owners.into_iter().cloned().collect();
            NoMatch::object_names(noun, &there.kinds, &missing, &owners)
        })
    }

    fn check_namespace(
        &self,
        noun: Noun,
        owners: &[&Candidate<'_>],
        there: &Selectable<'_>,
    ) -> Result<(), NoMatch> {
        let Some(wanted) = &self.objects.namespace else {
            return Ok(());
        };
        let is_there = |one: &Candidate<'_>| one.namespace == wanted;
        let holds_objects = || there.objects.iter().any(|(_, one)| is_there(one));
        if owners.iter().any(|one| is_there(one)) || (self.may_name_objects() && holds_objects()) {
            return Ok(());
        }
        let refused = NoMatch::namespace(noun, wanted, owners.iter().map(|one| one.namespace));
        Err(if holds_objects() {
            let command = format!("`portolan get objects -n {wanted}` lists them");
            refused.with_hint(format!("only objects of theirs do; {command}"))
        } else {
            refused
        })
    }

    /// The names that nothing has.
    fn missing(&self, owners: &[&Candidate<'_>], there: &Selectable<'_>) -> Vec<&ObjectName> {
        let is_owner = |name: &ObjectName| {
            let mut named = owners.iter().filter(|one| one.is(&there.kinds, name));
            named.any(|one| self.objects.has_namespace(one.namespace))
        };
        let is_object = |name: &ObjectName| {
            let mut objects = there.objects.iter().map(|(_, one)| one);
            objects.any(|one| {
                self.is_named(&there.kinds, &one.gvk, one.namespace, one.name)
                    && one.is(&there.kinds, name)
            })
        };
        let names = self.objects.names.iter();
        names
            .filter(|name| !is_owner(name) && !is_object(name))
            .collect()
    }

    /// Refuses labels and kinds that no object of what is named has.
    fn check_objects(&self, there: &Selectable<'_>) -> Result<(), NoMatch> {
        let kinds = &there.kinds;
        let filter = ObjectSelection {
            names: Vec::new(),
            namespace: None,
            ..self.objects.clone()
        };
        if filter.is_everything() {
            return Ok(());
        }
        let meant = there.owners.iter();
        let meant: Vec<bool> = meant
            .map(|one| self.is_meant(kinds, &one.candidate))
            .collect();
        let mut rendered = there.owners.iter().zip(&meant);
        if rendered.any(|(owner, is_meant)| *is_meant && !owner.is_rendered) {
            // What is not known may have anything.
            let objects: Vec<_> = there.objects.iter().map(|(_, one)| one.clone()).collect();
            let unknown = NoMatch::unknown_kind(&filter, kinds, &objects);
            return unknown.map_or(Ok(()), Err);
        }
        let is_meant = |owner: usize, one: &Candidate<'_>| {
            meant.get(owner) == Some(&true)
                || self.is_named(kinds, &one.gvk, one.namespace, one.name)
        };
        let objects = there.objects.iter();
        let objects = objects.filter(|(owner, one)| is_meant(*owner, one));
        let objects: Vec<_> = objects.map(|(_, one)| one.clone()).collect();
        filter.check(kinds, OBJECT, &objects)
    }

    fn is_meant(&self, kinds: &KindNames, owner: &Candidate<'_>) -> bool {
        OwnerKind::of(&owner.gvk).is_some_and(|kind| {
            let id = NamespacedName::new(owner.namespace.to_owned(), owner.name.to_owned());
            self.selects_owner(kinds, kind, &id)
        })
    }
}

impl OwnerKinds {
    /// Whether owners of a kind are meant.
    pub fn include(self, kind: OwnerKind) -> bool {
        match self {
            Self::Kustomizations => kind == OwnerKind::Kustomization,
            Self::Releases => kind == OwnerKind::Release,
            Self::All => true,
        }
    }

    fn noun(self) -> Noun {
        let (singular, list_command) = match self {
            Self::Kustomizations => ("Kustomization", "portolan get ks"),
            Self::Releases => ("HelmRelease", "portolan get hr"),
            Self::All => ("Kustomization or HelmRelease", "portolan get hr --tree"),
        };
        Noun {
            singular,
            list_command,
        }
    }
}

/// What objects are called.
pub const OBJECT: Noun = Noun {
    singular: "object",
    list_command: "portolan get objects",
};

/// The kind of an owner; its version does not matter here.
pub fn owner_gvk(kind: OwnerKind) -> Gvk {
    Gvk::new(kind.group(), "v1", kind.as_str())
}

/// Whether a name says that an owner is meant: by its kind, or because it has none.
fn names_owner(name: &ObjectName) -> bool {
    let kinds = KindNames::default();
    let is_owner = |word: &str| {
        let mut owners = OwnerKind::ALL.into_iter();
        owners.any(|kind| kinds.is(word, &owner_gvk(kind)))
    };
    name.kind_word().is_none_or(is_owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(owners: OwnerKinds, names: &[&str], namespace: Option<&str>) -> Selection {
        Selection {
            owners,
            objects: ObjectSelection {
                names: names.iter().map(|name| name.parse().unwrap()).collect(),
                namespace: namespace.map(str::to_owned),
                ..ObjectSelection::default()
            },
        }
    }

    fn named(namespace: Option<&str>, name: &str) -> Wanted {
        Wanted::Named(vec![Name {
            namespace: namespace.map(Text::from),
            name: Text::from(name),
        }])
    }

    #[test]
    fn a_name_with_an_owners_kind_asks_for_that_owner_alone() {
        let demand = selection(OwnerKinds::All, &["hr/web"], Some("apps")).demand();
        assert_eq!(demand.releases, named(Some("apps"), "web"));
        assert_eq!(demand.kustomizations, Wanted::Named(Vec::new()));
    }

    #[test]
    fn a_name_in_a_namespace_asks_for_owners_of_both_kinds() {
        let demand = selection(OwnerKinds::All, &["apps/web"], None).demand();
        assert_eq!(demand.releases, named(Some("apps"), "web"));
        assert_eq!(demand.kustomizations, named(Some("apps"), "web"));
    }

    #[test]
    fn an_object_may_come_from_anywhere() {
        let everything = Demand::from(Depth::Releases);
        assert_eq!(
            selection(OwnerKinds::All, &["deploy/web"], None).demand(),
            everything
        );
        // `ingress` is a namespace here: only owners are meant.
        let demand = selection(OwnerKinds::Releases, &["ingress/web"], None).demand();
        assert_eq!(demand.releases, named(None, "web"));
    }

    #[test]
    fn a_kind_of_a_definition_is_looked_for_everywhere_in_a_second_step() {
        let by_definition = selection(OwnerKinds::All, &["cert/web"], None);
        assert_eq!(by_definition.wider_demand(), Some(Depth::Releases.into()));
        assert_eq!(
            selection(OwnerKinds::All, &["web"], None).wider_demand(),
            None
        );
        let releases = selection(OwnerKinds::Releases, &["cert/web"], None);
        assert_eq!(releases.wider_demand(), None);
    }

    #[test]
    fn owners_are_meant_by_kind_namespace_and_name() {
        let kinds = KindNames::default();
        let id = NamespacedName::new("apps", "web");
        let is_meant =
            |selection: Selection| selection.selects_owner(&kinds, OwnerKind::Release, &id);
        assert!(is_meant(selection(OwnerKinds::All, &[], None)));
        assert!(is_meant(selection(
            OwnerKinds::Releases,
            &["hr/web"],
            Some("apps")
        )));
        assert!(!is_meant(selection(
            OwnerKinds::Kustomizations,
            &["web"],
            None
        )));
        assert!(!is_meant(selection(OwnerKinds::All, &["ks/web"], None)));
        assert!(!is_meant(selection(
            OwnerKinds::All,
            &["web"],
            Some("shop")
        )));
    }
}
