//! Which agents are connected, and what the status of their nodes should say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use portolan_agent::wire::server_message::Message;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use crate::node_access::NodeIdentity;

/// How long an agent may be without a stream before its link counts as lost: most come back at once.
const LINK_GRACE: Duration = Duration::from_secs(3);

/// Messages that wait for one agent.
const WAITING: usize = 256;

/// The agents of this server.
#[derive(Default)]
pub(crate) struct AgentHub {
    inner: Mutex<Inner>,
    /// Told when a state changes.
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    next: u64,
    /// The newest stream of each node, by the uuid of the Node.
    streams: BTreeMap<String, OpenStream>,
    wanted: BTreeMap<String, WantedState>,
    /// Nodes whose stream was lost since somebody asked.
    gone: BTreeSet<String>,
}

struct OpenStream {
    number: u64,
    cut: CancellationToken,
    sender: mpsc::Sender<Message>,
}

/// What the status of a node should say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedState {
    pub(crate) node: NodeIdentity,
    pub(crate) state: LinkState,
    /// Not written before this moment.
    pub(crate) due: Instant,
}

/// What is known of a node's agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkState {
    /// It is connected; the version of the agent.
    Ready(String),
    /// Its stream was lost.
    LinkLost,
    /// It said goodbye.
    Left,
    /// Two agents use its certificate; both were cut.
    Cloned,
}

/// The place of one stream among the others. Leaves when it is dropped.
pub(crate) struct Membership {
    hub: Arc<AgentHub>,
    node: NodeIdentity,
    number: u64,
    /// Ended when the stream should end.
    pub(crate) cut: CancellationToken,
    /// What is to be sent to the agent.
    pub(crate) outgoing: mpsc::Receiver<Message>,
    has_left: bool,
}

/// Two agents use the same certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cloned;

impl AgentHub {
    /// Takes a stream in. An earlier one of the same node may still be open: its connection may be dead, and nobody
    /// knows yet.
    pub(crate) fn join(self: &Arc<Self>, node: &NodeIdentity, version: &str) -> Membership {
        let cut = CancellationToken::new();
        let (sender, outgoing) = mpsc::channel(WAITING);
        let mut inner = self.inner.lock();
        inner.next += 1;
        let number = inner.next;
        let stream = OpenStream {
            number,
            cut: cut.clone(),
            sender,
        };
        inner.streams.insert(node.uid.clone(), stream);
        inner.want(node, LinkState::Ready(version.to_owned()), Duration::ZERO);
        drop(inner);
        self.changed.notify_one();
        Membership {
            hub: Arc::clone(self),
            node: node.clone(),
            number,
            cut,
            outgoing,
            has_left: false,
        }
    }

    /// How many agents are connected.
    pub(crate) fn count(&self) -> usize {
        self.inner.lock().streams.len()
    }

    /// Whether a node's agent is connected here.
    pub(crate) fn is_connected(&self, uid: &str) -> bool {
        self.inner.lock().streams.contains_key(uid)
    }

    /// The nodes whose agents are connected here, by their uuids.
    pub(crate) fn connected(&self) -> BTreeSet<String> {
        self.inner.lock().streams.keys().cloned().collect()
    }

    /// The nodes whose streams were lost since the last time.
    pub(crate) fn take_gone(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.inner.lock().gone)
    }

    /// Sends a message to the agent of a node, if it is connected. One that does not read is cut: it connects again and is
    /// told everything.
    pub(crate) fn send(&self, uid: &str, message: Message) {
        let inner = self.inner.lock();
        if let Some(stream) = inner.streams.get(uid)
            && stream.sender.try_send(message).is_err()
        {
            stream.cut.cancel();
        }
    }

    /// Waits for the next states that are due, and takes them.
    pub(crate) async fn due(&self) -> Vec<WantedState> {
        loop {
            let next = {
                let mut inner = self.inner.lock();
                let now = Instant::now();
                let due = inner.wanted.extract_if(.., |_, wanted| wanted.due <= now);
                let due: Vec<WantedState> = due.map(|(_, wanted)| wanted).collect();
                if !due.is_empty() {
                    return due;
                }
                inner.wanted.values().map(|wanted| wanted.due).min()
            };
            let wait = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = wait => {}
                () = self.changed.notified() => {}
            }
        }
    }

    /// Gives a state back that could not be written, unless there is a newer one.
    pub(crate) fn put_back(&self, mut wanted: WantedState, after: Duration) {
        wanted.due = Instant::now() + after;
        let mut inner = self.inner.lock();
        inner
            .wanted
            .entry(wanted.node.uid.clone())
            .or_insert(wanted);
    }
}

impl Inner {
    fn want(&mut self, node: &NodeIdentity, state: LinkState, after: Duration) {
        let wanted = WantedState {
            node: node.clone(),
            state,
            due: Instant::now() + after,
        };
        self.wanted.insert(node.uid.clone(), wanted);
    }
}

impl Membership {
    /// To be called for every message. An agent has one stream at a time, so an earlier stream that still speaks belongs to
    /// somebody who has copied its key: both are cut.
    pub(crate) fn heard(&mut self) -> Result<(), Cloned> {
        let mut inner = self.hub.inner.lock();
        let newest = inner.streams.get(&self.node.uid);
        if newest.is_some_and(|newest| newest.number == self.number) {
            return Ok(());
        }
        if let Some(newest) = inner.streams.remove(&self.node.uid) {
            newest.cut.cancel();
            inner.gone.insert(self.node.uid.clone());
            inner.want(&self.node, LinkState::Cloned, Duration::ZERO);
        }
        drop(inner);
        self.hub.changed.notify_one();
        Err(Cloned)
    }

    /// The agent has said goodbye.
    pub(crate) fn leave(mut self) {
        self.end(LinkState::Left, Duration::ZERO);
    }

    fn end(&mut self, state: LinkState, after: Duration) {
        if std::mem::replace(&mut self.has_left, true) {
            return;
        }
        let mut inner = self.hub.inner.lock();
        let newest = inner.streams.get(&self.node.uid);
        if newest.is_some_and(|newest| newest.number == self.number) {
            inner.streams.remove(&self.node.uid);
            inner.gone.insert(self.node.uid.clone());
            inner.want(&self.node, state, after);
        }
        drop(inner);
        self.hub.changed.notify_one();
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.end(LinkState::LinkLost, LINK_GRACE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeIdentity {
        NodeIdentity {
            name: name.to_owned(),
            uid: format!("uid of {name}"),
        }
    }

    async fn next(hub: &AgentHub) -> (String, LinkState) {
        let mut due = hub.due().await;
        assert_eq!(due.len(), 1, "{due:?}");
        let wanted = due.remove(0);
        (wanted.node.name, wanted.state)
    }

    fn ready() -> LinkState {
        LinkState::Ready("1".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_link_is_told_after_a_moment_unless_the_agent_is_back() {
        let hub = Arc::new(AgentHub::default());
        let first = hub.join(&node("a"), "1");
        assert_eq!(next(&hub).await, ("a".to_owned(), ready()));
        drop(first);
        let second = hub.join(&node("a"), "1");
        assert_eq!(next(&hub).await, ("a".to_owned(), ready()));
        let before = Instant::now();
        drop(second);
        assert_eq!(next(&hub).await, ("a".to_owned(), LinkState::LinkLost));
        assert!(before.elapsed() >= LINK_GRACE);
        assert_eq!(hub.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_stream_that_is_noticed_late_changes_nothing() {
        let hub = Arc::new(AgentHub::default());
        let dead = hub.join(&node("a"), "1");
        let mut alive = hub.join(&node("a"), "1");
        drop(dead);
        assert_eq!(next(&hub).await, ("a".to_owned(), ready()));
        assert_eq!(alive.heard(), Ok(()));
        assert!(hub.is_connected("uid of a"));
        alive.leave();
        assert_eq!(next(&hub).await, ("a".to_owned(), LinkState::Left));
    }

    #[tokio::test(start_paused = true)]
    async fn two_streams_that_both_speak_are_cut() {
        let hub = Arc::new(AgentHub::default());
        let mut first = hub.join(&node("a"), "1");
        let mut second = hub.join(&node("a"), "1");
        assert_eq!(second.heard(), Ok(()));
        assert_eq!(first.heard(), Err(Cloned));
        assert!(second.cut.is_cancelled());
        assert_eq!(next(&hub).await, ("a".to_owned(), LinkState::Cloned));
        drop((first, second));
        let other = hub.join(&node("b"), "1");
        assert_eq!(next(&hub).await, ("b".to_owned(), ready()));
        drop(other);
    }
}
