//! The engine of several servers: etcd 3.4 to 3.7.
//!
//! ```text
//! range ───▶ any member, again at another until a deadline
//! transact ▶ one member, once; anything but a plain answer is told as unknown, and the Store's slots find it out
//! watch ───▶ one stream; when it breaks, a new one at another member from the last revision that was told
//! ```

mod client;
mod convert;
mod endpoints;
mod release;
mod watch;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::client::Client;
use self::convert::Asked;
use self::watch::EtcdWatch;
pub use release::known_bugs;

use crate::{
    Answer, Engine, EngineStatus, LeaseId, LeaseState, Outcome, Page, Range, Revision, Span,
    StoreError, Transaction, Watcher,
};

/// How etcd is reached.
#[derive(Debug, Clone)]
pub struct EtcdOptions {
    /// The addresses of its members, `http://…` or `https://…`.
    pub endpoints: Vec<String>,
    /// Certificates, for `https`.
    pub tls: Option<EtcdTls>,
    /// A user with a password, if etcd wants one.
    pub login: Option<EtcdLogin>,
    /// What one call may take.
    pub call_timeout: Duration,
    /// How long a read is tried again.
    pub read_deadline: Duration,
}

impl EtcdOptions {
    /// Without TLS and login.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            tls: None,
            login: None,
            call_timeout: Duration::from_secs(5),
            read_deadline: Duration::from_secs(15),
        }
    }
}

/// Certificates, as PEM.
#[derive(Clone)]
pub struct EtcdTls {
    /// Of the authority that signed etcd's certificates.
    pub authority: String,
    /// Our own certificate and its key, if etcd asks for them.
    pub identity: Option<(String, String)>,
}

impl fmt::Debug for EtcdTls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("EtcdTls([redacted])")
    }
}

/// A user of etcd.
#[derive(Clone)]
pub struct EtcdLogin {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for EtcdLogin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "EtcdLogin({}, [redacted])", self.user)
    }
}

/// A member of the cluster as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdMember {
    /// The address it was asked at.
    pub endpoint: String,
    /// Its release, or why it did not answer.
    pub version: Result<String, String>,
    /// Whether it leads the cluster, as it says itself.
    pub is_leader: bool,
    /// Bugs of its release that matter here.
    pub bugs: Vec<&'static str>,
}

/// The engine. Connections are made when they are needed.
pub struct Etcd {
    client: Arc<Client>,
}

impl Etcd {
    /// An engine for a cluster. Connections belong to the tokio runtime in which this is called.
    pub fn new(options: EtcdOptions) -> Result<Self, StoreError> {
        if tokio::runtime::Handle::try_current().is_err() {
            let detail = "etcd needs a tokio runtime, and there is none".to_owned();
            return Err(StoreError::Unavailable { detail });
        }
        let client = Arc::new(Client::new(options)?);
        Ok(Self { client })
    }

    /// Asks every member for its release.
    pub async fn members(&self) -> Vec<EtcdMember> {
        let mut members = Vec::new();
        for (endpoint, answer) in self.client.status_of_all().await {
            let is_leader = answer.as_ref().is_ok_and(|status| {
                let own = status.header.map(|header| header.member_id);
                own == Some(status.leader)
            });
            let version = answer.map(|status| status.version);
            let bugs = version.as_deref().map_or(Vec::new(), known_bugs);
            members.push(EtcdMember {
                endpoint,
                version,
                is_leader,
                bugs,
            });
        }
        members
    }

    /// Reads a page; a smaller one when the records are so large that the answer would be too.
    async fn page(&self, mut range: Range) -> Result<Page, StoreError> {
        let asked = Asked {
            revision: range.at.unwrap_or(0),
            ..Asked::default()
        };
        loop {
            let request = convert::range_request(&range);
            let answer = self
                .client
                .read("/etcdserverpb.KV/Range", request, asked)
                .await;
            match answer {
                Err(error) if client::is_too_large(&error) && range.limit > 1 => range.limit /= 2,
                Err(error) => return Err(self.with_oldest(error).await),
                Ok(response) => return convert::page(response, None),
            }
        }
    }

    /// etcd does not say where history begins. A watch from the first revision does.
    async fn with_oldest(&self, error: StoreError) -> StoreError {
        let StoreError::Compacted { asked, .. } = error else {
            return error;
        };
        let mut probe = EtcdWatch::new(Arc::clone(&self.client), Span::key("/"), 1);
        let told = tokio::time::timeout(Duration::from_secs(2), probe.advance()).await;
        match told {
            Ok(Err(StoreError::Compacted { oldest, .. })) => {
                StoreError::Compacted { asked, oldest }
            }
            _ => error,
        }
    }
}

impl Engine for Etcd {
    fn range(&self, range: Range) -> Answer<'_, Page> {
        Box::pin(self.page(range))
    }

    fn transact(&self, transaction: Transaction) -> Answer<'_, Outcome> {
        Box::pin(async move {
            let request = convert::txn_request(&transaction);
            let leases = transaction.writes.iter().filter_map(|write| match write {
                crate::Write::Put { lease, .. } => *lease,
                crate::Write::Delete { .. } => None,
            });
            let reads = transaction.reads.iter().chain(&transaction.otherwise);
            let asked = Asked {
                is_write: transaction.writes(),
                revision: reads.filter_map(|read| read.at).min().unwrap_or(0),
                lease: leases.last(),
            };
            let answer = if transaction.writes() {
                self.client
                    .write("/etcdserverpb.KV/Txn", request, asked)
                    .await
            } else {
                self.client
                    .read("/etcdserverpb.KV/Txn", request, asked)
                    .await
            };
            match answer {
                Ok(response) => convert::outcome(response),
                Err(error) => Err(self.with_oldest(error).await),
            }
        })
    }

    fn watch(&self, span: Span, from: Revision) -> Answer<'_, Watcher> {
        Box::pin(async move {
            let mut watch = EtcdWatch::new(Arc::clone(&self.client), span, from);
            watch.establish(self.client.call_timeout()).await;
            Ok(Watcher::new(watch))
        })
    }

    fn compact(&self, revision: Revision) -> Answer<'_, ()> {
        Box::pin(async move {
            let request = wire::CompactionRequest {
                revision: revision as i64,
                physical: false,
            };
            let asked = Asked {
                revision,
                ..Asked::default()
            };
            let path = "/etcdserverpb.KV/Compact";
            let (answer, was_repeated) = self.client.repeat(path, request, asked).await;
            let done = answer.map(|wire::CompactionResponse { .. }| ());
            match settled(done, was_repeated) {
                Ok(()) => Ok(()),
                Err(error) => Err(self.with_oldest(error).await),
            }
        })
    }

    fn grant(&self, time: Duration) -> Answer<'_, (LeaseId, Duration)> {
        Box::pin(async move {
            // With a name of our own the request can be repeated: a second one finds the first.
            let id = rand::random::<i64>() & i64::MAX | 1;
            let request = wire::LeaseGrantRequest {
                ttl: time.as_secs() as i64,
                id,
            };
            let answer = self
                .client
                .read("/etcdserverpb.Lease/LeaseGrant", request, Asked::default())
                .await;
            let lease = LeaseId(id);
            match answer {
                Ok(wire::LeaseGrantResponse { ttl, .. }) => Ok((lease, seconds(ttl))),
                Err(StoreError::Denied { detail }) if detail.contains("lease already exists") => {
                    Ok((lease, self.lease(lease).await?.granted))
                }
                Err(error) => Err(error),
            }
        })
    }

    fn keep_alive(&self, lease: LeaseId) -> Answer<'_, Duration> {
        Box::pin(async move {
            let answer = self.client.keep_alive(lease).await?;
            match answer.ttl {
                ttl if ttl > 0 => Ok(seconds(ttl)),
                _ => Err(StoreError::NoLease { lease }),
            }
        })
    }

    fn revoke(&self, lease: LeaseId) -> Answer<'_, ()> {
        Box::pin(async move {
            let request = wire::LeaseRevokeRequest { id: lease.number() };
            let asked = Asked {
                lease: Some(lease),
                ..Asked::default()
            };
            let path = "/etcdserverpb.Lease/LeaseRevoke";
            let (answer, was_repeated) = self.client.repeat(path, request, asked).await;
            let done = answer.map(|wire::LeaseRevokeResponse { .. }| ());
            settled(done, was_repeated)
        })
    }

    fn lease(&self, lease: LeaseId) -> Answer<'_, LeaseState> {
        Box::pin(async move {
            let request = wire::LeaseTimeToLiveRequest {
                id: lease.number(),
                keys: true,
            };
            let asked = Asked {
                lease: Some(lease),
                ..Asked::default()
            };
            let path = "/etcdserverpb.Lease/LeaseTimeToLive";
            let answer: wire::LeaseTimeToLiveResponse =
                self.client.read(path, request, asked).await?;
            if answer.ttl < 0 {
                return Err(StoreError::NoLease { lease });
            }
            let mut keys = answer.keys;
            keys.sort_unstable();
            Ok(LeaseState {
                granted: seconds(answer.granted_ttl),
                remaining: seconds(answer.ttl),
                keys,
            })
        })
    }

    fn status(&self) -> Answer<'_, EngineStatus> {
        Box::pin(async move {
            // A member's own revision may lag behind; a read of any key does not.
            let revision = self.page(Range::key("/")).await?.revision;
            let path = "/etcdserverpb.Maintenance/Status";
            let request = wire::StatusRequest {};
            let status: wire::StatusResponse =
                self.client.read(path, request, Asked::default()).await?;
            let mut warnings = status.errors;
            for bug in known_bugs(&status.version) {
                warnings.push(format!("etcd {} has a bug: {bug}", status.version));
            }
            Ok(EngineStatus {
                revision,
                bytes: status.db_size.max(0) as u64,
                max_bytes: None,
                warnings,
                cluster: status.header.map(|header| header.cluster_id),
            })
        })
    }

    fn loses_answers(&self) -> bool {
        true
    }
}

/// What became of a call that changes something and may be made several times: what it was to end is gone because an
/// earlier attempt ended it, whose answer was lost; and without an answer it may have happened.
fn settled(done: Result<(), StoreError>, was_repeated: bool) -> Result<(), StoreError> {
    match done {
        Err(StoreError::NoLease { .. } | StoreError::Compacted { .. }) if was_repeated => Ok(()),
        Err(StoreError::Unavailable { detail }) => Err(StoreError::Unknown {
            operation: None,
            detail,
        }),
        done => done,
    }
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.max(0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_an_earlier_attempt_ended_was_ended() {
        let gone = || {
            let lease = LeaseId::new(7).expect("not 0");
            Err(StoreError::NoLease { lease })
        };
        assert!(settled(gone(), true).is_ok());
        assert!(matches!(
            settled(gone(), false),
            Err(StoreError::NoLease { .. })
        ));
        let silent = Err(StoreError::Unavailable {
            detail: String::new(),
        });
        assert!(matches!(
            settled(silent, false),
            Err(StoreError::Unknown { .. })
        ));
    }
}
