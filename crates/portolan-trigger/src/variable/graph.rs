//! Variables that are computed: from others by expressions, or by steps that run on a node.
//!
//! Each is computed after those that it reads. A value has a version, which rises when the value changes, so that a run
//! can say which values it was started with.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use portolan_budget::{Budget, Limits, Stop};
use portolan_cel::{EvaluationScope, Expression, Meter};
use portolan_digest::FieldHasher;
use portolan_object::similar;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::config::StaleRule;
use super::fault::{GraphFault, StaleVariable};
use super::order::order_of;
use crate::span::{WrittenSpan, later, since};

/// The most variables of a graph.
pub(super) const MAX_VARIABLES: usize = 10_000;

/// What one expression may do.
const STEPS: u64 = 1_000_000;

/// The most bytes of a value as JSON.
const MAX_VALUE: usize = 64 << 10;

/// A variable and what makes its value.
#[derive(Debug)]
pub struct VariableDefinition {
    /// What makes its value.
    pub producer: VariableProducer,
    /// How often it is made again although nothing that it reads changed.
    pub refresh: Option<Duration>,
    /// How long a value can be used after it was made.
    pub ttl: Option<Duration>,
    /// What to do with one that is too old.
    pub when_stale: StaleRule,
    /// Whether the value is secret.
    pub is_sensitive: bool,
}

/// What makes the value of a variable.
#[derive(Debug)]
pub enum VariableProducer {
    /// It is fixed.
    Fixed(Json),
    /// An expression over other variables, which are `vars`.
    Expression(String),
    /// A step that runs on a node, and the variables that it reads.
    Step {
        /// Names of the variables that it reads.
        reads: Vec<String>,
    },
}

/// Variables in the order in which they are computed.
#[derive(Debug)]
pub struct VariableGraph {
    nodes: BTreeMap<String, GraphNode>,
    order: Vec<String>,
}

#[derive(Debug)]
struct GraphNode {
    definition: VariableDefinition,
    expression: Option<Expression>,
    reads: BTreeSet<String>,
    is_sensitive: bool,
}

/// A value that was made; stored under the name of its variable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComputedValue {
    /// The value; absent before it could be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    /// Rises when the value changes.
    pub version: u64,
    /// Stands for what it was made from.
    pub inputs: String,
    /// When it was made.
    pub computed: Timestamp,
    /// Why it could not be made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it was tried last.
    pub tried: Timestamp,
}

/// What is to be done about variables.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GraphStep {
    /// Values to store.
    pub changed: BTreeMap<String, ComputedValue>,
    /// Steps to run.
    pub work: Vec<ProducerWork>,
}

/// A step to run for a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerWork {
    /// The variable.
    pub variable: String,
    /// Stands for what it reads; handed back with the result.
    pub inputs: String,
}

/// A value for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct UsedValue<'v> {
    /// The value.
    pub value: &'v Json,
    /// Its version.
    pub version: u64,
    /// Whether it is used although it is too old or could not be made again.
    pub is_stale: bool,
}

// === impl VariableGraph ===

impl VariableGraph {
    /// Puts variables in the order in which they are computed.
    ///
    /// ```
    /// use portolan_trigger::{StaleRule, VariableDefinition, VariableGraph, VariableProducer};
    ///
    /// let expression = |text: &str| VariableDefinition {
    ///     producer: VariableProducer::Expression(text.into()),
    ///     refresh: None, ttl: None, when_stale: StaleRule::Fail, is_sensitive: false,
    /// };
    /// let graph = VariableGraph::new([
    ///     ("url".to_owned(), expression("'http://' + vars.host")),
    ///     ("host".to_owned(), expression("vars.url")),
    /// ]);
    /// let fault = graph.map(|_| ()).map_err(|fault| fault.to_string());
    /// assert_eq!(fault, Err("variables read each other in a circle: host → url → host".to_owned()));
    /// ```
    ///
    /// # Errors
    /// When variables read each other in a circle, or one that does not exist, or an expression cannot be read.
    pub fn new(
        definitions: impl IntoIterator<Item = (String, VariableDefinition)>,
    ) -> Result<Self, GraphFault> {
        let mut nodes = BTreeMap::new();
        for (name, definition) in definitions {
            let node = GraphNode::new(&name, definition)?;
            nodes.insert(name, node);
        }
        if nodes.len() > MAX_VARIABLES {
            return Err(GraphFault::TooMany(nodes.len()));
        }
        for (name, node) in &nodes {
            if let Some(wanted) = node.reads.iter().find(|read| !nodes.contains_key(*read)) {
                let near = similar(wanted, nodes.keys(), |name| name.as_str());
                return Err(GraphFault::Unknown {
                    name: name.clone(),
                    wanted: wanted.clone(),
                    near: near.cloned(),
                });
            }
        }
        let reads = nodes.iter().map(|(name, node)| (name, &node.reads));
        let order = order_of(&reads.collect()).map_err(GraphFault::Cycle)?;
        let mut graph = Self { nodes, order };
        graph.spread_sensitivity();
        Ok(graph)
    }

    /// The names in the order in which they are computed.
    pub fn order(&self) -> &[String] {
        &self.order
    }

    /// Whether a value is secret: it is said to be, or it was made from one that is.
    pub fn is_sensitive(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(|node| node.is_sensitive)
    }

    fn spread_sensitivity(&mut self) {
        for name in &self.order {
            let secret = self.nodes.get(name).is_some_and(|node| {
                let mut reads = node.reads.iter();
                node.definition.is_sensitive || reads.any(|read| self.is_sensitive(read))
            });
            if let Some(node) = self.nodes.get_mut(name) {
                node.is_sensitive = secret;
            }
        }
    }

    /// Computes what has to be computed, and says which steps have to run. `known` are the values that were stored.
    pub fn advance(&self, known: &BTreeMap<String, ComputedValue>, now: Timestamp) -> GraphStep {
        let mut step = GraphStep::default();
        for name in &self.order {
            let Some(node) = self.nodes.get(name) else {
                continue;
            };
            let before = known.get(name);
            let inputs =
                match node.inputs(|read| step.changed.get(read).or_else(|| known.get(read))) {
                    Ok(inputs) => inputs,
                    Err(missing) => {
                        let why = format!("`{missing}`, which it reads, has no value");
                        let made = after_failure(before, &why, now);
                        if before.is_none_or(|before| before.error.as_ref() != Some(&why)) {
                            step.changed.insert(name.clone(), made);
                        }
                        continue;
                    }
                };
            if !node.is_due(before, &inputs.digest, now) {
                continue;
            }
            match node.compute(&inputs.values) {
                None => step.work.push(ProducerWork {
                    variable: name.clone(),
                    inputs: inputs.digest,
                }),
                Some(result) => {
                    let made = made(before, result, inputs.digest, now);
                    step.changed.insert(name.clone(), made);
                }
            }
        }
        step
    }

    /// The value to store when a step has run.
    pub fn finished(
        &self,
        work: &ProducerWork,
        before: Option<&ComputedValue>,
        result: Result<Json, String>,
        now: Timestamp,
    ) -> ComputedValue {
        made(before, result.and_then(bounded), work.inputs.clone(), now)
    }

    /// The value of a variable for a run that starts now.
    ///
    /// # Errors
    /// When there is none, or when it is too old or could not be made again and must not be used then.
    pub fn value<'v>(
        &self,
        name: &str,
        known: &'v BTreeMap<String, ComputedValue>,
        now: Timestamp,
    ) -> Result<UsedValue<'v>, StaleVariable> {
        let node = self.nodes.get(name);
        let node = node.ok_or_else(|| StaleVariable::Unknown(name.to_owned()))?;
        let found = known.get(name);
        let why = || found.and_then(|found| found.error.clone());
        let (found, value) = found
            .and_then(|found| Some((found, found.value.as_ref()?)))
            .ok_or_else(|| StaleVariable::Missing {
                name: name.to_owned(),
                why: why(),
            })?;
        let fault = node.staleness(name, found, now);
        match (fault, node.definition.when_stale) {
            (Some(fault), StaleRule::Fail) => Err(fault),
            (fault, _) => Ok(UsedValue {
                value,
                version: found.version,
                is_stale: fault.is_some(),
            }),
        }
    }
}

/// The variables that an expression reads.
///
/// ```
/// let reads = portolan_trigger::variables_read("'http://' + vars.host + vars.path")?;
/// assert_eq!(Vec::from_iter(reads), ["host", "path"]);
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// When it cannot be read, or does not name the variables that it reads.
pub fn variables_read(expression: &str) -> Result<BTreeSet<String>, String> {
    read_expression(expression).map(|(_, reads)| reads)
}

fn read_expression(text: &str) -> Result<(Expression, BTreeSet<String>), String> {
    let expression = Expression::parse(text).map_err(|failure| failure.to_string())?;
    let reads: BTreeSet<String> = expression.keys_of("vars").into_iter().collect();
    if reads.is_empty() && expression.names("vars") {
        return Err("it must name the variables that it reads, as in `vars.port`".to_owned());
    }
    Ok((expression, reads))
}

/// What a variable is made from.
struct NodeInputs {
    values: Map<String, Json>,
    digest: String,
}

// === impl GraphNode ===

impl GraphNode {
    fn new(name: &str, definition: VariableDefinition) -> Result<Self, GraphFault> {
        let wrong = |why: String| GraphFault::Expression {
            name: name.to_owned(),
            why,
        };
        let (expression, reads) = match &definition.producer {
            VariableProducer::Fixed(_) => (None, BTreeSet::new()),
            VariableProducer::Step { reads } => (None, reads.iter().cloned().collect()),
            VariableProducer::Expression(text) => {
                let (expression, reads) = read_expression(text).map_err(wrong)?;
                (Some(expression), reads)
            }
        };
        Ok(Self {
            is_sensitive: definition.is_sensitive,
            definition,
            expression,
            reads,
        })
    }

    /// What it is made from, or the name of what has no value.
    fn inputs<'k>(
        &self,
        known: impl Fn(&str) -> Option<&'k ComputedValue>,
    ) -> Result<NodeInputs, String> {
        let mut hasher = FieldHasher::of("variable");
        match &self.definition.producer {
            VariableProducer::Fixed(value) => hasher.add("fixed").add(&value.to_string()),
            VariableProducer::Expression(text) => hasher.add("expression").add(text),
            VariableProducer::Step { .. } => hasher.add("step"),
        };
        let mut values = Map::new();
        for read in &self.reads {
            let found = known(read).and_then(|found| found.value.as_ref());
            let value = found.ok_or_else(|| read.clone())?;
            hasher.add(read).add(&value.to_string());
            values.insert(read.clone(), value.clone());
        }
        Ok(NodeInputs {
            values,
            digest: hasher.finish().hex(),
        })
    }

    /// Whether it has to be made: for the first time, because something that it reads changed, or because it is time.
    fn is_due(&self, before: Option<&ComputedValue>, inputs: &str, now: Timestamp) -> bool {
        let Some(before) = before else {
            return true;
        };
        let is_step = matches!(self.definition.producer, VariableProducer::Step { .. });
        if before.inputs != inputs || (before.error.is_some() && !is_step) {
            return true;
        }
        // The result of an expression follows from what it reads; only steps can have another one after a while.
        let refresh = self.definition.refresh.filter(|_| is_step);
        refresh.is_some_and(|refresh| later(before.tried.min(now), refresh) <= now)
    }

    /// The value; `None` if a step has to run for it.
    fn compute(&self, values: &Map<String, Json>) -> Option<Result<Json, String>> {
        match (&self.definition.producer, &self.expression) {
            (VariableProducer::Fixed(value), _) => Some(bounded(value.clone())),
            (VariableProducer::Expression(_), Some(expression)) => {
                let values = Json::Object(values.clone());
                Some(evaluated(expression, "vars", &values).and_then(bounded))
            }
            _ => None,
        }
    }

    fn staleness(
        &self,
        name: &str,
        found: &ComputedValue,
        now: Timestamp,
    ) -> Option<StaleVariable> {
        let name = name.to_owned();
        if let Some(why) = found.error.clone() {
            return Some(StaleVariable::Failed { name, why });
        }
        let (ttl, age) = (self.definition.ttl?, since(found.computed, now));
        let ttl = WrittenSpan(ttl);
        let age = WrittenSpan(Duration::from_secs(age.as_secs()));
        (age > ttl).then_some(StaleVariable::TooOld { name, age, ttl })
    }
}

pub(super) fn evaluated(expression: &Expression, name: &str, value: &Json) -> Result<Json, String> {
    let value = portolan_cel::from_json(value);
    let limits = Limits {
        steps: STEPS,
        ..Limits::default()
    };
    let budget = Budget::new(limits, Stop::default());
    let scope = EvaluationScope::of([(name, value)]);
    let value = portolan_cel::evaluate(expression, &scope, &mut Meter::new(&budget))
        .map_err(|failure| failure.to_string())?;
    portolan_cel::to_json(&value).ok_or_else(|| "its value cannot be written as JSON".to_owned())
}

pub(super) fn bounded(value: Json) -> Result<Json, String> {
    let bytes = value.to_string().len();
    if bytes > MAX_VALUE {
        return Err(format!(
            "its value has {bytes} bytes, more than {MAX_VALUE}"
        ));
    }
    Ok(value)
}

fn made(
    before: Option<&ComputedValue>,
    result: Result<Json, String>,
    inputs: String,
    now: Timestamp,
) -> ComputedValue {
    match result {
        Ok(value) => {
            let same = before.filter(|before| before.value.as_ref() == Some(&value));
            let last = before.map_or(0, |before| before.version);
            ComputedValue {
                version: same.map_or(last + 1, |before| before.version),
                value: Some(value),
                inputs,
                computed: now,
                error: None,
                tried: now,
            }
        }
        Err(why) => ComputedValue {
            inputs,
            ..after_failure(before, &why, now)
        },
    }
}

/// The value that was made last, with the reason why there is no newer one.
fn after_failure(before: Option<&ComputedValue>, why: &str, now: Timestamp) -> ComputedValue {
    ComputedValue {
        value: before.and_then(|before| before.value.clone()),
        version: before.map_or(0, |before| before.version),
        inputs: before.map_or_else(String::new, |before| before.inputs.clone()),
        computed: before.map_or(now, |before| before.computed),
        error: Some(why.to_owned()),
        tried: now,
    }
}
