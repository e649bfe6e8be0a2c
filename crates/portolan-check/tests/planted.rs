//! Mistakes planted in valid manifests, one at a time, are found at the line they were planted in.
//!
//! Every line of the manifests that names a field of a type is broken in two ways: its key is mistyped, and its value
//! is of another type. Lines below free-form maps (labels, data) are left out by the marks in the manifests.

use portolan_check::{Settings, Subject, check};
use portolan_object::{Finding, KubeVersion, Object, Origin, Owner, OwnerKind, Place};
use portolan_schema::Catalogue;
use portolan_vfs::Memory;
use portolan_yaml::{Dialect, parse};

/// Valid manifests; `# free` marks lines whose key or value may be anything.
const MANIFESTS: &str = include_str!("planted.yaml");

const FILE: &str = "/apps/all.yaml";

/// Everything found in a text, with its line.
fn findings(text: &str) -> Vec<(&'static str, u32)> {
    let Ok(nodes) = parse(text, Dialect::Kustomize) else {
        return vec![("yaml", 0)];
    };
    let mut catalogue = Catalogue::of(KubeVersion::new(1, 34));
    let mut objects = Vec::new();
    for node in nodes {
        catalogue.define(&node);
        let origin = Origin::read(Place::new(FILE, node.at));
        objects.extend(Object::new(node, origin));
    }
    let subjects: Vec<Subject<'_>> = objects.iter().map(subject).collect();
    let files = Memory::from_iter([(FILE, text)]);
    let found = check(&subjects, &catalogue, &Settings::default(), &[], &files);
    found
        .iter()
        .map(|finding| (finding.rule.id, line(finding)))
        .collect()
}

fn subject(object: &Object) -> Subject<'_> {
    Subject {
        owner: Owner::new(OwnerKind::Kustomization, "flux-system", "apps"),
        id: object.id().clone(),
        object,
        lacks_variables: false,
    }
}

fn line(finding: &Finding) -> u32 {
    finding.place.as_ref().map_or(0, |place| place.at.line)
}

/// The whole text with one line replaced.
fn with_line(lines: &[&str], index: usize, line: &str) -> String {
    let mut lines = lines.to_vec();
    lines[index] = line;
    lines.join("\n") + "\n"
}

/// Lines that name a field of a type, by index.
fn typed_lines<'a>(lines: &[&'a str]) -> Vec<(usize, &'a str)> {
    let is_typed = |line: &str| {
        let identity = [
            "apiVersion:",
            "kind:",
            "metadata:",
            "  name:",
            "  namespace:",
        ];
        line.contains(':')
            && !line.contains("# free")
            && !identity.iter().any(|key| line.starts_with(key))
    };
    let numbered = lines.iter().copied().enumerate();
    numbered.filter(|(_, line)| is_typed(line)).collect()
}

#[test]
fn the_manifests_are_valid() {
    assert_eq!(findings(MANIFESTS), []);
}

#[test]
fn a_mistyped_key_is_found_at_its_line() {
    let lines: Vec<&str> = MANIFESTS.lines().collect();
    let typed = typed_lines(&lines);
    assert!(typed.len() >= 100, "{} lines", typed.len());
    for (index, line) in typed {
        let (key, value) = line.split_once(':').expect("it names a field");
        let broken = with_line(&lines, index, &format!("{key}X:{value}"));
        let expected = index as u32 + 1;
        let found = findings(&broken);
        assert!(
            found.contains(&("schema/unknown-field", expected)),
            "line {expected} `{line}`: {found:?}"
        );
    }
}

#[test]
fn a_value_of_the_wrong_type_is_found_at_its_line() {
    let lines: Vec<&str> = MANIFESTS.lines().collect();
    let mut planted = 0;
    for (index, line) in typed_lines(&lines) {
        let (key, value) = line.split_once(':').expect("it names a field");
        if value.trim().is_empty() {
            continue;
        }
        planted += 1;
        // No field of these manifests is a list of lists.
        let broken = with_line(&lines, index, &format!("{key}: [[wrong]]"));
        let found = findings(&broken);
        let expected = index as u32 + 1;
        let at_line = found
            .iter()
            .any(|(rule, line)| rule.starts_with("schema/") && *line == expected);
        assert!(at_line, "line {expected} `{line}`: {found:?}");
    }
    assert!(planted >= 70, "{planted} values");
}

#[test]
fn a_missing_field_is_found_where_it_belongs() {
    let found = findings(
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  ports:\n  - name: http\n",
    );
    assert_eq!(found, [("schema/missing-field", 6)]);
    let found = findings(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: web}\nspec:\n  schedule: '* * * * *'\n",
    );
    assert_eq!(found, [("schema/missing-field", 4)]);
}

#[test]
fn a_key_or_a_port_that_the_other_object_lacks_is_found_at_its_line() {
    let text = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {mode: fast}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  rules:
    - http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service:
                name: web
                port:
                  name: https
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  priorityClassName: pilot
  containers:
    - name: web
      image: web
      env:
        - name: MODE
          valueFrom:
            configMapKeyRef:
              name: settings
              key: mood
";
    let found = findings(text);
    // Nobody knows here whether the cluster has the priority class.
    assert_eq!(
        found,
        [
            ("reference/missing", 24),
            ("reference/missing", 39),
            ("reference/unknown", 30),
        ]
    );
}

#[test]
fn a_group_that_nothing_can_serve_is_found() {
    let found = findings("apiVersion: app/v1\nkind: Deployment\nmetadata: {name: web}\n");
    assert_eq!(found, [("schema/not-served", 1)]);
    let found = findings("apiVersion: harbor.example/v1\nkind: Ship\nmetadata: {name: web}\n");
    assert_eq!(found, []);
}

#[test]
fn two_owners_of_one_object_are_found() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: x}\n";
    let node = parse(text, Dialect::Kustomize).expect("YAML").remove(0);
    let object = Object::new(node, Origin::read(Place::line(FILE, 1))).expect("an object");
    let owners = [
        Owner::new(OwnerKind::Kustomization, "flux-system", "apps"),
        Owner::new(OwnerKind::Release, "x", "web"),
    ];
    let subjects = owners.map(|owner| Subject {
        owner,
        ..subject(&object)
    });
    let files = Memory::from_iter([(FILE, text)]);
    let catalogue = Catalogue::of(KubeVersion::new(1, 34));
    let found = check(&subjects, &catalogue, &Settings::default(), &[], &files);
    let messages: Vec<String> = found.iter().map(Finding::message).collect();
    assert_eq!(messages, ["Kustomization flux-system/apps brings it too"]);
}

#[test]
fn a_rule_that_cannot_be_judged_is_told_once_for_a_kind() {
    let definition = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ws.x.com}, \
        spec: {group: x.com, names: {kind: W, plural: ws}, scope: Namespaced, versions: [{name: v1, served: true, \
        storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, \
        x-kubernetes-validations: [{rule: 'lists.range(1000000000).size() > 0'}]}}}}}]}}";
    let mut catalogue = Catalogue::of(KubeVersion::new(1, 34));
    catalogue.define(&parse(definition, Dialect::Helm).expect("YAML").remove(0));
    let text = "{apiVersion: x.com/v1, kind: W, metadata: {name: w}, spec: {}}";
    let objects = [1, 2].map(|_| {
        let node = parse(text, Dialect::Kustomize).expect("YAML").remove(0);
        Object::new(node, Origin::read(Place::line(FILE, 1))).expect("an object")
    });
    let subjects: Vec<_> = objects.iter().map(subject).collect();
    let files = Memory::from_iter([(FILE, text)]);
    let found = check(&subjects, &catalogue, &Settings::default(), &[], &files);
    let ids: Vec<&str> = found.iter().map(|finding| finding.rule.id).collect();
    assert_eq!(ids, ["schema/not-judged"]);
}

/// The ids of what is wrong with objects that these owners bring, each from a file.
fn owned(objects: &[(OwnerKind, &str, &str)]) -> Vec<&'static str> {
    let made: Vec<(Owner, Object)> = objects
        .iter()
        .enumerate()
        .map(|(number, (kind, file, text))| {
            let node = parse(*text, Dialect::Kustomize).expect("YAML").remove(0);
            let object = Object::new(node, Origin::read(Place::line(*file, 1))).expect("an object");
            (Owner::new(*kind, "x", format!("o{number}")), object)
        })
        .collect();
    let subjects: Vec<Subject<'_>> = made
        .iter()
        .map(|(owner, object)| Subject {
            owner: owner.clone(),
            ..subject(object)
        })
        .collect();
    let catalogue = Catalogue::of(KubeVersion::new(1, 34));
    let files = Memory::from_iter([(FILE, "")]);
    let found = check(&subjects, &catalogue, &Settings::default(), &[], &files);
    found.iter().map(|finding| finding.rule.id).collect()
}

#[test]
fn definitions_of_a_charts_crds_directory_have_no_owner() {
    use OwnerKind::{Kustomization, Release};
    let text = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ws.x.com}, spec: \
        {group: x.com, scope: Cluster, names: {kind: W, plural: ws}, versions: [{name: v1, served: true, storage: true, \
        schema: {openAPIV3Schema: {type: object}}}]}}";
    let (crds, template) = ("/c/crds/w.yaml", "/c/templates/w.yaml");
    assert!(owned(&[(Release, crds, text), (Release, crds, text)]).is_empty());
    assert!(owned(&[(Release, template, text), (Release, crds, text)]).is_empty());
    let (remote, below) = (
        "chart c 1.0.0: crds/w.yaml",
        "chart c 1.0.0: charts/d/crds/more/w.yaml",
    );
    assert!(owned(&[(Release, remote, text), (Release, below, text)]).is_empty());
    let of_subchart = "chart c 1.0.0: charts/crds/templates/w.yaml";
    assert_eq!(
        owned(&[(Release, of_subchart, text), (Release, of_subchart, text)]),
        ["owner/duplicate"]
    );
    assert_eq!(
        owned(&[(Release, template, text), (Release, template, text)]),
        ["owner/duplicate"]
    );
    assert_eq!(
        owned(&[(Kustomization, crds, text), (Kustomization, crds, text)]),
        ["owner/duplicate"]
    );
}

#[test]
fn an_object_that_adds_fields_to_a_releases_own_is_no_second_owner() {
    use OwnerKind::{Kustomization, Release};
    let whole =
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: y}}, data: {k: v}}";
    let label = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {more: z}}}";
    let other = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: w}}";
    assert!(owned(&[(Release, FILE, whole), (Kustomization, FILE, label)]).is_empty());
    assert_eq!(
        owned(&[(Release, FILE, whole), (Kustomization, FILE, other)]),
        ["owner/duplicate"]
    );
    assert_eq!(
        owned(&[(Kustomization, FILE, whole), (Kustomization, FILE, label)]),
        ["owner/duplicate"]
    );
}

#[test]
fn references_that_a_cluster_can_follow_are_not_told() {
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader, namespace: shop}\nrules: []\n";
    let binding = |kind: &str, namespace: &str, name: &str| {
        format!(
            "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: b, namespace: {namespace}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {name}}}\nsubjects: []\n"
        )
    };
    let found = |text: String| findings(&text);
    assert_eq!(
        found(format!(
            "{role}{}",
            binding("ClusterRole", "shop", "reader")
        )),
        []
    );
    let builtin = binding(
        "Role",
        "kube-system",
        "extension-apiserver-authentication-reader",
    );
    assert_eq!(found(format!("{role}{builtin}")), []);
    let mistyped = found(format!(
        "{role}{}",
        binding("ClusterRole", "shop", "raeder")
    ));
    assert_eq!(mistyped, [("reference/missing", 9)]);
    let unknown = found(format!(
        "{role}{}",
        binding("ClusterRole", "shop", "of-an-operator")
    ));
    assert_eq!(unknown, [("reference/unknown", 9)]);
}
