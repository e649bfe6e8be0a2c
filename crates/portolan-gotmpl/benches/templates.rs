//! Executes the templates that `bench/go-templates` dumped and prints
//! `NAME EXECUTE_NS ALLOCATIONS RENDER_NS EQUAL FILES`: executing parsed templates, the same with parsing, and how many
//! files came out as in Go.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

#[path = "../tests/chart/mod.rs"]
mod chart;

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_gotmpl::{
    Executor, Limits, Map, MissingKey, Options, Seeded, TemplateSet, TextParser, Value,
    clean_output, helm_functions,
};
use portolan_yaml::{Node, from_json};

struct File {
    name: String,
    text: String,
    scope: usize,
    output: String,
}

struct Work {
    files: Vec<File>,
    scopes: Vec<Rc<Map>>,
    parser: TextParser,
    limits: Limits,
}

fn main() {
    for (name, path) in std::env::args().skip(1).filter_map(|arg| {
        let (name, path) = arg.split_once('=')?;
        Some((name.to_owned(), path.to_owned()))
    }) {
        let text = std::fs::read_to_string(&path).expect("the dump can be read");
        let dump = from_json(&text).expect("the dump is JSON");
        let work = Work::new(&dump);
        let set = work.parse();
        let equal = work.execute(&set);
        let execute = measure(|| work.execute(&set));
        let allocations = allocation_counter::measure(|| {
            work.execute(&set);
        });
        let render = measure(|| work.execute(&work.parse()));
        println!(
            "{name} {} {} {} {equal} {}",
            execute.as_nanos(),
            allocations.count_total,
            render.as_nanos(),
            work.printed()
        );
    }
}

fn measure(mut work: impl FnMut() -> usize) -> Duration {
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < Duration::from_secs(1) {
        std::hint::black_box(work());
        count += 1;
    }
    start.elapsed() / count
}

impl Work {
    fn new(dump: &Node) -> Self {
        let items = |key: &str| {
            dump.get(key)
                .and_then(Node::as_list)
                .expect("a list")
                .clone()
        };
        let files = items("files");
        let files = files.iter().map(|file| {
            let text = |key: &str| {
                file.get(key)
                    .and_then(Node::as_str)
                    .expect("a text")
                    .to_owned()
            };
            let scope = file.get("scope").and_then(Node::as_i64).expect("a number") as usize;
            File {
                name: text("name"),
                text: text("text"),
                scope,
                output: text("output"),
            }
        });
        let scopes = items("scopes").iter().map(scope).collect();
        let limits = Limits::default();
        let parser = TextParser::new(Arc::new(helm_functions()), limits.parse_depth);
        Self {
            files: files.collect(),
            scopes,
            parser,
            limits,
        }
    }

    fn parse(&self) -> TemplateSet {
        let mut set = TemplateSet::default();
        for file in &self.files {
            set.add(
                &self
                    .parser
                    .parse(&file.name, &file.text)
                    .expect("it parses in Go"),
            );
        }
        set
    }

    fn printed(&self) -> usize {
        self.files.iter().filter(|file| prints(&file.name)).count()
    }

    /// Executes everything; how many files are as in Go.
    fn execute(&self, set: &TemplateSet) -> usize {
        let mut host = Seeded::new("bench", 1_700_000_000_000_000_000);
        let options = Options {
            missing_key: MissingKey::Zero,
            range_over_int: false,
        };
        let mut executor = Executor::new(set, &self.parser, options, &self.limits, &mut host);
        let mut equal = 0;
        for file in self.files.iter().filter(|file| prints(&file.name)) {
            let scope = &self.scopes[file.scope];
            let base = file
                .name
                .find("/templates/")
                .map_or("", |at| &file.name[..at + 10]);
            chart::set_template(scope, &file.name, base);
            let output = executor.execute(&file.name, Value::Map(Rc::clone(scope)));
            let output = output.expect("it runs in Go");
            equal += usize::from(clean_output(output) == file.output);
        }
        equal
    }
}

fn prints(name: &str) -> bool {
    !name
        .rsplit('/')
        .next()
        .is_some_and(|base| base.starts_with('_'))
}

fn scope(node: &Node) -> Rc<Map> {
    let value = |key: &str| {
        node.get(key)
            .and_then(|node| Value::from_node(node).ok())
            .unwrap_or_default()
    };
    let context = chart::context(value("Values"));
    context.insert("Chart", value("Chart"));
    context.insert("Release", value("Release"));
    context
}
