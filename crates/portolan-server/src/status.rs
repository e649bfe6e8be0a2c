//! How the server stands, for one screen.

use std::fmt::Write as _;
use std::time::Duration;

use portolan_store::level;
use serde_json::{Value, json};

use crate::anchor::anchors;
use crate::clock::rfc3339;
use crate::error::ApiError;
use crate::membership::{ServerEntry, servers};
use crate::server::ApiServer;

/// An authority is renewed long before it ends; what is left when it was not.
const AUTHORITY_WARNING: Duration = Duration::from_hours(30 * 24);

/// Clocks that are further apart make tokens and certificates end at different times.
const CLOCK_WARNING: Duration = Duration::from_secs(5);

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
        let servers = servers(store).await?;
        let others: Vec<Value> = servers
            .iter()
            .map(|server| {
                json!({
                    "clockAheadMillis": self.cache.clock_ahead(&server.server),
                    "server": server.server, "address": server.address, "version": server.version,
                    "maxLevel": server.max_level, "isThis": server.server == self.name,
                    "isOwner": owner.as_deref() == Some(server.server.as_str()),
                })
            })
            .collect();
        let mut anchored = anchors(store).await?.into_iter();
        let anchored = anchored.find(|anchor| anchor.server == self.name);
        let backup = self.backups.status();
        let authority = self.fleet.authorities.current().expires();
        Ok(json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "ServerStatus",
            "server": self.name, "version": env!("CARGO_PKG_VERSION"),
            "incarnation": self.objects.incarnation.number,
            "time": rfc3339(self.objects.time.now()),
            "store": {
                "revision": engine.revision, "bytes": engine.bytes, "maxBytes": engine.max_bytes,
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
            "backup": backup,
            "certificates": {"authorityExpires": rfc3339(authority)},
            "warnings": self.warnings(engine.warnings, authority, &servers),
            "secrets": {"key": self.objects.sealer.as_ref().map(|sealer| sealer.current().to_owned())},
        }))
    }

    /// What somebody should do something about, in words.
    fn warnings(
        &self,
        of_engine: Vec<String>,
        authority: Duration,
        servers: &[ServerEntry],
    ) -> Vec<String> {
        let mut warnings = of_engine;
        warnings.extend(
            servers
                .iter()
                .filter_map(|server| self.clock_warning(server)),
        );
        warnings.extend(self.backups.warning());
        if !self.audit.is_open() {
            warnings.push("the audit log cannot be written".to_owned());
        }
        let left = authority.saturating_sub(self.objects.time.now());
        if left < AUTHORITY_WARNING {
            let days = left.as_secs() / (24 * 3600);
            warnings.push(format!(
                "the fleet's certificate authority ends in {days} days and was not renewed"
            ));
        }
        warnings
    }

    fn clock_warning(&self, server: &ServerEntry) -> Option<String> {
        let ahead = self.cache.clock_ahead(&server.server)?;
        let seconds = ahead.unsigned_abs() / 1_000;
        let which = if ahead > 0 { "ahead of" } else { "behind" };
        (seconds >= CLOCK_WARNING.as_secs()).then(|| {
            let name = match server.address.as_str() {
                "" => &server.server,
                address => address,
            };
            format!("the clock of {name} is {seconds} s {which} this server's: set both by NTP")
        })
    }

    /// Lines for `/metrics`.
    pub(crate) fn metrics(&self) -> String {
        let (objects, changes) = self.cache.counts();
        let (events, bytes) = self.cache.event_counts();
        let gauges = [
            (
                "portolan_server_objects",
                "Objects, without events",
                objects as u64,
            ),
            (
                "portolan_server_changes_kept",
                "Changes that watches can go on from",
                changes as u64,
            ),
            (
                "portolan_server_events",
                "Events that are kept",
                events as u64,
            ),
            ("portolan_server_events_bytes", "Bytes of the events", bytes),
            (
                "portolan_server_events_lost",
                "Events of this server that were lost since it started",
                self.event_sink.lost(),
            ),
            (
                "portolan_server_revision",
                "The newest revision of the store that the server knows",
                self.cache.revision(),
            ),
            (
                "portolan_server_audit_entries",
                "The number of the newest entry of the audit log",
                self.audit.head().number,
            ),
        ];
        let mut text = String::new();
        for (name, help, value) in gauges {
            let _ = write!(
                text,
                "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n"
            );
        }
        text + &self.backups.metrics()
    }
}
