//! Releases as Helm stores them, some made by Helm itself.

use portolan_audit::{Evidence, Level};
use portolan_cluster::Cluster;
use portolan_exporter::scan;
use portolan_testbed::cluster::Cluster as Testbed;

use crate::helm::Helm;
use crate::seed::{Driver, Revision, Seeder};
use crate::{FINE, PDB, checker, helm_in};

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

    let cluster = Cluster::from_client(testbed.client().await, testbed.url());
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

    let cluster = Cluster::from_client(testbed.client().await, testbed.url());
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

    let cluster = Cluster::from_client(testbed.client().await, testbed.url());
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
