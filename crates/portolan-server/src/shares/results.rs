//! Keeps results of steps that other nodes of a run read and that are too large for the store or encrypted. They are blobs
//! of the run: on two servers, if there are two, before anybody hears of them.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::StatusCode;
use portolan_agent::wire::server_message::Message;
use portolan_agent::wire::{
    ResultContent, ResultOffer, ResultPut, ResultStored, ResultWant, ShareRecipients,
};
use portolan_store::Ownership;
use portolan_store::blob::BlobName;
use tokio::sync::{mpsc, watch};

use super::request;
use crate::agents::AgentHub;
use crate::blobs::{MAX_BLOB, ServerBlobs};
use crate::cache::Cache;
use crate::error::ApiError;
use crate::node_access::NodeIdentity;
use crate::runs::is_over;

/// How many questions are worked on at the same time: each may wait for another server.
const AT_ONCE: usize = 16;

/// Something that an agent wants of results.
#[derive(Debug)]
pub(crate) enum ResultInput {
    /// It wants to know whom a result is encrypted to.
    Offered(Arc<NodeIdentity>, ResultOffer),
    /// It has a result for others.
    Put(Arc<NodeIdentity>, ResultPut),
    /// It reads one.
    Wanted(Arc<NodeIdentity>, ResultWant),
}

/// Keeps results.
pub(crate) struct ResultKeeper {
    pub(crate) work: ResultWork,
    pub(crate) inputs: mpsc::Receiver<ResultInput>,
}

/// What answers need.
pub(crate) struct ResultWork {
    pub(crate) cache: Cache,
    pub(crate) agents: Arc<AgentHub>,
    pub(crate) blobs: Arc<ServerBlobs>,
    /// Whether this server owns the shard.
    pub(crate) owned: watch::Receiver<Option<Ownership>>,
}

impl ResultKeeper {
    /// Works until the future is dropped.
    pub(crate) async fn run(self) {
        let Self { work, mut inputs } = self;
        let mut answers = FuturesUnordered::new();
        loop {
            tokio::select! {
                input = inputs.recv(), if answers.len() < AT_ONCE => match input {
                    Some(input) => answers.push(work.answer(input)),
                    None => return,
                },
                Some(()) = answers.next(), if !answers.is_empty() => {}
            }
        }
    }
}

impl ResultWork {
    async fn answer(&self, input: ResultInput) {
        if self.owned.borrow().is_none() {
            // The agent asks the server that looks after runs.
            return;
        }
        let (node, message) = match input {
            ResultInput::Offered(node, offer) => {
                let recipients = request::run_of(&self.cache, &offer.run, &node)
                    .and_then(|run| request::recipients_of_run(&self.cache, &run));
                let answer = match recipients {
                    Ok(recipients) => ShareRecipients {
                        recipients,
                        ..ShareRecipients::default()
                    },
                    Err(refused) => ShareRecipients {
                        refused,
                        ..ShareRecipients::default()
                    },
                };
                let ask = offer.ask;
                (
                    node,
                    Message::ShareRecipients(ShareRecipients { ask, ..answer }),
                )
            }
            ResultInput::Put(node, put) => {
                let Some((refused, digest)) = self.put(&node, &put).await else {
                    return;
                };
                let ask = put.ask;
                let stored = ResultStored {
                    ask,
                    refused,
                    digest,
                };
                (node, Message::ResultStored(stored))
            }
            ResultInput::Wanted(node, want) => {
                let content = self.content(&node, &want).await;
                let ask = want.ask;
                (
                    node,
                    Message::ResultContent(ResultContent { ask, ..content }),
                )
            }
        };
        self.agents.send(&node.uid, message);
    }

    /// Stores a result: why it is not, and its digest. `None` if the agent should ask again.
    async fn put(&self, node: &NodeIdentity, put: &ResultPut) -> Option<(String, String)> {
        let run = match request::run_of(&self.cache, &put.run, node) {
            Ok(run) if is_over(&run) => return Some(("the run is over".to_owned(), String::new())),
            Ok(run) => run,
            Err(refused) => return Some((refused, String::new())),
        };
        if put.content.len() > MAX_BLOB {
            return Some(("the result is too large".to_owned(), String::new()));
        }
        let namespace = run.namespace().unwrap_or_default();
        let content = put.content.clone();
        match self.blobs.put_result(namespace, &put.run, content).await {
            Ok(name) => Some((String::new(), name.to_string())),
            Err(error) if is_passing(&error) => {
                tracing::warn!(%error, run = run.name(), "a result cannot be stored now");
                None
            }
            Err(error) => Some((error.to_string(), String::new())),
        }
    }

    async fn content(&self, node: &NodeIdentity, want: &ResultWant) -> ResultContent {
        let refused = |refused: String| ResultContent {
            refused,
            ..ResultContent::default()
        };
        if let Err(why) = request::run_of(&self.cache, &want.run, node) {
            return refused(why);
        }
        let Ok(name) = want.digest.parse::<BlobName>() else {
            return refused("the digest of the result is none".to_owned());
        };
        match self.blobs.get_result(&want.run, name).await {
            Ok(content) => ResultContent {
                content: content.into(),
                ..ResultContent::default()
            },
            Err(error) if is_passing(&error) => ResultContent {
                is_pending: true,
                ..ResultContent::default()
            },
            Err(error) => refused(error.to_string()),
        }
    }
}

/// Whether a later try may succeed.
fn is_passing(error: &ApiError) -> bool {
    error.status == StatusCode::SERVICE_UNAVAILABLE
}
