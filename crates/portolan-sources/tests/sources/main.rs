//! Fetching from real and from hostile servers into a cache.

#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

mod bucket;
mod dependencies;
mod desk;
mod files;
mod git;
mod helm_repository;
mod oci;
mod pins;
