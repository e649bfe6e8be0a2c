//! What an agent tells about its machine: what costs nothing at once, the rest a little later and then now and then.
//!
//! A server keeps it in the status of the Node, for all nodes of a fleet. So it is a summary: packages, services and users are
//! counted, services that failed are named, and a book that reads `facts.packages` or `facts.services` asks the machine itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portolan_clock::Clock;
use portolan_digest::Digest;
use portolan_fleet::CUSTOM_FACTS;
use portolan_modules::{FactCache, FactSource, Host, Root};
use serde_json::{Map, Value, json};

use crate::wire::Facts;

/// How often everything is found out again.
pub(crate) const INTERVAL: Duration = Duration::from_mins(15);

/// What is told at once when the agent connects.
const AT_ONCE: [&str; 6] = ["os", "kernel", "hostname", "cpus", "memory", "network"];

/// How many services that failed are named.
const NAMED_SERVICES: usize = 50;

/// The most bytes that are told.
const MAX_BYTES: usize = 64 << 10;

/// Finds out facts, and remembers how old they are.
pub(crate) struct FactReporter {
    root: Arc<Root>,
    clock: Arc<dyn Clock>,
    cache: Mutex<FactCache>,
}

impl FactReporter {
    pub(crate) fn new(root: Arc<Root>, clock: Arc<dyn Clock>) -> Self {
        Self {
            root,
            clock,
            cache: Mutex::default(),
        }
    }

    /// What is known, after the parts that cost nothing, or all, were found out again. Programs are started and files read.
    pub(crate) fn report(&self, is_whole: bool) -> Facts {
        let host = Host::local(Arc::clone(&self.root));
        let source = FactSource {
            host: &host,
            custom: CUSTOM_FACTS.into(),
        };
        let wanted = FactCache::parts().filter(|part| {
            // What a manager of services says below another root directory is nothing.
            let is_known = *part != "services" || !host.is_rooted();
            is_known && (is_whole || AT_ONCE.contains(part))
        });
        let wanted = wanted.map(str::to_owned).collect();
        let now = self.clock.now();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.refresh(&source, Some(&wanted), now, INTERVAL / 2);
        let mut values = summary(cache.values());
        let mut ages = cache.ages(self.clock.now());
        let mut problems: Map<String, Value> = cache
            .problems()
            .into_iter()
            .map(|(part, why)| (part.to_owned(), why.into()))
            .collect();
        drop(cache);
        bound(&mut values, &mut problems);
        ages.retain(|part, _| values.contains_key(part));
        if !problems.is_empty() {
            values.insert("problems".to_owned(), Value::Object(problems));
        }
        Facts {
            values: Value::Object(values).to_string().into(),
            ages: Value::Object(ages).to_string().into(),
        }
    }
}

/// Long lists become numbers, and addresses stand where other nodes look for them.
fn summary(values: Value) -> Map<String, Value> {
    let mut facts = match values {
        Value::Object(facts) => facts,
        _ => Map::new(),
    };
    if let Some(network) = facts.get("network") {
        let addresses = network["addresses"].clone();
        facts.insert("addresses".to_owned(), addresses);
    }
    if let Some(packages) = facts.get_mut("packages") {
        let count = packages.as_object().map_or(0, Map::len);
        // Two nodes with the same packages have the same digest.
        let digest = Digest::of(packages.to_string().as_bytes()).hex();
        *packages = json!({"count": count, "digest": digest});
    }
    if let Some(services) = facts.get_mut("services") {
        let all = services.as_object();
        let count = |key: &str| {
            let services = all.into_iter().flat_map(Map::values);
            services.filter(|service| service[key] == true).count()
        };
        let (enabled, running) = (count("enabled"), count("running"));
        let failed = all.into_iter().flatten();
        let failed = failed.filter(|(_, service)| service["state"] == "failed");
        let failed: Vec<&String> = failed.map(|(name, _)| name).take(NAMED_SERVICES).collect();
        *services = json!({"count": all.map_or(0, Map::len), "enabled": enabled, "running": running, "failed": failed});
    }
    if let Some(users) = facts.get_mut("users") {
        let count = match &*users {
            Value::Object(users) => users.len(),
            Value::Array(users) => users.len(),
            _ => 0,
        };
        *users = json!({"count": count});
    }
    facts
}

/// Leaves out the longest parts until the rest fits.
fn bound(facts: &mut Map<String, Value>, problems: &mut Map<String, Value>) {
    let length = |value: &Value| value.to_string().len();
    while facts.values().map(length).sum::<usize>() > MAX_BYTES {
        let longest = facts.iter().max_by_key(|(_, value)| length(value));
        let Some(longest) = longest.map(|(part, _)| part.clone()) else {
            return;
        };
        facts.remove(&longest);
        problems.insert(longest, "it is too long to be told".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_counted_and_what_is_too_long_is_left_out_and_named() {
        let mut facts = summary(json!({
            "packages": {"a": "1", "b": "2"}, "users": {"root": {}}, "network": {"addresses": ["10.0.0.1"]},
            "services": {"x": {"enabled": true, "running": true}, "y": {"enabled": true, "running": false, "state": "failed"}},
            "custom": {"long": "x".repeat(MAX_BYTES)}, "hostname": "web-1",
        }));
        let mut problems = Map::new();
        bound(&mut facts, &mut problems);
        assert_eq!(facts["packages"]["count"], 2);
        assert_eq!(
            facts["services"],
            json!({"count": 2, "enabled": 2, "running": 1, "failed": ["y"]})
        );
        assert_eq!(facts["users"], json!({"count": 1}));
        assert_eq!(facts["addresses"], json!(["10.0.0.1"]));
        assert_eq!(facts.get("custom"), None);
        assert_eq!(problems.keys().collect::<Vec<_>>(), ["custom"]);
    }
}
