//! etcd does what every engine must do, behind TLS and a login too; and a cluster's dead members are passed over.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_store::conformance::{Extent, check};
use portolan_store::etcd::{Etcd, EtcdLogin, EtcdOptions, EtcdTls};
use portolan_store::{Compare, Engine, Incarnation, Range, Span, Store, StoreError, Transaction};
use portolan_testbed::{Authority, EtcdSetup};
use tokio::runtime::Runtime;

const SEQUENCES: u32 = 60;
const LONG_SEQUENCES: u32 = 1_000;

fn runtime() -> Runtime {
    Runtime::new().expect("a runtime")
}

fn engine(options: EtcdOptions) -> Arc<dyn Engine> {
    Arc::new(Etcd::new(options).expect("usable options"))
}

#[test]
fn etcd_conforms() {
    let Some(server) = portolan_testbed::Etcd::start(&EtcdSetup::default()) else {
        return;
    };
    let is_long = std::env::var_os("PORTOLAN_LONG").is_some();
    let sequences = if is_long { LONG_SEQUENCES } else { SEQUENCES };
    eprintln!("sequences on etcd: {sequences} of {LONG_SEQUENCES}");
    let runtime = runtime();
    let engine = runtime.block_on(async { engine(EtcdOptions::new([&server.url])) });
    check(
        &runtime,
        &engine,
        Extent {
            sequences,
            seed: 12,
        },
    );
    runtime.block_on(async {
        let store = Store::new(Arc::clone(&engine));
        let incarnation = Incarnation::open(&store).await.expect("opens");
        assert!(incarnation.cluster.is_some());
        let status = store.status().await.expect("a status");
        assert_eq!(status.cluster, incarnation.cluster);
        largest_values_come_back_in_smaller_pages(&store).await;
    });
}

async fn largest_values_come_back_in_smaller_pages(store: &Store) {
    for number in 0..90 {
        let create = Transaction::create(format!("/large/{number:03}"), vec![b'x'; 512 << 10]);
        assert!(store.commit(create).await.expect("an answer").succeeded);
    }
    let mut count = 0;
    let all = Span::prefix("/large/");
    let scanned = store.scan(&all, None, |record| {
        assert_eq!(record.value.len(), 512 << 10);
        count += 1;
        Ok(())
    });
    scanned.await.expect("a list");
    assert_eq!(count, 90);
}

#[test]
fn etcd_is_reached_with_certificates_only() {
    let authority = Authority::new();
    let setup = EtcdSetup {
        tls: Some(&authority),
        ..EtcdSetup::default()
    };
    let Some(server) = portolan_testbed::Etcd::start(&setup) else {
        return;
    };
    let with = |identity: Option<(String, String)>| EtcdOptions {
        tls: Some(EtcdTls {
            authority: authority.certificate.clone(),
            identity,
        }),
        read_deadline: Duration::from_secs(3),
        ..EtcdOptions::new([&server.url])
    };
    runtime().block_on(async {
        let identity = (
            authority.server_certificate.clone(),
            authority.server_key.clone(),
        );
        let store = Store::new(engine(EtcdOptions {
            read_deadline: Duration::from_secs(30),
            ..with(Some(identity))
        }));
        let outcome = store.commit(Transaction::create("/tls", "x")).await;
        assert!(outcome.expect("an answer").succeeded);
        let without = engine(with(None)).range(Range::key("/tls")).await;
        assert!(
            matches!(without, Err(StoreError::Unavailable { .. })),
            "{without:?}"
        );
        let foreign = EtcdTls {
            authority: Authority::new().certificate,
            identity: None,
        };
        let foreign = EtcdOptions {
            tls: Some(foreign),
            ..with(None)
        };
        let refused = engine(foreign).range(Range::key("/tls")).await;
        assert!(
            matches!(refused, Err(StoreError::Unavailable { .. })),
            "{refused:?}"
        );
    });
}

/// One call to etcd's JSON gateway, for what only administrators do. Returns the answer.
fn gateway(url: &str, path: &str, token: &str, body: &str) -> String {
    let address = url.strip_prefix("http://").expect("without TLS");
    let mut stream = TcpStream::connect(address).expect("a connection");
    let length = body.len();
    let login = match token {
        "" => String::new(),
        token => format!("authorization: {token}\r\n"),
    };
    write!(
        stream,
        "POST /v3/{path} HTTP/1.0\r\nhost: x\r\n{login}content-length: {length}\r\n\r\n{body}"
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let is_fine = answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200");
    assert!(is_fine, "{path}: {answer}");
    answer
}

/// Ends every login of root, by giving it the password that it has.
fn end_logins(url: &str, password: &str) {
    let login = format!(r#"{{"name":"root","password":"{password}"}}"#);
    let answer = gateway(url, "auth/authenticate", "", &login);
    let (_, rest) = answer.split_once(r#""token":""#).expect("a token");
    let token = rest.split('"').next().expect("it ends");
    gateway(url, "auth/user/changepw", token, &login);
}

#[test]
fn a_login_is_made_and_made_again_when_it_has_ended() {
    let Some(server) = portolan_testbed::Etcd::start(&EtcdSetup::default()) else {
        return;
    };
    let runtime = runtime();
    let login = |password: &str| {
        let login = EtcdLogin {
            user: "root".to_owned(),
            password: password.to_owned(),
        };
        assert!(!format!("{login:?}").contains(password));
        let options = EtcdOptions {
            login: Some(login),
            ..EtcdOptions::new([&server.url])
        };
        engine(options)
    };
    let _inside = runtime.enter();
    // Until etcd is ready.
    let ready =
        runtime.block_on(engine(EtcdOptions::new([&server.url])).range(Range::key("/ready")));
    ready.expect("etcd answers");
    gateway(
        &server.url,
        "auth/user/add",
        "",
        r#"{"name":"root","password":"lamp"}"#,
    );
    gateway(&server.url, "auth/role/add", "", r#"{"name":"root"}"#);
    gateway(
        &server.url,
        "auth/user/grant",
        "",
        r#"{"user":"root","role":"root"}"#,
    );
    gateway(&server.url, "auth/enable", "", "{}");
    runtime.block_on(async {
        let store = Store::new(login("lamp"));
        let first = store.commit(Transaction::create("/login", "x")).await;
        assert!(first.expect("an answer").succeeded);
        let mut watcher = store.watch(Span::key("/login"), 1).await.expect("a watch");
        watcher.next().await.expect("told");
        end_logins(&server.url, "lamp");
        let again = store.commit(Transaction::create("/login/again", "x")).await;
        assert!(again.expect("a new login").succeeded);
        let refused = login("wick").range(Range::key("/login")).await;
        let Err(StoreError::Denied { detail }) = refused else {
            panic!("{refused:?}");
        };
        assert!(!detail.contains("wick"));
        let without = engine(EtcdOptions::new([&server.url]))
            .range(Range::key("/login"))
            .await;
        assert!(
            matches!(without, Err(StoreError::Denied { .. })),
            "{without:?}"
        );
    });
}

/// A relay before an etcd that can be cut off, as a member that dies.
struct Relay {
    url: String,
    cut: Arc<std::sync::atomic::AtomicBool>,
}

impl Relay {
    fn start(to: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let to = to.strip_prefix("http://").expect("without TLS").to_owned();
        let cut = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let is_cut = Arc::clone(&cut);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if is_cut.load(std::sync::atomic::Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(&to) else {
                    continue;
                };
                for (from, into) in [(&client, &server), (&server, &client)] {
                    let (from, into) = (
                        from.try_clone().expect("a socket"),
                        into.try_clone().expect("a socket"),
                    );
                    let is_cut = Arc::clone(&is_cut);
                    std::thread::spawn(move || pump(from, into, &is_cut));
                }
            }
        });
        Self { url, cut }
    }

    fn cut(&self) {
        self.cut.store(true, std::sync::atomic::Ordering::SeqCst);
    }

    fn heal(&self) {
        self.cut.store(false, std::sync::atomic::Ordering::SeqCst);
    }
}

/// Copies until it is cut; then both sides see the connection end, in the middle of whatever they say.
fn pump(mut from: TcpStream, mut into: TcpStream, is_cut: &std::sync::atomic::AtomicBool) {
    let mut buffer = [0; 16 << 10];
    from.set_read_timeout(Some(Duration::from_millis(20)))
        .expect("a timeout");
    loop {
        if is_cut.load(std::sync::atomic::Ordering::SeqCst) {
            break;
        }
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) if into.write_all(&buffer[..count]).is_err() => break,
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) => {}
            Err(_) => break,
        }
    }
    let _ = from.shutdown(std::net::Shutdown::Both);
    let _ = into.shutdown(std::net::Shutdown::Both);
}

/// Connections break all the time while many count in one key and a watch follows: each count is there once, and the watch
/// tells every revision once.
#[test]
fn broken_connections_lose_no_write_and_no_event() {
    let Some(server) = portolan_testbed::Etcd::start(&EtcdSetup::default()) else {
        return;
    };
    let relays: Vec<Relay> = (0..3).map(|_| Relay::start(&server.url)).collect();
    let options = EtcdOptions::new(relays.iter().map(|relay| relay.url.as_str()));
    runtime().block_on(async {
        let store = Store::new(engine(options)).with_deadline(Duration::from_mins(1));
        let mut watcher = store.watch(Span::key("/count"), 1).await.expect("a watch");
        let counters: Vec<_> = (0..6)
            .map(|_| tokio::spawn(count(store.clone(), 25)))
            .collect();
        let breaker = tokio::task::spawn_blocking(move || {
            for round in 0..12 {
                let relay = &relays[round % relays.len()];
                relay.cut();
                std::thread::sleep(Duration::from_millis(60));
                relay.heal();
            }
            relays
        });
        for counter in counters {
            counter.await.expect("a counter");
        }
        let _relays = breaker.await.expect("the breaker");
        let record = store
            .get("/count")
            .await
            .expect("an answer")
            .expect("counted");
        assert_eq!((&record.value[..], record.version), (&b"150"[..], 150));
        let mut told = 0;
        let start = Instant::now();
        while told < 150 {
            assert!(
                start.elapsed() < Duration::from_mins(1),
                "only {told} of 150 are told"
            );
            if let portolan_store::Update::Changes { events, .. } =
                watcher.next().await.expect("no error")
            {
                told += 1;
                let portolan_store::Event::Put(record) = &events[0] else {
                    panic!("{events:?}")
                };
                assert_eq!(record.value, told.to_string());
            }
        }
    });
}

async fn count(store: Store, times: u32) {
    let mut done = 0;
    while done < times {
        let seen = store.get("/count").await.expect("an answer");
        let (revision, value) = seen.map_or((0, 0), |record| {
            let text = std::str::from_utf8(&record.value).expect("text");
            (record.mod_revision, text.parse::<u32>().expect("a number"))
        });
        let next = Transaction::new()
            .when(Compare::unchanged("/count", revision))
            .put("/count", (value + 1).to_string());
        if store.commit(next).await.expect("found out").succeeded {
            done += 1;
        }
    }
}

#[test]
fn releases_with_known_bugs_are_told() {
    let Some(server) = portolan_testbed::Etcd::start(&EtcdSetup::default()) else {
        return;
    };
    runtime().block_on(async {
        let dead = "http://127.0.0.1:1".to_owned();
        let etcd = Etcd::new(EtcdOptions::new([server.url.clone(), dead])).expect("usable options");
        let members = etcd.members().await;
        let version = members[0].version.clone().expect("answers");
        assert_eq!(members[0].bugs, portolan_store::etcd::known_bugs(&version));
        assert!(members[1].version.is_err());
        let page = etcd.range(Range::key("/any")).await;
        assert!(page.is_ok(), "the dead member is passed over: {page:?}");
    });
}

/// What etcd's own limit does: puts are refused, everything that makes room goes on.
#[test]
fn a_full_etcd_refuses_puts_and_takes_reads_deletes_and_compaction() {
    let setup = EtcdSetup {
        quota_bytes: Some(4 << 20),
        ..EtcdSetup::default()
    };
    let Some(server) = portolan_testbed::Etcd::start(&setup) else {
        return;
    };
    runtime().block_on(async {
        let store = Store::new(engine(EtcdOptions::new([&server.url])));
        let mut written = Vec::new();
        let full = loop {
            assert!(written.len() < 100, "etcd takes more than its quota");
            let key = format!("/full/{}", written.len());
            match store
                .commit(Transaction::create(key.clone(), vec![b'x'; 256 << 10]))
                .await
            {
                Ok(outcome) => written.push((key, outcome.revision)),
                Err(error) => break error,
            }
        };
        assert!(matches!(full, StoreError::Full { .. }), "{full}");
        assert!(
            full.to_string().contains("`portolan store compact`"),
            "{full}"
        );
        for (key, revision) in written {
            let record = store.get(key.clone()).await.expect("reads go on");
            assert_eq!(record.map(|record| record.mod_revision), Some(revision));
            let removed = store.commit(Transaction::remove(key, revision)).await;
            assert!(removed.expect("deletes go on").succeeded);
        }
        let revision = store.status().await.expect("a status").revision;
        store.compact(revision).await.expect("compaction goes on");
    });
}

#[test]
fn without_a_runtime_there_is_an_error_and_no_panic() {
    let refused = Etcd::new(EtcdOptions::new(["http://127.0.0.1:1"]));
    assert!(matches!(
        refused.err(),
        Some(StoreError::Unavailable { .. })
    ));
}

#[test]
fn addresses_and_certificates_must_fit_together() {
    runtime().block_on(async {
        let wrong = |address: &str, tls: Option<EtcdTls>| {
            let options = EtcdOptions {
                tls,
                ..EtcdOptions::new([address])
            };
            Etcd::new(options).err().map(|error| error.to_string())
        };
        let tls = || {
            Some(EtcdTls {
                authority: Authority::new().certificate,
                identity: None,
            })
        };
        for (address, tls) in [
            ("https://127.0.0.1:1", None),
            ("http://127.0.0.1:1", tls()),
            ("not one", None),
        ] {
            let error = wrong(address, tls).expect("refused");
            assert!(error.contains(address), "{error}");
        }
        assert!(Etcd::new(EtcdOptions::new(Vec::<String>::new())).is_err());
        let login = |address: &str| EtcdOptions {
            login: Some(EtcdLogin {
                user: "root".to_owned(),
                password: "lamp".to_owned(),
            }),
            ..EtcdOptions::new([address])
        };
        let sent = Etcd::new(login("http://10.0.0.1:2379")).err();
        let sent = sent.expect("a password in the clear").to_string();
        assert!(
            sent.contains("over `https://` only") && !sent.contains("lamp"),
            "{sent}"
        );
        for address in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"] {
            assert!(Etcd::new(login(address)).is_ok(), "{address}");
        }
    });
}
