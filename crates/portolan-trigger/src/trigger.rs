//! A trigger: which events start a run.
//!
//! ```text
//! event ──types, namespace, when──▶ loop? ──group──▶ seen? ──▶ cooldown? ──▶ count within ──▶ wait for more ──▶ may it start? ──▶ Firing
//!             Mismatch             Refusal          Refusal     Refusal        Counted           Waiting        Refusal, Held
//! ```

use std::fmt;
use std::time::Duration;

use portolan_budget::{Budget, Limits, Stop};
use portolan_cel::{EvaluationScope, Expression, Meter, Record, Type, Value};

use crate::event::{EventView, FleetEvent, event_type};
use crate::rate::{BucketRule, SlidingLimit};
use crate::time_window::TimeWindow;
use crate::type_pattern::TypePattern;

mod config;
mod explain;
mod group;
mod memory;
mod react;
mod refusal;
mod window;

pub use config::{BlockedPolicy, MatchSpec, TriggerSpec, TripSpec, WaitForMoreSpec};
pub use explain::{CheckedRule, TriggerExplanation};
pub use memory::{Checkpoint, TriggerLedger, TriggerMemory, Trip};
pub use react::{Firing, Reaction, Surroundings, TripAlert};
pub use refusal::{Blocked, Mismatch, Refusal};
pub use window::WindowState;

use group::GroupField;

/// The namespace of events that concern the whole fleet.
const SYSTEM: &str = "system";

/// What one condition may do for one event.
const STEPS: u64 = 100_000;

/// A trigger that was read and checked.
#[derive(Debug)]
pub struct Trigger {
    uid: String,
    namespace: String,
    types: Vec<TypePattern>,
    namespaces: Vec<String>,
    when: Option<Expression>,
    group_by: Vec<GroupField>,
    count: usize,
    within: Duration,
    wait: Option<(Duration, Duration)>,
    cooldown: Option<Duration>,
    max_active: u32,
    per_hour: Option<SlidingLimit>,
    trip: BucketRule,
    reset: Option<Duration>,
    windows: Vec<TimeWindow>,
    blocked: BlockedPolicy,
    max_depth: usize,
    allows_repeat: bool,
    max_groups: usize,
}

/// Something wrong with a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecFault {
    /// The field, such as `match.types[0]`.
    pub field: String,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
}

impl fmt::Display for SpecFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` {}", self.field, self.message)
    }
}

impl Trigger {
    /// Checks a spec of the trigger with this uid in this namespace.
    ///
    /// ```
    /// use portolan_trigger::{Trigger, TriggerSpec};
    ///
    /// let spec: TriggerSpec = serde_json::from_str(r#"{
    ///     "match": {"types": ["beacon.service"], "when": "event.severity == 'error'"},
    ///     "groupBy": ["node"], "count": 3, "within": "5m", "cooldown": "10m"
    /// }"#)?;
    /// assert!(Trigger::new("uid", "shop", &spec).is_ok());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn new(uid: &str, namespace: &str, spec: &TriggerSpec) -> Result<Self, Vec<SpecFault>> {
        let mut faults = Faults::default();
        let types = types_of(&spec.matches, &mut faults);
        let namespaces = namespaces_of(&spec.matches, namespace, &mut faults);
        let when = condition_of(&spec.matches, &mut faults);
        let group_by = groups_of(spec, &mut faults);
        let windows = windows_of(spec, &mut faults);
        check_numbers(spec, &mut faults);
        if !faults.0.is_empty() {
            return Err(faults.0);
        }
        Ok(Self {
            uid: uid.to_owned(),
            namespace: namespace.to_owned(),
            types,
            namespaces,
            when,
            group_by,
            count: spec.count as usize,
            within: spec.within.map(|span| span.0).unwrap_or_default(),
            wait: spec.wait_for_more.map(|wait| (wait.quiet.0, wait.max.0)),
            cooldown: spec.cooldown.map(|span| span.0),
            max_active: spec.max_active,
            per_hour: spec.per_hour.map(|most| SlidingLimit {
                most,
                per: Duration::from_hours(1),
            }),
            trip: BucketRule {
                burst: spec.trip.burst,
                per: spec.trip.per.0,
            },
            reset: spec.trip.reset.map(|span| span.0),
            windows,
            blocked: spec.when_blocked,
            max_depth: spec.max_depth as usize,
            allows_repeat: spec.allow_repeat,
            max_groups: spec.max_groups as usize,
        })
    }

    /// The uid of its object.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// The namespace of its object, in which its runs are.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The types of events that it asks for.
    pub fn types(&self) -> &[TypePattern] {
        &self.types
    }

    /// The namespaces whose events it sees; `*` means all.
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// Whether an event counts for it.
    fn matching(&self, view: &EventView<'_>) -> Result<(), Mismatch> {
        let event = view.event();
        if !self.sees(&event.namespace) {
            return Err(Mismatch::Namespace(event.namespace.clone()));
        }
        if !self.types.iter().any(|kind| kind.matches(&event.kind)) {
            return Err(Mismatch::Type(event.kind.clone()));
        }
        self.condition(view)
    }

    fn sees(&self, namespace: &str) -> bool {
        let mut known = self.namespaces.iter();
        known.any(|known| known == namespace || known == "*")
    }

    fn condition(&self, view: &EventView<'_>) -> Result<(), Mismatch> {
        let Some(when) = &self.when else {
            return Ok(());
        };
        let limits = Limits {
            steps: STEPS,
            ..Limits::default()
        };
        let budget = Budget::new(limits, Stop::default());
        let scope = EvaluationScope::of([("event", view.value())]);
        match portolan_cel::evaluate(when, &scope, &mut Meter::new(&budget)) {
            Ok(Value::Bool(true)) => Ok(()),
            Ok(Value::Bool(false)) => Err(Mismatch::When),
            Ok(_) => Err(Mismatch::Condition(
                "it is neither true nor false".to_owned(),
            )),
            Err(failure) => Err(Mismatch::Condition(failure.to_string())),
        }
    }

    /// Whether an event comes from a loop.
    fn loops(&self, event: &FleetEvent) -> Result<(), Refusal> {
        if !self.allows_repeat && event.causes.has(&self.uid) {
            return Err(Refusal::SameTrigger);
        }
        if event.causes.depth() >= self.max_depth {
            return Err(Refusal::TooDeep {
                depth: event.causes.depth() + 1,
                most: self.max_depth,
            });
        }
        Ok(())
    }

    /// The name of the group of an event.
    pub(crate) fn group_name(&self, event: &FleetEvent) -> String {
        group::key(&self.group_by, event)
    }
}

#[derive(Default)]
struct Faults(Vec<SpecFault>);

impl Faults {
    fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(SpecFault {
            field: field.into(),
            message: message.into(),
        });
    }

    fn between(&mut self, field: &str, value: u64, least: u64, most: u64) {
        if !(least..=most).contains(&value) {
            self.add(field, format!("must be from {least} to {most}"));
        }
    }

    fn span(&mut self, field: &str, value: Duration, least: u64, most: u64) {
        if value < Duration::from_secs(least) || value > Duration::from_secs(most) {
            let (least, most) = (
                crate::span::WrittenSpan::seconds(least),
                crate::span::WrittenSpan::seconds(most),
            );
            self.add(field, format!("must be from {least} to {most}"));
        }
    }

    fn items(&mut self, field: &str, count: usize, most: usize) {
        if count > most {
            self.add(field, format!("must have at most {most} items"));
        }
    }
}

fn types_of(spec: &MatchSpec, faults: &mut Faults) -> Vec<TypePattern> {
    if spec.types.is_empty() {
        faults.add("match.types", "must have at least one type of events");
    }
    faults.items("match.types", spec.types.len(), 100);
    let mut types = Vec::new();
    for (index, text) in spec.types.iter().enumerate().take(100) {
        match TypePattern::parse(text) {
            Some(pattern) => types.push(pattern),
            None => faults.add(
                format!("match.types[{index}]"),
                "must be a type such as `beacon.drift`, `run.*` or `*`",
            ),
        }
    }
    types.sort();
    types.dedup();
    types
}

fn namespaces_of(spec: &MatchSpec, own: &str, faults: &mut Faults) -> Vec<String> {
    if spec.namespaces.is_empty() {
        return vec![own.to_owned()];
    }
    faults.items("match.namespaces", spec.namespaces.len(), 100);
    for (index, namespace) in spec.namespaces.iter().enumerate().take(100) {
        if own != SYSTEM && namespace != own {
            let message = "must be the trigger's own namespace; only triggers of `system` see the events of others";
            faults.add(format!("match.namespaces[{index}]"), message);
        }
    }
    let mut namespaces = spec.namespaces.clone();
    namespaces.sort();
    namespaces.dedup();
    namespaces
}

fn condition_of(spec: &MatchSpec, faults: &mut Faults) -> Option<Expression> {
    let text = spec.when.as_deref()?;
    let variables = Record::from([("event".to_owned(), event_type())]);
    let expression = checked_expression(text, &variables, &[Type::Boolean]);
    expression
        .map_err(|message| faults.add("match.when", message))
        .ok()
}

/// Reads an expression and checks that it gives one of these types.
pub(crate) fn checked_expression(
    text: &str,
    variables: &Record,
    wanted: &[Type],
) -> Result<Expression, String> {
    let expression = Expression::parse(text).map_err(|failure| failure.to_string())?;
    let (kind, found) = portolan_cel::check(&expression, variables, &[]);
    if let Some(fault) = found.into_iter().next() {
        let hint = fault.hint.map(|hint| format!("; {hint}"));
        return Err(format!("{}{}", fault.message, hint.unwrap_or_default()));
    }
    if kind != Type::Any && !wanted.iter().any(|wanted| wanted.meets(&kind)) {
        let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        return Err(format!("must give {}, not {kind}", wanted.join(" or ")));
    }
    Ok(expression)
}

fn groups_of(spec: &TriggerSpec, faults: &mut Faults) -> Vec<GroupField> {
    faults.items("groupBy", spec.group_by.len(), 8);
    let mut fields = Vec::new();
    for (index, text) in spec.group_by.iter().enumerate().take(8) {
        match GroupField::parse(text) {
            Some(field) => fields.push(field),
            None => faults.add(
                format!("groupBy[{index}]"),
                "must be `type`, `namespace`, `node`, `severity`, `labels.NAME` or `data.NAME`",
            ),
        }
    }
    fields
}

fn windows_of(spec: &TriggerSpec, faults: &mut Faults) -> Vec<TimeWindow> {
    faults.items("windows", spec.windows.len(), 32);
    let mut windows = Vec::new();
    for (index, window) in spec.windows.iter().enumerate().take(32) {
        match TimeWindow::new(window) {
            Ok(window) => windows.push(window),
            Err(error) => faults.add(format!("windows[{index}]"), error.to_string()),
        }
    }
    windows
}

fn check_numbers(spec: &TriggerSpec, faults: &mut Faults) {
    const DAY: u64 = 24 * 3600;
    faults.between("count", spec.count.into(), 1, 1_000);
    match spec.within {
        None if spec.count > 1 => faults.add("within", "is needed when `count` is more than 1"),
        Some(within) => faults.span("within", within.0, 1, DAY),
        None => {}
    }
    if let Some(wait) = spec.wait_for_more {
        faults.span("waitForMore.quiet", wait.quiet.0, 1, DAY);
        faults.span("waitForMore.max", wait.max.0, 1, DAY);
        if wait.quiet > wait.max {
            faults.add("waitForMore.max", "must not be shorter than `quiet`");
        }
    }
    if let Some(cooldown) = spec.cooldown {
        faults.span("cooldown", cooldown.0, 1, 366 * DAY);
    }
    faults.between("maxActive", spec.max_active.into(), 1, 1_000);
    if let Some(most) = spec.per_hour {
        faults.between("perHour", most.into(), 1, 1_000);
    }
    faults.between("trip.burst", spec.trip.burst.into(), 1, 10_000);
    faults.span("trip.per", spec.trip.per.0, 1, DAY);
    if let Some(reset) = spec.trip.reset {
        faults.span("trip.reset", reset.0, 1, 366 * DAY);
    }
    faults.between("maxDepth", spec.max_depth.into(), 1, 16);
    faults.between("maxGroups", spec.max_groups.into(), 1, 10_000);
}
