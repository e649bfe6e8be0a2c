//! What happens in other jobs starts runs of the fleet: a canary that is rolled back, a finding of the audit and a failed ship, on a
//! real cluster, each of which a TaskBook answers with an object that it renders and applies there.

mod fleet_bed;
mod portolan;
mod rollout_bed;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use portolan_helm::storage::{Info, StoredRelease, encode, secret_name};
use portolan_testbed::{Behaviour, free_port};
use serde_json::{Value, json};

use crate::fleet_bed::Fleet;
use crate::portolan::project::Project;
use crate::rollout_bed::{Bed, Traffic};

/// How long something may take to come through jobs, server, trigger, run and cluster.
const PATIENCE: Duration = Duration::from_mins(1);

/// Who may send events, the book, and a trigger for each sort of event.
const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/fleet/incident.yaml"
);

/// The options of every job.
fn options(fleet: &Fleet, namespace: &str) -> Vec<String> {
    let file = |name: &str| fleet.path(name).display().to_string();
    vec![
        format!("--events-server={}", fleet.url()),
        format!("--events-token-file={}", file("jobs.token")),
        format!("--events-ca-file={}", file("server/ca.pem")),
        format!("--events-namespace={namespace}"),
        "--events-label=cluster=staging".to_owned(),
    ]
}

fn texts(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

/// Rights, book and triggers on the server, a token for the jobs, and the way to the cluster on the node.
fn prepare(fleet: &Fleet, bed: &Bed) {
    let example = std::fs::read_to_string(EXAMPLE).expect("the example");
    let example = example.replace(", namespace: shop}", ", namespace: default}");
    let file = fleet.write("incident.yaml", &example);
    let applied = fleet.fleet(&["apply", "-f", &file]);
    assert_eq!(applied.code, 0, "{applied}");
    let made = fleet.fleet(&["auth", "token", "--user", "jobs", "--life", "1h"]);
    assert_eq!(made.code, 0, "{made}");
    fleet.write("jobs.token", made.stdout.trim());
    let kubeconfig = fleet.root("node-1").join("etc/kubeconfig");
    std::fs::copy(bed.cluster.kubeconfig_path(), kubeconfig).expect("copied");
}

/// The events of some types that the server has, without those that runs make.
fn events(fleet: &Fleet, types: &str) -> Vec<Value> {
    let args = ["events", "-n", "default", "--type", types, "-o", "json"];
    let found = fleet.fleet(&args);
    let found: Value = serde_json::from_str(&found.stdout).unwrap_or_default();
    found["items"].as_array().cloned().unwrap_or_default()
}

fn config_maps(bed: &Bed) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    Api::namespaced_with(bed.client.clone(), "shop", &resource)
}

/// Waits for the object that the book writes; returns what it says.
async fn written(bed: &Bed, fleet: &Fleet, name: &str) -> String {
    let started = Instant::now();
    loop {
        let found = config_maps(bed).get_opt(name).await.expect("an answer");
        if let Some(found) = found {
            return found.data["data"]["about"]
                .as_str()
                .expect("a text")
                .to_owned();
        }
        assert!(
            started.elapsed() < PATIENCE,
            "{name} was not written: {:#?}",
            events(fleet, "*")
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A process that ends with the test.
struct Job(Child);

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `portolan audit serve`, which looks at Helm releases.
fn audit(bed: &Bed, fleet: &Fleet) -> (Job, u16) {
    let port = free_port();
    let child = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["audit", "serve", "--only", "helm", "--ttl", "1h"])
        .arg(format!("--listen=127.0.0.1:{port}"))
        .args(["--kubeconfig", &bed.kubeconfig()])
        .arg("--state")
        .arg(fleet.path("audit"))
        .args(options(fleet, "default"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(fleet.path("audit.log")).expect("a log"))
        .spawn()
        .expect("the binary was built with this test");
    (Job(child), port)
}

/// Waits until the answer of a job has a line for which something holds.
async fn wait_for_line(port: u16, path: &str, holds: impl Fn(&str) -> bool) {
    let started = Instant::now();
    loop {
        let answer = get(port, path).unwrap_or_default();
        if answer.lines().any(&holds) {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{path}: {answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn get(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// A record of Helm with an API that is gone.
fn old_release() -> Value {
    let release = StoredRelease {
        name: "old".to_owned(),
        info: Info {
            status: "deployed".to_owned(),
            ..Info::default()
        },
        chart: json!({"metadata": {"name": "old", "version": "1.0.0"}}),
        config: Value::Null,
        manifest: "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n"
            .to_owned(),
        hooks: Vec::new(),
        version: 1,
        namespace: "shop".to_owned(),
    };
    let labels = json!({"owner": "helm", "name": "old", "status": "deployed", "version": "1"});
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {"name": secret_name("old", 1), "namespace": "shop", "labels": labels},
        "stringData": {"release": encode(&release).expect("a record")},
    })
}

fn rollout(image: &str) -> Value {
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "IstioCanaryDeployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 2, "service": {"port": 80},
            "template": {"spec": {"containers": [{"name": "app", "image": image}]}},
            "strategy": {"weights": [50], "stepInterval": "2s", "soak": "2s", "rollbackWindow": "60s", "drain": "1s"},
            "analysis": {"interval": "2s", "warmup": "0s"},
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rollback_a_finding_and_a_failed_ship_start_runs_that_render_and_apply() {
    let fleet = tokio::task::spawn_blocking(Fleet::start);
    let Some(bed) = Bed::start().await else {
        return;
    };
    let fleet = fleet.await.expect("a fleet");
    bed.namespace("shop").await;
    prepare(&fleet, &bed);
    let Some(traffic) = Traffic::start(&bed, &["shop"], 8_000.0) else {
        return;
    };
    let (audit, audit_port) = audit(&bed, &fleet);
    let is_ready = |line: &str| line.starts_with("portolan_audit_scans_total 1");
    wait_for_line(audit_port, "/metrics", is_ready).await;
    let operator = a_canary_is_rolled_back(&bed, &fleet, &traffic).await;

    bed.create(&old_release()).await;
    a_ship_fails(&bed, &fleet);

    let about = written(&bed, &fleet, "ship-failed").await;
    assert_eq!(about, "shop deploy config");
    let about = written(&bed, &fleet, "audit-finding").await;
    assert_eq!(about, "removed PodDisruptionBudget web");
    let about = written(&bed, &fleet, "rolled-back").await;
    let bad = about.strip_prefix("shop/web errors ").expect(&about);
    assert!(bad.parse::<u64>().is_ok_and(|bad| bad > 0), "{about}");

    // Whoever starts again repeats what happened lately, and the server knows it.
    let before = (events(&fleet, "rollout.*"), events(&fleet, "audit.*"));
    assert_eq!(before.1.len(), 1, "{:#?}", before.1);
    end(operator).await;
    drop(audit);
    let operator = start_operator(&bed, &fleet, &traffic);
    let (_audit, audit_port) = self::audit(&bed, &fleet);
    let has_sent = |least: usize| {
        move |line: &str| {
            let count = line.strip_prefix("portolan_events_sent_total ");
            count.is_some_and(|count| count.parse().is_ok_and(|count: usize| count >= least))
        }
    };
    wait_for_line(operator.port, "/metrics", has_sent(before.0.len())).await;
    wait_for_line(audit_port, "/metrics", has_sent(1)).await;
    let after = (events(&fleet, "rollout.*"), events(&fleet, "audit.*"));
    assert_eq!(before, after);
    for book in ["rolled-back", "audit-finding", "ship-failed"] {
        let fired = events(&fleet, "trigger.fired");
        let of_book = fired
            .iter()
            .filter(|event| event["spec"]["source"]["name"] == book);
        assert_eq!(of_book.count(), 1, "{fired:#?}");
    }
}

fn start_operator(bed: &Bed, fleet: &Fleet, traffic: &Traffic) -> rollout_bed::OperatorProcess {
    let url = traffic.prometheus.url();
    let events = options(fleet, "default");
    let args = [
        vec!["--prometheus", url.as_str(), "--namespace", "shop"],
        texts(&events),
    ];
    bed.operator(&args.concat())
}

/// Ends an operator in good order: it gives its lease back.
async fn end(operator: rollout_bed::OperatorProcess) {
    let sent = Command::new("kill").arg(operator.id().to_string()).status();
    assert!(sent.expect("kill is installed").success(), "it lives");
    let started = Instant::now();
    while get(operator.port, "/healthz").is_ok() {
        assert!(started.elapsed() < PATIENCE, "{}", operator.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn a_canary_is_rolled_back(
    bed: &Bed,
    fleet: &Fleet,
    traffic: &Traffic,
) -> rollout_bed::OperatorProcess {
    for (image, errors) in [("web:1", 0.002), ("web:2", 0.3)] {
        let behaviour = Behaviour {
            errors,
            ..Behaviour::default()
        };
        traffic.mesh.set_behaviour(image, behaviour);
    }
    let operator = start_operator(bed, fleet, traffic);
    bed.create(&rollout("web:1")).await;
    bed.wait(("shop", "web"), "Stable", |status| {
        status["phase"] == "Stable"
    })
    .await;
    let set = bed.rollout(&["set", "image", "shop/web", "app=web:2"]);
    assert_eq!(set.code, 0, "{set}");
    bed.wait(("shop", "web"), "RolledBack", |status| {
        status["phase"] == "RolledBack"
    })
    .await;
    operator
}

/// The API server refuses an object. An account without the right is told, and the ship ends as it would without a server.
fn a_ship_fails(bed: &Bed, fleet: &Fleet) {
    let project = Project::new(
        "  - {name: web, image: registry.example/shop/web, oci: {context: web}}\n  deploy:\n  - {name: config, namespace: shop, manifests: {paths: [deploy]}}\n",
    );
    project.write(
        "deploy/config.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'Not A Name'}\ndata: {a: b}\n",
    );
    let kubeconfig = format!("--kubeconfig={}", bed.kubeconfig());
    for (namespace, is_told) in [("default", true), ("system", false)] {
        let events = options(fleet, namespace);
        let shipped = project.run(
            &[
                &["ship", "deploy", "--context=test", kubeconfig.as_str()],
                texts(&events).as_slice(),
            ]
            .concat(),
        );
        assert_eq!(shipped.code, 1, "{shipped}");
        let says = shipped.stderr.contains("may not create Event");
        assert_eq!(says, !is_told, "{shipped}");
    }
}
