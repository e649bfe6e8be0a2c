//! The cases of `gotemplate.json`, answered by Helm's own engine, that need a template set and no more of a chart.
//!
//! What needs a chart (subcharts, overrides, chart files, a broken values.yaml) is run by the Helm crate.

mod chart;

use std::sync::Arc;

use portolan_gotmpl::{
    Executor, Limits, MissingKey, Options, Seeded, TemplateSet, TextParser, Value, clean_output,
    exec_message, helm_functions, parse_message,
};
use portolan_yaml::{Dialect, Node, from_json, parse_one};

struct Case<'a> {
    id: &'a str,
    /// Path under `c/` and text; `templates/t.yaml` is one of them.
    files: Vec<(String, &'a str)>,
    values: &'a str,
    expected: Result<&'a str, &'a str>,
}

impl<'a> Case<'a> {
    /// A case of the suite; none when it needs a whole chart.
    fn read(node: &'a Node) -> Option<Self> {
        let text = |key: &str| node.get(key).and_then(Node::as_str);
        if text("overrides").is_some()
            || text("error").is_some_and(|e| e.starts_with("cannot load"))
        {
            return None;
        }
        let mut files = vec![("c/templates/t.yaml".to_owned(), text("template")?)];
        for entry in node
            .get("files")
            .and_then(Node::as_map)
            .into_iter()
            .flatten()
        {
            if !entry.key.as_str().starts_with("templates/") {
                return None;
            }
            files.push((format!("c/{}", entry.key.as_str()), entry.value.as_str()?));
        }
        // Deepest paths first, later names first: the order in which Helm parses and executes.
        files.sort_by(|(a, _), (b, _)| {
            let key = |path: &str| (path.matches('/').count(), path.to_owned());
            key(b).cmp(&key(a))
        });
        let expected = text("output").map_or_else(|| Err(text("error").unwrap_or_default()), Ok);
        Some(Self {
            id: text("id")?,
            files,
            values: text("values")?,
            expected,
        })
    }

    fn render(&self, parser: &TextParser) -> Result<String, String> {
        let node =
            parse_one(self.values, Dialect::Helm).map_err(|error| format!("values: {error}"))?;
        let values = Value::from_node(&node).map_err(|error| format!("values: {error}"))?;
        let context = chart::context(values);
        let mut set = TemplateSet::default();
        for (name, text) in &self.files {
            set.add(
                &parser
                    .parse(name, text)
                    .map_err(|error| parse_message(&error))?,
            );
        }
        let options = Options {
            missing_key: MissingKey::Zero,
            range_over_int: false,
        };
        let limits = Limits::default();
        let mut host = Seeded::new(self.id, 1_700_000_000_000_000_000);
        let mut executor = Executor::new(&set, parser, options, &limits, &mut host);
        let mut wanted = String::new();
        for (name, _) in &self.files {
            if name
                .rsplit('/')
                .next()
                .is_some_and(|base| base.starts_with('_'))
            {
                continue;
            }
            chart::set_template(&context, name, "c/templates");
            let dot = Value::Map(std::rc::Rc::clone(&context));
            let output = executor
                .execute(name, dot)
                .map_err(|error| exec_message(&error))?;
            if name == "c/templates/t.yaml" {
                wanted = clean_output(output);
            }
        }
        Ok(wanted)
    }
}

#[derive(Default)]
struct Tally {
    outputs: usize,
    outputs_equal: usize,
    errors: usize,
    errors_refused: usize,
    errors_equal: usize,
    differences: Vec<String>,
}

impl Tally {
    fn count(&mut self, case: &Case<'_>, got: &Result<String, String>) {
        match (case.expected, got) {
            (Ok(expected), got) => {
                self.outputs += 1;
                if got.as_deref() == Ok(expected) {
                    self.outputs_equal += 1;
                } else {
                    self.differ(case, got);
                }
            }
            (Err(expected), got) => {
                self.errors += 1;
                self.errors_refused += usize::from(got.is_err());
                if got.as_ref().err().map(String::as_str) == Some(expected) {
                    self.errors_equal += 1;
                } else {
                    self.differ(case, got);
                }
            }
        }
    }

    fn differ(&mut self, case: &Case<'_>, got: &Result<String, String>) {
        let template = case
            .files
            .iter()
            .find(|(name, _)| name == "c/templates/t.yaml");
        let template = template.map_or("", |(_, text)| text);
        self.differences.push(format!(
            "{}\n  {template:?}\n  want {:?}\n  got  {got:?}",
            case.id, case.expected
        ));
    }
}

/// `GOTMPL_SUITE` names a file to try instead of the shared one, with answers freshly made by Helm's engine.
#[test]
fn templates_print_and_fail_as_in_helm() {
    let given = std::env::var_os("GOTMPL_SUITE").map(std::path::PathBuf::from);
    let Some(path) = given.or_else(|| portolan_testbed::corpus("suites/gotemplate.json")) else {
        return;
    };
    let text = std::fs::read_to_string(path).expect("a suite is readable");
    let suite = from_json(&text).expect("the suite is JSON");
    let cases: Vec<Case<'_>> = suite
        .as_list()
        .expect("the suite is a list")
        .iter()
        .filter_map(Case::read)
        .collect();
    let parser = TextParser::new(Arc::new(helm_functions()), 200);
    let mut tally = Tally::default();
    for case in &cases {
        let got = case.render(&parser);
        tally.count(case, &got);
    }
    for difference in &tally.differences {
        eprintln!("{difference}");
    }
    eprintln!(
        "{} cases: {}/{} outputs equal, {}/{} errors refused, {} with equal text",
        cases.len(),
        tally.outputs_equal,
        tally.outputs,
        tally.errors_refused,
        tally.errors,
        tally.errors_equal
    );
    assert!(
        tally.outputs_equal * 1000 >= tally.outputs * 995,
        "outputs differ"
    );
    assert_eq!(tally.errors_refused, tally.errors, "errors are not refused");
    assert!(
        tally.errors_equal * 100 >= tally.errors * 95,
        "error texts differ"
    );
}
