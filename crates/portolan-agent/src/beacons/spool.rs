//! What beacons told and no server has yet, on the disk and bounded.
//!
//! An event and the state of its beacon are one record: after a crash either both are there, or neither, so nothing is told
//! twice or never. Events have numbers; the server says up to which one it has them. If there are too many, the oldest of
//! the least severe are dropped and counted, and the count is told as an event of its own.

use std::collections::BTreeMap;
use std::io;

use camino::Utf8Path;
use jiff::Timestamp;
use portolan_digest::hex;
use portolan_trigger::{
    BeaconState, FleetSeverity, SpoolEntry, SpoolLedger, SpoolLimits, SpoolLoss,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::record_log::RecordLog;

/// The file is written anew when it has so many bytes more than what it should hold.
const MAX_WASTE: u64 = 4 << 20;

/// Something that a beacon tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BeaconNotice {
    /// The namespace of the Beacon; empty for what the agent tells by itself.
    pub namespace: String,
    /// Its name; empty for what the agent tells by itself.
    pub beacon: String,
    /// What happened, as the last part of the event's type: `file`, `service` and so on.
    pub subject: String,
    /// How bad it is.
    pub severity: FleetSeverity,
    /// When it was seen, by the clock of the node.
    pub time: Timestamp,
    /// What happened, in a sentence.
    pub summary: String,
    /// More about it: a JSON object.
    pub data: Map<String, Value>,
    /// The run that has changed what is watched, by its uuid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// A run that was at work when it was seen and changes something else, by its uuid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<String>,
    /// What it is known by, if the agent may tell it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// A beacon that remembers something, by the id of its order, and what.
pub(super) type Remembered = (String, BeaconState);

/// What beacons told, and what they remember.
pub struct BeaconSpool {
    log: RecordLog,
    id: String,
    next: u64,
    limits: SpoolLimits,
    ledger: SpoolLedger,
    /// Events as they are sent, by number.
    events: BTreeMap<u64, (FleetSeverity, Vec<u8>)>,
    states: BTreeMap<String, BeaconState>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum SpoolRecord {
    /// The first record.
    Begun {
        id: String,
        next: u64,
        loss: SpoolLoss,
    },
    /// An event, with what its beacon remembers from then on and the loss that it tells.
    Told {
        number: u64,
        severity: FleetSeverity,
        content: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remembered: Option<Remembered>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        loss: Option<SpoolLoss>,
    },
    /// What a beacon remembers without telling anything.
    Remembered(Remembered),
    /// The server has all events up to a number.
    Delivered(u64),
}

impl BeaconSpool {
    /// Opens the spool of a directory, or makes an empty one.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn open(directory: &Utf8Path) -> io::Result<Self> {
        Self::open_within(directory, SpoolLimits::default())
    }

    fn open_within(directory: &Utf8Path, limits: SpoolLimits) -> io::Result<Self> {
        crate::disk::private_directory(directory)?;
        let (log, read) = RecordLog::open(&directory.join("spool.log"))?;
        if read.cut > 0 {
            tracing::warn!(
                bytes = read.cut,
                "the end of the spool of beacons was no record, and was cut"
            );
        }
        let mut spool = Self {
            log,
            id: String::new(),
            next: 1,
            limits,
            ledger: SpoolLedger::new(limits),
            events: BTreeMap::new(),
            states: BTreeMap::new(),
        };
        for record in &read.records {
            let record = serde_json::from_slice(record).map_err(io::Error::other)?;
            spool.take(record);
        }
        if spool.id.is_empty() {
            spool.id = hex(&rand::random::<[u8; 16]>());
            spool.rewrite()?;
        }
        Ok(spool)
    }

    /// Tells this spool apart from others of the same node.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How many events no server has yet.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether a server has all events.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// What a beacon remembers.
    pub(super) fn state(&self, beacon: &str) -> BeaconState {
        self.states.get(beacon).cloned().unwrap_or_default()
    }

    /// Adds events, which are on the disk when this returns.
    ///
    /// # Errors
    /// When the disk cannot be written; then none of them counts.
    pub fn tell(&mut self, notices: &[BeaconNotice]) -> io::Result<()> {
        let records = notices.iter().enumerate();
        let records = records.map(|(at, notice)| self.record(notice, at as u64, None, None));
        let records: Vec<SpoolRecord> = records.collect();
        self.write(records)
    }

    /// Adds the event of a beacon together with what the beacon remembers from then on.
    pub(super) fn tell_and_remember(
        &mut self,
        notice: &BeaconNotice,
        remembered: Remembered,
    ) -> io::Result<()> {
        let record = self.record(notice, 0, Some(remembered), None);
        self.write(vec![record])
    }

    /// Keeps what a beacon remembers.
    pub(super) fn remember(&mut self, remembered: Remembered) -> io::Result<()> {
        self.write(vec![SpoolRecord::Remembered(remembered)])
    }

    /// Forgets what beacons remember that are not watched any more.
    pub(super) fn retain(&mut self, is_watched: impl Fn(&str) -> bool) -> io::Result<()> {
        let before = self.states.len();
        self.states.retain(|beacon, _| is_watched(beacon));
        if self.states.len() == before {
            return Ok(());
        }
        self.rewrite()
    }

    /// Events after a number, at most so many and about so many bytes.
    pub(super) fn after(&self, number: u64, most: usize, bytes: usize) -> Vec<(u64, Vec<u8>)> {
        let mut size = 0;
        let events = self.events.range(number.saturating_add(1)..).take(most);
        let events = events.take_while(|(_, (_, content))| {
            let is_first = size == 0;
            size += content.len();
            is_first || size <= bytes
        });
        events
            .map(|(number, (_, content))| (*number, content.clone()))
            .collect()
    }

    /// Forgets events up to a number. This may get lost in a crash; then the server is told of them again and knows them.
    pub(super) fn delivered(&mut self, number: u64) -> io::Result<()> {
        if self
            .events
            .first_key_value()
            .is_none_or(|(first, _)| *first > number)
        {
            return Ok(());
        }
        let record = SpoolRecord::Delivered(number);
        self.log.append_unsynced(&[encode(&record)])?;
        self.take(record);
        self.tidy()
    }

    /// Tells as an event how many were dropped, once there is room for it again.
    pub(super) fn tell_loss(&mut self, now: Timestamp) -> io::Result<()> {
        let loss = self.ledger.loss();
        let lost = loss.events();
        if lost == 0 || self.events.len() * 2 > self.limits.events {
            return Ok(());
        }
        let counts = json!({
            "lost": lost, "info": loss.info, "warning": loss.warning, "error": loss.error,
            "bytes": loss.bytes,
        });
        let notice = BeaconNotice {
            namespace: String::new(),
            beacon: String::new(),
            subject: "lost".to_owned(),
            severity: FleetSeverity::Warning,
            time: now,
            summary: format!(
                "{lost} events of beacons were dropped: more than could be kept until a server was there"
            ),
            data: counts.as_object().cloned().unwrap_or_default(),
            run: None,
            during: None,
            id: None,
        };
        let record = self.record(&notice, 0, None, Some(loss));
        self.write(vec![record])
    }

    fn record(
        &self,
        notice: &BeaconNotice,
        further: u64,
        remembered: Option<Remembered>,
        loss: Option<SpoolLoss>,
    ) -> SpoolRecord {
        SpoolRecord::Told {
            number: self.next + further,
            severity: notice.severity,
            content: serde_json::to_string(notice).unwrap_or_default(),
            remembered,
            loss,
        }
    }

    fn write(&mut self, records: Vec<SpoolRecord>) -> io::Result<()> {
        let encoded: Vec<Vec<u8>> = records.iter().map(encode).collect();
        self.log.append(&encoded)?;
        for record in records {
            self.take(record);
        }
        self.tidy()
    }

    /// What a record means, when it is written and when it is read again.
    fn take(&mut self, record: SpoolRecord) {
        match record {
            SpoolRecord::Begun { id, next, loss } => {
                self.id = id;
                self.next = next;
                self.ledger.restore_loss(loss);
            }
            SpoolRecord::Told {
                number,
                severity,
                content,
                remembered,
                loss,
            } => {
                self.next = self.next.max(number + 1);
                self.states.extend(remembered);
                if let Some(loss) = loss {
                    self.ledger.told(loss);
                }
                let entry = SpoolEntry {
                    seq: number,
                    severity,
                    bytes: content.len() as u64,
                };
                self.events.insert(number, (severity, content.into_bytes()));
                for dropped in self.ledger.add(entry) {
                    self.events.remove(&dropped.seq);
                }
            }
            SpoolRecord::Remembered(remembered) => self.states.extend([remembered]),
            SpoolRecord::Delivered(number) => {
                self.ledger.delivered(number);
                self.events = self.events.split_off(&number.saturating_add(1));
            }
        }
    }

    fn tidy(&mut self) -> io::Result<()> {
        if self.log.bytes() > MAX_WASTE + self.ledger.bytes() * 2 {
            return self.rewrite();
        }
        Ok(())
    }

    /// Writes the file anew, with what it should hold.
    fn rewrite(&mut self) -> io::Result<()> {
        let begun = SpoolRecord::Begun {
            id: self.id.clone(),
            next: self.next,
            loss: self.ledger.loss(),
        };
        let states = self.states.clone().into_iter().map(SpoolRecord::Remembered);
        let events = self.events.iter();
        let events = events.map(|(number, (severity, content))| SpoolRecord::Told {
            number: *number,
            severity: *severity,
            content: String::from_utf8_lossy(content).into_owned(),
            remembered: None,
            loss: None,
        });
        let records = std::iter::once(begun).chain(states).chain(events);
        let encoded: Vec<Vec<u8>> = records.map(|record| encode(&record)).collect();
        self.log.replace(&encoded)
    }
}

fn encode(record: &SpoolRecord) -> Vec<u8> {
    serde_json::to_vec(record).unwrap_or_default()
}

#[cfg(test)]
mod tests;
