//! The format version of stored data, a number that only rises, and the conversions between two levels.
//!
//! ```text
//! every server announces the highest level that it can read ──▶ when all can, one converts the records
//!     ──▶ and raises `meta/level` ──▶ servers begin to write the new form
//! ```
//!
//! So an old and a new server can run at the same time, and a downgrade is possible until the level has risen. A
//! server never uses a store whose level is higher than it can read.

use bytes::Bytes;

use crate::keys::META;
use crate::{
    Compare, Incarnation, LeaseId, Record, Revision, Span, Store, StoreError, Transaction,
};

/// The highest level that this program reads and writes.
pub const NEWEST_LEVEL: u64 = 2;

/// All conversions of this program.
///
/// Level 2: an incarnation says what it was restored or moved from, so that it can be told which changes are gone.
pub const MIGRATIONS: &[Migration] = &[Migration {
    to: 2,
    prefix: "/portolan/v1/meta/incarnation",
    convert: Incarnation::to_level_2,
}];

/// How often a record that somebody else changes meanwhile is converted again.
const ATTEMPTS: u32 = 10;

/// The conversion of the records of a prefix from one level to the next.
pub struct Migration {
    /// The level that it leads to, from the one before.
    pub to: u64,
    /// The records that it is about.
    pub prefix: &'static str,
    /// The new value of a record; `None` when it has the new form already, as after an interruption.
    pub convert: fn(&Record) -> Result<Option<Bytes>, String>,
}

/// What a migration did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Migrated {
    /// The level that the store has now.
    pub level: u64,
    /// Records that were converted.
    pub converted: u64,
}

/// The level of a store. A new store gets `newest`; a store above it is refused.
pub async fn open_level(store: &Store, newest: u64) -> Result<u64, StoreError> {
    loop {
        let (level, revision) = read_level(store).await?;
        match level {
            Some(level) if level > newest => {
                return Err(StoreError::Denied {
                    detail: format!(
                        "the store has level {level}, this program reads up to {newest}: use a newer program"
                    ),
                });
            }
            Some(level) => return Ok(level),
            None => {
                let create = Transaction::replace(level_key(), revision, newest.to_string());
                if store.commit(create).await?.succeeded {
                    return Ok(newest);
                }
            }
        }
    }
}

/// Says that a server is alive and reads up to a level, as long as its lease lives. The level of the store is to be read
/// afterwards: once a server is announced, the level does not rise above what it reads.
pub async fn announce(
    store: &Store,
    server: &str,
    newest: u64,
    lease: LeaseId,
) -> Result<(), StoreError> {
    let key = format!("{}{server}", server_prefix());
    loop {
        let seen = revision_of(store, &key).await?;
        let last = revision_of(store, &last_announced_key()).await?;
        let put = Transaction::new()
            .when(Compare::unchanged(key.clone(), seen))
            .put_leased(key.clone(), newest.to_string(), lease)
            .when(Compare::unchanged(last_announced_key(), last))
            .put(last_announced_key(), server.to_owned());
        if store.commit(put).await?.succeeded {
            return Ok(());
        }
    }
}

async fn revision_of(store: &Store, key: &str) -> Result<Revision, StoreError> {
    let record = store.get(key.to_owned()).await?;
    Ok(record.map_or(0, |record| record.mod_revision))
}

/// Converts the store level by level, up to what every server that is alive can read. It can be interrupted at any point and
/// called again, and two servers may call it at once.
pub async fn migrate(
    store: &Store,
    migrations: &[Migration],
    newest: u64,
) -> Result<Migrated, StoreError> {
    let mut level = open_level(store, newest).await?;
    let mut converted = 0;
    loop {
        // Read before the announcements: a server that announces itself after them changes it, and the level stays.
        let last_announced = revision_of(store, &last_announced_key()).await?;
        if level >= newest.min(announced(store).await?.unwrap_or(newest)) {
            return Ok(Migrated { level, converted });
        }
        let next = level + 1;
        for migration in migrations.iter().filter(|migration| migration.to == next) {
            converted += convert(store, migration).await?;
        }
        let (found, revision) = read_level(store).await?;
        if found == Some(level) {
            let raise = Transaction::replace(level_key(), revision, next.to_string());
            let unseen = Compare::unchanged(last_announced_key(), last_announced);
            store.commit(raise.when(unseen)).await?;
        }
        level = open_level(store, newest).await?;
    }
}

async fn convert(store: &Store, migration: &Migration) -> Result<u64, StoreError> {
    let mut keys = Vec::new();
    let span = Span::prefix(migration.prefix);
    store
        .scan(&span, None, |record| {
            keys.push(record.key);
            Ok(())
        })
        .await?;
    let mut converted = 0;
    for key in keys {
        converted += u64::from(convert_one(store, migration, key).await?);
    }
    Ok(converted)
}

async fn convert_one(store: &Store, migration: &Migration, key: Bytes) -> Result<bool, StoreError> {
    for _ in 0..ATTEMPTS {
        let Some(record) = store.get(key.clone()).await? else {
            return Ok(false);
        };
        let value = (migration.convert)(&record).map_err(|why| StoreError::Damaged {
            detail: format!(
                "key `{}` cannot be converted to level {}: {why}",
                key.escape_ascii(),
                migration.to
            ),
        })?;
        let Some(value) = value else {
            return Ok(false);
        };
        let mut replace =
            Transaction::new().when(Compare::unchanged(key.clone(), record.mod_revision));
        replace = match record.lease {
            Some(lease) => replace.put_leased(key.clone(), value, lease),
            None => replace.put(key.clone(), value),
        };
        if store.commit(replace).await?.succeeded {
            return Ok(true);
        }
    }
    Err(StoreError::Unavailable {
        detail: format!("key `{}` changes all the time", key.escape_ascii()),
    })
}

/// The lowest of the levels that servers announce; `None` without servers.
async fn announced(store: &Store) -> Result<Option<u64>, StoreError> {
    let mut lowest = None;
    let span = Span::prefix(server_prefix());
    store
        .scan(&span, None, |record| {
            let level = parse(&record)?;
            lowest = Some(lowest.map_or(level, |lowest: u64| lowest.min(level)));
            Ok(())
        })
        .await?;
    Ok(lowest)
}

/// The level of a store as it is; 1 where none is written yet, so that every program can read what is written meanwhile.
pub async fn stored_level(store: &Store) -> Result<u64, StoreError> {
    Ok(read_level(store).await?.0.unwrap_or(1))
}

async fn read_level(store: &Store) -> Result<(Option<u64>, Revision), StoreError> {
    match store.get(level_key()).await? {
        None => Ok((None, 0)),
        Some(record) => Ok((Some(parse(&record)?), record.mod_revision)),
    }
}

fn parse(record: &Record) -> Result<u64, StoreError> {
    let text = std::str::from_utf8(&record.value).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| StoreError::Damaged {
            detail: format!("`{}` holds no level", record.key.escape_ascii()),
        })
}

fn level_key() -> String {
    format!("{META}level")
}

/// Changes with every announcement.
fn last_announced_key() -> String {
    format!("{META}last-announced")
}

fn server_prefix() -> String {
    format!("{META}server/")
}
