//! What a person sees during a run, made from the journal alone.
//!
//! A terminal gets one line: how much is done and what is being worked on. Elsewhere there is a plain line every few
//! seconds, so logs stay short. A quick run shows nothing.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle as BarStyle};
#[cfg(feature = "ship")]
use portolan_engine::State;
use portolan_engine::{Event, Key, Progress, ReadError, Reader, Record};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

#[cfg(feature = "ship")]
use super::lines::Lines;
use crate::printer::{Hidden, ProgressStyle};

/// How long a run may go on before it is worth showing.
const PATIENCE: Duration = Duration::from_millis(150);

/// How often the terminal's line is drawn.
const REDRAW: Duration = Duration::from_millis(80);

/// How often a log gets a line that says how far the run is.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// How many running units the line names.
const NAMED: usize = 3;

/// Shows a run until its journal is closed.
pub(super) async fn follow(reader: Reader, style: ProgressStyle, hidden: Hidden) {
    match style {
        ProgressStyle::None => {}
        ProgressStyle::Line => Follower::new(reader, Line::new()).follow(REDRAW).await,
        #[cfg(feature = "ship")]
        ProgressStyle::LineEach => Follower::new(reader, Lines::new()).follow(REDRAW).await,
        ProgressStyle::Each => follow_each(reader, &hidden).await,
        ProgressStyle::Plain => Follower::new(reader, Plain).follow(LOG_EVERY).await,
    }
}

/// Tells what became of each unit and what it had to say, a line each.
async fn follow_each(mut reader: Reader, hidden: &Hidden) {
    loop {
        match reader.next().await {
            Ok(Some(batch)) => {
                for line in batch.iter().filter_map(tell) {
                    say(&hidden.clean_message(&line));
                }
            }
            Err(ReadError::Forgotten { oldest, .. }) => reader.seek(oldest - 1),
            Ok(None) | Err(_) => return,
        }
    }
}

fn tell(record: &Record) -> Option<String> {
    let key = &record.key;
    Some(match &record.event {
        Event::Done { took_us, .. } => format!("done {key} in {:.1} ms", *took_us as f64 / 1000.0),
        Event::Failed { error, .. } => format!("failed {key}: {error}"),
        Event::Skipped { because, .. } => format!("skipped {key} because of {because}"),
        Event::Cancelled { .. } => format!("cancelled {key}"),
        Event::Retrying { error, .. } => format!("trying {key} again: {error}"),
        Event::Log { line } => format!("{key}: {line}"),
        _ => return None,
    })
}

/// Something that can show where a run stands.
pub(super) trait Surface {
    /// What it has to know of the run.
    type Known: FromRecords;

    /// Draws what is known; called at a steady pace.
    fn draw(&self, known: &Self::Known, running_for: Duration);
    /// Takes away what is drawn.
    fn clear(&self);
}

/// What is known of a run from its records.
pub(super) trait FromRecords: Default {
    /// Takes the next record in.
    fn apply(&mut self, record: &Record);
}

#[cfg(feature = "ship")]
impl FromRecords for State {
    fn apply(&mut self, record: &Record) {
        Self::apply(self, record);
    }
}

/// How many units there are, and which of them run: all that one line says. A run may have tens of thousands of units,
/// and the whole state of each would take megabytes.
#[derive(Debug, Default)]
struct UnitCounts {
    waiting: HashSet<Key>,
    running: BTreeMap<Key, Option<Progress>>,
    ended: HashSet<Key>,
}

struct Follower<S: Surface> {
    reader: Reader,
    surface: S,
    known: S::Known,
    began: Instant,
}

impl<S: Surface> Follower<S> {
    fn new(reader: Reader, surface: S) -> Self {
        Self {
            reader,
            surface,
            known: S::Known::default(),
            began: Instant::now(),
        }
    }

    async fn follow(mut self, pace: Duration) {
        let mut ticks = interval_at(self.began + PATIENCE.max(pace), pace);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                batch = self.reader.next() => match batch {
                    Ok(Some(batch)) => batch.iter().for_each(|record| self.known.apply(record)),
                    // Seeking past what was forgotten only makes the counts late, never wrong at the end.
                    Err(ReadError::Forgotten { oldest, .. }) => self.reader.seek(oldest - 1),
                    Ok(None) | Err(_) => break,
                },
                _ = ticks.tick() => self.surface.draw(&self.known, self.began.elapsed()),
            }
        }
        self.surface.clear();
    }
}

/// One line on a terminal.
struct Line(ProgressBar);

impl Line {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = BarStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }
}

impl Surface for Line {
    type Known = UnitCounts;

    fn draw(&self, known: &UnitCounts, running_for: Duration) {
        self.0.set_message(known.summary(running_for));
        self.0.tick();
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// Lines in a log.
struct Plain;

impl Surface for Plain {
    type Known = UnitCounts;

    fn draw(&self, known: &UnitCounts, running_for: Duration) {
        say(&known.summary(running_for));
    }

    fn clear(&self) {}
}

/// Writes a line to stderr; when nobody reads it any more, the run still goes on.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

impl FromRecords for UnitCounts {
    fn apply(&mut self, record: &Record) {
        let key = &record.key;
        match &record.event {
            Event::Queued | Event::Retrying { .. } => {
                self.remove(key);
                self.waiting.insert(key.clone());
            }
            Event::Started { .. } => {
                self.remove(key);
                self.running.insert(key.clone(), None);
            }
            Event::Progress(progress) => {
                if let Some(newest) = self.running.get_mut(key) {
                    *newest = Some(progress.clone());
                }
            }
            Event::Done { .. }
            | Event::Failed { .. }
            | Event::Skipped { .. }
            | Event::Cancelled { .. } => {
                self.remove(key);
                self.ended.insert(key.clone());
            }
            _ => {}
        }
    }
}

impl UnitCounts {
    fn remove(&mut self, key: &Key) {
        let _ = self.waiting.remove(key)
            || self.running.remove(key).is_some()
            || self.ended.remove(key);
    }

    /// `31/78  apps/grafana · apps/redis pulling (4/6) · 0.4 s`
    fn summary(&self, running_for: Duration) -> String {
        let ended = self.ended.len();
        let all = ended + self.waiting.len() + self.running.len();
        let running = self.running.iter().take(NAMED);
        let named: Vec<_> = running
            .map(|(key, progress)| describe(key, progress.as_ref()))
            .collect();
        let seconds = running_for.as_secs_f64();
        format!("{ended}/{all}  {} · {seconds:.1} s", named.join(" · "))
    }
}

/// `HelmRelease apps/redis`: the key without what tells it from others of its name.
fn describe(key: &Key, progress: Option<&Progress>) -> String {
    let key = key.to_string();
    let key = key.split('#').next().unwrap_or(&key);
    let key = match key.split_once('/') {
        Some((kind, rest)) if kind.starts_with(char::is_uppercase) => format!("{kind} {rest}"),
        _ => key.to_owned(),
    };
    match progress {
        Some(Progress { done, total, text }) if text == "bytes" => {
            format!("{key} {}", download(*done, *total))
        }
        Some(Progress {
            done,
            total: Some(total),
            text,
        }) => format!("{key} {text} ({done}/{total})"),
        Some(Progress { text, .. }) => format!("{key} {text}"),
        None => key,
    }
}

/// `1.5 of 4.0 MB`, or `1.5 MB` when nobody knows how much there will be.
fn download(done: u64, total: Option<u64>) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1_000_000.0;
    let done = megabytes(done);
    match total {
        Some(total) => format!("{done:.1} of {:.1} MB", megabytes(total)),
        None => format!("{done:.1} MB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_is_shown_with_its_size() {
        assert_eq!(download(1_500_000, Some(4_000_000)), "1.5 of 4.0 MB");
        assert_eq!(download(1_500_000, None), "1.5 MB");
    }

    #[test]
    fn the_line_counts_what_ended_and_names_what_runs() {
        let mut counts = UnitCounts::default();
        for line in [
            r#"{"seq":1,"at":0,"key":"apps/redis","event":"queued"}"#,
            r#"{"seq":2,"at":0,"key":"apps/web","event":"queued"}"#,
            r#"{"seq":3,"at":0,"key":"apps/redis","event":"started","attempt":1}"#,
            r#"{"seq":4,"at":0,"key":"apps/web","event":"started","attempt":1}"#,
            r#"{"seq":5,"at":0,"key":"apps/web","event":"done","tookUs":7}"#,
            r#"{"seq":6,"at":0,"key":"apps/redis","event":"progress","done":4,"total":6,"text":"pulling"}"#,
        ] {
            counts.apply(&Record::from_json(line).unwrap());
        }
        let line = counts.summary(Duration::from_millis(420));
        assert_eq!(line, "1/2  apps/redis pulling (4/6) · 0.4 s");
    }

    #[test]
    fn a_unit_that_is_queued_again_is_one_unit() {
        let mut counts = UnitCounts::default();
        for (seq, event) in [
            r#""queued""#,
            r#""started","attempt":1"#,
            r#""retrying","attempt":1,"error":"lost","delayMs":5"#,
            r#""started","attempt":2"#,
            r#""failed","error":"lost","tookUs":7"#,
            r#""queued""#,
        ]
        .into_iter()
        .enumerate()
        {
            let seq = seq + 1;
            let line = format!(r#"{{"seq":{seq},"at":0,"key":"apps/web","event":{event}}}"#);
            counts.apply(&Record::from_json(&line).unwrap());
        }
        assert_eq!(counts.summary(Duration::ZERO), "0/1   · 0.0 s");
    }
}
