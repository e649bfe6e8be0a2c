//! A record's text, unpacked as a stream.

use std::cell::Cell;
use std::io::{self, BufRead as _, BufReader, Read};

use base64::engine::general_purpose::STANDARD;
use base64::read::DecoderReader;
use flate2::read::GzDecoder;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// How much of a record is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::scan) struct RecordLimits {
    /// The bytes that it may unpack to.
    pub(in crate::scan) unpacked: u64,
    /// The bytes of it that are kept: the manifest, the hooks and the chart's name.
    pub(in crate::scan) kept: u64,
}

/// Why a record was not read.
#[derive(Debug, thiserror::Error)]
pub(in crate::scan) enum RecordError {
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

/// What of a record is kept.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) manifest: String,
    /// The manifests of the hooks.
    pub(super) hooks: Vec<String>,
    chart: Chart,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Chart {
    name: String,
    version: String,
}

impl Record {
    /// The chart's name and version; empty when the record does not say.
    pub(super) fn chart(&self) -> String {
        let Chart { name, version } = &self.chart;
        format!("{name} {version}").trim().to_owned()
    }
}

/// Records up to this size are read in one piece: several times faster than byte by byte.
const WHOLE_BYTES: u64 = 1024 * 1024;

/// Reads a record as it lies in a Secret or ConfigMap: the Secret's own base64 may still be around it.
pub(super) fn unpack(text: &[u8], limits: &RecordLimits) -> Result<Record, RecordError> {
    let unreadable = |error: io::Error| RecordError::Unreadable(error.to_string());
    let mut json = open(text.trim_ascii()).map_err(unreadable)?;
    let mut beginning = Vec::new();
    let whole = WHOLE_BYTES.min(limits.unpacked);
    let read = json.by_ref().take(whole + 1).read_to_end(&mut beginning);
    read.map_err(unreadable)?;
    if beginning.len() as u64 <= whole {
        return read_whole(&beginning, limits);
    }
    if limits.unpacked <= WHOLE_BYTES {
        return Err(RecordError::TooLarge(limits.unpacked));
    }
    read_stream(beginning.as_slice().chain(json), limits)
}

fn read_whole(json: &[u8], limits: &RecordLimits) -> Result<Record, RecordError> {
    let mut record = Record::default();
    let meter = Meter::new(limits);
    let mut json = serde_json::Deserializer::from_slice(json);
    let read = Fields(&mut record, &meter).deserialize(&mut json);
    read.map_err(|error| RecordError::Unreadable(error.to_string()))?;
    let hooks: usize = record.hooks.iter().map(String::len).sum();
    if (record.manifest.len() + hooks) as u64 > limits.kept {
        return Err(RecordError::TooLarge(limits.kept));
    }
    Ok(record)
}

fn read_stream(json: impl Read, limits: &RecordLimits) -> Result<Record, RecordError> {
    let mut record = Record::default();
    let meter = Meter::new(limits);
    let metered = MeteredReader {
        inner: json,
        meter: &meter,
    };
    let mut json = serde_json::Deserializer::from_reader(metered);
    let read = Fields(&mut record, &meter).deserialize(&mut json);
    match (read, meter.passed.get()) {
        (_, Some(limit)) => Err(RecordError::TooLarge(limit)),
        (Ok(()), None) => Ok(record),
        (Err(error), None) => Err(RecordError::Unreadable(error.to_string())),
    }
}

/// The JSON of a record.
fn open(text: &[u8]) -> io::Result<Box<dyn Read + '_>> {
    let once = BufReader::new(DecoderReader::new(text, &STANDARD));
    open_decoded(once, |inner| {
        let twice = BufReader::new(DecoderReader::new(inner, &STANDARD));
        open_decoded(twice, |_| {
            Err(io::Error::other("it is neither gzip nor JSON"))
        })
    })
}

/// What the first bytes say: gzip, JSON (Helm 2's first records were not packed), or something else.
fn open_decoded<'a, R: Read + 'a>(
    mut decoded: BufReader<R>,
    otherwise: impl FnOnce(BufReader<R>) -> io::Result<Box<dyn Read + 'a>>,
) -> io::Result<Box<dyn Read + 'a>> {
    match decoded.fill_buf()? {
        [0x1f, 0x8b, ..] => Ok(Box::new(BufReader::new(GzDecoder::new(decoded)))),
        [b'{', ..] => Ok(Box::new(decoded)),
        _ => otherwise(decoded),
    }
}

// === Limits ===

/// Counts the bytes that are read. While a value is skipped nothing of it is kept, so only the whole counts; all other
/// bytes, keys too, may be kept by the reader of JSON.
struct Meter {
    unpacked: Cell<u64>,
    kept: Cell<u64>,
    skipping: Cell<bool>,
    limits: RecordLimits,
    /// The limit that was passed.
    passed: Cell<Option<u64>>,
}

impl Meter {
    fn new(limits: &RecordLimits) -> Self {
        Self {
            unpacked: Cell::new(0),
            kept: Cell::new(0),
            skipping: Cell::new(false),
            limits: *limits,
            passed: Cell::new(None),
        }
    }

    fn count(&self, bytes: usize) -> io::Result<()> {
        let add = |total: &Cell<u64>| {
            total.set(total.get() + bytes as u64);
            total.get()
        };
        if add(&self.unpacked) > self.limits.unpacked {
            self.passed.set(Some(self.limits.unpacked));
        }
        if !self.skipping.get() && add(&self.kept) > self.limits.kept {
            self.passed.set(Some(self.limits.kept));
        }
        match self.passed.get() {
            Some(_) => Err(io::Error::other("too large")),
            None => Ok(()),
        }
    }
}

/// Reads byte by byte, as the reader of JSON does, so that no byte of a kept value is counted as skipped.
struct MeteredReader<'m, R> {
    inner: R,
    meter: &'m Meter,
}

impl<R: Read> Read for MeteredReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.meter.count(count)?;
        Ok(count)
    }
}

// === JSON ===

/// Takes the fields of an object that it knows.
trait TakeField {
    /// Takes the value of a known field, or leaves it for the caller to skip.
    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
        meter: &Meter,
    ) -> Result<bool, A::Error>;
}

/// An object whose fields go to `T`; `null` is an empty one.
struct Fields<'t, 'm, T>(&'t mut T, &'m Meter);

/// The hooks: a list of objects, or `null`.
struct Hooks<'t, 'm>(&'t mut Vec<String>, &'m Meter);

/// A hook's manifest.
#[derive(Default)]
struct Hook(String);

/// A chart: its name lies one deeper.
struct ChartFields<'t>(&'t mut Chart);

impl TakeField for Record {
    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
        meter: &Meter,
    ) -> Result<bool, A::Error> {
        match key {
            "manifest" => self.manifest = map.next_value()?,
            "hooks" => map.next_value_seed(Hooks(&mut self.hooks, meter))?,
            "chart" => map.next_value_seed(Fields(&mut ChartFields(&mut self.chart), meter))?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl TakeField for ChartFields<'_> {
    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
        meter: &Meter,
    ) -> Result<bool, A::Error> {
        if key == "metadata" {
            map.next_value_seed(Fields(self.0, meter))?;
        }
        Ok(key == "metadata")
    }
}

impl TakeField for Chart {
    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
        _: &Meter,
    ) -> Result<bool, A::Error> {
        match key {
            "name" => self.name = map.next_value()?,
            "version" => self.version = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl TakeField for Hook {
    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
        _: &Meter,
    ) -> Result<bool, A::Error> {
        if key == "manifest" {
            self.0 = map.next_value()?;
        }
        Ok(key == "manifest")
    }
}

impl<'de, T: TakeField> DeserializeSeed<'de> for Fields<'_, '_, T> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: TakeField> Visitor<'de> for Fields<'_, '_, T> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if !self.0.take(&key, &mut map, self.1)? {
                self.1.skipping.set(true);
                map.next_value::<IgnoredAny>()?;
                self.1.skipping.set(false);
            }
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Hooks<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Hooks<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list of hooks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut hooks: A) -> Result<(), A::Error> {
        let mut hook = Hook::default();
        while hooks
            .next_element_seed(Fields(&mut hook, self.1))?
            .is_some()
        {
            // An empty one would cost more than its bytes.
            if !hook.0.is_empty() {
                self.0.push(std::mem::take(&mut hook.0));
            }
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
