//! Requests that are counted as the routes of the cluster split them, without a Prometheus server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use portolan_judge::{Arm, Counts, PodCounts};
use portolan_operator::{Measure, Question};
use portolan_rollout::{Measurement, Metric, Time};
use serde_json::Value;

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
    /// How many pods of an image are bad, and their bad requests of a thousand.
    bad_pods: BTreeMap<String, (usize, u64)>,
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

    /// Only so many pods of an image fail requests, the first ones by name; the others are fine.
    pub(crate) fn fail_pods(&self, image: &str, pods: usize, of_a_thousand: u64) {
        let mut state = self.state.lock().expect("no panic");
        state
            .bad_pods
            .insert(image.to_owned(), (pods, of_a_thousand));
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
        let image = image.as_str().unwrap_or_default();
        let total = RATE * question.to.since(question.from) * share / 100;
        let (bad, bad_pods) = {
            let state = self.state.lock().expect("no panic");
            (
                state.bad.get(image).copied(),
                state.bad_pods.get(image).copied(),
            )
        };
        if let Some((bad_pods, bad)) = bad_pods {
            return self
                .arm_of_pods(question, slot, total, (bad_pods, bad))
                .await;
        }
        Arm {
            counts: Counts {
                total,
                bad: total * bad.unwrap_or(0) / 1_000,
            },
            pods: Vec::new(),
        }
    }

    /// The requests of each pod; the first ones by name fail some.
    async fn arm_of_pods(
        &self,
        question: &Question,
        slot: &str,
        total: u64,
        (bad_pods, bad): (usize, u64),
    ) -> Arm {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &question.namespace);
        let slot = slot.rsplit('-').next().unwrap_or_default();
        let params = ListParams::default().labels(&format!("portolan.dev/slot={slot}"));
        let pods = pods.list(&params).await.map(|list| list.items);
        let pods = pods.unwrap_or_default().into_iter();
        let alive = pods.filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let mut names: Vec<String> = alive.filter_map(|pod| pod.metadata.name).collect();
        names.sort();
        let each = total / names.len().max(1) as u64;
        let counted = names
            .into_iter()
            .enumerate()
            .map(|(number, name)| PodCounts {
                name,
                counts: Counts {
                    total: each,
                    bad: if number < bad_pods {
                        each * bad / 1_000
                    } else {
                        0
                    },
                },
                age_seconds: 600,
            });
        let pods: Vec<PodCounts> = counted.collect();
        let sum = |of: fn(&Counts) -> u64| pods.iter().map(|pod| of(&pod.counts)).sum();
        Arm {
            counts: Counts {
                total: sum(|counts| counts.total),
                bad: sum(|counts| counts.bad),
            },
            pods,
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
        let share = |slot: &str| {
            let by_weight = if slot.ends_with("-a") { a } else { b };
            by_weight.max(share_besides(&routes.data["spec"], slot))
        };
        let (canary, stable) = (&question.canary.slot, &question.stable.slot);
        Some(Measurement::Counts {
            from: question.from,
            to: question.to,
            canary: self.arm(question, canary, share(canary)).await,
            stable: self.arm(question, stable, share(stable)).await,
            same_revision: None,
            counted_by: Some("source".to_owned()),
        })
    }
}

/// The requests in percent that a slot gets besides its weight: those that match, or copies.
fn share_besides(spec: &Value, slot: &str) -> u64 {
    let routes = spec["http"].as_array().into_iter().flatten();
    let shares = routes.map(|route| {
        let name = route["name"].as_str().unwrap_or_default();
        let is_matched =
            name.starts_with("portolan-match") && route["route"][0]["destination"]["host"] == slot;
        let mirror = &route["mirrors"][0];
        let is_mirrored = mirror["destination"]["host"] == slot;
        let copies = mirror["percentage"]["value"]
            .as_f64()
            .filter(|_| is_mirrored);
        copies
            .map_or(0, |copies| copies as u64)
            .max(if is_matched { 10 } else { 0 })
    });
    shares.max().unwrap_or(0)
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
