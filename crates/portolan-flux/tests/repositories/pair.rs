//! Two trees of one cluster, compared, and the comparison checked against rendering both in full.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portolan_flux::{
    Cluster, Depth, Pair, Rendering, Repo, RepoOptions, Session, Work, pair_unit,
    unskipped_pair_unit,
};
use portolan_object::{Object, canonical_json};
use portolan_vfs::{Frozen, Lineage, Memory, Vfs};

use crate::flux::{Files, chart, file, kustomization, open, release, render_cluster, run};

/// A chart's template that prints a colour.
pub(crate) const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  colour: {{ .Values.colour | default \"none\" | quote }}\n";

/// Files by path.
#[derive(Clone)]
pub(crate) struct Tree(pub(crate) BTreeMap<String, String>);

impl Tree {
    /// Five releases of one chart, each by a Kustomization of its own.
    pub(crate) fn new() -> Self {
        let mut files = chart("/charts/web", TEMPLATE);
        files.push(file(
            "/clusters/prod/root.yaml",
            kustomization("root", "./clusters/prod", ""),
        ));
        let mut tree = Self(files.into_iter().collect());
        for number in 1..=5 {
            let name = format!("app-{number}");
            tree.add_app(&name, &release("apps", &name, "./charts/web", ""));
        }
        tree
    }

    pub(crate) fn add_app(&mut self, name: &str, text: &str) {
        let declared = kustomization(name, &format!("./apps/{name}"), "");
        self.set(&format!("/clusters/prod/{name}.yaml"), &declared);
        self.set(&format!("/apps/{name}/release.yaml"), text);
    }

    pub(crate) fn set(&mut self, path: &str, text: &str) {
        self.0.insert(path.to_owned(), text.to_owned());
    }

    pub(crate) fn add_chart(&mut self, directory: &str, template: &str) {
        self.0.extend(chart(directory, template));
    }

    fn files(&self) -> Files {
        self.0.clone().into_iter().collect()
    }
}

/// Opens both trees with what was touched between them known.
pub(crate) fn open_both(before: &Tree, after: &Tree, session: &Arc<Session>) -> [Arc<Cluster>; 2] {
    let paths: BTreeSet<&String> = before.0.keys().chain(after.0.keys()).collect();
    let touched = paths
        .into_iter()
        .filter(|path| before.0.get(*path) != after.0.get(*path))
        .map(|path| path.as_str().into());
    let first = Lineage::begin();
    let second = first.followed_by(touched);
    [(before, first), (after, second)].map(|(tree, lineage)| {
        let memory: Memory = tree.files().into_iter().collect();
        let files: Arc<dyn Vfs> = Arc::new(Frozen::new(memory).with_lineage(lineage));
        let options = RepoOptions {
            path: Some("/clusters/prod".into()),
            session: Some(Arc::clone(session)),
            ..Default::default()
        };
        Arc::clone(&Repo::open(&files, &options).unwrap().clusters()[0])
    })
}

/// The objects of every owner that was rendered; one that fails says so.
type ObjectsByOwner = BTreeMap<String, Vec<String>>;

fn objects_by_owner(rendering: &Rendering) -> ObjectsByOwner {
    let texts = |objects: Option<&Arc<Vec<Object>>>| match objects {
        Some(objects) => {
            let texts = objects.iter();
            texts
                .map(|object| canonical_json(object.node()).unwrap())
                .collect()
        }
        None => vec!["fails".to_owned()],
    };
    // One without a unit was not built, for both sides would build the same.
    let kustomizations = rendering.walk.kustomizations.iter();
    let asked = kustomizations.filter(|(_, walked)| walked.unit.is_some());
    let built = asked.map(|(id, walked)| {
        let objects = walked.built.as_ref().map(|built| &built.objects);
        (format!("Kustomization {id}"), texts(objects))
    });
    let expansions = rendering.walk.expansions.iter();
    let expanded = expansions
        .map(|(emitter, expansion)| (emitter.to_string(), texts(expansion.objects.as_ref())));
    // A release with a digest and without objects was not rendered either.
    let releases = rendering.releases.iter().map(|(id, release)| {
        let objects = release.objects.clone();
        let objects = objects.or_else(|| release.digest.map(|_| Arc::default()));
        (format!("HelmRelease {id}"), texts(objects.as_ref()))
    });
    built.chain(expanded).chain(releases).collect()
}

/// The owners that differ, with what they give on both sides.
fn differences(
    before: &Rendering,
    after: &Rendering,
) -> BTreeMap<String, [Option<Vec<String>>; 2]> {
    let (before, after) = (objects_by_owner(before), objects_by_owner(after));
    let owners: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let sides = |owner: &String| [&before, &after].map(|side| side.get(owner).cloned());
    let differing = owners
        .into_iter()
        .map(|owner| (owner.clone(), sides(owner)));
    differing.filter(|(_, [old, new])| old != new).collect()
}

/// Compares two trees, checks the answer against full renders, and says what differs and what was done for it.
pub(crate) fn compare(before: &Tree, after: &Tree) -> (Vec<String>, Work) {
    let session = Arc::<Session>::default();
    let [old, new] = open_both(before, after, &session);
    let report = run(vec![("pair", pair_unit(old, new, Depth::Releases))]);
    let pair: Arc<Pair> = report.output(&"pair".into()).unwrap();
    let found = differences(&pair.before, &pair.after);
    let full = |tree: &Tree| {
        let cluster = open(&tree.files(), &Arc::default());
        render_cluster(cluster, Depth::Releases).rendering
    };
    assert_eq!(found, differences(&full(before), &full(after)));
    let [old, new] = open_both(before, after, &Arc::default());
    let whole = run(vec![(
        "pair",
        unskipped_pair_unit(old, new, Depth::Releases),
    )]);
    let whole: Arc<Pair> = whole.output(&"pair".into()).unwrap();
    assert_eq!(found, differences(&whole.before, &whole.after));
    (found.into_keys().collect(), session.made())
}

pub(crate) fn work(kustomizations: usize, charts: usize, releases: usize) -> Work {
    Work {
        kustomizations,
        charts,
        releases,
    }
}
