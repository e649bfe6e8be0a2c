//! What kustomize reads.

use portolan_budget::{Budget, Limits, Stop};
use portolan_kustomize::{LoadRestrictor, Options, Reorder, build, to_yaml};
use portolan_vfs::Memory;

use crate::{Target, pieces, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "kustomize-resource",
        about: "the only resource of a kustomization that changes everything it can",
        run: resource,
        seeds: || {
            texts(&[
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: c, image: a}]}}}\n",
                "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}]\n---\nkind: Y\n",
                "apiVersion: v1\nkind: Service\nmetadata: {name: a, annotations: {config.kubernetes.io/local-config: 'true'}}\nspec: {selector: {l: y}}\n",
            ])
        },
    },
    Target {
        name: "kustomize-build",
        about: "a kustomization, a resource, a patch and a base's kustomization",
        run: kustomization,
        seeds: || {
            texts(&[
                "resources: [a.yaml, ../base]\npatches: [{path: p.yaml}]\nnamePrefix: x-\nconfigMapGenerator: [{name: c, literals: [a=b], files: [p.yaml]}]\nreplacements: [{source: {kind: ConfigMap, name: a, fieldPath: data.x}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.y], options: {create: true, delimiter: '-', index: 1}}]}]\n%%\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: a-b}\n%%\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: null, $patch: replace}\n%%\n{}\n",
                "resources: [a.yaml]\npatches:\n- patch: '[{\"op\":\"copy\",\"from\":\"/data\",\"path\":\"/data/c\"},{\"op\":\"test\",\"path\":\"/data/~1x\",\"value\":1},{\"op\":\"remove\",\"path\":\"/data/-\"}]'\n  target: {kind: Con.*, labelSelector: 'a in (b,c),!d'}\n%%\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: y}\n",
                "resources: [a.yaml]\ncomponents: [../base]\nvars: [{name: V, objref: {kind: ConfigMap, name: a, apiVersion: v1}, fieldref: {fieldpath: data.x}}]\ncommonLabels: {a: b}\nimages: [{name: i, digest: 'sha256:x'}]\nreplicas: [{name: a, count: -1}]\nsortOptions: {order: legacy, legacySortOptions: {orderFirst: [X]}}\n%%\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: $(V)}\n%%\n\n%%\nkind: Component\n",
            ])
        },
    },
];

const CHANGES: &str = "\
resources: [a.yaml]
namespace: there
namePrefix: p-
commonLabels: {l: x}
commonAnnotations: {a: x}
images: [{name: a, newTag: b}]
";

/// What a build may use, so that it cannot take long, however many of them a fuzzer tries.
fn budget() -> Budget {
    let limits = Limits {
        steps: 500_000,
        bytes: 32 << 20,
        ..Default::default()
    };
    Budget::new(limits, Stop::default())
}

fn resource(bytes: &[u8]) -> bool {
    let mut files = Memory::new();
    files.insert("/kustomization.yaml", CHANGES);
    files.insert("/a.yaml", bytes);
    let options = Options {
        budget: Some(&budget()),
        ..Options::default()
    };
    build("/".into(), &files, &options).is_ok_and(|set| to_yaml(&set).is_ok())
}

fn kustomization(bytes: &[u8]) -> bool {
    let Some(mut parts) = pieces(bytes) else {
        return false;
    };
    let mut files = Memory::new();
    for path in [
        "/k/kustomization.yaml",
        "/k/a.yaml",
        "/k/p.yaml",
        "/base/kustomization.yaml",
    ] {
        files.insert(path, parts.next().unwrap_or_default());
    }
    let options = Options {
        load_restrictor: LoadRestrictor::None,
        reorder: Reorder::None,
        budget: Some(&budget()),
        ..Options::default()
    };
    build("/k".into(), &files, &options).is_ok_and(|set| to_yaml(&set).is_ok())
}
