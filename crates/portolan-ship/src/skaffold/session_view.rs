//! What happens beside the runs of a dev loop in Skaffold's words: copied files and forwarded ports.

use std::collections::BTreeMap;

use super::outline::RunOutline;
use super::wire::{self, event::EventType};
use crate::dev::DevEvent;

/// Ports that are forwarded, and how the last copy of files ended.
#[derive(Default)]
pub(super) struct SessionView {
    /// By resource and port there.
    ports: BTreeMap<String, wire::PortForwardEvent>,
    sync: &'static str,
}

impl SessionView {
    /// Takes an event in; returns what Skaffold would say about it.
    pub(super) fn take(
        &mut self,
        event: &DevEvent,
        outline: &RunOutline,
        iteration: i32,
    ) -> Option<EventType> {
        match event {
            DevEvent::Forwarding {
                resource,
                port,
                address,
            } => {
                let event = forward(resource, *port, address, iteration);
                self.ports.insert(resource.clone(), event.clone());
                Some(EventType::PortEvent(event))
            }
            DevEvent::ForwardedTo { resource, pod } => {
                let known = self.ports.get_mut(resource)?;
                known.pod_name.clone_from(pod);
                Some(EventType::PortEvent(known.clone()))
            }
            DevEvent::Synced {
                artifact,
                copied,
                removed,
                ..
            } => {
                self.sync = "Complete";
                let count = i32::try_from(copied + removed).unwrap_or(i32::MAX);
                let event = sync(artifact, outline, iteration);
                Some(EventType::FileSyncEvent(wire::FileSyncEvent {
                    file_count: count,
                    status: "Succeeded".to_owned(),
                    ..event
                }))
            }
            DevEvent::SyncTrouble { artifact, why, .. } => {
                self.sync = "Failed";
                Some(EventType::FileSyncEvent(wire::FileSyncEvent {
                    status: "Failed".to_owned(),
                    actionable_err: Some(wire::ActionableErr {
                        err_code: wire::StatusCode::UnknownError.into(),
                        message: why.clone(),
                        suggestions: Vec::new(),
                    }),
                    ..sync(artifact, outline, iteration)
                }))
            }
            _ => None,
        }
    }

    /// How the last copy of files ended.
    pub(super) fn sync_status(&self) -> &'static str {
        match self.sync {
            "" => "NotStarted",
            status => status,
        }
    }

    /// The ports by their number on this machine.
    pub(super) fn ports(&self) -> BTreeMap<i32, wire::PortForwardEvent> {
        let ports = self.ports.values();
        ports.map(|port| (port.local_port, port.clone())).collect()
    }
}

fn forward(resource: &str, port: u16, address: &str, iteration: i32) -> wire::PortForwardEvent {
    let (kind, name) = resource.split_once('/').unwrap_or(("", resource));
    let (host, local) = address.rsplit_once(':').unwrap_or((address, ""));
    wire::PortForwardEvent {
        id: format!("{resource}:{port}"),
        task_id: format!("PortForward-{iteration}"),
        local_port: local.parse().unwrap_or_default(),
        resource_type: kind.to_owned(),
        resource_name: name.to_owned(),
        address: host.to_owned(),
        target_port: Some(wire::IntOrString {
            r#type: 0,
            int_val: port.into(),
            str_val: String::new(),
        }),
        ..Default::default()
    }
}

fn sync(artifact: &str, outline: &RunOutline, iteration: i32) -> wire::FileSyncEvent {
    let (at, image) = match outline.artifact(artifact) {
        Some((at, known)) => (at.to_string(), known.image.clone()),
        None => (artifact.to_owned(), String::new()),
    };
    wire::FileSyncEvent {
        id: at,
        task_id: format!("Sync-{iteration}"),
        image,
        ..Default::default()
    }
}
