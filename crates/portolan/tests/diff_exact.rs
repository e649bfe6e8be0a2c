//! What `portolan diff` finds is what two full builds differ in, object by object: nothing more, nothing less.

mod portolan;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use portolan::git::GitRepository;
use portolan::portolan_in;
use portolan::repository::HARBOR;
use portolan_object::canonical_json;
use portolan_yaml::{Dialect, Node, from_json, parse};

/// An object as both ways name it; generated ones go without their hash.
type Id = (String, String, String, String);

/// What was done to an object: `added`, `removed` or `changed`.
type Changes = BTreeSet<(String, Id)>;

fn text(node: &Node, path: &[&str]) -> String {
    let text = node.at_path(path).and_then(Node::as_str);
    text.unwrap_or_default().to_owned()
}

fn id(cluster: &str, kind: String, namespace: String, name: &str) -> Id {
    let hash = name.rsplit_once('-').filter(|(_, hash)| {
        matches!(&*kind, "ConfigMap" | "Secret")
            && hash.len() == 10
            && hash
                .chars()
                .all(|letter| "2456789bcdfghkmt".contains(letter))
    });
    let name = hash.map_or(name, |(base, _)| base).to_owned();
    (cluster.to_owned(), kind, namespace, name)
}

/// Every object of full builds of all clusters, as canonical text.
type Objects = BTreeMap<Id, Vec<String>>;

fn built(directory: &Path, clusters: &[&str]) -> Objects {
    let mut objects = Objects::new();
    for cluster in clusters {
        let path = format!("clusters/{cluster}");
        if !directory.join(&path).exists() {
            continue;
        }
        let args = ["build", "all", "--show-secrets", "--path", &path];
        let answer = portolan_in(directory.to_str().expect("UTF-8"), &args);
        assert_eq!(answer.code, 0, "{answer}");
        for node in parse(answer.stdout, Dialect::Kustomize).expect("YAML") {
            let name = text(&node, &["metadata", "name"]);
            let namespace = text(&node, &["metadata", "namespace"]);
            let id = id(cluster, text(&node, &["kind"]), namespace, &name);
            let canonical = canonical_json(&node).expect("JSON");
            objects.entry(id).or_default().push(canonical);
        }
    }
    objects
}

/// What differs between two full builds.
fn brute_force(before: &Objects, after: &Objects) -> Changes {
    let ids: BTreeSet<&Id> = before.keys().chain(after.keys()).collect();
    let change = |id: &Id| match (before.get(id), after.get(id)) {
        (None, _) => Some("added"),
        (_, None) => Some("removed"),
        (old, new) => (old != new).then_some("changed"),
    };
    ids.into_iter()
        .filter_map(|id| Some((change(id)?.to_owned(), id.clone())))
        .collect()
}

/// The last commit, compared as two commits.
const COMMITTED: &[&str] = &["--from", "HEAD~1", "--exact", "--to", "HEAD"];

/// What is not committed yet.
const EDITED: &[&str] = &["--from", "HEAD"];

/// What the command says.
fn told(repository: &GitRepository, what: &[&str], clusters: &[&str]) -> Changes {
    let args: Vec<&str> = [&["diff", "--no-strip", "-o", "json"], what].concat();
    let answer = repository.portolan(&args);
    assert!(matches!(answer.code, 0 | 1), "{answer}");
    let report = from_json(&answer.stdout).expect("JSON");
    let changes = report
        .get("changes")
        .and_then(Node::as_list)
        .expect("a list");
    let change = |node: &Node| {
        let named = text(node, &["cluster"]);
        let cluster = match clusters {
            [only] => only,
            _ => named.as_str(),
        };
        let name = text(node, &["name"]);
        let id = id(
            cluster,
            text(node, &["kind"]),
            text(node, &["namespace"]),
            &name,
        );
        (text(node, &["change"]), id)
    };
    let told: Vec<_> = changes.iter().map(change).collect();
    let distinct: Changes = told.iter().cloned().collect();
    assert_eq!(
        told.len(),
        distinct.len(),
        "an object is told twice: {told:#?}"
    );
    assert_eq!(answer.code, i32::from(!told.is_empty()), "{answer}");
    distinct
}

/// A repository that is edited commit by commit.
struct Edited<'a> {
    repository: GitRepository,
    clusters: &'a [&'a str],
    /// What the newest commit builds.
    objects: RefCell<Objects>,
}

impl<'a> Edited<'a> {
    fn new(repository: GitRepository, clusters: &'a [&'a str]) -> Self {
        let objects = RefCell::new(built(repository.path(), clusters));
        Self {
            repository,
            clusters,
            objects,
        }
    }

    /// Makes an edit, commits it, and compares both ways before and after; says how many objects it changed.
    fn check(&self, name: &str, edit: impl FnOnce(&GitRepository)) -> usize {
        let (repository, clusters) = (&self.repository, self.clusters);
        edit(repository);
        let after = built(repository.path(), clusters);
        let expected = brute_force(&self.objects.replace(after.clone()), &after);
        assert_eq!(told(repository, EDITED, clusters), expected, "{name}");
        repository.commit(name);
        assert_eq!(told(repository, COMMITTED, clusters), expected, "{name}");
        let stays = told(repository, EDITED, clusters);
        assert_eq!(stays, Changes::new(), "{name} is committed");
        expected.len()
    }
}

#[test]
fn ten_commits_of_the_example() {
    let repository = GitRepository::of(Path::new(HARBOR));
    let edited = Edited::new(repository, &["production", "staging"]);
    let check = |name: &str, edit: &dyn Fn(&GitRepository)| edited.check(name, edit);
    let bumped = check("image bump", &|repository| {
        repository.edit("apps/base/quay/deployment.yaml", "quay:2.3.0", "quay:2.4.0");
    });
    assert!(bumped > 0);
    check("a value of a release", &|repository| {
        repository.edit(
            "apps/base/beacon/values.yaml",
            "colour: white",
            "colour: red",
        );
    });
    check("a generated ConfigMap", &|repository| {
        repository.write("apps/base/quay/log.conf", "level = debug\n");
    });
    let moved = check("a move", &|repository| {
        repository.git(&["mv", "apps/base/quay", "apps/base/pier"]);
        for cluster in ["production", "staging"] {
            repository.edit(
                &format!("apps/{cluster}/kustomization.yaml"),
                "../base/quay",
                "../base/pier",
            );
        }
    });
    assert_eq!(moved, 0, "files that move change nothing");
    check("a deletion", &|repository| {
        repository.git(&["rm", "-q", "apps/base/pier/ingress.yaml"]);
        repository.edit(
            "apps/base/pier/kustomization.yaml",
            "  - ingress.yaml\n",
            "",
        );
    });
    check("a component", &|repository| {
        let budget = "components/lifeboat/budget.yaml";
        let text = repository.read(budget);
        repository.write(
            budget,
            &text
                .replace("minAvailable: 1", "minAvailable: 2")
                .replace("maxUnavailable: 1", "maxUnavailable: 2"),
        );
        repository.edit(
            budget,
            "metadata:\n",
            "metadata:\n  annotations: {reviewed: 'yes'}\n",
        );
    });
    check("a variable", &|repository| {
        repository.edit(
            "clusters/production/settings.yaml",
            "REPLICAS: \"3\"",
            "REPLICAS: \"5\"",
        );
    });
    check("a chart", &|repository| {
        repository.edit(
            "charts/beacon/templates/service.yaml",
            "kind: Service\nmetadata:\n",
            "kind: Service\nmetadata:\n  annotations: {lit: 'yes'}\n",
        );
    });
    check("labels of everything", &|repository| {
        repository.edit(
            "clusters/staging/apps.yaml",
            "harbor.example/cluster: staging",
            "harbor.example/cluster: test",
        );
    });
    let gone = check("a Kustomization goes", &|repository| {
        repository.git(&["rm", "-q", "clusters/staging/apps.yaml"]);
    });
    assert!(gone > 5, "with everything it made");
}

/// A cluster whose Kustomizations hang together in ways that no single file shows.
fn entangled() -> GitRepository {
    let repository = GitRepository::new();
    let kustomization = |name: &str, path: &str, more: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n  interval: 1h\n  path: {path}\n  prune: true\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n{more}"
        )
    };
    let config_map = |name: &str, entry: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: flux-system}}\ndata: {{{entry}}}\n"
        )
    };
    let root = kustomization("flux-system", "./clusters/main", "");
    repository.write("clusters/main/flux-system/sync.yaml", &root);
    let children = [
        kustomization("vars", "./vars", ""),
        kustomization(
            "painted",
            "./painted",
            "  postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}\n",
        ),
        kustomization("plain", "./plain", ""),
        kustomization("linked", "./linked", ""),
        kustomization("deep", "./deep", "  components: [../shared]\n"),
    ];
    repository.write("clusters/main/apps/apps.yaml", &children.join("---\n"));
    repository.write(
        "clusters/main/apps/kustomization.yaml",
        "resources: [apps.yaml]\npatches:\n- target: {kind: Kustomization}\n  path: labels.yaml\n",
    );
    repository.write(
        "clusters/main/apps/labels.yaml",
        "- op: add\n  path: /spec/commonMetadata\n  value: {labels: {team: red}}\n",
    );
    repository.write(
        "vars/kustomization.yaml",
        "configMapGenerator:\n- {name: settings, namespace: flux-system, envs: [vars.env]}\ngeneratorOptions: {disableNameSuffixHash: true}\n",
    );
    repository.write("vars/vars.env", "COLOUR=red\n");
    let painted = config_map("painted", "colour: '${COLOUR}'");
    repository.write("painted/map.yaml", &painted);
    repository.write("plain/map.yaml", &config_map("plain", "a: b"));
    repository.write("linked/map.yaml", &config_map("linked", "a: b"));
    std::os::unix::fs::symlink(
        "../plain/map.yaml",
        repository.path().join("linked/link.yaml"),
    )
    .expect("a link can be made");
    repository.write("deep/below/map.yaml", &config_map("deep", "a: b"));
    repository.write(
        "shared/kustomization.yaml",
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {colour: red}\n",
    );
    repository.commit("first");
    repository
}

#[test]
fn commits_that_reach_further_than_their_files() {
    let edited = Edited::new(entangled(), &["main"]);
    let check = |name: &str, edit: &dyn Fn(&GitRepository)| edited.check(name, edit);
    let told = check("a variable that is generated elsewhere", &|repository| {
        repository.write("vars/vars.env", "COLOUR=green\n");
    });
    assert_eq!(told, 2, "the data, and what it is put into");
    let told = check("a component beside", &|repository| {
        repository.edit("shared/kustomization.yaml", "red", "green");
    });
    assert_eq!(told, 1);
    let told = check("what a link leads to", &|repository| {
        repository.edit("plain/map.yaml", "a: b", "a: c");
    });
    assert_eq!(told, 1, "a link is no part of what Flux takes");
    check("a file becomes a link", &|repository| {
        let path = repository.path().join("linked/map.yaml");
        std::fs::remove_file(&path).expect("it is there");
        std::os::unix::fs::symlink("../plain/map.yaml", path).expect("a link can be made");
    });
    let told = check(
        "a file comes to a directory without a list",
        &|repository| {
            let text = repository.read("deep/below/map.yaml");
            repository.write(
                "deep/other/map.yaml",
                &text.replace("name: deep", "name: deeper"),
            );
        },
    );
    assert_eq!(told, 1);
    let told = check("a file moves to another Kustomization", &|repository| {
        repository.git(&["mv", "deep/other/map.yaml", "plain/deeper.yaml"]);
    });
    assert_eq!(told, 1, "it has other annotations there");
    let told = check("a parent patches all of its children", &|repository| {
        repository.edit("clusters/main/apps/labels.yaml", "red", "green");
    });
    assert!(told > 8, "{told}");
    let told = check("a Kustomization goes", &|repository| {
        let text = repository.read("clusters/main/apps/apps.yaml");
        let (left, _) = text.split_once("---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: deep").expect("it is the last");
        repository.write("clusters/main/apps/apps.yaml", left);
    });
    assert_eq!(told, 2, "it, and what it made");
}

#[test]
fn ten_commits_of_a_generated_repository() {
    let shared = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let generator = shared.join("tools/make-flux-repo.py");
    if !generator.exists() {
        eprintln!("skipped: {} is not there", generator.display());
        return;
    }
    let source = tempfile::tempdir().expect("a directory");
    let out = source.path().join("repository");
    let made = Command::new("python3")
        .arg(&generator)
        .arg(shared.join("corpus"))
        .arg(&out)
        .args(["--apps", "8", "--no-git"])
        .output()
        .expect("python3 is installed");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let edited = Edited::new(GitRepository::of(&out), &["main"]);
    let check = |name: &str, edit: &dyn Fn(&GitRepository)| edited.check(name, edit);
    let app = "apps/0000-app-template/app";
    let changed = check("a value", &|repository| {
        repository.edit(
            &format!("{app}/helmrelease.yaml"),
            "interval: 1h",
            "interval: 2h",
        );
    });
    assert_eq!(changed, 1);
    check("an image", &|repository| {
        repository.edit(
            "apps/0001-app-template/app/helmrelease.yaml",
            "tag: v1.5.4",
            "tag: v1.5.5",
        );
    });
    let component = check("a component of every application", &|repository| {
        repository.edit(
            "components/common/kustomization.yaml",
            "team: platform",
            "team: harbour",
        );
    });
    assert!(component >= 8);
    check("a generated ConfigMap", &|repository| {
        repository.write(&format!("{app}/config/settings.ini"), "[all]\nnew = yes\n");
    });
    check("a variable", &|repository| {
        repository.edit(
            "apps/0001-app-template/ks.yaml",
            "REPLICAS: '",
            "COLOUR: red\n      REPLICAS: '",
        );
    });
    check("another namespace", &|repository| {
        repository.edit(
            "apps/0000-app-template/ks.yaml",
            "targetNamespace: team-0",
            "targetNamespace: team-9",
        );
    });
    check("an application moves", &|repository| {
        repository.git(&["mv", "apps/0001-app-template", "apps/moved"]);
        repository.edit(
            "apps/moved/ks.yaml",
            "./apps/0001-app-template/app",
            "./apps/moved/app",
        );
        repository.edit(
            "apps/kustomization.yaml",
            "0001-app-template/ks.yaml",
            "moved/ks.yaml",
        );
    });
    check("a chart", &|repository| {
        let chart = "charts/app-template/Chart.yaml";
        let text = repository.read(chart);
        repository.write(chart, &format!("{text}\nkeywords: [changed]\n"));
    });
    check("common labels", &|repository| {
        repository.edit(
            "apps/0000-app-template/ks.yaml",
            "part-of: ",
            "part-of: new-",
        );
    });
    check("an application goes", &|repository| {
        repository.git(&["rm", "-rq", "apps/0002-app-template"]);
        repository.edit(
            "apps/kustomization.yaml",
            "- 0002-app-template/ks.yaml\n",
            "",
        );
    });
}
