//! What objects, definitions and the API server itself tell.

use portolan_audit::{Evidence, Level};
use portolan_cluster::Cluster;
use portolan_exporter::{ScanOptions, Sources, scan};
use portolan_testbed::cluster::Cluster as Testbed;

use crate::checker;
use crate::seed::Seeder;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_objects_tell_who_wrote_them_in_which_version() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let seeder = Seeder::new(testbed.client().await, "live").await;
    let applied =
        r#"{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudget","metadata":{"name":"web"}}"#;
    seeder
        .create(
            "/apis/policy/v1/namespaces/live/poddisruptionbudgets?fieldManager=kubectl",
            &serde_json::json!({
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "web", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
            }),
        )
        .await;
    seeder
        .create(
            "/api/v1/namespaces/live/endpoints?fieldManager=old-script",
            &serde_json::json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web", "labels": {"a": "b"}}}),
        )
        .await;
    let cluster = Cluster::from_client(testbed.client().await, testbed.url());
    let options = ScanOptions {
        sources: Sources::Live,
        namespace: Some("live".to_owned()),
        ..ScanOptions::default()
    };
    let report = scan(&cluster, &checker(), &options).await.unwrap();
    let find = |kind: &str| {
        report
            .findings
            .iter()
            .find(|finding| finding.subject.kind == kind && finding.subject.name == "web")
    };
    let budget = find("PodDisruptionBudget").expect("the annotation tells");
    assert_eq!(budget.level, Level::Removed);
    assert!(matches!(&budget.evidence[0], Evidence::LastApplied { .. }));
    let endpoints = find("Endpoints").expect("managedFields tell");
    assert_eq!(endpoints.level, Level::Deprecated);
    assert!(
        matches!(&endpoints.evidence[0], Evidence::ManagedFields { manager, .. } if manager == "old-script")
    );
}

/// What an old client once asked for shows in the API server's metrics alone, and what would stop an upgrade of a
/// definition shows in its status.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deprecated_requests_and_stored_versions_are_found() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let seeder = Seeder::new(testbed.client().await, "definitions").await;
    let version = |name: &str, storage: bool| {
        let schema = serde_json::json!({"openAPIV3Schema": {"type": "object"}});
        serde_json::json!({"name": name, "served": true, "storage": storage, "schema": schema})
    };
    let definition = serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "kustomizations.kustomize.toolkit.fluxcd.io"},
        "spec": {
            "group": "kustomize.toolkit.fluxcd.io",
            "scope": "Namespaced",
            "names": {"kind": "Kustomization", "plural": "kustomizations"},
            "versions": [version("v1", false), version("v1beta2", true)],
        },
    });
    seeder
        .create(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &definition,
        )
        .await;
    seeder
        .get("/apis/resource.k8s.io/v1beta1/deviceclasses")
        .await;

    let mut checker = checker();
    checker.target.set("flux=2.8".parse().unwrap());
    let cluster = Cluster::from_client(testbed.client().await, testbed.url());
    let options = ScanOptions {
        sources: Sources::Live,
        ..ScanOptions::default()
    };
    let report = scan(&cluster, &checker, &options).await.unwrap();
    let find = |level: Level| {
        report
            .findings
            .iter()
            .find(move |finding| finding.level == level)
    };
    let stored = find(Level::StoredVersion).expect("the definition stores an old version");
    assert_eq!(
        stored.path.as_deref(),
        Some("status.storedVersions[v1beta2]")
    );
    let requested = find(Level::RemovedNext).expect("the request was counted");
    assert_eq!(requested.subject.api_version, "resource.k8s.io/v1beta1");
    assert!(
        matches!(&requested.evidence[0], Evidence::Metric { resource, removed_release } if resource == "deviceclasses" && removed_release == "1.38")
    );
    // The lists of this scan are no evidence of others, nor is what the control plane writes.
    let endpoints = |finding: &&portolan_audit::Finding| finding.subject.kind == "Endpoints";
    assert!(
        report
            .findings
            .iter()
            .filter(endpoints)
            .all(|finding| finding.subject.namespace == "live"),
        "{:#?}",
        report.findings
    );
}
