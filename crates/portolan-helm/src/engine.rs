//! The template engine: what Helm adds to Go's templates.
//!
//! ```text
//! Plan ──▶ one set of all templates (parsed once)      values ──▶ one context per chart
//!                     └──────────────┬──────────────────────────────┘
//!                          rendered text by template path
//! ```
//!
//! Templates of all charts share one set of names. They are parsed, and later executed, with the deepest path first
//! and names in reverse order, so the definition that is highest in the tree and first by name wins.

mod files;
mod glob;
mod host;
mod scope;
mod trace;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use portolan_budget::Exceeded;
use portolan_gotmpl::functions::FunctionTable;
use portolan_gotmpl::{
    CommentLines, ExecError, Executor, Limits, Map, MissingKey, Options, ParseError, ParsedText,
    ReadAnalysis, ReadPaths, ReadingChart, TemplateSet, Text, TextParser, Value, clean_output,
};

use crate::dependency::Plan;
use crate::package::Content;
use crate::parallel;
use crate::profile::Profile;
use crate::render::TemplateInput;
pub use host::Lookup;
use host::RenderHost;
use scope::{named_values, scopes, template_value};

/// What a byte of output takes until the manifests are made: texts, documents and their nodes.
pub(crate) const MEMORY_PER_OUTPUT: usize = 8;

/// The templates of a plan, parsed.
pub(crate) struct Templates {
    set: TemplateSet,
    parser: TextParser,
    files: Vec<TemplateFile>,
    /// How much text was parsed.
    pub(crate) bytes: usize,
}

/// A file that prints something.
#[derive(Debug)]
struct TemplateFile {
    path: Text,
    base_path: String,
    /// The chart it belongs to: the place in the order of [`scopes`].
    scope: usize,
}

/// Why a template cannot be parsed or failed, in Helm's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is no template.
    #[error("parse error at ({file}:{line}): {message}")]
    Parse {
        /// The template.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// The chart says so itself, by `fail` or `required`.
    #[error("execution error at ({place}): {message}")]
    Authored {
        /// Template, line and column.
        place: String,
        /// The chart's own words.
        message: String,
    },
    /// The template was stopped: it reached a limit, or somebody asked for the end.
    #[error("{message}")]
    Stopped {
        /// Template, line and column.
        place: String,
        /// What Go would say, with the limit and the option that raises it.
        message: String,
        /// The limit.
        exceeded: Exceeded,
    },
    /// The template failed while it ran.
    #[error("{message}")]
    Failed {
        /// Template, line and column; empty where none was running.
        place: String,
        /// What Go says, the place included.
        message: String,
    },
}

impl TemplateError {
    /// The template with line and column, as Helm names it; 0 where a number is not known. `None` if no template was
    /// running.
    pub fn place(&self) -> Option<(&str, u32, u32)> {
        let written = match self {
            Self::Parse { file, line, .. } => {
                return Some((file, u32::try_from(*line).ok()?, 0));
            }
            Self::Authored { place, .. }
            | Self::Stopped { place, .. }
            | Self::Failed { place, .. } => place,
        };
        let (file, at) = written.split_once(':')?;
        let mut numbers = at.split(':').map(|number| number.parse().unwrap_or(0));
        let (line, column) = (numbers.next()?, numbers.next().unwrap_or(0));
        Some((file, line, column))
    }
}

impl Templates {
    /// Parses the templates of all charts of a plan while this thread does something else first.
    pub(crate) fn parse_beside<B>(
        plan: &Plan,
        profile: Profile,
        beside: impl FnOnce() -> B,
    ) -> (Result<Self, TemplateError>, B) {
        let mut found = BTreeMap::new();
        collect(plan, &mut 0, &mut found);
        // Names are sorted already, so only their depths remain, and both go backwards.
        let mut ordered: Vec<_> = found.into_iter().rev().collect();
        ordered.sort_by_cached_key(|(path, _)| {
            let depth = path.bytes().filter(|byte| *byte == b'/').count();
            std::cmp::Reverse(depth)
        });
        let parser = TextParser::new(function_table(), Limits::default().parse_depth)
            .with_comment_lines(match profile {
                Profile::Helm3 => CommentLines::Skipped,
                Profile::Helm4 => CommentLines::Counted,
            });
        let parse =
            |path: &str, source: &Source<'_>| parser.parse_shared(path, source.content.to_text());
        let twins = twins(&ordered);
        let work: Vec<_> = ordered.iter().zip(&twins).collect();
        let bytes = work.iter().filter(|(_, twin)| twin.is_none());
        let bytes = bytes.map(|((_, source), _)| source.content.len()).sum();
        let (parsed, beside) = parallel::map_beside(
            &work,
            bytes,
            |((path, source), twin)| twin.is_none().then(|| parse(path, source)),
            beside,
        );
        let assembled = Self::assemble(parser, &ordered, &twins, &parsed);
        (
            assembled.map(|templates| Self { bytes, ..templates }),
            beside,
        )
    }

    /// Puts parsed texts together in their order.
    fn assemble(
        parser: TextParser,
        ordered: &[(String, Source<'_>)],
        twins: &[Option<usize>],
        parsed: &[Option<Result<ParsedText, ParseError>>],
    ) -> Result<Self, TemplateError> {
        let mut set = TemplateSet::default();
        let mut files = Vec::new();
        for (index, (path, source)) in ordered.iter().enumerate() {
            let at = twins[index].unwrap_or(index);
            match &parsed[at] {
                Some(Ok(text)) if at == index => set.add(text),
                Some(Ok(text)) => set.add(&text.renamed(path)),
                // The first file that is wrong is told of, under its own name.
                _ => set.add(&parser.parse_shared(path, source.content.to_text())?),
            }
            let name = path.rsplit('/').next().unwrap_or(path);
            if !name.starts_with('_') {
                files.push(TemplateFile {
                    path: Text::from(path.as_str()),
                    base_path: format!("{}/templates", source.chart),
                    scope: source.scope,
                });
            }
        }
        Ok(Self {
            set,
            parser,
            files,
            bytes: 0,
        })
    }

    /// What of the values the templates of a plan may read, besides what is known; `texts` are those that they may
    /// execute.
    pub(crate) fn read_paths(&self, plan: &Plan, known: ReadPaths, texts: &[Text]) -> ReadPaths {
        let analysis = ReadAnalysis::new(&self.set, &self.parser, known);
        analysis.run(&self.reading_charts(plan), texts)
    }

    /// The same with more texts than before.
    pub(crate) fn read_paths_of_texts(
        &self,
        plan: &Plan,
        known: ReadPaths,
        texts: &[Text],
    ) -> ReadPaths {
        let analysis = ReadAnalysis::new(&self.set, &self.parser, known);
        analysis.run_texts(&self.reading_charts(plan), texts)
    }

    /// The charts of a plan in the order of [`scopes`].
    fn reading_charts(&self, plan: &Plan) -> Vec<ReadingChart> {
        fn add(plan: &Plan, values: &[Text], charts: &mut Vec<ReadingChart>) {
            charts.push(ReadingChart {
                values: values.to_vec(),
                templates: Vec::new(),
            });
            for dependency in plan.dependencies() {
                let below = [values, &[Text::from(dependency.name())]].concat();
                add(dependency, &below, charts);
            }
        }
        let mut charts = Vec::new();
        add(plan, &[], &mut charts);
        for file in &self.files {
            if let Some(chart) = charts.get_mut(file.scope) {
                chart.templates.push(file.path.clone());
            }
        }
        charts
    }

    /// Executes all templates over these values, and hands out each file's path and text.
    pub(crate) fn render(
        &self,
        plan: &Plan,
        values: &Rc<Map>,
        input: &TemplateInput,
        rendered: &mut dyn FnMut((Text, Arc<str>)),
    ) -> Result<(), TemplateError> {
        let scopes = scopes(plan, values, input);
        let limits = Limits::default();
        let mut host = RenderHost::new(input);
        let options = Options {
            missing_key: MissingKey::Zero,
            range_over_int: input.profile == Profile::Helm4,
        };
        let mut executor = Executor::new(&self.set, &self.parser, options, &limits, &mut host)
            .with_budget(input.budget.clone());
        for file in &self.files {
            let Some(context) = scopes.get(file.scope) else {
                continue;
            };
            context.insert("Template", template_value(&file.path, &file.base_path));
            let text = executor
                .execute(&file.path, named_values(context))
                .map_err(|error| TemplateError::of(&error, input.profile))?;
            let text = clean_output(text);
            let held = text.len().saturating_mul(MEMORY_PER_OUTPUT);
            input.budget.allocate(held).map_err(|exceeded| {
                let place = file.path.as_str().to_owned();
                let message = format!("template: {place}: {}", exceeded.with_option());
                TemplateError::Stopped {
                    place,
                    message,
                    exceeded,
                }
            })?;
            rendered((file.path.clone(), Arc::from(text)));
        }
        Ok(())
    }
}

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Templates")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

/// A template's text and where it lies.
struct Source<'p> {
    content: &'p Content,
    chart: &'p str,
    scope: usize,
}

/// For each file the one after it that has the same text and so replaces everything it defines.
///
/// Many charts below one chart bring copies of the same library; reading one of them is enough.
fn twins(ordered: &[(String, Source<'_>)]) -> Vec<Option<usize>> {
    let mut last: HashMap<(&str, usize), usize> = HashMap::new();
    let mut twins = vec![None; ordered.len()];
    for (index, (path, source)) in ordered.iter().enumerate().rev() {
        let name = path.rsplit('/').next().unwrap_or(path);
        if !name.starts_with('_') {
            continue;
        }
        let twin = *last.entry((name, source.content.len())).or_insert(index);
        let is_equal = |twin: usize| ordered[twin].1.content == source.content;
        twins[index] = Some(twin).filter(|twin| *twin != index && is_equal(*twin));
    }
    twins
}

/// Finds the templates of a chart and those below it; scopes are counted parents first.
fn collect<'p>(plan: &'p Plan, scope: &mut usize, found: &mut BTreeMap<String, Source<'p>>) {
    let own = *scope;
    for dependency in plan.dependencies() {
        *scope += 1;
        collect(dependency, scope, found);
    }
    let package = plan.package();
    let is_library = package.metadata.is_library();
    for file in &package.templates {
        let name = file.name.rsplit('/').next().unwrap_or(&file.name);
        if is_library && !name.starts_with('_') {
            continue;
        }
        let source = Source {
            content: &file.content,
            chart: plan.path(),
            scope: own,
        };
        found.insert(format!("{}/{}", plan.path(), file.name), source);
    }
}

/// The functions, put together once for the process.
fn function_table() -> Arc<FunctionTable> {
    static TABLE: OnceLock<Arc<FunctionTable>> = OnceLock::new();
    Arc::clone(TABLE.get_or_init(|| Arc::new(portolan_gotmpl::helm_functions())))
}

/// Makes a release's name by a template, as `--name-template` does.
pub(crate) fn name_from_template(template: &str) -> Result<String, TemplateError> {
    let limits = Limits::default();
    let parser = TextParser::new(function_table(), limits.parse_depth);
    let mut set = TemplateSet::default();
    set.add(&parser.parse("name-template", template)?);
    let mut host = portolan_gotmpl::Seeded::new(template, 0);
    let mut executor = Executor::new(&set, &parser, Options::default(), &limits, &mut host);
    executor
        .execute("name-template", Value::Nil)
        .map_err(|error| TemplateError::of(&error, Profile::Helm3))
}

impl From<ParseError> for TemplateError {
    /// Helm shows only the last part of a message that has several.
    fn from(error: ParseError) -> Self {
        let last = error.message.rsplit(": ").next().unwrap_or_default();
        Self::Parse {
            message: last.to_owned(),
            file: error.name,
            line: error.line,
        }
    }
}

impl TemplateError {
    /// A failure in the words of a Helm.
    fn of(error: &ExecError, profile: Profile) -> Self {
        let place = error.place.as_ref();
        let place = place
            .map(portolan_gotmpl::Place::location)
            .unwrap_or_default();
        if let Some(exceeded) = error.exceeded() {
            return Self::Stopped {
                message: error.to_string(),
                place,
                exceeded,
            };
        }
        match error.authored() {
            Some(message) => Self::Authored {
                message: message.to_owned(),
                place,
            },
            None => Self::Failed {
                message: match profile {
                    Profile::Helm3 => error.to_string(),
                    Profile::Helm4 => trace::traced(error).unwrap_or_else(|| error.to_string()),
                },
                place,
            },
        }
    }
}
