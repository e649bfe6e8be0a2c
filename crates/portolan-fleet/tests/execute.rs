//! Books carried out on one node: what steps see, what handlers, blocks and retries do, and what a crash leaves.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_fleet::{
    Barrier, Book, BookSource, Fleet, JournalEntry, JournalState, MemoryFiles, NoFleet, NodeHost,
    NodeOutcome, NodeRequest, NodeRun, NodeState, NodeStop, RunMode, Step, StepJournal, StepReport,
    StepState, compile,
};
use portolan_modules::Host;
use portolan_secret::KnownSecrets;
use serde_json::{Map, Value, json};

/// A directory that stands for a node, with a journal that can be killed.
struct Node {
    _scratch: tempfile::TempDir,
    directory: Utf8PathBuf,
    journal: StepJournal,
    past: JournalState,
    /// The record at which the process dies, before or after it is on the disk.
    kill: Option<(usize, bool)>,
    records: Vec<JournalEntry>,
    pauses: Vec<Duration>,
    reported: Vec<StepReport>,
    cancel_before: Option<String>,
}

impl Node {
    fn new() -> Self {
        let scratch = tempfile::tempdir().expect("a directory");
        let directory = Utf8Path::from_path(scratch.path())
            .expect("UTF-8")
            .to_owned();
        let (journal, past) = StepJournal::open(&directory.join("journal")).expect("a journal");
        Self {
            _scratch: scratch,
            directory,
            journal,
            past,
            kill: None,
            records: Vec::new(),
            pauses: Vec::new(),
            reported: Vec::new(),
            cancel_before: None,
        }
    }

    /// As after a restart of the process: only what is on the disk is known.
    fn restart(&mut self) {
        let (journal, past) =
            StepJournal::open(&self.directory.join("journal")).expect("a journal");
        (self.journal, self.past) = (journal, past);
        self.kill = None;
        self.records.clear();
    }

    fn book(&self, body: &str) -> Book {
        let body = body.replace("DIR", self.directory.as_str());
        let text =
            format!("apiVersion: v1alpha\nkind: TaskBook\nmetadata: {{name: web}}\nspec:\n{body}");
        let mut source = BookSource::new("book.yaml", &text, Arc::new(MemoryFiles::default()));
        source.modules = support::MODULES;
        compile(&source).unwrap_or_else(|faults| unreachable!("{faults:#?}"))
    }

    fn run_mode(&mut self, book: &Book, mode: RunMode, inputs: Value) -> NodeOutcome {
        let inputs = match inputs {
            Value::Object(inputs) => inputs,
            _ => Map::new(),
        };
        let inputs = portolan_fleet::bind_inputs(&book.inputs, &inputs).expect("inputs fit");
        let request = NodeRequest {
            run: "r1".to_owned(),
            mode,
            inputs,
            variables: Map::new(),
            facts: json!({"os": {"family": "debian"}}),
            node: json!({"name": "here", "address": "", "labels": {}}),
            peers: json!([]),
        };
        let past = self.past.clone();
        NodeRun::new(book, self, past, Arc::new(KnownSecrets::default())).run(&request)
    }

    fn run(&mut self, book: &Book) -> NodeOutcome {
        self.run_mode(book, RunMode::Apply, Value::Null)
    }

    /// Ends a run and begins the next one, with what is owed.
    fn next_run(&mut self, outcome: &NodeOutcome) {
        let entry = JournalEntry::Received {
            run: "r2".to_owned(),
            book: "web".to_owned(),
            digest: String::new(),
            owed: outcome.owed.clone(),
        };
        self.restart();
        self.past = self.journal.begin(entry).expect("begun");
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.directory.join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl NodeHost for Node {
    fn host(&self) -> Host {
        support::host()
    }

    fn fleet(&self) -> &dyn Fleet {
        &NoFleet
    }

    fn may_start(&mut self, step: &Step) -> Result<(), NodeStop> {
        match &self.cancel_before {
            Some(id) if *id == step.id => Err(NodeStop::Cancelled),
            _ => Ok(()),
        }
    }

    fn wait_at(&mut self, _step: &Step, _barrier: Barrier) -> Result<(), NodeStop> {
        Ok(())
    }

    fn record(&mut self, entry: &JournalEntry) -> Result<(), NodeStop> {
        let number = self.records.len();
        self.records.push(entry.clone());
        let killed = || Err(NodeStop::AgentEnds);
        match self.kill {
            Some((at, false)) if at == number => return killed(),
            _ => self.journal.append(entry)?,
        }
        match self.kill {
            Some((at, true)) if at == number => killed(),
            _ => Ok(()),
        }
    }

    fn report(&mut self, report: &StepReport) {
        self.reported.push(report.clone());
    }

    fn pause(&mut self, time: Duration) -> bool {
        self.pauses.push(time);
        true
    }

    fn clock(&self) -> Duration {
        Duration::ZERO
    }
}

/// Each step as `name[item] state`.
fn states(outcome: &NodeOutcome) -> Vec<String> {
    let steps = outcome.steps.iter().map(|step| {
        let item = step.item.as_ref().map(|item| format!("[{item}]"));
        format!(
            "{}{} {}",
            step.name,
            item.unwrap_or_default(),
            step.state.word()
        )
    });
    steps.collect()
}

#[test]
fn steps_change_what_is_missing_and_nothing_twice() {
    let mut node = Node::new();
    let book = node.book(
        "  vars: {text: hello}\n  steps:\n  - {name: a, put: {path: DIR/a, content: '{{ vars.text }}'}}\n  - {name: b, when: \"steps['a'].changed\", put: {path: DIR/b, content: '{{ facts.os.family }}'}}\n  - {name: c, when: facts.os.family == 'redhat', put: {path: DIR/c, content: c}}\n",
    );
    let first = node.run(&book);
    assert_eq!(states(&first), ["a changed", "b changed", "c skipped"]);
    assert_eq!(
        (first.state, node.lines("b")),
        (NodeState::Changed, vec!["debian".to_owned()])
    );
    assert_eq!(first.steps[0].diff.as_deref(), Some("+hello\n"));
    node.next_run(&first);
    let second = node.run(&book);
    assert_eq!(states(&second), ["a ok", "b skipped", "c skipped"]);
    assert!(
        node.records.is_empty(),
        "a run that changes nothing writes nothing: {:?}",
        node.records
    );
}

#[test]
fn items_of_lists_and_maps_are_taken_in_order() {
    let mut node = Node::new();
    let book = node.book(
        "  steps:\n  - {name: each, forEach: [x, y], command: {path: DIR/log, run: '{{ index }}{{ item }}'}}\n  - {name: keys, forEach: {k: v}, when: key == 'k', command: {path: DIR/log, run: '{{ key }}{{ item }}'}}\n  - {name: sum, note: {value: \"{{ steps['each']['items'] | length }}\"}}\n  - {name: none, forEach: '[]', note: {value: 1}}\n",
    );
    let outcome = node.run(&book);
    assert_eq!(
        states(&outcome),
        [
            "each[\"x\"] changed",
            "each[\"y\"] changed",
            "keys[\"v\"] changed",
            "sum ok"
        ]
    );
    assert_eq!(node.lines("log"), ["0x", "1y", "kv"]);
}

#[test]
fn too_many_items_are_refused() {
    let mut node = Node::new();
    let book =
        node.book("  steps:\n  - {name: many, forEach: lists.range(10001), note: {value: 1}}\n");
    let outcome = node.run(&book);
    assert_eq!(outcome.state, NodeState::Failed);
    let error = outcome.steps[0].error.as_ref().expect("an error");
    assert!(error.message.contains("more than 10000 items"), "{error:?}");
}

#[test]
fn retries_pause_longer_and_longer_until_it_holds() {
    let mut node = Node::new();
    let book = node.book(
        "  steps:\n  - {name: never, break: {}, retries: {limit: 3, interval: 10s, backoff: 2}, onError: ignore}\n  - {name: until, command: {path: DIR/log}, retries: {limit: 2, until: 'false'}, onError: ignore}\n  - {name: once, command: {path: DIR/once}, retries: {limit: 2, until: result.changed}}\n",
    );
    let outcome = node.run(&book);
    assert_eq!(
        states(&outcome),
        ["never ignored", "until ignored", "once changed"]
    );
    let seconds: Vec<u64> = node.pauses.iter().map(Duration::as_secs).collect();
    assert_eq!(seconds, [10, 20, 40, 5, 5]);
    assert_eq!((node.lines("log").len(), node.lines("once").len()), (3, 1));
    assert_eq!(outcome.state, NodeState::Changed);
}

#[test]
fn success_and_changed_have_the_last_word() {
    let mut node = Node::new();
    let book = node.book(
        "  steps:\n  - {name: same, command: {path: DIR/log}, changed: 'false', notify: h}\n  - {name: bad, command: {path: DIR/log}, success: result.stdout == 'other', onError: ignore}\n  - {name: good, put: {path: DIR/gone/a, content: x}, success: result.failed}\n  handlers:\n  - {name: h, command: {path: DIR/handled}}\n",
    );
    let outcome = node.run(&book);
    assert_eq!(states(&outcome), ["same ok", "bad ignored", "good ok"]);
    assert!(
        node.lines("handled").is_empty(),
        "nothing changed, so nobody was notified"
    );
}

#[test]
fn blocks_rescue_and_always() {
    let mut node = Node::new();
    let body = "  steps:
  - name: block
    steps:
    - {name: first, put: {path: DIR/first, content: x}}
    - {name: fails, break: {}}
    - {name: after, put: {path: DIR/after, content: x}}
    rescue:
    - {name: back, command: {path: DIR/log, run: '{{ error.step }}: {{ error.message }}'}}
    always:
    - {name: last, command: {path: DIR/log, run: last}}
  - {name: next, command: {path: DIR/log, run: next}}
";
    let book = node.book(body);
    let outcome = node.run(&book);
    assert_eq!(
        states(&outcome),
        [
            "block/first changed",
            "block/fails rescued",
            "block/back changed",
            "block/last changed",
            "next changed"
        ]
    );
    assert_eq!(
        node.lines("log"),
        [
            "block/fails: cannot pass `the step`: it always fails",
            "last",
            "next"
        ]
    );
    assert_eq!(outcome.state, NodeState::Changed);

    let mut node = Node::new();
    let book = node.book(&body.replace(
        "command: {path: DIR/log, run: '{{ error.step }}: {{ error.message }}'}",
        "break: {}",
    ));
    let outcome = node.run(&book);
    assert_eq!(
        states(&outcome),
        [
            "block/first changed",
            "block/fails failed",
            "block/back failed",
            "block/last changed"
        ]
    );
    assert_eq!(outcome.state, NodeState::Failed);
}

#[test]
fn handlers_run_once_in_the_order_of_their_list() {
    let mut node = Node::new();
    let book = node.book(
        "  steps:
  - {name: a, put: {path: DIR/a, content: x}, notify: [second, first]}
  - {name: b, put: {path: DIR/b, content: x}, notify: [first]}
  - {name: now, flush: handlers}
  - {name: c, put: {path: DIR/c, content: x}, notify: [second]}
  - {name: same, put: {path: DIR/c, content: x}, notify: [never]}
  - {name: phase, barrier: run}
  - {name: d, put: {path: DIR/d, content: x}, notify: [first]}
  handlers:
  - {name: first, command: {path: DIR/log, run: first}}
  - {name: second, command: {path: DIR/log, run: second}}
  - {name: never, command: {path: DIR/log, run: never}}
",
    );
    let outcome = node.run(&book);
    assert_eq!(node.lines("log"), ["first", "second", "second", "first"]);
    assert!(outcome.owed.is_empty());
}

#[test]
fn a_handler_that_was_notified_before_a_failure_is_owed() {
    let mut node = Node::new();
    let body = "  handlersOnFailure: POLICY
  steps:
  - {name: config, put: {path: DIR/config, content: x}, notify: restart}
  - {name: fails, break: {until: DIR/fixed}}
  handlers:
  - {name: restart, command: {path: DIR/log, run: restart}}
";
    let book = node.book(&body.replace("POLICY", "owe"));
    let first = node.run(&book);
    assert_eq!(states(&first), ["config changed", "fails failed"]);
    assert_eq!(first.owed, ["handlers/restart"]);
    assert!(node.lines("log").is_empty());
    fs::write(node.directory.join("fixed"), "").expect("fixed");
    node.next_run(&first);
    let second = node.run(&book);
    assert_eq!(
        states(&second),
        ["config ok", "fails ok", "handlers/restart changed"]
    );
    assert_eq!((node.lines("log").len(), second.owed.len()), (1, 0));
    node.next_run(&second);
    assert_eq!(states(&node.run(&book)), ["config ok", "fails ok"]);

    for (policy, lines) in [("run", 1), ("drop", 0)] {
        let mut node = Node::new();
        let book = node.book(&body.replace("POLICY", policy));
        let outcome = node.run(&book);
        assert_eq!(
            (node.lines("log").len(), outcome.owed.len()),
            (lines, 0),
            "{policy}"
        );
    }
}

#[test]
fn a_condition_that_cannot_be_decided_fails_and_never_skips() {
    let mut node = Node::new();
    let book = node.book("  steps:\n  - {name: a, note: {value: {b: 1}}}\n  - {name: b, when: \"steps['a'].value.c == 1\", note: {value: 1}}\n");
    let outcome = node.run(&book);
    assert_eq!(states(&outcome), ["a ok", "b failed"]);
    let error = outcome.steps[1].error.as_ref().expect("an error");
    assert!(error.message.contains("there is no key `c`"), "{error:?}");
    assert_eq!(outcome.steps[1].place.to_string(), "book.yaml:7:5");
}

#[test]
fn a_check_looks_ahead_and_changes_nothing() {
    let mut node = Node::new();
    let book = node.book(
        "  steps:
  - {name: a, put: {path: DIR/a, content: x}}
  - {name: same, put: {path: DIR/a, content: x}}
  - {name: read, note: {value: 1}}
  - {name: free, command: {path: DIR/log}}
  - {name: needs, note: {value: \"{{ steps['free'].stdout }}\"}}
  - {name: also, when: \"steps['free'].stdout == 'x'\", note: {value: 1}}
",
    );
    let outcome = node.run_mode(&book, RunMode::Check, Value::Null);
    assert_eq!(
        states(&outcome),
        [
            "a changed",
            "same ok",
            "read ok",
            "free unknown",
            "needs unknown",
            "also unknown"
        ]
    );
    assert_eq!(outcome.state, NodeState::Unknown);
    assert!(node.records.is_empty() && node.lines("a").is_empty() && node.lines("log").is_empty());
    assert_eq!(outcome.steps[0].changes.len(), 1);
}

#[test]
fn secrets_are_in_no_report_and_no_journal() {
    let mut node = Node::new();
    let book = node.book(
        "  inputs: {token: {secret: true}}
  steps:
  - {name: file, put: {path: DIR/a, content: '{{ inputs.token }}'}}
  - {name: log, command: {path: DIR/log, stdin: '{{ inputs.token }}'}, onError: ignore}
  - {name: fails, put: {path: 'DIR/gone/{{ inputs.token }}', content: x}, onError: ignore}
  - {name: each, forEach: '[inputs.token]', note: {value: '{{ item }}'}}
",
    );
    let secret = "hunter2-is-long-enough";
    let outcome = node.run_mode(&book, RunMode::Apply, json!({"token": secret}));
    assert_eq!(node.lines("a"), [secret], "the file has it");
    let journal = fs::read(node.directory.join("journal")).expect("a journal");
    let journal = String::from_utf8_lossy(&journal);
    assert!(journal.contains("\"step\":\"file\""));
    let shown = format!("{:?}", outcome.steps);
    let base64 = "aHVudGVyMi1pcy1sb25nLWVub3VnaA";
    for text in [&shown, &journal.to_string()] {
        assert!(!text.contains(secret) && !text.contains(base64), "{text}");
    }
}

#[test]
fn a_cancelled_run_takes_no_further_step() {
    let mut node = Node::new();
    let book = node.book("  steps:\n  - {name: a, put: {path: DIR/a, content: x}, notify: h}\n  - {name: b, put: {path: DIR/b, content: x}}\n  handlers:\n  - {name: h, command: {path: DIR/log}}\n");
    node.cancel_before = Some("b".to_owned());
    let outcome = node.run(&book);
    assert_eq!(states(&outcome), ["a changed"]);
    assert_eq!(
        (outcome.stopped.as_deref(), outcome.owed),
        (Some("cancelled"), vec!["handlers/h".to_owned()])
    );
}

#[test]
fn included_steps_see_their_own_values() {
    let mut node = Node::new();
    let files = MemoryFiles::of([(
        "inner.yaml",
        "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: inner}\nspec:\n  inputs: {port: {type: int}, name: {default: inner}}\n  vars: {text: own}\n  compute: {sum: inputs.port + 1}\n  steps:\n  - {name: say, note: {value: '{{ inputs.name }} {{ vars.text }} {{ vars.sum }}'}}\n",
    )]);
    let text = "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: web}\nspec:\n  vars: {port: 80, text: outer}\n  steps:\n  - {name: in, include: {path: inner.yaml, inputs: {port: '{{ vars.port }}'}}}\n  - {name: out, note: {value: '{{ vars.text }} {{ steps[\"say\"].value }}'}, register: last}\n";
    let mut source = BookSource::new("book.yaml", text, Arc::new(files));
    source.modules = support::MODULES;
    let book = compile(&source).expect("a book");
    let outcome = node.run(&book);
    assert_eq!(
        states(&outcome),
        ["in/say ok", "out ok"],
        "{:?}",
        outcome.steps
    );
}

/// Kills a run before and after every record of the journal and lets it go on: nothing that must not be done twice is
/// done twice, nothing that was done is forgotten, and what nobody knows is told.
#[test]
fn a_run_that_is_killed_anywhere_goes_on() {
    let body = "  steps:
  - {name: converge, put: {path: DIR/a, content: x}, notify: restart}
  - {name: once, command: {path: DIR/once}}
  - {name: each, forEach: [1, 2], command: {path: DIR/each, run: '{{ item }}'}}
  - {name: uses, put: {path: DIR/b, content: \"{{ steps['once'].stdout }}\"}}
  - {name: again, command: {path: DIR/again}, onUnknown: rerun}
  handlers:
  - {name: restart, command: {path: DIR/restart}, effect: converge}
";
    let points = {
        let mut node = Node::new();
        let book = node.book(body);
        assert_eq!(node.run(&book).state, NodeState::Changed);
        node.records.len()
    };
    assert_eq!(points, 14, "two for each effect");
    for point in 0..points {
        for is_written in [false, true] {
            let mut node = Node::new();
            let book = node.book(body);
            node.kill = Some((point, is_written));
            let killed = node.run(&book);
            assert_eq!(killed.stopped.as_deref(), Some("the agent ends"), "{point}");
            let mut outcome = killed;
            // An unknown step stops the node; each resume after it finds the same.
            for _ in 0..2 {
                node.restart();
                outcome = node.run(&book);
            }
            let unknown: BTreeSet<&str> = outcome
                .steps
                .iter()
                .filter(|step| step.state == StepState::Unknown)
                .map(|step| step.name.as_str())
                .collect();
            let at = format!(
                "record {point}, written: {is_written}: {:?}",
                states(&outcome)
            );
            assert!(
                node.lines("once").len() <= 1 && node.lines("each").len() <= 2,
                "{at}"
            );
            if unknown.is_empty() {
                assert_eq!(outcome.state, NodeState::Changed, "{at}");
                assert_eq!(node.lines("once").len(), 1, "{at}");
                assert_eq!(node.lines("each"), ["1", "2"], "{at}");
                assert_eq!(node.lines("b"), ["run"], "{at}");
                assert!((1..=2).contains(&node.lines("again").len()), "{at}");
                assert!((1..=2).contains(&node.lines("restart").len()), "{at}");
                assert!(outcome.owed.is_empty(), "{at}");
            } else {
                assert_eq!(outcome.state, NodeState::Unknown, "{at}");
                assert_eq!(outcome.owed, ["handlers/restart"], "{at}");
                assert!(unknown.is_subset(&BTreeSet::from(["once", "each"])), "{at}");
            }
        }
    }
}

/// A phase ends with its own handlers: one that a later phase notified before a kill runs once, behind that phase, and is
/// owed if the run does not come there again.
#[test]
fn a_handler_of_a_later_phase_runs_once_after_a_kill() {
    let body = "  steps:
  - {name: first, command: {path: DIR/first}}
  - {name: config, barrier: run, put: {path: DIR/config, content: x}, notify: restart}
  - {name: last, command: {path: DIR/last}, onUnknown: rerun}
  handlers:
  - {name: restart, command: {path: DIR/restart}}
";
    for point in 4..6 {
        let mut node = Node::new();
        let book = node.book(body);
        node.kill = Some((point, true));
        node.run(&book);
        node.restart();
        node.cancel_before = Some("first".to_owned());
        let cancelled = node.run(&book);
        assert_eq!(cancelled.owed, ["handlers/restart"], "{point}");
        node.cancel_before = None;
        node.restart();
        let outcome = node.run(&book);
        assert_eq!(
            (node.lines("restart").len(), outcome.owed.len()),
            (1, 0),
            "{point}"
        );
        assert_eq!(node.lines("first").len(), 1, "{point}");
    }
}

/// The process dies with the machine at every record of a book that restarts it: the restart is asked for once, and handlers
/// that were notified before it run once after it.
#[test]
fn notified_handlers_survive_a_restart_of_the_machine() {
    let body = "  steps:
  - {name: config, put: {path: DIR/config, content: x}, notify: restart}
  - {name: again, reboot: {path: DIR/log, boot: before}}
  handlers:
  - {name: restart, command: {path: DIR/log, run: handler}}
";
    let mut node = Node::new();
    let whole = node.run(&node.book(body));
    assert_eq!(
        states(&whole),
        [
            "config changed",
            "again changed",
            "handlers/restart changed"
        ]
    );
    assert_eq!(node.lines("log"), ["reboot", "handler"]);
    let records = node.records.len();
    for at in 0..records {
        let mut node = Node::new();
        let book = node.book(body);
        node.kill = Some((at, true));
        node.run(&book);
        let asked = node.lines("log").len();
        node.restart();
        let outcome = node.run(&book);
        let lines = node.lines("log");
        let reboots = lines.iter().filter(|line| *line == "reboot").count();
        // Whoever wrote down that it will ask and died counts as having asked: the machine has another boot id.
        assert!(reboots <= 1 && reboots >= asked.min(1), "{at}: {lines:?}");
        let handlers = lines.iter().filter(|line| *line == "handler").count();
        assert!(handlers <= 1, "{at}: {lines:?}");
        if outcome.state != NodeState::Unknown {
            assert_eq!(handlers, 1, "{at}: {lines:?}");
        }
    }
}

/// A machine with the same boot id after the time-out has not restarted.
#[test]
fn a_machine_that_does_not_restart_fails_the_step() {
    let mut node = Node::new();
    let book = node.book("  steps:\n  - {name: again, reboot: {path: DIR/log}}\n  - {name: next, note: {value: 1}}\n");
    let outcome = node.run(&book);
    assert_eq!(states(&outcome), ["again failed"]);
    let error = outcome.steps[0].error.as_ref().expect("an error");
    assert_eq!(
        error.message,
        "the machine has not restarted within 0 seconds"
    );
    // A run that is resumed waits on, and asks for no second restart.
    node.restart();
    assert_eq!(states(&node.run(&book)), ["again failed"]);
    assert_eq!(node.lines("log"), ["reboot"]);
}
