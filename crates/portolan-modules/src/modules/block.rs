//! The module `block`: lines of a text file between two markers.

use std::sync::Arc;

use camino::Utf8PathBuf;

use super::file::write_confirmed;
use super::line::{AFTER, BEFORE, CREATE, PATH, missing};
use super::text_lines::{Position, TextLines};
use super::write::{Look, WriteOptions};
use crate::action::{Action, Applied, ModuleError};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::Plan;
use crate::view::View;

/// The markers of a step that names none: the book and the step tell blocks of different steps apart.
const DEFAULT_MARKER: &str = "# {mark} {book} {step}";

pub(crate) static BLOCK: ModuleDefinition = ModuleDefinition {
    name: "block",
    summary: "Keeps some lines of a text file between two markers.",
    parameters: &[
        PATH,
        ParameterDefinition {
            name: "block",
            kind: ParameterType::Text,
            is_required: true,
            summary: "The lines between the markers. An empty text removes lines and markers.",
        },
        ParameterDefinition {
            name: "marker",
            kind: ParameterType::Text,
            is_required: false,
            summary: "The text of the markers; `{mark}` becomes BEGIN and END, `{book}` and `{step}` the names of book and step (default `# {mark} {book} {step}`). Markers that are missing, indented or doubled are errors.",
        },
        AFTER,
        BEFORE,
        CREATE,
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

struct BlockAction {
    path: Utf8PathBuf,
    block: Vec<String>,
    marker: String,
    position: Position,
    create: bool,
    options: WriteOptions,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let block = parameters.text("block");
    let marker = parameters.line("marker").unwrap_or(DEFAULT_MARKER);
    if !marker.contains("{mark}") {
        parameters.fault_with(
            "marker",
            "must contain `{mark}`",
            Some(format!("as in marker: \"{DEFAULT_MARKER}\"")),
        );
    }
    let position = Position::parse(parameters);
    let create = parameters.boolean("create", false);
    let path = parameters.path("path")?;
    Some(Box::new(BlockAction {
        path,
        block: block?.lines().map(str::to_owned).collect(),
        marker: marker.to_owned(),
        position,
        create,
        options: WriteOptions {
            follow: true,
            ..WriteOptions::default()
        },
    }))
}

impl BlockAction {
    fn look(&self, view: &View<'_>) -> Result<Look, ModuleError> {
        let marks = Marks::of(&self.marker, view.host);
        if let Some(line) = self
            .block
            .iter()
            .find(|line| marks.is_mark(line.as_bytes()))
        {
            return Err(self.failed(format!("the block contains the marker `{line}` itself")));
        }
        self.options.look(view, &self.path, &|old| match old {
            Some(old) => Ok(Some(self.edit(old, &marks)?.into())),
            None if self.block.is_empty() => Ok(None),
            None if self.create => Ok(Some(Arc::from(self.edit(&[], &marks)?))),
            None => Err(missing(&self.path)),
        })
    }

    fn edit(&self, old: &[u8], marks: &Marks) -> Result<Vec<u8>, ModuleError> {
        let mut lines = TextLines::of(old);
        let found = marks.find(&lines).map_err(|reason| self.failed(reason))?;
        let at = match found {
            Some(range) => {
                let at = range.start;
                if !self.block.is_empty() {
                    let inside: Vec<&[u8]> = lines
                        .texts()
                        .take(range.end - 1)
                        .skip(range.start + 1)
                        .collect();
                    let is_same = inside
                        .iter()
                        .copied()
                        .eq(self.block.iter().map(String::as_bytes));
                    if is_same {
                        return Ok(old.to_vec());
                    }
                }
                lines.remove(range);
                at
            }
            None => lines.place(&self.position),
        };
        if !self.block.is_empty() {
            let mut texts: Vec<&[u8]> = vec![marks.begin.as_bytes()];
            texts.extend(self.block.iter().map(String::as_bytes));
            texts.push(marks.end.as_bytes());
            lines.insert(at, &texts);
        }
        Ok(lines.into_bytes())
    }

    fn failed(&self, reason: String) -> ModuleError {
        ModuleError::failed("change the block in", &self.path, reason)
            .with_hint("correct the markers in the file by hand")
    }
}

/// The two markers of a block.
struct Marks {
    begin: String,
    end: String,
}

impl Marks {
    fn of(marker: &str, host: &Host) -> Self {
        let marker = marker
            .replace("{book}", &host.book)
            .replace("{step}", &host.step);
        // Names may be absent in both.
        let mark = |word: &str| marker.replace("{mark}", word).trim_end().to_owned();
        Self {
            begin: mark("BEGIN"),
            end: mark("END"),
        }
    }

    fn is_mark(&self, line: &[u8]) -> bool {
        let line = line.trim_ascii();
        line == self.begin.as_bytes() || line == self.end.as_bytes()
    }

    /// The lines from the first marker to the second; `None` if there is neither.
    fn find(&self, lines: &TextLines) -> Result<Option<std::ops::Range<usize>>, String> {
        let begin = position(lines, &self.begin)?;
        let end = position(lines, &self.end)?;
        match (begin, end) {
            (None, None) => Ok(None),
            (Some(begin), Some(end)) if begin < end => Ok(Some(begin..end + 1)),
            (Some(_), Some(_)) => Err(format!(
                "the marker `{}` stands before `{}`",
                self.end, self.begin
            )),
            (Some(begin), None) => Err(format!(
                "line {} begins a block, but the marker `{}` is missing",
                begin + 1,
                self.end
            )),
            (None, Some(end)) => Err(format!(
                "line {} ends a block, but the marker `{}` is missing",
                end + 1,
                self.begin
            )),
        }
    }
}

/// The line of a marker; it must stand alone and once.
fn position(lines: &TextLines, mark: &str) -> Result<Option<usize>, String> {
    let mut found = None;
    for (at, text) in lines.texts().enumerate() {
        if text.trim_ascii() != mark.as_bytes() {
            continue;
        }
        if text != mark.as_bytes() {
            return Err(format!(
                "the marker `{mark}` in line {} has spaces around it",
                at + 1
            ));
        }
        if let Some(first) = found.replace(at) {
            return Err(format!(
                "the marker `{mark}` stands in line {} and in line {}",
                first + 1,
                at + 1
            ));
        }
    }
    Ok(found)
}

impl Action for BlockAction {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        Ok(match self.look(view)? {
            Look::Work(work) => work.into_plan(),
            Look::Unknown(reason) => Plan::unknown(reason),
        })
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        write_confirmed(&self.options, host, plan, self.look(&View::of(host))?)
    }
}
