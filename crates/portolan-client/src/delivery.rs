//! Sends events to a fleet server, beside the job that they come from.
//!
//! The events of a batch are sent together, because the server writes those of a second together. What the server could
//! not take is sent again after a pause; what it says is wrong with the event itself is lost, and that is told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portolan_budget::RetryPolicy;
use portolan_engine::with_causes;
use portolan_kinds::find_kind;
use portolan_secret::{KnownSecrets, Mask};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::client::{FleetClient, FleetError, FleetMethod, ObjectPath};
use crate::job_event::JobEvent;
use crate::server_files::{FileContents, FleetServerFiles, ServerFilesError};

/// Events that may wait.
const QUEUE: usize = 1_000;

/// Events that are sent at once.
const AT_ONCE: usize = 64;

/// How long the server may take for one.
const PATIENCE: Duration = Duration::from_secs(15);

/// The pauses while the server cannot be asked.
const PAUSES: RetryPolicy =
    RetryPolicy::new(Duration::from_secs(1), Duration::from_mins(1)).jitter(25);

/// Where events go, and from where.
#[derive(Debug, Clone)]
pub struct EventTarget {
    /// The server. Its files are read again whenever something is sent, so that a token may be replaced at any time.
    pub server: FleetServerFiles,
    /// The namespace of the events.
    pub namespace: String,
    /// Labels of every event; they tell jobs of two clusters apart.
    pub labels: BTreeMap<String, String>,
    /// What is hidden in events.
    pub secrets: Arc<KnownSecrets>,
}

/// Takes the events of a job; clones share a queue. The default one has nowhere to send them to.
#[derive(Debug, Clone, Default)]
pub struct EventPublisher(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    queue: mpsc::Sender<JobEvent>,
    state: watch::Sender<DeliveryState>,
}

/// Sends what a publisher takes.
#[derive(Debug)]
pub struct EventDelivery {
    target: EventTarget,
    queue: mpsc::Receiver<JobEvent>,
    shared: Arc<Shared>,
    /// The client, and what the files held when it was made.
    client: Option<(FileContents, FleetClient)>,
    /// Losses that the server was told of.
    told: u64,
    /// Tells the losses of this process from those of others.
    process: u64,
}

/// How the delivery stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryState {
    /// Events that the server has.
    pub sent: u64,
    /// Events that it will never have: too many waited, or it called them wrong.
    pub lost: u64,
    /// Events that wait.
    pub waiting: u64,
    /// Why they wait, if the last attempt failed.
    pub trouble: Option<DeliveryTrouble>,
}

/// Why events are not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryTrouble {
    /// What went wrong, with its causes.
    pub message: String,
    /// Whether it stays so until somebody does something: the token, its rights or the namespace are wrong.
    pub needs_a_person: bool,
}

/// What became of one attempt.
enum Attempt {
    Sent,
    Wrong(String),
    Later(DeliveryTrouble),
}

// === impl EventPublisher ===

impl EventPublisher {
    /// A publisher, and what sends its events while it runs.
    pub fn new(target: EventTarget) -> (Self, EventDelivery) {
        Self::with_queue(target, QUEUE)
    }

    /// The same; at most so many events wait.
    pub fn with_queue(target: EventTarget, length: usize) -> (Self, EventDelivery) {
        let (sender, queue) = mpsc::channel(length);
        let shared = Arc::new(Shared {
            queue: sender,
            state: watch::Sender::new(DeliveryState::default()),
        });
        let delivery = EventDelivery {
            target,
            queue,
            shared: Arc::clone(&shared),
            client: None,
            told: 0,
            process: rand::random(),
        };
        (Self(Some(shared)), delivery)
    }

    /// Whether events go anywhere.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Takes an event. Never waits: one that finds the queue full is lost and counted.
    pub fn publish(&self, event: JobEvent) {
        let Some(shared) = &self.0 else { return };
        // The state comes first, so that nobody sees an event that was sent before it waited.
        shared.change(|state| state.waiting += 1);
        if let Err(refused) = shared.queue.try_send(event) {
            let event = refused.into_inner();
            tracing::warn!(kind = event.kind(), "an event is lost: too many wait");
            shared.change(|state| {
                state.waiting = state.waiting.saturating_sub(1);
                state.lost += 1;
            });
        }
    }

    /// How the delivery stands now.
    pub fn state(&self) -> DeliveryState {
        let shared = self.0.as_ref();
        shared.map_or_else(DeliveryState::default, |shared| {
            shared.state.borrow().clone()
        })
    }

    /// How the delivery stands, as it changes; `None` if there is none.
    pub fn subscribe(&self) -> Option<watch::Receiver<DeliveryState>> {
        self.0.as_ref().map(|shared| shared.state.subscribe())
    }

    /// Waits until the server has everything, until only a person can help, or for a time at most. Returns how it stands then.
    pub async fn flush(&self, most: Duration) -> DeliveryState {
        if let Some(mut state) = self.subscribe() {
            let is_over = |state: &DeliveryState| {
                let is_stuck = state.trouble.as_ref().is_some_and(|one| one.needs_a_person);
                state.waiting == 0 || is_stuck
            };
            let _ = timeout(most, state.wait_for(is_over)).await;
        }
        self.state()
    }

    /// Numbers about the delivery in the text format of Prometheus; empty without a delivery.
    pub fn metrics(&self) -> String {
        if !self.is_on() {
            return String::new();
        }
        let state = self.state();
        let line = |name: &str, help: &str, kind: &str, value: u64| {
            let series = if kind == "counter" {
                format!("{name}_total")
            } else {
                name.to_owned()
            };
            format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{series} {value}\n")
        };
        [
            line(
                "portolan_events_sent",
                "Events that the fleet server has.",
                "counter",
                state.sent,
            ),
            line(
                "portolan_events_lost",
                "Events that the fleet server will never have.",
                "counter",
                state.lost,
            ),
            line(
                "portolan_events_waiting",
                "Events that wait to be sent to the fleet server.",
                "gauge",
                state.waiting,
            ),
        ]
        .concat()
    }
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut DeliveryState)) {
        self.state.send_modify(change);
    }
}

// === impl EventDelivery ===

impl EventDelivery {
    /// Sends events until the future is dropped.
    pub async fn run(mut self) {
        let mut pauses = PAUSES.backoff();
        let mut batch = Vec::new();
        loop {
            if batch.is_empty() && self.queue.recv_many(&mut batch, AT_ONCE).await == 0 {
                return std::future::pending().await;
            }
            let before = batch.len();
            let (rest, trouble) = self.send(std::mem::take(&mut batch)).await;
            if rest.len() < before {
                pauses.reset();
            }
            batch = rest;
            let is_failing = trouble.is_some();
            self.shared.change(|state| state.trouble = trouble);
            if is_failing {
                tokio::time::sleep(pauses.next_random_wait(rand::random())).await;
            } else {
                self.tell_losses();
            }
        }
    }

    /// Sends events at the same time. Returns those that are to be sent again, and why.
    async fn send(&mut self, batch: Vec<JobEvent>) -> (Vec<JobEvent>, Option<DeliveryTrouble>) {
        let client = match self.client() {
            Ok(client) => client,
            Err(error) => return (batch, Some(trouble_of_files(&error))),
        };
        let mask = self.target.secrets.mask();
        let mut attempts = JoinSet::new();
        for (place, event) in batch.iter().enumerate() {
            let body = self.body(event, &mask);
            let (client, path) = (client.clone(), self.path());
            attempts.spawn(async move {
                let request = client.request(FleetMethod::Post, &path, &[], Some(&body));
                (place, timeout(PATIENCE, request).await)
            });
        }
        let (mut again, mut trouble) = (Vec::new(), None);
        let mut outcomes = BTreeMap::new();
        while let Some(ended) = attempts.join_next().await {
            if let Ok((place, answer)) = ended {
                outcomes.insert(place, answer.map_or_else(|_| too_slow(), judge));
            }
        }
        for (place, event) in batch.into_iter().enumerate() {
            match outcomes.remove(&place) {
                Some(Attempt::Sent) => self.settle(|state| state.sent += 1),
                Some(Attempt::Wrong(why)) => {
                    tracing::warn!(kind = event.kind(), %why, "the server refused an event");
                    self.settle(|state| state.lost += 1);
                }
                Some(Attempt::Later(why)) => {
                    trouble = Some(why);
                    again.push(event);
                }
                None => again.push(event),
            }
        }
        if let Some(trouble) = &trouble {
            tracing::warn!(
                why = %trouble.message,
                waiting = again.len(),
                "events wait for the server"
            );
        }
        (again, trouble)
    }

    fn settle(&self, change: impl FnOnce(&mut DeliveryState)) {
        self.shared.change(|state| {
            state.waiting = state.waiting.saturating_sub(1);
            change(state);
        });
    }

    /// A client with the credentials as they are now.
    fn client(&mut self) -> Result<FleetClient, ServerFilesError> {
        let contents = self.target.server.read()?;
        if let Some((known, client)) = &self.client
            && *known == contents
        {
            return Ok(client.clone());
        }
        let client = self.target.server.client_with(contents.clone())?;
        self.client = Some((contents, client.clone()));
        Ok(client)
    }

    fn body(&self, event: &JobEvent, mask: &Mask) -> String {
        let target = &self.target;
        let object = event.object(&target.namespace, &target.labels, mask);
        object.to_string()
    }

    fn path(&self) -> String {
        let kind = find_kind("Event").expect("a kind of the control plane");
        let path = ObjectPath {
            kind,
            namespace: Some(self.target.namespace.clone()),
            name: None,
        };
        path.to_string()
    }

    /// Tells the server how many events it will never have, now that it can be asked again.
    fn tell_losses(&mut self) {
        let lost = self.shared.state.borrow().lost;
        let count = lost - self.told;
        if count == 0 {
            return;
        }
        self.told = lost;
        let id = format!("{:016x}/{lost}", self.process);
        let summary = format!("{count} events of a job were lost before they reached the server");
        let data = Map::from_iter([("count".to_owned(), count.into())]);
        let event = JobEvent::new("events.dropped", &id, Timestamp::now(), summary);
        EventPublisher(Some(Arc::clone(&self.shared))).publish(event.warning().data(data));
    }
}

/// What an answer means for the event. An event that is there already was sent before.
fn judge(answer: Result<Value, FleetError>) -> Attempt {
    let Err(error) = answer else {
        return Attempt::Sent;
    };
    let message = with_causes(&error);
    match &error {
        FleetError::Refused { reason, .. } if reason == "AlreadyExists" => Attempt::Sent,
        FleetError::Refused {
            status: 400 | 405 | 413 | 422,
            ..
        } => Attempt::Wrong(message),
        FleetError::Refused {
            status: 401 | 403 | 404,
            ..
        } => Attempt::Later(DeliveryTrouble {
            message,
            needs_a_person: true,
        }),
        _ => Attempt::Later(DeliveryTrouble {
            message,
            needs_a_person: false,
        }),
    }
}

fn too_slow() -> Attempt {
    Attempt::Later(DeliveryTrouble {
        message: format!("no answer within {} s", PATIENCE.as_secs()),
        needs_a_person: false,
    })
}

fn trouble_of_files(error: &ServerFilesError) -> DeliveryTrouble {
    DeliveryTrouble {
        message: with_causes(error),
        needs_a_person: true,
    }
}
