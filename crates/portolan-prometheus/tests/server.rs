//! What comes back from a real Prometheus that scrapes a mesh, and from servers that do not answer as they should.

#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::{Duration, Instant, SystemTime};

use portolan_http::{Credentials, Secret, Tls};
use portolan_judge::Counts;
use portolan_prometheus::{
    Answer, ArmLabels, Arms, Authorization, FileServer, Limits, Measured, Prometheus, Question,
    ServerFiles, ServerSettings, measure,
};
use portolan_rollout::{Measurement, Metric, Time};
use portolan_testbed::{
    Authority, Behaviour, HttpServer, Mesh, MeshPod, MeshRoute, MeshSetup, PASSWORD,
    PrometheusSetup, Reply, USER,
};
use serde_json::json;

fn client(address: &str) -> Prometheus {
    Prometheus::new(settings(address)).unwrap()
}

fn settings(address: &str) -> ServerSettings {
    ServerSettings {
        deadline: Duration::from_secs(5),
        ..ServerSettings::new(address)
    }
}

fn metric(fields: &serde_json::Value) -> Metric {
    serde_json::from_value(fields.clone()).unwrap()
}

fn errors() -> Metric {
    metric(&json!({"name": "errors", "builtin": "istio-requests"}))
}

fn arms() -> Arms {
    let arm = |slot: &str, revision: &str| ArmLabels {
        slot: slot.to_owned(),
        revision: revision.to_owned(),
        pod_ages: BTreeMap::new(),
    };
    Arms {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        canary: arm("web-b", "r2"),
        stable: arm("web-a", "r1"),
        labels: BTreeMap::new(),
    }
}

fn now() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

fn question(arms: &Arms, from: i64, to: i64) -> Question<'_> {
    Question {
        arms,
        from: Time::from_unix(from),
        to: Time::from_unix(to),
        warm_up_seconds: 60,
    }
}

/// One route to two pods of the old revision and one of the new, half of the requests each.
fn route() -> BTreeMap<String, MeshRoute> {
    let pod = |name: &str, slot: &str, revision: &str| MeshPod {
        name: name.to_owned(),
        slot: slot.to_owned(),
        revision: revision.to_owned(),
        ..MeshPod::default()
    };
    let route = MeshRoute {
        namespace: "shop".to_owned(),
        weights: vec![("web-a".to_owned(), 50), ("web-b".to_owned(), 50)],
        pods: vec![
            pod("web-a-1", "web-a", "r1"),
            pod("web-a-2", "web-a", "r1"),
            pod("web-b-1", "web-b", "r2"),
        ],
    };
    BTreeMap::from([("web".to_owned(), route)])
}

/// A mesh and a Prometheus that scrapes it.
struct Bed {
    mesh: Mesh,
    prometheus: portolan_testbed::Prometheus,
    arms: Arms,
    /// Up to where was counted.
    counted: i64,
}

impl Bed {
    fn start(mut setup: MeshSetup) -> Option<Self> {
        setup.rate = 200.0;
        let mesh = Mesh::start(setup);
        mesh.set_routes(route());
        let prometheus = portolan_testbed::Prometheus::start(&PrometheusSetup {
            targets_urls: vec![mesh.targets_url()],
            ..PrometheusSetup::default()
        })?;
        Some(Self {
            mesh,
            prometheus,
            arms: arms(),
            counted: now() - 2,
        })
    }

    fn client(&self) -> Prometheus {
        client(&self.prometheus.url())
    }

    /// Asks for the next window until it says what is waited for.
    async fn until(&mut self, metric: &Metric, is_it: impl Fn(&Measured) -> bool) -> Measured {
        let client = self.client();
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let to = now() - 1;
            if to >= self.counted + 3 {
                let question = question(&self.arms, self.counted, to);
                let measured = measure(&client, metric, question).await;
                self.counted = measured.next_from.unix();
                if is_it(&measured) {
                    return measured;
                }
                assert!(
                    Instant::now() < deadline,
                    "{measured:?}\n{}",
                    self.prometheus.log()
                );
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Requests of the canary and of the stable arm.
fn counts(measured: &Measured) -> Option<(Counts, Counts)> {
    match &measured.measurement {
        Some(Measurement::Counts { canary, stable, .. }) => Some((canary.counts, stable.counts)),
        _ => None,
    }
}

fn share(counts: Counts) -> f64 {
    counts.bad_share().unwrap_or(0.0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_is_counted_once_through_restarts_and_gaps() {
    let Some(mut bed) = Bed::start(MeshSetup::default()) else {
        return;
    };
    bed.mesh.set_behaviour(
        "r2",
        Behaviour {
            errors: 0.3,
            ..Behaviour::default()
        },
    );
    // The first windows may have no sample before them; from then on all are counted.
    bed.until(&errors(), |measured| counts(measured).is_some())
        .await;
    let from = bed.counted;
    let (mut canary, mut stable) = (Counts::default(), Counts::default());
    for _ in 0..3 {
        let measured = bed
            .until(&errors(), |measured| counts(measured).is_some())
            .await;
        let (of_canary, of_stable) = counts(&measured).unwrap();
        canary.total += of_canary.total;
        canary.bad += of_canary.bad;
        stable.total += of_stable.total;
        stable.bad += of_stable.bad;
        assert_eq!(measured.notes, ["counted by reporter `source`"]);
    }
    assert!((share(canary) - 0.3).abs() < 0.1, "{canary:?}");
    assert_eq!(stable.bad, 0);
    let seconds = (bed.counted - from) as f64;
    let rate = (canary.total + stable.total) as f64 / seconds;
    assert!((140.0..260.0).contains(&rate), "{rate} a second");
    // What is past does not change: the same window counts the same.
    let again = measure(
        &bed.client(),
        &errors(),
        question(&bed.arms, from, bed.counted),
    )
    .await;
    let (again_canary, again_stable) = counts(&again).unwrap();
    assert_eq!(
        (again_canary, again_stable),
        (canary, stable),
        "in one window as in three"
    );
    let Some(Measurement::Counts { canary, .. }) = again.measurement else {
        unreachable!("checked above");
    };
    assert_eq!(canary.pods.len(), 1);
    assert_eq!(canary.pods[0].name, "web-b-1");

    // A restart loses what the caller counted since its last scrape; a falling counter adds nothing wrong.
    bed.mesh.restart_target("gateway-0");
    let after = bed
        .until(&errors(), |measured| counts(measured).is_some())
        .await;
    let (canary, stable) = counts(&after).unwrap();
    assert!((share(canary) - 0.3).abs() < 0.15, "{after:?}");
    let seconds = (bed.counted - from) as f64;
    assert!(((canary.total + stable.total) as f64) < 300.0 * seconds);
    bed.until(&errors(), |measured| {
        measured.notes == ["counted by reporter `source`"]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_one_side_sees_is_seen() {
    let Some(mut bed) = Bed::start(MeshSetup {
        grpc: true,
        ..MeshSetup::default()
    }) else {
        return;
    };
    let refused = Behaviour {
        refused: 0.5,
        slow: 0.4,
        ..Behaviour::default()
    };
    bed.mesh.set_behaviour("web-b", refused);
    let seen = bed
        .until(&errors(), |measured| {
            counts(measured).is_some_and(|(canary, _)| share(canary) > 0.3)
        })
        .await;
    assert_eq!(seen.notes, ["counted by reporter `source`"]);

    let slow = metric(&json!({"name": "slow", "builtin": "istio-latency", "over": "300ms"}));
    let seen = bed
        .until(&slow, |measured| {
            counts(measured).is_some_and(|(canary, _)| share(canary) > 0.1)
        })
        .await;
    assert_eq!(counts(&seen).unwrap().1.bad, 0, "{seen:?}");
    assert!(
        seen.notes[1].contains("the bucket that ends at 500 ms"),
        "{seen:?}"
    );
    let beyond = metric(&json!({"name": "slow", "builtin": "istio-latency", "over": "9000s"}));
    let refused = bed.until(&beyond, |_| true).await;
    assert!(
        matches!(&refused.measurement, Some(Measurement::Down(message)) if message.contains("no bucket")),
        "{refused:?}"
    );

    // Most callers leave the mesh: now the pods' counts are the better ones. gRPC's failures have HTTP status 200.
    bed.mesh.change(|setup| setup.outside = 0.8);
    bed.mesh.set_behaviour(
        "web-b",
        Behaviour {
            errors: 0.5,
            ..Behaviour::default()
        },
    );
    let seen = bed
        .until(&errors(), |measured| {
            measured.notes == ["counted by reporter `destination`"]
                && counts(measured).is_some_and(|(canary, _)| share(canary) > 0.3)
        })
        .await;
    let Some(Measurement::Counts {
        stable,
        same_revision,
        ..
    }) = seen.measurement
    else {
        unreachable!("checked above");
    };
    assert_eq!(stable.pods.len(), 2);
    let same = same_revision.unwrap();
    assert_eq!(same.canary.total + same.stable.total, stable.counts.total);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_counters_and_values_are_read() {
    let Some(mut bed) = Bed::start(MeshSetup::default()) else {
        return;
    };
    bed.mesh.set_behaviour(
        "web-b",
        Behaviour {
            errors: 0.5,
            ..Behaviour::default()
        },
    );
    let total = r#"istio_requests_total{reporter="destination",destination_workload="$(slot)"}"#;
    let bad = total.replace('}', r#",response_code="500"}"#);
    let own = metric(&json!({"name": "own", "bad": bad, "total": total}));
    let seen = bed
        .until(&own, |measured| {
            counts(measured).is_some_and(|(canary, _)| share(canary) > 0.3)
        })
        .await;
    let (canary, stable) = counts(&seen).unwrap();
    assert!(
        canary.total > 100 && stable.total > 100 && stable.bad == 0,
        "{seen:?}"
    );

    let ask = async |fields: serde_json::Value| {
        let to = now() - 1;
        let question = question(&bed.arms, to - 5, to);
        measure(&bed.client(), &metric(&fields), question)
            .await
            .measurement
            .unwrap()
    };
    let down = async |fields: serde_json::Value| match ask(fields).await {
        Measurement::Down(message) => message,
        other => format!("{other:?}"),
    };
    let same = down(json!({"name": "x", "bad": "a", "total": "b"})).await;
    assert!(same.contains("must each hold `$(slot)`"), "{same}");
    let sum =
        down(json!({"name": "x", "bad": "sum(a{s=\"$(slot)\"})", "total": "b{s=\"$(slot)\"}"}))
            .await;
    assert!(sum.starts_with("refused: bad_data"), "{sum}");
    let value = ask(json!({"name": "x", "query": "vector(7)", "max": 9})).await;
    assert!(
        matches!(value, Measurement::Value { value, .. } if value == 7.0),
        "{value:?}"
    );
    let value = ask(json!({"name": "x", "query": "scalar(vector(7))", "max": 9})).await;
    assert!(
        matches!(value, Measurement::Value { value, .. } if value == 7.0),
        "{value:?}"
    );
    assert_eq!(
        ask(json!({"name": "x", "query": "0/0", "max": 9})).await,
        Measurement::NotANumber
    );
    assert_eq!(
        ask(json!({"name": "x", "query": "missing{a=\"$(name)\"}", "max": 9})).await,
        Measurement::Nothing
    );
    let many = down(json!({"name": "x", "query": "up", "max": 9})).await;
    assert!(many.contains("one number is needed"), "{many}");
    let unknown = down(json!({"name": "x", "query": "up{a=\"$(pod)\"}", "max": 9})).await;
    assert!(unknown.contains("`$(pod)` is no placeholder"), "{unknown}");

    // Nobody calls this one: no requests, and not an error.
    let mut others = bed.arms.clone();
    others.namespace = "elsewhere".to_owned();
    let to = now() - 1;
    let nobody = measure(&bed.client(), &errors(), question(&others, to - 5, to)).await;
    assert_eq!(nobody.measurement, Some(Measurement::Nothing));
    // And here nothing is scraped any longer.
    bed.prometheus.stop();
    let dead = measure(&bed.client(), &errors(), question(&bed.arms, to - 5, to)).await;
    assert!(
        matches!(&dead.measurement, Some(Measurement::Down(message)) if message.contains("refuses connections")),
        "{dead:?}"
    );
    bed.prometheus.start_again();
    bed.counted = now();
    bed.until(&errors(), |measured| counts(measured).is_some())
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_cannot_be_counted_is_left_out_for_both_arms() {
    let Some(mut bed) = Bed::start(MeshSetup {
        callers: 2,
        ..MeshSetup::default()
    }) else {
        return;
    };
    bed.until(&errors(), |measured| counts(measured).is_some())
        .await;
    bed.mesh.fail_scrapes("gateway-1", true);
    // Its last values hold for a while; when it comes back, nobody knows when its requests were.
    tokio::time::sleep(Duration::from_secs(5)).await;
    bed.counted = now() - 1;
    bed.mesh.fail_scrapes("gateway-1", false);
    let seen = bed
        .until(&errors(), |measured| measured.notes.len() == 2)
        .await;
    assert!(seen.notes[1].contains("1 targets left out"), "{seen:?}");
    let (canary, stable) = counts(&seen).unwrap();
    let share = canary.total as f64 / (canary.total + stable.total) as f64;
    assert!((0.35..0.65).contains(&share), "{share}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_and_a_certificate_are_used_and_never_told() {
    let authority = Authority::new();
    let setup = PrometheusSetup {
        targets_urls: Vec::new(),
        login: true,
        tls: Some(&authority),
    };
    let Some(prometheus) = portolan_testbed::Prometheus::start(&setup) else {
        return;
    };
    let url = prometheus.url();
    let with = |tls: Tls, authorization| {
        let settings = ServerSettings {
            tls,
            authorization,
            ..settings(&url)
        };
        Prometheus::new(settings).unwrap()
    };
    let trusted = Tls {
        authorities: vec![authority.certificate.clone()],
        ..Tls::default()
    };
    let basic = |password: &str| Authorization::Basic(Credentials::new(USER, password));
    let good = with(trusted.clone(), basic(PASSWORD));
    assert!(matches!(
        good.query("vector(1)", None).await,
        Answer::Series(_)
    ));
    let wrong = with(trusted.clone(), basic("wr0ng-passw0rd"));
    let answer = wrong.query("vector(1)", None).await;
    assert!(
        matches!(&answer, Answer::Refused(message) if message.contains("401")),
        "{answer:?}"
    );
    let stranger = with(Tls::default(), basic(PASSWORD))
        .query("vector(1)", None)
        .await;
    assert!(matches!(stranger, Answer::Down(_)), "{stranger:?}");
    for told in [
        format!("{answer:?}"),
        format!("{stranger:?}"),
        format!("{wrong:?}"),
    ] {
        assert!(
            !told.contains("wr0ng") && !told.contains(PASSWORD),
            "{told}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_tokens_and_a_path_reach_the_server() {
    let server = HttpServer::start(|_| {
        Reply::ok(r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#)
    });
    let settings = ServerSettings {
        authorization: Authorization::Bearer(Secret::from("t0ken")),
        headers: vec![("X-Scope-OrgID".to_owned(), Secret::from("team"))],
        ..settings(&format!("{}/prometheus/", server.url()))
    };
    let prometheus = Prometheus::new(settings).unwrap();
    assert_eq!(prometheus.query("up", Some(1_500)).await, Answer::Nothing);
    let request = &server.requests()[0];
    assert_eq!(request.path(), "/prometheus/api/v1/query");
    assert_eq!(request.header("authorization"), Some("Bearer t0ken"));
    assert_eq!(request.header("x-scope-orgid"), Some("team"));
    let body = String::from_utf8_lossy(&request.body).into_owned();
    assert!(
        body.contains("time=1.500") && body.contains("query=up"),
        "{body}"
    );
    assert!(!format!("{prometheus:?}").contains("t0ken"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_in_files_are_read_again_before_each_question() {
    let server = HttpServer::start(|_| {
        Reply::ok(r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#)
    });
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let files = ServerFiles {
        address: server.url(),
        token: Some(file("token", "first-t0ken\n")),
        headers: vec![("X-Scope-OrgID".to_owned(), file("team", "red"))],
        ..ServerFiles::default()
    };
    let reloading = FileServer::new(files.clone()).unwrap();
    let ask = async || {
        let current = reloading.current().unwrap();
        assert_eq!(current.query("up", None).await, Answer::Nothing);
        let request = server.requests().pop().unwrap();
        let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
        (header("authorization"), header("x-scope-orgid"))
    };
    assert_eq!(
        ask().await,
        ("Bearer first-t0ken".to_owned(), "red".to_owned())
    );
    file("token", "second-t0ken");
    file("team", "blue\n");
    assert_eq!(
        ask().await,
        ("Bearer second-t0ken".to_owned(), "blue".to_owned())
    );
    assert!(!format!("{reloading:?} {files:?}").contains("t0ken"));

    // A file that is gone is named; when it is back, the server is too.
    std::fs::remove_file(directory.path().join("token")).unwrap();
    let error = reloading.current().unwrap_err().to_string();
    assert!(
        error.contains("cannot read `") && error.contains("token`"),
        "{error}"
    );
    assert!(FileServer::new(files.clone()).is_err());
    file("token", "third-t0ken");
    assert_eq!(ask().await.0, "Bearer third-t0ken");

    // A user with a password goes without the token.
    let basic = ServerFiles {
        token: None,
        user: Some((USER.to_owned(), file("password", PASSWORD))),
        ..files.clone()
    };
    let _ = basic.server().unwrap().query("up", None).await;
    let request = server.requests().pop().unwrap();
    assert!(
        request
            .header("authorization")
            .is_some_and(|told| told.starts_with("Basic "))
    );
    file("token", &"x".repeat(2 << 20));
    let error = FileServer::new(files).unwrap_err();
    assert!(
        std::error::Error::source(&error)
            .unwrap()
            .to_string()
            .contains("1 MiB")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_large_and_strange_answers_are_told_apart() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let quick = |address: &str| {
        let settings = ServerSettings {
            deadline: Duration::from_millis(300),
            limits: Limits {
                bytes: 10_000,
                ..Limits::default()
            },
            ..ServerSettings::new(address)
        };
        Prometheus::new(settings).unwrap()
    };
    let answer = quick(&address).query("up", None).await;
    assert!(matches!(answer, Answer::Slow(_)), "{answer:?}");
    let dripping =
        HttpServer::start(|_| Reply::ok(vec![b' '; 9_000]).drip(Duration::from_millis(5)));
    let answer = quick(&dripping.url()).query("up", None).await;
    assert!(matches!(answer, Answer::Slow(_)), "{answer:?}");
    let large = HttpServer::start(|_| Reply::ok(vec![b' '; 20_000]));
    let answer = quick(&large.url()).query("up", None).await;
    assert!(matches!(answer, Answer::TooMuch(_)), "{answer:?}");
    let page = HttpServer::start(|_| Reply::ok("<html>log in"));
    let answer = quick(&page.url()).query("up", None).await;
    assert!(matches!(answer, Answer::Down(_)), "{answer:?}");
    let elsewhere = HttpServer::start(|_| Reply::redirect("http://127.0.0.1:1/"));
    let answer = quick(&elsewhere.url()).query("up", None).await;
    assert!(matches!(answer, Answer::Down(_)), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_can_count() {
    let server = HttpServer::start(|request| {
        let is_canary = request.target.contains("slot=web-b");
        match request.path() {
            "/each" if is_canary => Reply::ok(r#"{"bad": 3, "total": 10}"#),
            "/each" => Reply::ok(r#"{"bad": 1, "total": 90}"#),
            "/both" => Reply::ok(
                r#"{"canary": {"bad": 3, "total": 10}, "stable": {"bad": 1, "total": 90}}"#,
            ),
            _ => Reply::status(503),
        }
    });
    let (prometheus, arms) = (client("http://127.0.0.1:1"), arms());
    let ask = async |path: &str| {
        let url = format!("{}{path}", server.url());
        let metric = metric(&json!({"name": "http", "http": {"url": url}}));
        measure(&prometheus, &metric, question(&arms, 100, 200)).await
    };
    for path in [
        "/each?slot=$(slot)&from=$(from)&to=$(to)",
        "/both?ns=$(namespace)",
    ] {
        let measured = ask(path).await;
        let expected = (Counts { total: 10, bad: 3 }, Counts { total: 90, bad: 1 });
        assert_eq!(counts(&measured), Some(expected), "{measured:?}");
    }
    assert_eq!(
        server.requests()[0].target,
        "/each?slot=web-b&from=100&to=200"
    );
    assert_eq!(ask("/busy").await.measurement, Some(Measurement::Slow));
    let link = json!({"name": "http", "http": {"url": "http://169.254.169.254/?of=$(slot)"}});
    let link = measure(&prometheus, &metric(&link), question(&arms, 100, 200)).await;
    let told = format!("{:?}", link.measurement);
    assert!(told.contains("own link, which is never called"), "{told}");
    let each = ask("/each").await;
    assert!(
        matches!(each.measurement, Some(Measurement::Down(_))),
        "{each:?}"
    );
}
