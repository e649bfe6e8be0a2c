//! Who may do what, and what they are told who may not.

use axum::body::Body;
use http::Request;
use serde_json::json;

use crate::bed::{VARIABLES, bed, variable};

#[tokio::test(flavor = "multi_thread")]
async fn rights_are_given_by_roles_and_nobody_gives_more_than_they_have() {
    let bed = bed().await;
    let ann = bed.user("ann", json!([
        {"verbs": ["get", "list", "watch"], "kinds": ["Variable"]},
        {"verbs": ["create", "update"], "kinds": ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]},
    ])).await;
    assert_eq!(bed.ask(&ann, "GET", VARIABLES, None).await.0, 200);
    let (status, refused) = bed
        .ask(
            &ann,
            "POST",
            VARIABLES,
            Some(variable("a", json!({"x": 1}))),
        )
        .await;
    assert_eq!(status, 403);
    assert_eq!(
        refused["details"]["missing"],
        json!({"verbs": ["create"], "kinds": ["Variable"], "namespace": "default"})
    );
    // Whether an object exists is not told to who may not see it.
    for name in ["admin", "nobody"] {
        let (status, _) = bed
            .ask(
                &ann,
                "GET",
                &format!("/api/v1alpha/clusterroles/{name}"),
                None,
            )
            .await;
        assert_eq!(status, 403);
    }
    let role = |verb: &str| {
        json!({
            "apiVersion": "v1alpha", "kind": "ClusterRole", "metadata": {"name": format!("own-{verb}")},
            "spec": {"rules": [{"verbs": [verb], "kinds": ["Variable"]}]},
        })
    };
    assert_eq!(
        bed.ask(&ann, "POST", "/api/v1alpha/clusterroles", Some(role("get")))
            .await
            .0,
        201
    );
    assert_eq!(
        bed.ask(
            &ann,
            "POST",
            "/api/v1alpha/clusterroles",
            Some(role("delete"))
        )
        .await
        .0,
        403
    );
    let binding = json!({
        "apiVersion": "v1alpha", "kind": "ClusterRoleBinding", "metadata": {"name": "mine"},
        "spec": {"role": {"kind": "ClusterRole", "name": "admin"}, "subjects": [{"kind": "user", "name": "ann"}]},
    });
    assert_eq!(
        bed.ask(
            &ann,
            "POST",
            "/api/v1alpha/clusterrolebindings",
            Some(binding)
        )
        .await
        .0,
        403
    );
    assert_eq!(
        bed.ask(
            &ann,
            "POST",
            "/api/v1alpha/auth/tokens",
            Some(json!({"user": "admin"}))
        )
        .await
        .0,
        403
    );
    let (_, can) = bed
        .ask(
            &ann,
            "POST",
            "/api/v1alpha/auth/can-i",
            Some(json!({"verb": "get", "kind": "var", "namespace": "x"})),
        )
        .await;
    assert_eq!(can["allowed"], true);
    assert!(
        can["because"]
            .as_str()
            .expect("a reason")
            .contains("ClusterRoleBinding ann"),
        "{can}"
    );

    // Every refusal is in the audit log, in a chain that nobody can change unnoticed.
    let refusals = bed
        .audit()
        .into_iter()
        .filter(|entry| entry["status"] == 403)
        .count();
    assert_eq!(refusals, 6);
    let directory = bed.stop().await;
    let log = directory.path().join("audit.log");
    portolan_server::verify_audit(directory.path(), None).expect("a whole log");
    let text = std::fs::read_to_string(&log).expect("a log");
    std::fs::write(
        &log,
        text.replacen("\"user\":\"ann\"", "\"user\":\"eve\"", 1),
    )
    .expect("written");
    portolan_server::verify_audit(directory.path(), None).expect_err("a changed log");
    let short: String = text.split_inclusive('\n').take(2).collect();
    std::fs::write(&log, short).expect("written");
    let cut =
        portolan_server::verify_audit(directory.path(), Some((5, ""))).expect_err("a cut log");
    assert!(cut.to_string().contains("ends at entry 2"), "{cut}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_good_token_learns_nothing() {
    let bed = bed().await;
    let id = &bed.admin[4..20];
    let tokens = [
        "x".to_owned(),
        format!("ptl_{id}_{}", "0".repeat(64)),
        format!("ptl_{}_{}", "0".repeat(16), "0".repeat(64)),
    ];
    let mut answers = Vec::new();
    for token in &tokens {
        let (status, answer) = bed.ask(token, "GET", VARIABLES, None).await;
        assert_eq!(status, 401);
        answers.push(answer);
    }
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
    let request = |headers: &[(&str, &str)]| {
        let mut request = Request::builder().uri(VARIABLES);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).expect("a request")
    };
    let bearer = format!("Bearer {}", bed.admin);
    let cases = [
        (401, vec![("host", "portolan.test")]),
        (401, vec![("host", "portolan.test"), ("cookie", "token=x")]),
        (
            401,
            vec![
                ("host", "portolan.test"),
                ("authorization", &bearer),
                ("authorization", &bearer),
            ],
        ),
        (
            401,
            vec![("host", "portolan.test"), ("authorization", "Basic YTpi")],
        ),
        (
            421,
            vec![("host", "evil.example"), ("authorization", &bearer)],
        ),
        (
            403,
            vec![
                ("host", "portolan.test"),
                ("authorization", &bearer),
                ("origin", "https://evil.example"),
            ],
        ),
        (
            403,
            vec![
                ("host", "portolan.test"),
                ("authorization", &bearer),
                ("sec-fetch-site", "cross-site"),
            ],
        ),
    ];
    for (status, headers) in cases {
        assert_eq!(bed.send(request(&headers)).await.0, status, "{headers:?}");
    }
    // A token that was ended works no more, and its watch is cut.
    let ann = bed
        .user("ann", json!([{"verbs": ["watch"], "kinds": ["Variable"]}]))
        .await;
    assert_eq!(
        bed.delete(&format!("/api/v1alpha/auth/tokens/{}", &ann[4..20]))
            .await
            .0,
        200
    );
    assert_eq!(bed.ask(&ann, "GET", VARIABLES, None).await.0, 401);
}
