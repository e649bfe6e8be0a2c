//! Measurements by a Prometheus server.

use futures_util::future::BoxFuture;
use portolan_prometheus::{ArmLabels, Arms, FileServer, Prometheus};
use portolan_rollout::{Measurement, Metric};

use crate::measure::{Measure, Question, QuestionArm};

impl Measure for Prometheus {
    fn measure<'a>(
        &'a self,
        metric: &'a Metric,
        question: &'a Question,
    ) -> BoxFuture<'a, Option<Measurement>> {
        Box::pin(async move {
            let arms = Arms {
                namespace: question.namespace.clone(),
                name: question.name.clone(),
                canary: labels(&question.canary),
                stable: labels(&question.stable),
                ..Arms::default()
            };
            let question = portolan_prometheus::Question {
                arms: &arms,
                from: question.from,
                to: question.to,
                warm_up_seconds: question.warm_up_seconds,
            };
            let measured = portolan_prometheus::measure(self, metric, question).await;
            tracing::debug!(metric = %metric.name, notes = ?measured.notes, "measured");
            measured.measurement
        })
    }
}

/// Credentials that cannot be read are no verdict on a revision.
impl Measure for FileServer {
    fn measure<'a>(
        &'a self,
        metric: &'a Metric,
        question: &'a Question,
    ) -> BoxFuture<'a, Option<Measurement>> {
        Box::pin(async move {
            match self.current() {
                Ok(server) => server.measure(metric, question).await,
                Err(error) => Some(Measurement::Down(told(&error))),
            }
        })
    }
}

/// An error with its causes, in one line.
fn told(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", told(cause)),
        None => error.to_string(),
    }
}

fn labels(arm: &QuestionArm) -> ArmLabels {
    ArmLabels {
        slot: arm.slot.clone(),
        revision: arm.revision.clone(),
        pod_ages: arm.pod_ages.clone(),
    }
}
