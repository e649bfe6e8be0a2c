//! `CronJob`: runs that are made by a schedule.

use portolan_object::{FieldPath, NameRule};
use portolan_trigger::Schedule;
use serde_json::Value;

use crate::definition::{Column, KindDefinition};
use crate::fault::Faults;
use crate::rule::{FieldDemand, FieldRule, FixedValue};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "CronJob",
    plural: "cronjobs",
    short_names: &["cron", "cj"],
    is_namespaced: true,
    spec: "CronJobSpec",
    status: Some("CronJobStatus"),
    names: NameRule::Subdomain,
    rules: &[
        FieldRule {
            path: "schedule",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "books",
            demand: FieldDemand::Items(20),
        },
        FieldRule {
            path: "books[].name",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "books[].name",
            demand: FieldDemand::Name(NameRule::Subdomain),
        },
        FieldRule {
            path: "steps",
            demand: FieldDemand::Items(1_000),
        },
        FieldRule {
            path: "target.selector",
            demand: FieldDemand::LabelSelector,
        },
        FieldRule {
            path: "on",
            demand: FieldDemand::Default(FixedValue::Text("server")),
        },
        FieldRule {
            path: "missed",
            demand: FieldDemand::Default(FixedValue::Text("skip")),
        },
        FieldRule {
            path: "concurrency",
            demand: FieldDemand::Default(FixedValue::Text("forbid")),
        },
        FieldRule {
            path: "deadline",
            demand: FieldDemand::Span(1, 366 * 24 * 3600),
        },
        FieldRule {
            path: "mode",
            demand: FieldDemand::Default(FixedValue::Text("apply")),
        },
        FieldRule {
            path: "mode",
            demand: FieldDemand::OneOf(&["apply", "check"]),
        },
        FieldRule {
            path: "suspend",
            demand: FieldDemand::Default(FixedValue::Flag(false)),
        },
    ],
    check,
    columns: &[
        Column::new("SCHEDULE", "spec.schedule"),
        Column::new("ZONE", "spec.timeZone"),
        Column::new("SUSPENDED", "spec.suspend"),
        Column::new("LAST", "status.lastSlot"),
        Column::new("NEXT", "status.nextSlot"),
        Column::new("ERROR", "status.error"),
        Column::wide("RUNS", "status.lastRuns"),
        Column::wide("SKIPPED", "status.skipped"),
        Column::wide("NODES", "status.nodes"),
    ],
    selectable: &[],
};

/// What `books` can be narrowed by: they have a target of their own.
const NARROWING: [&str; 2] = ["nodes", "selector"];

fn check(spec: &Value, faults: &mut Faults<'_>) {
    let path = FieldPath::top("spec");
    let text = |key: &str| spec.get(key).and_then(Value::as_str);
    if let Some(schedule) = text("schedule").filter(|schedule| !schedule.is_empty())
        && let Err(error) = Schedule::parse(schedule, text("timeZone"))
    {
        let field = match error {
            portolan_trigger::ScheduleError::Zone(_) => "timeZone",
            _ => "schedule",
        };
        faults.add(&path.key(field), format!("cannot be used: {error}"));
    }
    let has = |key: &str| {
        let list = spec.get(key).and_then(Value::as_array);
        list.is_some_and(|list| !list.is_empty())
    };
    if has("books") == has("steps") {
        faults.add(&path, "must have either `books` or `steps`");
    }
    let target = spec.get("target").and_then(Value::as_object);
    if has("steps") && target.is_none_or(serde_json::Map::is_empty) {
        let message = "must be there, because `steps` have no book that says the nodes";
        faults.add(&path.key("target"), message);
    }
    for key in target.into_iter().flat_map(serde_json::Map::keys) {
        if has("books") && !NARROWING.contains(&key.as_str()) {
            let message = "cannot be used with `books`: `nodes` and `selector` narrow their nodes";
            faults.add(&path.key("target").key(key), message);
        }
    }
}
