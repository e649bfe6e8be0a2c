//! Makes events of any JSON body, by expressions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use portolan_budget::{Budget, Limits, Stop};
use portolan_cel::{EvaluationScope, Expression, Meter, Record, Type, Value};
use portolan_digest::FieldHasher;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::signature::WebhookRefusal;
use super::{MAX_EVENTS, MAX_LABELS, WebhookOrigin, bounded_data, bounded_labels, bounded_node};
use crate::event::{CauseChain, FleetEvent, FleetSeverity};
use crate::trigger::{SpecFault, checked_expression};
use crate::type_pattern::is_type;

/// What all expressions of one request may do together.
const STEPS: u64 = 10_000_000;

/// How a body becomes events: expressions in CEL over `body`, and over `item` for each of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookMappingSpec {
    /// A list of items that are one event each; the whole body is one event without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<String>,
    /// Whether an item becomes an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The type of the event, such as `'ci.' + item.status`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `info`, `warning` or `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// The node that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When it happened, as `2026-11-18T09:00:00Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// What tells the event from others, so that one that is sent twice is one event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Labels by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// A map with more about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// Expressions that were read and checked.
#[derive(Debug)]
pub struct WebhookMapping {
    each: Option<Expression>,
    when: Option<Expression>,
    kind: Expression,
    severity: Option<Expression>,
    node: Option<Expression>,
    time: Option<Expression>,
    id: Option<Expression>,
    labels: Vec<(String, Expression)>,
    data: Option<Expression>,
}

/// The events of a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MappedEvents {
    /// The events.
    pub events: Vec<FleetEvent>,
    /// Items that are no events.
    pub problems: Vec<MappingProblem>,
    /// Items that were too many.
    pub left_out: u64,
}

/// An item that is no event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingProblem {
    /// Its place in the list.
    pub index: usize,
    /// Why.
    pub why: String,
}

impl WebhookMapping {
    /// Reads and checks the expressions.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn new(spec: &WebhookMappingSpec) -> Result<Self, Vec<SpecFault>> {
        let mut reader = MappingReader::default();
        let text = &[Type::Text];
        let kind = reader.read("type", Some(&spec.kind), text);
        let each = reader.read("each", spec.each.as_ref(), &[Type::list(Type::Any)]);
        let when = reader.read("when", spec.when.as_ref(), &[Type::Boolean]);
        let severity = reader.read("severity", spec.severity.as_ref(), text);
        let node = reader.read("node", spec.node.as_ref(), text);
        let time = reader.read("time", spec.time.as_ref(), text);
        let id = reader.read("id", spec.id.as_ref(), &[Type::Text, Type::Integer]);
        let labels = reader.labels(&spec.labels);
        let data = reader.read("data", spec.data.as_ref(), &[Type::map(Type::Any)]);
        match kind {
            Some(kind) if reader.faults.is_empty() => Ok(Self {
                each,
                when,
                kind,
                severity,
                node,
                time,
                id,
                labels,
                data,
            }),
            _ => Err(reader.faults),
        }
    }

    /// Makes events of a body.
    ///
    /// ```
    /// use portolan_trigger::{WebhookMapping, WebhookOrigin};
    ///
    /// let spec = serde_json::from_str(r#"{
    ///     "each": "body.builds", "type": "'ci.' + item.status", "node": "item.host",
    ///     "severity": "item.status == 'failed' ? 'error' : 'info'", "labels": {"branch": "item.branch"}
    /// }"#)?;
    /// let mapping = WebhookMapping::new(&spec).map_err(|faults| faults[0].to_string())?;
    /// let origin = WebhookOrigin {
    ///     uid: "hook", namespace: "shop", delivery: "1", received: "2026-11-18T09:00:00Z".parse()?,
    /// };
    /// let body = br#"{"builds": [{"status": "failed", "host": "web-1", "branch": "main"}, {"status": 1}]}"#;
    /// let mapped = mapping.events(body, origin)?;
    /// assert_eq!(mapped.events[0].kind, "ci.failed");
    /// assert_eq!(mapped.problems[0].index, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the body is not JSON, or `each` gives no list.
    pub fn events(
        &self,
        body: &[u8],
        origin: WebhookOrigin<'_>,
    ) -> Result<MappedEvents, WebhookRefusal> {
        let body: Json = serde_json::from_slice(body)
            .map_err(|error| WebhookRefusal::Malformed(error.to_string()))?;
        let body = portolan_cel::from_json(&body);
        let limits = Limits {
            steps: STEPS,
            ..Limits::default()
        };
        let budget = Budget::new(limits, Stop::default());
        let items = self.items(&body, &budget)?;
        let mut mapped = MappedEvents::default();
        for (index, item) in items.into_iter().enumerate() {
            if index >= MAX_EVENTS {
                mapped.left_out += 1;
                continue;
            }
            let item = MappingItem {
                scope: EvaluationScope::of([("body", body.clone()), ("item", item)]),
                budget: &budget,
            };
            match self.event(&item, origin, index) {
                Ok(event) => mapped.events.extend(event),
                Err(why) => mapped.problems.push(MappingProblem { index, why }),
            }
        }
        Ok(mapped)
    }

    fn items(&self, body: &Value, budget: &Budget) -> Result<Vec<Value>, WebhookRefusal> {
        let Some(each) = &self.each else {
            return Ok(vec![body.clone()]);
        };
        let item = MappingItem {
            scope: EvaluationScope::of([("body", body.clone())]),
            budget,
        };
        match item.value(each) {
            Ok(Value::List(items)) => Ok(items.to_vec()),
            Ok(_) => Err(WebhookRefusal::Malformed("`each` gives no list".to_owned())),
            Err(why) => Err(WebhookRefusal::Malformed(format!("`each`: {why}"))),
        }
    }

    /// The event of an item; `None` if it is not to become one.
    fn event(
        &self,
        item: &MappingItem<'_>,
        origin: WebhookOrigin<'_>,
        index: usize,
    ) -> Result<Option<FleetEvent>, String> {
        if let Some(when) = &self.when {
            match item.value(when).map_err(|why| format!("`when`: {why}"))? {
                Value::Bool(true) => {}
                Value::Bool(false) => return Ok(None),
                _ => return Err("`when` is neither true nor false".to_owned()),
            }
        }
        let kind = item.text("type", &self.kind)?;
        if !is_type(&kind) {
            return Err("`type` is not a type of events such as `ci.failed`".to_owned());
        }
        let severity = match item
            .optional("severity", self.severity.as_ref())?
            .as_deref()
        {
            None | Some("info") => FleetSeverity::Info,
            Some("warning") => FleetSeverity::Warning,
            Some("error") => FleetSeverity::Error,
            Some(_) => return Err("`severity` must be `info`, `warning` or `error`".to_owned()),
        };
        let node = match item.optional("node", self.node.as_ref())? {
            Some(name) if !name.is_empty() => {
                Some(bounded_node(&name).ok_or("`node` is not the name of a node")?)
            }
            _ => None,
        };
        let time = match item.optional("time", self.time.as_ref())? {
            Some(text) => text
                .parse::<Timestamp>()
                .map_err(|_| "`time` is not a time such as `2026-11-18T09:00:00Z`")?,
            None => origin.received,
        };
        let mut labels = Vec::new();
        for (name, expression) in &self.labels {
            labels.push((name.clone(), item.text(name, expression)?));
        }
        let data = match &self.data {
            None => serde_json::Map::new(),
            Some(expression) => {
                let value = item
                    .value(expression)
                    .map_err(|why| format!("`data`: {why}"))?;
                match portolan_cel::to_json(&value) {
                    Some(Json::Object(data)) => data,
                    _ => return Err("`data` is not a map".to_owned()),
                }
            }
        };
        Ok(Some(FleetEvent {
            uid: self.uid(item, origin, index)?,
            kind,
            namespace: origin.namespace.to_owned(),
            node,
            severity,
            labels: bounded_labels(labels),
            data: bounded_data(data),
            time,
            received: origin.received,
            causes: CauseChain::default(),
        }))
    }

    fn uid(
        &self,
        item: &MappingItem<'_>,
        origin: WebhookOrigin<'_>,
        index: usize,
    ) -> Result<String, String> {
        let mut hasher = FieldHasher::of("webhook event");
        hasher.add(origin.uid);
        match &self.id {
            Some(id) => hasher.add("id").add(&item.text("id", id)?),
            None => hasher
                .add("delivery")
                .add(origin.delivery)
                .add(&index.to_string()),
        };
        Ok(hasher.finish().hex())
    }
}

/// What expressions are evaluated for.
struct MappingItem<'a> {
    scope: EvaluationScope<'a>,
    budget: &'a Budget,
}

impl MappingItem<'_> {
    fn value(&self, expression: &Expression) -> Result<Value, String> {
        portolan_cel::evaluate(expression, &self.scope, &mut Meter::new(self.budget))
            .map_err(|failure| failure.to_string())
    }

    fn text(&self, name: &str, expression: &Expression) -> Result<String, String> {
        match self.value(expression) {
            Ok(Value::String(text)) => Ok(text.to_string()),
            Ok(Value::Int(number)) => Ok(number.to_string()),
            Ok(Value::Bool(truth)) => Ok(truth.to_string()),
            Ok(_) => Err(format!("`{name}` is not a text")),
            Err(why) => Err(format!("`{name}`: {why}")),
        }
    }

    fn optional(
        &self,
        name: &str,
        expression: Option<&Expression>,
    ) -> Result<Option<String>, String> {
        expression
            .map(|expression| self.text(name, expression))
            .transpose()
    }
}

#[derive(Default)]
struct MappingReader {
    faults: Vec<SpecFault>,
}

impl MappingReader {
    fn read(&mut self, field: &str, text: Option<&String>, wanted: &[Type]) -> Option<Expression> {
        let mut variables = Record::from([("body".to_owned(), Type::Any)]);
        if field != "each" {
            variables.insert("item".to_owned(), Type::Any);
        }
        match checked_expression(text?, &variables, wanted) {
            Ok(expression) => Some(expression),
            Err(message) => {
                self.faults.push(SpecFault {
                    field: field.to_owned(),
                    message,
                });
                None
            }
        }
    }

    fn labels(&mut self, labels: &BTreeMap<String, String>) -> Vec<(String, Expression)> {
        let mut read = Vec::new();
        for (name, text) in labels.iter().take(MAX_LABELS) {
            let field = format!("labels.{name}");
            let wanted = [Type::Text, Type::Integer, Type::Boolean];
            let expression = self.read(&field, Some(text), &wanted);
            read.extend(expression.map(|expression| (name.clone(), expression)));
        }
        read
    }
}
