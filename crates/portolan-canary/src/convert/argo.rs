//! `Rollout` of Argo Rollouts.

use serde_json::{Value, json};

use super::query::{range_of, replace_variables};
use super::{Draft, Known, text};

pub(super) fn fill(draft: &mut Draft, rollout: &Value, known: &Known<'_>) {
    if let Some(reference) = rollout["workloadRef"]["name"].as_str() {
        draft.take_workload(known, reference);
        draft.set_some(&["replicas"], &rollout["replicas"]);
    } else {
        draft.set(&["template"], rollout["template"].clone());
        draft.set_some(&["replicas"], &rollout["replicas"]);
    }
    if rollout["paused"] == json!(true) {
        draft.set(&["paused"], json!(true));
    }
    if let Some(seconds) = rollout["progressDeadlineSeconds"].as_u64() {
        draft.set(
            &["strategy", "progressDeadline"],
            json!(format!("{seconds}s")),
        );
    }
    let strategy = &rollout["strategy"];
    if strategy["blueGreen"].is_object() {
        blue_green(draft, &strategy["blueGreen"], known);
    } else {
        canary(draft, &strategy["canary"], known);
    }
    draft.note_fields(
        rollout,
        "spec.",
        &[
            (
                "minReadySeconds",
                "requests of fresh pods do not count for `analysis.warmup`",
            ),
            ("revisionHistoryLimit", "ten revisions are kept"),
            (
                "rollbackWindow",
                "`strategy.rollbackWindow` says how long the old pods are kept",
            ),
            ("restartAt", "`portolan rollout restart` does that"),
        ],
    );
}

fn canary(draft: &mut Draft, canary: &Value, known: &Known<'_>) {
    let service = canary["stableService"].as_str();
    take_port(draft, service, known);
    let routing = &canary["trafficRouting"];
    let istio = &routing["istio"];
    let virtual_service = match &istio["virtualServices"] {
        Value::Array(all) => {
            if all.len() > 1 {
                draft.note("more than one VirtualService has no counterpart; only the first is referred to");
            }
            all.first().cloned().unwrap_or(Value::Null)
        }
        _ => istio["virtualService"].clone(),
    };
    if let Some(name) = virtual_service["name"].as_str() {
        draft.set(&["virtualServiceRef", "name"], json!(name));
        draft.set_some(&["virtualServiceRef", "routes"], &virtual_service["routes"]);
        draft.note(format!("the routes of VirtualService `{name}` must lead to the Service `{}`: each becomes a weighted pair", draft.name));
    }
    draft.note_fields(
        routing,
        "spec.strategy.canary.trafficRouting.",
        &[
            ("nginx", "routes are Istio's or Gateway API's"),
            ("alb", "routes are Istio's or Gateway API's"),
            ("smi", "routes are Istio's or Gateway API's"),
            ("traefik", "routes are Istio's or Gateway API's"),
            ("ambassador", "routes are Istio's or Gateway API's"),
            ("apisix", "routes are Istio's or Gateway API's"),
            (
                "plugins",
                "set `spec.routing.provider: gatewayAPI` for Gateway API",
            ),
            (
                "managedRoutes",
                "matches of `strategy.match` come first by themselves",
            ),
        ],
    );
    draft.note_fields(
        istio,
        "spec.strategy.canary.trafficRouting.istio.",
        &[(
            "destinationRule",
            "slots have Services of their own, so no subsets are needed",
        )],
    );
    draft.note_fields(
        canary,
        "spec.strategy.canary.",
        &[
            ("maxSurge", "the slots are sized by `strategy.capacity`"),
            (
                "maxUnavailable",
                "the slots are sized by `strategy.capacity`",
            ),
            ("pingPong", "slots take turns by themselves"),
            ("antiAffinity", "write it into the pod template"),
            (
                "canaryMetadata",
                "labels of pods that change with the role would restart them",
            ),
            (
                "stableMetadata",
                "labels of pods that change with the role would restart them",
            ),
            (
                "dynamicStableScale",
                "`strategy.capacity: shrinkStable` does that",
            ),
        ],
    );
    if canary["dynamicStableScale"] == json!(true) {
        draft.set(&["strategy", "capacity"], json!("shrinkStable"));
    }
    steps(draft, &canary["steps"], known);
    if canary["analysis"].is_object() {
        templates(draft, &canary["analysis"], known);
    }
}

fn steps(draft: &mut Draft, steps: &Value, known: &Known<'_>) {
    let mut ours: Vec<Value> = Vec::new();
    let mut replicas = Value::Null;
    for step in steps.as_array().into_iter().flatten() {
        if let Some(weight) = step["setWeight"].as_u64() {
            // All traffic is the promotion itself.
            if weight < 100 {
                let mut next = json!({"weight": weight, "for": "1m"});
                if !replicas.is_null() {
                    next["replicas"] = replicas.take();
                }
                ours.push(next);
            }
        } else if step["pause"].is_object() {
            pause(draft, &mut ours, &step["pause"]["duration"]);
        } else if step["setCanaryScale"].is_object() {
            let scale = &step["setCanaryScale"];
            if scale["replicas"].is_null() {
                draft.note("`setCanaryScale` without `replicas` has no counterpart: the slot has the pods that its share needs");
            } else {
                replicas = scale["replicas"].clone();
            }
        } else if step["analysis"].is_object() {
            draft.note("an `analysis` step has no counterpart: metrics are judged all the time");
            templates(draft, &step["analysis"], known);
        } else if let Some(kind) = step.as_object().and_then(|step| step.keys().next()) {
            let advice = match kind.as_str() {
                "setHeaderRoute" => {
                    "; `strategy.match` sends requests with a header to the new revision"
                }
                "setMirrorRoute" => "; `strategy.mirror` copies requests in a first step",
                _ => "",
            };
            draft.note(format!("a `{kind}` step has no counterpart{advice}"));
        }
    }
    if ours.is_empty() {
        return;
    }
    draft.set(&["strategy", "steps"], json!(ours));
}

fn pause(draft: &mut Draft, ours: &mut [Value], duration: &Value) {
    let Some(step) = ours.last_mut() else {
        draft.note("a pause before the first weight has no counterpart; a gate `before: start` can hold a rollout");
        return;
    };
    let lasts = match duration {
        Value::Number(seconds) => Some(format!("{seconds}s")),
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(format!("{text}s"))
        }
        Value::String(text) => Some(text.clone()),
        _ => None,
    };
    if let Some(fields) = step.as_object_mut() {
        fields.remove("for");
        match lasts {
            Some(lasts) => fields.insert("for".to_owned(), json!(lasts)),
            None => fields.insert("pause".to_owned(), json!("manual")),
        };
    }
}

fn blue_green(draft: &mut Draft, strategy: &Value, known: &Known<'_>) {
    take_port(draft, strategy["activeService"].as_str(), known);
    draft.set(&["strategy", "type"], json!("blueGreen"));
    if strategy["autoPromotionEnabled"] == json!(false) {
        draft.note("`autoPromotionEnabled: false` has no counterpart in blue/green; a gate `before: promote` can hold it");
    }
    if let Some(seconds) = strategy["scaleDownDelaySeconds"].as_u64() {
        draft.set(
            &["strategy", "rollbackWindow"],
            json!(format!("{seconds}s")),
        );
    }
    for field in ["prePromotionAnalysis", "postPromotionAnalysis"] {
        if strategy[field].is_object() {
            templates(draft, &strategy[field], known);
        }
    }
    draft.note_fields(
        strategy,
        "spec.strategy.blueGreen.",
        &[
            (
                "previewService",
                "the new revision is reached by the Service `NAME-canary`",
            ),
            (
                "previewReplicaCount",
                "the slot has full size before it takes over",
            ),
            (
                "autoPromotionSeconds",
                "`strategy.stepInterval` says how long it is watched",
            ),
            ("antiAffinity", "write it into the pod template"),
        ],
    );
}

/// The port comes from the Service that clients call.
fn take_port(draft: &mut Draft, service: Option<&str>, known: &Known<'_>) {
    let found = service.and_then(|name| known.get("Service", &draft.namespace, name));
    let port = found.map_or(Value::Null, |service| service["spec"]["ports"][0].clone());
    draft.set_some(&["service", "targetPort"], &port["targetPort"]);
    draft.set_some(&["service", "portName"], &port["name"]);
    match port["port"].as_u64() {
        Some(number) => draft.set(&["service", "port"], json!(number)),
        None => {
            draft.set(&["service", "port"], json!(80));
            draft.note("the Service was not given; port 80 is assumed");
        }
    }
    if let Some(service) = service.filter(|service| *service != draft.name) {
        draft.note(format!(
            "clients that call the Service `{service}` must call `{}`",
            draft.name
        ));
    }
}

/// Takes over the metrics of the templates that an analysis names.
fn templates(draft: &mut Draft, analysis: &Value, known: &Known<'_>) {
    for reference in analysis["templates"].as_array().into_iter().flatten() {
        let name = text(&reference["templateName"]);
        let kind = if reference["clusterScope"] == json!(true) {
            "ClusterAnalysisTemplate"
        } else {
            "AnalysisTemplate"
        };
        let Some(template) = known.get(kind, &draft.namespace, name) else {
            draft.note(format!(
                "the {kind} `{name}` was not given; its metrics are missing"
            ));
            continue;
        };
        for metric in template["spec"]["metrics"].as_array().into_iter().flatten() {
            if let Some(metric) = one_metric(draft, metric, analysis, &template["spec"]) {
                let metrics = draft.spec.entry("analysis").or_insert_with(|| json!({}));
                let metrics = &mut metrics["metrics"];
                match metrics.as_array_mut() {
                    Some(all) if all.iter().any(|known| known["name"] == metric["name"]) => {}
                    Some(all) => all.push(metric),
                    None => *metrics = json!([metric]),
                }
            }
        }
    }
}

fn one_metric(
    draft: &mut Draft,
    metric: &Value,
    analysis: &Value,
    template: &Value,
) -> Option<Value> {
    let name = text(&metric["name"]);
    let Some(query) = metric["provider"]["prometheus"]["query"].as_str() else {
        let providers = metric["provider"].as_object().into_iter().flatten();
        let provider = providers
            .map(|(name, _)| name.as_str())
            .next()
            .unwrap_or_default()
            .to_owned();
        draft.note(format!(
            "metric `{name}`: provider `{provider}` has no counterpart"
        ));
        return None;
    };
    let argument = |wanted: &str| {
        let given = analysis["args"].as_array().into_iter().flatten();
        let defaults = template["args"].as_array().into_iter().flatten();
        let mut named = given
            .chain(defaults)
            .filter(|one| text(&one["name"]) == wanted);
        named.find_map(|one| one["value"].as_str().map(str::to_owned))
    };
    let (query, unknown) =
        replace_variables(query, |variable| argument(variable.strip_prefix("args.")?));
    for variable in unknown {
        draft.note(format!("metric `{name}`: the variable `{variable}` has no value here; mend its query, with `$(slot)` for the new revision's Service"));
    }
    let mut ours = json!({"name": name, "query": query});
    for (field, is_success) in [("successCondition", true), ("failureCondition", false)] {
        let Some(condition) = metric[field].as_str() else {
            continue;
        };
        match range_of(condition, is_success) {
            Some((bound, number)) => ours[bound] = number,
            None => draft.note(format!(
                "metric `{name}`: `{field}: {condition}` is more than a range; mend `min` and `max`"
            )),
        }
    }
    if ours["min"].is_null() && ours["max"].is_null() {
        draft.note(format!("metric `{name}` has no range and is left out"));
        return None;
    }
    if let Some(limit) = metric["failureLimit"].as_u64() {
        ours["consecutive"] = json!(limit.saturating_add(1).min(1_000));
        draft.note(format!(
            "metric `{name}`: `failureLimit` counted all failures, `consecutive` those in a row"
        ));
    }
    Some(ours)
}
