//! Audits of a real API server: releases as Helm stores them, live objects, rights, and an exporter over them.

mod follow;
mod helm;
mod live;
mod releases;
mod rights;
mod seed;

use portolan_audit::{Checker, Target};
use portolan_exporter::{ScanOptions, Sources};

fn checker() -> Checker {
    Checker::new(Target::kubernetes("1.36".parse().expect("a release")))
}

fn helm_in(namespace: &str) -> ScanOptions {
    ScanOptions {
        sources: Sources::Helm,
        namespace: Some(namespace.to_owned()),
        ..ScanOptions::default()
    }
}

const PDB: &str =
    "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata:\n  name: NAME\n";
const FINE: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: NAME\n";
