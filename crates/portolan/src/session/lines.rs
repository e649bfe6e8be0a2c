//! A line for each unit on a terminal, for runs whose units people know by name.
//!
//! ```text
//! ✓ web     0.3 s
//! ⠹ tool    running (12 lines)  4.2 s
//! · front   waits
//! 1/3 · 4.2 s
//! ```

use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle as BarStyle};
use portolan_engine::{Key, Phase, Progress, State, UnitState};
use portolan_review::clip;
use tokio::time::Instant;

use super::view::Surface;

/// How many lines are drawn at most: the rest is a number. A terminal has 24.
const MOST: usize = 16;

/// How wide a line is at most when the terminal does not say.
const WIDTH: usize = 80;

const SPINNER: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"];

/// Lines on a terminal.
pub(super) struct Lines {
    bar: ProgressBar,
    began: Mutex<Vec<(Key, Instant)>>,
}

impl Lines {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = BarStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            began: Mutex::default(),
        }
    }

    /// How long a unit runs, as far as this has seen it.
    fn running_for(&self, key: &Key) -> Duration {
        let mut began = self
            .began
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, since)) = began.iter().find(|(known, _)| known == key) {
            return since.elapsed();
        }
        began.push((key.clone(), Instant::now()));
        Duration::ZERO
    }
}

impl Surface for Lines {
    type Known = State;

    fn draw(&self, state: &State, running_for: Duration) {
        let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| width.0.into());
        let tick = usize::try_from(running_for.as_millis() / 80).unwrap_or(0);
        let lines = draw(state, tick, running_for, |key| self.running_for(key));
        let lines: Vec<String> = lines
            .iter()
            .map(|line| clip(line, width.saturating_sub(1)))
            .collect();
        self.bar.set_message(lines.join("\n"));
        self.bar.tick();
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The lines of a state: what runs first, then what waits, then what ended, as far as there is room.
fn draw(
    state: &State,
    tick: usize,
    running_for: Duration,
    unit_runs_for: impl Fn(&Key) -> Duration,
) -> Vec<String> {
    let units = state.units();
    let names = units.iter().map(|(key, _)| name(key).chars().count());
    let width = names.max().unwrap_or(0).min(30);
    let mut shown: Vec<_> = units.iter().collect();
    if shown.len() > MOST {
        shown.sort_by_key(|(_, unit)| rank(unit));
        shown.truncate(MOST);
        shown.sort_by_key(|(key, _)| (*key).clone());
    }
    let mut lines: Vec<String> = shown
        .into_iter()
        .map(|(key, unit)| {
            let (sign, words) = describe(unit, tick, || unit_runs_for(key));
            format!("{sign} {:width$}  {words}", name(key))
        })
        .collect();
    let ended = units.iter().filter(|(_, unit)| unit.phase.is_end()).count();
    let more = units.len().saturating_sub(MOST);
    let more = if more == 0 {
        String::new()
    } else {
        format!(" · {more} more")
    };
    let (all, seconds) = (units.len(), running_for.as_secs_f64());
    lines.push(format!("{ended}/{all}{more} · {seconds:.1} s"));
    lines
}

fn rank(unit: &UnitState) -> u8 {
    match &unit.phase {
        Phase::Running | Phase::Retrying { .. } => 0,
        Phase::Failed { .. } => 1,
        Phase::Queued => 2,
        Phase::Done | Phase::Skipped { .. } | Phase::Cancelled => 3,
    }
}

fn describe(
    unit: &UnitState,
    tick: usize,
    runs_for: impl FnOnce() -> Duration,
) -> (&'static str, String) {
    let took = unit.took_us as f64 / 1e6;
    let spinner = SPINNER.get(tick % SPINNER.len()).copied().unwrap_or("·");
    match &unit.phase {
        Phase::Queued => ("·", "waits".to_owned()),
        Phase::Running => {
            let seconds = runs_for().as_secs_f64();
            (spinner, format!("{}  {seconds:.1} s", progress(unit)))
        }
        Phase::Retrying { error } => (spinner, format!("tried again: {error}")),
        Phase::Done => ("✓", format!("{took:.1} s")),
        Phase::Failed { error } => {
            let first = error.lines().next().unwrap_or_default();
            ("✗", format!("failed: {first}"))
        }
        Phase::Skipped { because } => ("-", format!("skipped: {} failed", name(because))),
        Phase::Cancelled => ("-", "cancelled".to_owned()),
    }
}

fn progress(unit: &UnitState) -> String {
    let lines = match unit.lines + unit.dropped_lines {
        0 => String::new(),
        lines => format!(" ({lines} lines)"),
    };
    match &unit.progress {
        Some(Progress {
            done,
            total: Some(total),
            text,
        }) if *total > 0 => {
            format!("{text} {}%{lines}", done * 100 / total)
        }
        Some(Progress { text, .. }) => format!("{text}{lines}"),
        None => format!("runs{lines}"),
    }
}

/// The last part of a key: `web` of `artifact/web`.
fn name(key: &Key) -> &str {
    let text = key.as_str();
    text.split_once('/').map_or(text, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use portolan_engine::Record;

    use super::*;

    #[test]
    fn every_unit_has_a_line_and_what_runs_comes_first_when_there_are_many() {
        let mut state = State::default();
        for line in [
            r#"{"seq":1,"at":0,"key":"artifact/front","event":"queued"}"#,
            r#"{"seq":2,"at":0,"key":"artifact/tool","event":"queued"}"#,
            r#"{"seq":3,"at":0,"key":"artifact/web","event":"queued"}"#,
            r#"{"seq":4,"at":0,"key":"artifact/web","event":"started","attempt":1}"#,
            r#"{"seq":5,"at":0,"key":"artifact/web","event":"done","tookUs":300000}"#,
            r#"{"seq":6,"at":0,"key":"artifact/tool","event":"started","attempt":1}"#,
            r#"{"seq":7,"at":0,"key":"artifact/tool","event":"log","line":"a"}"#,
        ] {
            state.apply(&Record::from_json(line).expect("a record"));
        }
        let second = |_: &Key| Duration::from_millis(1200);
        let lines = draw(&state, 0, Duration::from_millis(1500), second);
        assert_eq!(
            lines,
            [
                "· front  waits",
                "⠋ tool   runs (1 lines)  1.2 s",
                "✓ web    0.3 s",
                "1/3 · 1.5 s"
            ]
        );
        for number in 8..60 {
            let line =
                format!(r#"{{"seq":{number},"at":0,"key":"artifact/a{number}","event":"queued"}}"#);
            state.apply(&Record::from_json(&line).expect("a record"));
        }
        let lines = draw(&state, 0, Duration::ZERO, second);
        assert_eq!(lines.len(), MOST + 1);
        assert!(lines.iter().any(|line| line.contains("tool")), "{lines:?}");
    }
}
