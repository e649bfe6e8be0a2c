//! The result of a comparison: changes, images, restarts and dangers.

use std::collections::HashMap;

use portolan_object::{FieldPath, FieldSegment, Finding, Object, ObjectId, Owner, Place, Severity};
use portolan_secret::is_secret;
use portolan_yaml::Text;

use crate::danger::{self, Subject, World};
use crate::failure::Failure;
use crate::field::{Difference, Field, Shown, compare};
use crate::image::{ImageChange, image_changes};
use crate::mask::Mask;
use crate::pairing::{Owned, Pair, pair, stable_name};
use crate::restart::{self, Restart};
use crate::side::Batch;
use crate::strip::StripAttributes;

/// Says why an API server refuses an object, when its API version is not served.
pub type Unserved = Box<dyn Fn(&Object) -> Option<String>>;

/// What a caller can choose about a comparison.
#[derive(Default)]
pub struct Options {
    /// Labels and annotations whose changes are left out.
    pub strip: StripAttributes,
    /// Finds objects that the cluster would refuse; without it none is looked for.
    pub unserved: Option<Unserved>,
    /// What could not be rendered on a side.
    pub failures: Vec<Failure>,
    /// How many releases were not rendered because their inputs are equal on both sides.
    pub equal_inputs: usize,
}

/// How an object differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// Only the new side has it.
    Added,
    /// Only the old side had it.
    Removed,
    /// Both have it, with other content.
    Changed,
}

/// An object that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The object; of a renamed one, by its new name.
    pub id: ObjectId,
    /// Who renders it, or did.
    pub owner: Owner,
    /// How it differs.
    pub kind: ChangeKind,
    /// The old name of a generated object whose content changed.
    pub renamed_from: Option<Text>,
    /// The fields that differ. An added or removed object is one field with an empty path.
    pub fields: Vec<Field>,
    /// Where it is written.
    pub place: Option<Place>,
    /// What in the files it comes from, where the caller knows.
    pub causes: Vec<Cause>,
}

/// A line that brought a change about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Where it stands.
    pub place: Place,
    /// The value or variable that is set there; empty when the line itself is the changed field.
    pub name: Text,
}

/// Everything that differs between two sides; nothing in it is secret.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The objects, by owner and name.
    pub changes: Vec<Change>,
    /// The images, by name.
    pub images: Vec<ImageChange>,
    /// The workloads that replace their pods.
    pub restarts: Vec<Restart>,
    /// What is dangerous, gravest first.
    pub dangers: Vec<Finding>,
    /// What could not be rendered on a side, changes first, then by owner.
    pub failures: Vec<Failure>,
    /// How many releases were not rendered because their inputs are equal on both sides.
    pub equal_inputs: usize,
    /// How many objects differ only in labels and annotations that are left out.
    pub stripped: usize,
    /// What was not looked at on either side, or only nearly.
    pub not_covered: Vec<Finding>,
}

/// How much of everything there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Objects that changed.
    pub changed: usize,
    /// Objects that were added.
    pub added: usize,
    /// Objects that were removed.
    pub removed: usize,
    /// Images that changed.
    pub images: usize,
    /// Workloads that restart.
    pub restarts: usize,
    /// Errors and warnings among the dangers; notes are none.
    pub dangers: usize,
    /// Changes of unknown content, for a side could not be rendered.
    pub not_rendered: usize,
}

/// Compares two sides.
pub fn diff(old: &[Batch], new: &[Batch], options: &Options) -> Report {
    let pairs = pair(old, new);
    let renamed = renamed(&pairs);
    let mut subjects: Vec<Subject<'_>> = pairs
        .iter()
        .filter_map(|pair| subject(*pair, &renamed))
        .collect();
    subjects.sort_by_key(|subject| sort_key(&subject.pair));
    if subjects.is_empty() && options.failures.is_empty() {
        return Report {
            equal_inputs: options.equal_inputs,
            ..Report::default()
        };
    }
    let mask = Mask::new(old.iter().chain(new));
    let world = World::new(old, new);
    let restarts = subjects.iter().filter_map(restart_of).collect();
    let dangers = danger::lint(&subjects, &world, &mask, options.unserved.as_ref());
    let differing = subjects.len();
    let changes: Vec<Change> = subjects
        .into_iter()
        .filter_map(|subject| change(subject, &options.strip, &mask))
        .collect();
    Report {
        stripped: differing - changes.len(),
        changes,
        images: image_changes(&pairs, &mask),
        restarts,
        dangers,
        failures: failures(options, &mask),
        equal_inputs: options.equal_inputs,
        not_covered: Vec::new(),
    }
}

fn failures(options: &Options, mask: &Mask) -> Vec<Failure> {
    let failures = options.failures.iter();
    let mut failures: Vec<Failure> = failures.map(|failure| failure.masked(mask)).collect();
    failures.sort_by(|one, other| {
        let key = |failure: &Failure| (!failure.is_change(), failure.owner.clone());
        key(one).cmp(&key(other))
    });
    failures
}

/// The old and new names of generated objects, and what to call them.
type Renamed<'a> = HashMap<(&'a str, &'a str, &'a str), (&'a str, Text)>;

fn renamed<'a>(pairs: &[Pair<'a>]) -> Renamed<'a> {
    let mut renamed = Renamed::new();
    for pair in pairs {
        let Pair::Both { old, new } = pair else {
            continue;
        };
        let (old_id, new_id) = (old.object.id(), new.object.id());
        if old_id.name != new_id.name {
            let name = stable_name(&new_id.name);
            let title = format!("{} {}/{name}", new_id.gvk.kind, new_id.namespace);
            let key = (&*old.owner.cluster, &*old_id.namespace, &*old_id.name);
            renamed.insert(key, (&new_id.name, Text::from(title)));
        }
    }
    renamed
}

/// An object that differs, with its fields; nothing when it does not.
fn subject<'a>(pair: Pair<'a>, renamed: &Renamed<'a>) -> Option<Subject<'a>> {
    let whole = |owned: Owned<'_>| Shown::Value(owned.object.node().clone());
    let root = |difference| Field {
        path: FieldPath::root(),
        difference,
        restarts: false,
        follows: None,
    };
    let fields = match pair {
        Pair::Added(new) => vec![root(Difference::Added(whole(new)))],
        Pair::Removed(old) => vec![root(Difference::Removed(whole(old)))],
        Pair::Both { old, new } => {
            let mut fields = compare(old.object.node(), new.object.node());
            for field in &mut fields {
                field.follows = followed(field, new, renamed);
            }
            restart::mark(new.object, &mut fields);
            fields
        }
    };
    (!fields.is_empty()).then_some(Subject { pair, fields })
}

/// The generated object whose new name a field took over.
fn followed(field: &Field, new: Owned<'_>, renamed: &Renamed<'_>) -> Option<Text> {
    let by_value = || {
        let (from, to) = (field.from()?.as_str()?, field.to()?.as_str()?);
        let (name, title) = new_name(renamed, new, from)?;
        (*name == to).then(|| title.clone())
    };
    let is_own_name = field.path == FieldPath::parse("metadata.name");
    // A list that goes by name, such as `imagePullSecrets`, lost the item of the old name and has one of the new.
    let by_item = || {
        let Some(FieldSegment::Item(item)) = field.path.segments().last() else {
            return None;
        };
        let is_new = |(name, title): &(&str, Text)| (*name == item.as_str()).then(|| title.clone());
        new_name(renamed, new, item)
            .map(|(_, title)| title.clone())
            .or_else(|| renamed.values().find_map(is_new))
    };
    by_value().or_else(by_item).filter(|_| !is_own_name)
}

/// What a generated object in the namespace of `near` is called now.
fn new_name<'r>(
    renamed: &'r Renamed<'r>,
    near: Owned<'r>,
    old_name: &'r str,
) -> Option<&'r (&'r str, Text)> {
    renamed.get(&(&*near.owner.cluster, near.object.namespace(), old_name))
}

fn restart_of(subject: &Subject<'_>) -> Option<Restart> {
    let Pair::Both { new, .. } = subject.pair else {
        return None;
    };
    restart::restart(new.object, new.owner, &subject.fields)
}

/// The change as it may be shown; nothing when all that differs is to be left out.
fn change(subject: Subject<'_>, strip: &StripAttributes, mask: &Mask) -> Option<Change> {
    let (kind, shown) = match subject.pair {
        Pair::Added(new) => (ChangeKind::Added, new),
        Pair::Removed(old) => (ChangeKind::Removed, old),
        Pair::Both { new, .. } => (ChangeKind::Changed, new),
    };
    let renamed_from = match subject.pair {
        Pair::Both { old, new } if old.object.name() != new.object.name() => {
            Some(old.object.id().name.clone())
        }
        _ => None,
    };
    let mut fields = subject.fields;
    fields.retain(|field| !strip.covers(&field.path));
    for field in &mut fields {
        mask.hide(shown.object.gvk(), field);
    }
    (!fields.is_empty()).then(|| Change {
        id: shown.object.id().clone(),
        owner: shown.owner.clone(),
        kind,
        renamed_from,
        fields,
        place: shown.object.place(),
        causes: Vec::new(),
    })
}

/// Changes stand by owner, then by object.
fn sort_key(pair: &Pair<'_>) -> (Owner, ObjectId) {
    let (Pair::Added(shown) | Pair::Removed(shown) | Pair::Both { new: shown, .. }) = pair;
    (shown.owner.clone(), shown.object.id().clone())
}

impl Report {
    /// Whether both sides are known to be the same.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.restarts.is_empty() && self.unknown_changes().count() == 0
    }

    /// The changes of unknown content: those of what could not be rendered on a side.
    pub fn unknown_changes(&self) -> impl Iterator<Item = &Failure> {
        self.failures.iter().filter(|failure| failure.is_change())
    }

    /// How much of everything there is.
    pub fn counts(&self) -> Counts {
        let of = |kind| {
            self.changes
                .iter()
                .filter(|change| change.kind == kind)
                .count()
        };
        Counts {
            changed: of(ChangeKind::Changed),
            added: of(ChangeKind::Added),
            removed: of(ChangeKind::Removed),
            images: self.images.len(),
            restarts: self.restarts.len(),
            dangers: self
                .dangers
                .iter()
                .filter(|danger| danger.severity > Severity::Note)
                .count(),
            not_rendered: self.unknown_changes().count(),
        }
    }

    /// The restart of an object, if it does.
    pub fn restart(&self, change: &Change) -> Option<&Restart> {
        let is_it = |restart: &&Restart| restart.id == change.id && restart.owner == change.owner;
        self.restarts.iter().find(is_it)
    }

    /// What is dangerous about a change.
    pub fn dangers_of<'a>(&'a self, change: &'a Change) -> impl Iterator<Item = &'a Finding> {
        let is_it = |danger: &&Finding| {
            danger.object.as_ref() == Some(&change.id)
                && danger.owner.as_ref() == Some(&change.owner)
        };
        self.dangers.iter().filter(is_it)
    }
}

impl Change {
    /// Whether values are not shown because they are secret.
    pub fn hides_values(&self) -> bool {
        is_secret(&self.id.gvk)
            || self.fields.iter().any(|field| {
                matches!(
                    field.difference,
                    Difference::Added(Shown::Hidden)
                        | Difference::Removed(Shown::Hidden)
                        | Difference::Changed(Shown::Hidden, _)
                )
            })
    }

    /// The fields that are news: not those that only follow the new name of a generated object.
    pub fn news(&self) -> impl Iterator<Item = &Field> {
        let own_name = FieldPath::parse("metadata.name");
        self.fields.iter().filter(move |field| {
            field.follows.is_none() && (self.renamed_from.is_none() || field.path != own_name)
        })
    }
}

impl ChangeKind {
    /// The word for it: `added`, `removed` or `changed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }
}
