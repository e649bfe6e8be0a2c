//! What Helm reads: archives, `--set`, records of releases, indexes, values schemas.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan_budget::{Budget, Limits, Stop};
use portolan_helm::values::{SetKind, Tree, set};
use portolan_helm::{Chart, Package, Release, RepoIndex, TemplateInput, lock, storage, template};

use crate::packed::{gzip, tar};
use crate::{Target, pieces, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "helm-archive",
        about: "a chart's archive, packed or not, rendered if it loads",
        run: archive,
        seeds: || {
            let chart = "apiVersion: v2\nname: a\nversion: 0.1.0\ndependencies: [{name: b, version: '>0', condition: b.on}]\n";
            vec![
                tar(&[
                    ("a/Chart.yaml", chart),
                    ("a/values.yaml", "b: {on: true}\nx: [1]\n"),
                    (
                        "a/templates/c.yaml",
                        "kind: C\nx: {{ .Values.x | toJson }}\n",
                    ),
                    ("a/templates/_h.tpl", "{{ define \"n\" }}n{{ end }}"),
                    (
                        "a/charts/b/Chart.yaml",
                        "apiVersion: v1\nname: b\nversion: 1.0.0\n",
                    ),
                    ("a/charts/b/templates/d.yaml", "kind: {{ include \"n\" . }}"),
                    ("a/crds/e.yaml", "kind: CustomResourceDefinition\n"),
                    ("a/.helmignore", "*.bak\n!keep\n/dir/\n"),
                ]),
                tar(&[
                    ("a/Chart.yaml", chart),
                    ("a/Chart.lock", "digest: x\ndependencies: []\n"),
                ]),
            ]
        },
    },
    Target {
        name: "helm-set",
        about: "an assignment, as every flag of the `--set` family",
        run: assignments,
        seeds: || {
            texts(&[
                "a.b[2].c=1,d={x,y\\,z},e=null",
                "a[65537]=x",
                "a\\.b=\"q\",c=[],d={}",
                "a={\"b\":[1,2]}",
                "a[0][0][0]=1,a[0]=2",
            ])
        },
    },
    Target {
        name: "helm-record",
        about: "a stored release, packed or not: what is read can be written and read again",
        run: record,
        seeds: || {
            texts(&[
                "{\"name\":\"a\",\"namespace\":\"b\",\"version\":1,\"manifest\":\"---\\nkind: X\\n\",\"info\":{\"status\":\"deployed\"},\"chart\":{\"metadata\":{\"name\":\"c\",\"version\":\"1\"}}}",
                "{\"name\":\"a\",\"hooks\":[{\"manifest\":\"kind: Y\"}],\"config\":{\"x\":[1]}}",
            ])
        },
    },
    Target {
        name: "helm-index",
        about: "a chart repository's index, searched for every chart that it names",
        run: index,
        seeds: || {
            texts(&[
                "apiVersion: v1\nentries:\n  a:\n  - version: 1.0.0\n    urls: [a-1.0.0.tgz]\n    digest: abc\n  - version: 1.1.0-rc.1\n    urls: [https://example.com/a.tgz]\n",
                "{\"apiVersion\":\"v1\",\"entries\":{\"b\":[{\"name\":\"b\",\"version\":\"v2\",\"urls\":[]}]}}",
            ])
        },
    },
    Target {
        name: "helm-chart",
        about: "`Chart.yaml`, `Chart.lock`, `values.yaml`, `values.schema.json` and a template",
        run: chart,
        seeds: || {
            texts(&[
                "apiVersion: v2\nname: a\nversion: 0.1.0\n%%\n\n%%\nx: 1\n%%\n{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"integer\"}}}\n%%\nkind: A\nx: {{ .Values.x }}\n",
                "apiVersion: v2\nname: a\nversion: 0.1.0\ndependencies: [{name: b, version: 1.x, repository: 'https://example.com', alias: c, import-values: [d]}]\n%%\ndependencies: [{name: b, version: 1.2.3, repository: 'https://example.com'}]\ndigest: sha256:0\n%%\nx: 1\n%%\n{\"properties\":{\"x\":{\"type\":\"integer\"}}}\n%%\na: {{ .Values.x }}\n---\n# Source\nkind: B\nmetadata: {annotations: {helm.sh/hook: pre-install}}\n",
                "name: a\nversion: 1\n%%\n\n%%\n{}\n%%\n{\"allOf\":[{\"$ref\":\"#/$defs/a\"}],\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"}]}}}\n%%\n",
                "name: a\nversion: 1.0.0\n%%\n\n%%\na: {b: [1, 2]}\n%%\n{\"type\":\"object\",\"patternProperties\":{\"^(a+)+$\":{\"uniqueItems\":true,\"minItems\":1e400}},\"if\":{\"not\":{}},\"$schema\":\"https://json-schema.org/draft/2020-12/schema\"}\n%%\n{{ tpl .Chart.Name . }}",
            ])
        },
    },
];

/// A render that cannot take long, however many of them a fuzzer tries.
fn render(package: Package) -> bool {
    let mut input = TemplateInput::new(Release::new("fuzz", "default"));
    let limits = Limits {
        steps: 500_000,
        bytes: 32 << 20,
        ..Default::default()
    };
    input.budget = Budget::new(limits, Stop::default());
    template(&Chart::new(package), &input).is_ok()
}

fn archive(bytes: &[u8]) -> bool {
    let _ = Package::from_archive(bytes);
    Package::from_archive(&gzip(bytes)).is_ok_and(render)
}

fn assignments(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let kinds = [
        SetKind::Typed,
        SetKind::Strings,
        SetKind::Json,
        SetKind::Literal,
    ];
    let taken = kinds.map(|kind| set(&mut Tree::empty_table(), text, kind).is_ok());
    taken.contains(&true)
}

fn record(bytes: &[u8]) -> bool {
    let _ = storage::decode(bytes);
    let _ = storage::decode(STANDARD.encode(bytes).as_bytes());
    let Ok(release) = storage::decode(STANDARD.encode(gzip(bytes)).as_bytes()) else {
        return false;
    };
    let again = storage::encode(&release).expect("what was read can be written");
    let again = storage::decode(again.as_bytes()).expect("and read again");
    assert_eq!(again.name, release.name);
    true
}

fn index(bytes: &[u8]) -> bool {
    let Ok(index) = RepoIndex::parse(bytes) else {
        return false;
    };
    for name in index.names() {
        if let Ok(entry) = index.find(name, ">=0.0.0-0") {
            let _ = entry.url("https://example.com/charts");
        }
    }
    true
}

fn chart(bytes: &[u8]) -> bool {
    let Some(parts) = pieces(bytes) else {
        return false;
    };
    let names = [
        "a/Chart.yaml",
        "a/Chart.lock",
        "a/values.yaml",
        "a/values.schema.json",
        "a/templates/t.yaml",
    ];
    let files: Vec<(&str, &str)> = names.into_iter().zip(parts).collect();
    Package::from_archive(&gzip(&tar(&files))).is_ok_and(|package| {
        let _ = lock::build_plan(&package);
        render(package)
    })
}
