//! What a person sees during a run, made from the journal alone.
//!
//! A terminal gets one line: how much is done and what is being worked on. Elsewhere there is a plain line every few
//! seconds, so logs stay short. A quick run shows nothing.

use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle as BarStyle};
use portolan_engine::{Event, Key, Phase, Progress, ReadError, Reader, Record, State, UnitState};
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
    /// Draws the state; called at a steady pace.
    fn draw(&self, state: &State, running_for: Duration);
    /// Takes away what is drawn.
    fn clear(&self);
}

struct Follower<S> {
    reader: Reader,
    surface: S,
    state: State,
    began: Instant,
}

impl<S: Surface> Follower<S> {
    fn new(reader: Reader, surface: S) -> Self {
        Self {
            reader,
            surface,
            state: State::default(),
            began: Instant::now(),
        }
    }

    async fn follow(mut self, pace: Duration) {
        let mut ticks = interval_at(self.began + PATIENCE.max(pace), pace);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                batch = self.reader.next() => match batch {
                    Ok(Some(batch)) => batch.iter().for_each(|record| self.state.apply(record)),
                    // Seeking past what was forgotten only makes the counts late, never wrong at the end.
                    Err(ReadError::Forgotten { oldest, .. }) => self.reader.seek(oldest - 1),
                    Ok(None) | Err(_) => break,
                },
                _ = ticks.tick() => self.surface.draw(&self.state, self.began.elapsed()),
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
    fn draw(&self, state: &State, running_for: Duration) {
        self.0.set_message(summary(state, running_for));
        self.0.tick();
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// Lines in a log.
struct Plain;

impl Surface for Plain {
    fn draw(&self, state: &State, running_for: Duration) {
        say(&summary(state, running_for));
    }

    fn clear(&self) {}
}

/// Writes a line to stderr; when nobody reads it any more, the run still goes on.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// `31/78  apps/grafana · apps/redis pulling (4/6) · 0.4 s`
fn summary(state: &State, running_for: Duration) -> String {
    let units = state.units();
    let ended = units.iter().filter(|(_, unit)| unit.phase.is_end()).count();
    let running = units
        .iter()
        .filter(|(_, unit)| unit.phase == Phase::Running);
    let named: Vec<_> = running
        .take(NAMED)
        .map(|(key, unit)| describe(key, unit))
        .collect();
    let seconds = running_for.as_secs_f64();
    format!(
        "{ended}/{}  {} · {seconds:.1} s",
        units.len(),
        named.join(" · ")
    )
}

/// `HelmRelease apps/redis`: the key without what tells it from others of its name.
fn describe(key: &Key, unit: &UnitState) -> String {
    let key = key.to_string();
    let key = key.split('#').next().unwrap_or(&key);
    let key = match key.split_once('/') {
        Some((kind, rest)) if kind.starts_with(char::is_uppercase) => format!("{kind} {rest}"),
        _ => key.to_owned(),
    };
    match &unit.progress {
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
        let mut state = State::default();
        for line in [
            r#"{"seq":1,"at":0,"key":"apps/redis","event":"queued"}"#,
            r#"{"seq":2,"at":0,"key":"apps/web","event":"queued"}"#,
            r#"{"seq":3,"at":0,"key":"apps/redis","event":"started","attempt":1}"#,
            r#"{"seq":4,"at":0,"key":"apps/web","event":"started","attempt":1}"#,
            r#"{"seq":5,"at":0,"key":"apps/web","event":"done","tookUs":7}"#,
            r#"{"seq":6,"at":0,"key":"apps/redis","event":"progress","done":4,"total":6,"text":"pulling"}"#,
        ] {
            state.apply(&Record::from_json(line).unwrap());
        }
        let line = summary(&state, Duration::from_millis(420));
        assert_eq!(line, "1/2  apps/redis pulling (4/6) · 0.4 s");
    }
}
