//! Values that no template reads: found in small charts, and never wrong on the charts of the corpus.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and says why"
)]

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::Utf8Path;
use portolan_helm::values::{Overrides, Tree};
use portolan_helm::{
    Chart, ChartFile, Package, Profile, Release, Rendered, TemplateInput, never_read, template,
};
use portolan_vfs::Disk;
use serde_json::Value as Json;

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";

fn chart(files: &[(&str, &str)]) -> Chart {
    let mut all: BTreeMap<&str, &str> = [("Chart.yaml", CHART)].into();
    all.extend(files.iter().copied());
    let files = all.into_iter();
    let files = files.map(|(name, text)| ChartFile::new(name.to_owned(), text.as_bytes()));
    Chart::new(Package::from_files(files.collect()).unwrap())
}

fn paths(chart: &Chart, values: &Tree) -> Vec<String> {
    let found = never_read(chart, values, Profile::Helm3).unwrap();
    found.iter().map(|one| one.path.join(".")).collect()
}

/// The values of `given` that a chart never reads which has this template, and `known: {a: 1}` as its only default.
fn unread(text: &str, given: &str) -> Vec<String> {
    let chart = chart(&[
        ("values.yaml", "known: {a: 1}\n"),
        ("templates/t.yaml", text),
    ]);
    paths(&chart, &Tree::read_table(given.as_bytes()).unwrap())
}

#[test]
fn a_value_that_no_template_names_is_never_read() {
    let text = "a: {{ .Values.image.tag }}\nb: {{ $.Values.known.a }}\n";
    assert_eq!(
        unread(
            text,
            "image: {tag: 1, tga: 2}\nimagee: {tag: 1}\nknown: {a: 2, b: {c: 1}}\n"
        ),
        ["image.tga", "imagee", "known.b"]
    );
}

#[test]
fn a_value_is_read_in_branches_that_are_not_taken() {
    let text = "{{ if .Values.use }}{{ with .Values.x }}a: {{ .k }}{{ else }}{{ $.Values.z }}{{ end }}{{ end }}";
    assert_eq!(unread(text, "use: false\nx: {k: 1}\nz: 2\n"), [""; 0]);
}

/// Whatever takes a value whole may read everything below it.
#[test]
fn everything_below_a_value_that_is_used_whole_is_read() {
    for text in [
        "{{ toYaml .Values.x }}",
        "{{ .Values.x }}",
        "{{ .Values | toYaml }}",
        "{{ range $k, $v := .Values.x }}{{ $k }}{{ end }}",
        "{{ $x := .Values.x }}{{ range $x }}{{ . }}{{ end }}",
        r#"{{ index .Values "x" "k" | quote }}"#,
        r#"{{ $key := "x" }}{{ (index .Values $key).k }}"#,
        "{{ index .Values .Release.Name }}",
        r#"{{ get .Values "x" | toJson }}"#,
        r#"{{ dig "x" "k" "none" (.Values | merge (dict)) }}"#,
        r#"{{ dig "x" "k" "none" .Values.AsMap }}"#,
        r#"{{ if hasKey .Values.x "k" }}a: b{{ end }}"#,
        r"{{ tpl .Values.x.k . }}",
        r#"{{ define "t" }}{{ .k }}{{ end }}{{ include "t" .Values.x }}"#,
        r#"{{ define "t" }}{{ toYaml . }}{{ end }}{{ template "t" .Values.x }}"#,
        r#"{{ define "t" }}{{ .root.Values.x.k }}{{ end }}{{ include "t" (dict "root" $) }}"#,
        r#"{{ define "t" }}{{ (index . 0).Values.x.k }}{{ end }}{{ include "t" (list $ "a") }}"#,
        r#"{{ define "t" }}{{ .Values.x.k }}{{ end }}{{ include "t" (merge (dict "a" "b") .) }}"#,
        r#"{{ define "t.a" }}{{ .Values.x.k }}{{ end }}{{ include (printf "t.%s" .Release.Name) . }}"#,
        r#"{{ $d := dict }}{{ $_ := set $d "d" .Values.x }}{{ $d.d.k }}"#,
        r#"{{ $d := dict }}{{ $_ := set $d "k" $ }}{{ $d.k.Values.x.k }}"#,
        r#"{{ $_ := set .Values "z" .Values.x }}{{ .Values.z.k }}"#,
        r"{{ $l := list .Values.x }}{{ range $l }}{{ .k }}{{ end }}",
        r"{{ $l := list }}{{ $l = append $l .Values.x }}{{ (first $l).k }}",
        "{{ $x := dict }}{{ range until 2 }}{{ $x.k }}{{ $x = $.Values.x }}{{ end }}",
        "{{ $x := dict }}{{ if .Values.known }}{{ $x = .Values.x }}{{ end }}{{ $x.k }}",
        r"{{ with (.Values.none | default .Values.x) }}{{ .k }}{{ end }}",
        r"{{ (and .Values.known .Values.x).k }}{{ (or .Values.none .Values.x).k }}",
        r"{{ (ternary .Values.x .Values.known true).k }}",
        r"{{ mergeOverwrite .Values.known .Values.x | toYaml }}",
        r"{{ $_ := mergeOverwrite .Values.known .Values.x }}{{ .Values.known.k }}",
        r#"{{ tpl "{{ .Values.x.k }}" . }}"#,
        r#"{{ $t := printf "{{ .Values.x.%s }}" "k" }}{{ tpl $t . }}"#,
        r#"{{ tpl (cat .Values.known.a "{{ .Values.x.k }}") . }}"#,
        r"{{ .Values.x.k | upper }}",
        r#"{{ define "t" }}{{ if .more }}{{ include "t" (dict "more" false "v" .v.k) }}{{ end }}{{ .v }}{{ end }}{{ include "t" (dict "more" true "v" .Values.x) }}"#,
        "{{ .Subcharts }}",
    ] {
        assert_eq!(unread(text, "x: {k: text}\n"), [""; 0], "{text}");
    }
}

#[test]
fn what_is_only_asked_to_be_there_may_be_anything() {
    assert_eq!(
        unread("{{ if .Values.x }}a: b{{ end }}", "x: {k: 1}\n"),
        [""; 0]
    );
    let text = "{{ if .Values.known }}a: b{{ end }}";
    assert_eq!(
        unread(text, "known: {k: 1}\n"),
        ["known.k"],
        "it is never empty"
    );
}

#[test]
fn a_text_in_values_that_the_chart_executes_reads_what_it_names() {
    let text = "{{ tpl (toYaml .Values.x) . }}";
    let given = "x: {k: '{{ .Values.host }}', z: '{{ $labels.job }}'}\nhost: h\nhots: h\n";
    assert_eq!(unread(text, given), ["hots"]);
    let plain = "{{ toYaml .Values.x }}";
    assert_eq!(
        unread(plain, given),
        ["host", "hots"],
        "it is printed, not executed"
    );
    let part = "x: {k: '{{ if .Values.host }}', z: '{{ end }}'}\nhost: h\n";
    assert_eq!(unread(text, part), [""; 0], "a part of a template");
}

#[test]
fn a_file_that_the_chart_executes_reads_what_it_names() {
    let chart = chart(&[
        ("config/a.conf", "{{ .Values.a }}"),
        ("README.md", "{{ .Values.b }}"),
        (
            "templates/t.yaml",
            "{{ tpl (.Files.Get \"config/a.conf\") . }}",
        ),
    ]);
    assert_eq!(
        paths(&chart, &Tree::read_table(b"{a: 1, b: 1}").unwrap()),
        ["b"]
    );
}

#[test]
fn keys_that_the_chart_declares_or_its_schema_names_are_not_told() {
    let chart = chart(&[
        ("values.yaml", "unused: {}\nimage: {pullPolicy: Always}\n"),
        ("values.schema.json", r#"{"properties": {"named": {}}}"#),
        ("templates/t.yaml", "a: {{ .Values.image.tag }}\n"),
    ]);
    let given =
        "unused: {a: 1}\nimage: {pullPolicy: Never}\nnamed: 1\nx-anchors: 1\n_a: 1\nother: 1\n";
    assert_eq!(
        paths(&chart, &Tree::read_table(given.as_bytes()).unwrap()),
        ["other"]
    );
}

#[test]
fn values_of_charts_below_are_held_against_their_own_templates() {
    let chart = chart(&[
        (
            "Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: db, version: 1.0.0, alias: store, condition: store.use, tags: [back], import-values: [{child: out, parent: in}]}\n- {name: lib, version: 1.0.0}\n- {name: spare, version: 1.0.0, condition: spare.use}\n",
        ),
        (
            "charts/db/Chart.yaml",
            "apiVersion: v2\nname: db\nversion: 1.0.0\n",
        ),
        (
            "charts/db/templates/t.yaml",
            "a: {{ .Values.size }}{{ .Values.global.zone }}\n",
        ),
        (
            "charts/lib/Chart.yaml",
            "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n",
        ),
        (
            "charts/lib/templates/_t.yaml",
            "{{ define \"l\" }}{{ .Values.shared }}{{ end }}\n",
        ),
        (
            "charts/spare/Chart.yaml",
            "apiVersion: v2\nname: spare\nversion: 1.0.0\n",
        ),
        ("values.yaml", "spare: {use: false}\n"),
        ("templates/t.yaml", "b: {{ include \"l\" . }}\n"),
    ]);
    let given = "store: {use: true, size: 1, sise: 1, out: {a: 1}, global: {b: 1}}\ndb: {size: 1}\nlib: {x: 1}\nspare: {x: 1}\nshared: 1\nsharde: 1\ntags: {back: true}\nglobal: {x: 1}\n";
    assert_eq!(
        paths(&chart, &Tree::read_table(given.as_bytes()).unwrap()),
        ["sharde", "store.sise"]
    );
}

#[test]
fn templates_that_never_come_to_an_end_read_everything() {
    let text = r#"{{ define "t" }}{{ include "t" (dict "a" . "b" (list .)) }}{{ end }}{{ include "t" . }}"#;
    assert_eq!(unread(text, "x: 1\n"), [""; 0]);
}

/// Takes a value away.
fn without(tree: &Tree, path: &[&str]) -> Tree {
    let Tree::Table(table) = tree else {
        return tree.clone();
    };
    let mut table = table.as_ref().clone();
    match path {
        [] => {}
        [last] => drop(table.remove(last)),
        [first, rest @ ..] => {
            if let Some(below) = table.get_mut(first) {
                *below = without(below, rest);
            }
        }
    }
    Tree::Table(table.into())
}

fn printed(rendered: &Rendered) -> (String, usize) {
    let manifests = rendered
        .manifests
        .iter()
        .map(|manifest| format!("{manifest:?}"));
    let hooks = rendered.hooks.iter().map(|hook| format!("{hook:?}"));
    (manifests.chain(hooks).collect(), rendered.crds.len())
}

/// What is wrong with the answer for a chart and its values: a value is named, and makes a difference.
fn judge(chart: &Chart, input: &TemplateInput, told: &AtomicUsize) -> Vec<String> {
    let found = never_read(chart, &input.values, Profile::Helm3).unwrap_or_default();
    if found.is_empty() {
        return Vec::new();
    }
    let Ok(before) = template(chart, input) else {
        return Vec::new();
    };
    told.fetch_add(found.len(), Ordering::Relaxed);
    let mut wrong = Vec::new();
    for one in found {
        let path: Vec<&str> = one.path.iter().map(portolan_yaml::Text::as_str).collect();
        let input = TemplateInput {
            values: without(&input.values, &path),
            budget: input.budget.renewed(),
            ..input.clone()
        };
        let after = template(chart, &input);
        if !after.is_ok_and(|after| printed(&after) == printed(&before)) {
            wrong.push(path.join("."));
        }
    }
    wrong
}

/// Every chart of the corpus with the values that people gave it, and once with its own defaults as if it declared none.
#[test]
fn no_value_is_named_that_makes_a_difference_in_the_corpus() {
    let Some(cases) = portolan_testbed::corpus("cases-helm.json") else {
        return;
    };
    let corpus = Utf8Path::from_path(cases.parent().unwrap()).unwrap();
    let cases: Vec<Json> = serde_json::from_slice(&fs::read(&cases).unwrap()).unwrap();
    let (next, told) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong = Mutex::new(Vec::new());
    let mut charts = HashSet::new();
    let cases = cases
        .iter()
        .map(|case| (charts.insert(case["chart"].as_str()), case));
    let cases: Vec<(bool, &Json)> = cases.collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((is_first, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for path in judge_case(corpus, case, *is_first, &told) {
                        wrong
                            .lock()
                            .unwrap()
                            .push(format!("{}: {path}", case["id"]));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(told.into_inner() > 100, "the corpus has many unread values");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn judge_case(corpus: &Utf8Path, case: &Json, is_first: bool, told: &AtomicUsize) -> Vec<String> {
    let disk = Disk::open(&corpus.join(case["chart"].as_str().unwrap())).unwrap();
    let Ok(package) = Package::load(&disk, "/".into()) else {
        return Vec::new();
    };
    let files = case["values"].as_array().into_iter().flatten();
    let files = files.filter_map(Json::as_str);
    let overrides = Overrides {
        files: files
            .map(|name| (name.to_owned(), fs::read(corpus.join(name)).unwrap()))
            .collect(),
        ..Overrides::default()
    };
    let Ok(values) = overrides.merge(&mut |_| Err(String::new())) else {
        return Vec::new();
    };
    let name = case["release"].as_str().unwrap();
    let input = TemplateInput {
        values,
        skip_schema_validation: true,
        ..TemplateInput::new(Release::new(name, "default"))
    };
    let mut wrong = judge(&Chart::new(package.clone()), &input, told);
    if !is_first {
        return wrong;
    }
    let mut bare = package;
    let input = TemplateInput {
        values: bare.values.overlay(&input.values),
        ..input
    };
    bare.values = Tree::empty_table();
    bare.schema = None;
    wrong.extend(judge(&Chart::new(bare), &input, told));
    wrong
}
