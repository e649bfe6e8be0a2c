//! What `test`, `diff`, `build` and `get` are asked for: the same words everywhere, and no silence when nothing fits.

mod portolan;

use portolan::repository::{HARBOR, kustomization, repository};
use portolan::{Answer, portolan_in};
use tempfile::TempDir;

/// Runs `portolan` on the example's production cluster.
fn harbor(args: &[&str]) -> Answer {
    portolan_in(HARBOR, &[args, &["--path", "clusters/production"]].concat())
}

/// Two Kustomizations, a definition with a short name and objects of its kind.
fn beacons() -> TempDir {
    repository(&[
        ("cluster/apps.yaml", &kustomization("apps", "./apps")),
        ("cluster/kinds.yaml", &kustomization("kinds", "./kinds")),
        (
            "kinds/beacon.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: beacons.example.org}\nspec:\n  group: example.org\n  scope: Namespaced\n  names: {kind: Beacon, plural: beacons, singular: beacon, shortNames: [bcn]}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]\n",
        ),
        (
            "apps/objects.yaml",
            "apiVersion: example.org/v1\nkind: Beacon\nmetadata: {name: north, namespace: coast}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: coast, labels: {app: north}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart, namespace: coast, labels: {app: north}}\n",
        ),
    ])
}

fn in_beacons(args: &[&str]) -> Answer {
    let dir = beacons();
    let path = dir.path().to_str().expect("a path of letters");
    portolan_in(
        path,
        &[args, &["--path", "cluster", "--repo", "."]].concat(),
    )
}

/// The names of what `get … -o name` or the documents of `build` hold.
fn names(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.code, 0, "{answer}");
    let lines = answer.stdout.lines();
    let names = lines.filter_map(|line| {
        let name = line
            .strip_prefix("  name: ")
            .or_else(|| line.rsplit_once('/').map(|(_, it)| it));
        name.filter(|_| line.starts_with("  name: ") || !line.contains(' '))
    });
    names.map(str::to_owned).collect()
}

#[test]
fn kinds_go_by_every_word_that_kubectl_knows() {
    for word in ["deploy", "Deployment", "deployments", "deployments.apps"] {
        let listed = harbor(&["get", word, "-o", "name"]);
        assert_eq!(names(&listed), ["quay", "beacon"], "{word}: {listed}");
        let filtered = harbor(&["get", "objects", "--only-kinds", word, "-o", "name"]);
        assert_eq!(names(&filtered), ["quay", "beacon"], "{word}");
        let built = harbor(&["build", "--only-kinds", word, "--no-owner-labels"]);
        assert!(
            built.stdout.matches("kind: Deployment").count() == 2,
            "{built}"
        );
        assert!(!built.stdout.contains("kind: Service\n"), "{built}");
    }
}

#[test]
fn short_names_of_the_repositorys_own_definitions_are_known() {
    for args in [
        &["get", "bcn", "-o", "name"][..],
        &["get", "bcn/north", "-o", "name"],
        &["get", "objects", "--only-kinds", "bcn", "-o", "name"],
    ] {
        assert_eq!(names(&in_beacons(args)), ["north"], "{args:?}");
    }
    for args in [
        &["build", "--only-kinds", "bcn"][..],
        &["build", "bcn/north"],
        &["build", "--skip-kinds", "cm,secrets,ks,crd"],
    ] {
        assert_eq!(names(&in_beacons(args)), ["north"], "{args:?}");
    }
}

#[test]
fn an_object_or_owner_is_named_with_its_kind_everywhere() {
    let built = harbor(&["build", "hr/beacon", "--only-kinds", "svc"]);
    assert_eq!(names(&built), ["beacon"], "{built}");
    let built = harbor(&["build", "deploy/quay", "--no-owner-labels"]);
    assert_eq!(built.stdout.matches("\nkind: ").count(), 1, "{built}");
    let one = harbor(&["get", "Deployment/quay/quay", "-o", "name"]);
    assert_eq!(one.stdout, "deployment.apps/quay\n");
    let tested = harbor(&["test", "hr/beacon"]);
    insta::assert_snapshot!(tested, @r"
    exit 0
    --- stdout
    testing production for Kubernetes 1.36 (default), Flux 2.9 (default)

    5 passed, 0 failed
    ");
    let explained = harbor(&["explain", "deployments/beacon/beacon.spec.replicas"]);
    assert_eq!(explained.code, 0, "{explained}");
}

#[test]
fn secrets_and_definitions_are_skipped_in_every_command() {
    let built = in_beacons(&[
        "build",
        "ks",
        "apps",
        "kinds",
        "--skip-secrets",
        "--skip-crds",
    ]);
    assert_eq!(names(&built), ["north", "chart"], "{built}");
    let listed = in_beacons(&[
        "get",
        "objects",
        "--skip-secrets",
        "--skip-crds",
        "-o",
        "name",
        "-n",
        "coast",
    ]);
    assert_eq!(names(&listed), ["north", "chart"], "{listed}");
    let tested = in_beacons(&["test", "ks", "apps", "--skip-secrets", "-o", "junit"]);
    assert!(!tested.stdout.contains("Secret"), "{tested}");
    assert!(tested.stdout.contains("ConfigMap"), "{tested}");
}

/// Every selection that fits nothing, with the answer's first two lines.
#[test]
fn what_fits_nothing_is_told_with_the_nearest_and_fails() {
    let mut told = String::new();
    for args in [
        &["get", "hr", "-n", "flux-sytem"][..],
        &["get", "objects", "-n", "quya"],
        &["get", "deploymnets"],
        &["get", "deploy/quya"],
        &["get", "objects", "-l", "app.kubernetes.io/name=becon"],
        &["get", "objects", "-l", "app.kubernetes.io/nmae=beacon"],
        &["get", "objects", "--only-kinds", "sts"],
        &["get", "images", "qay"],
        &["get", "charts", "becon"],
        &["get", "sources", "flux"],
        &["get", "hr", "becon", "--tree"],
        &["build", "-n", "flux-sytem"],
        &["build", "-n", "quay"],
        &["build", "ks", "-l", "app=nothing"],
        &["build", "--only-kinds", "Deploymnet"],
        &["build", "--skip-kinds", "Secrt"],
        &["build", "hr", "beacon", "-n", "flux-system"],
        &["build", "deploy/quya"],
        &["test", "hr", "becon"],
        &["test", "-n", "flux-sytem"],
        &["test", "--only-kinds", "sts"],
    ] {
        let answer = harbor(args);
        assert_eq!(answer.code, 2, "{args:?}: {answer}");
        assert_eq!(answer.stdout, "", "{args:?}");
        told += &[&args.join(" "), "\n", &answer.stderr, "\n"].concat();
    }
    insta::assert_snapshot!(told, @r"
    get hr -n flux-sytem
    error: no HelmRelease is in the namespace `flux-sytem`
    hint: did you mean `flux-system`?

    get objects -n quya
    error: no object is in the namespace `quya`
    hint: did you mean `quay`?

    get deploymnets
    error: no kind is called `deploymnets`
    hint: did you mean `Deployment`?

    get deploy/quya
    error: no object named `deploy/quya`
    hint: there is `quay` in quay; `portolan get deploy` lists all 2

    get objects -l app.kubernetes.io/name=becon
    error: no object has the labels `app.kubernetes.io/name=becon`
    hint: `app.kubernetes.io/name` is beacon, quay

    get objects -l app.kubernetes.io/nmae=beacon
    error: no object has the labels `app.kubernetes.io/nmae=beacon`
    hint: did you mean the label `app.kubernetes.io/name`?

    get objects --only-kinds sts
    error: no object is of the kind `sts`
    hint: there are ConfigMap, Deployment, GitRepository, HelmRelease, Ingress, Kustomization, Namespace, PodDisruptionBudget and 3 more

    get images qay
    error: no image named `qay`
    hint: there is `registry.example/quay`; `portolan get images` lists all 2

    get charts becon
    error: no chart named `becon`
    hint: there is only `beacon`

    get sources flux
    error: no source named `flux`
    hint: there is only `flux-system` in flux-system

    get hr becon --tree
    error: no Kustomization or HelmRelease named `becon`
    hint: there is `beacon` in beacon; `portolan get hr --tree` lists all 4

    build -n flux-sytem
    error: no Kustomization or HelmRelease is in the namespace `flux-sytem`
    hint: did you mean `flux-system`?

    build -n quay
    error: no Kustomization or HelmRelease is in the namespace `quay`
    hint: only objects of theirs do; `portolan get objects -n quay` lists them

    build ks -l app=nothing
    error: no object has the labels `app=nothing`
    hint: there are the labels app.kubernetes.io/name, harbor.example/cluster, harbor.example/region

    build --only-kinds Deploymnet
    error: no kind is called `Deploymnet`
    hint: did you mean `Deployment`?

    build --skip-kinds Secrt
    error: no kind is called `Secrt`
    hint: did you mean `Secret`?

    build hr beacon -n flux-system
    error: no HelmRelease is in the namespace `flux-system`
    hint: only objects of theirs do; `portolan get objects -n flux-system` lists them

    build deploy/quya
    error: no object named `deploy/quya`
    hint: there is `quay` in quay; `portolan get deploy` lists all 2

    test hr becon
    error: no HelmRelease named `becon`
    hint: there is only `beacon` in beacon

    test -n flux-sytem
    error: no Kustomization or HelmRelease is in the namespace `flux-sytem`
    hint: did you mean `flux-system`?

    test --only-kinds sts
    error: no object is of the kind `sts`
    hint: there are ConfigMap, Deployment, GitRepository, HelmRelease, Ingress, Kustomization, Namespace, PodDisruptionBudget and 3 more
    ");
}

#[test]
fn a_path_that_is_not_there_is_told_with_the_nearest() {
    let answer = portolan_in(HARBOR, &["build", "--path", "clusters/prodction"]);
    insta::assert_snapshot!(answer, @r"
    exit 2
    --- stderr
    error: there is no directory `clusters/prodction`
    hint: did you mean `clusters/production`?
    ");
    let answer = portolan_in(HARBOR, &["build", "--repo", "../harbour"]);
    insta::assert_snapshot!(answer, @r"
    exit 2
    --- stderr
    error: there is no directory `../harbour`
    hint: did you mean `../harbor`?
    ");
}

#[test]
fn a_comparison_of_what_fits_nothing_is_told_and_fails() {
    for (args, told) in [
        (&["hr", "becon"][..], "no HelmRelease named `becon`"),
        (&["deploy/quya"], "no object named `deploy/quya`"),
        (&["-n", "flux-sytem"], "did you mean `flux-system`?"),
        (&["ks", "apps", "-n", "quay"], "is in the namespace `quay`"),
        (&["-l", "app=nothing"], "has the labels `app=nothing`"),
        (
            &["--only-kinds", "Deploymnet"],
            "did you mean `Deployment`?",
        ),
        (&["--only-kinds", "sts"], "no object is of the kind `sts`"),
    ] {
        for form in ["unified", "json", "markdown"] {
            let all = [
                &["diff", "--path-orig", "clusters/production", "-o", form],
                args,
            ]
            .concat();
            let answer = harbor(&all);
            assert_eq!(answer.code, 2, "{args:?}: {answer}");
            assert_eq!(answer.stdout, "", "{args:?}");
            assert!(answer.stderr.contains(told), "{args:?}: {answer}");
        }
    }
}
