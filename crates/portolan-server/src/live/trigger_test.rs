//! What an event would do: every trigger that asks for it says whether it would fire, and why, and nothing changes.

use std::sync::Arc;

use portolan_kinds::{KindObject, find_kind};
use portolan_trigger::{
    CheckedRule, EventView, FleetEvent, Reaction, RunBudget, Surroundings, TriggerExplanation,
};
use serde_json::{Value, json};

use super::fired_by_event::inputs_of;
use super::fleet_event::fleet_event;
use super::moment;
use super::records::LiveRecords;
use super::trigger_state::{read_memory, read_trigger};
use super::triggers::{RUNS_PER_MINUTE, active_runs, count};
use crate::access::Action;
use crate::error::ApiError;
use crate::server::{ApiServer, Caller};

impl ApiServer {
    /// Explains what the triggers that the caller may list would do about an event.
    pub(crate) async fn test_triggers(
        &self,
        caller: &Caller,
        event: &KindObject,
    ) -> Result<Value, ApiError> {
        let event = fleet_event(event);
        let list = |kind: &str| {
            find_kind(kind).map_or_else(Vec::new, |kind| self.cache.objects(kind, None))
        };
        let active = active_runs(&list("Run"));
        let mut items = Vec::new();
        for trigger in list("Trigger") {
            let action = Action {
                verb: "list",
                kind: "Trigger",
                namespace: trigger.namespace(),
                name: None,
            };
            let is_visible = self.access.check(&caller.identity, &action).is_ok();
            // Those of other namespaces cannot see the event, but for those of the whole fleet.
            let is_near =
                [Some(event.namespace.as_str()), Some("system")].contains(&trigger.namespace());
            if is_visible && is_near {
                let active = count(&active, trigger.metadata.uuid());
                items.push(self.explain(&trigger, &event, active).await?);
            }
        }
        Ok(json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "TriggerTestList", "event": event.uid, "items": items,
        }))
    }

    async fn explain(
        &self,
        object: &Arc<KindObject>,
        event: &FleetEvent,
        active: u32,
    ) -> Result<Value, ApiError> {
        let trigger = read_trigger(object)?;
        let uuid = object.metadata.uuid();
        let mut records = LiveRecords::default();
        let (memory, _) = read_memory(&self.objects.store, &mut records, uuid).await?;
        let mut budget = RunBudget::per_minute(RUNS_PER_MINUTE);
        let around = Surroundings {
            now: moment(self.objects.time.now()),
            active,
            budget: &mut budget,
        };
        let explained = trigger.explain(&memory, &EventView::new(event), &around);
        Ok(shown(object, event, &explained))
    }
}

fn shown(trigger: &KindObject, event: &FleetEvent, explained: &TriggerExplanation) -> Value {
    let rule = |rule: &CheckedRule| json!({"rule": rule.name, "passed": rule.passed, "detail": rule.detail});
    let mut rules: Vec<Value> = explained.rules.iter().map(rule).collect();
    let is_suspended = trigger.spec["suspend"] == true;
    let mut fires = matches!(explained.reaction, Reaction::Fired(_));
    let mut result = explained.reaction.to_string();
    if is_suspended {
        let detail = "it is suspended";
        rules.insert(
            0,
            json!({"rule": "suspend", "passed": false, "detail": detail}),
        );
        (fires, result) = (false, detail.to_owned());
    }
    let mut shown = json!({
        "trigger": trigger.name(), "namespace": trigger.namespace(), "fires": fires, "result": result, "rules": rules,
    });
    if fires {
        shown["book"] = trigger.spec["run"]["book"].clone();
        match inputs_of(trigger, event, 1) {
            Ok(inputs) => shown["inputs"] = inputs.into(),
            Err(error) => {
                shown["fires"] = false.into();
                shown["result"] = error.to_string().into();
            }
        }
    }
    shown
}
