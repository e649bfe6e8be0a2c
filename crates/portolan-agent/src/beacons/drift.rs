//! Compares a TaskBook with the node: a check run of the node by itself.

use std::sync::Arc;

use portolan_digest::Hasher;
use portolan_fleet::{LocalRun, NodeOutcome, RunMode, StepReport, StepState};
use portolan_modules::{BookFiles, Host};
use portolan_secret::KnownSecrets;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::check::{Sight, shortened, sight, unknown};
use super::order::KeptOrder;
use crate::runs::{FileStore, OrderValues, compile_order};

/// The most steps that an event names.
const MAX_STEPS: usize = 10;

/// The most bytes of steps with their diffs in an event.
const MAX_BYTES: usize = 3_500;

/// The most letters of the name of a step, and of its item.
const MAX_NAME: usize = 120;

/// Looks whether the book of an order would change the node.
pub(super) fn look_at_drift(
    order: &KeptOrder,
    host: &Host,
    files: &Arc<FileStore>,
    stop: &CancellationToken,
) -> Sight {
    let compared = compare(order, host, files, stop);
    compared.map_or_else(|reason| unknown(&reason), |outcome| seen(&outcome))
}

fn compare(
    order: &KeptOrder,
    host: &Host,
    files: &Arc<FileStore>,
    stop: &CancellationToken,
) -> Result<NodeOutcome, String> {
    let Some(kept) = &order.book else {
        let why = order.unusable.as_str();
        let why = if why.is_empty() {
            "the server has sent no book"
        } else {
            why
        };
        return Err(why.to_owned());
    };
    if !kept.has_files(files)? {
        return Err("the files of the book have not come yet".to_owned());
    }
    let files: Arc<dyn BookFiles> = kept.files(files);
    let wire = kept.order();
    let values = OrderValues::read(wire).ok_or("the order of the server cannot be read")?;
    let book = compile_order(wire, &values, &files)?;
    let run = LocalRun {
        root: Arc::clone(&host.root),
        is_confined: false,
        files,
        mode: RunMode::Check,
        inputs: values.inputs,
        variables: values.variables,
        about: Some(values.node),
        id: format!("drift-{}", order.id),
        secrets: Arc::new(KnownSecrets::default()),
        stop: stop.clone(),
        acknowledges_damage: false,
        kill_at: None,
    };
    let ended = run.run(&book, &mut |_: &StepReport| {});
    let outcome = ended.map_err(|error| error.to_string())?.outcome;
    if outcome.stopped.is_some() {
        return Err("the comparison took too long and was ended".to_owned());
    }
    Ok(outcome)
}

/// What the steps of a check say together.
fn seen(outcome: &NodeOutcome) -> Sight {
    let of = |states: &'static [StepState]| {
        let steps = outcome.steps.iter();
        steps.filter(move |step| states.contains(&step.state))
    };
    let changed: Vec<&StepReport> = of(&[StepState::Changed]).collect();
    let unsure: Vec<&StepReport> = of(&[StepState::Unknown, StepState::Failed]).collect();
    if changed.is_empty() {
        return match unsure.first() {
            Some(step) => unknown(&reason(step)),
            None => sight("in-sync".to_owned(), true),
        };
    }
    let mut hasher = Hasher::default();
    for step in &changed {
        hasher.update(step.name.as_bytes());
        hasher.update(json!(step.item).to_string().as_bytes());
        for change in &step.changes {
            hasher.update(change.subject.as_bytes());
            hasher.update(change.before.as_bytes());
            hasher.update(change.after.as_bytes());
        }
    }
    let digest = hasher.finish().hex();
    let which = digest.get(..16).unwrap_or_default();
    Sight {
        data: data(&changed, &unsure),
        ..sight(format!("drifted {which}"), false)
    }
}

fn reason(step: &StepReport) -> String {
    let why = step.error.as_ref().map(|error| error.message.as_str());
    let name = cut(&step.name, MAX_NAME);
    format!("step `{name}`: {}", why.unwrap_or(step.state.word()))
}

/// The steps that would change something with their diffs, as many as an event can have, and what could not be compared.
fn data(changed: &[&StepReport], unsure: &[&StepReport]) -> Map<String, Value> {
    let mut steps: Vec<Value> = Vec::new();
    let mut left = MAX_BYTES;
    for step in changed.iter().take(MAX_STEPS) {
        let mut told = json!({"step": cut(&step.name, MAX_NAME)});
        if let Some(item) = &step.item {
            told["item"] = cut(&item.to_string(), MAX_NAME).into();
        }
        let bare = told.to_string().len();
        if bare > left {
            break;
        }
        left -= bare;
        steps.push(told);
    }
    for (told, step) in steps.iter_mut().zip(changed) {
        let diff = step.diff.as_deref().unwrap_or_default();
        let diff = fitting(diff, left.saturating_sub(32));
        if !diff.is_empty() {
            left = left.saturating_sub(json!(diff).to_string().len());
            told["diff"] = diff.into();
        }
    }
    let mut data = Map::new();
    let more = changed.len() - steps.len();
    data.insert("steps".to_owned(), Value::Array(steps));
    if more > 0 {
        data.insert("moreSteps".to_owned(), more.into());
    }
    if let Some(step) = unsure.first() {
        data.insert("notCompared".to_owned(), unsure.len().into());
        data.insert("reason".to_owned(), shortened(&reason(step)).into());
    }
    data
}

/// The beginning of a diff that has at most so many bytes in JSON.
fn fitting(diff: &str, most: usize) -> String {
    if json!(diff).to_string().len() <= most {
        return diff.to_owned();
    }
    let mut text = String::new();
    let mut bytes = 8;
    for line in diff.split_inclusive('\n') {
        bytes += json!(line).to_string().len();
        if bytes > most {
            break;
        }
        text.push_str(line);
    }
    if text.is_empty() {
        text
    } else {
        format!("{text}…")
    }
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;
    use portolan_fleet::{BookSource, MemoryFiles, compile};
    use portolan_modules::Root;

    use super::*;
    use crate::wire;

    fn order(steps: &str) -> KeptOrder {
        let text = format!(
            "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {{name: web, namespace: shop}}\nspec:\n  target: {{all: true}}\n  vars: {{word: nothing}}\n  steps:\n{steps}"
        );
        let source = BookSource::new("web.yaml", &text, Arc::new(MemoryFiles::default()));
        let digest = compile(&source).expect("a book").digest.to_string();
        let values = json!({"variables": {"word": "hello"}, "node": {"name": "n", "labels": {}}});
        let book = wire::RunOrder {
            file: "web.yaml".to_owned(),
            book: text.into_bytes().into(),
            digest,
            is_check: true,
            values: values.to_string().into(),
            ..wire::RunOrder::default()
        };
        let beacon = wire::BeaconOrder {
            id: "1".to_owned(),
            name: "drift".to_owned(),
            spec: br#"{"drift": {"book": "web"}}"#.to_vec().into(),
            book: Some(book),
            ..wire::BeaconOrder::default()
        };
        let orders = wire::BeaconOrders {
            beacons: vec![beacon],
        };
        KeptOrder::read(orders, &[]).remove(0)
    }

    fn look(order: &KeptOrder, root: &Utf8PathBuf) -> Sight {
        let host = Host::local(Arc::new(Root::other(root).expect("a root")));
        let files = Arc::new(FileStore::new(root.join("files")));
        look_at_drift(order, &host, &files, &CancellationToken::new())
    }

    fn root() -> (tempfile::TempDir, Utf8PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::try_from(directory.path().to_owned()).expect("UTF-8");
        std::fs::create_dir(path.join("etc")).expect("made");
        (directory, path)
    }

    #[test]
    fn a_node_that_a_book_would_change_has_drifted_and_nothing_is_changed() {
        let (_directory, root) = root();
        let order = order(
            "  - {name: a, file: {path: /etc/a, content: \"{{ vars.word }}\\n\"}}\n  - {name: b, sensitive: true, file: {path: /etc/b, content: hidden}}\n",
        );
        let first = look(&order, &root);
        let condition = &first.reading.condition;
        assert!(condition.starts_with("drifted "), "{first:?}");
        assert!(!root.join("etc/a").exists());
        assert_eq!(first.data["steps"][0]["step"], "a");
        let diff = first.data["steps"][0]["diff"].as_str().expect("a diff");
        assert!(diff.contains("+hello"), "{diff}");
        let told = json!(first.data).to_string();
        assert!(!told.contains("hidden"), "{told}");
        assert_eq!(look(&order, &root), first);
        std::fs::write(root.join("etc/a"), "hello\n").expect("written");
        let other = look(&order, &root);
        assert_ne!(other.reading.condition, first.reading.condition);
        std::fs::write(root.join("etc/b"), "hidden").expect("written");
        let reading = look(&order, &root).reading;
        let found = (reading.condition.as_str(), reading.is_normal);
        assert_eq!(found, ("in-sync", true), "{reading:?}");
    }

    #[test]
    fn what_cannot_be_compared_is_unknown_with_the_reason() {
        let (_directory, root) = root();
        let check = |order: &KeptOrder, expected: &str| {
            let seen = look(order, &root);
            assert_eq!(seen.reading.condition, "unknown");
            let reason = seen.data["reason"].as_str().expect("a reason");
            assert!(reason.contains(expected), "{reason}");
        };
        let command = order("  - {name: c, command: {run: [touch, /tmp/x]}}\n");
        check(&command, "step `c`");
        let mut missing = command.clone();
        missing.book = None;
        check(&missing, "the server has sent no book");
        missing.unusable = "its input `x` has no value".to_owned();
        check(&missing, "its input `x`");
    }

    #[test]
    fn an_event_has_room_for_the_worst_book() {
        let (_directory, root) = root();
        let content = "a \\\"long\\\" line of text\\n".repeat(300);
        let steps = (0..30).map(|number| {
            format!("  - {{name: step-{number}, file: {{path: /etc/{number}, content: \"{content}\"}}}}\n")
        });
        let seen = look(&order(&steps.collect::<String>()), &root);
        let bytes = json!(seen.data).to_string().len();
        assert!((2_000..4_500).contains(&bytes), "{bytes}");
        assert_eq!(seen.data["moreSteps"], 20);
    }
}
