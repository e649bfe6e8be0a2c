//! Logs: the `tracing` events of Portolan and its libraries, one line each on stderr.
//!
//! ```text
//! PORTOLAN_LOG=debug,hyper=warn ──▶ Filter ─┐
//! tracing events ──────────────────────────▶ Logger ──▶ `debug portolan: unit ended key=…`, or JSON
//! ```
//!
//! Nothing is logged unless `PORTOLAN_LOG` asks for it: people get answers and errors, not logs.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use portolan_yaml::{Map, Node, Value, to_json};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::printer::Hidden;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// For programs, an object on each line
    Json,
}

/// The variable that says what is logged.
pub(crate) const VARIABLE: &str = "PORTOLAN_LOG";

/// Starts logging if the environment asks for it. A text that is no filter is handed back.
pub(crate) fn start(format: LogFormat, hidden: Hidden) -> Result<(), String> {
    let Some(text) = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty()) else {
        return Ok(());
    };
    let filter = Filter::parse(&text).ok_or(text)?;
    // Only tests start twice, and one logger is as good as another.
    let _ = tracing::subscriber::set_global_default(Logger {
        filter,
        format,
        hidden,
    });
    Ok(())
}

/// Which events are logged: a level for all, and others for targets that begin so.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Filter {
    all: LevelFilter,
    targets: Vec<(String, LevelFilter)>,
}

struct Logger {
    filter: Filter,
    format: LogFormat,
    /// What libraries say may hold what they were given.
    hidden: Hidden,
}

// === impl Filter ===

impl Filter {
    /// Reads `debug` or `info,hyper=warn`; nothing when a level is none.
    fn parse(text: &str) -> Option<Self> {
        let mut filter = Self {
            all: LevelFilter::OFF,
            targets: Vec::new(),
        };
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            match part.split_once('=') {
                Some((target, level)) => {
                    filter
                        .targets
                        .push((target.to_owned(), level.parse().ok()?));
                }
                None => filter.all = part.parse().ok()?,
            }
        }
        Some(filter)
    }

    fn allows(&self, metadata: &Metadata<'_>) -> bool {
        let named = self
            .targets
            .iter()
            .filter(|(target, _)| metadata.target().starts_with(target.as_str()))
            .max_by_key(|(target, _)| target.len());
        let level = named.map_or(self.all, |(_, level)| *level);
        *metadata.level() <= level
    }

    fn loudest(&self) -> LevelFilter {
        let named = self.targets.iter().map(|(_, level)| *level);
        named.fold(self.all, LevelFilter::max)
    }
}

// === impl Logger ===

/// Spans are not kept: an event says all there is to say.
impl Subscriber for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        !metadata.is_span() && self.filter.allows(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.filter.loudest())
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = match self.format {
            LogFormat::Text => fields.text(event.metadata()),
            LogFormat::Json => fields.json(event.metadata()),
        };
        let line = self.hidden.clean_message(&line);
        // When stderr is gone there is nobody left to tell.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// What an event says.
#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, Node)>,
}

impl Fields {
    fn text(&self, metadata: &Metadata<'_>) -> String {
        let mut line = format!(
            "{} {}: {}",
            metadata.level().as_str().to_lowercase(),
            metadata.target(),
            self.message
        );
        for (name, value) in &self.others {
            let text = value.as_scalar().map_or("", |scalar| scalar.text.as_str());
            // Writing to a string cannot fail.
            let _ = write!(line, " {name}={}", text.escape_debug());
        }
        line
    }

    fn json(self, metadata: &Metadata<'_>) -> String {
        let level = metadata.level().as_str().to_lowercase();
        let mut map = Map::new();
        map.insert("at", Node::int(now_ms()));
        map.insert("level", Node::string(level));
        map.insert("target", Node::string(metadata.target()));
        map.insert("message", Node::string(self.message));
        for (name, value) in self.others {
            map.insert(name, value);
        }
        to_json(&Node::new(Value::Map(map))).unwrap_or_default()
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            self.message = text;
        } else {
            self.others.push((field.name(), Node::string(text)));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.others.push((field.name(), Node::string(value)));
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.others.push((field.name(), Node::int(value)));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.others.push((field.name(), Node::int(value as i64)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.others.push((field.name(), Node::float(value)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.others.push((field.name(), Node::bool(value)));
    }
}

/// Milliseconds since 1970, as in `--events`.
fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_a_level_for_all_and_others_for_targets() {
        let filter = Filter::parse("info, hyper=warn").unwrap();
        assert_eq!(filter.all, LevelFilter::INFO);
        assert_eq!(filter.targets, [("hyper".to_owned(), LevelFilter::WARN)]);
        assert_eq!(
            Filter::parse("hyper=trace").unwrap().loudest(),
            LevelFilter::TRACE
        );
        assert_eq!(Filter::parse("loud"), None);
    }
}
