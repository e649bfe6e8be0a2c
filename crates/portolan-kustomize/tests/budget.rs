//! Overlays that are written to run for ever or to fill the memory end at a limit, with its name, place and option.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and says why"
)]

use std::error::Error as _;
use std::fmt::Write as _;

use portolan_budget::{Budget, Exceeded, Limits, Stop};
use portolan_kustomize::{Error, Options, build};
use portolan_vfs::Memory;

/// Small enough that a test without optimisation reaches them at once.
const LIMITS: Limits = Limits {
    steps: 2_000_000,
    bytes: 32 << 20,
    depth: 1_000,
    time: std::time::Duration::from_mins(1),
};

fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}

fn run(files: &[(String, String)]) -> Result<usize, Error> {
    let files: Memory = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let budget = Budget::new(LIMITS, Stop::default());
    let options = Options {
        budget: Some(&budget),
        ..Options::default()
    };
    build("/a".into(), &files, &options).map(|set| set.len())
}

/// Builds `/a` and expects a limit of the budget, told with these words.
fn exceeds(files: &[(String, String)], words: &[&str]) {
    let error = run(files).unwrap_err();
    let message = chain(&error);
    assert!(error.is_exceeded(), "{message}");
    assert!(message.contains("`--limit "), "{message}");
    for word in words {
        assert!(message.contains(word), "{word}: {message}");
    }
}

fn file(path: &str, text: impl Into<String>) -> (String, String) {
    (path.to_owned(), text.into())
}

const CONFIG_MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: x}\nmore: {b: y}\n";

fn overlay(kustomization: impl Into<String>) -> Vec<(String, String)> {
    vec![
        file("/a/kustomization.yaml", kustomization),
        file("/a/m.yaml", CONFIG_MAP),
    ]
}

fn repeated(times: usize, entry: impl Fn(usize) -> String) -> String {
    (0..times).map(entry).collect()
}

#[test]
fn a_json_patch_that_copies_a_map_into_itself_is_stopped() {
    let operations = repeated(40, |number| {
        format!("    - {{op: copy, from: /data, path: /data/c{number}}}\n")
    });
    let text = format!(
        "resources: [m.yaml]\npatches:\n- target: {{kind: ConfigMap}}\n  patch: |-\n{operations}"
    );
    let words = [
        "running PatchTransformer of `/a/kustomization.yaml`",
        "cannot patch",
        "ConfigMap",
    ];
    exceeds(&overlay(text), &words);
    let words = ["running PatchJson6902Transformer"];
    let text = format!(
        "resources: [m.yaml]\npatchesJson6902:\n- target: {{version: v1, kind: ConfigMap, name: m}}\n  patch: |-\n{operations}"
    );
    exceeds(&overlay(text), &words);
}

/// Every copy takes the place of the one before: nothing doubles, but the tree gets one level deeper.
#[test]
fn a_json_patch_cannot_nest_without_end() {
    let operations = repeated(3_000, |_| {
        "    - {op: copy, from: /data, path: /data/c}\n".to_owned()
    });
    let text = format!(
        "resources: [m.yaml]\npatches:\n- target: {{kind: ConfigMap}}\n  patch: |-\n{operations}"
    );
    let message = chain(&run(&overlay(text)).unwrap_err());
    assert!(message.contains("nested too deeply"), "{message}");
}

#[test]
fn replacements_of_a_map_into_itself_are_stopped() {
    let entries = repeated(40, |number| {
        format!(
            "- source: {{kind: ConfigMap, name: m, fieldPath: data}}\n  targets:\n  - select: {{kind: ConfigMap}}\n    fieldPaths: [data.c{number}]\n    options: {{create: true}}\n"
        )
    });
    let text = format!("resources: [m.yaml]\nreplacements:\n{entries}");
    let words = ["running ReplacementTransformer", "replacing `data.c"];
    exceeds(&overlay(text), &words);
}

#[test]
fn a_text_that_is_spliced_into_itself_is_stopped() {
    let entries = repeated(60, |_| {
        "- source: {kind: ConfigMap, name: m, fieldPath: data.a}\n  targets:\n  - select: {kind: ConfigMap}\n    fieldPaths: [data.a]\n    options: {delimiter: '/', index: -1}\n".to_owned()
    });
    exceeds(
        &overlay(format!("resources: [m.yaml]\nreplacements:\n{entries}")),
        &["bytes of memory", "ReplacementTransformer"],
    );
}

#[test]
fn a_path_cannot_create_fields_without_end() {
    let path = vec!["a"; 5_000].join(".");
    let text = format!(
        "resources: [m.yaml]\nreplacements:\n- sourceValue: x\n  targets:\n  - select: {{kind: ConfigMap}}\n    fieldPaths: [{path}]\n    options: {{create: true}}\n"
    );
    let message = chain(&run(&overlay(text)).unwrap_err());
    assert!(message.contains("nested too deeply"), "{message}");
    let path = vec!["a"; 5_000].join("/");
    let text = format!(
        "resources: [m.yaml]\nlabels:\n- pairs: {{x: z}}\n  fields: [{{path: {path}, create: true}}]\n"
    );
    let message = chain(&run(&overlay(text)).unwrap_err());
    assert!(message.contains("nested too deeply"), "{message}");
}

#[test]
fn a_variable_with_a_long_value_is_stopped_when_it_is_repeated() {
    let long = "x".repeat(100_000);
    let uses = "$(A)".repeat(2_000);
    let files = [
        file(
            "/a/kustomization.yaml",
            "resources: [m.yaml, p.yaml]\nvars:\n- name: A\n  objref: {apiVersion: v1, kind: ConfigMap, name: m}\n  fieldref: {fieldPath: data.a}\n",
        ),
        file(
            "/a/m.yaml",
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata: {{a: {long}}}\n"
            ),
        ),
        file(
            "/a/p.yaml",
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{containers: [{{name: c, args: ['{uses}']}}]}}\n"
            ),
        ),
    ];
    exceeds(&files, &["replacing `vars`", "bytes of memory"]);
}

/// Two overlays of each level name both of the next: sixty levels are more builds than anybody can wait for.
#[test]
fn overlays_that_double_with_every_level_are_stopped() {
    let mut files = vec![file("/a/kustomization.yaml", "resources: [../x0, ../y0]")];
    for level in 0..30 {
        let next = level + 1;
        for side in ["x", "y"] {
            files.push(file(
                &format!("/{side}{level}/kustomization.yaml"),
                format!("namePrefix: {side}-\nresources: [../x{next}, ../y{next}]\n"),
            ));
        }
    }
    for side in ["x30", "y30"] {
        files.push(file(
            &format!("/{side}/kustomization.yaml"),
            format!("namePrefix: {side}-\nresources: [../m.yaml]\n").replace("../m", "m"),
        ));
        files.push(file(&format!("/{side}/m.yaml"), CONFIG_MAP));
    }
    exceeds(&files, &["steps"]);
}

#[test]
fn components_that_double_with_every_level_are_stopped() {
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";
    let mut files = vec![file("/a/kustomization.yaml", "components: [../c0]")];
    for level in 0..40 {
        let next = level + 1;
        files.push(file(
            &format!("/c{level}/kustomization.yaml"),
            format!("{component}components: [../c{next}, ../c{next}]\n"),
        ));
    }
    files.push(file(
        "/c40/kustomization.yaml",
        format!("{component}namePrefix: x-\n"),
    ));
    exceeds(&files, &["steps", "accumulating component"]);
}

#[test]
fn many_patches_with_targets_over_many_resources_are_stopped() {
    let maps = repeated(2_000, |number| {
        format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{number}}}\n")
    });
    let patches = repeated(200, |number| {
        format!(
            "- target: {{kind: Config.*}}\n  patch: '[{{\"op\": \"add\", \"path\": \"/x{number}\", \"value\": 1}}]'\n"
        )
    });
    let files = [
        file(
            "/a/kustomization.yaml",
            format!("resources: [m.yaml]\npatches:\n{patches}"),
        ),
        file("/a/m.yaml", maps),
    ];
    exceeds(&files, &["running PatchTransformer"]);
}

#[test]
fn generators_that_read_one_large_file_again_and_again_are_stopped() {
    let sources = repeated(40, |number| format!("k{number}=large, "));
    let files = [
        file(
            "/a/kustomization.yaml",
            format!("configMapGenerator:\n- name: m\n  files: [{sources}]\n"),
        ),
        file("/a/large", "x".repeat(1 << 20)),
    ];
    exceeds(&files, &["cannot generate ConfigMap `m`", "/a/large"]);
}

#[test]
fn a_label_in_very_many_objects_is_stopped_before_it_is_printed() {
    let maps = repeated(300, |number| {
        format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{number}}}\n")
    });
    let long = "x".repeat(200_000);
    let files = [
        file(
            "/a/kustomization.yaml",
            format!("resources: [m.yaml]\ncommonAnnotations: {{a: {long}}}\n"),
        ),
        file("/a/m.yaml", maps),
    ];
    exceeds(&files, &["printing ConfigMap", "bytes of memory"]);
}

/// A bomb of aliases as a resource, a patch, a kustomization, a file of replacements and an `openapi` document.
#[test]
fn aliases_are_charged_wherever_yaml_is_read() {
    let mut bomb = "x: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..6 {
        let before = vec![format!("*a{}", level - 1); 10].join(", ");
        let _ = writeln!(bomb, "x{level}: &a{level} [{before}]");
    }
    let many = repeated(8, |number| {
        format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{number}}}\n{bomb}")
    });
    let object = |name: &str| file(&format!("/a/{name}"), many.clone());
    let mut resources = overlay("resources: [bomb.yaml]");
    resources.push(object("bomb.yaml"));
    exceeds(&resources, &["reading `/a/bomb.yaml`"]);
    let mut patches = overlay("resources: [m.yaml]\npatchesStrategicMerge: [bomb.yaml]");
    patches.push(object("bomb.yaml"));
    exceeds(&patches, &["reading `/a/bomb.yaml`"]);
    let mut plugin = overlay("resources: [m.yaml]\ntransformers: [bomb.yaml]");
    plugin.push(object("bomb.yaml"));
    exceeds(&plugin, &["reading `/a/bomb.yaml`"]);
    for field in [
        "openapi: {path: bomb.yaml}",
        "configurations: [bomb.yaml]",
        "crds: [bomb.yaml]",
    ] {
        let mut files = overlay(format!("resources: [m.yaml]\n{field}\n"));
        files.push(file("/a/bomb.yaml", wide_bomb()));
        exceeds(&files, &["bomb.yaml"]);
    }
    exceeds(&overlay(wide_bomb()), &["/a/kustomization.yaml"]);
}

/// As large as the library behind Helm lets aliases make a document.
fn wide_bomb() -> String {
    let long = vec!["x".repeat(60); 90_000].join(", ");
    let aliases = repeated(4, |number| format!("b{number}: *a\n"));
    format!("a: &a [{long}]\n{aliases}")
}

#[test]
fn definitions_that_refer_to_each_other_twice_are_stopped() {
    let mut definitions = String::new();
    for level in 0..60 {
        let next = level + 1;
        let _ = writeln!(
            definitions,
            "d{level}: {{schema: {{properties: {{kind: {{}}, apiVersion: {{}}, metadata: {{}}, a: {{$ref: d{next}}}, b: {{$ref: d{next}}}}}}}}}"
        );
    }
    let mut files = overlay("resources: [m.yaml]\ncrds: [crd.yaml]");
    files.push(file("/a/crd.yaml", definitions));
    exceeds(&files, &["steps"]);
}

#[test]
fn lists_merge_no_more_items_than_the_budget_allows() {
    let items = repeated(4_000, |number| {
        format!("  - {{name: c{number}, image: x}}\n")
    });
    let pod =
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  containers:\n{items}");
    let files = [
        file(
            "/a/kustomization.yaml",
            "resources: [p.yaml]\npatches: [{path: p.yaml}]\n",
        ),
        file("/a/p.yaml", pod),
    ];
    exceeds(&files, &["steps"]);
}

#[test]
fn a_build_that_is_no_longer_wanted_ends() {
    let files: Memory = [
        ("/a/kustomization.yaml", "resources: [m.yaml]"),
        ("/a/m.yaml", CONFIG_MAP),
    ]
    .into_iter()
    .collect();
    let stop = Stop::default();
    stop.set();
    let budget = Budget::new(LIMITS, stop);
    let options = Options {
        budget: Some(&budget),
        ..Options::default()
    };
    let error = build("/a".into(), &files, &options).unwrap_err();
    assert!(
        matches!(error, Error::Exceeded(Exceeded::Stopped)),
        "{error:?}"
    );
}

/// A thousand objects with labels, a prefix and images stay far below the limits that count by default.
#[test]
fn ordinary_builds_use_little_of_the_budget() {
    let objects = repeated(1_000, |number| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d{number}}}\nspec: {{template: {{spec: {{containers: [{{name: c, image: x}}]}}}}}}\n"
        )
    });
    let files = [
        file(
            "/a/kustomization.yaml",
            "resources: [m.yaml]\nnamePrefix: p-\ncommonLabels: {a: b}\nimages: [{name: x, newTag: '1'}]\n",
        ),
        file("/a/m.yaml", objects),
    ];
    assert_eq!(run(&files).unwrap(), 1_000);
}
