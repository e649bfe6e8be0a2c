//! Where measurements come from.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use portolan_rollout::{Measurement, Metric, Time};

/// What is to be measured, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The namespace of the application.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The new revision.
    pub canary: QuestionArm,
    /// The old revision.
    pub stable: QuestionArm,
    /// The end of what was counted before.
    pub from: Time,
    /// The end of what is to be counted now.
    pub to: Time,
    /// How long requests of a fresh pod say nothing.
    pub warm_up_seconds: u64,
}

/// One of two revisions that are compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuestionArm {
    /// The name of its Service and its Deployment.
    pub slot: String,
    /// The revision.
    pub revision: String,
    /// How many seconds each pod had been ready when the window began.
    pub pod_ages: BTreeMap<String, u64>,
}

/// Measures.
pub trait Measure: Send + Sync {
    /// Asks for one metric. `None` if it is too soon for an answer.
    fn measure<'a>(
        &'a self,
        metric: &'a Metric,
        question: &'a Question,
    ) -> BoxFuture<'a, Option<Measurement>>;
}

/// Stands for measurements that nobody makes: no server was named.
pub struct NoServer;

impl Measure for NoServer {
    fn measure<'a>(
        &'a self,
        _metric: &'a Metric,
        _question: &'a Question,
    ) -> BoxFuture<'a, Option<Measurement>> {
        let message = "the operator was started without the address of a Prometheus server";
        Box::pin(async move { Some(Measurement::Down(message.to_owned())) })
    }
}
