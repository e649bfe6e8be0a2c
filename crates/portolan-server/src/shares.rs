//! Shares: what one node gives to others. The server decides who may have one and keeps what it cannot read.
//!
//! ```text
//! publisher ──SharePut──▶ store: /share/<uuid>/<version>.<wrap>/<part>, then the status of the Share: the commit
//! consumer  ──ShareWant─▶ encrypted to it: sent │ may have it: a holder encrypts it again │ may not: refused
//! ```

mod keeper;
mod request;
mod results;
mod store;
mod versions;

pub(crate) use keeper::{ShareInput, ShareKeeper};
pub(crate) use results::{ResultInput, ResultKeeper, ResultWork};
