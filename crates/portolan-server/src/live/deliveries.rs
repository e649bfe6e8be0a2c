//! Requests of webhooks: who sent them is checked, what they say becomes events, and what is refused is in the audit log.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use portolan_kinds::{KindObject, find_kind, read_span};
use portolan_trigger::{
    MappedEvents, ReplayMemory, VerifiedDelivery, WebhookKey, WebhookMapping, WebhookMappingSpec,
    WebhookOrigin, WebhookRefusal, WebhookRequest, WebhookVerifier, alertmanager_events,
};
use serde_json::{Value, json};

use super::{moment, stored_event};
use crate::error::{ApiError, RefusalReason};
use crate::keys::ObjectKey;
use crate::node_access::is_made_by_servers;
use crate::objects::{Author, key_of, new_uuid};
use crate::server::{ApiServer, Caller, Target};
use crate::token::Identity;

/// The name that deliveries are written under.
const USER: &str = "system:webhooks";

/// How large a body may be, unless the webhook says otherwise.
const USUAL_BYTES: usize = 256 << 10;

/// The most webhooks whose requests are remembered.
const MAX_WEBHOOKS: usize = 1_000;

/// Requests that were received lately, by the uuid of their webhook.
///
/// Each server remembers its own. What is sent again to another server makes events of the same names, which are stored once.
#[derive(Debug, Default)]
pub(crate) struct Deliveries(Mutex<BTreeMap<String, ReplayMemory>>);

/// A request of a webhook.
pub(crate) struct Delivery<'a> {
    pub(crate) request: WebhookRequest<'a>,
    /// Where it came from.
    pub(crate) address: String,
}

impl ApiServer {
    /// Takes a request of a webhook. Whoever has no key learns nothing, not even whether there is such a webhook.
    pub(crate) async fn deliver(
        &self,
        target: &Target,
        delivery: Delivery<'_>,
    ) -> Result<Value, ApiError> {
        let caller = Caller {
            identity: Identity {
                user: USER.to_owned(),
                ..Identity::default()
            },
            address: delivery.address.clone(),
        };
        let taken = self.take_delivery(target, &delivery.request).await;
        let recorded = taken.as_ref().map(|_| None);
        self.record(&caller, "deliver", target, recorded).await?;
        let (answer, admitted) = taken?;
        admitted.keep();
        Ok(answer)
    }

    /// How large a body may be, as the webhook says; if there is none, as most do.
    pub(crate) fn webhook_limit(&self, target: &Target) -> usize {
        let webhook = target.key().ok().and_then(|key| self.cache.object(&key));
        let limit = webhook.and_then(|webhook| webhook.spec["maxBytes"].as_u64());
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        limit.unwrap_or(USUAL_BYTES)
    }

    async fn take_delivery(
        &self,
        target: &Target,
        request: &WebhookRequest<'_>,
    ) -> Result<(Value, AdmittedDelivery<'_>), ApiError> {
        let found = self.cache.object(&target.key()?);
        let found = found.filter(|webhook| webhook.spec["suspend"] != true);
        let now = moment(self.objects.time.now());
        let Some(webhook) = found else {
            // As a webhook that has no key answers.
            let answer = WebhookVerifier::new(Vec::new()).verify(request, now).err();
            return Err(refused(&answer.unwrap_or(WebhookRefusal::WrongSignature)));
        };
        let verified = self.verifier(&webhook).await?.verify(request, now);
        let verified = verified.map_err(|refusal| refused(&refusal))?;
        let admitted = self
            .deliveries
            .admit(webhook.metadata.uuid(), &verified, now);
        let admitted = admitted.map_err(|refusal| refused(&refusal))?;
        let delivery = verified.id.clone().unwrap_or_else(new_uuid);
        let origin = WebhookOrigin {
            uid: webhook.metadata.uuid(),
            namespace: webhook.namespace().unwrap_or_default(),
            delivery: &delivery,
            received: now,
        };
        let mapped = mapped(&webhook, request.body, origin).map_err(|refusal| refused(&refusal))?;
        let stored = self.store_events(&webhook, &mapped).await?;
        Ok((stored, admitted))
    }

    /// Stores events; those that are known already are counted and nothing more.
    async fn store_events(
        &self,
        webhook: &KindObject,
        mapped: &MappedEvents,
    ) -> Result<Value, ApiError> {
        let author = Author {
            name: USER.to_owned(),
            ..Author::default()
        };
        let (mut created, mut problems) = (Vec::new(), Vec::new());
        for (item, event) in mapped.events.iter().enumerate() {
            if is_made_by_servers(&event.kind) {
                let message = format!("events of type `{}` come from servers alone", event.kind);
                problems.push(json!({"item": item, "message": message}));
                continue;
            }
            let object = stored_event(event, webhook.name())?;
            created.push(self.events.create(object, &author));
        }
        let (mut stored, mut known) = (Vec::new(), 0);
        for outcome in futures_util::future::join_all(created).await {
            match outcome {
                Ok(event) => stored.push(event.object.name().to_owned()),
                Err(error) if error.reason == RefusalReason::AlreadyExists => known += 1,
                Err(error) => return Err(error),
            }
        }
        let unmapped = mapped.problems.iter();
        problems
            .extend(unmapped.map(|problem| json!({"item": problem.index, "message": problem.why})));
        Ok(json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "Delivered", "events": stored, "known": known,
            "problems": problems, "leftOut": mapped.left_out,
        }))
    }

    async fn verifier(&self, webhook: &KindObject) -> Result<WebhookVerifier, ApiError> {
        let kind = find_kind("Secret").ok_or_else(|| ApiError::internal("no kind Secret"))?;
        let spec = &webhook.spec;
        let name = spec["keys"]["secret"].as_str().unwrap_or_default();
        let key = ObjectKey::new(kind, webhook.namespace(), name);
        let found = self.objects.get(&key).await?;
        let values = match found {
            Some(secret) => self.secret_values(&secret).await?,
            None => {
                tracing::warn!(webhook = ?key_of(webhook), secret = name, "the secret of a webhook does not exist");
                serde_json::Map::new()
            }
        };
        let wanted = spec["keys"]["values"].as_array().cloned();
        let is_wanted = |name: &String| {
            let wanted = wanted.as_ref();
            wanted.is_none_or(|wanted| wanted.iter().any(|one| one == name.as_str()))
        };
        let is_bearer = spec["allowBearer"] == true;
        let keys = values.iter().filter(|(name, _)| is_wanted(name));
        let keys = keys.filter_map(|(_, value)| {
            let bytes = value.as_str()?.trim().as_bytes();
            if is_bearer {
                WebhookKey::bearer(bytes)
            } else {
                WebhookKey::new(bytes)
            }
        });
        let mut verifier = WebhookVerifier::new(keys.collect());
        if let Some(Ok(window)) = spec["replayWindow"].as_str().map(read_span) {
            verifier = verifier.window(window);
        }
        if let Some(most) = spec["maxBytes"].as_u64() {
            verifier = verifier.max_bytes(usize::try_from(most).unwrap_or(usize::MAX));
        }
        Ok(verifier)
    }
}

impl Deliveries {
    fn admit(
        &self,
        webhook: &str,
        verified: &VerifiedDelivery,
        now: jiff::Timestamp,
    ) -> Result<AdmittedDelivery<'_>, WebhookRefusal> {
        let mut known = self.0.lock();
        if known.len() >= MAX_WEBHOOKS && !known.contains_key(webhook) {
            known.pop_first();
        }
        let memory = known.entry(webhook.to_owned()).or_default();
        memory.admit(verified, now)?;
        Ok(AdmittedDelivery {
            deliveries: self,
            webhook: webhook.to_owned(),
            verified: Some(verified.clone()),
        })
    }

    fn forget(&self, webhook: &str, verified: &VerifiedDelivery) {
        if let Some(memory) = self.0.lock().get_mut(webhook) {
            memory.forget(verified);
        }
    }
}

/// A request that is being taken. Unless it is kept, also when its sender is gone in between, the sender can send it again.
struct AdmittedDelivery<'d> {
    deliveries: &'d Deliveries,
    webhook: String,
    verified: Option<VerifiedDelivery>,
}

impl AdmittedDelivery<'_> {
    /// The request was taken: the same one again is a repetition.
    fn keep(mut self) {
        self.verified = None;
    }
}

impl Drop for AdmittedDelivery<'_> {
    fn drop(&mut self) {
        if let Some(verified) = self.verified.take() {
            self.deliveries.forget(&self.webhook, &verified);
        }
    }
}

fn mapped(
    webhook: &KindObject,
    body: &[u8],
    origin: WebhookOrigin<'_>,
) -> Result<MappedEvents, WebhookRefusal> {
    if webhook.spec["format"] == "alertmanager" {
        return alertmanager_events(body, origin);
    }
    let broken = |why: String| WebhookRefusal::Malformed(why);
    let spec: WebhookMappingSpec = serde_json::from_value(webhook.spec["mapping"].clone())
        .map_err(|error| broken(error.to_string()))?;
    let mapping = WebhookMapping::new(&spec).map_err(|faults| {
        let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
        broken(all.join("; "))
    })?;
    mapping.events(body, origin)
}

fn refused(refusal: &WebhookRefusal) -> ApiError {
    let reason = match refusal {
        WebhookRefusal::Unsigned | WebhookRefusal::WrongSignature | WebhookRefusal::Outdated(_) => {
            RefusalReason::Unauthenticated
        }
        WebhookRefusal::Replayed => RefusalReason::AlreadyExists,
        WebhookRefusal::Busy => RefusalReason::TooManyRequests,
        WebhookRefusal::TooLarge(_) | WebhookRefusal::Malformed(_) => RefusalReason::BadRequest,
    };
    let status = http::StatusCode::from_u16(refusal.status());
    let status = status.unwrap_or(http::StatusCode::BAD_REQUEST);
    ApiError::new(status, reason, refusal.to_string())
}
