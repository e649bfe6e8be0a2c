//! Which values a set of templates may read, found in the programs without executing them.
//!
//! The analysis follows every program along all of its branches. For each value it knows what it may be: the context
//! of a chart, a path below a chart's values, or a dict or list that a template made ([`Known`]). A tree of paths
//! records what a program may do with each path ([`ReadPaths`]).
//!
//! ```text
//! programs ──Flow──▶ what each operand may be ──▶ ReadPaths: read in parts, read whole, only tested
//! ```
//!
//! The answer can be wrong in one direction only: a value that it calls unread is never read. An argument of a
//! function counts as read whole unless the function is known to read less, and everything counts as read whole once
//! the work exceeds its limit.

mod calls;
mod flow;
mod known;
mod paths;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use portolan_yaml::Text;

use crate::program::{Constant, LiteralKind, Program};
use crate::set::{ParsedText, TemplateSet, TextParser};
use flow::Flow;
use known::{Known, KnownTable, Object, ObjectId, Thing};
pub use paths::{PathId, ReadPaths};

/// The most instructions that are followed.
const MAX_STEPS: usize = 500_000;

/// The most that is known of values, and the most dicts and lists that are told apart.
const MAX_KNOWN: usize = 50_000;

/// How often everything is followed again because a dict turned out to hold more.
const MAX_PASSES: usize = 16;

/// A chart whose templates are looked at.
#[derive(Debug, Clone)]
pub struct ReadingChart {
    /// The keys that lead to its values from those of the topmost chart.
    pub values: Vec<Text>,
    /// The names of its templates that are executed.
    pub templates: Vec<Text>,
}

/// Templates being looked at.
pub struct ReadAnalysis<'a> {
    set: &'a TemplateSet,
    parser: &'a TextParser,
    paths: ReadPaths,
    /// Where the values of each chart begin.
    charts: Vec<PathId>,
    objects: Vec<Object>,
    sites: HashMap<Site, ObjectId>,
    known: KnownTable,
    queue: VecDeque<(Arc<Program>, Known)>,
    seen: HashSet<(usize, Known)>,
    /// The charts in whose context texts are executed that come from values or files.
    text_charts: BTreeSet<u32>,
    /// Such texts, parsed; none that cannot be. They are kept, for programs are known by their address.
    texts: HashMap<Text, Option<ParsedText>>,
    /// What such texts define.
    defined: Vec<Arc<Program>>,
    has_grown: bool,
    steps: usize,
}

/// Where a dict or list is made: the program, the instruction, and what dot is.
type Site = (usize, usize, Known);

impl<'a> ReadAnalysis<'a> {
    /// Begins to look at templates; `paths` holds what is known to be read besides.
    pub fn new(set: &'a TemplateSet, parser: &'a TextParser, paths: ReadPaths) -> Self {
        Self {
            set,
            parser,
            paths,
            charts: Vec::new(),
            objects: Vec::new(),
            sites: HashMap::new(),
            known: KnownTable::default(),
            queue: VecDeque::new(),
            seen: HashSet::new(),
            text_charts: BTreeSet::new(),
            texts: HashMap::new(),
            defined: Vec::new(),
            has_grown: false,
            steps: 0,
        }
    }

    /// Looks at the templates of charts, and at texts that a template may execute by `tpl`: values and files.
    pub fn run(self, charts: &[ReadingChart], texts: &[Text]) -> ReadPaths {
        let constants = self.constants();
        let texts: Vec<Text> = texts.iter().cloned().chain(constants).collect();
        self.settle(charts, &texts)
    }

    /// Looks at more texts, for charts whose templates were looked at before.
    pub fn run_texts(self, charts: &[ReadingChart], texts: &[Text]) -> ReadPaths {
        let without_templates = charts.iter().map(|chart| ReadingChart {
            values: chart.values.clone(),
            templates: Vec::new(),
        });
        self.settle(&without_templates.collect::<Vec<_>>(), texts)
    }

    fn settle(mut self, charts: &[ReadingChart], texts: &[Text]) -> ReadPaths {
        for chart in charts {
            let values = self.paths.chart(&chart.values);
            self.charts.push(values);
        }
        self.text_charts = self.paths.text_charts().collect();
        for _ in 0..MAX_PASSES {
            self.pass(charts, texts);
            if !self.has_grown || self.is_over() {
                break;
            }
        }
        if self.has_grown || self.is_too_much() {
            self.paths.read_everything();
        }
        self.paths.set_text_charts(self.text_charts);
        self.paths
    }

    /// Whether there is nothing left to find out, or too much.
    fn is_over(&self) -> bool {
        self.is_too_much() || self.paths.is_whole(self.paths.top())
    }

    fn is_too_much(&self) -> bool {
        let known = self.known.len().max(self.objects.len());
        self.steps > MAX_STEPS || known > MAX_KNOWN
    }

    /// Follows everything once.
    fn pass(&mut self, charts: &[ReadingChart], texts: &[Text]) {
        self.has_grown = false;
        self.seen.clear();
        let before = self.text_charts.clone();
        for (index, chart) in charts.iter().enumerate() {
            let dot = self.known.of([Thing::Chart(index as u32)]);
            for name in &chart.templates {
                if let Some(program) = self.set.find(name) {
                    self.follow(&Arc::clone(program), dot);
                }
            }
        }
        self.drain();
        if !self.text_charts.is_empty() {
            for text in texts {
                self.text(text);
            }
            self.drain();
        }
        // A text may bring another chart's context.
        self.has_grown |= before != self.text_charts;
    }

    fn drain(&mut self) {
        while let Some((program, dot)) = self.queue.pop_front() {
            if self.is_over() {
                return;
            }
            Flow::new(self, &program, dot).run();
        }
    }

    /// Remembers to look at a program with this dot.
    fn follow(&mut self, program: &Arc<Program>, dot: Known) {
        if self.seen.insert((Arc::as_ptr(program).addr(), dot)) {
            self.queue.push_back((Arc::clone(program), dot));
        }
    }

    /// Looks at templates by name; without a name at all of them, for it may be any.
    fn follow_named(&mut self, name: Option<&str>, dot: Known) {
        let set = self.set;
        let defined = self.defined.iter();
        let found: Vec<Arc<Program>> = match name {
            Some(name) => defined
                .filter(|program| program.name.as_str() == name)
                .chain(set.find(name))
                .map(Arc::clone)
                .collect(),
            None => set.programs().chain(defined).map(Arc::clone).collect(),
        };
        for program in found {
            self.follow(&program, dot);
        }
    }

    /// Looks at a text in the contexts in which texts are executed.
    fn text(&mut self, text: &Text) {
        let charts = self.text_charts.iter().copied().map(Thing::Chart);
        let charts = self.known.of(charts);
        self.text_in(text, charts);
    }

    fn text_in(&mut self, text: &Text, dot: Known) {
        if self.parser.is_plain(text) {
            return;
        }
        if !self.texts.contains_key(text) {
            let parsed = self.parser.parse("text", text).ok();
            let programs = parsed.iter().flat_map(|parsed| parsed.programs.iter());
            self.defined.extend(programs.map(Arc::clone));
            self.texts.insert(text.clone(), parsed);
        }
        let parsed = self.texts.get(text).and_then(Option::as_ref);
        match parsed.and_then(ParsedText::main).map(Arc::clone) {
            Some(main) => self.follow(&main, dot),
            // Perhaps a part of a template that is put together elsewhere.
            None => {
                let words = ["Values", "include", "template"];
                if words.iter().any(|word| text.contains(word)) {
                    self.read(dot);
                }
            }
        }
    }

    /// The texts in templates that are templates themselves.
    fn constants(&self) -> BTreeSet<Text> {
        let mut found = BTreeSet::new();
        let mut add = |constant: &Constant| match constant {
            Constant::Str(text) if !self.parser.is_plain(text) => {
                found.insert(text.clone());
            }
            _ => {}
        };
        for program in self.set.programs() {
            program.constants.iter().for_each(&mut add);
            for literal in &program.literals {
                if let LiteralKind::Str(constant) = &literal.kind {
                    add(constant);
                }
            }
        }
        found
    }
}
