//! Two trees that know where they differ: what is not touched is neither read nor rendered, and nothing that differs is
//! missed.
//!
//! Every comparison is checked against rendering both trees in full.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portolan_flux::{Cluster, Depth, Pair, Rendering, Repo, RepoOptions, Session, Work, pair_unit};
use portolan_object::canonical_json;
use portolan_vfs::{Frozen, Lineage, Memory, Vfs};

use crate::flux::{
    Files, chart, config_map, file, kustomization, open, release, render_cluster, run,
};

const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  colour: {{ .Values.colour | default \"none\" | quote }}\n";

/// A template that prints something else once the repository brings a kind.
const ASKING: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  has: {{ .Capabilities.APIVersions.Has \"example.com/v1/Pier\" | quote }}\n  colour: {{ .Values.colour | default \"none\" }}\n";

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: piers.example.com}\nspec: {group: example.com, scope: Namespaced, names: {kind: Pier, plural: piers}, versions: [{name: v1, served: true, storage: true}]}\n";

/// Files by path.
#[derive(Clone)]
struct Tree(BTreeMap<String, String>);

impl Tree {
    /// Five releases of one chart, each by a Kustomization of its own.
    fn new() -> Self {
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

    fn add_app(&mut self, name: &str, text: &str) {
        let declared = kustomization(name, &format!("./apps/{name}"), "");
        self.set(&format!("/clusters/prod/{name}.yaml"), &declared);
        self.set(&format!("/apps/{name}/release.yaml"), text);
    }

    fn set(&mut self, path: &str, text: &str) {
        self.0.insert(path.to_owned(), text.to_owned());
    }

    fn add_chart(&mut self, directory: &str, template: &str) {
        self.0.extend(chart(directory, template));
    }

    fn files(&self) -> Files {
        self.0.clone().into_iter().collect()
    }
}

/// Opens both trees with what was touched between them known.
fn open_both(before: &Tree, after: &Tree, session: &Arc<Session>) -> [Arc<Cluster>; 2] {
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

/// What differs between two renderings, by who emits it; those of a pair leave out what does not.
fn differences(before: &Rendering, after: &Rendering) -> BTreeSet<String> {
    let objects = |rendering: &Rendering| -> BTreeMap<String, Vec<String>> {
        let texts = |objects: &[portolan_object::Object]| {
            let texts = objects.iter();
            texts
                .map(|object| canonical_json(object.node()).unwrap())
                .collect()
        };
        let built = rendering.walk.kustomizations.iter().map(|(id, walked)| {
            let built = walked.built.as_ref().expect("it builds");
            (format!("Kustomization {id}"), texts(&built.objects))
        });
        let releases = rendering.releases.iter().map(|(id, release)| {
            let objects = release.objects.clone().unwrap_or_default();
            (format!("HelmRelease {id}"), texts(&objects))
        });
        built.chain(releases).collect()
    };
    let (before, after) = (objects(before), objects(after));
    let owners: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differs = |owner: &&String| before.get(*owner) != after.get(*owner);
    owners.into_iter().filter(differs).cloned().collect()
}

/// Compares two trees, checks the answer against full renders, and says what differs and what was done for it.
fn compare(before: &Tree, after: &Tree) -> (Vec<String>, Work) {
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
    (found.into_iter().collect(), session.made())
}

fn work(kustomizations: usize, charts: usize, releases: usize) -> Work {
    Work {
        kustomizations,
        charts,
        releases,
    }
}

fn coloured(name: &str, chart: &str) -> String {
    release("apps", name, chart, "  values: {colour: blue}\n")
}

#[test]
fn a_value_has_one_kustomization_and_one_release_done_again() {
    let before = Tree::new();
    let mut after = before.clone();
    after.set(
        "/apps/app-3/release.yaml",
        &coloured("app-3", "./charts/web"),
    );
    let (found, made) = compare(&before, &after);
    assert_eq!(
        found,
        ["HelmRelease apps/app-3", "Kustomization flux-system/app-3"]
    );
    assert_eq!(made, work(7, 1, 2));
}

#[test]
fn a_file_that_no_release_is_made_of_has_no_chart_loaded() {
    let before = Tree::new();
    let mut after = before.clone();
    after.set(
        "/apps/app-3/map.yaml",
        &config_map("apps", "more", "a", "b"),
    );
    let (found, made) = compare(&before, &after);
    assert_eq!(found, ["Kustomization flux-system/app-3"]);
    // The release is an object of another build now, so its chart is needed to tell that it is the same.
    assert_eq!(made, work(7, 1, 0));
    let mut nothing = before.clone();
    nothing.set("/README.md", "more");
    assert_eq!(compare(&before, &nothing), (vec![], work(6, 0, 0)));
}

#[test]
fn a_chart_has_all_of_its_releases_rendered() {
    let mut before = Tree::new();
    before.add_chart("/charts/other", TEMPLATE);
    before.add_app("other", &release("apps", "other", "./charts/other", ""));
    let mut after = before.clone();
    after.add_chart("/charts/web", &TEMPLATE.replace("colour:", "paint:"));
    let (found, made) = compare(&before, &after);
    assert_eq!(found.len(), 5);
    assert_eq!(made, work(7, 2, 10), "the other chart is not loaded");
}

#[test]
fn data_that_values_come_from_is_part_of_a_release() {
    let mut before = Tree::new();
    let from = "  valuesFrom: [{kind: ConfigMap, name: settings}]\n";
    before.add_app("fed", &release("apps", "fed", "./charts/web", from));
    let settings = |colour: &str| {
        config_map(
            "apps",
            "settings",
            "values.yaml",
            &format!("colour: {colour}"),
        )
    };
    before.set("/clusters/prod/settings.yaml", &settings("red"));
    let mut after = before.clone();
    after.set("/clusters/prod/settings.yaml", &settings("green"));
    let (found, made) = compare(&before, &after);
    assert_eq!(
        found,
        ["HelmRelease apps/fed", "Kustomization flux-system/root"]
    );
    assert_eq!(made.releases, 2);
}

/// What a chart prints may lead to files that were touched.
#[test]
fn kustomizations_that_a_chart_prints_are_followed() {
    let mut before = Tree::new();
    before.add_chart("/charts/sync", &kustomization("printed", "./printed", ""));
    before.add_app("sync", &release("flux-system", "sync", "./charts/sync", ""));
    before.set("/printed/map.yaml", &config_map("apps", "deep", "a", "b"));
    let mut after = before.clone();
    after.set("/printed/map.yaml", &config_map("apps", "deep", "a", "c"));
    let (found, made) = compare(&before, &after);
    assert_eq!(found, ["Kustomization flux-system/printed"]);
    assert_eq!(made.releases, 1, "only the one that prints it, once");
}

#[test]
fn a_kind_that_comes_is_told_to_charts_that_did_not_change() {
    let mut before = Tree::new();
    before.add_chart("/charts/asking", ASKING);
    before.add_app("asks", &release("apps", "asks", "./charts/asking", ""));
    let mut after = before.clone();
    after.set("/apps/app-1/definition.yaml", DEFINITION);
    let (found, _) = compare(&before, &after);
    assert_eq!(
        found,
        ["HelmRelease apps/asks", "Kustomization flux-system/app-1"]
    );
}

#[test]
fn a_chart_that_asks_for_kinds_is_told_those_of_charts_that_did_not_change() {
    let mut before = Tree::new();
    before.add_chart("/charts/asking", ASKING);
    before.add_app("asks", &release("apps", "asks", "./charts/asking", ""));
    before.add_chart("/charts/defining", TEMPLATE);
    before.set("/charts/defining/crds/pier.yaml", DEFINITION);
    before.add_app(
        "defines",
        &release("apps", "defines", "./charts/defining", ""),
    );
    before.add_chart("/charts/foreign", TEMPLATE);
    let foreign = DEFINITION.replace("example.com", "example.org");
    before.set("/charts/foreign/crds/pier.yaml", &foreign);
    before.add_app(
        "foreign",
        &release("apps", "foreign", "./charts/foreign", ""),
    );
    let mut after = before.clone();
    after.set(
        "/apps/asks/release.yaml",
        &coloured("asks", "./charts/asking"),
    );
    let session = Arc::<Session>::default();
    let clusters = open_both(&before, &after, &session);
    let [old, new] = clusters;
    let report = run(vec![("pair", pair_unit(old, new, Depth::Releases))]);
    let pair: Arc<Pair> = report.output(&"pair".into()).unwrap();
    let asks = pair.after.releases.iter().find(|(id, _)| id.name == "asks");
    let objects = asks
        .and_then(|(_, release)| release.objects.clone())
        .unwrap();
    let has = objects[0]
        .node()
        .at_path(&["data", "has"])
        .unwrap()
        .as_str();
    assert_eq!(has, Some("true"));
    let (_, made) = compare(&before, &after);
    assert_eq!(
        made.charts, 2,
        "a chart that defines other kinds stays away"
    );
}

/// A build would render the release first and have its data.
#[test]
fn data_that_only_a_chart_prints_is_had_when_something_that_differs_wants_it() {
    let mut before = Tree::new();
    before.add_chart(
        "/charts/printing",
        &config_map("flux-system", "printed", "COLOUR", "red"),
    );
    before.add_app(
        "printing",
        &release("flux-system", "printing", "./charts/printing", ""),
    );
    let wants = kustomization(
        "wants",
        "./wants",
        "  postBuild: {substituteFrom: [{kind: ConfigMap, name: printed}]}\n",
    );
    before.set("/clusters/prod/wants.yaml", &wants);
    before.set(
        "/wants/map.yaml",
        &config_map("apps", "wants", "colour", "${COLOUR}-1"),
    );
    let mut after = before.clone();
    after.set(
        "/wants/map.yaml",
        &config_map("apps", "wants", "colour", "${COLOUR}-2"),
    );
    let (found, _) = compare(&before, &after);
    assert_eq!(found, ["Kustomization flux-system/wants"]);
}
