//! What is known about a value without executing anything: what it may be, and what it may contain.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use portolan_yaml::Text;

use super::paths::PathId;
use super::{ReadAnalysis, Site};

/// The most things that one value may be told to be; beyond that all of them count as read.
const MAX_THINGS: usize = 64;

/// The most things that may be merged into one another; beyond that everything counts as read.
const MAX_MERGED: usize = 256;

/// What a value may be: its place in the table of all that values may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Known(u32);

/// All that values may be, each once, so that the many copies of it are small and compared at a glance.
#[derive(Debug)]
pub(super) struct KnownTable {
    entries: Vec<Arc<KnownEntry>>,
    places: HashMap<Arc<KnownEntry>, Known>,
    joins: HashMap<(Known, Known), Known>,
}

#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct KnownEntry {
    things: Vec<Thing>,
    /// The text, if it is always the same.
    text: Option<Text>,
}

/// Something that leads to values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Thing {
    /// The context of a chart, with `Values` in it.
    Chart(u32),
    /// What is at a path of the values.
    Path(PathId),
    /// A dict or list that a template made.
    Object(ObjectId),
}

/// A dict or list that a template made, all that one instruction makes with the same dot taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ObjectId(u32);

/// What may be in a dict or list.
#[derive(Debug, Default)]
pub(super) struct Object {
    fields: BTreeMap<Text, Known>,
    /// What may be under any key.
    anywhere: Known,
    /// What was merged into it.
    merged: Known,
}

impl Known {
    /// Something that holds no value of a chart.
    pub(super) const NOTHING: Self = Self(0);
}

impl Default for Known {
    fn default() -> Self {
        Self::NOTHING
    }
}

impl Default for KnownTable {
    fn default() -> Self {
        let nothing = Arc::new(KnownEntry::default());
        Self {
            entries: vec![Arc::clone(&nothing)],
            places: [(nothing, Known::NOTHING)].into(),
            joins: HashMap::new(),
        }
    }
}

impl KnownTable {
    fn entry(&self, known: Known) -> &Arc<KnownEntry> {
        &self.entries[known.0 as usize]
    }

    fn add(&mut self, entry: KnownEntry) -> Known {
        if let Some(known) = self.places.get(&entry) {
            return *known;
        }
        let (entry, known) = (Arc::new(entry), Known(self.entries.len() as u32));
        self.entries.push(Arc::clone(&entry));
        self.places.insert(entry, known);
        known
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn of(&mut self, things: impl IntoIterator<Item = Thing>) -> Known {
        let mut things: Vec<Thing> = things.into_iter().collect();
        things.sort_unstable();
        things.dedup();
        self.add(KnownEntry { things, text: None })
    }

    pub(super) fn constant(&mut self, text: Text) -> Known {
        self.add(KnownEntry {
            things: Vec::new(),
            text: Some(text),
        })
    }

    pub(super) fn text(&self, known: Known) -> Option<&Text> {
        self.entry(known).text.as_ref()
    }

    fn things(&self, known: Known) -> &[Thing] {
        &self.entry(known).things
    }

    /// What is one or the other.
    pub(super) fn join(&mut self, one: Known, other: Known) -> Known {
        if one == other {
            return one;
        }
        let pair = (one.min(other), one.max(other));
        if let Some(joined) = self.joins.get(&pair) {
            return *joined;
        }
        let (a, b) = (Arc::clone(self.entry(one)), Arc::clone(self.entry(other)));
        let joined = self.of(a.things.iter().chain(&b.things).copied());
        self.joins.insert(pair, joined);
        joined
    }
}

/// The methods of Go's type of a chart's values, all of which lead to everything.
const METHODS: &[&str] = &["AsMap", "Encode", "PathValue", "Table", "YAML"];

impl ReadAnalysis<'_> {
    pub(super) fn join(&mut self, one: Known, other: Known) -> Known {
        let joined = self.known.join(one, other);
        if joined == one || self.known.things(joined).len() <= MAX_THINGS {
            return joined;
        }
        self.read(joined);
        Known::NOTHING
    }

    pub(super) fn things_of(&self, known: Known) -> Vec<Thing> {
        self.known.things(known).to_vec()
    }

    /// What a field of a value may be.
    pub(super) fn field(&mut self, of: Known, name: &str) -> Known {
        // Nearly every value is one thing, and nearly every thing a path.
        if let [Thing::Path(path)] = *self.known.things(of)
            && !self.paths.is_chart(path)
        {
            let below = self.paths.child(path, name);
            return self.known.of([Thing::Path(below)]);
        }
        let mut found = Vec::new();
        let all = self.with_merged(of);
        let is_one = all.len() == 1;
        let mut text = None;
        for thing in all {
            match thing {
                Thing::Chart(chart) => {
                    let values = self.values_of(chart);
                    match name {
                        "Values" => found.extend(values.map(Thing::Path)),
                        // The contexts of charts below, which lead to their values.
                        "Subcharts" => self.read_paths(values),
                        _ => {}
                    }
                }
                Thing::Path(path) if self.paths.is_chart(path) && METHODS.contains(&name) => {
                    self.paths.read(path);
                }
                Thing::Path(path) => found.push(Thing::Path(self.paths.child(path, name))),
                Thing::Object(id) => {
                    let object = self.object(id);
                    let field = object.fields.get(name).copied();
                    let anywhere = self.known.things(object.anywhere);
                    if is_one && anywhere.is_empty() {
                        text = field.and_then(|field| self.known.text(field).cloned());
                    }
                    found.extend(anywhere);
                    found.extend(
                        field
                            .map(|field| self.known.things(field))
                            .unwrap_or_default(),
                    );
                }
            }
        }
        match text {
            Some(text) if found.is_empty() => self.known.constant(text),
            _ => self.bounded(found),
        }
    }

    /// What an item of a list or a value of a map may be. All keys of values are read for that.
    pub(super) fn elements(&mut self, of: Known) -> Known {
        let mut found = Vec::new();
        for thing in self.with_merged(of) {
            match thing {
                Thing::Chart(chart) => {
                    let values = self.values_of(chart);
                    self.read_paths(values);
                }
                Thing::Path(path) => self.paths.read(path),
                Thing::Object(id) => {
                    let object = self.object(id);
                    let all = object.fields.values().chain([&object.anywhere]);
                    for known in all {
                        found.extend(self.known.things(*known));
                    }
                    self.steps += found.len();
                }
            }
        }
        self.bounded(found)
    }

    /// Notes that everything in a value is read.
    pub(super) fn read(&mut self, value: Known) {
        let mut rest = self.things_of(value);
        let mut seen: HashSet<ObjectId> = HashSet::new();
        while let Some(thing) = rest.pop() {
            self.steps += 1;
            match thing {
                Thing::Chart(chart) => {
                    let values = self.values_of(chart);
                    self.read_paths(values);
                }
                Thing::Path(path) => self.paths.read(path),
                Thing::Object(id) if seen.insert(id) => {
                    let object = self.object(id);
                    let fields = object.fields.values();
                    for known in fields.chain([&object.anywhere, &object.merged]) {
                        rest.extend(self.known.things(*known));
                    }
                }
                Thing::Object(_) => {}
            }
        }
    }

    /// Notes that it is asked whether a value is empty.
    pub(super) fn test(&mut self, value: Known) {
        for thing in self.with_merged(value) {
            if let Thing::Path(path) = thing {
                self.paths.test(path);
            }
        }
    }

    /// The charts whose context a value is, and whatever else it is.
    pub(super) fn split_charts(&mut self, value: Known) -> (BTreeSet<u32>, Known) {
        let mut charts = BTreeSet::new();
        let mut others = Vec::new();
        for thing in self.with_merged(value) {
            match thing {
                Thing::Chart(chart) => {
                    charts.insert(chart);
                }
                Thing::Path(_) => others.push(thing),
                Thing::Object(id) => {
                    let object = self.object(id);
                    others.extend(self.known.things(object.anywhere));
                    for (key, known) in &object.fields {
                        let chart_of = |thing: &Thing| {
                            let mut charts = self.charts.iter();
                            charts.position(|values| Thing::Path(*values) == *thing)
                        };
                        for thing in self.known.things(*known) {
                            // A dict with a chart's `Values` in it stands for the chart's context.
                            match chart_of(thing).filter(|_| key == "Values") {
                                Some(chart) => drop(charts.insert(chart as u32)),
                                None => others.push(*thing),
                            }
                        }
                    }
                }
            }
        }
        (charts, self.known.of(others))
    }

    /// The dict or list that is made at a place.
    pub(super) fn made(&mut self, site: Site) -> ObjectId {
        let next = ObjectId(self.objects.len() as u32);
        let id = *self.sites.entry(site).or_insert(next);
        if id == next {
            self.objects.push(Object::default());
        }
        id
    }

    pub(super) fn add_field(&mut self, id: ObjectId, key: Option<&Text>, value: Known) {
        let object = self.object(id);
        let before = match key {
            Some(key) => object.fields.get(key).copied(),
            None => Some(object.anywhere),
        };
        let after = match before {
            Some(before) => self.join(before, value),
            None => value,
        };
        if before == Some(after) {
            return;
        }
        self.has_grown = true;
        if let Some(object) = self.objects.get_mut(id.0 as usize) {
            match key {
                Some(key) => drop(object.fields.insert(key.clone(), after)),
                None => object.anywhere = after,
            }
        }
    }

    pub(super) fn add_merged(&mut self, id: ObjectId, value: Known) {
        let merged = self.object(id).merged;
        let own = Thing::Object(id);
        let both = self
            .things_of(merged)
            .into_iter()
            .chain(self.things_of(value));
        let after = self.bounded(both.filter(|thing| *thing != own).collect());
        if let Some(object) = self.objects.get_mut(id.0 as usize) {
            self.has_grown |= after != merged;
            object.merged = after;
        }
    }

    /// What a value may be, and what was merged into that.
    fn with_merged(&mut self, value: Known) -> Vec<Thing> {
        let things = self.known.things(value);
        let mut all = things.to_vec();
        let mut next = 0;
        while let Some(thing) = all.get(next) {
            next += 1;
            if next > MAX_MERGED {
                self.paths.read_everything();
                return Vec::new();
            }
            if let Thing::Object(id) = *thing {
                for merged in self.known.things(self.object(id).merged) {
                    if !all.contains(merged) {
                        all.push(*merged);
                    }
                }
            }
        }
        all
    }

    fn object(&self, id: ObjectId) -> &Object {
        &self.objects[id.0 as usize]
    }

    fn values_of(&self, chart: u32) -> Option<PathId> {
        self.charts.get(chart as usize).copied()
    }

    fn read_paths(&mut self, path: Option<PathId>) {
        if let Some(path) = path {
            self.paths.read(path);
        }
    }

    fn bounded(&mut self, things: Vec<Thing>) -> Known {
        let known = self.known.of(things);
        if self.known.things(known).len() <= MAX_THINGS {
            return known;
        }
        self.read(known);
        Known::NOTHING
    }
}
