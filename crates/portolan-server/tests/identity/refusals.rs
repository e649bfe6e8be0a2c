//! Everything that must be refused, in one table; each refusal is in the audit log.

use std::sync::Arc;
use std::time::Duration;

use portolan_identity::{Authority, CertificateSubject, NodeKey, SubjectKind};
use portolan_server::TimeSource as _;
use rustls::ClientConfig;
use serde_json::{Value, json};

use super::bed::{Bed, ask, bed};

struct Row {
    what: &'static str,
    config: Arc<ClientConfig>,
    token: Option<String>,
    method: &'static str,
    path: &'static str,
    body: Option<Value>,
    expected: u16,
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_these_is_refused_and_in_the_audit_log() {
    let bed = bed().await;
    let (revoked, revoked_key) = bed.node("revoked").await;
    let (expired, expired_key) = bed.node("expired").await;
    bed.admin("POST", "/api/v1alpha/nodes/revoked/revoke", None)
        .await;
    let reader = user(
        &bed,
        "reader",
        json!([{"verbs": ["get", "list"], "kinds": ["Variable"]}]),
    )
    .await;
    let binder = json!([{"verbs": ["*"], "kinds": ["RoleBinding", "ClusterRoleBinding"]}]);
    let binder = user(&bed, "binder", binder).await;
    let gone = user(&bed, "gone", json!([{"verbs": ["*"], "kinds": ["*"]}])).await;
    end_tokens_of(&bed, "gone").await;
    bed.time.advance(Duration::from_hours(7 * 24 + 1));
    let (node, key) = bed.node("web-1").await;
    let (other, other_key) = bed.node("db-1").await;
    bed.create(
        "nodegroups",
        "NodeGroup",
        "all",
        json!({"nodes": ["web-1", "db-1"]}),
    )
    .await;
    let grant = json!({"namespaces": ["default"], "groups": ["all"]});
    bed.create("nodegrants", "NodeGrant", "default", grant)
        .await;
    let secret = json!({"for": {"node": "web-1"}, "values": {"a": "b"}});
    bed.create("namespaces/default/secrets", "Secret", "web", secret)
        .await;
    let variable = json!({"for": {"node": "web-1"}, "values": {"a": "b"}});
    bed.create("namespaces/default/variables", "Variable", "web", variable)
        .await;
    // The admin's first token has ended with the days; `admin` above uses the one that `user` renewed.
    let admin = bed.admin_token();
    let me = "/api/v1alpha/auth/rights";
    let binding = json!({
        "apiVersion": "v1alpha", "kind": "ClusterRoleBinding", "metadata": {"name": "mine"},
        "spec": {"role": {"kind": "ClusterRole", "name": "admin"}, "subjects": [{"kind": "user", "name": "binder"}]},
    });
    let row = |what, config, token: Option<&str>, path, expected| Row {
        what,
        config,
        token: token.map(str::to_owned),
        method: "GET",
        path,
        body: None,
        expected,
    };
    let rows = [
        row(
            "no certificate and no token",
            bed.anonymous(),
            None,
            me,
            401,
        ),
        row("foreign authority", foreign(&bed, &node), None, me, 401),
        row("expired", bed.mutual(&expired, &expired_key), None, me, 401),
        row("revoked", bed.mutual(&revoked, &revoked_key), None, me, 401),
        row(
            "token of a deleted user",
            bed.anonymous(),
            Some(&gone),
            me,
            401,
        ),
        row(
            "token that never was",
            bed.anonymous(),
            Some("ptl_00_11"),
            me,
            401,
        ),
        row(
            "certificate and token together",
            bed.mutual(&node, &key),
            Some(&admin),
            me,
            401,
        ),
        row(
            "other namespace",
            bed.anonymous(),
            Some(&reader),
            "/api/v1alpha/namespaces/system/secrets/x",
            403,
        ),
        row(
            "secret of another node",
            bed.mutual(&other, &other_key),
            None,
            "/api/v1alpha/namespaces/default/secrets/web?reveal=true",
            403,
        ),
        row(
            "variable of another node",
            bed.mutual(&other, &other_key),
            None,
            "/api/v1alpha/namespaces/default/variables/web",
            403,
        ),
        row(
            "another node",
            bed.mutual(&other, &other_key),
            None,
            "/api/v1alpha/nodes/web-1",
            403,
        ),
        Row {
            method: "PUT",
            body: Some(json!({"facts": {"hostname": "forged"}})),
            ..row(
                "report about another node",
                bed.mutual(&other, &other_key),
                None,
                "/api/v1alpha/nodes/web-1/status",
                403,
            )
        },
        Row {
            method: "POST",
            body: Some(binding),
            ..row(
                "escalation by one's own binding",
                bed.anonymous(),
                Some(&binder),
                "/api/v1alpha/clusterrolebindings",
                403,
            )
        },
    ];
    for row in rows {
        let before = bed.audit().len();
        let answer = ask(
            &row.config,
            bed.first.port,
            row.method,
            row.path,
            row.token.as_deref(),
            row.body,
        )
        .await;
        assert_eq!(answer.status, row.expected, "{}: {}", row.what, answer.body);
        let lines = bed.audit();
        let is_logged = lines[before..]
            .iter()
            .any(|line| line["status"] == row.expected);
        assert!(is_logged, "{}: {:?}", row.what, &lines[before..]);
    }
    join_tokens(&bed).await;
}

/// A join token that has ended, is of another fleet, or whose signature was made for another connection.
async fn join_tokens(bed: &Bed) {
    let (token, pin) = bed.join_token(json!({"uses": 1, "life": "1h"})).await;
    let client = bed.client(&bed.first);
    let key = NodeKey::generate().expect("a key");
    let before = bed.audit().len();
    // Whoever reads a request on the way cannot use it on another connection.
    let proof = portolan_identity::EnrolProof {
        exporter: &[7; portolan_identity::EXPORTER_BYTES],
        key: key.fingerprint(),
        fleet: token.fleet(),
    };
    use base64::Engine as _;
    let signature = base64::engine::general_purpose::STANDARD.encode(token.sign(&proof));
    let body = json!({
        "name": "thief", "csr": signing_request(), "token": token.id(), "signature": signature,
    });
    let path = "/api/v1alpha/enrolments";
    let replayed = ask(
        &bed.anonymous(),
        bed.first.port,
        "POST",
        path,
        None,
        Some(body),
    )
    .await;
    assert_eq!(replayed.status, 401, "{}", replayed.body);
    bed.time.advance(Duration::from_hours(2));
    let ended = client.enrol(pin, Some(&token), "late", &key).await;
    let is_refused = matches!(
        &ended,
        Err(portolan_identity::EnrolError::Refused { status: 401, .. })
    );
    assert!(is_refused, "{ended:?}");
    let lines = bed.audit();
    let refused = lines[before..]
        .iter()
        .filter(|line| line["verb"] == "enrol" && line["status"] == 401);
    assert_eq!(refused.count(), 2);
}

fn signing_request() -> String {
    let pair = rcgen::KeyPair::generate().expect("a key");
    let request = rcgen::CertificateParams::default().serialize_request(&pair);
    request.expect("a request").pem().expect("PEM")
}

/// TLS with a certificate for an existing node that another authority has signed.
fn foreign(bed: &Bed, node: &portolan_identity::Enrolled) -> Arc<ClientConfig> {
    let now = bed.time.now();
    let life = Duration::from_hours(24);
    let authority = Authority::create(&node.fleet, 1, now, life).expect("an authority");
    let pair = rcgen::KeyPair::generate().expect("a key");
    let request = rcgen::CertificateParams::default().serialize_request(&pair);
    let request = request.expect("a request").pem().expect("PEM");
    let key = portolan_identity::RequestedKey::read(&request).expect("a request");
    let subject = CertificateSubject {
        fleet: node.fleet.clone(),
        kind: SubjectKind::Node,
        id: node.node_uid.clone(),
        epoch: 1,
    };
    let issued = authority.issue_client(&key, &subject, &node.name, now, life);
    let chain = portolan_identity::certificates_to_pem(&[issued.expect("a certificate")]);
    let forged = portolan_identity::Enrolled {
        certificate: chain,
        ..node.clone()
    };
    let key = NodeKey::from_pem(&pair.serialize_pem()).expect("a key");
    bed.mutual(&forged, &key)
}

/// A user with rights, by a token without an end.
async fn user(bed: &Bed, name: &str, rules: Value) -> String {
    bed.create("clusterroles", "ClusterRole", name, json!({"rules": rules}))
        .await;
    let binding = json!({
        "role": {"kind": "ClusterRole", "name": name}, "subjects": [{"kind": "user", "name": name}],
    });
    bed.create("clusterrolebindings", "ClusterRoleBinding", name, binding)
        .await;
    // The first token of the admin ends after a day, and the test lives through more.
    let path = bed.first.directory.path().join("admin.token");
    let admin = bed
        .admin(
            "POST",
            "/api/v1alpha/auth/tokens",
            Some(json!({"user": "admin"})),
        )
        .await;
    std::fs::write(path, admin.body["token"].as_str().expect("a token")).expect("written");
    let made = bed
        .admin(
            "POST",
            "/api/v1alpha/auth/tokens",
            Some(json!({"user": name})),
        )
        .await;
    assert_eq!(made.status, 201, "{}", made.body);
    made.body["token"].as_str().expect("a token").to_owned()
}

async fn end_tokens_of(bed: &Bed, user: &str) {
    let all = bed
        .admin("GET", "/api/v1alpha/auth/tokens", None)
        .await
        .body;
    for one in all["items"].as_array().into_iter().flatten() {
        if one["user"] == user {
            let path = format!(
                "/api/v1alpha/auth/tokens/{}",
                one["id"].as_str().expect("an id")
            );
            assert_eq!(bed.admin("DELETE", &path, None).await.status, 200);
        }
    }
}
