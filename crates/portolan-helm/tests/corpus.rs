//! Every chart of the shared corpus, rendered and compared byte for byte with what Helm 3.17.3 printed.
//!
//! Where Helm's own output is random the corpus has a second run of it; lines in which the two differ are free.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_helm::values::Overrides;
use portolan_helm::{Chart, OutputOptions, Release, TemplateInput, template};
use portolan_vfs::Disk;
use serde_json::Value as Json;

/// Cases that are allowed to differ, each with its reason.
const EXCEPTIONS: &[(&str, &str)] = &[(
    "real__app-template__mirceanton+home-ops__sparkyfitness__81c79b",
    "Helm prints its documents in random order, and the first of a file has one separator less",
)];

fn corpus() -> Option<Utf8PathBuf> {
    let cases = portolan_testbed::corpus("cases-helm.json")?;
    let cases = Utf8PathBuf::try_from(cases).unwrap();
    cases.parent().map(Utf8Path::to_owned)
}

fn render(corpus: &Utf8Path, case: &Json) -> Result<String, String> {
    let disk = Disk::open(&corpus.join(case["chart"].as_str().unwrap())).unwrap();
    let chart = Chart::load(&disk, "/".into()).map_err(|error| error.to_string())?;
    let overrides = Overrides {
        files: texts(&case["values"])
            .map(|name| (name.to_owned(), fs::read(corpus.join(name)).unwrap()))
            .collect(),
        ..Overrides::default()
    };
    let namespace = case["namespace"].as_str().unwrap_or("default");
    let release = Release::new(case["release"].as_str().unwrap(), namespace);
    let input = TemplateInput {
        values: overrides
            .merge(&mut |_| Err(String::new()))
            .map_err(|error| error.to_string())?,
        skip_schema_validation: texts(&case["flags"]).any(|f| f == "--skip-schema-validation"),
        ..TemplateInput::new(release)
    };
    let rendered = template(&chart, &input).map_err(|error| error.to_string())?;
    Ok(rendered.to_text(&OutputOptions::default()).unwrap())
}

fn texts(list: &Json) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
}

/// What is wrong with a case; `None` when nothing is.
fn judge(corpus: &Utf8Path, case: &Json) -> Option<String> {
    let outcome = render(corpus, case);
    if let Some(refusal) = case["expect_error"].as_str() {
        return judge_refusal(refusal, outcome.err()?.as_str());
    }
    let printed = match outcome {
        Ok(printed) => printed,
        Err(error) => return Some(format!("refused: {error}")),
    };
    let read = |key: &str| {
        let name = case[key].as_str()?;
        let bytes = fs::read(corpus.join(name)).unwrap();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let expected = read("expected").unwrap();
    if case["order_free"] == true && pieces(&expected) == pieces(&printed) {
        return None;
    }
    first_difference(&expected, read("alt").as_deref(), &printed)
}

/// A refusal must give Helm's reason; the words around it are the command's.
fn judge_refusal(expected: &str, error: &str) -> Option<String> {
    let reason = expected.split("Error: ").last().unwrap_or(expected);
    let reason = reason
        .split("\n\nUse --debug")
        .next()
        .unwrap_or(reason)
        .trim();
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.trim().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    // The library Helm checks schemas with reports in random order.
    (sorted(reason) != sorted(error)).then(|| format!("expected `{reason}`, got `{error}`"))
}

fn pieces(text: &str) -> Vec<&str> {
    let mut pieces: Vec<_> = text.split("---\n").collect();
    pieces.sort_unstable();
    pieces
}

fn first_difference(expected: &str, alternative: Option<&str>, printed: &str) -> Option<String> {
    if expected == printed {
        return None;
    }
    let wanted: Vec<_> = expected.split('\n').collect();
    let got: Vec<_> = printed.split('\n').collect();
    let other: Vec<_> = alternative.unwrap_or(expected).split('\n').collect();
    for (index, line) in wanted.iter().enumerate() {
        let free = other.get(index) != Some(line);
        if !free && got.get(index) != Some(line) {
            let number = index + 1;
            let got = got.get(index).unwrap_or(&"nothing");
            return Some(format!("line {number}: expected `{line}`, got `{got}`"));
        }
    }
    (wanted.len() != got.len())
        .then(|| format!("{} lines expected, {} printed", wanted.len(), got.len()))
}

#[test]
fn every_chart_renders_as_helm_renders_it() {
    let Some(corpus) = corpus() else { return };
    let cases = fs::read_to_string(corpus.join("cases-helm.json")).unwrap();
    let cases: Vec<Json> = serde_json::from_str(&cases).unwrap();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let id = case["id"].as_str().unwrap();
                    let wrong = judge(&corpus, case);
                    let excused = EXCEPTIONS.iter().any(|(name, _)| *name == id);
                    match wrong {
                        Some(wrong) if !excused => {
                            failures.lock().unwrap().push(format!("{id}: {wrong}"));
                        }
                        None if excused => {
                            let text = format!("{id}: listed as an exception, but equal");
                            failures.lock().unwrap().push(text);
                        }
                        _ => {}
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(
        failures.is_empty(),
        "{} of {} cases differ:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}
