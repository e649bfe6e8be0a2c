//! After the first scan nothing is listed again: watches tell what to read.

use std::sync::Arc;
use std::time::Duration;

use portolan_cluster::Cluster;
use portolan_exporter::{Exporter, ExporterOptions, ScanOptions, Sources, serve};
use portolan_listen::ListenConfig;
use portolan_testbed::cluster::{Cluster as Testbed, eventually};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::seed::{Revision, Seeder};
use crate::{FINE, PDB, checker, helm_in};

/// An exporter that runs and serves, until it is dropped.
struct Running {
    exporter: Arc<Exporter>,
    cluster: Cluster,
    address: String,
    _tasks: JoinSet<()>,
}

impl Running {
    /// Starts it, and waits for the first scan and for every watch to be open.
    async fn start(testbed: &Testbed, scan: ScanOptions) -> Self {
        let (exporter, _) = Exporter::open(ExporterOptions {
            scan,
            checker: Box::new(|_| checker()),
            ttl: Duration::from_hours(1),
            state: None,
            baseline: None,
            finding_series: 1000,
        });
        let exporter = Arc::new(exporter);
        let cluster = Cluster::from_client(testbed.client().await, testbed.url());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let mut tasks = JoinSet::new();
        tasks.spawn({
            let exporter = Arc::clone(&exporter);
            async move {
                let (config, cancelled) = (ListenConfig::default(), CancellationToken::new());
                let served = serve(listener, exporter, config, cancelled).await;
                served.map(|_| ()).expect("it serves");
            }
        });
        tasks.spawn({
            let (exporter, cluster) = (Arc::clone(&exporter), cluster.clone());
            async move { match exporter.run(&cluster).await {} }
        });
        let running = Self {
            exporter,
            cluster,
            address,
            _tasks: tasks,
        };
        let number = |name: &str| running.metric(name);
        eventually("the first scan and the watches", async || {
            let followed = number("portolan_audit_lists{followed=\"yes\"}");
            let scan = number("portolan_audit_scan_requests");
            // More, when another test has changed something in the meantime.
            let opened = scan.zip(followed).map(|(scan, followed)| scan + followed);
            followed.is_some_and(|followed| followed > 0)
                && opened.is_some_and(|opened| running.cluster.requests() >= opened)
        })
        .await;
        running
    }

    fn metric(&self, name: &str) -> Option<u64> {
        let metrics = self.exporter.metrics();
        let line = metrics.lines().find(|line| line.starts_with(name))?;
        line.rsplit_once(' ')?.1.parse().ok()
    }

    /// The body of an answer.
    async fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).await.expect("it listens");
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("an answer");
        text.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }

    /// `Kind namespace/name` of every finding that is served as JSON, once the metrics tell the same number.
    async fn found(&self) -> Vec<String> {
        let report: Value =
            serde_json::from_str(&self.get("/api/v1/findings").await).expect("JSON");
        let text =
            |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        let object = |finding: &Value| {
            let (kind, name) = (text(finding, "kind"), text(finding, "name"));
            format!("{kind} {}/{name}", text(finding, "namespace"))
        };
        let findings = report["findings"].as_array().expect("findings");
        findings.iter().map(object).collect()
    }

    /// Waits until this is found, no more and no less, in the JSON and in the metrics.
    async fn shows(&self, what: &[&str]) {
        eventually("what was planted", async || {
            let metrics = self.get("/metrics").await;
            let series = metrics.matches("portolan_audit_finding_info{").count();
            self.found().await == what && series == what.len()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_that_comes_changes_and_goes_is_followed() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let seeder = Seeder::new(testbed.client().await, "followed").await;
    let running = Running::start(testbed, helm_in("followed")).await;
    // The version, one page of each driver, and a watch on each.
    assert_eq!(running.cluster.requests(), 5);

    let bad = Revision::new("web", 1, "deployed", &PDB.replace("NAME", "web"));
    seeder.store(vec![bad]).await;
    running.shows(&["PodDisruptionBudget followed/web"]).await;
    assert_eq!(running.cluster.requests(), 6);

    // As Helm does it: the new revision, the end of the old one, then the new one is the deployed one.
    let manifest = FINE.replace("NAME", "web");
    let next = Revision::new("web", 2, "pending-upgrade", &manifest);
    seeder.store(vec![next]).await;
    seeder.set_status("web", 1, "superseded").await;
    seeder.set_status("web", 2, "deployed").await;
    running.shows(&[]).await;
    assert_eq!(running.cluster.requests(), 7);

    seeder.delete("web", 2).await;
    eventually("the end", async || {
        running.metric("portolan_audit_releases_scanned") == Some(0)
    })
    .await;
    assert_eq!(running.cluster.requests(), 7);
    assert_eq!(running.metric("portolan_audit_scans_total"), Some(1));
}

/// What metadata tell is taken from the watch itself; what they do not is read, one object at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_objects_that_come_change_and_go_are_followed_without_a_list() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let seeder = Seeder::new(testbed.client().await, "watched").await;
    let scan = ScanOptions {
        sources: Sources::Live,
        namespace: Some("watched".to_owned()),
        ..ScanOptions::default()
    };
    let running = Running::start(testbed, scan).await;
    let before = running.cluster.requests();
    running.shows(&[]).await;

    let budgets = "/apis/policy/v1/namespaces/watched/poddisruptionbudgets";
    seeder.create(budgets, &budget("policy/v1beta1")).await;
    running.shows(&["PodDisruptionBudget watched/web"]).await;
    seeder.delete_at(&format!("{budgets}/web")).await;
    running.shows(&[]).await;
    assert_eq!(running.cluster.requests(), before);

    let autoscalers = "/apis/autoscaling/v2/namespaces/watched/horizontalpodautoscalers";
    let autoscaler = format!("{autoscalers}/web");
    seeder.create(autoscalers, &scales("apps/v1beta1")).await;
    running
        .shows(&["HorizontalPodAutoscaler watched/web"])
        .await;
    assert_eq!(running.cluster.requests(), before + 1);
    let target = json!({"spec": {"scaleTargetRef": {"apiVersion": "apps/v1"}}});
    seeder.patch(&autoscaler, &target).await;
    running.shows(&[]).await;
    assert_eq!(running.cluster.requests(), before + 2);
    assert_eq!(running.metric("portolan_audit_scans_total"), Some(1));
}

/// What belongs to no namespace is followed as well: roles, and the versions that a definition's objects are stored in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_and_definitions_are_followed() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let seeder = Seeder::new(testbed.client().await, "global").await;
    let scan = ScanOptions {
        sources: Sources::Live,
        ..ScanOptions::default()
    };
    let running = Running::start(testbed, scan).await;
    let finds = async |what: &str| running.found().await.iter().any(|found| found == what);

    let rule = json!({"apiGroups": ["extensions"], "resources": ["ingresses"], "verbs": ["get"]});
    let role = json!({"metadata": {"name": "old-reader"}, "rules": [rule]});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    seeder.create(roles, &role).await;
    eventually("the role", || finds("ClusterRole /old-reader")).await;
    seeder.delete_at(&format!("{roles}/old-reader")).await;
    eventually("its end", async || !finds("ClusterRole /old-reader").await).await;

    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let name = "lamps.example.com";
    seeder.create(definitions, &lamps(&["v1alpha1"])).await;
    let stored = json!({"status": {"storedVersions": ["v1alpha1", "v0"]}});
    eventually("the definition is accepted", async || {
        seeder
            .try_patch(&format!("{definitions}/{name}/status"), &stored)
            .await
    })
    .await;
    let finding = format!("CustomResourceDefinition /{name}");
    eventually("the stored version", || finds(&finding)).await;
    assert_eq!(running.metric("portolan_audit_scans_total"), Some(1));
    seeder.delete_at(&format!("{definitions}/{name}")).await;
}

/// A budget of which an old version was last applied.
fn budget(applied: &str) -> Value {
    let manifest = json!({"apiVersion": applied, "kind": "PodDisruptionBudget"}).to_string();
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": manifest}},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    })
}

/// An autoscaler of a Deployment in some version.
fn scales(api_version: &str) -> Value {
    json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": api_version, "kind": "Deployment", "name": "web"}},
    })
}

fn lamps(versions: &[&str]) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version = |(index, name): (usize, &&str)| json!({"name": name, "served": true, "storage": index == 0, "schema": schema});
    let versions: Vec<Value> = versions.iter().enumerate().map(version).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "lamps.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Lamp", "plural": "lamps"},
            "versions": versions,
        },
    })
}
