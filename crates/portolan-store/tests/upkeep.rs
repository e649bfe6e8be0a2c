//! What a store is kept with over the years: incarnations, shards, levels, backups and blobs.

use std::io::{Cursor, Read};
use std::sync::Arc;
use std::time::Duration;

use portolan_store::blob::{BlobArea, BlobError};
use portolan_store::conformance::{DiskFault, ForgetfulDisk};
use portolan_store::level::{Migration, announce, migrate, open_level};
use portolan_store::{
    BackupError, Embedded, EmbeddedOptions, Incarnation, ManualClock, Ownership, Position, Range,
    ShardLayout, Span, Store, StoreError, Transaction, backup, compare_backup, read_backup,
    restore,
};

fn store() -> Store {
    let disk = ForgetfulDisk::new(DiskFault::None);
    let clock = Arc::new(ManualClock::default());
    let engine = Embedded::open_backend(disk, EmbeddedOptions::default(), clock);
    Store::new(Arc::new(engine.expect("opens")))
}

async fn create(store: &Store, key: &str, value: &str) -> u64 {
    let outcome = store
        .commit(Transaction::create(key.to_owned(), value.to_owned()))
        .await;
    outcome.expect("an answer").revision
}

fn hour() -> Duration {
    Duration::from_hours(1)
}

#[tokio::test]
async fn a_new_store_is_its_first_incarnation_and_stays_it() {
    let store = store();
    let first = Incarnation::open(&store).await.expect("opens");
    assert_eq!((first.number, first.cluster), (1, None));
    assert_eq!(Incarnation::open(&store).await.expect("opens"), first);
    let next = Incarnation::raise(&store, 4).await.expect("raised");
    assert_eq!(next.number, 5);
    assert_eq!(Incarnation::open(&store).await.expect("opens"), next);
}

#[tokio::test]
async fn data_of_another_cluster_is_refused() {
    let store = store();
    create(
        &store,
        "/portolan/v1/meta/incarnation",
        "1 00000000000000000000000000000001 00000000000000aa",
    )
    .await;
    let refused = Incarnation::open(&store)
        .await
        .expect_err("another cluster");
    assert!(
        refused
            .to_string()
            .contains("belongs to cluster 00000000000000aa, this is no etcd"),
        "{refused}"
    );
}

#[test]
fn a_position_of_another_incarnation_is_gone() {
    let now = Incarnation {
        number: 3,
        uuid: 1,
        cluster: None,
    };
    let position: Position = "3.1042".parse().expect("a position");
    assert_eq!(position.revision_in(&now).expect("of this one"), 1042);
    let old: Position = "2.1042".parse().expect("a position");
    assert!(matches!(
        old.revision_in(&now),
        Err(StoreError::Compacted { .. })
    ));
    for wrong in ["", "3", "3.", ".4", "+3.4", "3.4.5", "a.b"] {
        assert!(wrong.parse::<Position>().is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn an_old_owner_cannot_write_once_another_has_taken_over() {
    let store = store();
    let incarnation = Incarnation::open(&store).await.expect("opens");
    let (first, _) = store.grant(hour()).await.expect("a lease");
    let (second, _) = store.grant(hour()).await.expect("a lease");
    let old = Ownership::claim(&store, &incarnation, 0, "a", first)
        .await
        .expect("an answer")
        .expect("free");
    let taken = Ownership::claim(&store, &incarnation, 0, "b", second)
        .await
        .expect("an answer");
    assert_eq!(taken, None);
    let write =
        |owner: &Ownership, key: &'static str| Transaction::create(key, "x").when(owner.fence());
    assert!(
        store
            .commit(write(&old, "/portolan/v1/run/1"))
            .await
            .expect("an answer")
            .succeeded
    );

    store.revoke(first).await.expect("revoked");
    let new = Ownership::claim(&store, &incarnation, 0, "b", second)
        .await
        .expect("an answer")
        .expect("free");
    assert!(new.epoch > old.epoch);
    assert!(
        !store
            .commit(write(&old, "/portolan/v1/run/2"))
            .await
            .expect("an answer")
            .succeeded
    );
    assert!(
        store
            .commit(write(&new, "/portolan/v1/run/2"))
            .await
            .expect("an answer")
            .succeeded
    );
    // What the old owner gives up is no longer its own.
    old.release(&store).await.expect("an answer");
    assert!(
        store
            .commit(write(&new, "/portolan/v1/run/3"))
            .await
            .expect("an answer")
            .succeeded
    );
}

#[tokio::test]
async fn the_first_layout_of_shards_counts() {
    let store = store();
    let layout = ShardLayout::new(16).open(&store).await.expect("opens");
    assert_eq!(layout.count(), 16);
    assert_eq!(
        ShardLayout::new(1).open(&store).await.expect("opens"),
        layout
    );
}

fn upper(record: &portolan_store::Record) -> Result<Option<bytes::Bytes>, String> {
    let text = std::str::from_utf8(&record.value).map_err(|error| error.to_string())?;
    let upper = text.to_uppercase();
    Ok((upper != text).then(|| upper.into()))
}

const MIGRATIONS: [Migration; 1] = [Migration {
    to: 2,
    prefix: "/portolan/v1/node/",
    convert: upper,
}];

#[tokio::test]
async fn a_level_rises_when_every_server_reads_it() {
    let store = store();
    assert_eq!(open_level(&store, 1).await.expect("a new store"), 1);
    for number in 0..5 {
        create(&store, &format!("/portolan/v1/node/{number}"), "name").await;
    }
    create(&store, "/portolan/v1/run/1", "name").await;
    let (old, _) = store.grant(hour()).await.expect("a lease");
    announce(&store, "old", 1, old).await.expect("announced");
    let (new, _) = store.grant(hour()).await.expect("a lease");
    announce(&store, "new", 2, new).await.expect("announced");
    let waiting = migrate(&store, &MIGRATIONS, 2).await.expect("waits");
    assert_eq!(
        (waiting.level, waiting.converted),
        (1, 0),
        "the old server is alive"
    );

    store.revoke(old).await.expect("revoked");
    let done = migrate(&store, &MIGRATIONS, 2).await.expect("migrated");
    assert_eq!((done.level, done.converted), (2, 5));
    let again = migrate(&store, &MIGRATIONS, 2)
        .await
        .expect("nothing to do");
    assert_eq!((again.level, again.converted), (2, 0));
    let page = store
        .range(Range::new(Span::prefix("/portolan/v1/node/")))
        .await
        .expect("a page");
    assert!(page.records.iter().all(|record| record.value == "NAME"));
    assert_eq!(
        store
            .get("/portolan/v1/run/1")
            .await
            .expect("an answer")
            .expect("there")
            .value,
        "name"
    );
    let refused = open_level(&store, 1).await.expect_err("an old program");
    assert!(
        refused
            .to_string()
            .contains("the store has level 2, this program reads up to 1"),
        "{refused}"
    );
}

#[tokio::test]
async fn an_interrupted_migration_goes_on() {
    let store = store();
    open_level(&store, 1).await.expect("a new store");
    for (number, value) in ["NAME", "name", "NAME"].iter().enumerate() {
        create(&store, &format!("/portolan/v1/node/{number}"), value).await;
    }
    let done = migrate(&store, &MIGRATIONS, 2).await.expect("migrated");
    assert_eq!((done.level, done.converted), (2, 1));
}

/// A store with records of several kinds, a lease and some history.
async fn filled() -> Store {
    let store = store();
    Incarnation::open(&store).await.expect("opens");
    for number in 0..350 {
        create(
            &store,
            &format!("/portolan/v1/node/{number:03}"),
            &"v".repeat(number * 7),
        )
        .await;
    }
    let (lease, _) = store.grant(hour()).await.expect("a lease");
    let leased = Transaction::new()
        .when(portolan_store::Compare::absent("/portolan/v1/shard/0"))
        .put_leased("/portolan/v1/shard/0", "me", lease);
    store.commit(leased).await.expect("an answer");
    create(&store, "/portolan/v1/op/1/1", "op 1").await;
    create(&store, "/elsewhere", "x").await;
    store
}

fn opener(bytes: Vec<u8>) -> impl Fn() -> std::io::Result<Box<dyn Read + Send>> {
    move || Ok(Box::new(Cursor::new(bytes.clone())))
}

#[tokio::test]
async fn a_backup_restores_to_the_same_and_to_a_new_incarnation() {
    let store = filled().await;
    let mut file = Vec::new();
    let summary = backup(&store, &mut file).await.expect("written");
    assert_eq!(
        summary.records, 351,
        "nodes and the incarnation; no lease, no slot, nothing from elsewhere"
    );
    let scratch = self::store();
    let restored = restore(&scratch, opener(file.clone()))
        .await
        .expect("restored");
    assert_eq!(restored, summary);
    compare_backup(&scratch, Box::new(Cursor::new(file.clone())))
        .await
        .expect("the same");
    assert_eq!(Incarnation::open(&scratch).await.expect("opens").number, 2);
    compare_backup(&store, Box::new(Cursor::new(file.clone())))
        .await
        .expect("the same as its source");

    let twice = restore(&scratch, opener(file.clone())).await;
    assert!(matches!(twice, Err(BackupError::NotEmpty(_))), "{twice:?}");
    create(&scratch, "/portolan/v1/node/new", "x").await;
    let differs = compare_backup(&scratch, Box::new(Cursor::new(file))).await;
    assert!(matches!(differs, Err(BackupError::Differs)), "{differs:?}");
}

#[tokio::test]
async fn a_damaged_or_cut_backup_restores_nothing() {
    let source = store();
    Incarnation::open(&source).await.expect("opens");
    create(&source, "/portolan/v1/node/a", "value").await;
    let mut file = Vec::new();
    backup(&source, &mut file).await.expect("written");
    for length in 0..file.len() {
        assert!(
            read_backup(&mut &file[..length], |_, _| Ok(())).is_err(),
            "length {length}"
        );
    }
    for byte in 0..file.len() {
        let mut damaged = file.clone();
        damaged[byte] ^= 0x10;
        assert!(
            read_backup(&mut &damaged[..], |_, _| Ok(())).is_err(),
            "byte {byte}"
        );
    }
    let scratch = store();
    let half = file.len() / 2;
    assert!(
        restore(&scratch, opener(file[..half].to_vec()))
            .await
            .is_err()
    );
    let page = scratch
        .range(Range::new(Span::all()))
        .await
        .expect("a page");
    assert_eq!(page.records, [], "nothing was written");
}

#[test]
fn a_blob_is_there_whole_or_not_at_all() {
    let directory = tempfile::tempdir().expect("a directory");
    let area = BlobArea::open(directory.path()).expect("opens");
    let name = area.put(&mut &b"content"[..]).expect("stored");
    assert_eq!(area.put(&mut &b"content"[..]).expect("stored again"), name);
    assert_eq!(area.get(name).expect("there"), b"content");
    assert_eq!(area.list().expect("a list"), [name]);
    assert_eq!(
        name.to_string()
            .parse::<portolan_store::blob::BlobName>()
            .expect("a name"),
        name
    );

    let file = directory
        .path()
        .join(&name.to_string()[..2])
        .join(name.to_string());
    std::fs::write(&file, "contend").expect("a file");
    assert!(matches!(area.get(name), Err(BlobError::Damaged(_))));
    area.remove(name).expect("removed");
    assert!(matches!(area.get(name), Err(BlobError::Missing(_))));
    for wrong in [
        "",
        "..",
        "../../etc/passwd",
        &"A".repeat(64),
        &"a".repeat(63),
    ] {
        assert!(
            wrong.parse::<portolan_store::blob::BlobName>().is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn what_was_half_written_is_gone_with_the_next_start() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(BlobArea::open(directory.path()).expect("opens"));
    let left = directory.path().join("incoming").join("left");
    std::fs::write(&left, "half").expect("a file");
    let area = BlobArea::open(directory.path()).expect("opens");
    assert!(!left.exists() && area.list().expect("a list").is_empty());
}

struct Failing;

impl Read for Failing {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other(format!("no more than {}", out.len())))
    }
}

#[test]
fn a_source_that_fails_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a directory");
    let area = BlobArea::open(directory.path()).expect("opens");
    assert!(area.put(&mut Failing).is_err());
    let left = std::fs::read_dir(directory.path().join("incoming"))
        .expect("a directory")
        .count();
    assert_eq!(left, 0);
}
