//! What whoever looks after nodes asks a server: the pin of its authority, approvals, labels and states.

use std::time::{Duration, Instant};

use crate::client::{FleetClient, FleetError, FleetMethod};
use portolan_object::NameRule;
use serde_json::{Value, json};

/// How often something that is waited for is asked for again.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// How often a change that lost a race is made again.
const ATTEMPTS: usize = 10;

/// A change of an object's labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelChange {
    /// Sets a label.
    Set(String, String),
    /// Removes a label, if it is there.
    Remove(String),
}

impl LabelChange {
    /// Reads `KEY=VALUE` or `KEY-`; `None` for anything else.
    pub fn read(text: &str) -> Option<Self> {
        match (text.split_once('='), text.strip_suffix('-')) {
            (Some((key, value)), _) if !key.is_empty() => {
                Some(Self::Set(key.to_owned(), value.to_owned()))
            }
            (None, Some(key)) if !key.is_empty() => Some(Self::Remove(key.to_owned())),
            _ => None,
        }
    }
}

impl FleetClient {
    /// What agents know the server's authority by.
    ///
    /// # Errors
    /// When the server refuses it, or there is no answer.
    pub async fn ca_pin(&self) -> Result<String, FleetError> {
        let path = "/api/v1alpha/authorities";
        let answer = self.request(FleetMethod::Get, path, &[], None).await?;
        let pin = answer["caPin"].as_str();
        let pin = pin.ok_or_else(|| FleetError::Foreign(self.server().to_owned()))?;
        Ok(pin.to_owned())
    }

    /// A Node; `None` if there is none.
    ///
    /// # Errors
    /// When the server refuses it, or there is no answer.
    pub async fn node(&self, name: &str) -> Result<Option<Value>, FleetError> {
        // Such a name is in no path.
        if !NameRule::Subdomain.fits(name) {
            return Ok(None);
        }
        let asked = self.request(FleetMethod::Get, &path(name), &[], None).await;
        match asked {
            Ok(node) => Ok(Some(node)),
            Err(FleetError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Approves the key with a fingerprint, as soon as its agent asks. False if it does not ask in time.
    ///
    /// # Errors
    /// When the server refuses it, or there is no answer.
    pub async fn approve_key(&self, fingerprint: &str, time: Duration) -> Result<bool, FleetError> {
        let path = format!("/api/v1alpha/enrolments/{fingerprint}/approve");
        let began = Instant::now();
        loop {
            match self.request(FleetMethod::Post, &path, &[], None).await {
                Ok(_) => return Ok(true),
                Err(FleetError::Refused { status: 404, .. }) => {}
                Err(error) => return Err(error),
            }
            if began.elapsed() > time {
                return Ok(false);
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// Waits until the agent of a node is connected. False if it is not in time.
    ///
    /// # Errors
    /// When the server refuses it, or there is no answer.
    pub async fn wait_until_ready(&self, name: &str, time: Duration) -> Result<bool, FleetError> {
        let began = Instant::now();
        loop {
            let node = self.node(name).await?.unwrap_or_default();
            if node["status"]["state"] == "ready" {
                return Ok(true);
            }
            if began.elapsed() > time {
                return Ok(false);
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// Changes the labels of a node, whatever else changes it at the same time.
    ///
    /// # Errors
    /// When the server refuses it, or there is no answer.
    pub async fn change_node_labels(
        &self,
        name: &str,
        changes: &[LabelChange],
    ) -> Result<(), FleetError> {
        let path = path(name);
        let mut attempts = 1..=ATTEMPTS;
        loop {
            let asked = self.request(FleetMethod::Get, &path, &[], None);
            let mut node = asked.await?;
            let labels = &mut node["metadata"]["labels"];
            if !labels.is_object() {
                *labels = json!({});
            }
            for change in changes {
                match change {
                    LabelChange::Set(key, value) => labels[key] = value.as_str().into(),
                    LabelChange::Remove(key) => {
                        labels.as_object_mut().map(|labels| labels.remove(key));
                    }
                }
            }
            let body = node.to_string();
            let written = self.request(FleetMethod::Put, &path, &[], Some(&body));
            match written.await {
                Ok(_) => return Ok(()),
                // The agent may report something between the two requests.
                Err(FleetError::Refused { reason, .. })
                    if reason == "Conflict" && attempts.next() != Some(ATTEMPTS) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn path(name: &str) -> String {
    format!("/api/v1alpha/nodes/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_set_or_removed() {
        let set = |key: &str, value: &str| LabelChange::Set(key.to_owned(), value.to_owned());
        assert_eq!(LabelChange::read("role=web"), Some(set("role", "web")));
        assert_eq!(LabelChange::read("role=a=b-"), Some(set("role", "a=b-")));
        let removed = Some(LabelChange::Remove("role".to_owned()));
        assert_eq!(LabelChange::read("role-"), removed);
        for wrong in ["role", "=web", "-", ""] {
            assert_eq!(LabelChange::read(wrong), None, "{wrong}");
        }
    }
}
