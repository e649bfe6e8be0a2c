//! `portolan store`: backup, verify and restore of a directory, and the move to etcd and back.

mod portolan;

use std::path::Path;
use std::sync::Arc;

use portolan_store::level::{NEWEST_LEVEL, open_level};
use portolan_store::{
    Embedded, EmbeddedOptions, Engine, Incarnation, STORE_FILE, Store, Transaction,
};
use portolan_testbed::EtcdSetup;

/// A store with some nodes, as a server leaves it.
fn fill(directory: &Path) {
    std::fs::create_dir_all(directory).expect("a directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let path = directory.join(STORE_FILE);
        let engine = Embedded::open(&path, EmbeddedOptions::default()).expect("opens");
        let engine: Arc<dyn Engine> = Arc::new(engine);
        let store = Store::new(engine);
        open_level(&store, NEWEST_LEVEL).await.expect("a level");
        Incarnation::open(&store).await.expect("opens");
        for number in 0..5 {
            let create = Transaction::create(format!("/portolan/v1/node/web-{number}"), "x");
            assert!(store.commit(create).await.expect("an answer").succeeded);
        }
    });
}

fn run(directory: &Path, line: &str) -> (i32, String, String) {
    let args: Vec<&str> = line.split(' ').collect();
    let directory = directory.to_str().expect("a plain name");
    let answer = portolan::portolan_in(directory, &args);
    (answer.code, answer.stdout, answer.stderr)
}

fn run_well(directory: &Path, line: &str) -> String {
    let (code, out, err) = run(directory, line);
    assert_eq!(code, 0, "`{line}`: {out}{err}");
    out
}

#[test]
fn a_directory_is_backed_up_checked_and_restored() {
    let temp = tempfile::tempdir().expect("a directory");
    let here = temp.path();
    fill(&here.join("data"));
    let made = run_well(here, "store backup --data data --to first.backup -o json");
    for part in [
        "\"kind\": \"StoreBackup\"",
        "\"records\": 7",
        "\"incarnation\": 1",
    ] {
        assert!(made.contains(part), "{part}: {made}");
    }
    let checked = run_well(here, "store verify --backup first.backup -o json");
    assert_eq!(made, checked);
    run_well(here, "store verify --data data");
    run_well(here, "store restore --from first.backup --data new");
    let whole = run_well(here, "store verify --data new -o json");
    assert!(whole.contains("\"incarnation\": 2"), "{whole}");
    let (code, _, err) = run(here, "store restore --from first.backup --data new");
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("the store is not empty"), "{err}");
    let left: Vec<_> = std::fs::read_dir(here).expect("a list").flatten().collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn mistakes_are_told_with_what_helps() {
    let temp = tempfile::tempdir().expect("a directory");
    let here = temp.path();
    fill(&here.join("data"));
    std::fs::write(here.join("torn.backup"), "portolan-store 1\nxx").expect("a file");
    for (line, part) in [
        ("store backup --to x", "either `--data DIR` or `--etcd URL`"),
        (
            "store backup --data nowhere --to x",
            "there is no store in `nowhere`",
        ),
        (
            "store verify --backup torn.backup",
            "the backup is damaged or cut off",
        ),
        (
            "store restore --from torn.backup --data new",
            "the backup is damaged or cut off",
        ),
        (
            "store backup --data data --to a/b/c.backup",
            "cannot read or write the backup",
        ),
        (
            "store migrate --from etcd --to etcd --data data --etcd http://127.0.0.1:1",
            "from `embedded` to `etcd`",
        ),
    ] {
        let (code, out, err) = run(here, line);
        assert_eq!(code, 2, "`{line}`: {out}{err}");
        assert!(err.contains(part), "`{line}`: {err}");
    }
    assert!(
        !here.join("new").exists(),
        "nothing is made for a torn backup"
    );
}

#[test]
fn a_full_store_has_room_again_when_its_history_is_removed() {
    let temp = tempfile::tempdir().expect("a directory");
    let here = temp.path();
    let small = || EmbeddedOptions {
        max_bytes: 200 << 10,
        ..EmbeddedOptions::default()
    };
    std::fs::create_dir_all(here.join("data")).expect("a directory");
    let path = here.join("data").join(STORE_FILE);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let write = |seen: u64| Transaction::replace("/portolan/v1/node/web", seen, "x".repeat(50_000));
    let store = || Store::new(Arc::new(Embedded::open(&path, small()).expect("opens")));
    let seen = runtime.block_on(async {
        let (store, mut seen) = (store(), 0);
        loop {
            match store.commit(write(seen)).await {
                Ok(written) => seen = written.revision,
                Err(error) => {
                    assert!(
                        error.to_string().contains("`portolan store compact`"),
                        "{error}"
                    );
                    return seen;
                }
            }
        }
    });
    let told = run_well(here, "store compact --data data -o json");
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let bytes = |field: &str| told["items"][0][field].as_u64().expect("a number");
    assert!(bytes("bytesBefore") > 150_000, "{told}");
    assert!(bytes("bytesAfter") < 60_000, "only the newest: {told}");
    // There is no history any more, and that is no mistake.
    run_well(here, "store compact --data data");
    run_well(here, "store verify --data data");
    let written = runtime.block_on(async { store().commit(write(seen)).await });
    assert!(written.expect("room").succeeded);
}

#[test]
fn a_store_moves_to_etcd_and_back() {
    let Some(etcd) = portolan_testbed::Etcd::start(&EtcdSetup::default()) else {
        return;
    };
    let temp = tempfile::tempdir().expect("a directory");
    let here = temp.path();
    fill(&here.join("data"));
    let url = &etcd.url;
    run_well(
        here,
        &format!("store migrate --from embedded --to etcd --data data --etcd {url}"),
    );
    // Debian's etcd has known bugs, and they are told.
    let (code, out, err) = run(here, &format!("store verify --etcd {url} -o json"));
    assert!(out.contains("\"incarnation\": 2"), "{out}");
    assert_eq!(code == 1, err.contains("has a bug"), "{code}: {err}");
    run_well(here, &format!("store backup --etcd {url} --to etcd.backup"));
    run_well(
        here,
        &format!("store migrate --from etcd --to embedded --etcd {url} --data back"),
    );
    let whole = run_well(here, "store verify --data back -o json");
    assert!(
        whole.contains("\"incarnation\": 3") && whole.contains("\"warnings\": []"),
        "{whole}"
    );
    let (code, _, err) = run(
        here,
        &format!("store migrate --from embedded --to etcd --data data --etcd {url}"),
    );
    assert!(
        code == 2 && err.contains("the store is not empty"),
        "{code}: {err}"
    );
}
