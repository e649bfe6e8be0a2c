//! Limits of one call. They are the same for every engine, so nothing works on one engine and fails on another.
//!
//! etcd accepts 128 operations, 128 compares and 1.5 MiB per transaction. Our limits are lower, because the operation
//! slot and the fence of an owner need space.

/// Writes and reads of one branch of a transaction.
pub const MAX_OPERATIONS: usize = 120;
/// Compares of a transaction.
pub const MAX_COMPARES: usize = 120;
/// Keys, values and compares of a transaction together.
pub const MAX_TRANSACTION_BYTES: usize = 1 << 20;
/// One value.
pub const MAX_VALUE_BYTES: usize = 512 << 10;
/// One key.
pub const MAX_KEY_BYTES: usize = 1 << 10;
/// Records in one page.
pub const MAX_PAGE: usize = 1_000;
/// A page ends after the record that passes this, though its limit is not reached.
pub const PAGE_BYTES: usize = 4 << 20;
/// Seconds that a lease may be asked for, a year. etcd takes more, nobody here needs it.
pub const MAX_LEASE_SECONDS: u64 = 366 * 24 * 3600;
