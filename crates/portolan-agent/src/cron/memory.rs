//! What is remembered about schedules, and what becomes of their slots. Time comes from the caller.

use std::collections::BTreeMap;

use jiff::Timestamp;
use portolan_digest::Digest;
use portolan_fleet::NodeState;
use portolan_trigger::{CronSchedule, FleetSeverity, ScheduleState, SlotFiring};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::job::KeptJob;
use crate::beacons::BeaconNotice;
use crate::kept_book::KeptBook;
use crate::wire::CronSight;

/// The most runs of a schedule that have not ended.
const MAX_RUNS: usize = 50;

/// How late a slot may be and still be in time, as for slots that have not begun.
const IN_TIME: i64 = 60;

/// What is remembered about all schedules, by their ids.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct CronMemory(BTreeMap<String, JobMemory>);

/// What is remembered about a schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct JobMemory {
    slots: ScheduleState,
    /// Runs that were fired and have not ended.
    runs: Vec<SlotRun>,
    /// The last slot that was fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<Timestamp>,
    /// The worst end of the runs of that slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<NodeState>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    error: String,
}

/// A run that a slot has fired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SlotRun {
    /// Tells it apart from all others of the node.
    pub(super) id: String,
    /// The id of the schedule.
    pub(super) job: String,
    /// What it is called.
    pub(super) name: String,
    pub(super) slot: Timestamp,
    /// The number of the book in the schedule.
    pub(super) number: usize,
    /// What it runs, as it was when the slot was fired.
    pub(super) book: KeptBook,
}

/// How a run ended.
#[derive(Debug, Clone, Default)]
pub(super) struct SlotEnd {
    pub(super) state: Option<NodeState>,
    /// Why it ended before its last step, or was not begun.
    pub(super) stopped: String,
    /// Steps that changed something, and how many there are.
    pub(super) changed: (Vec<String>, usize),
    /// What failed first.
    pub(super) failed: String,
}

/// What is to be done after a look.
#[derive(Debug, Default)]
pub(super) struct CronTurn {
    pub(super) starts: Vec<SlotRun>,
    /// Runs that newer slots replace.
    pub(super) cancels: Vec<String>,
    pub(super) notices: Vec<BeaconNotice>,
}

impl CronMemory {
    /// Decides which slots start now.
    pub(super) fn turn(&mut self, jobs: &[(KeptJob, CronSchedule)], now: Timestamp) -> CronTurn {
        self.0.retain(|id, memory| {
            !memory.runs.is_empty() || jobs.iter().any(|(job, _)| job.id == *id)
        });
        let mut turn = CronTurn::default();
        for (job, schedule) in jobs {
            let memory = self.0.entry(job.id.clone());
            // Slots before the node knew the schedule are not its own.
            let memory = memory.or_insert_with(|| JobMemory {
                slots: schedule.begin(now),
                runs: Vec::new(),
                last: None,
                state: None,
                error: String::new(),
            });
            if job.is_usable() {
                memory.step(job, schedule, now, &mut turn);
            }
        }
        turn
    }

    /// Takes up what was fired before the agent ended. What was not begun in time is for the policy of missed slots.
    pub(super) fn resume(
        &mut self,
        jobs: &[(KeptJob, CronSchedule)],
        now: Timestamp,
        has_begun: impl Fn(&SlotRun) -> bool,
    ) -> CronTurn {
        let mut turn = CronTurn::default();
        for (id, memory) in &mut self.0 {
            let job = jobs.iter().find(|(job, _)| job.id == *id);
            let makes_up = job.is_some_and(|(job, _)| job.makes_up());
            memory.runs.retain(|run| {
                let late = now.duration_since(run.slot).as_secs();
                let is_wanted = job.is_some() && (makes_up || late <= IN_TIME);
                if has_begun(run) || is_wanted {
                    turn.starts.push(run.clone());
                    return true;
                }
                if let Some((job, _)) = job {
                    let why = "missed: the agent ended before it was begun";
                    turn.notices.push(skipped(job, run.slot, 1, why));
                }
                false
            });
        }
        turn
    }

    /// Takes note of the end of a run; what is told about it.
    pub(super) fn ended(
        &mut self,
        jobs: &[(KeptJob, CronSchedule)],
        run: &SlotRun,
        end: &SlotEnd,
        now: Timestamp,
    ) -> Option<BeaconNotice> {
        let memory = self.0.get_mut(&run.job)?;
        memory.runs.retain(|one| one.id != run.id);
        let error = end.error();
        if memory.last == Some(run.slot) {
            memory.state = memory.state.max(end.state);
            if memory.error.is_empty() {
                memory.error.clone_from(&error);
            }
        }
        let (job, _) = jobs.iter().find(|(job, _)| job.id == run.job)?;
        Some(end.notice(job, run, &error, now))
    }

    /// Whether one of these schedules has runs that have not ended.
    pub(super) fn has_runs(&self, is_one: impl Fn(&str) -> bool) -> bool {
        let mut known = self.0.iter();
        known.any(|(id, memory)| !memory.runs.is_empty() && is_one(id))
    }

    /// What the server hears of all schedules.
    pub(super) fn sights(
        &self,
        jobs: &[(KeptJob, CronSchedule)],
        now: Timestamp,
    ) -> Vec<CronSight> {
        let jobs = jobs.iter().map(|(job, schedule)| {
            let memory = self.0.get(&job.id);
            let next = schedule.schedule().next_after(now);
            let next = next.filter(|_| job.is_usable());
            let mut sight = CronSight {
                namespace: job.namespace.clone(),
                name: job.name.clone(),
                next_slot: next.map(|next| next.to_string()).unwrap_or_default(),
                error: job.unusable.clone(),
                ..CronSight::default()
            };
            if let Some(memory) = memory {
                let last = memory.last.map(|last| last.to_string());
                sight.last_slot = last.unwrap_or_default();
                memory.state_word().clone_into(&mut sight.state);
                if sight.error.is_empty() {
                    sight.error.clone_from(&memory.error);
                }
            }
            sight
        });
        jobs.collect()
    }
}

impl JobMemory {
    fn step(
        &mut self,
        job: &KeptJob,
        schedule: &CronSchedule,
        now: Timestamp,
        turn: &mut CronTurn,
    ) {
        let active: Vec<String> = self.runs.iter().map(|run| run.id.clone()).collect();
        let step = schedule.step(&self.slots, now, &active);
        self.slots = step.state;
        for slots in &step.skipped {
            let why = slots.reason.to_string();
            turn.notices
                .push(skipped(job, slots.slot, slots.count, &why));
        }
        for firing in &step.firings {
            turn.cancels.extend(firing.replaces.iter().cloned());
            self.fire(job, firing, turn);
        }
    }

    fn fire(&mut self, job: &KeptJob, firing: &SlotFiring, turn: &mut CronTurn) {
        if self.runs.len() + job.books.len() > MAX_RUNS {
            let why = "too many of its runs have not ended";
            turn.notices.push(skipped(job, firing.slot, 1, why));
            return;
        }
        self.last = Some(firing.slot);
        self.state = None;
        self.error.clear();
        for (number, book) in job.books.iter().enumerate() {
            let digest = Digest::of(format!("{}/{number}", firing.id).as_bytes()).hex();
            let minute = firing.slot.strftime("%Y%m%d-%H%M");
            let run = SlotRun {
                id: format!("cron-{}", digest.get(..32).unwrap_or(&digest)),
                job: job.id.clone(),
                name: format!("{}-{minute}-{number}", job.name),
                slot: firing.slot,
                number,
                book: book.clone(),
            };
            self.runs.push(run.clone());
            turn.starts.push(run);
        }
    }

    fn state_word(&self) -> &'static str {
        match (self.last, self.state) {
            (None, _) => "",
            (Some(last), _) if self.runs.iter().any(|run| run.slot == last) => "running",
            (_, Some(state)) => state.word(),
            (_, None) => "skipped",
        }
    }
}

impl SlotEnd {
    /// Why it is bad; empty if it is not.
    fn error(&self) -> String {
        let is_bad = self.state.is_none_or(NodeState::is_bad);
        match (is_bad, self.stopped.as_str(), self.failed.as_str()) {
            (_, "", _) if !is_bad => String::new(),
            (_, "", "") => "its state is unknown".to_owned(),
            (_, "", failed) => failed.to_owned(),
            (_, stopped, _) => stopped.to_owned(),
        }
    }

    fn notice(&self, job: &KeptJob, run: &SlotRun, error: &str, now: Timestamp) -> BeaconNotice {
        let state = self.state.unwrap_or(NodeState::Unknown).word();
        let slot = run.slot.to_string();
        let (subject, severity, summary) = if error.is_empty() {
            let summary = format!("the slot {slot} of CronJob {} ended: {state}", job.name);
            ("cron-ended", FleetSeverity::Info, summary)
        } else {
            let summary = format!("the slot {slot} of CronJob {} failed: {error}", job.name);
            ("cron-failed", FleetSeverity::Error, summary)
        };
        let (changed, count) = &self.changed;
        let data = json!({
            "slot": slot, "run": run.name, "file": run.book.order().file, "state": state, "changed": changed,
            "changedSteps": count,
        });
        notice(
            job,
            subject,
            severity,
            (summary, data),
            now,
            &format!("{}/{slot}/{}", job.id, run.number),
        )
    }
}

fn skipped(job: &KeptJob, slot: Timestamp, count: usize, why: &str) -> BeaconNotice {
    let summary = format!(
        "CronJob {} skipped {count} slots up to {slot}: {why}",
        job.name
    );
    let data = json!({"slot": slot.to_string(), "count": count});
    let id = format!("{}/{slot}", job.id);
    notice(
        job,
        "cron-skipped",
        FleetSeverity::Warning,
        (summary, data),
        slot,
        &id,
    )
}

fn notice(
    job: &KeptJob,
    subject: &str,
    severity: FleetSeverity,
    (summary, data): (String, Value),
    time: Timestamp,
    id: &str,
) -> BeaconNotice {
    let data = match data {
        Value::Object(data) => data,
        _ => Map::new(),
    };
    BeaconNotice {
        namespace: job.namespace.clone(),
        beacon: job.name.clone(),
        subject: subject.to_owned(),
        severity,
        time,
        summary: summary.chars().take(1_000).collect(),
        data,
        run: None,
        during: None,
        id: Some(id.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{CronOrder, CronOrders, RunOrder};

    fn jobs(spec: &str) -> Vec<(KeptJob, CronSchedule)> {
        let order = CronOrder {
            id: "uuid".to_owned(),
            namespace: "shop".to_owned(),
            name: "night".to_owned(),
            spec: spec.as_bytes().to_vec().into(),
            books: vec![RunOrder::default()],
            ..CronOrder::default()
        };
        let orders = CronOrders { jobs: vec![order] };
        let read = KeptJob::read(orders, &[]).into_iter();
        read.map(|job| {
            let schedule = job.schedule().expect("a schedule");
            (job, schedule)
        })
        .collect()
    }

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn good() -> SlotEnd {
        SlotEnd {
            state: Some(NodeState::Changed),
            ..SlotEnd::default()
        }
    }

    /// The slots that start, and what is told.
    fn shown(turn: &CronTurn) -> (Vec<String>, Vec<String>) {
        let starts = turn.starts.iter().map(|run| run.slot.to_string());
        let notices = turn.notices.iter();
        let notices = notices.map(|notice| format!("{} {}", notice.subject, notice.data["count"]));
        (starts.collect(), notices.collect())
    }

    /// A week without the agent: no slot with `skip`, the last one for all with `once`.
    #[test]
    fn slots_of_a_week_in_which_the_agent_was_away_are_for_the_policy() {
        for (missed, starts) in [("skip", vec![]), ("once", vec!["2026-11-25T02:30:00Z"])] {
            let spec = format!(r#"{{"schedule": "30 2 * * *", "missed": "{missed}"}}"#);
            let jobs = jobs(&spec);
            let mut memory = CronMemory::default();
            memory.turn(&jobs, time("2026-11-18T02:00:00Z"));
            let turn = memory.turn(&jobs, time("2026-11-18T02:30:01Z"));
            assert_eq!(shown(&turn).0, ["2026-11-18T02:30:00Z"]);
            let told = memory.ended(&jobs, &turn.starts[0], &good(), turn.starts[0].slot);
            assert_eq!(told.expect("told").subject, "cron-ended");
            // What the agent has on its disk.
            let text = serde_json::to_vec(&memory).expect("written");
            let mut memory: CronMemory = serde_json::from_slice(&text).expect("read");
            let now = time("2026-11-25T12:00:00Z");
            assert!(memory.resume(&jobs, now, |_| false).starts.is_empty());
            let turn = memory.turn(&jobs, now);
            let skipped = if missed == "skip" { 7 } else { 6 };
            let expected = (
                starts.iter().map(|slot| (*slot).to_owned()).collect(),
                vec![format!("cron-skipped {skipped}")],
            );
            assert_eq!(shown(&turn), expected, "{missed}");
            assert_eq!(shown(&memory.turn(&jobs, now)), (vec![], vec![]));
        }
    }

    /// The clock is put back by an hour: no slot starts again.
    #[test]
    fn a_clock_that_goes_back_starts_no_slot_again() {
        let jobs = jobs(r#"{"schedule": "* * * * *", "concurrency": "allow"}"#);
        let mut memory = CronMemory::default();
        memory.turn(&jobs, time("2026-11-18T02:00:30Z"));
        for minute in ["01", "02", "03"] {
            let turn = memory.turn(&jobs, time(&format!("2026-11-18T02:{minute}:00Z")));
            assert_eq!(turn.starts.len(), 1);
        }
        let turn = memory.turn(&jobs, time("2026-11-18T02:01:30Z"));
        assert!(turn.starts.is_empty(), "{turn:?}");
        let turn = memory.turn(&jobs, time("2026-11-18T02:04:00Z"));
        assert_eq!(shown(&turn).0, ["2026-11-18T02:04:00Z"]);
    }

    #[test]
    fn what_was_fired_before_a_crash_starts_once_unless_it_is_too_late() {
        let at = "2026-11-18T02:30:00Z";
        let fired = |missed: &str| {
            let spec = format!(r#"{{"schedule": "30 2 * * *", "missed": "{missed}"}}"#);
            let jobs = jobs(&spec);
            let mut memory = CronMemory::default();
            memory.turn(&jobs, time("2026-11-18T02:00:00Z"));
            assert_eq!(memory.turn(&jobs, time(at)).starts.len(), 1);
            (jobs, memory)
        };
        let check = |missed: &str, now: &str, has_begun: bool, starts: usize| {
            let (jobs, mut memory) = fired(missed);
            let turn = memory.resume(&jobs, time(now), |_| has_begun);
            assert_eq!(turn.starts.len(), starts, "{missed} {now}");
            assert_eq!(turn.notices.len(), 1 - starts);
            assert!(
                memory.turn(&jobs, time(now)).starts.is_empty(),
                "it is done"
            );
        };
        check("skip", "2026-11-18T02:30:20Z", false, 1);
        check("skip", "2026-11-18T03:30:00Z", false, 0);
        check("skip", "2026-11-18T03:30:00Z", true, 1);
        check("once", "2026-11-18T03:30:00Z", false, 1);
    }

    #[test]
    fn the_server_hears_how_the_last_slot_ended_and_why_none_can_start() {
        let mut jobs = jobs(r#"{"schedule": "0 * * * *"}"#);
        let mut memory = CronMemory::default();
        memory.turn(&jobs, time("2026-11-18T02:30:00Z"));
        let now = time("2026-11-18T03:00:00Z");
        let turn = memory.turn(&jobs, now);
        let sight = &memory.sights(&jobs, now)[0];
        assert_eq!(
            (sight.state.as_str(), sight.error.as_str()),
            ("running", "")
        );
        assert_eq!(sight.next_slot, "2026-11-18T04:00:00Z");
        let end = SlotEnd {
            state: Some(NodeState::Failed),
            failed: "step `a`: no".to_owned(),
            ..SlotEnd::default()
        };
        let told = memory.ended(&jobs, &turn.starts[0], &end, now);
        assert_eq!(told.expect("told").subject, "cron-failed");
        let sight = &memory.sights(&jobs, now)[0];
        assert_eq!(sight.state, "failed");
        assert_eq!(sight.error, "step `a`: no");
        jobs[0].0.unusable = "there is no TaskBook web".to_owned();
        assert!(
            memory
                .turn(&jobs, time("2026-11-18T04:00:00Z"))
                .starts
                .is_empty()
        );
        assert_eq!(
            memory.sights(&jobs, now)[0].error,
            "there is no TaskBook web"
        );
    }
}
