//! `portolan rollout` on a cluster: what is read from a status, and what is written for the operator.

mod portolan;

use std::sync::{Arc, Mutex};

use portolan::{Answer, portolan};
use portolan_testbed::{HttpServer, Reply, Request};
use serde_json::{Value, json};

/// An API server with one rollout, whose status the test writes.
struct Fake {
    server: HttpServer,
    object: Arc<Mutex<Value>>,
    directory: tempfile::TempDir,
}

fn rollout(phase: &str, outcome: Option<&str>) -> Value {
    let record = json!({
        "number": 1, "at": "2026-01-31T12:00:00Z", "from": "Shifting", "to": phase, "revision": "v1-new", "weight": 0,
        "outcome": outcome, "reason": "Worse", "message": "errors: 30 of 100 requests were bad", "actor": "operator",
        "evidence": [{"name": "errors", "canary": {"total": 100, "bad": 30}, "stable": {"total": 900, "bad": 1}, "lnRollback": 9.0, "lnPromote": -9.0, "excess": 29.0}],
    });
    json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "IstioCanaryDeployment",
        "metadata": {"name": "web", "namespace": "shop", "generation": 2, "uid": "u-1", "resourceVersion": "7"},
        "spec": {
            "replicas": 2,
            "service": {"port": 80},
            "template": {"spec": {"containers": [{"name": "app", "image": "web:1"}, {"name": "side", "image": "side:1"}]}},
        },
        "status": {
            "schema": 1, "observedGeneration": 2, "phase": phase, "weight": 0, "target": "v1-new",
            "stable": {"revision": if outcome == Some("Promoted") { "v1-new" } else { "v1-old" }, "slot": "a"},
            "history": [record],
        },
    })
}

impl Fake {
    fn start(object: Value) -> Self {
        let object = Arc::new(Mutex::new(object));
        let shared = Arc::clone(&object);
        let server = HttpServer::start(move |request| answer(request, &shared));
        let directory = tempfile::tempdir().expect("a directory");
        let config = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {{server: \"{}\"}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a, namespace: shop}}}}]\nusers: [{{name: a, user: {{token: t}}}}]\n",
            server.url()
        );
        std::fs::write(directory.path().join("kubeconfig"), config).expect("a file");
        Self {
            server,
            object,
            directory,
        }
    }

    fn run(&self, args: &[&str]) -> Answer {
        let kubeconfig = self.directory.path().join("kubeconfig");
        let kubeconfig = kubeconfig.to_str().expect("UTF-8");
        portolan(&[&["rollout"], args, &["--kubeconfig", kubeconfig]].concat())
    }

    fn set(&self, object: Value) {
        *self.object.lock().expect("no panic") = object;
    }

    /// The bodies of changes that were sent.
    fn changes(&self) -> Vec<(String, Value)> {
        let requests = self.server.requests().into_iter();
        let changes = requests.filter(|request| request.method != "GET");
        changes
            .map(|request| {
                let body = serde_json::from_slice(&request.body).expect("JSON");
                (format!("{} {}", request.method, request.path()), body)
            })
            .collect()
    }
}

fn answer(request: &Request, object: &Mutex<Value>) -> Reply {
    const PATH: &str = "/apis/portolan.dev/v1alpha1/namespaces/shop/istiocanarydeployments";
    let object = object.lock().expect("no panic").clone();
    let body = match request.path() {
        "/apis/portolan.dev/v1alpha1/istiocanarydeployments" | PATH => {
            json!({"metadata": {"resourceVersion": "7"}, "items": [object]})
        }
        path if path == format!("{PATH}/web") => object,
        "/api/v1/namespaces/shop/pods" => json!({"metadata": {}, "items": []}),
        "/apis/apps/v1/namespaces/shop/deployments/api" => json!({
            "metadata": {"name": "api", "namespace": "shop"},
            "spec": {"replicas": 3, "template": {"metadata": {"labels": {"app": "api"}}}},
        }),
        "/api/v1/namespaces/shop/services" => json!({"metadata": {}, "items": [{
            "metadata": {"name": "api-web"},
            "spec": {"selector": {"app": "api"}, "ports": [{"port": 8080, "name": "http"}]},
        }]}),
        path => {
            let status = json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": format!("no {path}")});
            return Reply {
                body: status.to_string().into_bytes(),
                ..Reply::status(404)
            }
            .header("content-type", "application/json");
        }
    };
    Reply::ok(body.to_string()).header("content-type", "application/json")
}

#[test]
fn the_exit_code_says_whether_the_newest_revision_made_it() {
    let fake = Fake::start(rollout("Stable", Some("Promoted")));
    let answer = fake.run(&["status", "web", "--wait", "-o", "json"]);
    assert_eq!(answer.code, 0, "{answer}");
    let told: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!(
        (&told["kind"], &told["reason"]),
        (&json!("RolloutStatus"), &json!("Stable"))
    );

    fake.set(rollout("RolledBack", Some("RolledBack")));
    let answer = fake.run(&["status", "shop/web"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stdout.contains("RolledBack"), "{answer}");
    assert!(
        answer
            .stdout
            .contains("errors: 30 of 100 requests were bad"),
        "{answer}"
    );

    fake.set(rollout("Shifting", None));
    assert_eq!(fake.run(&["status", "web"]).code, 0);
    let answer = fake.run(&["status", "web", "--wait", "--timeout", "1"]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer.stderr.contains("not decided after 1 seconds"),
        "{answer}"
    );

    let mut newer = rollout("Stable", Some("Promoted"));
    newer["status"]["schema"] = json!(99);
    fake.set(newer);
    let answer = fake.run(&["status", "web"]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer.stderr.contains("a newer operator wrote it"),
        "{answer}"
    );
    let answer = fake.run(&["status", "nobody"]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer
            .stderr
            .contains("there is no IstioCanaryDeployment `nobody` in namespace `shop`"),
        "{answer}"
    );
}

#[test]
fn rollouts_are_listed_shown_and_explained() {
    let fake = Fake::start(rollout("RolledBack", Some("RolledBack")));
    let listed = fake.run(&["list", "-A"]);
    assert_eq!(listed.code, 0, "{listed}");
    assert!(
        listed.stdout.contains("shop") && listed.stdout.contains("RolledBack"),
        "{listed}"
    );
    let names = fake.run(&["list", "-o", "name"]);
    assert_eq!(names.stdout, "istiocanarydeployment.portolan.dev/web\n");
    let history = fake.run(&["history", "web"]);
    assert!(
        history.stdout.contains("v1-new") && history.stdout.contains("30 bad of 100"),
        "{history}"
    );
    let tree = fake.run(&["get", "web"]);
    assert_eq!(tree.code, 0, "{tree}");
    assert!(tree.stdout.starts_with("shop/web  RolledBack"), "{tree}");
    let explained = fake.run(&["explain", "web"]);
    assert!(
        explained.stdout.contains("stable is v1-old in slot a"),
        "{explained}"
    );
}

#[test]
fn commands_are_tokens_and_never_change_the_spec() {
    let fake = Fake::start(rollout("Shifting", None));
    for command in [
        "promote", "abort", "retry", "pause", "resume", "force", "undo",
    ] {
        let answer = fake.run(&[command, "web", "--token", "once"]);
        assert_eq!(answer.code, 0, "{answer}");
    }
    let changes = fake.changes();
    assert_eq!(changes.len(), 7);
    for (call, body) in &changes {
        assert!(call.starts_with("PATCH "), "{call}");
        assert_eq!(body.get("spec"), None);
    }
    assert_eq!(
        changes[1].1,
        json!({"metadata": {"annotations": {"portolan.dev/abort": "once"}}})
    );
    assert_eq!(
        fake.run(&["release", "web"]).code,
        2,
        "a rollout is in progress"
    );
}

#[test]
fn images_are_set_pods_started_again_and_applications_released() {
    let fake = Fake::start(rollout("Stable", Some("Promoted")));
    let answer = fake.run(&["set", "image", "web", "app=web:2"]);
    assert_eq!(answer.code, 0, "{answer}");
    let (_, body) = fake.changes().remove(0);
    let containers =
        json!([{"name": "app", "image": "web:2"}, {"name": "side", "image": "side:1"}]);
    assert_eq!(body["spec"]["template"]["spec"]["containers"], containers);
    assert_eq!(body["metadata"]["resourceVersion"], "7");
    assert_eq!(fake.run(&["set", "image", "web", "other=web:2"]).code, 2);
    assert_eq!(fake.run(&["restart", "web"]).code, 0);
    assert_eq!(fake.run(&["release", "web"]).code, 0);
    let (call, body) = fake.changes().pop().expect("a deletion");
    assert!(call.starts_with("DELETE "), "{call}");
    assert_eq!(body["propagationPolicy"], "Orphan");
}

#[test]
fn a_deployment_is_adopted_under_the_name_of_its_service() {
    let fake = Fake::start(rollout("Stable", None));
    let answer = fake.run(&["adopt", "deployment/api"]);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(
        answer.stdout.contains("name: api-web") && answer.stdout.contains("port: 8080"),
        "{answer}"
    );
    assert!(answer.stdout.contains("# 1. apply this object"), "{answer}");
    assert_eq!(fake.run(&["adopt", "statefulset/api"]).code, 2);
}
