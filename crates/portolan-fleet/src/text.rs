//! Text parameters and template files, rendered with minijinja.
//!
//! A text is rendered once and its result is never rendered again, so a value that contains `{{` stays as it is. A text
//! that is exactly one `{{ … }}` keeps the type of its value. Names that do not exist are errors.

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, LazyLock};

use camino::Utf8Path;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use portolan_modules::{BookFiles, BookRepository};
use regex::Regex;
use serde_json::{Map, Value};

use crate::book::beside;

/// Steps that one rendering may take; a loop over ten thousand items with ten actions each takes a tenth.
pub const MAX_FUEL: u64 = 2_000_000;

/// The largest rendered text, in bytes.
pub const MAX_TEXT_BYTES: usize = 16 << 20;

/// How deep templates may include each other.
const MAX_RECURSION: usize = 50;

/// Names that templates have without being given them.
const GLOBALS: &[&str] = &["range", "dict", "debug", "namespace", "lipsum"];

/// Renders the texts of one book.
pub struct TextRenderer {
    environment: Environment<'static>,
}

/// Why a text cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TextError {
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// The template file, if the text is not a parameter.
    pub file: Option<String>,
    /// The line in it, from 1; 0 if it is not known.
    pub line: u32,
}

impl TextRenderer {
    /// Renders texts that may include files of the book.
    pub fn new(files: Arc<dyn BookFiles>) -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        // As Ansible's: a block takes its line break with it, and files end as they were written.
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .keep_trailing_newline(true)
            .build();
        if let Ok(syntax) = syntax {
            environment.set_syntax(syntax);
        }
        environment.set_fuel(Some(MAX_FUEL));
        environment.set_recursion_limit(MAX_RECURSION);
        let inner = Arc::clone(&files);
        environment.set_path_join_callback(move |name, parent| {
            inner_template(&*inner, name, parent).map_or(Cow::Borrowed(name), Cow::Owned)
        });
        environment.set_loader(move |name| {
            let read = files.read(Utf8Path::new(name));
            let unreadable = |why: String| minijinja::Error::new(ErrorKind::InvalidOperation, why);
            let bytes = read.map_err(|error| unreadable(error.to_string()))?;
            let text = String::from_utf8(bytes.to_vec());
            text.map(Some)
                .map_err(|_| unreadable(format!("`{name}` is not UTF-8")))
        });
        Self { environment }
    }

    /// Renders every text in a value. Keys of maps stay as they are.
    ///
    /// # Errors
    /// When a text cannot be rendered.
    pub fn value(&self, value: &Value, scope: &minijinja::Value) -> Result<Value, TextError> {
        Ok(match value {
            Value::String(text) => self.text(text, scope)?,
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value(item, scope));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Object(map) => Value::Object(self.map(map, scope)?),
            other => other.clone(),
        })
    }

    /// Renders every text in the values of a map.
    ///
    /// # Errors
    /// When a text cannot be rendered.
    pub fn map(
        &self,
        map: &Map<String, Value>,
        scope: &minijinja::Value,
    ) -> Result<Map<String, Value>, TextError> {
        let rendered = map
            .iter()
            .map(|(key, value)| Ok((key.clone(), self.value(value, scope)?)));
        rendered.collect()
    }

    /// Renders a text. One that is exactly one `{{ … }}` gives its value, any other a text.
    ///
    /// # Errors
    /// When it cannot be rendered.
    pub fn text(&self, text: &str, scope: &minijinja::Value) -> Result<Value, TextError> {
        if !is_template(text) {
            return Ok(Value::from(text));
        }
        if let Some(expression) = single_expression(text)
            && let Ok(compiled) = self.environment.compile_expression(expression)
        {
            let value = compiled
                .eval(scope.clone())
                .map_err(|error| explained(&error))?;
            if value.is_undefined() {
                return Err(TextError {
                    message: format!("`{}` is not set", expression.trim()),
                    file: None,
                    line: 0,
                });
            }
            return serde_json::to_value(&value).map_err(|error| TextError {
                message: error.to_string(),
                file: None,
                line: 0,
            });
        }
        let template = self.environment.template_from_str(text);
        let template = template.map_err(|error| explained(&error))?;
        Self::bounded(&template, scope).map(Value::from)
    }

    /// Renders a template file of the book.
    ///
    /// # Errors
    /// When it cannot be read or rendered.
    pub fn file(&self, path: &str, scope: &minijinja::Value) -> Result<String, TextError> {
        let template = self.environment.get_template(path);
        let template = template.map_err(|error| explained(&error))?;
        Self::bounded(&template, scope)
    }

    /// The names that a text takes from its scope, as in `inputs.version`.
    ///
    /// # Errors
    /// When it is not a template.
    pub fn names_in_text(&self, text: &str) -> Result<Vec<String>, TextError> {
        if !is_template(text) {
            return Ok(Vec::new());
        }
        let template = self.environment.template_from_str(text);
        let template = template.map_err(|error| explained(&error))?;
        Ok(names_of(&template))
    }

    /// The names that a template file takes from its scope.
    ///
    /// # Errors
    /// When it cannot be read, or is not a template.
    pub fn names_in_file(&self, path: &str) -> Result<Vec<String>, TextError> {
        let template = self.environment.get_template(path);
        let template = template.map_err(|error| explained(&error))?;
        Ok(names_of(&template))
    }

    fn bounded(
        template: &minijinja::Template<'_, '_>,
        scope: &minijinja::Value,
    ) -> Result<String, TextError> {
        let mut out = Bounded(Vec::new());
        let rendered = template.render_captured_to(scope.clone(), &mut out);
        rendered.map_err(|error| explained(&error))?;
        String::from_utf8(out.0).map_err(|error| TextError {
            message: error.to_string(),
            file: None,
            line: 0,
        })
    }
}

/// Values as templates see them.
pub fn scope_of(values: &Map<String, Value>) -> minijinja::Value {
    minijinja::Value::from(Serde(values))
}

/// Whether a text has anything to render.
pub(crate) fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}

/// Whether a value has anything to render in it.
pub(crate) fn has_template(value: &Value) -> bool {
    match value {
        Value::String(text) => is_template(text),
        Value::Array(items) => items.iter().any(has_template),
        Value::Object(map) => map.values().any(has_template),
        _ => false,
    }
}

/// The literal names of steps that a text asks the results of, as in `steps['package']`.
pub(crate) fn steps_in_text(text: &str) -> Vec<String> {
    static STEPS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r#"\b(?:steps\s*\[|results\s*\()\s*(?:'([^']*)'|"([^"]*)")"#).ok()
    });
    let Some(pattern) = STEPS.as_ref().filter(|_| is_template(text)) else {
        return Vec::new();
    };
    let found = pattern.captures_iter(text);
    found
        .filter_map(|found| found.get(1).or_else(|| found.get(2)))
        .map(|name| name.as_str().to_owned())
        .collect()
}

/// The literal names of templates that a template includes, imports or extends.
pub(crate) fn templates_in_text(text: &str) -> Vec<String> {
    static NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r#"\{%[-+]?\s*(?:include|import|from|extends)\s+(?:'([^']*)'|"([^"]*)")(\s+ignore\s+missing)?"#,
        )
        .ok()
    });
    let Some(pattern) = NAMES.as_ref() else {
        return Vec::new();
    };
    let found = pattern.captures_iter(text);
    found
        .filter(|found| found.get(3).is_none())
        .filter_map(|found| found.get(1).or_else(|| found.get(2)))
        .map(|name| name.as_str().to_owned())
        .collect()
}

/// The path of a template that another one names. `None` if that is its name, as in the book's own repository, where names begin
/// beside the first book. In a repository that a book was included from, it is the nearest one: beside the template that names
/// it, or in a directory above, up to the root of that repository.
pub(crate) fn inner_template(files: &dyn BookFiles, name: &str, parent: &str) -> Option<String> {
    let (repository, inside) = BookRepository::split(Utf8Path::new(parent))?;
    let mut paths = inside.ancestors().skip(1).map(|above| {
        let near = repository.join(above).join("template");
        beside(near.as_str(), name)
    });
    let found = paths.find(|path| path.starts_with(&repository) && files.read(path).is_ok());
    let found = found.unwrap_or_else(|| repository.join(name.trim_start_matches(['/', '.'])));
    Some(found.into_string())
}

/// What is between the braces of a text that is exactly one `{{ … }}`.
fn single_expression(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    Some(inner.strip_suffix('-').unwrap_or(inner))
}

fn names_of(template: &minijinja::Template<'_, '_>) -> Vec<String> {
    let names = template.undeclared_variables(true).into_iter();
    let mut names: Vec<String> = names
        .filter(|name| !GLOBALS.contains(&name.split('.').next().unwrap_or_default()))
        .collect();
    names.sort();
    names
}

/// An error of the library in one sentence, with its causes and without the values in scope.
fn explained(error: &minijinja::Error) -> TextError {
    let mut message = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    if error.kind() == ErrorKind::OutOfFuel {
        message = format!("it takes more than {MAX_FUEL} steps to render");
    }
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        message = format!("{message}: {inner}");
        cause = inner.source();
    }
    let file = error.name().filter(|name| !name.starts_with('<'));
    TextError {
        message,
        file: file.map(str::to_owned),
        line: error
            .line()
            .and_then(|line| u32::try_from(line).ok())
            .unwrap_or_default(),
    }
}

/// Refuses to grow beyond [`MAX_TEXT_BYTES`].
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_TEXT_BYTES {
            let why = format!("the text is larger than {MAX_TEXT_BYTES} bytes");
            return Err(io::Error::other(why));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::book_files::MemoryFiles;

    fn render(text: &str) -> Result<Value, String> {
        let files = MemoryFiles::of([
            (
                "t.j2",
                "{% for n in [1, 2] %}\n{{ n }}\n{% endfor %}\nend\n",
            ),
            ("loop.j2", "{% include 'loop.j2' %}"),
        ]);
        let renderer = TextRenderer::new(Arc::new(files));
        let Value::Object(values) = json!({
            "inputs": {"n": 3, "list": [1, "a"], "curly": "{{ inputs.n }}", "yes": true}
        }) else {
            return Err("no map".to_owned());
        };
        let rendered = renderer.text(text, &scope_of(&values));
        rendered.map_err(|error| error.message)
    }

    #[test]
    fn a_text_of_one_expression_keeps_its_type() {
        assert_eq!(render("{{ inputs.n }}"), Ok(json!(3)));
        assert_eq!(render("{{ inputs.list }}"), Ok(json!([1, "a"])));
        assert_eq!(render("{{ inputs.yes }}"), Ok(json!(true)));
        assert_eq!(render("n{{ inputs.n }}"), Ok(json!("n3")));
        assert_eq!(render("{{ inputs.n }}{{ inputs.n }}"), Ok(json!("33")));
        assert_eq!(render("plain"), Ok(json!("plain")));
    }

    #[test]
    fn what_was_rendered_is_not_rendered_again() {
        assert_eq!(render("{{ inputs.curly }}"), Ok(json!("{{ inputs.n }}")));
        assert_eq!(
            render("x {{ inputs.curly }}"),
            Ok(json!("x {{ inputs.n }}"))
        );
    }

    #[test]
    fn a_name_that_does_not_exist_is_an_error() {
        for text in [
            "{{ inputs.m }}",
            "a {{ inputs.m }}",
            "{{ nothing }}",
            "{{ inputs.m.o }}",
        ] {
            assert!(render(text).is_err(), "{text}");
        }
    }

    #[test]
    fn blocks_are_trimmed_and_the_final_newline_stays() {
        assert_eq!(render("{% include 't.j2' %}"), Ok(json!("1\n2\nend\n")));
    }

    #[test]
    fn endless_templates_end() {
        let fuel = render(
            "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
        );
        assert!(fuel.is_err_and(|why| why.contains("steps to render")));
        assert!(render("{% include 'loop.j2' %}").is_err());
        let large = render("{% set a = 'x' * 9999999 %}{{ a }}{{ a }}");
        assert!(large.is_err_and(|why| why.contains("larger than")));
    }
}
