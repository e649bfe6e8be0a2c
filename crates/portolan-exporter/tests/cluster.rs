//! Audits of a real API server: releases as Helm stores them, live objects, and an exporter over them.

mod helm;
mod seed;

use std::sync::Arc;
use std::time::Duration;

use portolan_audit::{Checker, Evidence, Level, Target};
use portolan_cluster::{Cluster, ErrorKind};
use portolan_exporter::{Exporter, ExporterOptions, ScanOptions, Sources, scan};
use portolan_testbed::cluster::{Cluster as Testbed, NOBODY_TOKEN, eventually};

use helm::Helm;
use seed::{Driver, Revision, Seeder};

fn checker() -> Checker {
    Checker::new(Target::kubernetes("1.36".parse().expect("a release")))
}

fn helm_in(namespace: &str) -> ScanOptions {
    ScanOptions {
        sources: Sources::Helm,
        namespace: Some(namespace.to_owned()),
        workers: 8,
    }
}

const PDB: &str =
    "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata:\n  name: NAME\n";
const FINE: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: NAME\n";

/// 600 releases of ten revisions: what only superseded or failed revisions hold is not found, everything else is, and
/// no more is asked for than the pages of metadata and one record a release.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_deployed_revision_of_every_release_is_checked_and_nothing_else_is_read() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let seeder = Seeder::new(testbed.client().await, "many").await;
    let mut revisions = Vec::new();
    for number in 0..600 {
        for revision in 1..=10 {
            // Every seventh release is planted; old revisions are all bad.
            let bad = revision < 10 || number % 7 == 0;
            let text = if bad { PDB } else { FINE };
            let status = if revision == 10 {
                "deployed"
            } else {
                "superseded"
            };
            let name = format!("app-{number}");
            revisions.push(Revision::new(
                &name,
                revision,
                status,
                &text.replace("NAME", &name),
            ));
        }
    }
    // A failed upgrade leaves the revision before it deployed.
    revisions.push(Revision::new(
        "app-1",
        11,
        "failed",
        &PDB.replace("NAME", "app-1"),
    ));
    seeder.store(revisions).await;

    let cluster = Cluster::from_client(testbed.client().await);
    let report = scan(&cluster, &checker(), &helm_in("many")).await.unwrap();
    let mut names: Vec<&str> = report
        .findings
        .iter()
        .map(|finding| finding.subject.name.as_str())
        .collect();
    names.sort_unstable();
    let mut planted: Vec<String> = (0..600)
        .step_by(7)
        .map(|number| format!("app-{number}"))
        .collect();
    planted.sort_unstable();
    assert_eq!(names, planted);
    assert!(
        report
            .findings
            .iter()
            .all(|finding| finding.level == Level::Removed)
    );
    assert_eq!(report.checked.releases, 600);
    // 601 records in pages of 256, one empty page of ConfigMaps, one request a release.
    assert_eq!(cluster.requests(), 3 + 1 + 600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_and_records_in_config_maps_are_checked() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let seeder = Seeder::new(testbed.client().await, "hooks").await;
    let mut hooked = Revision::new("hooked", 1, "deployed", &FINE.replace("NAME", "web"));
    hooked.hook =
        "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata:\n  name: before\n".to_owned();
    let mut mapped = Revision::new("mapped", 3, "deployed", &PDB.replace("NAME", "mapped"));
    mapped.driver = Driver::ConfigMap;
    let mut broken = Revision::new("broken", 1, "deployed", "");
    broken.garbage = true;
    let pending = Revision::new(
        "pending",
        1,
        "pending-install",
        &PDB.replace("NAME", "pending"),
    );
    seeder.store(vec![hooked, mapped, broken, pending]).await;

    let cluster = Cluster::from_client(testbed.client().await);
    let report = scan(&cluster, &checker(), &helm_in("hooks")).await.unwrap();
    let found: Vec<String> = report
        .findings
        .iter()
        .map(|finding| {
            format!(
                "{} {} {}",
                finding.level,
                finding.subject.kind,
                finding.object()
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            "unparsed  ",
            "removed CronJob hooks/before",
            "removed PodDisruptionBudget hooks/mapped"
        ]
    );
    let hook = report
        .findings
        .iter()
        .find(|finding| finding.subject.kind == "CronJob")
        .unwrap();
    assert!(
        matches!(&hook.evidence[0], Evidence::Helm { release, hook: true, .. } if release == "hooked")
    );
}

/// Helm's own hand: an install, upgrades, one that fails, hooks, and the other driver. What it is given must be served,
/// so the planted object is one that is deprecated only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn releases_that_helm_itself_made_are_read() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    if !portolan_testbed::has_program("helm", "version") {
        return;
    }
    Seeder::new(testbed.client().await, "real").await;
    let helm = Helm::new(testbed, "real");
    helm.run("secret", "install", "web", &[]);
    helm.run("secret", "upgrade", "web", &["--set=note=again"]);
    assert!(!helm.succeeds("secret", "upgrade", "web", &["--set=old=false,broken=true"]));
    helm.run("secret", "install", "moved", &[]);
    helm.run("secret", "upgrade", "moved", &["--set=old=false"]);
    helm.run("configmap", "install", "mapped", &[]);

    let cluster = Cluster::from_client(testbed.client().await);
    let report = scan(&cluster, &checker(), &helm_in("real")).await.unwrap();
    let found: Vec<String> = report
        .findings
        .iter()
        .map(|finding| {
            format!(
                "{} {} in {}",
                finding.subject.kind,
                finding.object(),
                finding.place()
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            "Endpoints real/mapped-hook in Helm release real/mapped r1",
            "Endpoints real/mapped-old in Helm release real/mapped r1",
            "Endpoints real/web-hook in Helm release real/web r2",
            "Endpoints real/web-old in Helm release real/web r2",
        ]
    );
    assert_eq!(report.checked.releases, 3);
}

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
    let cluster = Cluster::from_client(testbed.client().await);
    let options = ScanOptions {
        sources: Sources::Live,
        namespace: Some("live".to_owned()),
        workers: 8,
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
    let cluster = Cluster::from_client(testbed.client().await);
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

/// The role in `deploy/audit` is enough for everything, and without it the refusal is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deployed_role_suffices() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let seeder = Seeder::new(testbed.client().await, "rights").await;
    let nobody = portolan_testbed::cluster::client(&testbed.kubeconfig_for(NOBODY_TOKEN)).await;
    let cluster = Cluster::from_client(nobody);
    let everything = ScanOptions::default();
    let refused = scan(&cluster, &checker(), &everything).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);

    let manifests = include_str!("../../../deploy/audit/rbac.yaml");
    let role = manifests
        .split("---\n")
        .find(|text| text.contains("kind: ClusterRole\n"))
        .unwrap();
    seeder
        .create_yaml("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
        .await;
    let binding = serde_json::json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "nobody-audits"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "portolan-audit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}],
    });
    seeder
        .create(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            &binding,
        )
        .await;
    eventually("the role", async || {
        let report = scan(&cluster, &checker(), &everything).await;
        report.is_ok_and(|report| report.warnings.is_empty())
    })
    .await;
}

/// After the first scan nothing is listed again: a watch tells what to read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_that_comes_changes_and_goes_is_followed() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let seeder = Seeder::new(testbed.client().await, "followed").await;
    let (exporter, _) = Exporter::open(ExporterOptions {
        scan: helm_in("followed"),
        checker: Box::new(|_| checker()),
        ttl: Duration::from_hours(1),
        state: None,
        baseline: None,
        finding_series: 0,
    });
    let exporter = Arc::new(exporter);
    let cluster = Cluster::from_client(testbed.client().await);
    let running = tokio::spawn({
        let (exporter, cluster) = (Arc::clone(&exporter), cluster.clone());
        async move { exporter.run(&cluster).await }
    });
    let shows = |releases: usize, findings: usize| {
        let exporter = Arc::clone(&exporter);
        move || {
            let report = exporter.snapshot().map(|snapshot| snapshot.report.clone());
            std::future::ready(report.is_some_and(|report| {
                (report.checked.releases, report.findings.len()) == (releases, findings)
            }))
        }
    };
    eventually("the first scan", shows(0, 0)).await;
    // The version, one page of each driver, and a watch on each.
    eventually("the watches", || {
        std::future::ready(cluster.requests() == 5)
    })
    .await;

    let bad = Revision::new("web", 1, "deployed", &PDB.replace("NAME", "web"));
    seeder.store(vec![bad]).await;
    eventually("the new release", shows(1, 1)).await;
    assert_eq!(cluster.requests(), 6);

    // As Helm does it: the new revision, the end of the old one, then the new one is the deployed one.
    seeder
        .store(vec![Revision::new(
            "web",
            2,
            "pending-upgrade",
            &FINE.replace("NAME", "web"),
        )])
        .await;
    seeder.set_status("web", 1, "superseded").await;
    seeder.set_status("web", 2, "deployed").await;
    eventually("the upgrade", shows(1, 0)).await;
    assert_eq!(cluster.requests(), 7);

    seeder.delete("web", 2).await;
    eventually("the end", shows(0, 0)).await;
    assert_eq!(cluster.requests(), 7);
    assert!(
        exporter
            .metrics()
            .contains("portolan_audit_scans_total 1\n")
    );
    running.abort();
}
