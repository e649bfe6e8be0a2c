//! Sees the world as a decision needs it: from caches, and by a few requests where those are not enough.

mod config;
mod routes;
mod slots;

pub(crate) use slots::{label, ready_endpoints};

use std::sync::Arc;

use portolan_cluster::{Cache, CacheState, ClusterError};
use portolan_rollout::objects::App;
use portolan_rollout::{
    Analysis, Deletion, Observed, Problem, Slot, Slots, Spec, Status, Time, Tokens, Workload,
};
use serde_json::Value;

use crate::context::Context;
use crate::kinds;
use crate::memory::{Interest, Memo, lock};
use crate::rollout::Rollout;

/// What one look at a rollout is about.
pub(crate) struct Look<'a> {
    pub(crate) ctx: &'a Context,
    /// The same, for work that outlives the look.
    pub(crate) shared: &'a Arc<Context>,
    pub(crate) rollout: &'a Rollout,
    pub(crate) spec: &'a Spec,
    pub(crate) status: Option<&'a Status>,
    pub(crate) memo: &'a std::sync::Mutex<Memo>,
}

impl Look<'_> {
    pub(crate) fn app(&self) -> App<'_> {
        self.rollout.app(self.spec)
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.rollout.key.namespace
    }

    pub(crate) fn name(&self) -> &str {
        &self.rollout.key.name
    }

    /// Sees everything that a decision is made by.
    pub(crate) async fn observe(&self) -> Result<Observed, ClusterError> {
        let mut problems = Vec::new();
        let workload = self.workload().await?;
        if self.spec.workload_ref.is_some() && workload.is_none() {
            problems.push(problem(
                "WorkloadMissing",
                "the Deployment that spec.workloadRef names does not exist; make it, or write spec.template",
            ));
        }
        let template = match &workload {
            Some((template, _)) => Some(template.clone()),
            None => self.spec.template.clone(),
        };
        let mut seen = Observed {
            name: self.name().to_owned(),
            generation: self.rollout.generation,
            tokens: Tokens::from_annotations(&self.rollout.annotations),
            workload: workload.map(|(_, workload)| workload),
            has_finalizer: self.rollout.has_finalizer(),
            deletion: self.deletion().await?,
            apex: self.apex(),
            slots: Slots {
                a: self.slot(Slot::A),
                b: self.slot(Slot::B),
            },
            bypasses: self.bypasses(),
            ..Observed::default()
        };
        self.see_routes(&mut seen, &mut problems);
        if let Some(template) = &template {
            seen.config = self.tracked_config(template).await?;
        }
        seen.template = template;
        self.see_revisions(&mut seen);
        seen.analysis = self.analysis(&mut problems);
        self.take_answers(&mut seen);
        self.follow_interests(&seen);
        if seen.deletion.is_none() {
            problems.extend(self.foreign_objects().await?);
            problems.extend(self.refused_objects().await);
            problems.extend(self.refused_template(&seen).await?);
        }
        seen.problems = problems;
        Ok(seen)
    }

    /// The template and the state of the Deployment that the spec refers to.
    async fn workload(&self) -> Result<Option<(Value, Workload)>, ClusterError> {
        let Some(reference) = &self.spec.workload_ref else {
            return Ok(None);
        };
        let caches = &self.ctx.caches;
        let Some(found) = caches.workloads.get(self.namespace(), &reference.name) else {
            return Ok(None);
        };
        let version = found.metadata.resource_version.clone().unwrap_or_default();
        let known = lock(self.memo).workload.clone();
        // What is watched may be late, and a rollout that goes leaves its pods to the Deployment.
        let known = known.filter(|_| self.rollout.deleted_at.is_none());
        let object = match known.filter(|(known, _)| *known == version) {
            Some((_, object)) => object,
            None => {
                let kind = kinds::deployments();
                let read = self
                    .ctx
                    .cluster
                    .read(&kind, self.namespace(), &reference.name);
                let Some(object) = read.await? else {
                    return Ok(None);
                };
                let version = object["metadata"]["resourceVersion"].as_str();
                let version = version.unwrap_or_default().to_owned();
                lock(self.memo).workload = Some((version, object.clone()));
                object
            }
        };
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
        // Until Kubernetes has seen the newest change, what it says of pods is about those from before.
        let observed = object["status"]["observedGeneration"].as_i64();
        let ready = number(&object["status"]["readyReplicas"])
            .filter(|_| observed.is_some_and(|observed| observed >= generation));
        let workload = Workload {
            generation,
            replicas: number(&object["spec"]["replicas"]).unwrap_or(1),
            ready: ready.unwrap_or(0),
        };
        Ok(Some((object["spec"]["template"].clone(), workload)))
    }

    async fn deletion(&self) -> Result<Option<Deletion>, ClusterError> {
        let Some(since) = self.rollout.deleted_at else {
            return Ok(None);
        };
        let kind = kinds::namespaces();
        let namespace = self.ctx.cluster.read(&kind, "", self.namespace()).await;
        // Without the right to see it, the deadline of the deletion helps.
        let namespace = namespace.unwrap_or_default().unwrap_or_default();
        Ok(Some(Deletion {
            since,
            with_namespace: !namespace["metadata"]["deletionTimestamp"].is_null(),
        }))
    }

    /// The analysis that the spec refers to.
    fn analysis(&self, problems: &mut Vec<Problem>) -> Option<Analysis> {
        let reference = self.spec.analysis.reference.as_ref()?;
        let caches = &self.ctx.caches;
        let found = match reference.kind.as_deref() {
            Some("ClusterRolloutAnalysis") => caches.cluster_analyses.get("", &reference.name),
            _ => caches.analyses.get(self.namespace(), &reference.name),
        };
        let Some(found) = found else {
            let kind = reference.kind.as_deref().unwrap_or("RolloutAnalysis");
            let message = format!(
                "the {kind} {} that spec.analysis.ref names does not exist",
                reference.name
            );
            problems.push(problem("AnalysisMissing", &message));
            return None;
        };
        match serde_json::from_value(found.data["spec"].clone()) {
            Ok(analysis) => Some(analysis),
            Err(error) => {
                let message = format!("the analysis {} cannot be read: {error}", reference.name);
                problems.push(problem("AnalysisInvalid", &message));
                None
            }
        }
    }

    /// Answers that came since the last look.
    fn take_answers(&self, seen: &mut Observed) {
        let mut memo = lock(self.memo);
        seen.metrics = std::mem::take(&mut memo.measured);
        let answers = memo.gates.iter();
        seen.gates = answers
            .filter_map(|(key, asked)| Some((key.clone(), asked.answer.clone()?)))
            .collect();
        let told = self.status.map_or(0, |status| status.delivered);
        seen.delivered = memo.delivered.max(told);
    }

    /// Remembers what the rollout refers to, so that it is looked at when that changes.
    fn follow_interests(&self, seen: &Observed) {
        let interest = |kind: &str, namespace: &str, name: &str| Interest {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let namespace = self.namespace();
        let template = seen.template.as_ref();
        let config = template
            .map(portolan_rollout::config_refs)
            .unwrap_or_default();
        let mut now: Vec<Interest> = config
            .iter()
            .map(|config| interest(&format!("{:?}", config.kind), namespace, &config.name))
            .collect();
        if let Some(workload) = &self.spec.workload_ref {
            now.push(interest("Deployment", namespace, &workload.name));
        }
        if let Some(routes) = &self.spec.virtual_service_ref {
            now.push(interest("VirtualService", namespace, &routes.name));
        }
        match &self.spec.analysis.reference {
            Some(reference) if reference.kind.as_deref() == Some("ClusterRolloutAnalysis") => {
                now.push(interest("ClusterRolloutAnalysis", "", &reference.name));
            }
            Some(reference) => now.push(interest("RolloutAnalysis", namespace, &reference.name)),
            None => {}
        }
        let before = std::mem::replace(&mut lock(self.memo).interests, now.clone());
        self.ctx.interests.replace(&self.rollout.key, &before, &now);
    }
}

/// Whether the cluster knows a kind.
pub(crate) fn is_served(cache: &Cache) -> bool {
    cache.state() != CacheState::NotServed
}

pub(crate) fn problem(reason: &str, message: &str) -> Problem {
    Problem {
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

/// Now, in whole seconds.
pub(crate) fn now() -> Time {
    Time::from_unix(jiff::Timestamp::now().as_second())
}
