//! Which agents are connected, and what was heard of them since somebody asked.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use portolan_agent::wire::server_message::Message;
use portolan_detect::NodeUid;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::node_access::NodeIdentity;

/// Messages that wait for one agent.
const WAITING: usize = 256;

/// The agents of this server.
#[derive(Default)]
pub(crate) struct AgentHub {
    inner: Mutex<Inner>,
    /// Told when there are news.
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    next: u64,
    /// The newest stream of each node, by the uuid of the Node.
    streams: BTreeMap<String, OpenStream>,
    /// By the uuid of the Node.
    news: BTreeMap<String, NodeNews>,
    /// Nodes whose stream was lost since somebody asked.
    gone: BTreeSet<String>,
}

struct OpenStream {
    number: u64,
    cut: CancellationToken,
    sender: mpsc::Sender<Message>,
}

/// What was heard of a node since somebody asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeNews {
    pub(crate) node: NodeIdentity,
    /// The version of its agent, if it has connected.
    pub(crate) version: Option<String>,
    /// Whether it said something.
    pub(crate) is_heard: bool,
    /// How its stream ended, if it did after that.
    pub(crate) end: Option<StreamEnd>,
    /// Where it takes part in gossip, and its generation.
    pub(crate) gossip: Option<(SocketAddr, u32)>,
    /// The nodes that it cannot reach, if it said so.
    pub(crate) accused: Option<Vec<NodeUid>>,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// It was lost.
    Lost,
    /// The agent said goodbye.
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
        let news = inner.news_of(node);
        news.version = Some(version.to_owned());
        news.is_heard = true;
        news.end = None;
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

    /// Waits for news, and takes them.
    pub(crate) async fn news(&self) -> Vec<NodeNews> {
        loop {
            let news = self.take_news();
            if !news.is_empty() {
                return news;
            }
            self.changed.notified().await;
        }
    }

    /// Takes the news that there are.
    pub(crate) fn take_news(&self) -> Vec<NodeNews> {
        let news = std::mem::take(&mut self.inner.lock().news);
        news.into_values().collect()
    }
}

impl Inner {
    fn news_of(&mut self, node: &NodeIdentity) -> &mut NodeNews {
        self.news
            .entry(node.uid.clone())
            .or_insert_with(|| NodeNews {
                node: node.clone(),
                version: None,
                is_heard: false,
                end: None,
                gossip: None,
                accused: None,
            })
    }
}

impl Membership {
    /// To be called for every message. An agent has one stream at a time, so an earlier stream that still speaks belongs to
    /// somebody who has copied its key: both are cut.
    pub(crate) fn heard(&mut self) -> Result<(), Cloned> {
        let mut inner = self.hub.inner.lock();
        let newest = inner.streams.get(&self.node.uid);
        if newest.is_some_and(|newest| newest.number == self.number) {
            inner.news_of(&self.node).is_heard = true;
            drop(inner);
            self.hub.changed.notify_one();
            return Ok(());
        }
        if let Some(newest) = inner.streams.remove(&self.node.uid) {
            newest.cut.cancel();
            inner.gone.insert(self.node.uid.clone());
            inner.news_of(&self.node).end = Some(StreamEnd::Cloned);
        }
        drop(inner);
        self.hub.changed.notify_one();
        Err(Cloned)
    }

    /// What the node's gossip member says.
    pub(crate) fn gossip(&self, place: (SocketAddr, u32), accused: Vec<NodeUid>) {
        let mut inner = self.hub.inner.lock();
        let news = inner.news_of(&self.node);
        news.gossip = Some(place);
        news.accused = Some(accused);
        drop(inner);
        self.hub.changed.notify_one();
    }

    /// The agent has said goodbye.
    pub(crate) fn leave(mut self) {
        self.end(StreamEnd::Left);
    }

    fn end(&mut self, how: StreamEnd) {
        if std::mem::replace(&mut self.has_left, true) {
            return;
        }
        let mut inner = self.hub.inner.lock();
        let newest = inner.streams.get(&self.node.uid);
        if newest.is_some_and(|newest| newest.number == self.number) {
            inner.streams.remove(&self.node.uid);
            inner.gone.insert(self.node.uid.clone());
            inner.news_of(&self.node).end = Some(how);
        }
        drop(inner);
        self.hub.changed.notify_one();
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.end(StreamEnd::Lost);
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

    fn ends(hub: &AgentHub) -> Vec<(String, Option<StreamEnd>)> {
        let news = hub.take_news().into_iter();
        news.map(|news| (news.node.name, news.end)).collect()
    }

    #[test]
    fn a_stream_that_ends_is_news_unless_there_is_another_one() {
        let hub = Arc::new(AgentHub::default());
        let first = hub.join(&node("a"), "1");
        assert_eq!(ends(&hub), [("a".to_owned(), None)]);
        drop(first);
        let second = hub.join(&node("a"), "1");
        assert_eq!(ends(&hub), [("a".to_owned(), None)]);
        drop(second);
        assert_eq!(ends(&hub), [("a".to_owned(), Some(StreamEnd::Lost))]);
        assert_eq!(hub.count(), 0);
    }

    #[test]
    fn a_dead_stream_that_is_noticed_late_changes_nothing() {
        let hub = Arc::new(AgentHub::default());
        let dead = hub.join(&node("a"), "1");
        let mut alive = hub.join(&node("a"), "1");
        drop(dead);
        assert_eq!(ends(&hub), [("a".to_owned(), None)]);
        assert_eq!(alive.heard(), Ok(()));
        assert!(hub.connected().contains("uid of a"));
        alive.leave();
        assert_eq!(ends(&hub), [("a".to_owned(), Some(StreamEnd::Left))]);
    }

    #[test]
    fn two_streams_that_both_speak_are_cut() {
        let hub = Arc::new(AgentHub::default());
        let mut first = hub.join(&node("a"), "1");
        let mut second = hub.join(&node("a"), "1");
        assert_eq!(second.heard(), Ok(()));
        assert_eq!(first.heard(), Err(Cloned));
        assert!(second.cut.is_cancelled());
        drop((first, second));
        assert_eq!(ends(&hub), [("a".to_owned(), Some(StreamEnd::Cloned))]);
    }
}
