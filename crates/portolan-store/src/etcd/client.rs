//! Calls to etcd: to which member, how long, how often, and with which login.

use std::time::Duration;

use futures_util::stream;
use parking_lot::Mutex;
use prost::Message;
use tokio::time::{Instant, timeout, timeout_at};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::convert::{Asked, error, is_old_token};
use super::endpoints::{Endpoints, Member};
use super::{EtcdOptions, wire};
use crate::{LeaseId, StoreError};

/// A page of the largest records is halved until it fits.
const MAX_ANSWER: usize = 32 << 20;
/// Between two attempts of a read. It does not grow: the next attempt asks another member, and a deadline ends it.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Client {
    endpoints: Endpoints,
    options: EtcdOptions,
    token: Mutex<Option<MetadataValue<Ascii>>>,
}

impl Client {
    pub(super) fn new(options: EtcdOptions) -> Result<Self, StoreError> {
        Ok(Self {
            endpoints: Endpoints::new(&options)?,
            options,
            token: Mutex::new(None),
        })
    }

    /// A call that may be repeated: at other members until one answers or the deadline has come.
    pub(super) async fn read<Q, A>(
        &self,
        path: &'static str,
        message: Q,
        asked: Asked,
    ) -> Result<A, StoreError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.repeat(path, message, asked).await.0
    }

    /// The same for a call that changes something, as often as it is made. Returns whether it was made more than once, too.
    pub(super) async fn repeat<Q, A>(
        &self,
        path: &'static str,
        message: Q,
        asked: Asked,
    ) -> (Result<A, StoreError>, bool)
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let deadline = Instant::now() + self.options.read_deadline;
        let mut was_repeated = false;
        loop {
            let status = match self.once(path, message.clone(), deadline).await {
                Ok(answer) => return (Ok(answer), was_repeated),
                Err(status) => status,
            };
            let told = error(&status, asked);
            if !told.is_temporary() || is_too_large(&told) || Instant::now() + PAUSE >= deadline {
                return (Err(told), was_repeated);
            }
            tokio::time::sleep(PAUSE).await;
            was_repeated = true;
        }
    }

    /// A call that must not be repeated.
    pub(super) async fn write<Q, A>(
        &self,
        path: &'static str,
        message: Q,
        asked: Asked,
    ) -> Result<A, StoreError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let deadline = Instant::now() + self.options.call_timeout;
        let answer = self.once(path, message, deadline).await;
        answer.map_err(|status| error(&status, asked))
    }

    /// Asks one member. An old login is made new, which is no second attempt: etcd did nothing.
    async fn once<Q, A>(
        &self,
        path: &'static str,
        message: Q,
        deadline: Instant,
    ) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let member = self.endpoints.pick();
        let deadline = deadline.min(Instant::now() + self.options.call_timeout);
        let attempt = async {
            let token = self.login(&member).await?;
            let first = self.unary(&member, path, message.clone(), token).await;
            match first {
                Err(status) if is_old_token(&status) && self.options.login.is_some() => {
                    *self.token.lock() = None;
                    let token = self.login(&member).await?;
                    self.unary(&member, path, message, token).await
                }
                answer => answer,
            }
        };
        let answer = timeout_at(deadline, attempt).await;
        let answer = answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time")));
        self.judge(&member, answer.as_ref().err());
        answer
    }

    async fn unary<Q, A>(
        &self,
        member: &Member,
        path: &'static str,
        message: Q,
        token: Option<MetadataValue<Ascii>>,
    ) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = ready(member).await?;
        let request = with_metadata(Request::new(message), token);
        let codec = ProstCodec::<Q, A>::default();
        let answer = grpc
            .unary(request, PathAndQuery::from_static(path), codec)
            .await?;
        Ok(answer.into_inner())
    }

    /// Remembers whether a member works.
    pub(super) fn judge(&self, member: &Member, status: Option<&Status>) {
        let is_down = status.is_some_and(|status| {
            matches!(
                status.code(),
                Code::Unavailable
                    | Code::DeadlineExceeded
                    | Code::Unknown
                    | Code::Internal
                    | Code::Cancelled
            )
        });
        if is_down {
            self.endpoints.failed(member);
        } else {
            self.endpoints.answered(member);
        }
    }

    /// What one call may take.
    pub(super) fn call_timeout(&self) -> Duration {
        self.options.call_timeout
    }

    pub(super) fn pick(&self) -> Member {
        self.endpoints.pick()
    }

    /// The token of a login, if one is needed.
    async fn login(&self, member: &Member) -> Result<Option<MetadataValue<Ascii>>, Status> {
        let Some(login) = &self.options.login else {
            return Ok(None);
        };
        if let Some(token) = self.token.lock().clone() {
            return Ok(Some(token));
        }
        let request = wire::AuthenticateRequest {
            name: login.user.clone(),
            password: login.password.clone(),
        };
        let path = "/etcdserverpb.Auth/Authenticate";
        let answer: wire::AuthenticateResponse = self.unary(member, path, request, None).await?;
        let token = MetadataValue::try_from(answer.token);
        let token =
            token.map_err(|_| Status::unauthenticated("etcd gives a token that is no header"))?;
        *self.token.lock() = Some(token.clone());
        Ok(Some(token))
    }

    /// Opens a stream of messages both ways.
    pub(super) async fn stream<Q, A>(
        &self,
        member: &Member,
        path: &'static str,
        messages: impl futures_util::Stream<Item = Q> + Send + 'static,
    ) -> Result<Streaming<A>, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let open = async {
            let token = self.login(member).await?;
            let mut grpc = ready(member).await?;
            let request = with_metadata(Request::new(messages), token);
            let codec = ProstCodec::<Q, A>::default();
            let answer = grpc
                .streaming(request, PathAndQuery::from_static(path), codec)
                .await?;
            Ok(answer.into_inner())
        };
        let opened = timeout(self.options.call_timeout, open).await;
        let opened = opened.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time")));
        if opened.as_ref().is_err_and(is_old_token) {
            *self.token.lock() = None;
        }
        self.judge(member, opened.as_ref().err());
        opened
    }

    /// Renews a lease by a stream of one message.
    pub(super) async fn keep_alive(
        &self,
        lease: LeaseId,
    ) -> Result<wire::LeaseKeepAliveResponse, StoreError> {
        let asked = Asked {
            lease: Some(lease),
            ..Asked::default()
        };
        let deadline = Instant::now() + self.options.call_timeout;
        loop {
            let renewed = timeout_at(deadline, self.renew(lease)).await;
            let renewed =
                renewed.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time")));
            let status = match renewed {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            let told = error(&status, asked);
            if !told.is_temporary() || Instant::now() + PAUSE >= deadline {
                return Err(told);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn renew(&self, lease: LeaseId) -> Result<wire::LeaseKeepAliveResponse, Status> {
        let member = self.pick();
        let request = wire::LeaseKeepAliveRequest { id: lease.number() };
        let path = "/etcdserverpb.Lease/LeaseKeepAlive";
        let mut answers = self.stream(&member, path, stream::iter([request])).await?;
        let answer = answers.message().await?;
        answer.ok_or_else(|| Status::unavailable("etcd ends the stream without an answer"))
    }

    /// Asks every member, each once.
    pub(super) async fn status_of_all(
        &self,
    ) -> Vec<(String, Result<wire::StatusResponse, String>)> {
        let mut answers = Vec::new();
        for (number, (endpoint, channel)) in self.endpoints.all().enumerate() {
            let member = Member { number, channel };
            let ask = async {
                let token = self.login(&member).await?;
                let request = wire::StatusRequest {};
                self.unary(&member, "/etcdserverpb.Maintenance/Status", request, token)
                    .await
            };
            let answer = timeout(self.options.call_timeout, ask).await;
            let answer =
                answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time")));
            let answer = answer.map_err(|status: Status| status.message().to_owned());
            answers.push((endpoint.to_owned(), answer));
        }
        answers
    }
}

async fn ready(member: &Member) -> Result<Grpc<Channel>, Status> {
    let mut grpc = Grpc::new(member.channel.clone()).max_decoding_message_size(MAX_ANSWER);
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::unavailable(format!("cannot connect: {error}")))?;
    Ok(grpc)
}

/// A member without a leader refuses the call at once, instead of keeping a watch or a read waiting.
fn with_metadata<T>(mut request: Request<T>, token: Option<MetadataValue<Ascii>>) -> Request<T> {
    let has_leader = MetadataValue::from_static("true");
    request.metadata_mut().insert("hasleader", has_leader);
    if let Some(token) = token {
        request.metadata_mut().insert("token", token);
    }
    request
}

/// Whether an answer was larger than we take.
pub(super) fn is_too_large(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { detail } if detail.contains("message length too large"))
}
