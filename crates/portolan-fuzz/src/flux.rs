//! A Flux repository: files cut at lines of `%%`, each with its path on its first line.

use std::sync::{Arc, LazyLock};

use portolan_budget::{Budget, Stop};
use portolan_engine::{Journal, JournalOptions, Limits, Run};
use portolan_flux::{Depth, Repo, RepoOptions, cluster_unit};
use portolan_vfs::{Memory, Vfs};
use tokio::runtime::Runtime;

use crate::{Target, pieces, texts};

pub(crate) const TARGETS: &[Target] = &[Target {
    name: "flux-repository",
    about: "files with their paths, cut at lines of `%%`: clusters are found and rendered",
    run: repository,
    seeds: || {
        texts(&[
            "/clusters/a/flux-system/gotk-sync.yaml\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {url: 'https://example.com/r.git'}\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {path: ./clusters/a, prune: true, interval: 1h, sourceRef: {kind: GitRepository, name: flux-system}}\n%%\n/clusters/a/apps.yaml\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\nspec: {path: ./apps, prune: true, interval: 1h, sourceRef: {kind: GitRepository, name: flux-system}, postBuild: {substitute: {A: b}, substituteFrom: [{kind: ConfigMap, name: c, optional: true}]}, dependsOn: [{name: flux-system}], patches: [{patch: '- {op: add, path: /data/x, value: y}', target: {kind: ConfigMap}}], targetNamespace: n}\n%%\n/apps/c.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-${A}}\ndata: {a: ${A:=b}}\n%%\n/apps/r.yaml\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r}\nspec: {interval: 1h, chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}, values: {x: 1}, valuesFrom: [{kind: ConfigMap, name: c-b, valuesKey: a, targetPath: y.z}]}\n%%\n/chart/Chart.yaml\napiVersion: v2\nname: chart\nversion: 1.0.0\n%%\n/chart/templates/t.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: t}\ndata: {x: '{{ .Values.x }}'}\n",
            "/clusters/a/flux.yaml\napiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec: {distribution: {version: 2.x, registry: ghcr.io/fluxcd}, sync: {kind: GitRepository, url: 'https://example.com/r.git', ref: refs/heads/main, path: clusters/a}}\n---\napiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: s, namespace: flux-system}\nspec: {inputs: [{t: a}], resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c-<< inputs.t >>, namespace: d}}]}\n",
        ])
    },
}];

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
});

fn repository(bytes: &[u8]) -> bool {
    let Some(parts) = pieces(bytes) else {
        return false;
    };
    let mut files = Memory::new();
    for part in parts {
        let (path, text) = part.split_once('\n').unwrap_or((part, ""));
        files.insert(path, text);
    }
    let files: Arc<dyn Vfs> = Arc::new(files);
    let limits = portolan_budget::Limits {
        steps: 500_000,
        bytes: 32 << 20,
        ..Default::default()
    };
    let options = RepoOptions {
        budget: Some(Budget::new(limits, Stop::default())),
        ..RepoOptions::default()
    };
    let Ok(repo) = Repo::open(&files, &options) else {
        return false;
    };
    let report = RUNTIME.block_on(async {
        let journal = Journal::in_memory(JournalOptions::default());
        let run = Run::new(Limits::default(), journal);
        for (number, cluster) in repo.clusters().iter().enumerate() {
            let unit = cluster_unit(Arc::clone(cluster), Depth::Releases);
            run.add(number.to_string(), &[], unit);
        }
        run.finish().await
    });
    report.roots().is_empty()
}
