//! `portolan operator` and what installs it: `deploy/operator`.

mod portolan;

use std::process::Command;

use portolan::portolan;
use serde_json::Value;

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/operator");

/// The objects of YAML text as JSON.
fn objects(yaml: &str) -> Vec<Value> {
    let documents = yaml.split("---\n").map(str::trim);
    let documents = documents.filter(|document| document.contains("kind:"));
    let read = |document: &str| {
        let answer = portolan::portolan_with_input(&["yaml", "to-json", "-"], document);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        serde_json::from_str(&answer.stdout).expect("JSON")
    };
    documents.map(read).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let found = objects.iter().find(|object| object["kind"] == kind);
    found.expect("an object of that kind")
}

#[test]
fn the_chart_is_rendered_as_helm_renders_it_and_grants_what_the_manifests_grant() {
    let chart = format!("{DEPLOY}/chart");
    for more in [
        vec![],
        vec![
            "--set",
            "namespace=shop,prometheus=,replicas=1,image.tag=1.2.3",
        ],
        vec![
            "--set",
            "prometheusLogin.secret=login,prometheusLogin.ca=ca.crt,prometheusLogin.token=token,prometheusLogin.user=u",
        ],
        vec![
            "--set",
            "prometheusLogin.secret=login,prometheusLogin.user=u,prometheusLogin.password=pw",
        ],
        vec![
            "--set",
            "fleetEvents.server=https://fleet.example:7443,fleetEvents.namespace=shop,fleetEvents.secret=fleet,fleetEvents.ca=ca.pem,fleetEvents.labels.cluster=staging",
        ],
        vec![
            "--set",
            "nodeSelector.disk=ssd,podAnnotations.a=b,imagePullSecrets[0].name=pull",
        ],
    ] {
        let base = [
            "template",
            "rollouts",
            chart.as_str(),
            "--namespace",
            "portolan",
        ];
        let args: Vec<&str> = base.into_iter().chain(more).collect();
        let ours = portolan(&[&["helm"], args.as_slice()].concat());
        assert_eq!(ours.code, 0, "{}", ours.stderr);
        if portolan_testbed::has_program("helm", "version") {
            let helms = Command::new("helm").args(&args).output().expect("helm");
            assert_eq!(ours.stdout, String::from_utf8_lossy(&helms.stdout));
        }
        let rendered = objects(&ours.stdout);
        let rbac = std::fs::read_to_string(format!("{DEPLOY}/rbac.yaml")).expect("a file");
        let manifests = objects(&rbac);
        for kind in ["ClusterRole", "Role"] {
            let (ours, manifest) = (of_kind(&rendered, kind), of_kind(&manifests, kind));
            assert_eq!(ours["rules"], manifest["rules"]);
        }
    }
}

#[test]
fn the_base_is_built_as_kustomize_builds_it() {
    let ours = portolan(&["kustomize", "build", DEPLOY]);
    assert_eq!(ours.code, 0, "{}", ours.stderr);
    assert_eq!(objects(&ours.stdout).len(), 8);
    if portolan_testbed::has_program("kustomize", "version") {
        let kustomize = Command::new("kustomize")
            .args(["build", DEPLOY])
            .output()
            .expect("kustomize");
        assert_eq!(ours.stdout, String::from_utf8_lossy(&kustomize.stdout));
    }
}

/// Every metric that the dashboard shows is one that the operator tells.
#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let text = std::fs::read_to_string(format!("{DEPLOY}/dashboard.json")).expect("a file");
    let board: Value = serde_json::from_str(&text).expect("JSON");
    let known = [
        "portolan_rollout_phase",
        "portolan_rollout_weight_percent",
        "portolan_rollout_evidence_log",
        "portolan_rollout_leading",
        "portolan_rollout_queue_depth",
        "portolan_rollout_reconcile_failures_total",
        "portolan_rollout_reconcile_duration_seconds_bucket",
    ];
    let panels = board["panels"].as_array().expect("panels");
    for target in panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().expect("targets"))
    {
        let query = target["expr"].as_str().expect("a query");
        let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        for name in words.filter(|word| word.starts_with("portolan_")) {
            assert!(known.contains(&name), "{name}");
        }
    }
}

#[test]
fn an_address_that_is_none_is_told_before_anything_is_asked() {
    let answer = portolan(&[
        "operator",
        "--listen",
        "127.0.0.1:0",
        "--kubeconfig",
        "/nowhere/kubeconfig",
    ]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("/nowhere/kubeconfig"),
        "{}",
        answer.stderr
    );
}

/// A credential that is not there would hold every rollout: it is told at the start.
#[test]
fn a_credential_that_cannot_be_read_is_told_before_anything_is_asked() {
    let answer = portolan(&[
        "operator",
        "--prometheus=http://127.0.0.1:1",
        "--prometheus-token-file=/nowhere/token",
        "--listen=127.0.0.1:0",
        "--kubeconfig=/nowhere/kubeconfig",
    ]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("cannot read `/nowhere/token`"),
        "{}",
        answer.stderr
    );
    let both = portolan(&[
        "operator",
        "--prometheus-token-file=t",
        "--prometheus-user=u",
    ]);
    assert_eq!(both.code, 2);
}

/// Argo CD asks a Lua program how an object is; a real interpreter runs ours on statuses that the operator writes.
#[test]
fn argo_cd_is_told_how_a_rollout_is() {
    if !portolan_testbed::has_program("lua5.1", "-v") {
        return;
    }
    let condition = |kind: &str, status: &str, message: &str| {
        format!("{{type=\"{kind}\", status=\"{status}\", message=\"{message}\"}}")
    };
    let object = |generation: u32, observed: &str, phase: &str, conditions: &[String]| {
        format!(
            "{{metadata={{generation={generation}}}, status={{{observed}phase=\"{phase}\", weight=20, conditions={{{}}}}}}}",
            conditions.join(", ")
        )
    };
    let seen = "observedGeneration=2, ";
    let stalled = condition("Stalled", "True", "errors: 30 of 100 requests were bad");
    let reconciling = condition("Reconciling", "True", "step 2 of 3");
    let ready = condition("Ready", "True", "");
    let held = condition("Ready", "False", "held: no traffic");
    for (object, status, part) in [
        ("{metadata={generation=1}}".to_owned(), "Progressing", "no operator has seen it yet"),
        ("{metadata={generation=1}, spec={paused=true}, status={observedGeneration=1, phase=\"Shifting\", weight=20, conditions={}}}".to_owned(), "Suspended", "paused"),
        (object(2, "observedGeneration=1, ", "Stable", std::slice::from_ref(&ready)), "Progressing", "newest change"),
        (object(2, seen, "RolledBack", &[stalled.clone(), held.clone()]), "Degraded", "30 of 100"),
        (object(2, seen, "Shifting", &[reconciling, held.clone()]), "Progressing", "step 2 of 3"),
        (object(2, seen, "Stable", &[ready]), "Healthy", "Stable"),
        (object(2, seen, "Initializing", &[held]), "Progressing", "no traffic"),
    ] {
        let program = format!(
            "obj = {object}\nlocal health = dofile(\"{DEPLOY}/argocd-health.lua\")\nprint(health.status .. \"|\" .. health.message)"
        );
        let output = Command::new("lua5.1").args(["-e", &program]).output().expect("lua");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.starts_with(&format!("{status}|")) && told.contains(part), "{object}: {told}{errors}");
    }
    // The ConfigMap that people patch holds the same program.
    let map = std::fs::read_to_string(format!("{DEPLOY}/argocd-cm.yaml")).expect("a file");
    let program = std::fs::read_to_string(format!("{DEPLOY}/argocd-health.lua")).expect("a file");
    let map = objects(&map).remove(0);
    assert_eq!(
        map["data"]["resource.customizations.health.portolan.dev_IstioCanaryDeployment"],
        program.trim_end()
    );
}
