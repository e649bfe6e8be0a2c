//! The three tools: what each is given, how it is asked for a release, and where it stands.

use serde_json::{Value, json};

use crate::objects::Objects;
use crate::scenario::{NEW, OLD};

/// A tool that rolls a release out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Portolan,
    Flagger,
    Argo,
}

pub(crate) const TOOLS: [Tool; 3] = [Tool::Portolan, Tool::Flagger, Tool::Argo];

/// Where a release stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Standing {
    /// Whether the application serves and a release may begin.
    pub(crate) is_ready: bool,
    /// What became of the release.
    pub(crate) end: Option<End>,
    /// The share of the new revision in percent.
    pub(crate) weight: u64,
    /// The tool's own word for it.
    pub(crate) phase: String,
}

/// How a release ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Promoted,
    RolledBack,
}

/// What all tools are set up with.
pub(crate) struct Plan<'a> {
    pub(crate) prometheus: &'a str,
    /// Seconds of a step, and of the windows that errors are counted in.
    pub(crate) step: u64,
}

/// All weights of a release.
const WEIGHTS: [u64; 10] = [5, 10, 15, 20, 25, 30, 35, 40, 45, 50];
const REPLICAS: u64 = 4;

impl Tool {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Portolan => "portolan",
            Self::Flagger => "flagger",
            Self::Argo => "argo",
        }
    }

    /// The Services of the old and the new revision; different for each tool, so that a mesh tells them apart.
    pub(crate) fn slots(self) -> (&'static str, &'static str) {
        match self {
            Self::Portolan => ("web-a", "web-b"),
            Self::Flagger => ("web-primary", "web-canary"),
            Self::Argo => ("web-old", "web-new"),
        }
    }

    /// Makes the application.
    pub(crate) async fn install(self, objects: &Objects, plan: &Plan<'_>) {
        let all = match self {
            Self::Portolan => vec![icd(plan)],
            Self::Flagger => vec![deployment(), flagger_canary(plan)],
            Self::Argo => argo_objects(&objects.namespace, plan),
        };
        for object in all {
            objects.create(&object).await;
        }
    }

    /// Releases the new image.
    pub(crate) async fn release(self, objects: &Objects) {
        let (group, version, kind) = match self {
            Self::Portolan => ("portolan.dev", "v1alpha1", "IstioCanaryDeployment"),
            Self::Flagger => ("apps", "v1", "Deployment"),
            Self::Argo => ("argoproj.io", "v1alpha1", "Rollout"),
        };
        let patch = json!({"spec": {"template": {"spec": {"containers": containers(NEW)}}}});
        objects.patch(group, version, kind, &patch).await;
    }

    pub(crate) async fn standing(self, objects: &Objects) -> Standing {
        match self {
            Self::Portolan => portolan_standing(
                &objects
                    .get("portolan.dev", "v1alpha1", "IstioCanaryDeployment")
                    .await,
            ),
            Self::Flagger => {
                flagger_standing(&objects.get("flagger.app", "v1beta1", "Canary").await)
            }
            Self::Argo => argo_standing(&objects.get("argoproj.io", "v1alpha1", "Rollout").await),
        }
    }
}

/// It is decided when traffic goes back, or when the new revision takes over; what follows is watching and waiting.
fn portolan_standing(object: &Value) -> Standing {
    let status = &object["status"];
    let history = status["history"].as_array();
    let is_promoted = history
        .into_iter()
        .flatten()
        .any(|record| record["reason"] == "Promoted");
    let end = match status["phase"].as_str() {
        Some("RollingBack" | "RolledBack") => Some(End::RolledBack),
        _ => is_promoted.then_some(End::Promoted),
    };
    Standing {
        is_ready: status["phase"] == "Stable",
        end,
        weight: status["weight"].as_u64().unwrap_or(0),
        phase: text(&status["phase"]),
    }
}

fn flagger_standing(object: &Value) -> Standing {
    let status = &object["status"];
    let end = match status["phase"].as_str() {
        Some("Succeeded") => Some(End::Promoted),
        Some("Failed") => Some(End::RolledBack),
        _ => None,
    };
    let failed = status["failedChecks"].as_u64().unwrap_or(0);
    Standing {
        is_ready: status["phase"] == "Initialized",
        end,
        weight: status["canaryWeight"].as_u64().unwrap_or(0),
        phase: format!("{} ({failed} failed checks)", text(&status["phase"])),
    }
}

fn argo_standing(object: &Value) -> Standing {
    let status = &object["status"];
    // It writes the number as a text.
    let generation = object["metadata"]["generation"].to_string();
    let is_seen = status["observedGeneration"].as_str() == Some(generation.as_str());
    let is_new = object["spec"]["template"]["spec"]["containers"][0]["image"] == NEW;
    let is_stable = status["stableRS"] == status["currentPodHash"];
    let is_healthy = is_seen && is_stable && status["phase"] == "Healthy";
    let end = match (is_new, is_healthy, status["abort"] == true) {
        (true, true, _) => Some(End::Promoted),
        (true, false, true) => Some(End::RolledBack),
        _ => None,
    };
    Standing {
        is_ready: is_healthy,
        end,
        weight: status["canary"]["weights"]["canary"]["weight"]
            .as_u64()
            .unwrap_or(0),
        phase: text(&status["phase"]),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn containers(image: &str) -> Value {
    json!([{"name": "web", "image": image, "ports": [{"name": "http", "containerPort": 8080}]}])
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers(image)}})
}

fn seconds(plan: &Plan<'_>) -> String {
    format!("{}s", plan.step)
}

/// With steps of a minute everything is the default; with shorter ones, interval and warm-up are shorter by as much.
fn icd(plan: &Plan<'_>) -> Value {
    let interval = format!("{}s", (plan.step / 6).max(2));
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "IstioCanaryDeployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": REPLICAS,
            "template": template(OLD),
            "service": {"port": 80, "targetPort": "http"},
            "strategy": {"weights": WEIGHTS, "stepInterval": seconds(plan)},
            "analysis": {"interval": interval, "warmup": seconds(plan)},
        },
    })
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": REPLICAS, "selector": {"matchLabels": {"app": "web"}}, "template": template(OLD)},
    })
}

fn flagger_canary(plan: &Plan<'_>) -> Value {
    let metric = json!({"name": "request-success-rate", "interval": seconds(plan), "thresholdRange": {"min": 99}});
    json!({
        "apiVersion": "flagger.app/v1beta1", "kind": "Canary", "metadata": {"name": "web"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "service": {"port": 80, "targetPort": "http"},
            "analysis": {"interval": seconds(plan), "threshold": 5, "maxWeight": 50, "stepWeight": 5, "metrics": [metric]},
        },
    })
}

fn argo_objects(namespace: &str, plan: &Plan<'_>) -> Vec<Value> {
    let service = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
        })
    };
    let share = |name: &str, weight: u64| json!({"destination": {"host": name}, "weight": weight});
    let routes = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": "web"},
        "spec": {"hosts": ["web"], "http": [{"name": "primary", "route": [share("web-old", 100), share("web-new", 0)]}]},
    });
    let window = seconds(plan);
    let counted = |codes: &str| {
        format!(
            "sum(rate(istio_requests_total{{reporter=\"source\",destination_service_name=\"web-new\",destination_service_namespace=\"{namespace}\"{codes}}}[{window}]))"
        )
    };
    let query = format!("{} / {}", counted(",response_code!~\"5.*\""), counted(""));
    let analysis = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "metadata": {"name": "success-rate"},
        "spec": {"metrics": [{
            "name": "success-rate", "interval": window, "initialDelay": window, "failureLimit": 3,
            "successCondition": "result[0] >= 0.99",
            "provider": {"prometheus": {"address": plan.prometheus, "query": query}},
        }]},
    });
    let steps = WEIGHTS.iter().flat_map(|weight| {
        [
            json!({"setWeight": weight}),
            json!({"pause": {"duration": window}}),
        ]
    });
    let rollout = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(OLD),
            "strategy": {"canary": {
                "canaryService": "web-new", "stableService": "web-old",
                "trafficRouting": {"istio": {"virtualService": {"name": "web", "routes": ["primary"]}}},
                "analysis": {"templates": [{"templateName": "success-rate"}], "startingStep": 1},
                "steps": steps.collect::<Vec<_>>(),
            }},
        },
    });
    vec![
        service("web-old"),
        service("web-new"),
        routes,
        analysis,
        rollout,
    ]
}
