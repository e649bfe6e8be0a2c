//! Examples of mistakes and of what is right: what this crate says of them, and what a real API server says.

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use portolan_admission::refusals;
use portolan_object::{Object, Origin, Scope, scope};
use portolan_secret::hide_values;
use portolan_testbed::cluster::{Cluster, ClusterSetup};
use portolan_yaml::{Dialect, parse_one, to_json};

const REFUSED: &str = include_str!("examples/refused.yaml");
const ACCEPTED: &str = include_str!("examples/accepted.yaml");

/// The documents of a text, each with the word behind its mark `#!`.
fn examples(text: &'static str) -> impl Iterator<Item = (Object, Option<&'static str>)> {
    text.split("\n---\n").map(|document| {
        let node = parse_one(document, Dialect::Kustomize).expect("YAML");
        let mut lines = document.lines().filter(|line| !line.starts_with('#'));
        let fault = lines.find_map(|line| Some(line.split_once("#! ")?.1));
        let object = Object::new(node, Origin::default()).expect("an object");
        (object, fault)
    })
}

#[test]
fn each_mistake_is_found_once() {
    for (object, fault) in examples(REFUSED) {
        let found = refusals(&object);
        let faults: Vec<String> = found
            .iter()
            .map(|found| format!("{:?}", found.fault))
            .collect();
        assert_eq!(
            faults,
            [fault.expect("a mark")],
            "{}: {found:?}",
            object.id()
        );
    }
}

#[test]
fn what_is_right_passes() {
    for (object, _) in examples(ACCEPTED) {
        assert_eq!(refusals(&object), [], "{}", object.id());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_refuses_each_mistake_and_accepts_what_is_right() {
    let setup = ClusterSetup {
        controllers: &[],
        rbac: false,
    };
    let Some(cluster) = Cluster::start(setup).await else {
        return;
    };
    let client = cluster.client().await;
    for (object, fault) in examples(REFUSED) {
        let answer = refusal(&client, &object).await;
        assert!(answer.is_some(), "{} with {fault:?}", object.id());
    }
    for (object, _) in examples(ACCEPTED) {
        assert_eq!(refusal(&client, &object).await, None, "{}", object.id());
        // What is printed without its values must not be taken for the object.
        if let Some(hidden) = hide_values(object.node()) {
            let hidden = Object::new(hidden, Origin::default()).expect("an object");
            let answer = refusal(&client, &hidden).await;
            assert!(answer.is_some(), "{} with hidden values", object.id());
        }
    }
}

#[test]
fn there_is_a_secret_among_what_is_right() {
    assert!(examples(ACCEPTED).any(|(object, _)| hide_values(object.node()).is_some()));
}

/// What the server answers when it is asked to create an object without doing so: its message when it refuses.
async fn refusal(client: &kube::Client, object: &Object) -> Option<String> {
    let gvk = object.gvk();
    let gvk = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
    let resource = ApiResource::from_gvk(&gvk);
    let api: Api<DynamicObject> = match scope(object.gvk()) {
        Some(Scope::Cluster) => Api::all_with(client.clone(), &resource),
        _ => Api::default_namespaced_with(client.clone(), &resource),
    };
    let text = to_json(object.node()).expect("JSON");
    let body = serde_json::from_str(&text).expect("an object");
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let answer = api.create(&dry_run, &body).await;
    let refused = matches!(&answer, Err(kube::Error::Api(_)));
    assert!(refused || answer.is_ok(), "{answer:?}");
    answer.err().map(|error| error.to_string())
}
