//! What a chart's `lookup` finds: objects that the repository itself contains, as they would be in a cluster.
//!
//! ```text
//! Index ──▶ EmittedObjects ──▶ View of one release ──lookup──▶ a template
//!                                     └──▶ Answers: what was asked for and found, a part of what the release is made of
//! ```
//!
//! A release does not find its own objects: on a first installation they are not there, and a chart that prints a
//! Secret only if it does not exist would print it every other time. For what nothing in the repository produces, the
//! answer is empty, as with `helm template`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use portolan_helm::values::Tree;
use portolan_helm::{Lookup, LookupQuery, lookup_list};
use portolan_object::{Digest, Gvk, Object, ObjectId, Scope, scope};
use portolan_secret::KnownSecrets;
use portolan_yaml::{Map, Node, Text, Value};

use crate::session::fingerprint::Fingerprint;
use crate::walk::index::{Emitter, Index};

/// The most different questions of one release that are answered; real charts have less than ten.
const MAX_QUESTIONS: usize = 4096;

/// Every object that was emitted so far, by group and kind.
#[derive(Debug, Default)]
pub(crate) struct EmittedObjects {
    emitted: Vec<(Arc<Emitter>, Arc<Vec<Object>>)>,
    /// By the places of the emitter and of the object.
    kinds: HashMap<(Text, Text), Vec<(u32, u32)>>,
    /// Learns the values of Secrets that are found.
    secrets: Option<Arc<KnownSecrets>>,
}

/// What one release may find.
#[derive(Debug, Clone)]
pub(crate) struct View {
    objects: Arc<EmittedObjects>,
    /// The release.
    emitter: Emitter,
    /// What the release gave when it was last rendered.
    own: Arc<[ObjectId]>,
}

/// A question of a template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Question {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
}

/// The questions of a render, each with the digest of its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answers(BTreeMap<Question, Option<Digest>>);

/// Answers the questions of a render and remembers them.
pub(crate) struct Asking {
    view: View,
    answered: Mutex<BTreeMap<Question, Option<Tree>>>,
}

// === impl EmittedObjects ===

impl EmittedObjects {
    pub(crate) fn of(index: &Index) -> Self {
        let mut objects = Self {
            secrets: index.known_secrets().map(Arc::clone),
            ..Self::default()
        };
        for (number, (emitter, given)) in (0..).zip(index.shared_emitted()) {
            for (at, object) in (0..).zip(given.iter()) {
                let Gvk { group, kind, .. } = object.gvk().clone();
                let spots = objects.kinds.entry((group, kind)).or_default();
                spots.push((number, at));
            }
            objects
                .emitted
                .push((Arc::clone(emitter), Arc::clone(given)));
        }
        objects.kinds.values_mut().for_each(Vec::shrink_to_fit);
        objects
    }

    /// The objects of a kind with who emitted them, emitters in order.
    fn of_kind(&self, gvk: &Gvk) -> impl Iterator<Item = (&Emitter, &Object)> {
        let spots = self.kinds.get(&(gvk.group.clone(), gvk.kind.clone()));
        spots.into_iter().flatten().filter_map(|(number, at)| {
            let (emitter, objects) = self.emitted.get(*number as usize)?;
            Some((emitter.as_ref(), objects.get(*at as usize)?))
        })
    }
}

// === impl View ===

impl View {
    pub(crate) fn new(
        objects: &Arc<EmittedObjects>,
        emitter: Emitter,
        own: Option<&Arc<Vec<Object>>>,
    ) -> Self {
        let own = own.into_iter().flat_map(|own| own.iter());
        let mut own: Vec<ObjectId> = own.map(|object| object.id().clone()).collect();
        ObjectId::detach_all(own.iter_mut().collect());
        Self {
            objects: Arc::clone(objects),
            emitter,
            own: own.into(),
        }
    }

    /// The object or list that is asked for; `None` if the repository brings none.
    fn answer(&self, question: &Question) -> Option<Tree> {
        let found = self.found(question);
        let mut stored = stored_all(&found, question);
        if !question.is_list() {
            return stored.next();
        }
        let items: Vec<Tree> = stored.collect();
        (!items.is_empty()).then(|| lookup_list(&question.as_query(), items))
    }

    /// The digest of the answer, without having all of a list in memory.
    fn digest_of_answer(&self, question: &Question) -> Option<Digest> {
        let found = self.found(question);
        let mut digest = Fingerprint::of("answer");
        for item in stored_all(&found, question) {
            digest.tree(&item);
        }
        (!found.is_empty()).then(|| digest.finish())
    }

    /// The objects that a question is about, by namespace and name; what is secret in them is made known.
    fn found(&self, question: &Question) -> Vec<&Object> {
        let gvk = Gvk::from_api_version(&question.api_version, question.kind.as_str());
        let is_other = |(emitter, _): &(&Emitter, &Object)| **emitter != self.emitter;
        let others = self.objects.of_kind(&gvk).filter(is_other);
        let mut found: BTreeMap<(&str, &str), &Object> = BTreeMap::new();
        for (_, object) in others {
            if question.is_about(object.id()) {
                let key = (object.namespace(), object.name());
                found.entry(key).or_insert(object);
            }
        }
        // A chart may put it anywhere.
        if let Some(secrets) = &self.objects.secrets {
            for object in found.values() {
                secrets.add_secret(&Object::clone(object));
            }
        }
        let most = match () {
            () if question.is_list() => found.len(),
            () if question.is_among(self.own.iter()) => 0,
            // A name in any namespace may be that of several objects.
            () => 1,
        };
        found.into_values().take(most).collect()
    }
}

// === impl Question ===

impl Question {
    fn new(query: &LookupQuery<'_>) -> Self {
        Self {
            api_version: query.api_version.to_owned(),
            kind: query.kind.to_owned(),
            namespace: query.namespace.to_owned(),
            name: query.name.to_owned(),
        }
    }

    fn as_query(&self) -> LookupQuery<'_> {
        LookupQuery {
            api_version: &self.api_version,
            kind: &self.kind,
            namespace: &self.namespace,
            name: &self.name,
        }
    }

    /// Whether all objects are asked for, and not one by name.
    fn is_list(&self) -> bool {
        self.name.is_empty()
    }

    /// The kind that is asked for.
    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    /// Whether an object of the kind is asked for: by name, or any in the namespace, or any at all.
    fn is_about(&self, object: &ObjectId) -> bool {
        let is_anywhere = self.is_list() && self.namespace.is_empty();
        let is_named = self.is_list() || self.name == object.name.as_str();
        is_named && (is_anywhere || is_in(object, &self.namespace))
    }

    /// Whether one of some objects is asked for by name.
    fn is_among<'a>(&self, mut objects: impl Iterator<Item = &'a ObjectId>) -> bool {
        let gvk = Gvk::from_api_version(&self.api_version, self.kind.as_str());
        let is_kind = |object: &ObjectId| object.gvk.is(&gvk.group, &gvk.kind);
        !self.name.is_empty() && objects.any(|object| is_kind(object) && self.is_about(object))
    }
}

impl std::fmt::Display for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = if self.name.is_empty() {
            "*"
        } else {
            &self.name
        };
        match self.namespace.as_str() {
            "" => write!(f, "{}/{name}", self.kind),
            namespace => write!(f, "{}/{namespace}/{name}", self.kind),
        }
    }
}

// === impl Answers ===

impl Answers {
    /// Whether nothing was asked.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the same questions have the same answers now.
    pub(crate) fn hold_for(&self, view: &View) -> bool {
        self.outdated(view).next().is_none()
    }

    /// The questions that have another answer now.
    pub(crate) fn outdated<'a>(&'a self, view: &'a View) -> impl Iterator<Item = &'a Question> {
        let answers = self.0.iter();
        let outdated =
            answers.filter(|(question, known)| view.digest_of_answer(question) != **known);
        outdated.map(|(question, _)| question)
    }

    /// The questions that something else may answer which is not rendered yet: those without an answer, and all lists.
    /// What the release gives itself is answered by nothing else.
    pub(crate) fn open<'a>(&'a self, own: &'a [Object]) -> impl Iterator<Item = &'a Question> {
        let answers = self.0.iter();
        let open = answers.filter(|(question, known)| {
            question.name.is_empty()
                || (known.is_none() && !question.is_among(own.iter().map(Object::id)))
        });
        open.map(|(question, _)| question)
    }

    /// Whether only what the release gives itself was asked for: nothing else answers that.
    pub(crate) fn are_own(&self, own: &[Object]) -> bool {
        self.0
            .keys()
            .all(|question| question.is_among(own.iter().map(Object::id)))
    }

    /// The same questions with the answers of now.
    pub(crate) fn renewed(&self, view: &View) -> Self {
        let renew = |question: &Question| (question.clone(), view.digest_of_answer(question));
        Self(self.0.keys().map(renew).collect())
    }

    /// The questions with the digests of their answers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Question, Option<Digest>)> {
        self.0.iter().map(|(question, answer)| (question, *answer))
    }

    pub(crate) fn fingerprint(&self, key: &mut Fingerprint) {
        key.number(self.0.len() as u64);
        for (question, answer) in &self.0 {
            key.text(&question.api_version);
            key.text(&question.kind);
            key.text(&question.namespace);
            key.text(&question.name);
            key.flag(answer.is_some());
            if let Some(answer) = answer {
                key.digest(answer);
            }
        }
    }
}

// === impl Asking ===

impl Asking {
    pub(crate) fn new(view: View) -> Self {
        Self {
            view,
            answered: Mutex::default(),
        }
    }

    /// What was asked so far.
    pub(crate) fn answers(&self) -> Answers {
        let answered = self.answered.lock();
        let answers = answered.iter();
        let answers = answers.map(|(question, answer)| {
            let digest = answer.as_ref().map(|answer| digest(question, answer));
            (question.clone(), digest)
        });
        Answers(answers.collect())
    }
}

impl Lookup for Asking {
    fn lookup(&self, query: &LookupQuery<'_>) -> Option<Tree> {
        let question = Question::new(query);
        let mut answered = self.answered.lock();
        if let Some(known) = answered.get(&question) {
            return known.clone();
        }
        if answered.len() == MAX_QUESTIONS {
            return None;
        }
        let answer = self.view.answer(&question);
        answered.insert(question, answer.clone());
        answer
    }
}

/// The digest of an answer: of the items if it is a list, whose other fields the question says.
fn digest(question: &Question, answer: &Tree) -> Digest {
    let mut digest = Fingerprint::of("answer");
    match answer.as_table().and_then(|list| list.get("items")) {
        Some(Tree::List(items)) if question.is_list() => {
            items.iter().for_each(|item| digest.tree(item));
        }
        _ => digest.tree(answer),
    }
    digest.finish()
}

/// Objects as the API server would answer them, one after the other. Packed ones stay packed.
fn stored_all(objects: &[&Object], question: &Question) -> impl Iterator<Item = Tree> {
    Object::read_all(objects.iter().copied()).map(|object| stored(&object, question))
}

/// Whether an object is found in a namespace. What belongs to the cluster is found whatever namespace is asked for.
fn is_in(object: &ObjectId, namespace: &str) -> bool {
    let own = object.namespace.as_str();
    match scope(&object.gvk) {
        Some(Scope::Cluster) => true,
        Some(Scope::Namespaced) if own.is_empty() => namespace == "default",
        Some(Scope::Namespaced) => namespace == own,
        None => own.is_empty() || namespace == own,
    }
}

/// An object as the API server would answer it, as far as the repository says it.
fn stored(object: &Object, question: &Question) -> Tree {
    // A copy shares everything that is not changed.
    let mut node = object.node().clone();
    if let Some(map) = node.as_map_mut() {
        if object.gvk().is("", "Secret") {
            fold_string_data(map);
        }
        map.insert("apiVersion", Node::string(question.api_version.as_str()));
    }
    Tree::from_node(&node)
}

/// The API server keeps `stringData` of a Secret as `data`.
fn fold_string_data(secret: &mut Map) {
    let Some(texts) = secret.remove("stringData") else {
        return;
    };
    let data = secret.get("data").and_then(Node::as_map).cloned();
    let mut data = data.unwrap_or_default();
    for entry in texts.as_map().into_iter().flatten() {
        if let Some(scalar) = entry.value.as_scalar() {
            let encoded = STANDARD.encode(scalar.text.as_bytes());
            data.insert(entry.key.scalar.text.clone(), Node::string(encoded));
        }
    }
    secret.insert("data", Node::new(Value::Map(data)));
}
