//! What a store is kept with over the years: incarnations, shards, levels, backups and blobs.

use std::io::{Cursor, Read};
use std::sync::Arc;
use std::time::Duration;

use portolan_store::blob::{BlobArea, BlobError};
use portolan_store::conformance::{DiskFault, ForgetfulDisk};
use portolan_store::level::{self, Migration, NEWEST_LEVEL, announce, migrate, open_level};
use portolan_store::{
    BackupError, Embedded, EmbeddedOptions, Incarnation, ManualClock, Ownership, Position, Range,
    ShardLayout, Span, Store, StoreError, Transaction, backup, backup_into, compare_backup,
    compare_file, copy_store, read_backup, restore, restore_file, try_backup,
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
    let origin = Position {
        incarnation: 4,
        revision: 17,
    };
    let next = Incarnation::raise(&store, origin).await.expect("raised");
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
        origin: None,
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
/// A store as the program before level 2 left it: `tests/data/level-1.redb.gz`, with twelve nodes.
fn level_1(directory: &std::path::Path) -> Store {
    let packed = std::fs::File::open("tests/data/level-1.redb.gz").expect("the fixture");
    let path = directory.join("store.redb");
    let mut unpacked = std::fs::File::create(&path).expect("a file");
    let mut packed = flate2::read::GzDecoder::new(packed);
    std::io::copy(&mut packed, &mut unpacked).expect("unpacked");
    let engine = Embedded::open(&path, EmbeddedOptions::default());
    Store::new(Arc::new(engine.expect("opens")))
}

async fn incarnation_text(store: &Store) -> String {
    let record = store.get("/portolan/v1/meta/incarnation").await;
    let record = record.expect("an answer").expect("it is there");
    String::from_utf8(record.value.to_vec()).expect("text")
}

#[tokio::test]
async fn data_of_level_1_is_read_and_converted_to_level_2() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = level_1(directory.path());
    let before = incarnation_text(&store).await;
    assert_eq!(before.split(' ').count(), 3, "{before}");
    let old = Incarnation::open(&store).await.expect("old data is read");
    // The old side of a mixed pair keeps the level down.
    let (lease, _) = store.grant(hour()).await.expect("a lease");
    announce(&store, "old", 1, lease).await.expect("announced");
    announce(&store, "new", NEWEST_LEVEL, lease)
        .await
        .expect("announced");
    let kept = migrate(&store, level::MIGRATIONS, NEWEST_LEVEL)
        .await
        .expect("kept");
    assert_eq!((kept.level, kept.converted), (1, 0));
    assert_eq!(incarnation_text(&store).await, before);
    // A restore meanwhile writes what the old side reads.
    let origin = Position {
        incarnation: 1,
        revision: 9,
    };
    let raised = Incarnation::raise(&store, origin).await.expect("raised");
    assert_eq!(incarnation_text(&store).await.split(' ').count(), 3);
    assert_eq!((raised.number, raised.origin), (2, None));
    // It leaves.
    store.revoke(lease).await.expect("an answer");
    let risen = migrate(&store, level::MIGRATIONS, NEWEST_LEVEL)
        .await
        .expect("converted");
    assert_eq!((risen.level, risen.converted), (2, 1));
    assert_eq!(incarnation_text(&store).await.split(' ').count(), 4);
    let new = Incarnation::open(&store).await.expect("opens");
    assert_eq!((new.uuid, new.cluster), (raised.uuid, old.cluster));
    let again = migrate(&store, level::MIGRATIONS, NEWEST_LEVEL)
        .await
        .expect("nothing to do");
    assert_eq!((again.level, again.converted), (2, 0));
    let refused = open_level(&store, 1)
        .await
        .expect_err("the old side comes back");
    assert!(
        refused.to_string().contains("use a newer program"),
        "{refused}"
    );
    let nodes = store
        .range(Range::new(Span::prefix("/portolan/v1/node/")))
        .await;
    assert_eq!(nodes.expect("a list").records.len(), 12);
}

#[tokio::test]
async fn a_backup_of_level_1_is_restored_and_converted() {
    let store = store();
    let path = std::path::Path::new("tests/data/level-1.backup");
    let summary = restore_file(&store, path).await.expect("restored");
    compare_file(&store, path).await.expect("the same");
    assert_eq!(open_level(&store, NEWEST_LEVEL).await.expect("opens"), 1);
    let risen = migrate(&store, level::MIGRATIONS, NEWEST_LEVEL)
        .await
        .expect("converted");
    assert_eq!((risen.level, risen.converted), (2, 1));
    let raised = Incarnation::raise(
        &store,
        Position {
            incarnation: summary.incarnation,
            revision: summary.revision,
        },
    );
    let raised = raised.await.expect("raised");
    let origin = raised.origin.expect("level 2 knows it");
    assert_eq!(origin.revision, summary.revision);
}

#[tokio::test]
async fn scheduled_backups_are_tried_and_the_oldest_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = filled().await;
    let mut paths = Vec::new();
    for number in 0..4 {
        create(&store, &format!("/portolan/v1/more/{number}"), "x").await;
        let (path, summary) = backup_into(&store, directory.path(), 2)
            .await
            .expect("a backup");
        assert_eq!(try_backup(&path).await.expect("restored"), summary);
        paths.push(path);
    }
    let left = std::fs::read_dir(directory.path())
        .expect("a list")
        .flatten();
    let mut left: Vec<_> = left.map(|entry| entry.path()).collect();
    left.sort();
    assert_eq!(left, paths[2..]);
    // A flipped byte is found by trying.
    let mut bytes = std::fs::read(&paths[3]).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&paths[3], bytes).expect("written");
    let damaged = try_backup(&paths[3]).await.expect_err("damaged");
    assert!(matches!(damaged, BackupError::Damaged(_)), "{damaged}");
}

#[tokio::test]
async fn a_store_is_copied_whole_to_another_and_only_to_an_empty_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let (from, to) = (filled().await, store());
    let summary = copy_store(&from, &to, directory.path())
        .await
        .expect("copied");
    assert_eq!(
        Incarnation::open(&to).await.expect("opens").number,
        summary.incarnation + 1
    );
    let again = copy_store(&from, &to, directory.path())
        .await
        .expect_err("not empty");
    assert!(matches!(again, BackupError::NotEmpty(_)), "{again}");
    assert_eq!(
        std::fs::read_dir(directory.path()).expect("a list").count(),
        0
    );
}

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
