//! Agents on a server: real streams over TLS, in one process.

mod alone;
mod bed;
mod live;
mod runs;
mod shares;
mod streams;
mod together;
