//! Small repositories in memory, rendered.

use std::sync::Arc;

use portolan_engine::{Journal, JournalOptions, Limits, Report, Run, Unit};
use portolan_flux::{
    Cluster, Demand, Rendering, Repo, RepoOptions, Session, cluster_unit, problems,
};
use portolan_object::Finding;
use portolan_vfs::{Memory, Vfs};

/// A repository in memory.
pub(crate) type Files = Vec<(String, String)>;

/// What became of a repository.
pub(crate) struct Outcome {
    pub(crate) rendering: Arc<Rendering>,
    pub(crate) report: Report,
    files: Arc<dyn Vfs>,
}

impl Outcome {
    /// Everything that is wrong: kind, name, messages, place, hints.
    pub(crate) fn problems(&self) -> Vec<Finding> {
        problems(&self.rendering, &self.report, self.files.as_ref())
    }

    /// Everything that is wrong, a line each.
    pub(crate) fn told(&self) -> Vec<String> {
        let tell = |problem: &Finding| {
            let place = problem.place.as_ref().map_or(String::new(), |place| {
                format!(" at {}:{}", place.file, place.at.line)
            });
            let (severity, subject) = (problem.severity, problem.subject());
            format!("{severity:?} {subject}: {}{place}", problem.message())
        };
        self.problems().iter().map(tell).collect()
    }

    /// The kinds of the units that ran, with how many there were of each.
    pub(crate) fn units(&self, kind: &str) -> usize {
        let start = format!("{kind}/");
        let units = self.report.units();
        units
            .filter(|(key, _)| key.as_str().starts_with(&start))
            .count()
    }

    /// The ids of a Kustomization's objects, shortest form.
    pub(crate) fn objects(&self, name: &str) -> Vec<String> {
        let walked = self.rendering.walk.kustomizations.iter();
        walked
            .filter(|(id, _)| id.name == name)
            .flat_map(|(_, walked)| walked.built.iter().flat_map(|built| built.objects.iter()))
            .map(|object| object.id().short().to_string())
            .collect()
    }

    /// The ids of a release's objects, shortest form.
    pub(crate) fn release(&self, name: &str) -> Vec<String> {
        let releases = self.rendering.releases.iter();
        releases
            .filter(|(id, _)| id.name == name)
            .flat_map(|(_, release)| release.objects.iter().flat_map(|objects| objects.iter()))
            .map(|object| object.id().short().to_string())
            .collect()
    }
}

/// Opens the only cluster of a repository.
pub(crate) fn open(files: &Files, session: &Arc<Session>) -> Arc<Cluster> {
    let options = RepoOptions {
        path: Some("/clusters/prod".into()),
        session: Some(Arc::clone(session)),
        ..Default::default()
    };
    open_with(files, &options)
}

pub(crate) fn open_with(files: &Files, options: &RepoOptions) -> Arc<Cluster> {
    let memory: Memory = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let files: Arc<dyn Vfs> = Arc::new(memory);
    Arc::clone(&Repo::open(&files, options).unwrap().clusters()[0])
}

/// Renders what is asked for.
pub(crate) fn render(files: &Files, demand: impl Into<Demand>) -> Outcome {
    render_cluster(open(files, &Arc::default()), demand)
}

pub(crate) fn render_cluster(cluster: Arc<Cluster>, demand: impl Into<Demand>) -> Outcome {
    let files = Arc::clone(&cluster.sources[&cluster.root.source]);
    let report = run(vec![("cluster", cluster_unit(cluster, demand))]);
    Outcome {
        files,
        rendering: report.output(&"cluster".into()).unwrap(),
        report,
    }
}

/// Runs units to their end.
pub(crate) fn run<T>(units: Vec<(&str, Unit<T>)>) -> Report {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let run = Run::new(
            Limits::default(),
            Journal::in_memory(JournalOptions::default()),
        );
        for (key, unit) in units {
            run.add(key, &[], unit);
        }
        run.finish().await
    })
}

/// A Kustomization in `flux-system` with more fields of its spec.
pub(crate) fn kustomization(name: &str, path: &str, more: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: {name}\n  namespace: flux-system\nspec:\n  path: {path}\n  prune: true\n  interval: 1h\n  sourceRef:\n    kind: GitRepository\n    name: flux-system\n{more}"
    )
}

/// A ConfigMap with one entry.
pub(crate) fn config_map(namespace: &str, name: &str, key: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}\ndata:\n  {key}: \"{value}\"\n"
    )
}

/// A HelmRelease of a chart in the repository.
pub(crate) fn release(namespace: &str, name: &str, chart: &str, more: &str) -> String {
    format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: {name}\n  namespace: {namespace}\nspec:\n  interval: 1h\n  chart:\n    spec:\n      chart: {chart}\n      sourceRef:\n        kind: GitRepository\n        name: flux-system\n        namespace: flux-system\n{more}"
    )
}

/// A chart with one template.
pub(crate) fn chart(directory: &str, template: &str) -> Files {
    let name = directory.rsplit('/').next().unwrap();
    vec![
        (
            format!("{directory}/Chart.yaml"),
            format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"),
        ),
        (format!("{directory}/values.yaml"), String::new()),
        (
            format!("{directory}/templates/all.yaml"),
            template.to_owned(),
        ),
    ]
}

pub(crate) fn file(path: impl Into<String>, text: impl Into<String>) -> (String, String) {
    (path.into(), text.into())
}
