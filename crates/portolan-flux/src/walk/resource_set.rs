//! A ResourceSet, from inputs and templates to objects.
//!
//! ```text
//! inputs in place ─┐                    ┌─▶ template, once per set ─▶ YAML ─▶ objects, the first of each name
//! providers ───────┴─▶ sets of inputs ──┘
//! ```
//!
//! Templates are Go templates between `<<` and `>>`; `inputs` is a function, so `<< inputs.name >>` reads a field of
//! the current set.

use std::collections::HashSet;
use std::sync::Arc;

use portolan_gotmpl::{
    Args, Ctx, Executor, FuncError, Function, Host, Limits, LookupQuery, MissingKey, Options,
    Param, Seeded, TemplateSet, TextParser, Value as TemplateValue, exec_message, helm_functions,
    parse_message,
};
use portolan_helm::values::Tree;
use portolan_object::{Act, Digest, Object, Origin, Place, Step, expand_lists};
use portolan_yaml::{Dialect, Map, Node, Text, Value};

use crate::api::{InputProvider, InputStrategy, InputsFrom, NamespacedName, ResourceSet, Template};
use crate::kustomization::metadata::{set_common_metadata, set_metadata};
use crate::kustomization::variables::is_disabled;
use crate::session::fingerprint::Fingerprint;
use crate::walk::index::Index;

/// The API group of `ResourceSet`s, input providers and `FluxInstance`s.
pub(crate) const OPERATOR_GROUP: &str = "fluxcd.controlplane.io";

/// The annotation that keeps an object out.
const RECONCILE: &str = "fluxcd.controlplane.io/reconcile";

/// The labels that say which ResourceSet an object belongs to.
const OWNER_NAME: &str = "resourceset.fluxcd.controlplane.io/name";
const OWNER_NAMESPACE: &str = "resourceset.fluxcd.controlplane.io/namespace";

/// The most sets of inputs that a product may give.
const MAX_INPUT_SETS: usize = 10_000;

/// The longest name that `slugify` gives: what a label may hold.
const MAX_SLUG: usize = 63;

/// Why a ResourceSet gives no objects.
#[derive(Debug, thiserror::Error)]
pub enum ResourceSetError {
    /// A template cannot be read or completed.
    #[error("{0}")]
    Template(String),
    /// What came out is not YAML.
    #[error("template {number} did not give YAML: {reason}")]
    NotYaml {
        /// Which template, from 1.
        number: usize,
        /// What is wrong.
        reason: String,
    },
    /// There are too many sets of inputs.
    #[error("inputs combine to more than {MAX_INPUT_SETS} sets")]
    TooManyInputs,
}

/// What is put into the templates: the sets, and the providers that nothing emits or that ask a service.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub(crate) sets: Vec<Node>,
    /// Providers that are named and not there.
    pub(crate) missing: Vec<Text>,
    /// Providers whose inputs only a running operator knows.
    pub(crate) outside: Vec<NamespacedName>,
    /// Whether the set has inputs at all; without any its templates are completed once.
    is_given: bool,
}

/// Puts the labels on an object by which the operator knows whose it is.
pub fn set_owner_labels(object: &mut Object, owner: &NamespacedName) {
    let labels = [
        (Text::from_static(OWNER_NAME), owner.name.clone()),
        (Text::from_static(OWNER_NAMESPACE), owner.namespace.clone()),
    ];
    set_metadata(object, "labels", &labels);
}

/// Finds the inputs of a set among what was emitted.
pub(crate) fn inputs(set: &ResourceSet, index: &Index) -> Result<Inputs, ResourceSetError> {
    let mut found = Inputs {
        is_given: !set.inputs.is_empty() || !set.inputs_from.is_empty(),
        ..Inputs::default()
    };
    let own = provider_node("ResourceSet", &set.id);
    let mut groups = Vec::new();
    if !set.inputs.is_empty() {
        let sets = set.inputs.iter().enumerate();
        let sets = sets.map(|(at, input)| complete(input, &set.id, at, &own));
        groups.push((set.id.name.clone(), sets.collect::<Vec<_>>()));
    }
    for reference in &set.inputs_from {
        for provider in found.providers(reference, set, index) {
            let node = provider_node("ResourceSetInputProvider", &provider.id);
            let provided = found.provided(&provider);
            let sets = provided.iter().enumerate();
            let sets = sets.map(|(at, input)| complete(input, &provider.id, at, &node));
            groups.push((provider.id.name.clone(), sets.collect()));
        }
    }
    found.sets = match set.strategy {
        InputStrategy::Flatten => groups.into_iter().flat_map(|(_, sets)| sets).collect(),
        InputStrategy::Permute => permute(&groups)?,
    };
    Ok(found)
}

impl Inputs {
    fn providers(
        &mut self,
        reference: &InputsFrom,
        set: &ResourceSet,
        index: &Index,
    ) -> Vec<InputProvider> {
        let all = index.of_kind(OPERATOR_GROUP, "ResourceSetInputProvider");
        let here = all.filter(|(_, object)| object.namespace() == set.id.namespace.as_str());
        let chosen: Vec<_> = here
            .filter(|(_, object)| match reference {
                InputsFrom::Name(name) => object.name() == name.as_str(),
                InputsFrom::Labels(selector) => selector.matches(|key| object.label(key)),
            })
            .filter_map(|(_, object)| InputProvider::read(object.node()).ok())
            .collect();
        if let (InputsFrom::Name(name), true) = (reference, chosen.is_empty()) {
            self.missing.push(name.clone());
        }
        chosen
    }

    /// What a provider gives; a service is not asked, but what the object says it gave counts.
    fn provided(&mut self, provider: &InputProvider) -> Vec<Node> {
        if provider.kind == "Static" {
            return provider.default_values.iter().cloned().collect();
        }
        if provider.exported.is_empty() {
            self.outside.push(provider.id.clone());
        }
        provider.exported.clone()
    }

    /// Adds everything that is put in.
    pub(crate) fn fingerprint(&self, key: &mut Fingerprint) {
        key.flag(self.is_given);
        for set in &self.sets {
            key.node(Some(set));
        }
    }
}

/// An input with `id` and `provider`, which every set has.
fn complete(input: &Node, of: &NamespacedName, at: usize, provider: &Node) -> Node {
    let mut map = input.as_map().cloned().unwrap_or_default();
    if map.get("id").is_none() {
        map.insert("id", Node::string(checksum(&format!("{of}/{at}"))));
    }
    map.insert("provider", provider.clone());
    Node::new(Value::Map(map))
}

fn provider_node(kind: &'static str, id: &NamespacedName) -> Node {
    let mut map = Map::new();
    map.insert("apiVersion", Node::string("fluxcd.controlplane.io/v1"));
    map.insert("kind", Node::string(kind));
    map.insert("name", Node::string(id.name.clone()));
    map.insert("namespace", Node::string(id.namespace.clone()));
    Node::new(Value::Map(map))
}

/// Each set of one provider with each of the others, by the provider's name.
fn permute(groups: &[(Text, Vec<Node>)]) -> Result<Vec<Node>, ResourceSetError> {
    let mut product = vec![Map::new()];
    for (name, sets) in groups {
        if product.len().saturating_mul(sets.len()) > MAX_INPUT_SETS {
            return Err(ResourceSetError::TooManyInputs);
        }
        let key = normalized(name);
        let mut next = Vec::with_capacity(product.len() * sets.len());
        for so_far in &product {
            for set in sets {
                let mut map = so_far.clone();
                map.insert(key.clone(), set.clone());
                next.push(map);
            }
        }
        product = next;
    }
    let with_id = product.into_iter().enumerate().map(|(at, mut map)| {
        let ids: Vec<_> = map
            .iter()
            .filter_map(|entry| entry.value.get("id").and_then(Node::as_str))
            .collect();
        let id = checksum(&format!("{}/{at}", ids.join("/")));
        map.insert("id", Node::string(id));
        Node::new(Value::Map(map))
    });
    Ok(with_id.collect())
}

/// A provider's name as a field of a template.
fn normalized(name: &str) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    name.chars().map(letter).collect()
}

/// A short decimal number for a text, as ids have: Adler-32.
fn checksum(text: &str) -> String {
    const MODULUS: u32 = 65_521;
    let (low, high) = text.bytes().fold((1_u32, 0_u32), |(low, high), byte| {
        let low = (low + u32::from(byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    ((high << 16) | low).to_string()
}

/// The digest of everything that decides what a set gives.
pub(crate) fn fingerprint(set: &ResourceSet, inputs: &Inputs) -> Digest {
    let mut key = Fingerprint::of("ResourceSet");
    key.text(&set.id.to_string());
    for template in &set.templates {
        match template {
            Template::Object(node) => key.node(Some(node)),
            Template::Text(text) => key.text(text),
        }
    }
    key.metadata(&set.common_metadata);
    inputs.fingerprint(&mut key);
    key.finish()
}

/// Completes the templates with every set of inputs.
pub(crate) fn expand(
    set: &ResourceSet,
    inputs: &Inputs,
    written: &Origin,
) -> Result<Vec<Object>, ResourceSetError> {
    let without = [Node::map()];
    let sets = if inputs.is_given {
        &inputs.sets
    } else {
        without.as_slice()
    };
    let mut objects = Vec::new();
    let mut seen = HashSet::new();
    for (at, template) in set.templates.iter().enumerate() {
        let origin = written.then(made_by(set, template, written));
        let text = match template {
            Template::Object(node) => portolan_yaml::write_v2(node)
                .map_err(|error| ResourceSetError::Template(error.to_string()))?,
            Template::Text(text) => text.to_string(),
        };
        let template = Prepared::read(&text)?;
        for input in sets {
            let completed = template.complete(input, &set.id)?;
            let documents = portolan_yaml::parse(completed, Dialect::Helm).map_err(|errors| {
                ResourceSetError::NotYaml {
                    number: at + 1,
                    reason: errors.to_string(),
                }
            })?;
            let nodes = documents.into_iter().flat_map(expand_lists);
            let made = nodes.filter_map(|node| Object::new(node, origin.clone()).ok());
            objects.extend(made.filter(|object| {
                !is_disabled(object.node(), RECONCILE) && seen.insert(identity(object))
            }));
        }
    }
    for object in &mut objects {
        set_common_metadata(object, &set.common_metadata);
    }
    Ok(objects)
}

/// The step that makes objects of a template; with its line, where it is written as objects are.
fn made_by(set: &ResourceSet, template: &Template, written: &Origin) -> Step {
    let step = Step::new(Act::Template, format!("ResourceSet {}", set.id));
    match (template, written.place()) {
        (Template::Object(node), Some(place)) if node.at.line > place.at.line => {
            step.at(Place::new(place.file.clone(), node.at))
        }
        _ => step,
    }
}

/// What makes two objects the same: the version does not tell them apart.
fn identity(object: &Object) -> (Text, Text, Text, Text) {
    let id = object.id();
    let gvk = object.gvk();
    (
        gvk.group.clone(),
        gvk.kind.clone(),
        id.namespace.clone(),
        id.name.clone(),
    )
}

/// A template that was read.
struct Prepared {
    parser: TextParser,
    set: TemplateSet,
}

/// What the one template of a text is called.
const NAME: &str = "resources";

impl Prepared {
    fn read(text: &str) -> Result<Self, ResourceSetError> {
        const FUNCTIONS: &[Function] = &[
            Function::new("inputs", &[], current_inputs),
            Function::new("slugify", &[Param::Str], |_, args| {
                Ok(TemplateValue::Str(Text::from(slug(&args.str(0)))))
            }),
        ];
        let functions = helm_functions()
            .without(&["include", "tpl", "lookup", "required"])
            .with(FUNCTIONS);
        let parser = TextParser::new(Arc::new(functions), Limits::default().parse_depth)
            .with_delimiters("<<", ">>");
        let parsed = parser
            .parse(NAME, text)
            .map_err(|error| ResourceSetError::Template(parse_message(&error)))?;
        let mut set = TemplateSet::default();
        set.add(&parsed);
        Ok(Self { parser, set })
    }

    fn complete(&self, input: &Node, id: &NamespacedName) -> Result<String, ResourceSetError> {
        let mut host = InputHost {
            seeded: Seeded::new(&id.to_string(), 0),
            inputs: Tree::from_node(input).thaw(),
        };
        let options = Options {
            missing_key: MissingKey::Error,
            range_over_int: true,
        };
        let limits = Limits::default();
        let mut executor = Executor::new(&self.set, &self.parser, options, &limits, &mut host);
        executor
            .execute(NAME, TemplateValue::Nil)
            .map_err(|error| ResourceSetError::Template(exec_message(&error)))
    }
}

/// The set at hand, brought by the host: functions themselves hold nothing.
#[expect(clippy::unnecessary_wraps, reason = "functions of templates may fail")]
fn current_inputs(ctx: &mut Ctx<'_>, _: Args<'_>) -> Result<TemplateValue, FuncError> {
    let query = LookupQuery {
        api_version: "",
        kind: "inputs",
        namespace: "",
        name: "",
    };
    Ok(ctx.host.lookup(&query))
}

struct InputHost {
    seeded: Seeded,
    inputs: TemplateValue,
}

impl Host for InputHost {
    fn now(&self) -> i128 {
        self.seeded.now()
    }

    fn fill_random(&mut self, buffer: &mut [u8]) {
        self.seeded.fill_random(buffer);
    }

    fn lookup(&mut self, _: &LookupQuery<'_>) -> TemplateValue {
        self.inputs.clone()
    }
}

/// A text as a name: lower-case letters, digits and single dashes, cut at a dash where that is possible.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for letter in text.chars().flat_map(char::to_lowercase) {
        if letter.is_ascii_alphanumeric() || letter == '_' {
            slug.push(letter);
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_matches(['-', '_']);
    if slug.len() <= MAX_SLUG {
        return slug.to_owned();
    }
    let cut = slug.get(..MAX_SLUG).unwrap_or(slug);
    let whole_words = cut.rsplit_once('-').map_or(cut, |(words, _)| words);
    whole_words.to_owned()
}

#[cfg(test)]
mod tests {
    use portolan_yaml::parse_one;

    use super::*;

    fn expanded(spec: &str) -> Result<Vec<String>, ResourceSetError> {
        let text = format!("metadata: {{name: apps, namespace: flux-system}}\nspec:\n{spec}");
        let set = ResourceSet::read(&parse_one(text, Dialect::Helm).unwrap()).unwrap();
        let inputs = inputs(&set, &Index::default())?;
        let objects = expand(&set, &inputs, &Origin::default())?;
        Ok(objects
            .iter()
            .map(|object| object.id().to_string())
            .collect())
    }

    const INPUTS: &str =
        "  inputs:\n  - {tenant: one, replicas: 2}\n  - {tenant: two, replicas: 3}\n";

    #[test]
    fn every_set_of_inputs_gives_its_objects_and_the_first_of_a_name_counts() {
        let spec = format!(
            "{INPUTS}  resources:\n  - apiVersion: v1\n    kind: Namespace\n    metadata: {{name: << inputs.tenant >>}}\n  - apiVersion: v1\n    kind: ConfigMap\n    metadata: {{name: shared, namespace: x}}\n"
        );
        let ids = expanded(&spec).unwrap();
        assert_eq!(
            ids,
            [
                "v1/Namespace/one",
                "v1/Namespace/two",
                "v1/ConfigMap/x/shared"
            ]
        );
    }

    #[test]
    fn a_text_may_hold_several_documents_and_control_structures() {
        let spec = format!(
            "{INPUTS}  resourcesTemplate: |\n    <<- range $i := until (int inputs.replicas) >>\n    ---\n    apiVersion: v1\n    kind: Pod\n    metadata:\n      name: << inputs.tenant | slugify >>-<< $i >>\n    <<- end >>\n"
        );
        assert_eq!(expanded(&spec).unwrap().len(), 5);
    }

    #[test]
    fn a_field_that_no_input_has_is_an_error() {
        let spec = format!("{INPUTS}  resourcesTemplate: \"<< inputs.owner >>\"\n");
        assert!(expanded(&spec).unwrap_err().to_string().contains("owner"));
    }

    #[test]
    fn names_are_made_of_texts() {
        assert_eq!(slug("Feature/ABC 12__x!"), "feature-abc-12__x");
        assert!(slug(&"word ".repeat(40)).len() <= MAX_SLUG);
    }

    #[test]
    fn sums_are_those_of_adler() {
        assert_eq!(checksum("Wikipedia"), "300286872");
    }
}
