//! Templates by name, collected from many texts.

use std::collections::HashMap;
use std::sync::Arc;

use portolan_yaml::Text;

use crate::error::ParseError;
use crate::functions::FunctionTable;
use crate::options::CommentLines;
use crate::parse::lexer::Delimiters;
use crate::parse::parse;
use crate::program::{Program, Source};

/// The templates of one text: itself and what it defines. Cheap to clone, shared by threads.
#[derive(Clone)]
pub struct ParsedText {
    /// The text itself comes last.
    pub(crate) programs: Arc<[Arc<Program>]>,
}

/// Reads texts: knows the functions, the delimiters and how deep a text may nest.
#[derive(Clone)]
pub struct TextParser {
    functions: Arc<FunctionTable>,
    delims: Arc<Delimiters>,
    max_depth: usize,
    comment_lines: CommentLines,
}

/// Templates that can call each other. Cheap to clone, shared by threads.
#[derive(Clone, Default)]
pub struct TemplateSet {
    programs: HashMap<Text, Arc<Program>>,
}

// === impl TextParser ===

impl TextParser {
    /// A parser for texts that call these functions.
    pub fn new(functions: Arc<FunctionTable>, max_depth: usize) -> Self {
        Self {
            functions,
            delims: Arc::default(),
            max_depth,
            comment_lines: CommentLines::default(),
        }
    }

    /// Counts the lines of comments in another way when it tells where a mistake is.
    #[must_use]
    pub fn with_comment_lines(mut self, comment_lines: CommentLines) -> Self {
        self.comment_lines = comment_lines;
        self
    }

    /// Uses other delimiters than `{{` and `}}`; an empty one keeps the default.
    #[must_use]
    pub fn with_delimiters(mut self, left: &str, right: &str) -> Self {
        let delims = Arc::make_mut(&mut self.delims);
        if !left.is_empty() {
            left.clone_into(&mut delims.left);
        }
        if !right.is_empty() {
            right.clone_into(&mut delims.right);
        }
        self
    }

    /// Reads a text.
    pub fn parse(&self, name: &str, text: &str) -> Result<ParsedText, ParseError> {
        self.parse_shared(name, text.into())
    }

    /// Reads a text that is shared already: what the programs keep of it is a part of it.
    pub fn parse_shared(&self, name: &str, text: Arc<str>) -> Result<ParsedText, ParseError> {
        let source = Arc::new(Source {
            name: name.to_owned(),
            text,
            delims: Arc::clone(&self.delims),
        });
        let programs = parse(&source, &self.functions, self.max_depth, self.comment_lines)?.into();
        Ok(ParsedText { programs })
    }

    /// Whether a text has no action at all: it is its own output.
    pub(crate) fn is_plain(&self, text: &str) -> bool {
        self.delims.find_left(text).is_none()
    }
}

// === impl ParsedText ===

impl ParsedText {
    /// The names of the templates that the text defines, its own included.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().map(|program| program.name.as_str())
    }

    /// The text itself, without what it defines, as if it stood in a file of another name.
    #[must_use]
    pub fn renamed(&self, name: &str) -> Self {
        let renamed = self.main().map(|main| {
            let source = Source {
                name: name.to_owned(),
                text: Arc::clone(&main.source.text),
                delims: Arc::clone(&main.source.delims),
            };
            Arc::new(Program {
                name: name.into(),
                source: Arc::new(source),
                ..Program::clone(main)
            })
        });
        Self {
            programs: renamed.into_iter().collect(),
        }
    }

    pub(crate) fn main(&self) -> Option<&Arc<Program>> {
        self.programs.last()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Program>> {
        self.programs
            .iter()
            .find(|program| program.name.as_str() == name)
    }
}

// === impl TemplateSet ===

impl TemplateSet {
    /// Adds a text's templates, in place of those of the same name; one that is only space replaces none.
    pub fn add(&mut self, text: &ParsedText) {
        for program in text.programs.iter() {
            if !program.blank || !self.programs.contains_key(program.name.as_str()) {
                self.programs
                    .insert(program.name.clone(), Arc::clone(program));
            }
        }
    }

    /// Whether there is a template of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.programs.contains_key(name)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Program>> {
        self.programs.get(name)
    }

    /// All templates, by name.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &Arc<Program>> {
        let mut programs: Vec<_> = self.programs.iter().collect();
        programs.sort_by_key(|(name, _)| *name);
        programs.into_iter().map(|(_, program)| program)
    }
}
