//! How nodes come in, and what they may read and write.

use std::time::Duration;

use portolan_identity::{EnrolError, Enrolment, NodeKey};
use portolan_server::TimeSource as _;
use serde_json::{Value, json};

use super::bed::{Bed, ask, bed, is_enrolled};

fn refusal(result: Result<Enrolment, EnrolError>) -> (u16, String) {
    match result {
        Err(EnrolError::Refused { status, reason, .. }) => (status, reason),
        other => unreachable!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_enrols_as_many_nodes_as_it_says_and_the_same_key_gets_the_same_answer() {
    let bed = bed().await;
    let body = json!({"uses": 2, "labels": {"role": "web"}, "namePattern": "web-*", "life": "2h"});
    let (token, pin) = bed.join_token(body).await;
    let client = bed.client(&bed.first);
    let key = NodeKey::generate().expect("a key");
    let enrol = async |name: &str, key: &NodeKey| client.enrol(pin, Some(&token), name, key).await;
    assert_eq!(refusal(enrol("db-1", &key).await).0, 403);
    let first = is_enrolled(enrol("web-1", &key).await.expect("enrolled"));
    let again = is_enrolled(enrol("web-1", &key).await.expect("enrolled"));
    assert_eq!(first, again);
    assert_eq!(refusal(enrol("web-2", &key).await).0, 409);

    let node = bed
        .admin("GET", "/api/v1alpha/nodes/web-1", None)
        .await
        .body;
    assert_eq!(node["metadata"]["uuid"], first.node_uid.as_str());
    assert_eq!(node["metadata"]["labels"]["role"], "web");
    assert_eq!(node["status"]["epoch"], 1);
    let uri = format!("portolan://{}/node/{}", first.fleet, first.node_uid);
    let chain = portolan_identity::certificates_from_pem(&first.certificate).expect("a chain");
    let der = String::from_utf8_lossy(&chain[0]).into_owned();
    assert!(der.contains(&uri), "{uri}");

    enrol("web-2", &NodeKey::generate().expect("a key"))
        .await
        .expect("enrolled");
    let third = enrol("web-3", &NodeKey::generate().expect("a key")).await;
    assert_eq!(refusal(third), (401, "Unauthenticated".to_owned()));
    // The token is spent, and the answer of the first key still stands.
    assert_eq!(
        is_enrolled(enrol("web-1", &key).await.expect("enrolled")),
        first
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_another_key_has_waits_for_approval_and_gets_nothing_of_the_old_node() {
    let bed = bed().await;
    let (old, old_key) = bed.node("web-1").await;
    let (token, pin) = bed.join_token(json!({"uses": 5})).await;
    let client = bed.client(&bed.first);
    let key = NodeKey::generate().expect("a key");
    let enrol = async || client.enrol(pin, Some(&token), "web-1", &key).await;
    let pending = Enrolment::Pending {
        fingerprint: key.fingerprint(),
    };
    assert_eq!(enrol().await.expect("an answer"), pending);
    assert_eq!(enrol().await.expect("an answer"), pending);

    let waiting = bed.admin("GET", "/api/v1alpha/enrolments", None).await.body;
    assert_eq!(
        waiting["items"][0]["fingerprint"],
        key.fingerprint().to_string()
    );
    assert_eq!(waiting["items"].as_array().map(Vec::len), Some(1));
    let path = format!("/api/v1alpha/enrolments/{}/approve", key.fingerprint());
    let approved = bed.admin("POST", &path, None).await;
    assert_eq!(approved.status, 200, "{}", approved.body);
    assert_eq!(approved.body["certificate"], Value::Null);

    let new = is_enrolled(enrol().await.expect("an answer"));
    assert_ne!(new.node_uid, old.node_uid);
    let own = "/api/v1alpha/nodes/web-1";
    let by_old = ask(
        &bed.mutual(&old, &old_key),
        bed.first.port,
        "GET",
        own,
        None,
        None,
    )
    .await;
    assert_eq!(by_old.status, 401, "{}", by_old.body);
    let by_new = ask(
        &bed.mutual(&new, &key),
        bed.first.port,
        "GET",
        own,
        None,
        None,
    )
    .await;
    assert_eq!(by_new.status, 200, "{}", by_new.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_a_machine_waits_and_can_be_denied() {
    let bed = bed().await;
    let (_, pin) = bed.join_token(json!({})).await;
    let client = bed.client(&bed.first);
    let key = NodeKey::generate().expect("a key");
    let asked = client
        .enrol(pin, None, "lonely", &key)
        .await
        .expect("an answer");
    assert!(matches!(asked, Enrolment::Pending { .. }));
    let path = format!("/api/v1alpha/enrolments/{}", key.fingerprint());
    assert_eq!(bed.admin("DELETE", &path, None).await.status, 200);
    assert_eq!(bed.admin("DELETE", &path, None).await.status, 404);
    // A server whose authority has another key is not talked to.
    let other = NodeKey::generate().expect("a key").fingerprint();
    let refused = client.enrol(other, None, "lonely", &key).await;
    assert!(
        matches!(refused, Err(EnrolError::Unreachable { .. })),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_has_a_new_key_and_the_same_node() {
    let bed = bed().await;
    let (first, key) = bed.node("web-1").await;
    assert!(first.renew_at < bed.time.now() + Duration::from_hours(85));
    bed.time.advance(Duration::from_hours(84));
    let new_key = NodeKey::generate().expect("a key");
    let client = bed.client(&bed.first);
    let renewed = client.renew(&first, &key, &new_key).await.expect("renewed");
    assert_eq!(renewed.node_uid, first.node_uid);
    assert!(renewed.expires > first.expires);
    let config = bed.mutual(&renewed, &new_key);
    let own = ask(
        &config,
        bed.first.port,
        "GET",
        "/api/v1alpha/nodes/web-1",
        None,
        None,
    )
    .await;
    assert_eq!(own.status, 200, "{}", own.body);
    assert_eq!(
        own.body["status"]["keyDigest"],
        new_key.fingerprint().to_string()
    );
    // The old one still works until it ends, and not a second longer.
    bed.time.advance(Duration::from_hours(84));
    let config = bed.mutual(&first, &key);
    let own = ask(
        &config,
        bed.first.port,
        "GET",
        "/api/v1alpha/nodes/web-1",
        None,
        None,
    )
    .await;
    assert_eq!(own.status, 401, "{}", own.body);
}

/// One row for each thing that an agent asks for.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_reads_what_is_bound_to_its_node_and_writes_about_itself() {
    let bed = bed().await;
    let (web, web_key) = bed.node("web-1").await;
    bed.node("db-1").await;
    bind(&bed).await;
    let config = bed.mutual(&web, &web_key);
    let event = |node: &str| {
        json!({
            "apiVersion": "v1alpha", "kind": "Event", "metadata": {"name": format!("of-{node}")},
            "spec": {"type": "disk.full", "source": {"node": node}},
        })
    };
    // Triggers believe what servers tell of runs and nodes.
    let forged = |kind: &str| {
        json!({
            "apiVersion": "v1alpha", "kind": "Event", "metadata": {"name": "forged"}, "spec": {"type": kind},
        })
    };
    let forged = [forged("run.ended"), forged("node.down")];
    let rows: &[(&str, &str, Option<Value>, u16)] = &[
        (
            "POST",
            "namespaces/team/events",
            Some(forged[0].clone()),
            403,
        ),
        (
            "POST",
            "namespaces/team/events",
            Some(forged[1].clone()),
            403,
        ),
        ("GET", "nodes/web-1", None, 200),
        ("GET", "nodes/db-1", None, 403),
        ("GET", "nodes/nobody", None, 403),
        ("GET", "namespaces/team/secrets/web?reveal=true", None, 200),
        ("GET", "namespaces/team/secrets/db?reveal=true", None, 403),
        ("GET", "namespaces/team/secrets/db", None, 403),
        ("GET", "namespaces/team/secrets/db?history=true", None, 403),
        ("GET", "namespaces/team/secrets/nobody", None, 403),
        ("GET", "namespaces/other/secrets/web?reveal=true", None, 403),
        ("GET", "namespaces/team/variables/web", None, 200),
        ("GET", "namespaces/team/variables/db", None, 403),
        ("GET", "namespaces", None, 403),
        ("GET", "clusterroles", None, 403),
        ("GET", "status", None, 403),
        ("GET", "join-tokens", None, 403),
        ("POST", "auth/tokens", Some(json!({"user": "me"})), 403),
        ("POST", "nodes/db-1/revoke", None, 403),
        ("DELETE", "nodes/web-1", None, 403),
        (
            "PUT",
            "nodes/web-1/status",
            Some(json!({"state": "ready", "facts": {"cpus": 2}})),
            200,
        ),
        ("PUT", "nodes/web-1/status", Some(json!({"epoch": 7})), 400),
        (
            "PUT",
            "nodes/db-1/status",
            Some(json!({"state": "left"})),
            403,
        ),
        (
            "POST",
            "namespaces/system/events",
            Some(event("web-1")),
            201,
        ),
        ("POST", "namespaces/team/events", Some(event("web-1")), 201),
        ("POST", "namespaces/system/events", Some(event("db-1")), 403),
        ("POST", "namespaces/other/events", Some(event("web-1")), 403),
    ];
    for (method, path, body, expected) in rows {
        let address = format!("/api/v1alpha/{path}");
        let answer = ask(
            &config,
            bed.first.port,
            method,
            &address,
            None,
            body.clone(),
        )
        .await;
        assert_eq!(answer.status, *expected, "{method} {path}: {}", answer.body);
    }
    let names = |answer: Value| -> Vec<String> {
        let items = answer["items"].as_array().cloned().unwrap_or_default();
        let names = items
            .iter()
            .filter_map(|item| item["metadata"]["name"].as_str());
        names.map(str::to_owned).collect()
    };
    for (path, expected) in [
        ("nodes", vec!["web-1"]),
        ("namespaces/team/secrets", vec!["web"]),
        ("variables", vec!["all", "web"]),
        ("clustervariables", vec!["bound"]),
    ] {
        let address = format!("/api/v1alpha/{path}");
        let answer = ask(&config, bed.first.port, "GET", &address, None, None).await;
        assert_eq!(names(answer.body), expected, "{path}");
    }
    let node = bed
        .admin("GET", "/api/v1alpha/nodes/web-1", None)
        .await
        .body;
    assert_eq!(node["status"]["facts"]["cpus"], 2);
    assert_eq!(node["status"]["epoch"], 1);
}

/// Namespace `team` may target `web-1` and `db-1`; namespace `other` may target nothing.
async fn bind(bed: &Bed) {
    for namespace in ["team", "other"] {
        bed.create("namespaces", "Namespace", namespace, json!({}))
            .await;
    }
    bed.create(
        "nodegroups",
        "NodeGroup",
        "all",
        json!({"nodes": ["web-1", "db-1"]}),
    )
    .await;
    bed.create(
        "nodegroups",
        "NodeGroup",
        "web",
        json!({"nodes": ["web-1"]}),
    )
    .await;
    let grant = json!({"namespaces": ["team"], "groups": ["all"]});
    bed.create("nodegrants", "NodeGrant", "team", grant).await;
    let values = json!({"password": "s3cret"});
    let secret = |target: Value| json!({"for": target, "values": values});
    let team = "namespaces/team/secrets";
    bed.create(team, "Secret", "web", secret(json!({"groups": ["web"]})))
        .await;
    bed.create(team, "Secret", "db", secret(json!({"node": "db-1"})))
        .await;
    bed.create(team, "Secret", "unbound", json!({"values": values}))
        .await;
    let other = secret(json!({"node": "web-1"}));
    bed.create("namespaces/other/secrets", "Secret", "web", other)
        .await;
    let variable = |target: Value| json!({"for": target, "values": {"a": 1}});
    let team = "namespaces/team/variables";
    bed.create(team, "Variable", "web", variable(json!({"node": "web-1"})))
        .await;
    bed.create(team, "Variable", "db", variable(json!({"node": "db-1"})))
        .await;
    bed.create(team, "Variable", "all", json!({"values": {"b": 2}}))
        .await;
    for name in ["bound", "unbound"] {
        let spec = json!({"values": {"c": 3}});
        bed.create("clustervariables", "ClusterVariable", name, spec)
            .await;
    }
    let binding = json!({"variables": ["bound"], "namespaces": ["team"], "groups": ["web"]});
    let path = "clustervariablesbindings";
    bed.create(path, "ClusterVariablesBinding", "team", binding)
        .await;
}
