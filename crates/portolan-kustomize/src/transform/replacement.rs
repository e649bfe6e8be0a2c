//! `replacements`: a value of one resource, copied into fields of others.

use portolan_budget::Budget;
use portolan_yaml::{Node, Scalar, Style, Tag, Text, Value};

use super::path::{Create, lookup, split, visit};
use super::structured::set_inside_text;
use crate::config::read_gvk;
use crate::error::{During, Error, Result};
use crate::load::decode::{Fields, Strictness, list};
use crate::resource::Resource;
use crate::resource::id::ResourceId;
use crate::resource::selector::{Matcher, Selector};
use crate::resource::set::ResourceSet;
use crate::schema::Schema;
use crate::value::cost::{Cost, RESOURCE_STEPS, charge_value, charge_walk};
use crate::value::field::{UNTYPED, check_new_key, is_blank, plain_tag, text};

const DEFAULT_PATH: &str = "metadata.name";

/// An entry of `replacements`: a file, or the replacement itself.
#[derive(Debug, Clone)]
pub(crate) struct ReplacementEntry {
    pub(crate) path: Text,
    pub(crate) inline: Option<Replacement>,
}

/// One source and its targets.
#[derive(Debug, Clone)]
pub(crate) struct Replacement {
    source: Option<Source>,
    source_value: Option<Text>,
    targets: Option<Vec<Target>>,
}

#[derive(Debug, Clone)]
struct Source {
    id: ResourceId,
    path: Text,
    options: Options,
}

#[derive(Debug, Clone)]
struct Target {
    select: Option<Selector>,
    reject: Vec<Selector>,
    paths: Vec<Text>,
    options: Options,
}

#[derive(Debug, Clone, Default)]
struct Options {
    delimiter: Text,
    index: i64,
    create: bool,
}

// === reading ===

impl ReplacementEntry {
    pub(crate) fn read(node: &Node, strictness: Strictness) -> Result<Self> {
        let names = ["path", "source", "targets", "sourceValue"];
        let fields = Fields::read(node, "ReplacementField", &names, strictness)?;
        let path = fields.text("path")?;
        if !path.is_empty() && (fields.has("source") || fields.has("targets")) {
            return Err(Error::refused(
                "cannot specify both path and inline replacement",
            ));
        }
        let inline = if path.is_empty() {
            let mut inline = Replacement::from_fields(&fields)?;
            // An empty list is lost on the way to the transformer; a file of replacements keeps it.
            inline.targets = inline.targets.filter(|targets| !targets.is_empty());
            Some(inline)
        } else {
            None
        };
        Ok(Self { path, inline })
    }
}

impl Replacement {
    /// Reads a file of one replacement, or of a list of them.
    pub(crate) fn read_file(document: &Node) -> Result<Vec<Self>> {
        match &document.value {
            Value::List(list) => list.iter().map(Self::read).collect(),
            Value::Map(_) => Ok(vec![Self::read(document)?]),
            Value::Scalar(_) => Err(Error::refused(
                "unsupported replacement type encountered within replacement path",
            )),
        }
    }

    fn read(node: &Node) -> Result<Self> {
        let names = ["source", "targets", "sourceValue"];
        Self::from_fields(&Fields::read(
            node,
            "Replacement",
            &names,
            Strictness::Lenient,
        )?)
    }

    fn from_fields(fields: &Fields<'_>) -> Result<Self> {
        let strictness = fields.strictness();
        let source = fields
            .get("source")
            .map(|node| Source::read(node, strictness))
            .transpose()?;
        let source_value = if fields.has("sourceValue") {
            Some(fields.text("sourceValue")?)
        } else {
            None
        };
        let targets = match fields.get("targets") {
            None => None,
            Some(node) => Some(
                list(Some(node), "targets")?
                    .map(|node| Target::read(node, strictness))
                    .collect::<Result<Vec<_>>>()?,
            ),
        };
        Ok(Self {
            source,
            source_value,
            targets,
        })
    }
}

impl Source {
    fn read(node: &Node, strictness: Strictness) -> Result<Self> {
        let names = [
            "group",
            "version",
            "kind",
            "name",
            "namespace",
            "fieldPath",
            "options",
        ];
        let fields = Fields::read(node, "SourceSelector", &names, strictness)?;
        let mut path = fields.text("fieldPath")?;
        if path.is_empty() {
            path = Text::from_static(DEFAULT_PATH);
        }
        let id = ResourceId {
            gvk: read_gvk(&fields)?,
            name: fields.text("name")?,
            namespace: fields.text("namespace")?,
        };
        Ok(Self {
            id,
            path,
            options: Options::read(&fields)?,
        })
    }
}

impl Target {
    fn read(node: &Node, strictness: Strictness) -> Result<Self> {
        let names = ["select", "reject", "fieldPaths", "options"];
        let fields = Fields::read(node, "TargetSelector", &names, strictness)?;
        let mut paths = fields.texts("fieldPaths")?;
        if paths.is_empty() {
            paths.push(Text::from_static(DEFAULT_PATH));
        }
        let reject = list(fields.get("reject"), "reject")?;
        Ok(Self {
            select: fields
                .get("select")
                .map(|node| Selector::read(node, strictness))
                .transpose()?,
            reject: reject
                .map(|node| Selector::read(node, strictness))
                .collect::<Result<_>>()?,
            paths,
            options: Options::read(&fields)?,
        })
    }
}

impl Options {
    fn read(fields: &Fields<'_>) -> Result<Self> {
        let Some(node) = fields.get("options") else {
            return Ok(Self::default());
        };
        let names = ["delimiter", "index", "encoding", "create"];
        let fields = Fields::read(node, "FieldOptions", &names, fields.strictness())?;
        Ok(Self {
            delimiter: fields.text("delimiter")?,
            index: fields.int("index")?.unwrap_or_default(),
            create: fields.flag("create")?,
        })
    }
}

// === applying ===

/// Applies replacements one after the other.
pub(crate) fn replace(
    set: &mut ResourceSet,
    replacements: &[Replacement],
    schema: &Schema,
    budget: &Budget,
) -> Result<()> {
    for replacement in replacements {
        let has_source = replacement.source.is_some() || replacement.source_value.is_some();
        let Some(targets) = replacement.targets.as_ref().filter(|_| has_source) else {
            return Err(Error::refused(
                "replacements must specify a source and at least one target",
            ));
        };
        let value = find_value(set, replacement, schema, budget)?;
        let cost = charge_value(&value, budget, "replacements")?;
        for target in targets {
            Copying {
                value: &value,
                cost,
                target,
                budget,
            }
            .apply(set, schema)?;
        }
    }
    Ok(())
}

fn find_value(
    set: &mut ResourceSet,
    replacement: &Replacement,
    schema: &Schema,
    budget: &Budget,
) -> Result<Node> {
    let source = match (&replacement.source, &replacement.source_value) {
        (Some(_), Some(_)) => {
            return Err(Error::refused(
                "value and resource selectors are mutually exclusive",
            ));
        }
        (None, Some(value)) => return Ok(crate::value::field::plain(value.clone())),
        (Some(source), None) => source,
        (None, None) => return Err(Error::refused("a replacement has no source")),
    };
    let resource = find_source(set, source, schema, budget)?;
    let value = lookup(&resource.node, &split(&source.path))
        .during(|| "error looking up replacement source".to_owned())?
        .filter(|value| !is_blank(value));
    let Some(value) = value else {
        let (path, id) = (&source.path, &source.id);
        return Err(Error::refused(format!(
            "fieldPath `{path}` is missing for replacement source {id}"
        )));
    };
    refine(value, &source.options)
}

fn find_source<'a>(
    set: &'a mut ResourceSet,
    source: &Source,
    schema: &Schema,
    budget: &Budget,
) -> Result<&'a Resource> {
    let candidates = match source.id.name.as_str() {
        "" => (0..set.len()).collect(),
        name => set.candidates(name, schema),
    };
    budget.step(candidates.len() as u64 * RESOURCE_STEPS)?;
    let mut matches = candidates
        .into_iter()
        .filter_map(|position| set.get(position))
        .filter(|resource| ids(resource).any(|id| id.is_selected_by(&source.id)));
    match (matches.next(), matches.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Error::refused(format!(
            "nothing selected by {}:{}",
            source.id, source.path
        ))),
        (Some(_), Some(_)) => Err(Error::refused(format!(
            "multiple matches for selector {}:{}",
            source.id, source.path
        ))),
    }
}

/// The identities of a resource, the current one first, namespaces as written.
fn ids(resource: &Resource) -> impl Iterator<Item = ResourceId> + '_ {
    std::iter::once(resource.id()).chain(resource.previous_ids())
}

fn refine(value: &Node, options: &Options) -> Result<Node> {
    if options.delimiter.is_empty() {
        return Ok(value.clone());
    }
    let Value::Scalar(scalar) = &value.value else {
        return Err(Error::refused(
            "delimiter option can only be used with scalar nodes",
        ));
    };
    let mut pieces = scalar.text.split(options.delimiter.as_str());
    let piece = usize::try_from(options.index)
        .ok()
        .and_then(|index| pieces.nth(index));
    let Some(piece) = piece else {
        return Err(Error::refused(format!(
            "options.index {} is out of bounds for value {}",
            options.index, scalar.text
        )));
    };
    Ok(Node::new(Value::Scalar(Scalar {
        text: piece.into(),
        ..scalar.clone()
    })))
}

/// A value on its way into one target.
#[derive(Clone, Copy)]
struct Copying<'a> {
    value: &'a Node,
    /// What every copy of the value costs.
    cost: Cost,
    target: &'a Target,
    budget: &'a Budget,
}

impl Copying<'_> {
    fn apply(self, set: &mut ResourceSet, schema: &Schema) -> Result<()> {
        let (target, budget) = (self.target, self.budget);
        let Some(select) = &target.select else {
            return Err(Error::refused("target must specify resources to select"));
        };
        let select = select.matcher(budget)?;
        let reject: Vec<(&Selector, Matcher)> = target
            .reject
            .iter()
            .map(|selector| Ok((selector, selector.matcher(budget)?)))
            .collect::<Result<_>>()?;
        let touches_history = target
            .paths
            .iter()
            .any(|path| matches!(path.as_str(), "metadata" | "metadata.annotations"));
        let candidates = select.candidates(set, schema);
        let steps = RESOURCE_STEPS * (1 + reject.len() as u64);
        budget.step(steps.saturating_mul(candidates.len() as u64))?;
        for position in candidates {
            let Some(resource) = set.get_mut(position) else {
                continue;
            };
            let is_chosen = select.takes_metadata(resource)
                && !is_rejected(resource, &reject)
                && ids(resource).any(|id| select.takes_id(&id));
            if !is_chosen {
                continue;
            }
            if touches_history {
                resource.expose_history()?;
            }
            self.set_paths(resource)?;
            if touches_history {
                if resource.node.at_path(&["metadata", "name"]).is_none() {
                    return Err(Error::refused(
                        "missing metadata.name in a replacement target",
                    ));
                }
                resource.absorb_history()?;
            }
            set.changed(position, schema);
        }
        Ok(())
    }

    fn set_paths(self, resource: &mut Resource) -> Result<()> {
        for path in &self.target.paths {
            if resource.history.aliases > 0 {
                charge_walk(&resource.node, self.budget)?;
            }
            let changed = resource.change(|resource| self.set_path(&mut resource.node, path));
            changed.during_exceeded(|| format!("replacing `{path}` of {}", resource.id()))?;
        }
        Ok(())
    }

    fn set_path(self, target: &mut Node, path: &str) -> Result<()> {
        let options = &self.target.options;
        let create = if options.create {
            Create::like(self.value)
        } else {
            Create::No
        };
        let parts = split(path);
        self.cost.check_depth(parts.len(), path)?;
        if set_inside_text(target, self.value, &parts, create, self.budget)? {
            return Ok(());
        }
        let verb = if options.create {
            "find or create"
        } else {
            "find"
        };
        let missing = || format!("unable to {verb} field `{path}` in replacement target");
        if options.create {
            check_new_parts(target, self.value, &parts).during(missing)?;
        }
        let mut is_set = Ok(());
        let count = visit(target, &parts, create, self.budget, &mut |field| {
            if is_set.is_ok() {
                is_set = self.set_value(field);
            }
            Ok(())
        })
        .during(missing)?;
        is_set?;
        if count == 0 {
            return Err(Error::refused(missing()));
        }
        Ok(())
    }

    fn set_value(self, field: &mut Node) -> Result<()> {
        let options = &self.target.options;
        self.cost.charge(self.budget)?;
        let mut new = text(self.value).to_string();
        if !options.delimiter.is_empty() {
            if field.as_scalar().is_none() {
                return Err(Error::refused(
                    "delimiter option can only be used with scalar nodes",
                ));
            }
            let old = text(field);
            self.budget
                .allocate(old.len() + options.delimiter.len() + new.len())?;
            new = splice(&old, &new, options);
        } else if field.as_scalar().is_none() {
            *field = self.value.clone();
            return Ok(());
        }
        set_text(field, new)
    }
}

fn is_rejected(resource: &Resource, reject: &[(&Selector, Matcher)]) -> bool {
    reject.iter().any(|(selector, matcher)| {
        let has_selector = !selector.labels.is_empty() || !selector.annotations.is_empty();
        (has_selector && matcher.takes_metadata(resource))
            || (selector.id != ResourceId::default()
                && ids(resource).any(|id| matcher.takes_id(&id)))
    })
}

/// Refuses to make fields that kustomize cannot make: those without a name, and those whose name is no string.
fn check_new_parts(target: &Node, value: &Node, parts: &[String]) -> Result<()> {
    if value.as_scalar().is_some() && parts.iter().any(String::is_empty) {
        return Err(Error::refused("a part of the path is empty"));
    }
    for length in 2..=parts.len() {
        let (Some(parent), Some(path)) = (parts.get(..length - 1), parts.get(..length)) else {
            continue;
        };
        let is_map = matches!(lookup(target, parent), Ok(Some(node)) if node.as_map().is_some());
        if let (true, Ok(None), Some(name)) = (is_map, lookup(target, path), path.last()) {
            check_new_key(name)?;
        }
    }
    Ok(())
}

fn splice(old: &str, new: &str, options: &Options) -> String {
    let mut pieces: Vec<&str> = old.split(options.delimiter.as_str()).collect();
    match usize::try_from(options.index) {
        Err(_) => pieces.insert(0, new),
        Ok(index) => match pieces.get_mut(index) {
            Some(piece) => *piece = new,
            None => pieces.push(new),
        },
    }
    pieces.join(&options.delimiter)
}

/// Puts a text into a scalar that keeps its type; a text that does not fit the type is refused.
pub(super) fn set_text(field: &mut Node, new: String) -> Result<()> {
    let Value::Scalar(scalar) = &field.value else {
        return Ok(());
    };
    let reads_as = plain_tag(&new);
    let tag = match &scalar.tag {
        _ if field.at == UNTYPED && scalar.style == Style::Plain => reads_as,
        Tag::Str => Tag::Str,
        old if *old == reads_as => reads_as,
        Tag::Float if reads_as == Tag::Int => Tag::Float,
        old => {
            return Err(Error::refused(format!(
                "cannot decode `{new}` as a {old:?}, the type of the field it replaces"
            )));
        }
    };
    let style = if tag == Tag::Str {
        scalar.style
    } else {
        Style::Plain
    };
    field.value = Value::Scalar(Scalar {
        text: new.into(),
        tag,
        style,
    });
    Ok(())
}
