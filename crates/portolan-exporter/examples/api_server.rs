//! A stand-in for an API server with as many Helm releases as wanted: more than etcd holds, for `bench/audit-cluster.sh`.
//!
//! `api_server PORT RELEASES DELAY_MS OBJECTS` answers `/version`, pages of records' metadata, and each record after a
//! delay. The record's JSON has about 500 KB, most of it the chart, and packs to about 60 KB, as those of large charts do;
//! every tenth has so many objects of a removed API.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan_helm::storage::{Info, StoredRelease, encode};
use serde_json::{Value, json};

struct Cluster {
    releases: usize,
    delay: Duration,
    /// A record with an object of a removed API, and one without.
    old: String,
    fine: String,
}

/// One release in so many has an object of a removed API.
const PLANTED: usize = 10;

#[tokio::main]
async fn main() {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .map(|word| word.parse().expect("a number"))
        .collect();
    let [port, releases, delay, objects] = numbers[..4].try_into().expect("four numbers");
    let cluster = Arc::new(Cluster {
        releases: releases as usize,
        delay: Duration::from_millis(delay),
        old: record(&planted(objects)),
        fine: record(""),
    });
    let router = Router::new()
        .route(
            "/version",
            get(|| async { answer(&json!({"gitVersion": "v1.36.3"})) }),
        )
        .route("/api/v1/secrets", get(secrets))
        .route(
            "/api/v1/configmaps",
            get(|| async { answer(&json!({"metadata": {"resourceVersion": "1"}, "items": []})) }),
        )
        .route("/api/v1/namespaces/{namespace}/secrets/{name}", get(secret))
        .with_state(cluster);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port as u16))
        .await
        .expect("the port is free");
    axum::serve(listener, router).await.expect("it serves");
}

/// A page of metadata; the token is the number of the next record.
async fn secrets(
    State(cluster): State<Arc<Cluster>>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    // A watch: nothing happens.
    if query.contains_key("watch") {
        return std::future::pending().await;
    }
    let number = |key: &str, other: usize| {
        query
            .get(key)
            .and_then(|text| text.parse().ok())
            .unwrap_or(other)
    };
    let start = number("continue", 0);
    let end = (start + number("limit", cluster.releases)).min(cluster.releases);
    let next = if end < cluster.releases {
        end.to_string()
    } else {
        String::new()
    };
    let items: Vec<Value> = (start..end).map(metadata).collect();
    answer(&json!({"metadata": {"resourceVersion": "1", "continue": next}, "items": items}))
}

fn metadata(number: usize) -> Value {
    let release = format!("release-{number}");
    json!({"metadata": {
        "name": format!("sh.helm.release.v1.{release}.v10"),
        "namespace": format!("team-{number}"),
        "uid": format!("00000000-0000-4000-8000-{number:012}"),
        "resourceVersion": number.to_string(),
        "labels": {"owner": "helm", "name": release, "status": "deployed", "version": "10", "modifiedAt": "1700000000"},
    }})
}

async fn secret(
    State(cluster): State<Arc<Cluster>>,
    Path((_, name)): Path<(String, String)>,
) -> Response {
    tokio::time::sleep(cluster.delay).await;
    let number = name
        .split(['-', '.'])
        .find_map(|word| word.parse::<usize>().ok());
    let planted = number.is_some_and(|number| number.is_multiple_of(PLANTED));
    let record = if planted { &cluster.old } else { &cluster.fine };
    let body = format!(
        "{{\"metadata\": {{\"name\": \"{name}\"}}, \"data\": {{\"release\": \"{record}\"}}}}"
    );
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn answer(value: &Value) -> Response {
    (
        [(header::CONTENT_TYPE, "application/json")],
        value.to_string(),
    )
        .into_response()
}

/// Objects of a removed API.
fn planted(count: u64) -> String {
    let object = |number| {
        format!(
            "---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata:\n  name: web-{number}\n"
        )
    };
    (0..count).map(object).collect()
}

/// A record as it lies in a Secret.
fn record(planted: &str) -> String {
    STANDARD.encode(encode(&release(planted)).expect("a record"))
}

/// A release of a large chart: 300 KB of templates, 50 KB of manifest, and what is planted.
fn release(planted: &str) -> StoredRelease {
    let mut seed = 1;
    let templates: Vec<Value> = (0..60)
        .map(|number| json!({"name": format!("templates/{number}.yaml"), "data": STANDARD.encode(text(&mut seed, 5_000))}))
        .collect();
    let mut manifest = String::new();
    for number in 0..20 {
        let body = text(&mut seed, 2_500);
        let _ = write!(
            manifest,
            "---\n# Source: big/templates/{number}.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-{number}\ndata:\n{body}"
        );
    }
    manifest.push_str(planted);
    StoredRelease {
        name: "release".to_owned(),
        info: Info {
            status: "deployed".to_owned(),
            ..Info::default()
        },
        chart: json!({"metadata": {"name": "big", "version": "1.0.0"}, "templates": templates}),
        config: json!({}),
        manifest,
        hooks: Vec::new(),
        version: 10,
        namespace: "team".to_owned(),
    }
}

/// Lines of a YAML map that pack about as well as real ones.
fn text(seed: &mut u64, length: usize) -> String {
    const WORDS: [&str; 16] = [
        "replicas",
        "image",
        "enabled",
        "resources",
        "limits",
        "service",
        "ingress",
        "annotations",
        "affinity",
        "probe",
        "values",
        "toYaml",
        "include",
        "nindent",
        "metrics",
        "storage",
    ];
    let mut lines = String::new();
    while lines.len() < length {
        // A linear congruential generator: the same text on every machine.
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let word = |shift: u32| WORDS[(*seed >> shift) as usize % WORDS.len()];
        let _ = writeln!(
            lines,
            "  {}-{}-{}: {}.{}",
            word(20),
            word(30),
            *seed >> 48,
            word(40),
            word(50)
        );
    }
    lines
}
