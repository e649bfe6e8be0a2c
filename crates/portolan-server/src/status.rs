//! How the server stands, for one screen.

use portolan_store::level;
use serde_json::{Value, json};

use crate::anchor::anchors;
use crate::clock::rfc3339;
use crate::error::ApiError;
use crate::membership::servers;
use crate::server::ApiServer;

impl ApiServer {
    /// The state of this server, of the store and of the other servers.
    pub(crate) async fn status(&self) -> Result<Value, ApiError> {
        let store = &self.objects.store;
        let engine = store.status().await?;
        let (objects, changes) = self.cache.counts();
        let (kept, bytes) = self.cache.event_counts();
        let head = self.audit.head();
        let shard = format!("{}0", portolan_store::keys::SHARDS);
        let owner = store.get(shard).await?;
        let owner = owner.map(|record| String::from_utf8_lossy(&record.value).into_owned());
        let others: Vec<Value> = servers(store)
            .await?
            .iter()
            .map(|server| {
                json!({
                    "server": server.server, "address": server.address, "version": server.version,
                    "maxLevel": server.max_level, "isThis": server.server == self.name,
                    "isOwner": owner.as_deref() == Some(server.server.as_str()),
                })
            })
            .collect();
        let mut anchored = anchors(store).await?.into_iter();
        let anchored = anchored.find(|anchor| anchor.server == self.name);
        Ok(json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "ServerStatus",
            "server": self.name, "version": env!("CARGO_PKG_VERSION"),
            "incarnation": self.objects.incarnation.number,
            "time": rfc3339(self.objects.time.now()),
            "store": {
                "revision": engine.revision, "bytes": engine.bytes, "warnings": engine.warnings,
                "engine": if engine.cluster.is_some() { "etcd" } else { "embedded" },
                "level": level::stored_level(store).await?, "maxLevel": self.max_level,
            },
            "cache": {
                "objects": objects, "changes": changes, "lag": engine.revision.saturating_sub(self.cache.revision()),
            },
            "events": {"kept": kept, "bytes": bytes},
            "servers": others,
            "controllers": {
                "owner": owner, "isOwner": owner.as_deref() == Some(self.name.as_str()),
                "hasLease": self.lease.current().is_some(),
            },
            "audit": {
                "number": head.number, "digest": head.digest, "anchored": anchored.map_or(0, |anchor| anchor.number),
            },
            "secrets": {"key": self.objects.sealer.as_ref().map(|sealer| sealer.current().to_owned())},
        }))
    }
}
