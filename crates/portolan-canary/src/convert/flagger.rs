//! `Canary` of Flagger.

use serde_json::{Value, json};

use super::query::replace_variables;
use super::{Draft, Known, text};

pub(super) fn fill(draft: &mut Draft, canary: &Value, known: &Known<'_>) {
    let provider = text(&canary["provider"]);
    if provider.starts_with("gatewayapi") {
        draft.set(&["routing", "provider"], json!("gatewayAPI"));
        draft.set_some(
            &["routing", "parentRefs"],
            &canary["service"]["gatewayRefs"],
        );
    } else if !matches!(provider, "" | "istio") {
        draft.note(format!(
            "provider `{provider}` has no counterpart; the routes will be Istio's"
        ));
    }
    let scaler = &canary["autoscalerRef"];
    if !scaler.is_null() {
        draft.take_autoscaler(known, text(&scaler["kind"]), text(&scaler["name"]));
    }
    let target = &canary["targetRef"];
    if text(&target["kind"]) != "Deployment" {
        draft.note(format!(
            "a {} as target has no counterpart; only Deployments can be canaries",
            text(&target["kind"])
        ));
    }
    draft.take_workload(known, text(&target["name"]));
    if let Some(seconds) = canary["progressDeadlineSeconds"].as_u64() {
        draft.set(
            &["strategy", "progressDeadline"],
            json!(format!("{seconds}s")),
        );
    }
    if canary["suspend"] == json!(true) {
        draft.set(&["paused"], json!(true));
    }
    draft.note_fields(
        canary,
        "spec.",
        &[
            (
                "skipAnalysis",
                "the annotation `portolan.dev/force` promotes one revision without judging it",
            ),
            (
                "revertOnDeletion",
                "the pods of a deleted object go with it; `portolan rollout release` keeps them",
            ),
            (
                "metricsServer",
                "the operator's `--prometheus` says where metrics are",
            ),
        ],
    );
    service(draft, &canary["service"]);
    analysis(draft, &canary["analysis"], known);
}

fn service(draft: &mut Draft, service: &Value) {
    for field in [
        "port",
        "targetPort",
        "portName",
        "hosts",
        "gateways",
        "trafficPolicy",
        "timeout",
        "retries",
    ] {
        draft.set_some(&["service", field], &service[field]);
    }
    if service["port"].is_null() {
        draft.set(&["service", "port"], json!(80));
        draft.note("`spec.service.port` was not given; 80 is assumed");
    }
    if service["delegation"] == json!(true) {
        draft.set(&["service", "delegate"], json!(true));
    }
    let in_routes = "write your routes into `spec.virtualService`; every route to the application becomes a weighted pair";
    draft.note_fields(
        service,
        "spec.service.",
        &[
            ("match", in_routes),
            ("rewrite", in_routes),
            ("headers", in_routes),
            ("corsPolicy", in_routes),
            (
                "portDiscovery",
                "the Service has the one port of `spec.service`",
            ),
            ("name", "Services are named after the object"),
            (
                "apex",
                "labels of the object's own Services are the operator's",
            ),
            (
                "primary",
                "labels of the object's own Services are the operator's",
            ),
            (
                "canary",
                "labels of the object's own Services are the operator's",
            ),
        ],
    );
}

fn analysis(draft: &mut Draft, analysis: &Value, known: &Known<'_>) {
    let interval = text(&analysis["interval"]);
    let interval = if interval.is_empty() { "1m" } else { interval };
    strategy(draft, analysis, interval);
    if !analysis["threshold"].is_null() {
        draft.note("`spec.analysis.threshold` has no counterpart: evidence decides, with the error rates of `spec.analysis`, not a number of failed checks");
    }
    let metrics = analysis["metrics"].as_array().into_iter().flatten();
    let metrics: Vec<Value> = metrics
        .filter_map(|metric| one_metric(draft, metric, interval, known))
        .collect();
    if !metrics.is_empty() {
        draft.set(&["analysis", "metrics"], json!(metrics));
    }
    let hooks = analysis["webhooks"].as_array().into_iter().flatten();
    for hook in hooks {
        webhook(draft, hook);
    }
    if analysis["alerts"]
        .as_array()
        .is_some_and(|alerts| !alerts.is_empty())
    {
        draft.note("`spec.analysis.alerts` refer to an AlertProvider; write its address into `spec.notifications`");
    }
}

fn strategy(draft: &mut Draft, analysis: &Value, interval: &str) {
    let matches: Vec<Value> = analysis["match"]
        .as_array()
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    let iterations = analysis["iterations"].as_u64().unwrap_or(0);
    let weights = weights(analysis);
    if iterations > 0 || (weights.is_empty() && !matches.is_empty()) {
        let kind = if matches.is_empty() {
            "blueGreen"
        } else {
            "abTest"
        };
        draft.set(&["strategy", "type"], json!(kind));
        let lasts = portolan_rollout::Span::from_seconds(
            seconds(interval).saturating_mul(iterations.max(1)),
        );
        draft.set(&["strategy", "stepInterval"], json!(lasts));
    } else {
        let weights = if weights.is_empty() {
            vec![10, 20, 50]
        } else {
            weights
        };
        draft.set(&["strategy", "weights"], json!(weights));
        draft.set(&["strategy", "stepInterval"], json!(interval));
    }
    if !matches.is_empty() {
        draft.set(&["strategy", "match"], json!(matches));
    }
    if analysis["mirror"] == json!(true) {
        let share = analysis["mirrorWeight"]
            .as_u64()
            .unwrap_or(100)
            .clamp(1, 100);
        draft.set(&["strategy", "mirror"], json!(share));
    }
    let affinity = &analysis["sessionAffinity"];
    if let Some(cookie) = affinity["cookieName"].as_str() {
        draft.set(&["strategy", "stickySessions", "cookieName"], json!(cookie));
        if let Some(seconds) = affinity["maxAge"].as_u64() {
            draft.set(
                &["strategy", "stickySessions", "maxAge"],
                json!(format!("{seconds}s")),
            );
        }
    }
    draft.note_fields(
        analysis,
        "spec.analysis.",
        &[
            (
                "stepWeightPromotion",
                "promotion moves no pods, so traffic need not go back step by step",
            ),
            (
                "primaryReadyThreshold",
                "the slot must be ready at full size",
            ),
            (
                "canaryReadyThreshold",
                "the slot must be ready for its share",
            ),
        ],
    );
}

/// The weights of a canary, without the last one that is the promotion itself.
fn weights(analysis: &Value) -> Vec<u64> {
    let listed = analysis["stepWeights"].as_array();
    let mut weights: Vec<u64> = match listed {
        Some(listed) => listed.iter().filter_map(Value::as_u64).collect(),
        None => {
            let most = analysis["maxWeight"].as_u64().unwrap_or(50).min(100);
            match usize::try_from(analysis["stepWeight"].as_u64().unwrap_or(0)) {
                Ok(step) if step > 0 => (1..=most).skip(step - 1).step_by(step).collect(),
                _ => Vec::new(),
            }
        }
    };
    weights.retain(|weight| (1..100).contains(weight));
    weights.sort_unstable();
    weights.dedup();
    // More steps than a strategy can have are thinned out evenly.
    let every = weights.len().div_ceil(50).max(1);
    weights.into_iter().step_by(every).collect()
}

fn seconds(span: &str) -> u64 {
    span.parse::<portolan_rollout::Span>()
        .map_or(60, portolan_rollout::Span::seconds)
}

fn one_metric(
    draft: &mut Draft,
    metric: &Value,
    interval: &str,
    known: &Known<'_>,
) -> Option<Value> {
    let name = text(&metric["name"]);
    let range = &metric["thresholdRange"];
    let least = range["min"]
        .as_f64()
        .or_else(|| metric["threshold"].as_f64());
    let most = range["max"]
        .as_f64()
        .or_else(|| metric["threshold"].as_f64());
    match name {
        "request-success-rate" => {
            let mut ours = json!({"name": "errors", "builtin": "istio-requests"});
            if let Some(slo) = least
                .map(|least| ((100.0 - least) * 1_000.0).round() / 100_000.0)
                .filter(|slo| *slo > 0.0 && *slo <= 0.5)
            {
                ours["slo"] = json!(slo);
            }
            Some(ours)
        }
        "request-duration" => {
            let limit = most.unwrap_or(500.0).max(1.0).round();
            draft.note("`request-duration` limited the 99th percentile; here the share of requests over the limit is compared between both revisions");
            Some(
                json!({"name": "slow", "builtin": "istio-latency", "over": format!("{limit}ms"), "slo": 0.01}),
            )
        }
        _ => own_metric(draft, metric, name, interval, known),
    }
}

fn own_metric(
    draft: &mut Draft,
    metric: &Value,
    name: &str,
    interval: &str,
    known: &Known<'_>,
) -> Option<Value> {
    let reference = &metric["templateRef"];
    let template = known.get(
        "MetricTemplate",
        match text(&reference["namespace"]) {
            "" => &draft.namespace,
            namespace => namespace,
        },
        text(&reference["name"]),
    );
    let provider = template.map_or("prometheus", |template| {
        text(&template["spec"]["provider"]["type"])
    });
    let query = metric["query"]
        .as_str()
        .or_else(|| template?["spec"]["query"].as_str());
    let Some(query) = query else {
        draft.note(format!(
            "metric `{name}`: its MetricTemplate `{}` was not given",
            text(&reference["name"])
        ));
        return None;
    };
    if provider != "prometheus" {
        draft.note(format!("metric `{name}`: provider `{provider}` has no counterpart; an `http` metric can ask any address for counts"));
        return None;
    }
    let window = metric["interval"].as_str().unwrap_or(interval);
    let own = &metric["templateVariables"];
    let (query, unknown) = replace_variables(query, |variable| match variable {
        "namespace" => Some("$(namespace)".to_owned()),
        "target" | "service" => Some("$(slot)".to_owned()),
        "name" | "ingress" => Some("$(name)".to_owned()),
        "interval" => Some(window.to_owned()),
        other => own[other.strip_prefix("variables.")?]
            .as_str()
            .map(str::to_owned),
    });
    for variable in unknown {
        draft.note(format!(
            "metric `{name}`: the variable `{variable}` has no counterpart; mend its query"
        ));
    }
    let mut ours = json!({"name": name, "query": query});
    let range = &metric["thresholdRange"];
    for bound in ["min", "max"] {
        if !range[bound].is_null() {
            ours[bound] = range[bound].clone();
        }
    }
    if range["min"].is_null() && range["max"].is_null() {
        ours["max"] = metric["threshold"]
            .as_f64()
            .map_or(json!(0), |most| json!(most));
    }
    draft.note(format!("metric `{name}` looks at the new revision alone; two counters as `bad` and `total` would compare both"));
    Some(ours)
}

fn webhook(draft: &mut Draft, hook: &Value) {
    let (name, url) = (text(&hook["name"]), &hook["url"]);
    let before = match text(&hook["type"]) {
        "confirm-rollout" | "pre-rollout" => "start",
        "confirm-traffic-increase" | "rollout" if !text(url).contains("loadtester") => "step",
        "confirm-promotion" => "promote",
        "event" => {
            let all = draft
                .spec
                .entry("notifications")
                .or_insert_with(|| json!([]));
            if let Some(all) = all.as_array_mut() {
                all.push(json!({"type": "webhook", "url": url}));
            }
            return;
        }
        other => {
            draft.note(format!(
                "webhook `{name}` of type `{other}` has no counterpart"
            ));
            return;
        }
    };
    if !hook["metadata"].is_null() {
        draft.note(format!("webhook `{name}`: its `metadata` is not sent; a gate gets the name, the revision and the step"));
    }
    let mut webhook = json!({"url": url});
    if !hook["timeout"].is_null() {
        webhook["timeout"] = hook["timeout"].clone();
    }
    let gates = draft.spec.entry("gates").or_insert_with(|| json!([]));
    if let Some(gates) = gates.as_array_mut() {
        gates.push(json!({"before": before, "webhook": webhook}));
    }
}
