//! Domain events from outside units: a step of a rollout, a beacon that fires.
//!
//! The name of an event kind is part of its type. So nothing is published under a name that readers do not know, and
//! a reader gets back the type that was published.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::{Event, Record};
use crate::{Journal, Key, RunId};

/// The longest JSON of one event, in bytes; what is larger belongs into a file that the event names.
pub const MAX_PUBLISHED_BYTES: usize = 64 << 10;

/// Something that happens outside of units and that others may want to know.
pub trait DomainEvent: Serialize {
    /// What such events are called, for example `rollout.promoted`.
    const TOPIC: &'static str;
}

/// Writes one kind of event into a journal.
#[derive(Debug)]
pub struct Publisher<T> {
    journal: Journal,
    events: PhantomData<fn(T)>,
}

/// Why an event was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// It cannot be written as JSON.
    #[error("an event `{topic}` cannot be written as JSON")]
    Json {
        /// What such events are called.
        topic: &'static str,
        /// Why not.
        source: serde_json::Error,
    },
    /// It is too large.
    #[error("an event `{topic}` has {bytes} bytes; the most is {MAX_PUBLISHED_BYTES}")]
    TooLarge {
        /// What such events are called.
        topic: &'static str,
        /// How many bytes it has.
        bytes: usize,
    },
}

// === impl Publisher ===

impl<T: DomainEvent> Publisher<T> {
    /// Publishes an event about what the key names; returns its number.
    pub fn publish(&self, key: impl Into<Key>, event: &T) -> Result<u64, PublishError> {
        let topic = T::TOPIC;
        let data = json(event).map_err(|source| PublishError::Json { topic, source })?;
        if data.len() > MAX_PUBLISHED_BYTES {
            let bytes = data.len();
            return Err(PublishError::TooLarge { topic, bytes });
        }
        let topic = topic.to_owned();
        let event = Event::Published { topic, data };
        Ok(self.journal.append(RunId::NONE, &key.into(), event))
    }
}

/// JSON in the form that it has after it was read back, so that memory and file tell the same.
pub(crate) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_value(value)?.to_string())
}

impl<T> Clone for Publisher<T> {
    fn clone(&self) -> Self {
        Self {
            journal: self.journal.clone(),
            events: PhantomData,
        }
    }
}

impl Journal {
    /// What writes one kind of event into this journal.
    pub fn publisher<T: DomainEvent>(&self) -> Publisher<T> {
        Publisher {
            journal: self.clone(),
            events: PhantomData,
        }
    }
}

impl Record {
    /// The event that was published, if it is one of this kind.
    ///
    /// An error means that the event was published by a version with another idea of this kind.
    pub fn published<T: DomainEvent + DeserializeOwned>(&self) -> Option<serde_json::Result<T>> {
        match &self.event {
            Event::Published { topic, data } if topic == T::TOPIC => {
                Some(serde_json::from_str(data))
            }
            _ => None,
        }
    }
}
