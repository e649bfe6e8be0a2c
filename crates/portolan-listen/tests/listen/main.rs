//! The listener against clients that are slow, greedy, broken or simply many.

mod drain;
mod harness;
mod limits;
mod routes;
mod tls;
