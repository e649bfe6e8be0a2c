//! Two trees in one session share every result whose inputs are equal.

use std::sync::Arc;

use crate::flux::{
    Files, chart, config_map, file, kustomization, open, open_with, release, render_cluster, run,
};
use portolan_flux::{Depth, Pair, Rendering, RepoOptions, Session, Work, cluster_unit, pair_unit};

const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  colour: {{ .Values.colour | default \"none\" | quote }}\n";

/// Two clusters over the same ten applications.
fn repository() -> Files {
    let mut files = chart("/charts/web", TEMPLATE);
    for cluster in ["prod", "test"] {
        files.push(file(
            format!("/clusters/{cluster}/root.yaml"),
            kustomization("root", &format!("./clusters/{cluster}"), ""),
        ));
        files.push(file(
            format!("/clusters/{cluster}/settings.yaml"),
            config_map("flux-system", "settings", "CLUSTER", cluster),
        ));
        for number in 1..=10 {
            let name = format!("app-{number}");
            files.push(file(
                format!("/clusters/{cluster}/{name}.yaml"),
                kustomization(&name, &format!("./apps/{name}"), ""),
            ));
        }
    }
    for number in 1..=10 {
        let name = format!("app-{number}");
        files.push(file(
            format!("/apps/{name}/release.yaml"),
            release("apps", &name, "./charts/web", ""),
        ));
        files.push(file(
            format!("/apps/{name}/map.yaml"),
            config_map("apps", &name, "N", &number.to_string()),
        ));
    }
    files
}

/// The repository with one file changed.
fn changed(path: &str, text: &str) -> Files {
    let mut files = repository();
    files.retain(|(other, _)| other != path);
    files.push(file(path, text));
    files
}

fn work(kustomizations: usize, charts: usize, releases: usize) -> Work {
    Work {
        kustomizations,
        charts,
        releases,
    }
}

#[test]
fn a_second_cluster_builds_only_what_is_its_own() {
    let session = Arc::<Session>::default();
    let cluster = |path: &str| {
        let options = RepoOptions {
            path: Some(path.into()),
            session: Some(Arc::clone(&session)),
            ..Default::default()
        };
        open_with(&repository(), &options)
    };
    render_cluster(cluster("/clusters/prod"), Depth::Releases);
    assert_eq!(session.made(), work(11, 1, 10));
    render_cluster(cluster("/clusters/test"), Depth::Releases);
    assert_eq!(session.made(), work(12, 1, 10));
}

#[test]
fn two_clusters_in_one_run_do_everything_once() {
    let session = Arc::<Session>::default();
    let options = RepoOptions {
        session: Some(Arc::clone(&session)),
        ..Default::default()
    };
    let files: portolan_vfs::Memory = repository().into_iter().collect();
    let files: Arc<dyn portolan_vfs::Vfs> = Arc::new(files);
    let repo = portolan_flux::Repo::open(&files, &options).unwrap();
    let unit = |at: usize| cluster_unit(Arc::clone(&repo.clusters()[at]), Depth::Releases);
    let report = run(vec![("one", unit(0)), ("two", unit(1))]);
    assert!(report.is_success());
    assert_eq!(session.made(), work(12, 1, 10));
    // Two that walk, twelve Kustomizations, one chart, ten releases: not a unit more.
    assert_eq!(report.units().len(), 25);
}

#[test]
fn a_changed_file_has_only_what_reads_it_done_again() {
    let session = Arc::<Session>::default();
    render_cluster(open(&repository(), &session), Depth::Releases);
    let before = session.made();
    let values = release(
        "apps",
        "app-3",
        "./charts/web",
        "  values: {colour: blue}\n",
    );
    let after = changed("/apps/app-3/release.yaml", &values);
    let outcome = render_cluster(open(&after, &session), Depth::Releases);
    assert!(outcome.told().is_empty());
    assert_eq!(
        session.made(),
        work(before.kustomizations + 1, 1, before.releases + 1)
    );
}

#[test]
fn a_file_that_nothing_reads_changes_nothing() {
    let session = Arc::<Session>::default();
    render_cluster(open(&repository(), &session), Depth::Releases);
    let before = session.made();
    render_cluster(
        open(&changed("/README.md", "more"), &session),
        Depth::Releases,
    );
    assert_eq!(session.made(), before);
}

#[test]
fn a_new_file_in_a_directory_without_kustomization_file_is_noticed() {
    let session = Arc::<Session>::default();
    render_cluster(open(&repository(), &session), Depth::Releases);
    let after = changed(
        "/apps/app-3/more.yaml",
        &config_map("apps", "more", "a", "b"),
    );
    let outcome = render_cluster(open(&after, &session), Depth::Releases);
    assert_eq!(outcome.objects("app-3").len(), 3);
}

#[test]
fn results_that_nobody_asked_for_twice_are_forgotten() {
    let session = Arc::<Session>::default();
    render_cluster(open(&repository(), &session), Depth::Releases);
    session.forget_unused();
    session.forget_unused();
    render_cluster(open(&repository(), &session), Depth::Releases);
    assert_eq!(session.made(), work(22, 2, 20));
}

fn pair(before: &Files, after: &Files) -> (Arc<Pair>, Work) {
    let session = Arc::<Session>::default();
    let unit = pair_unit(
        open(before, &session),
        open(after, &session),
        Depth::Releases,
    );
    let report = run(vec![("pair", unit)]);
    (report.output(&"pair".into()).unwrap(), session.made())
}

fn has_objects(rendering: &Rendering) -> Vec<String> {
    let rendered = rendering
        .releases
        .iter()
        .filter(|(_, release)| release.objects.is_some());
    rendered.map(|(id, _)| id.to_string()).collect()
}

#[test]
fn a_comparison_renders_only_releases_that_differ() {
    let values = release(
        "apps",
        "app-3",
        "./charts/web",
        "  values: {colour: blue}\n",
    );
    let (pair, made) = pair(&repository(), &changed("/apps/app-3/release.yaml", &values));
    assert_eq!(has_objects(&pair.before), ["apps/app-3"]);
    assert_eq!(has_objects(&pair.after), ["apps/app-3"]);
    assert_eq!(made, work(12, 1, 2));
}

#[test]
fn a_comparison_shares_the_kustomizations_that_did_not_change() {
    let map = config_map("apps", "app-3", "N", "33");
    let (pair, _) = pair(&repository(), &changed("/apps/app-3/map.yaml", &map));
    let differs = |name: &str| {
        let built = |rendering: &Rendering| {
            let walked = rendering.walk.kustomizations.iter();
            let (_, walked) = walked.into_iter().find(|(id, _)| id.name == name).unwrap();
            walked.built.clone().unwrap()
        };
        !Arc::ptr_eq(&built(&pair.before), &built(&pair.after))
    };
    assert!(differs("app-3"));
    assert!(!differs("app-4"));
    assert_eq!(has_objects(&pair.after), Vec::<String>::new());
}
