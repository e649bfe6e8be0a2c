//! What an audit may do: the manifests in `deploy/audit`, applied, and used with the token of their service account.

use portolan_cluster::{Cluster, ErrorKind, Resource};
use portolan_exporter::{ScanOptions, scan};
use portolan_testbed::cluster::{Cluster as Testbed, NOBODY_TOKEN, client, eventually};
use serde_json::{Value, json};

use crate::seed::{Revision, Seeder};
use crate::{PDB, checker};

const RBAC: &str = include_str!("../../../../deploy/audit/rbac.yaml");
const DEPLOYMENT: &str = include_str!("../../../../deploy/audit/deployment.yaml");
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/portolan-audit";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_rights_the_refusal_is_told() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let nobody = client(&testbed.kubeconfig_for(NOBODY_TOKEN)).await;
    let cluster = Cluster::from_client(nobody, testbed.url());
    let refused = scan(&cluster, &checker(), &ScanOptions::default()).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Forbidden);
}

/// The service account of the manifests can do everything that an audit does, changes nothing, and has no right that
/// can be left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deployed_role_is_enough_and_not_too_much() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let seeder = Seeder::new(testbed.client().await, "rights").await;
    let bad = Revision::new("web", 1, "deployed", &PDB.replace("NAME", "web"));
    seeder.store(vec![bad]).await;
    for manifest in documents(DEPLOYMENT).chain(documents(RBAC)) {
        seeder.apply_yaml(&path(manifest), manifest).await;
    }
    let account = "/api/v1/namespaces/portolan/serviceaccounts/portolan-audit/token";
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let token = seeder.post(account, &request).await;
    let token = token["status"]["token"].as_str().expect("a token");
    let client = client(&testbed.kubeconfig_for(token)).await;
    let cluster = Cluster::from_client(client.clone(), testbed.url());

    eventually("the role", async || suffices(&cluster).await).await;
    only_reads(&client).await;

    let role = seeder.read(ROLE).await;
    let rules = role["rules"].as_array().expect("rules").clone();
    for left_out in 0..rules.len() {
        let mut rest = rules.clone();
        rest.remove(left_out);
        seeder.patch(ROLE, &json!({"rules": rest})).await;
        eventually("the lack of a rule", async || !suffices(&cluster).await).await;
    }
}

/// Whether a scan reads everything, and what changes can be followed and read again.
async fn suffices(cluster: &Cluster) -> bool {
    let report = scan(cluster, &checker(), &ScanOptions::default()).await;
    let roles = Resource {
        api_version: "rbac.authorization.k8s.io/v1".to_owned(),
        kind: "ClusterRole".to_owned(),
        name: "clusterroles".to_owned(),
        namespaced: false,
        watchable: true,
    };
    report.is_ok_and(|report| report.warnings.is_empty())
        && cluster.watch(&roles.query(None), "").await.is_ok()
        && cluster.object(&roles, "", "portolan-audit").await.is_ok()
}

/// The rights of whoever asks are to read, but for those that everybody has: to ask for one's rights.
async fn only_reads(client: &portolan_cluster::kube::Client) {
    let seeder = Seeder::with(client.clone(), "portolan");
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "portolan"},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let review = seeder.post(path, &review).await;
    let rules = review["status"]["resourceRules"].as_array().expect("rules");
    let everybodys = |rule: &&Value| {
        let groups = rule["apiGroups"].to_string();
        !groups.contains("authorization.k8s.io") && !groups.contains("authentication.k8s.io")
    };
    let reads =
        |verb: &Value| ["get", "list", "watch"].contains(&verb.as_str().unwrap_or_default());
    for rule in rules.iter().filter(everybodys) {
        let verbs = rule["verbs"].as_array().expect("verbs");
        assert!(verbs.iter().all(reads), "{rule}");
        assert!(
            rule["resources"] != json!(["*"]) || !verbs.contains(&json!("get")),
            "single objects of every kind: {rule}"
        );
    }
}

fn documents(manifests: &str) -> impl Iterator<Item = &str> {
    manifests.split("---\n")
}

/// Where a manifest belongs.
fn path(manifest: &str) -> String {
    let value = |key: &str| {
        let line = manifest
            .lines()
            .find_map(|line| line.trim().strip_prefix(key));
        line.unwrap_or_default().trim().to_owned()
    };
    let (name, namespace) = (value("name:"), value("namespace:"));
    let collection = match value("kind:").as_str() {
        "Namespace" => "/api/v1/namespaces".to_owned(),
        "PersistentVolumeClaim" => format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims"),
        "Deployment" => format!("/apis/apps/v1/namespaces/{namespace}/deployments"),
        "Service" => format!("/api/v1/namespaces/{namespace}/services"),
        "ServiceAccount" => format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
        "ClusterRole" => "/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned(),
        "ClusterRoleBinding" => "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings".to_owned(),
        // Nothing is there, and the test says so.
        other => format!("/no/path/for/{other}"),
    };
    format!("{collection}/{name}")
}
