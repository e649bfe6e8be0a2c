//! A request for a run: everything that it is made from is checked and frozen before anything is sent to a node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use portolan_digest::hex;
use portolan_fleet::{
    Book, BookFault, BookSource, NodeEnd, NodeProgress, RunPlan, RunState, TagSelection,
    bind_inputs, compile,
};
use portolan_kinds::{KindObject, find_kind};
use portolan_modules::BookFiles;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::approved_plan::{PlanReference, planned_inputs};
use super::controller::is_over;
use super::files::{FileShelf, ShelvedFiles};
use super::fired::MadeBy;
use super::frozen::FrozenNodes;
use super::keys::{self, SEGMENT_NODES};
use super::plan::{delegations, has_news, run_plan};
use super::record::{
    NodeRecord, RecordWrite, RunRecords, StoredBook, StoredNode, StoredPlan, StoredState,
    read_nodes, read_progress,
};
use super::sealed::RunSecrets;
use super::target::{FleetView, Narrowing};
use crate::clock::{rfc3339, rfc3339_micros};
use crate::error::{ApiError, RefusalReason};
use crate::objects::{Author, new_uuid};
use crate::seal::Sealer;
use crate::server::{ApiServer, Caller, Target};

/// What the key of the servers is used for in digests of requests.
const DIGEST_PURPOSE: &str = "portolan run request 1";

/// Words of a request.
const MAX_WORDS: usize = 100;

/// What a caller asks for.
#[derive(Debug, Default)]
pub(crate) struct RunRequest {
    pub(super) is_check: bool,
    /// Whether it is a single command.
    pub(super) is_exec: bool,
    pub(super) inputs: Map<String, Value>,
    pub(super) selection: TagSelection,
    pub(super) narrowing: Narrowing,
    pub(super) dedupe_key: Option<String>,
    pub(super) parent: Option<String>,
    /// A book that is not on the server.
    pub(super) book: Option<StoredBook>,
    /// What makes the run, if nobody asks for it.
    pub(super) made_by: Option<MadeBy>,
    /// A plan that was approved: nothing else is done.
    pub(super) plan: Option<PlanReference>,
    /// Whether a book may be sent that is not as its commit has it.
    pub(super) allows_dirty: bool,
}

impl RunRequest {
    /// A single command, as a book of the server's own.
    pub(super) fn exec(book: StoredBook, inputs: Map<String, Value>, narrowing: Narrowing) -> Self {
        Self {
            is_exec: true,
            inputs,
            narrowing,
            book: Some(book),
            ..Self::default()
        }
    }

    /// Reads the body of a request; what is unknown is refused.
    pub(crate) fn read(body: &Value) -> Result<Self, ApiError> {
        let Some(body) = body.as_object() else {
            return Err(ApiError::bad_request("the body must be a JSON object"));
        };
        let mut request = Self::default();
        for (key, value) in body {
            let wrong = || ApiError::bad_request(format!("`{key}` has a wrong type"));
            match key.as_str() {
                "mode" => {
                    request.is_check = match value.as_str() {
                        Some("apply") => false,
                        Some("check") => true,
                        _ => {
                            return Err(ApiError::bad_request("`mode` must be `apply` or `check`"));
                        }
                    };
                }
                "inputs" => request
                    .inputs
                    .clone_from(value.as_object().ok_or_else(wrong)?),
                "tags" => request.selection.tags = words(value).ok_or_else(wrong)?,
                "skipTags" => request.selection.skip = words(value).ok_or_else(wrong)?,
                "nodes" => {
                    request.narrowing.nodes = words(value).ok_or_else(wrong)?.into_iter().collect();
                }
                "selector" => {
                    let text = value.as_str().ok_or_else(wrong)?;
                    let selector = text
                        .parse()
                        .map_err(|error| ApiError::bad_request(format!("`{text}`: {error}")));
                    request.narrowing.selector = Some(selector?);
                }
                "dedupeKey" => {
                    request.dedupe_key = Some(value.as_str().ok_or_else(wrong)?.to_owned());
                }
                "plan" => {
                    request.plan = Some(PlanReference::read(value).ok_or_else(wrong)?);
                }
                "allowDirty" => request.allows_dirty = value.as_bool().ok_or_else(wrong)?,
                "parent" => request.parent = Some(value.as_str().ok_or_else(wrong)?.to_owned()),
                "book" => {
                    let book = serde_json::from_value(value.clone()).map_err(|_| wrong())?;
                    request.book = Some(StoredBook {
                        is_sent: true,
                        ..book
                    });
                }
                _ => {
                    return Err(ApiError::bad_request(format!(
                        "`{key}` is no part of a request for a run"
                    )));
                }
            }
        }
        let is_more = request.is_check
            || request.book.is_some()
            || request.selection != TagSelection::default()
            || request.narrowing.selector.is_some()
            || !request.narrowing.nodes.is_empty();
        if request.plan.is_some() && is_more {
            let message = "a plan has its book, nodes and tags: only secret inputs can be given";
            return Err(ApiError::bad_request(message));
        }
        Ok(request)
    }
}

/// How somebody wants a run to be repeated.
#[derive(Debug, Default)]
pub(crate) struct Repetition {
    /// Only nodes that are not as they should be.
    only_bad: bool,
    inputs: Map<String, Value>,
    dedupe_key: Option<String>,
}

impl Repetition {
    /// Reads the body of a request; what is unknown is refused.
    pub(crate) fn read(body: &Value) -> Result<Self, ApiError> {
        let mut repetition = Self::default();
        for (key, value) in body.as_object().into_iter().flatten() {
            let wrong = || ApiError::bad_request(format!("`{key}` has a wrong type"));
            match key.as_str() {
                "onlyFailed" => repetition.only_bad = value.as_bool().ok_or_else(wrong)?,
                "inputs" => repetition
                    .inputs
                    .clone_from(value.as_object().ok_or_else(wrong)?),
                "dedupeKey" => {
                    repetition.dedupe_key = Some(value.as_str().ok_or_else(wrong)?.to_owned());
                }
                _ => {
                    return Err(ApiError::bad_request(format!(
                        "`{key}` is no part of a request to repeat a run"
                    )));
                }
            }
        }
        Ok(repetition)
    }
}

impl RunRequest {
    /// What tells two requests of a user apart. Inputs may be secret, and a digest without a key would let them be guessed:
    /// where there is none, there are no secrets either, and the names of inputs must do.
    fn digest(&self, user: &str, sealer: Option<&Sealer>) -> String {
        let key = sealer.and_then(|sealer| sealer.derived(DIGEST_PURPOSE));
        let inputs = match &key {
            Some(_) => json!(self.inputs),
            None => self.inputs.keys().cloned().collect(),
        };
        let selector = self.narrowing.selector.as_ref();
        let request = json!({
            "user": user, "check": self.is_check, "inputs": inputs, "tags": self.selection.tags,
            "skipTags": self.selection.skip, "nodes": self.narrowing.nodes,
            "selector": selector.map(ToString::to_string), "parent": self.parent, "book": self.book,
            "plan": self.plan.as_ref().map(|plan| &plan.digest),
        });
        let mut hasher = Sha256::new();
        if let Some(key) = &key {
            hasher.update(key.as_slice());
        }
        hasher.update(request.to_string());
        hex(&hasher.finalize())
    }
}

fn words(value: &Value) -> Option<BTreeSet<String>> {
    let list = value.as_array().filter(|list| list.len() <= MAX_WORDS)?;
    list.iter()
        .map(|word| word.as_str().map(str::to_owned))
        .collect()
}

impl ApiServer {
    /// Makes a run of a TaskBook. The caller has the right `run` for the book.
    pub(crate) async fn start_run(
        &self,
        caller: &Caller,
        book: &Target,
        request: RunRequest,
    ) -> Result<Value, ApiError> {
        let made = self.make_run(caller, book, request).await;
        let version = made
            .as_ref()
            .map(|run| run.metadata.resource_version.as_deref());
        self.record(caller, "run", book, version).await?;
        Ok(made?.to_json())
    }

    /// Makes a new run of what a run was made from: the same book and files, inputs and nodes. Values of secret inputs are
    /// gone with the first run, and have to be given again.
    pub(crate) async fn repeat_run(
        &self,
        caller: &Caller,
        target: &Target,
        repetition: Repetition,
    ) -> Result<Value, ApiError> {
        let found = self.objects.get(&target.key()?).await?;
        let found = found.ok_or_else(|| ApiError::not_found(&target.shown()))?;
        let (run, uuid) = (&found.object, found.object.metadata.uuid());
        let book_kind = find_kind("TaskBook").ok_or_else(|| ApiError::internal("no TaskBook"))?;
        let book_target = Target {
            kind: book_kind,
            namespace: target.namespace.clone(),
            name: run.spec["book"].as_str().map(str::to_owned),
        };
        self.authorise(caller, "run", &book_target).await?;
        let store = &self.objects.store;
        let mut records = RunRecords::default();
        let book: Option<StoredBook> = records.read(store, keys::book(uuid)).await?;
        let plan: Option<StoredPlan> = records.read(store, keys::plan(uuid)).await?;
        let (Some(book), Some(plan)) = (book, plan) else {
            return Err(ApiError::not_found(&target.shown()));
        };
        if plan.is_exec {
            let message = format!("{} is a single command", target.shown());
            return Err(ApiError::bad_request(message).hint("give the command again"));
        }
        if !is_over(run) {
            let message = format!("{} has not ended", target.shown());
            return Err(ApiError::conflict(RefusalReason::Conflict, message)
                .hint("`portolan fleet runs resume` lets a stalled run go on"));
        }
        let nodes = read_nodes(store, uuid).await?;
        let progress = read_progress(store, uuid).await?;
        let is_wanted = |record: &NodeRecord| {
            let is_good = matches!(&record.progress, NodeProgress::Done(NodeEnd::State(state)) if !state.is_bad());
            !repetition.only_bad || !is_good
        };
        let wanted = nodes.iter().zip(&progress);
        let wanted: Vec<String> = wanted
            .filter(|(_, record)| is_wanted(record))
            .map(|(node, _)| node.name.clone())
            .collect();
        if wanted.is_empty() {
            let message = format!("every node of {} is as it should be", target.shown());
            return Err(ApiError::bad_request(message));
        }
        let mut inputs = plan.inputs;
        inputs.extend(repetition.inputs);
        let request = RunRequest {
            is_check: plan.is_check,
            is_exec: false,
            inputs,
            selection: TagSelection {
                tags: plan.tags.into_iter().collect(),
                skip: plan.skip_tags.into_iter().collect(),
            },
            narrowing: Narrowing {
                selector: None,
                nodes: wanted,
            },
            dedupe_key: repetition.dedupe_key,
            parent: target.name.clone(),
            book: Some(book),
            made_by: None,
            plan: None,
            // It was allowed for the first run.
            allows_dirty: true,
        };
        self.start_run(caller, &book_target, request).await
    }

    pub(super) async fn make_run(
        &self,
        caller: &Caller,
        target: &Target,
        mut request: RunRequest,
    ) -> Result<KindObject, ApiError> {
        let namespace = target.namespace.clone().unwrap_or_default();
        let book_name = target.name.clone().unwrap_or_default();
        let is_dirty = request.book.as_ref().is_some_and(|book| book.dirty);
        if is_dirty && !request.allows_dirty {
            let message = "the book or one of its files is not as its commit has it";
            return Err(ApiError::conflict(RefusalReason::Conflict, message)
                .hint("commit it, or ask with --allow-dirty; the run says so then"));
        }
        // Who wrote a CronJob with steps had the right when they did.
        let is_asked_for = request.made_by.is_none();
        if is_asked_for && request.book.as_ref().is_some_and(|book| book.is_sent) {
            // Who brings a book of their own could as well change the one that is here.
            self.authorise(caller, "update", target).await?;
        }
        let name = self.run_name(&book_name, request.dedupe_key.as_deref());
        let kind = find_kind("Run").ok_or_else(|| ApiError::internal("no kind Run"))?;
        let key = crate::keys::ObjectKey::new(kind, Some(&namespace), &name);
        let digest = request.digest(&caller.identity.user, self.objects.sealer.as_deref());
        if let Some(known) = self.objects.get(&key).await? {
            if known.object.spec["requestDigest"] == digest.as_str() {
                return Ok(known.object);
            }
            let message = format!("`dedupeKey` belongs to another request: that of run {name}");
            return Err(ApiError::conflict(RefusalReason::AlreadyExists, message)
                .hint("ask with another key"));
        }
        let approved = match &request.plan {
            Some(plan) => Some(self.approved_plan(target, plan).await?),
            None => None,
        };
        if let Some(plan) = &approved {
            if plan.book.is_sent {
                self.authorise(caller, "update", target).await?;
            }
            request.inputs = planned_inputs(&plan.stored, std::mem::take(&mut request.inputs))?;
            request.narrowing.nodes = plan.node_names();
            request.selection = TagSelection {
                tags: plan.stored.tags.iter().cloned().collect(),
                skip: plan.stored.skip_tags.iter().cloned().collect(),
            };
        }
        let shelf = FileShelf {
            store: self.objects.store.clone(),
            namespace: namespace.clone(),
        };
        let selection = request.selection.clone();
        let (stored_book, commit) = match (&approved, &request.book) {
            (Some(plan), _) => (plan.book.clone(), plan.commit.clone()),
            (None, Some(book)) => (book.clone(), book.shown_commit()),
            (None, None) => self.stored_book(target, &shelf, &selection).await?,
        };
        shelf.touch(&stored_book.files).await?;
        let none = BTreeSet::new();
        let mut compiled = compile_book(&stored_book, &selection, &none, &shelf).await?;
        if compiled.name != book_name {
            return Err(ApiError::bad_request(format!(
                "the book is called {}, not {book_name}",
                compiled.name
            )));
        }
        if compiled.run.is_suspended {
            let message = format!("TaskBook {book_name} is suspended");
            return Err(
                ApiError::conflict(RefusalReason::Conflict, message).hint("set `suspend: false`")
            );
        }
        let given = read_inputs(&compiled, &request.inputs);
        let inputs =
            bind_inputs(&compiled.inputs, &given).map_err(|faults| input_error(&faults))?;
        let is_secret = |name: &String| {
            compiled
                .inputs
                .get(name)
                .is_some_and(|input| input.is_secret)
        };
        let (secret, inputs): (Map<_, _>, Map<_, _>) =
            inputs.into_iter().partition(|(name, _)| is_secret(name));
        let view = FleetView::new(&self.cache);
        let nodes = view.targets(&namespace, &compiled.run.target, &request.narrowing, &name)?;
        let delegated = delegations(&view, &namespace, &compiled)?;
        let frozen = self.freeze(caller, &namespace, &compiled, &view, &nodes, &delegated);
        let FrozenNodes {
            nodes: mut frozen,
            delegates,
            versions,
            secret: secret_variables,
            secret_names,
        } = frozen.await?;
        if !secret_names.is_empty() {
            // Steps that use a secret variable are sensitive, and it must not come where others can read it.
            compiled = compile_book(&stored_book, &selection, &secret_names, &shelf).await?;
        }
        let secret_inputs = self.digests_of(&namespace, &book_name, &secret);
        if let Some(plan) = &approved {
            frozen = plan.pin(frozen, &secret_inputs)?;
        }
        let plan = StoredPlan {
            run: RunPlan {
                delegates: delegates.iter().map(|node| node.uuid.clone()).collect(),
                ..run_plan(&compiled, &frozen, request.is_check)
            },
            delegated,
            delegates,
            gathered: compiled.gathered.values().cloned().collect(),
            has_news: has_news(&compiled),
            is_check: request.is_check,
            is_exec: request.is_exec,
            digest: compiled.digest.to_string(),
            inputs,
            secret_inputs,
            secret_variables: secret_names,
            tags: selection.tags.iter().cloned().collect(),
            skip_tags: selection.skip.iter().cloned().collect(),
            wants_peers: compiled.asks_fleet.peers,
            known_nodes: if compiled.asks_fleet.nodes {
                view.granted(&namespace)
                    .iter()
                    .map(|node| about(node))
                    .collect()
            } else {
                Vec::new()
            },
        };
        let spec = json!({
            "book": book_name, "bookDigest": plan.digest, "commit": commit, "inputs": plan.inputs,
            "mode": mode_of(&request), "plan": request.plan.as_ref().map(|plan| &plan.digest), "tags": plan.tags, "skipTags": plan.skip_tags,
            "nodes": frozen.iter().map(|node| json!({"name": node.name, "uuid": node.uuid})).collect::<Vec<_>>(),
            "batches": plan.run.batches, "parent": request.parent, "requestedBy": caller.identity.user,
            "dedupeKey": request.dedupe_key, "requestDigest": digest,
            "variableVersions": (!versions.is_empty()).then_some(versions),
            "origin": request.made_by.as_ref().map(|by| &by.origin),
            "causes": request.made_by.as_ref().map(|by| &by.causes),
        });
        let run = KindObject::new(kind, &name, Some(&namespace), without_nulls(spec));
        let parts = RunParts {
            book: stored_book,
            plan,
            nodes: frozen,
            secret: RunSecrets {
                inputs: secret,
                variables: secret_variables,
            },
        };
        self.store_run(run, parts, request.made_by).await
    }

    /// Writes what the run was made from, then the Run: only with the Run does it exist.
    async fn store_run(
        &self,
        run: KindObject,
        parts: RunParts,
        made_by: Option<MadeBy>,
    ) -> Result<KindObject, ApiError> {
        let author = Author {
            name: AUTHOR.to_owned(),
            fence: made_by.as_ref().map(|by| by.fence.clone()),
            ..Author::default()
        };
        let mut run = run;
        run.status =
            json!({"phase": "pending", "startedAt": rfc3339_micros(self.objects.time.now())});
        let (mut transaction, created) = self.objects.prepare_creation(run, &author).await?;
        if let Some(by) = made_by {
            transaction = transaction.and(by.with);
        }
        let uuid = created.object.metadata.uuid().to_owned();
        let store = &self.objects.store;
        let mut records = RunRecords::default();
        records.write(store, None, parts.writes(&uuid)?).await?;
        let secret = parts.secret.writes(&self.objects, &created.object)?;
        records.write(store, None, secret).await?;
        let shown = created.object.name().to_owned();
        portolan_agent::failpoint("server-run-creating");
        let stored = self
            .objects
            .commit_object(transaction, created, &author)
            .await?;
        let stored = stored.ok_or_else(|| {
            ApiError::conflict(
                RefusalReason::AlreadyExists,
                format!("a run {shown} was just made"),
            )
        })?;
        portolan_agent::failpoint("server-run-created");
        Ok(stored.object)
    }

    /// Stands for secret inputs, by their names.
    fn digests_of(
        &self,
        namespace: &str,
        book: &str,
        secret: &Map<String, Value>,
    ) -> BTreeMap<String, String> {
        let digests = secret.iter().filter_map(|(name, value)| {
            let digest = self.secret_digest(&[namespace, book, name.as_str()], value)?;
            Some((name.clone(), digest))
        });
        digests.collect()
    }

    /// A name that says the book and the time; one that was asked for with a key is the same again.
    fn run_name(&self, book: &str, dedupe_key: Option<&str>) -> String {
        if let Some(key) = dedupe_key.filter(|key| is_word(key)) {
            return format!("{book}-{key}");
        }
        if let Some(key) = dedupe_key {
            return format!("{book}-{}", hex(&Sha256::digest(key.as_bytes())[..8]));
        }
        let time = rfc3339(self.objects.time.now());
        let digits: String = time.chars().filter(char::is_ascii_digit).take(14).collect();
        let (day, time) = digits.split_at_checked(8).unwrap_or((&digits, ""));
        let unique: String = new_uuid().chars().take(4).collect();
        format!("{book}-{day}-{time}-{unique}")
    }
}

fn mode_of(request: &RunRequest) -> &'static str {
    match &request.plan {
        _ if request.is_check => "check",
        Some(_) => "apply-plan",
        None => "apply",
    }
}

/// Whether a key can be a part of a name as it is.
fn is_word(key: &str) -> bool {
    let is_plain = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let mut letters = key.bytes();
    (1..=40).contains(&key.len())
        && letters.all(|letter| is_plain(letter) || letter == b'-')
        && key.bytes().last().is_some_and(is_plain)
}

/// The name that runs are made under.
const AUTHOR: &str = "system:runs";

/// What a run is made from.
struct RunParts {
    book: StoredBook,
    plan: StoredPlan,
    nodes: Vec<StoredNode>,
    secret: RunSecrets,
}

impl RunParts {
    fn writes(&self, uuid: &str) -> Result<Vec<RecordWrite>, ApiError> {
        let mut state = RunState::new(&self.plan.run);
        state.nodes.clear();
        let state = StoredState {
            run: state,
            elapsed: Duration::ZERO,
            shared: Map::new(),
            large: BTreeMap::new(),
            resumes: 0,
        };
        let mut writes = vec![
            RecordWrite::new(keys::book(uuid), &self.book)?,
            RecordWrite::new(keys::plan(uuid), &self.plan)?,
            RecordWrite::new(keys::state(uuid), &state)?,
        ];
        for (segment, nodes) in self.nodes.chunks(SEGMENT_NODES).enumerate() {
            writes.push(RecordWrite::new(keys::nodes(uuid, segment), &nodes)?);
            let records = vec![NodeRecord::default(); nodes.len()];
            writes.push(RecordWrite::new(keys::segment(uuid, segment), &records)?);
        }
        Ok(writes)
    }
}

/// Compiles a book on a thread where it may take its time.
pub(super) async fn compile_book(
    book: &StoredBook,
    selection: &TagSelection,
    secret_vars: &BTreeSet<String>,
    shelf: &FileShelf,
) -> Result<Book, ApiError> {
    let files = book.files.iter();
    let files = ShelvedFiles {
        shelf: shelf.clone(),
        files: files
            .map(|(path, digest)| (path.into(), digest.clone()))
            .collect(),
        handle: tokio::runtime::Handle::current(),
    };
    compile_with(book, selection, secret_vars, Arc::new(files)).await
}

/// Compiles a book with files from anywhere.
pub(super) async fn compile_with(
    book: &StoredBook,
    selection: &TagSelection,
    secret_vars: &BTreeSet<String>,
    files: Arc<dyn BookFiles>,
) -> Result<Book, ApiError> {
    let (book, selection, secret_vars) = (book.clone(), selection.clone(), secret_vars.clone());
    let compiled = tokio::task::spawn_blocking(move || {
        let mut source = BookSource::new(&book.file, &book.text, files);
        source.selection = selection;
        source.secret_vars = secret_vars;
        compile(&source).map_err(|faults| book_error(&faults))
    });
    compiled
        .await
        .map_err(|error| ApiError::internal(error.to_string()))?
}

fn book_error(faults: &[BookFault]) -> ApiError {
    let first = faults
        .iter()
        .find(|fault| !fault.is_consequence)
        .or(faults.first());
    let first = first.map(|fault| format!("{}: {}", fault.place, fault.message));
    let details: Vec<Value> = faults
        .iter()
        .map(|fault| json!({"place": fault.place.to_string(), "message": fault.message, "hint": fault.hint}))
        .collect();
    let message = format!("the book cannot be run: {}", first.unwrap_or_default());
    let error = ApiError::new(
        http::StatusCode::UNPROCESSABLE_ENTITY,
        RefusalReason::Invalid,
        message,
    );
    error.details(json!({"faults": details}))
}

fn input_error(faults: &[portolan_fleet::InputFault]) -> ApiError {
    let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let error = ApiError::new(
        http::StatusCode::UNPROCESSABLE_ENTITY,
        RefusalReason::Invalid,
        all.join("; "),
    );
    match faults.iter().find_map(|fault| fault.hint.clone()) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Inputs that came as texts, in the types of the book.
pub(super) fn read_inputs(book: &Book, given: &Map<String, Value>) -> Map<String, Value> {
    let read = |(name, value): (&String, &Value)| {
        let input = book.inputs.get(name);
        let read = match (input, value.as_str()) {
            (Some(input), Some(text)) => input.read(text),
            _ => value.clone(),
        };
        (name.clone(), read)
    };
    given.iter().map(read).collect()
}

/// A node as books see it: name, address, labels and exported facts.
pub(super) fn about(node: &KindObject) -> Value {
    let facts = node.status.get("facts").cloned().unwrap_or_default();
    let address = facts["addresses"][0].as_str().unwrap_or_default();
    let labels: BTreeMap<&String, &String> = node.metadata.labels.iter().collect();
    json!({
        "name": node.name(), "address": address, "labels": labels, "hostname": facts["hostname"],
        "addresses": facts["addresses"],
    })
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect(),
        value => value,
    }
}
