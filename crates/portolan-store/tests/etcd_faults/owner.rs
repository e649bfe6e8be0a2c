//! An owner of a shard as a process of its own, which is stopped while it writes.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use portolan_store::{
    Compare, Engine, Incarnation, Ownership, Resolution, Revision, Store, StoreError, Transaction,
};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::engine;

/// Tells the process where etcd is.
pub(crate) const URLS: &str = "PORTOLAN_TEST_OWNER";
const LEASE: Duration = Duration::from_secs(3);
const SHARD: u32 = 7;
const COUNTER: &str = "/portolan/v1/owner/counter";
const SOON: Duration = Duration::from_mins(1);

/// Takes the shard and counts until its fence does not hold any more.
pub(crate) fn act(urls: &[String]) {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = Store::new(engine(urls));
        let owned = claim(&store).await;
        println!("claimed {}", owned.epoch.create_revision);
        while let Some(revision) = count(&store, &owned).await {
            println!("wrote {revision}");
        }
        println!("fenced");
    });
}

/// Takes the shard as soon as nobody owns it.
async fn claim(store: &Store) -> Ownership {
    let incarnation = Incarnation::open(store).await.expect("opens");
    let start = Instant::now();
    loop {
        let (lease, _) = store.grant(LEASE).await.expect("a lease");
        let claimed = Ownership::claim(store, &incarnation, SHARD, "owner", lease).await;
        if let Some(owned) = claimed.expect("an answer") {
            return owned;
        }
        store.revoke(lease).await.expect("an answer");
        assert!(start.elapsed() < SOON, "the owner keeps its shard");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Counts one further under the fence; `None` when the shard is no longer owned. The lease is not renewed: a process that
/// believes in its lease would stop in time, and here only the fence is to stop it.
async fn count(store: &Store, owned: &Ownership) -> Option<Revision> {
    loop {
        // The deadline of a call may pass while the process is stopped.
        let Ok(seen) = store.get(COUNTER).await else {
            continue;
        };
        let revision = seen.map_or(0, |record| record.mod_revision);
        let write = Transaction::new()
            .when(owned.fence())
            .when(Compare::unchanged(COUNTER, revision))
            .put(COUNTER, "x");
        match store.commit(write).await {
            Ok(outcome) if outcome.succeeded => return Some(outcome.revision),
            Err(StoreError::Unknown {
                operation: Some(operation),
                ..
            }) => {
                if let Ok(Resolution::Happened(revision)) = store.resolve(operation).await {
                    return Some(revision);
                }
            }
            _ => {}
        }
        let fence = Transaction::new().when(owned.fence());
        if store
            .commit(fence)
            .await
            .is_ok_and(|outcome| !outcome.succeeded)
        {
            return None;
        }
    }
}

/// Starts an owner, stops it in the middle of its writes, takes its shard, and lets it go on.
pub(crate) fn pause_one(runtime: &Runtime, engine: &Arc<dyn Engine>, urls: &[String], round: u32) {
    let mut owner = Owner::start(urls);
    let claimed = owner.number("claimed");
    let mut last = claimed;
    for _ in 0..5 + round {
        last = owner.number("wrote");
    }
    owner.signal("STOP");
    let store = Store::new(Arc::clone(engine));
    let (next, own) = runtime.block_on(async {
        let next = claim(&store).await;
        let own = count(&store, &next).await.expect("the owner of now");
        (next, own)
    });
    owner.signal("CONT");
    // What it had written before it was stopped, and what its last attempt became.
    while let Some(revision) = owner.next("wrote") {
        assert!(revision > last, "told in order");
        last = revision;
    }
    assert!(
        last < next.epoch.create_revision && next.epoch.create_revision < own,
        "the old owner wrote at {last}, after {} took over",
        next.epoch.create_revision
    );
    runtime.block_on(next.release(&store)).expect("an answer");
}

struct Owner {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Owner {
    fn start(urls: &[String]) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut process = Command::new(program)
            .args(["--exact", "owner_process", "--nocapture"])
            .env(URLS, urls.join(","))
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        Self { process, lines }
    }

    fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(sent.expect("`kill` can be started").success());
    }

    /// The next line of a kind; `None` when the owner was fenced.
    fn next(&mut self, kind: &str) -> Option<Revision> {
        loop {
            let line = self.lines.next().expect("the owner goes on").expect("text");
            // The test harness writes its own words before the first one.
            let line = line.rsplit("... ").next().unwrap_or_default();
            match line.split_once(' ') {
                Some((word, number)) if word == kind => {
                    return Some(number.parse().expect("a number"));
                }
                _ if line == "fenced" => return None,
                _ => {}
            }
        }
    }

    fn number(&mut self, kind: &str) -> Revision {
        let told = self.next(kind);
        told.expect("it owns the shard")
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
