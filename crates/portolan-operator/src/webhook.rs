//! Addresses that are called: gates that must agree, and people who are told.
//!
//! Calls never hold up a look: they run beside it, each with a deadline, and the rollout is looked at when one has ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use portolan_budget::RetryPolicy;
use portolan_cluster::{Cluster, EventType, News};
use portolan_http::{Client, HttpError, HttpOptions, KnownHosts, Request};
use portolan_rollout::{
    GateAnswer, HoldReason, Notification, Outcome, Phase, Record, Spec, Webhook, notification_body,
    recipients,
};
use serde_json::json;

use crate::context::Context;
use crate::kinds;
use crate::memory::{AskedGate, lock};
use crate::observe::Look;
use crate::point::Point;
use crate::rollout::Rollout;

/// How long a gate may take if it does not say so itself.
const GATE_TIME: Duration = Duration::from_secs(10);

/// The longest that any gate may take.
const LONGEST_GATE_TIME: Duration = Duration::from_mins(10);

/// A gate that has not agreed is asked again after this long.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// What could not be told is told again after this long.
const TELL_AGAIN: Duration = Duration::from_secs(5);

/// How long a message may take.
const MESSAGE_TIME: Duration = Duration::from_secs(10);

/// How often a message is sent, and after which pauses.
const MESSAGE_RETRY: RetryPolicy =
    RetryPolicy::new(Duration::from_secs(1), Duration::from_secs(10))
        .factor(4_000)
        .attempts(3);

/// The most bytes of an answer that are read.
const ANSWER_BYTES: u64 = 4096;

/// The most of an answer that a person is shown.
const ANSWER_CHARS: usize = 200;

/// Calls addresses.
#[derive(Debug, Clone)]
pub(crate) struct Webhooks(Option<Client>);

impl Webhooks {
    /// Sets up a client that tries a host again after it was out of reach.
    pub(crate) fn new() -> Self {
        let options = HttpOptions {
            retries: 0,
            max_redirects: 0,
            // Whoever may write a rollout names these addresses.
            link_local: false,
            response_timeout: LONGEST_GATE_TIME,
            request_timeout: LONGEST_GATE_TIME,
            hosts: KnownHosts::forgetful(),
            ..HttpOptions::default()
        };
        Self(Client::new(&options).ok())
    }

    /// Posts JSON. `Ok` is an answer from 200 to 299; else a few words that do not name the address.
    async fn post(&self, url: &str, body: String, time: Duration) -> Result<(), String> {
        let posted = tokio::time::timeout(time, self.send(url, body)).await;
        posted.unwrap_or_else(|_| Err(format!("no answer within {} s", time.as_secs_f64())))
    }

    async fn send(&self, url: &str, body: String) -> Result<(), String> {
        let client = self.0.as_ref().ok_or("TLS cannot be set up")?;
        let request = Request::parse(url).map_err(|_| "the address is none".to_owned())?;
        let answer = client.send(&request.json(body).hide_path()).await;
        let answer = answer.map_err(|error| words(&error))?;
        let status = answer.status();
        if (200..300).contains(&status) {
            return Ok(());
        }
        let said = answer.bytes(ANSWER_BYTES).await.unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let said: String = said.trim().chars().take(ANSWER_CHARS).collect();
        Err(format!("it answered {status} {said}").trim_end().to_owned())
    }
}

/// Why an address could not be called, without the address: it may hold a secret.
fn words(error: &HttpError) -> String {
    match error {
        HttpError::Unreachable { source, .. } => format!("it cannot be reached: {}", source.why),
        HttpError::TooSlow { .. } => "it is too slow".to_owned(),
        other => match other.status() {
            Some(status) => format!("it answered {status}"),
            None => "the call failed".to_owned(),
        },
    }
}

impl Look<'_> {
    /// Asks a gate, unless it is being asked or was asked a moment ago.
    pub(crate) fn ask_gate(&self, key: &str, webhook: &Webhook, question: &str) {
        let mut memo = lock(self.memo);
        // Questions of steps that are over are forgotten.
        let attempt = key.rsplitn(4, '/').last().unwrap_or_default().to_owned();
        memo.gates.retain(|known, _| known.starts_with(&attempt));
        let asked = memo.gates.get(key);
        let is_fresh =
            asked.is_some_and(|asked| asked.is_asking || asked.since.elapsed() < ASK_AGAIN);
        if is_fresh {
            return;
        }
        let answer = asked.and_then(|asked| asked.answer.clone());
        let entry = AskedGate {
            answer,
            is_asking: true,
            since: Instant::now(),
        };
        memo.gates.insert(key.to_owned(), entry);
        drop(memo);
        let body = json!({
            "namespace": self.namespace(),
            "name": self.name(),
            "key": key,
            "question": question,
            "phase": self.status.map(|status| status.phase),
            "weight": self.status.map(|status| status.weight),
        });
        let time = webhook
            .timeout
            .map_or(GATE_TIME, |time| Duration::from_millis(time.milliseconds()));
        let time = time.min(LONGEST_GATE_TIME);
        let (url, key) = (webhook.url.clone(), key.to_owned());
        let ctx = Arc::clone(self.shared);
        let (rollout, memo) = (self.rollout.key.clone(), ctx.memory.of(&self.rollout.key));
        self.ctx.start(async move {
            let answered = ctx.webhooks.post(&url, body.to_string(), time).await;
            let answer = match answered {
                Ok(()) => GateAnswer::Open,
                Err(why) => GateAnswer::Closed(why),
            };
            if let Some(asked) = lock(&memo).gates.get_mut(&key) {
                asked.answer = Some(answer);
                asked.is_asking = false;
                asked.since = Instant::now();
            }
            ctx.wake(&rollout);
        });
    }

    /// Tells records of the history as events and messages, in order, beside the look.
    pub(crate) fn tell_all(&self, records: Vec<Record>) {
        let mut memo = lock(self.memo);
        let delivered = memo.delivered;
        let records: Vec<Record> = records
            .into_iter()
            .filter(|record| record.number > delivered)
            .collect();
        if records.is_empty() || memo.is_telling {
            return;
        }
        memo.is_telling = true;
        drop(memo);
        let (rollout, spec) = (self.rollout.clone(), self.spec.clone());
        let ctx = Arc::clone(self.shared);
        let memo = ctx.memory.of(&rollout.key);
        self.ctx.start(async move {
            for record in records {
                if let Err(error) = tell(&ctx, &rollout, &spec, &record).await {
                    tracing::warn!(%error, "cannot write an event");
                    tokio::time::sleep(TELL_AGAIN).await;
                    break;
                }
                lock(&memo).delivered = record.number;
            }
            lock(&memo).is_telling = false;
            ctx.wrote(Point::Told).await;
            ctx.wake(&rollout.key);
        });
    }
}

/// Tells one record to everybody; an error means that it is to be told again.
async fn tell(
    ctx: &Context,
    rollout: &Rollout,
    spec: &Spec,
    record: &Record,
) -> Result<(), portolan_cluster::ClusterError> {
    let (namespace, name) = (&rollout.key.namespace, &rollout.key.name);
    tracing::info!(%namespace, %name, reason = %record.reason, note = %record.message, "rollout");
    let news = News {
        event_type: event_type(record),
        reason: record.reason.clone(),
        action: record.to.to_string(),
        note: record.message.clone(),
    };
    ctx.events.tell(&rollout.regarding(), &news).await?;
    for notification in recipients(spec, record) {
        let sent = send(ctx, rollout, notification, record).await;
        if let Err(why) = sent {
            // A message is no reason to hold up a rollout; that it did not arrive is told.
            let news = News {
                event_type: EventType::Warning,
                reason: "NotificationFailed".to_owned(),
                action: record.to.to_string(),
                note: format!("a {:?} message was not delivered: {why}", notification.form),
            };
            ctx.events.tell(&rollout.regarding(), &news).await?;
        }
    }
    Ok(())
}

async fn send(
    ctx: &Context,
    rollout: &Rollout,
    notification: &Notification,
    record: &Record,
) -> Result<(), String> {
    let (namespace, name) = (&rollout.key.namespace, &rollout.key.name);
    let url = address(&ctx.cluster, namespace, notification).await?;
    let body = notification_body(notification.form, namespace, name, record).to_string();
    let mut pauses = MESSAGE_RETRY.backoff();
    loop {
        let posted = ctx.webhooks.post(&url, body.clone(), MESSAGE_TIME).await;
        let Err(why) = posted else { return Ok(()) };
        let pause = pauses.try_again().ok_or(why)?;
        tokio::time::sleep(pause).await;
    }
}

/// The address of a message: in the spec, or in a Secret.
async fn address(
    cluster: &Cluster,
    namespace: &str,
    notification: &Notification,
) -> Result<String, String> {
    if let Some(url) = &notification.url {
        return Ok(url.clone());
    }
    let from = notification.url_from.as_ref().ok_or("it has no address")?;
    let missing = || format!("Secret {} has no key {}", from.name, from.key);
    let read = cluster.read(&kinds::secrets(), namespace, &from.name).await;
    let secret = read
        .map_err(|error| error.to_string())?
        .ok_or_else(missing)?;
    let encoded = secret["data"][&from.key].as_str().ok_or_else(missing)?;
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded);
    let text = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(|text| text.trim().to_owned()).ok_or_else(missing)
}

fn event_type(record: &Record) -> EventType {
    let went_back = matches!(record.outcome, Some(Outcome::RolledBack));
    let needs_a_person = record.reason == HoldReason::Problem.name();
    if went_back || needs_a_person || record.to == Phase::RollingBack {
        EventType::Warning
    } else {
        EventType::Normal
    }
}
