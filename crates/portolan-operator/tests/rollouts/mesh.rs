//! Requests that are counted as the routes of the cluster split them, without a Prometheus server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use portolan_judge::{Arm, Counts};
use portolan_operator::{Measure, Question};
use portolan_rollout::{Measurement, Metric, Time};

use crate::bed::shares_of;

/// Requests in a second: enough to prove a release in a few seconds.
const RATE: u64 = 20_000;

pub(crate) struct Mesh {
    client: kube::Client,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Bad requests of a thousand by image.
    bad: BTreeMap<String, u64>,
    /// What is answered instead of counts.
    instead: Option<Measurement>,
    /// Windows that were asked for, by application.
    windows: Vec<(Time, Time)>,
}

impl Mesh {
    pub(crate) fn new(client: kube::Client) -> Arc<Self> {
        Arc::new(Self {
            client,
            state: Mutex::default(),
        })
    }

    pub(crate) fn fail(&self, image: &str, of_a_thousand: u64) {
        let mut state = self.state.lock().expect("no panic");
        state.bad.insert(image.to_owned(), of_a_thousand);
    }

    pub(crate) fn answer(&self, instead: Option<Measurement>) {
        self.state.lock().expect("no panic").instead = instead;
    }

    pub(crate) fn windows(&self) -> Vec<(Time, Time)> {
        self.state.lock().expect("no panic").windows.clone()
    }

    async fn object(
        &self,
        question: &Question,
        gvk: &GroupVersionKind,
        name: &str,
    ) -> Option<DynamicObject> {
        let resource = ApiResource::from_gvk(gvk);
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &question.namespace, &resource);
        api.get_opt(name).await.ok()?
    }

    async fn arm(&self, question: &Question, slot: &str, share: u64) -> Arm {
        let gvk = GroupVersionKind::gvk("apps", "v1", "Deployment");
        let deployment = self.object(question, &gvk, slot).await;
        let image = deployment
            .map(|found| found.data["spec"]["template"]["spec"]["containers"][0]["image"].clone());
        let image = image.unwrap_or_default();
        let bad = self
            .state
            .lock()
            .expect("no panic")
            .bad
            .get(image.as_str().unwrap_or_default())
            .copied();
        let total = RATE * question.to.since(question.from) * share / 100;
        Arm {
            counts: Counts {
                total,
                bad: total * bad.unwrap_or(0) / 1_000,
            },
            pods: Vec::new(),
        }
    }

    async fn counts(&self, question: &Question) -> Option<Measurement> {
        let instead = {
            let mut state = self.state.lock().expect("no panic");
            state.windows.push((question.from, question.to));
            state.instead.clone()
        };
        if instead.is_some() {
            return instead;
        }
        let gvk = GroupVersionKind::gvk("networking.istio.io", "v1", "VirtualService");
        let routes = self.object(question, &gvk, &question.name).await?;
        let (a, b) = shares_of(&routes.data["spec"])?;
        let share = |slot: &str| if slot.ends_with("-a") { a } else { b };
        let (canary, stable) = (&question.canary.slot, &question.stable.slot);
        Some(Measurement::Counts {
            from: question.from,
            to: question.to,
            canary: self.arm(question, canary, share(canary)).await,
            stable: self.arm(question, stable, share(stable)).await,
            same_revision: None,
        })
    }
}

impl Measure for Mesh {
    fn measure<'a>(
        &'a self,
        _metric: &'a Metric,
        question: &'a Question,
    ) -> BoxFuture<'a, Option<Measurement>> {
        Box::pin(self.counts(question))
    }
}
