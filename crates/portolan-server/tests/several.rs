//! Several servers on one etcd: how they join, agree on keys and levels, and what one does that lost the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use portolan_server::{
    ApiServer, KeyEncryptionKey, ServerOptions, StartError, SystemTimeSource, TimeSource,
};
use portolan_store::level::NEWEST_LEVEL;
use portolan_store::{Incarnation, Position, Store, Transaction, restore_file};
use portolan_testbed::{Etcd, EtcdSetup};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

/// For a state to come on a machine that is busy with other things.
const SOON: Duration = Duration::from_mins(2);
const VARIABLES: &str = "/api/v1alpha/namespaces/default/variables";

/// An etcd and the directories of its servers.
struct Fleet {
    etcd: Etcd,
    directory: tempfile::TempDir,
}

/// A server under way.
struct Server {
    router: Router,
    token: String,
    cancelled: CancellationToken,
    running: tokio::task::JoinHandle<Option<String>>,
}

impl Fleet {
    /// `None` where there is no etcd.
    fn new() -> Option<Self> {
        Some(Self {
            etcd: Etcd::start(&EtcdSetup::default())?,
            directory: tempfile::tempdir().expect("a directory"),
        })
    }

    fn store(&self) -> Store {
        let options = portolan_store::etcd::EtcdOptions::new([&self.etcd.url]);
        let engine = portolan_store::etcd::Etcd::new(options).expect("usable options");
        Store::new(Arc::new(engine))
    }

    fn data(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Gives a server the keys of another one.
    fn share_key(&self, from: &str, to: &str) {
        std::fs::create_dir_all(self.data(to)).expect("a directory");
        let file = |name: &str| self.data(name).join("secrets.key");
        std::fs::copy(file(from), file(to)).expect("a copy");
    }

    async fn try_start(&self, name: &str, max_level: u64) -> Result<Server, StartError> {
        let options = ServerOptions {
            max_level,
            address: format!("https://{name}:7443"),
            ..ServerOptions::new(self.data(name))
        };
        self.start_with(options).await
    }

    async fn start_with(&self, options: ServerOptions) -> Result<Server, StartError> {
        let (server, _) = ApiServer::start(self.store(), options).await?;
        let cancelled = CancellationToken::new();
        Ok(Server {
            router: server.router(vec!["portolan.test".to_owned()]),
            // All servers know the tokens of the first.
            token: std::fs::read_to_string(self.data("a").join("admin.token")).unwrap_or_default(),
            running: tokio::spawn(server.run(cancelled.clone())),
            cancelled,
        })
    }

    async fn start(&self, name: &str, max_level: u64) -> Server {
        let started = self.try_start(name, max_level).await;
        started.unwrap_or_else(|error| unreachable!("{name}: {error}"))
    }

    /// Why a server does not start.
    async fn refused(&self, name: &str, max_level: u64) -> String {
        let started = self.try_start(name, max_level).await;
        started.err().expect("it must not start").to_string()
    }
}

impl Server {
    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "portolan.test")
            .header(header::CONTENT_TYPE, "application/json")
            .header(
                header::AUTHORIZATION,
                format!("Bearer {}", self.token.trim()),
            );
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let request = request.body(body).expect("a request");
        let response = self.router.clone().call(request).await.expect("an answer");
        let status = response.status();
        let bytes = response.into_body().collect().await.expect("a body");
        (
            status,
            serde_json::from_slice(&bytes.to_bytes()).unwrap_or_default(),
        )
    }

    async fn status(&self) -> Value {
        self.ask("GET", "/api/v1alpha/status", None).await.1
    }

    async fn write(&self, name: &str) {
        let variable = json!({
            "apiVersion": "v1alpha", "kind": "Variable", "metadata": {"name": name, "namespace": "default"},
            "spec": {"values": {"a": "b"}},
        });
        let (status, answer) = self.ask("POST", VARIABLES, Some(variable)).await;
        assert_eq!(status, 201, "{answer}");
    }

    async fn reads(&self, name: &str) -> bool {
        let path = format!("{VARIABLES}/{name}");
        self.ask("GET", &path, None).await.0 == 200
    }

    /// Ends it in good order.
    async fn stop(self) {
        self.cancelled.cancel();
        assert_eq!(self.running.await.expect("no panic"), None);
    }
}

async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let start = tokio::time::Instant::now();
    while !is_so().await {
        assert!(start.elapsed() < SOON, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_share_objects_and_one_of_them_does_the_work_between_requests() {
    let Some(fleet) = Fleet::new() else { return };
    let a = fleet.start("a", NEWEST_LEVEL).await;
    fleet.share_key("a", "b");
    let b = fleet.start("b", NEWEST_LEVEL).await;
    a.write("of-a").await;
    assert!(b.reads("of-a").await);
    b.write("of-b").await;
    assert!(a.reads("of-b").await);
    eventually("an owner", async || {
        a.status().await["controllers"]["isOwner"] == true
    })
    .await;
    let told = b.status().await;
    assert_eq!(told["servers"].as_array().map(Vec::len), Some(2), "{told}");
    assert_eq!(told["controllers"]["isOwner"], false, "{told}");

    // A server that ends in good order leaves nothing that has to be waited for.
    a.stop().await;
    eventually("another owner", async || {
        b.status().await["controllers"]["isOwner"] == true
    })
    .await;
    assert_eq!(
        b.status().await["servers"].as_array().map(Vec::len),
        Some(1)
    );
}

/// A clock that is wrong by a minute and a half.
struct FastClock;

impl TimeSource for FastClock {
    fn now(&self) -> Duration {
        SystemTimeSource.now() + Duration::from_secs(90)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_clock_is_wrong_is_told_by_the_others() {
    let Some(fleet) = Fleet::new() else { return };
    let a = fleet.start("a", NEWEST_LEVEL).await;
    fleet.share_key("a", "b");
    fleet.share_key("a", "c");
    let options = ServerOptions {
        time: Arc::new(FastClock),
        address: "https://b:7443".to_owned(),
        ..ServerOptions::new(fleet.data("b"))
    };
    let b = fleet.start_with(options).await.expect("it starts");
    let c = fleet.start("c", NEWEST_LEVEL).await;
    let warnings = |told: &Value| told["warnings"].to_string();
    eventually("a is told", async || {
        let told = warnings(&a.status().await);
        told.contains("the clock of https://b:7443 is") && told.contains("ahead of this server's")
    })
    .await;
    eventually("b is told of both others", async || {
        let told = warnings(&b.status().await);
        let is_told = |name: &str| told.contains(&format!("the clock of https://{name}:7443 is"));
        is_told("a") && is_told("c") && told.contains("behind this server's")
    })
    .await;
    let told = a.status().await;
    assert!(!warnings(&told).contains("https://c:7443"), "{told}");
    let servers = told["servers"].as_array().expect("a list").iter();
    let ahead = servers.map(|one| one["clockAheadMillis"].as_i64());
    let ahead: Vec<i64> = ahead.flatten().collect();
    assert_eq!(ahead.len(), 2, "{told}");
    assert!(ahead.iter().any(|ahead| *ahead > 60_000), "{told}");
    for server in [a, b, c] {
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_joins_with_the_key_of_the_others_only() {
    let Some(fleet) = Fleet::new() else { return };
    let a = fleet.start("a", NEWEST_LEVEL).await;
    let why = fleet.refused("b", NEWEST_LEVEL).await;
    assert!(why.contains("this one has no key"), "{why}");
    assert!(!fleet.data("b").join("secrets.key").exists());
    let own = KeyEncryptionKey::generate();
    let file = |name: &str| fleet.data(name).join("secrets.key");
    std::fs::write(file("b"), own.to_line().as_bytes()).expect("a key");
    let why = fleet.refused("b", NEWEST_LEVEL).await;
    assert!(why.contains("add that key to its file"), "{why}");

    // A new key seals only when every server has it.
    let shared = std::fs::read_to_string(file("a")).expect("a key");
    let both = format!("{}{shared}", own.to_line().as_str());
    std::fs::write(file("b"), both).expect("keys");
    let why = fleet.refused("b", NEWEST_LEVEL).await;
    assert!(why.contains("does not have key"), "{why}");
    let both = format!("{shared}{}", own.to_line().as_str());
    for name in ["a", "b"] {
        std::fs::write(file(name), &both).expect("keys");
    }
    a.stop().await;
    let a = fleet.start("a", NEWEST_LEVEL).await;
    let both = format!("{}{shared}", own.to_line().as_str());
    std::fs::write(file("b"), both).expect("keys");
    let b = fleet.start("b", NEWEST_LEVEL).await;
    assert_eq!(b.status().await["secrets"]["key"], own.id());
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_audit_log_stops_the_server_that_it_belongs_to_and_no_other() {
    let Some(fleet) = Fleet::new() else { return };
    let a = fleet.start("a", NEWEST_LEVEL).await;
    fleet.share_key("a", "b");
    let b = fleet.start("b", NEWEST_LEVEL).await;
    a.write("of-a").await;
    b.write("of-b").await;
    let digests = |told: &Value| told["audit"]["digest"].as_str().map(str::to_owned);
    assert_ne!(digests(&a.status().await), digests(&b.status().await));
    a.stop().await;
    b.stop().await;
    std::fs::write(fleet.data("b").join("audit.log"), "").expect("cut");
    let why = fleet.refused("b", NEWEST_LEVEL).await;
    assert!(why.contains("the audit log ends at entry 0"), "{why}");
    fleet.start("a", NEWEST_LEVEL).await.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_another_cluster_is_refused() {
    let (Some(fleet), Some(other)) = (Fleet::new(), Fleet::new()) else {
        return;
    };
    fleet.start("a", NEWEST_LEVEL).await.stop().await;
    let incarnation = Incarnation::open(&fleet.store()).await.expect("opens");
    let copy = Transaction::create("/portolan/v1/meta/incarnation", incarnation.to_string());
    other.store().commit(copy).await.expect("copied");
    let why = other.refused("a", NEWEST_LEVEL).await;
    assert!(why.contains("the data belongs to cluster"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_hear_of_the_store_answers_503() {
    let Some(fleet) = Fleet::new() else { return };
    let a = fleet.start("a", NEWEST_LEVEL).await;
    assert!(a.ask("GET", VARIABLES, None).await.0 == 200);
    drop(fleet.etcd);
    eventually("503", async || {
        let (status, answer) = a.ask("GET", VARIABLES, None).await;
        let error = answer["error"].as_str().unwrap_or_default();
        status == 503 && error.contains("the store was not heard of for")
    })
    .await;
}

/// A pair of an old and a new server on data that the release before level 2 wrote.
#[tokio::test(flavor = "multi_thread")]
async fn servers_of_two_levels_work_side_by_side_and_the_level_rises_with_the_last_old_one() {
    let Some(fleet) = Fleet::new() else { return };
    let fixture = Path::new("../portolan-store/tests/data/level-1.backup");
    let store = fleet.store();
    let backup = restore_file(&store, fixture).await.expect("restored");
    let origin = Position {
        incarnation: backup.incarnation,
        revision: backup.revision,
    };
    Incarnation::raise(&store, origin).await.expect("raised");
    let old = fleet.start("a", 1).await;
    fleet.share_key("a", "b");
    let new = fleet.start("b", 2).await;
    old.write("of-old").await;
    new.write("of-new").await;
    assert!(new.reads("of-old").await && old.reads("of-new").await);
    assert_eq!(new.status().await["store"]["level"], 1);

    // Back: the old one goes on alone with what the new one wrote.
    new.stop().await;
    assert!(old.reads("of-new").await);
    let new = fleet.start("b", 2).await;
    assert_eq!(new.status().await["store"]["level"], 1);

    old.stop().await;
    eventually("level 2", async || {
        new.status().await["store"]["level"] == 2
    })
    .await;
    assert!(new.reads("of-old").await);
    let why = fleet.refused("a", 1).await;
    assert!(
        why.contains("the store has level 2, this program reads up to 1"),
        "{why}"
    );
    new.stop().await;
}
