//! A pretended cluster: pods that start, routes that split, requests that are counted. Time passes when it is told to.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;

use portolan_judge::{Arm, Counts, PodCounts};
use portolan_rollout::{
    ConfigKind, ConfigRef, ConfigVersion, Effect, GateAnswer, Measurement, Observed, ObservedSlot,
    Phase, Record, Slot, Slots, Spec, Status, Time, Traffic, Trouble, TroubleKind, step,
};
use serde_json::{Value, json};

/// A pretended cluster with one application.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) spec: Spec,
    pub(crate) status: Option<Status>,
    pub(crate) seen: Observed,
    pub(crate) now: i64,
    /// Requests in a second, both slots together.
    pub(crate) rate: u64,
    /// Bad requests of a thousand, by the image of the revision that answers.
    pub(crate) bad: BTreeMap<String, u64>,
    /// The image of each revision that was saved.
    pub(crate) images: BTreeMap<String, String>,
    /// What happens to pods of an image.
    pub(crate) broken: BTreeMap<String, TroubleKind>,
    /// Of so many pods of image `2`, only the first fails, if it has this name.
    pub(crate) one_bad_pod: Option<(usize, String)>,
    /// What metrics answer instead of counts.
    pub(crate) metrics: Option<Measurement>,
    /// What every gate answers.
    pub(crate) gate: Option<GateAnswer>,
    /// Every record that was told.
    pub(crate) told: Vec<Record>,
    /// Every effect of the last look.
    pub(crate) effects: Vec<Effect>,
    /// How often the status changed.
    pub(crate) writes: u64,
    counted_to: i64,
}

pub(crate) fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": image}]}})
}

pub(crate) fn spec(image: &str) -> Spec {
    let spec = json!({
        "replicas": 4,
        "template": template(image),
        "service": {"port": 80},
        "strategy": {"weights": [10, 50], "stepInterval": "1m", "soak": "2m", "rollbackWindow": "5m", "drain": "30s"},
    });
    serde_json::from_value(spec).expect("a spec")
}

impl World {
    /// A cluster in which the first revision, image `1`, serves.
    pub(crate) fn stable() -> Self {
        Self::with(spec("1"))
    }

    pub(crate) fn with(spec: Spec) -> Self {
        let mut world = Self::new(spec);
        world.run_until(600, |world| world.phase() == Phase::Stable);
        world
    }

    pub(crate) fn new(spec: Spec) -> Self {
        let template = spec.template.clone();
        Self {
            spec,
            status: None,
            seen: Observed {
                name: "web".to_owned(),
                generation: 1,
                template,
                routes_accepted: true,
                ..Observed::default()
            },
            now: 1_000_000,
            rate: 100,
            bad: BTreeMap::new(),
            images: BTreeMap::new(),
            broken: BTreeMap::new(),
            one_bad_pod: None,
            metrics: None,
            gate: None,
            told: Vec::new(),
            effects: Vec::new(),
            writes: 0,
            counted_to: 1_000_000,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.status
            .as_ref()
            .map_or(Phase::Initializing, |status| status.phase)
    }

    pub(crate) fn status(&self) -> &Status {
        self.status.as_ref().expect("looked at")
    }

    /// The words of everything that happened.
    pub(crate) fn reasons(&self) -> Vec<&str> {
        self.told
            .iter()
            .map(|record| record.reason.as_str())
            .collect()
    }

    /// Changes the image, as a user does.
    pub(crate) fn release(&mut self, image: &str) {
        self.spec.template = Some(template(image));
        self.seen.template = self.spec.template.clone();
        self.seen.generation += 1;
    }

    /// Changes a tracked Secret.
    pub(crate) fn change_config(&mut self, content: &str) {
        self.seen.config = vec![ConfigVersion {
            config: ConfigRef {
                kind: ConfigKind::Secret,
                name: "keys".to_owned(),
            },
            resource_version: content.to_owned(),
            hash: content.to_owned(),
        }];
    }

    pub(crate) fn token(&mut self, command: &str, text: &str) {
        let annotations = [(format!("portolan.dev/{command}"), text.to_owned())];
        self.seen.tokens = portolan_rollout::Tokens::from_annotations(&annotations.into());
    }

    /// Looks once and does what is asked for, but for the first `lost` effects.
    pub(crate) fn look_losing(&mut self, lost: usize) {
        self.measure();
        self.seen.delivered = self.told.last().map_or(0, |record| record.number);
        let (status, effects) = step(
            &self.spec,
            self.status.as_ref(),
            &self.seen,
            Time::from_unix(self.now),
        );
        // A status is written and read again each time, as by an operator that restarts at every look.
        let text = serde_json::to_string(&status).expect("JSON");
        let read: Status = serde_json::from_str(&text).expect("a status");
        if self.status.as_ref() != Some(&read) {
            self.writes += 1;
        }
        self.status = Some(read);
        for effect in effects.iter().skip(lost) {
            self.apply(effect);
        }
        self.effects = effects;
    }

    pub(crate) fn look(&mut self) {
        self.look_losing(0);
    }

    /// Lets seconds pass, looking every ten.
    pub(crate) fn run(&mut self, seconds: i64) {
        self.run_until(seconds, |_| false);
    }

    /// Lets time pass until something is so; fails if it never is.
    pub(crate) fn run_until(&mut self, seconds: i64, is_so: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + seconds;
        while self.now < end {
            self.look();
            self.settle();
            if is_so(self) {
                return true;
            }
            self.now += 10;
        }
        false
    }

    /// Lets time pass until a phase begins.
    #[track_caller]
    pub(crate) fn run_to(&mut self, phase: Phase) {
        let arrived = self.run_until(7_200, |world| world.phase() == phase);
        assert!(arrived, "{phase} is not reached: {:#?}", self.told.last());
    }

    /// Pods become what they were asked to be.
    pub(crate) fn settle(&mut self) {
        for slot in Slot::BOTH {
            let image = self.image_in(slot);
            let trouble = image
                .as_ref()
                .and_then(|image| self.broken.get(image))
                .copied();
            let seen = self.seen.slots.get_mut(slot);
            let ready = if trouble.is_some() { 0 } else { seen.replicas };
            seen.ready = ready;
            seen.endpoints = ready;
            seen.trouble = trouble.filter(|_| seen.replicas > 0).map(|kind| Trouble {
                kind,
                message: format!("{kind:?}"),
            });
        }
    }

    pub(crate) fn image_in(&self, slot: Slot) -> Option<String> {
        let revision = self.seen.slots.get(slot).revision.as_ref()?;
        self.images.get(revision.as_str()).cloned()
    }

    fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::AddFinalizer => self.seen.has_finalizer = true,
            Effect::RemoveFinalizer => self.seen.has_finalizer = false,
            Effect::WriteTraffic(traffic) => {
                self.check_traffic(*traffic);
                self.seen.traffic = Some(*traffic);
            }
            Effect::ReturnRoutes => self.seen.traffic = None,
            Effect::PointApex { slot } => self.seen.apex = Some(*slot),
            Effect::SaveRevision { revision } => {
                let template = self.seen.template.as_ref().expect("a template");
                let image = template["spec"]["containers"][0]["image"]
                    .as_str()
                    .expect("an image");
                self.images.insert(revision.to_string(), image.to_owned());
                self.seen.revisions.insert(revision.clone());
            }
            Effect::CopyConfig { revision, config } => {
                self.seen.copies.insert((revision.clone(), config.clone()));
            }
            Effect::DeleteRevision { revision } => {
                self.seen.revisions.remove(revision);
            }
            Effect::ApplySlot {
                slot,
                revision,
                replicas,
            } => {
                *self.seen.slots.get_mut(*slot) = ObservedSlot {
                    revision: Some(revision.clone()),
                    replicas: *replicas,
                    ..ObservedSlot::default()
                };
            }
            Effect::ScaleSlot { slot, replicas } => {
                let seen = self.seen.slots.get_mut(*slot);
                seen.replicas = *replicas;
                seen.ready = seen.ready.min(*replicas);
                seen.endpoints = seen.endpoints.min(*replicas);
            }
            Effect::ReplacePod { pod } => {
                for slot in Slot::BOTH {
                    self.seen.slots.get_mut(slot).pods.remove(pod);
                }
            }
            Effect::HoldWorkload => {
                if let Some(workload) = &mut self.seen.workload {
                    (workload.replicas, workload.ready) = (0, 0);
                }
            }
            Effect::ReleaseWorkload { replicas } => {
                if let Some(workload) = &mut self.seen.workload {
                    (workload.replicas, workload.ready) = (*replicas, *replicas);
                }
            }
            Effect::AskGate { key, .. } => {
                if let Some(answer) = &self.gate {
                    self.seen.gates.insert(key.clone(), answer.clone());
                }
            }
            Effect::Tell(record) => {
                if self
                    .told
                    .last()
                    .is_none_or(|last| last.number < record.number)
                {
                    self.told.push(record.clone());
                }
            }
            Effect::ReturnService | Effect::LookAgain { .. } | Effect::ReportNewerStatus { .. } => {
            }
        }
    }

    /// The rules about traffic that hold for every write.
    fn check_traffic(&self, traffic: Traffic) {
        assert_eq!(traffic.shares.a + traffic.shares.b, 100);
        let before = self.seen.traffic;
        for slot in Slot::BOTH {
            let adds = before.map_or(traffic.reaches(slot), |before| {
                traffic.adds_to(slot, &before)
            });
            let endpoints = self.seen.slots.get(slot).endpoints;
            assert!(
                !adds || endpoints > 0,
                "traffic to slot {slot} without endpoints"
            );
        }
    }

    /// Counts the requests since the last look, as the routes split them.
    fn measure(&mut self) {
        self.seen.metrics.clear();
        if let Some(measurement) = &self.metrics {
            self.seen
                .metrics
                .insert("errors".to_owned(), measurement.clone());
            self.counted_to = self.now;
            return;
        }
        // After a step of the clock backwards, Prometheus counts from there.
        let (from, to) = (self.counted_to.min(self.now), self.now);
        let (Some(status), Some(traffic)) = (&self.status, self.seen.traffic) else {
            return;
        };
        let Some(canary) = status.canary.as_deref().filter(|_| to > from) else {
            self.counted_to = to;
            return;
        };
        let arm = |slot: Slot| {
            let mirrored = traffic
                .mirror
                .filter(|mirror| mirror.slot == slot)
                .map_or(0, |mirror| mirror.percent);
            let matched = if traffic.matched == Some(slot) { 3 } else { 0 };
            let share = u64::from(traffic.share(slot).max(mirrored).max(matched));
            let total = self.rate * u64::try_from(to - from).expect("time passes") * share / 100;
            let bad = self
                .image_in(slot)
                .and_then(|image| self.bad.get(&image))
                .copied();
            let counts = Counts {
                total,
                bad: total * bad.unwrap_or(0) / 1_000,
            };
            Arm {
                counts,
                pods: self.pods_of(slot, counts),
            }
        };
        let measurement = Measurement::Counts {
            from: Time::from_unix(from),
            to: Time::from_unix(to),
            canary: arm(canary.slot),
            stable: arm(canary.slot.other()),
            same_revision: None,
            counted_by: Some("source".to_owned()),
        };
        self.seen.metrics.insert("errors".to_owned(), measurement);
        self.counted_to = to;
    }

    /// The requests of each pod: the first one has all the bad ones.
    fn pods_of(&self, slot: Slot, counts: Counts) -> Vec<PodCounts> {
        let Some((pods, bad_pod)) = &self.one_bad_pod else {
            return Vec::new();
        };
        if self.image_in(slot).as_deref() != Some("2") {
            return Vec::new();
        }
        let share = counts.total / *pods as u64;
        let others = (1..*pods).map(|at| (format!("pod-{at}"), 0));
        let pods = std::iter::once((bad_pod.clone(), counts.bad.min(share))).chain(others);
        pods.map(|(name, bad)| PodCounts {
            name,
            age_seconds: 600,
            counts: Counts { total: share, bad },
        })
        .collect()
    }

    pub(crate) fn shares(&self) -> Slots<u8> {
        self.seen.traffic.expect("routes").shares
    }
}
