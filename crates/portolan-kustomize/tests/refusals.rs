//! What must end in an error, quickly and with the path that did it, whatever the input.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and says why"
)]

use std::error::Error as _;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use portolan_kustomize::{Error, MAX_DEPTH, Options, build, to_yaml};
use portolan_vfs::{Disk, Memory};

/// The whole chain of an error, as a command would print it.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

fn refuse(files: &[(&str, &str)], root: &str) -> String {
    let files: Memory = files.iter().copied().collect();
    let start = Instant::now();
    let error = build(root.into(), &files, &Options::default()).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(5), "{error}");
    chain(&error)
}

const KUSTOMIZATION: &str = "/a/kustomization.yaml";

#[test]
fn a_base_that_includes_itself_is_named() {
    let message = refuse(&[(KUSTOMIZATION, "resources: [.]")], "/a");
    assert!(
        message.contains("cycle detected: candidate root `/a`"),
        "{message}"
    );
}

#[test]
fn bases_that_include_each_other_are_named() {
    let files = [
        (KUSTOMIZATION, "resources: [../b]"),
        ("/b/kustomization.yaml", "resources: [../a]"),
    ];
    let message = refuse(&files, "/a");
    assert!(
        message.contains("candidate root `/a` contains visited root `/a`"),
        "{message}"
    );
}

#[test]
fn components_that_include_each_other_are_named() {
    let component =
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncomponents: [../b]\n";
    let files = [
        (KUSTOMIZATION, "components: [../b]"),
        ("/b/kustomization.yaml", component),
    ];
    let message = refuse(&files, "/a");
    assert!(message.contains("candidate root `/b`"), "{message}");
}

#[test]
fn a_file_outside_of_the_directory_is_named() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n";
    let files = [
        (KUSTOMIZATION, "resources: [../s.yaml]"),
        ("/s.yaml", service),
    ];
    let message = refuse(&files, "/a");
    assert!(
        message.contains("`/s.yaml` is not in or below `/a`"),
        "{message}"
    );
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!(
        "apiVersion: v1\nkind: A\nmetadata: {{name: a}}\nspec: {}{}",
        "[".repeat(MAX_DEPTH + 1),
        "]".repeat(MAX_DEPTH + 1)
    );
    let message = refuse(
        &[(KUSTOMIZATION, "resources: [a.yaml]"), ("/a/a.yaml", &deep)],
        "/a",
    );
    assert!(message.contains("a.yaml"), "{message}");
    let patch = format!("patches: [{{patch: '{}'}}]", "[".repeat(100_000));
    refuse(&[(KUSTOMIZATION, &patch)], "/a");
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = String::from(
        "apiVersion: v1\nkind: A\nmetadata: {name: a}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n",
    );
    for level in 1..12 {
        let references = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.extend([format!("a{level}: &a{level} [{references}]\n")]);
    }
    let message = refuse(
        &[(KUSTOMIZATION, "resources: [a.yaml]"), ("/a/a.yaml", &bomb)],
        "/a",
    );
    assert!(message.contains("a.yaml"), "{message}");
}

#[test]
fn links_in_circles_and_out_of_the_tree_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(directory.path()).unwrap();
    std::fs::create_dir(root.join("tree")).unwrap();
    std::fs::write(
        root.join("secret.yaml"),
        "apiVersion: v1\nkind: A\nmetadata: {name: a}\n",
    )
    .unwrap();
    std::os::unix::fs::symlink("loop.yaml", root.join("tree/loop.yaml")).unwrap();
    std::os::unix::fs::symlink("../secret.yaml", root.join("tree/out.yaml")).unwrap();
    for name in ["loop.yaml", "out.yaml"] {
        let kustomization = format!("resources: [{name}]");
        std::fs::write(root.join("tree/kustomization.yaml"), kustomization).unwrap();
        let disk = Disk::open(&root.join("tree")).unwrap();
        let error = build("/".into(), &disk, &Options::default()).unwrap_err();
        assert!(chain(&error).contains(name), "{}", chain(&error));
    }
}

#[test]
fn programs_are_never_started() {
    let plugin = "apiVersion: example.com/v1\nkind: Maker\nmetadata:\n  name: m\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./x}\n";
    let files = [
        (KUSTOMIZATION, "generators: [m.yaml]"),
        ("/a/m.yaml", plugin),
    ];
    let message = refuse(&files, "/a");
    assert!(
        message.contains("only built-in plugins run here"),
        "{message}"
    );
}

#[test]
fn remote_bases_and_charts_need_somebody_to_fetch_them() {
    let message = refuse(
        &[(
            KUSTOMIZATION,
            "resources: ['github.com/org/repo//x?ref=v1']",
        )],
        "/a",
    );
    assert!(
        message.contains("github.com/org/repo//x?ref=v1"),
        "{message}"
    );
    let message = refuse(&[(KUSTOMIZATION, "helmCharts: [{name: x}]")], "/a");
    assert!(message.contains("--enable-helm"), "{message}");
}

#[test]
fn a_kustomization_can_be_given_instead_of_the_file() {
    let files: Memory = [(
        "/a/s.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n",
    )]
    .into_iter()
    .collect();
    let document = "resources: [s.yaml]\nnamespace: x\n";
    let document = portolan_yaml::parse_one(document, portolan_yaml::Dialect::Helm).unwrap();
    let options = Options {
        kustomization: Some(&document),
        ..Options::default()
    };
    let set = build("/a".into(), &files, &options).unwrap();
    assert_eq!(
        to_yaml(&set).unwrap(),
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\n  namespace: x\n"
    );
}

#[test]
fn resources_know_where_they_come_from() {
    let files: Memory = [
        (
            "/a/kustomization.yaml",
            "resources: [s.yaml]\nnamePrefix: p-\n",
        ),
        (
            "/a/s.yaml",
            "# one\n---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n",
        ),
    ]
    .into_iter()
    .collect();
    let set = build("/a".into(), &files, &Options::default()).unwrap();
    let resource = set.iter().next().unwrap();
    assert_eq!(
        (resource.origin.file.as_str(), resource.origin.at.line),
        ("/a/s.yaml", 3)
    );
    assert_eq!(
        resource.transformations[0].step.as_str(),
        "PrefixTransformer"
    );
    assert_eq!(resource.transformations[0].file, "/a/kustomization.yaml");
}

/// Core Namespaces come before those of other groups, which with these lists contradicts the order of all else.
#[test]
fn an_order_with_circles_is_no_trouble() {
    let types = ["v1", "apps.example/v1", "middle/v1", "zebra/v1"];
    let kinds = ["Namespace", "Foo", "Bar"];
    let objects: Vec<String> = (0..300_usize)
        .map(|number| {
            let version = types[number * 7 % types.len()];
            let kind = kinds[number * 5 % kinds.len()];
            format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: n{number}}}\n")
        })
        .collect();
    let objects = objects.join("---\n");
    let files: Memory = [
        (
            "/a/kustomization.yaml",
            "resources: [objects.yaml]\nsortOptions: {order: legacy, legacySortOptions: {orderFirst: [Foo], orderLast: [Foo]}}\n",
        ),
        ("/a/objects.yaml", objects.as_str()),
    ]
    .into_iter()
    .collect();
    let set = build("/a".into(), &files, &Options::default()).unwrap();
    let namespaces: Vec<bool> = set
        .iter()
        .map(portolan_kustomize::Resource::gvk)
        .filter(|gvk| gvk.kind.as_str() == "Namespace")
        .map(|gvk| gvk.group.is_empty())
        .collect();
    assert!(namespaces.is_sorted_by_key(|is_core| !is_core));
    assert_eq!(set.len(), 300);
}

#[test]
fn a_resource_that_is_there_twice_is_named() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    let files: Memory = [
        ("/a/kustomization.yaml", "resources: [one.yaml, two.yaml]\n"),
        ("/a/one.yaml", service),
        ("/a/two.yaml", service),
    ]
    .into_iter()
    .collect();
    let error = build("/a".into(), &files, &Options::default()).unwrap_err();
    let mut told = Vec::new();
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(error) = cause {
        told.push(error.to_string());
        cause = error.source();
    }
    assert_eq!(told[1], "merging resources from `two.yaml`");
    assert!(told[2].starts_with("may not add resource with an already registered id: "));
}

/// As a resource, a component, a patch, a file of a generator and a remote file: wherever an address can stand.
#[test]
fn no_error_shows_the_password_of_an_address() {
    let addresses = [
        "https://me:PLANTED@host/a.git//x?ref=v1",
        "https://me:PLANTED@host/file.yaml",
        "ssh://me:PLANTED@host/a.git",
        "git::https://PLANTED@host/a.git",
    ];
    for address in addresses {
        for text in [
            format!("resources: ['{address}']"),
            format!("components: ['{address}']"),
            format!("patches: [{{path: '{address}'}}]"),
            format!("configMapGenerator: [{{name: m, files: ['k={address}']}}]"),
            format!("crds: ['{address}']"),
            format!("configurations: ['{address}']"),
            format!("generators: ['{address}']"),
            format!("transformers: ['{address}']"),
            format!("openapi: {{path: '{address}'}}"),
            format!("replacements: [{{path: '{address}'}}]"),
        ] {
            let message = refuse(&[(KUSTOMIZATION, &text)], "/a");
            assert!(!message.contains("PLANTED"), "{text}: {message}");
        }
    }
}
