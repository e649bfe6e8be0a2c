//! The syntax of `--set`: `a.b[0].c=value,d={x,y}`.
//!
//! One reader handles the five flags, which differ only in what follows the `=`. It changes the values in place and
//! keeps Helm's corner cases: what was set before an error or the end of the text stays set.

use std::sync::Arc;

use super::table::Table;
use super::tree::Tree;

/// The largest index of a list (Helm's limit).
pub const MAX_INDEX: usize = 65_536;

/// How many dots a name may have (Helm's limit).
pub const MAX_NESTING: usize = 30;

/// How many indices may follow each other, `a[0][0]…`: Helm has no such limit and overflows its stack far beyond.
const MAX_INDEX_DEPTH: usize = 100;

/// Which flag the text belongs to.
pub enum SetKind<'r> {
    /// `--set`: booleans, null and whole numbers are recognised.
    Typed,
    /// `--set-string`: every value is a text.
    Strings,
    /// `--set-file`: the value names a file, whose content is asked for.
    Files(&'r mut dyn FnMut(&str) -> Result<String, String>),
    /// `--set-json`: the value is JSON.
    Json,
    /// `--set-literal`: the value is the whole rest, commas and backslashes included.
    Literal,
}

/// Why a text could not be read, in Helm's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SetError(String);

/// Sets what the text says in a table of values.
pub fn set(values: &mut Tree, text: &str, kind: SetKind<'_>) -> Result<(), SetError> {
    let table = table_mut(values).map_err(SetError)?;
    let mut reader = Reader {
        rest: text,
        kind,
        index_depth: 0,
    };
    loop {
        match reader.key(table, 0) {
            Ok(()) => {}
            Err(Stop::End) => return Ok(()),
            Err(Stop::Failed(message)) => return Err(SetError(message)),
        }
    }
}

/// Why reading does not go on: the text is used up, or wrong.
enum Stop {
    End,
    Failed(String),
}

type Step<T> = Result<T, Stop>;

struct Reader<'t, 'r> {
    rest: &'t str,
    kind: SetKind<'r>,
    index_depth: usize,
}

impl Reader<'_, '_> {
    /// Reads one `name=value` into a table.
    fn key(&mut self, table: &mut Table, nesting: usize) -> Step<()> {
        let stops: &[char] = match self.kind {
            SetKind::Literal => &['=', '[', '.'],
            _ => &['=', '[', ',', '.'],
        };
        let (name, stop) = self.until(stops);
        let Some(stop) = stop else {
            return Err(if name.is_empty() {
                Stop::End
            } else {
                failed(format!("key {name:?} has no value"))
            });
        };
        match stop {
            '[' => self.list(table, name, nesting),
            '=' => self.assignment(table, name),
            '.' => self.nested(table, name, nesting + 1),
            _ => Err(failed(format!(
                "key {name:?} has no value (cannot end with ,)"
            ))),
        }
    }

    fn assignment(&mut self, table: &mut Table, name: String) -> Step<()> {
        let (value, stop) = match self.value() {
            Ok(value) => (value, Ok(())),
            Err(Stop::End) => (Tree::text(""), Err(Stop::End)),
            Err(failed) => return Err(failed),
        };
        put(table, name, value);
        stop
    }

    fn nested(&mut self, table: &mut Table, name: String, nesting: usize) -> Step<()> {
        if nesting > MAX_NESTING {
            return Err(failed(format!(
                "value name nested level is greater than maximum supported nested level of {MAX_NESTING}"
            )));
        }
        let mut inner = table
            .get(name.as_str())
            .cloned()
            .unwrap_or_else(Tree::empty_table);
        let entries = table_mut(&mut inner).map_err(Stop::Failed)?;
        let step = self.key(entries, nesting);
        let is_empty = entries.is_empty();
        if step.is_ok() && is_empty {
            return Err(failed(format!("key map {name:?} has no value")));
        }
        if !is_empty {
            put(table, name, inner);
        }
        step
    }

    fn list(&mut self, table: &mut Table, name: String, nesting: usize) -> Step<()> {
        let index = self.index()?;
        let mut items = match table.get(name.as_str()) {
            None => Vec::new(),
            Some(Tree::List(items)) => Vec::clone(items),
            Some(other) => return Err(conversion(other, "[]interface {}")),
        };
        let step = self.item(&mut items, index, nesting);
        put(table, name, Tree::List(Arc::new(items)));
        step
    }

    /// Reads what follows `[index]`.
    fn item(&mut self, items: &mut Vec<Tree>, index: i64, nesting: usize) -> Step<()> {
        let Ok(index) = usize::try_from(index) else {
            return Err(failed(format!("negative {index} index not allowed")));
        };
        let (text, stop) = self.until(&['[', '.', '=']);
        if !text.is_empty() {
            return Err(failed(format!(
                "unexpected data at end of array index: {text:?}"
            )));
        }
        match stop {
            None => Err(Stop::End),
            Some('=') => {
                let value = match self.value() {
                    Err(Stop::End) => Tree::text(""),
                    value => value?,
                };
                set_index(items, index, value)
            }
            Some('[') => self.item_list(items, index, nesting),
            Some(_) => self.item_table(items, index, nesting),
        }
    }

    fn item_list(&mut self, items: &mut Vec<Tree>, index: usize, nesting: usize) -> Step<()> {
        let next = self.index()?;
        self.index_depth += 1;
        if self.index_depth > MAX_INDEX_DEPTH {
            return Err(failed(format!(
                "list nested level is greater than maximum supported nested level of {MAX_INDEX_DEPTH}"
            )));
        }
        let mut inner = match items.get(index) {
            None | Some(Tree::Null) => Vec::new(),
            Some(Tree::List(inner)) => Vec::clone(inner),
            Some(other) => return Err(conversion(other, "[]interface {}")),
        };
        self.item(&mut inner, next, nesting)?;
        self.index_depth -= 1;
        set_index(items, index, Tree::List(Arc::new(inner)))
    }

    fn item_table(&mut self, items: &mut Vec<Tree>, index: usize, nesting: usize) -> Step<()> {
        let mut inner = match items.get(index) {
            Some(table @ Tree::Table(_)) => table.clone(),
            _ => Tree::empty_table(),
        };
        let step = self.key(table_mut(&mut inner).map_err(Stop::Failed)?, nesting);
        match step {
            Ok(()) => set_index(items, index, inner),
            // Helm changes a table that is in the list already, and forgets a new one.
            Err(stop) => {
                if let Some(slot) = items.get_mut(index) {
                    *slot = inner;
                }
                Err(stop)
            }
        }
    }

    /// Reads the number up to `]`.
    fn index(&mut self) -> Step<i64> {
        let (text, stop) = self.until(&[']']);
        if stop.is_none() {
            return Err(failed("error parsing index: EOF".to_owned()));
        }
        let number = text.strip_prefix('+').unwrap_or(&text).parse();
        number.map_err(|_| {
            failed(format!(
                "error parsing index: strconv.Atoi: parsing {text:?}: invalid syntax"
            ))
        })
    }

    /// Reads what follows `=`; [`Stop::End`] when nothing does.
    fn value(&mut self) -> Step<Tree> {
        match self.kind {
            SetKind::Json => return self.json(),
            SetKind::Literal => {
                return Ok(Tree::text(std::mem::take(&mut self.rest)));
            }
            _ => {}
        }
        if self.rest.is_empty() {
            return Err(Stop::End);
        }
        if let Some(rest) = self.rest.strip_prefix('{') {
            self.rest = rest;
            return self.braces();
        }
        let (text, _) = self.until(&[',']);
        self.convert(text)
    }

    /// Reads `x,y}`.
    fn braces(&mut self) -> Step<Tree> {
        let mut items = Vec::new();
        loop {
            let (text, stop) = self.until(&[',', '}']);
            let Some(stop) = stop else {
                return Err(failed("list must terminate with '}'".to_owned()));
            };
            items.push(self.convert(text)?);
            if stop == '}' {
                self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
                return Ok(Tree::List(Arc::new(items)));
            }
        }
    }

    fn json(&mut self) -> Step<Tree> {
        if self.skip_to_comma() {
            return Ok(Tree::Null);
        }
        let mut stream =
            serde_json::Deserializer::from_str(self.rest).into_iter::<serde_json::Value>();
        let value = match stream.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => return Err(failed(error.to_string())),
            None => return Ok(Tree::Null),
        };
        self.rest = self.rest.get(stream.byte_offset()..).unwrap_or_default();
        self.skip_to_comma();
        Ok(from_json(&value))
    }

    /// Skips blanks and one comma; says whether nothing else stood before the comma or the end.
    fn skip_to_comma(&mut self) -> bool {
        let trimmed = self.rest.trim_start();
        self.rest = trimmed;
        if let Some(rest) = trimmed.strip_prefix(',') {
            self.rest = rest;
            return true;
        }
        trimmed.is_empty()
    }

    fn convert(&mut self, text: String) -> Step<Tree> {
        match &mut self.kind {
            SetKind::Typed => Ok(typed(text)),
            SetKind::Files(read) => read(&text).map(Tree::text).map_err(Stop::Failed),
            SetKind::Strings | SetKind::Json | SetKind::Literal => Ok(Tree::text(text)),
        }
    }

    /// Reads up to one of the stops, which is consumed; a backslash takes the next character as it is.
    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let escapes = !matches!(self.kind, SetKind::Literal);
        let mut text = String::new();
        let mut letters = self.rest.chars();
        let mut stop = None;
        while let Some(letter) = letters.next() {
            if stops.contains(&letter) {
                stop = Some(letter);
                break;
            }
            if letter == '\\' && escapes {
                text.extend(letters.next());
            } else {
                text.push(letter);
            }
        }
        self.rest = letters.as_str();
        (text, stop)
    }
}

fn typed(text: String) -> Tree {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("true") || is("false") {
        return Tree::Bool(is("true"));
    }
    if is("null") {
        return Tree::Null;
    }
    if text == "0" {
        return Tree::Int(0);
    }
    // A leading zero may matter to whoever wrote it: such numbers stay texts.
    if !text.starts_with('0')
        && let Ok(number) = text.parse()
    {
        return Tree::Int(number);
    }
    Tree::text(text)
}

/// JSON as Go decodes it: every number a float.
pub(crate) fn from_json(value: &serde_json::Value) -> Tree {
    use serde_json::Value as Json;
    match value {
        Json::Null => Tree::Null,
        Json::Bool(value) => Tree::Bool(*value),
        Json::Number(number) => Tree::Float(number.as_f64().unwrap_or_default()),
        Json::String(text) => Tree::text(text.as_str()),
        Json::Array(items) => Tree::List(Arc::new(items.iter().map(from_json).collect())),
        Json::Object(entries) => Tree::Table(Arc::new(
            entries
                .iter()
                .map(|(key, value)| (key.as_str().into(), from_json(value)))
                .collect(),
        )),
    }
}

fn put(table: &mut Table, name: String, value: Tree) {
    if !name.is_empty() {
        table.insert(name.into(), value);
    }
}

fn set_index(items: &mut Vec<Tree>, index: usize, value: Tree) -> Step<()> {
    if index > MAX_INDEX {
        return Err(failed(format!(
            "index of {index} is greater than maximum supported index of {MAX_INDEX}"
        )));
    }
    if items.len() <= index {
        items.resize(index + 1, Tree::Null);
    }
    if let Some(slot) = items.get_mut(index) {
        *slot = value;
    }
    Ok(())
}

fn table_mut(tree: &mut Tree) -> Result<&mut Table, String> {
    match tree {
        Tree::Table(table) => Ok(Arc::make_mut(table)),
        other => Err(conversion_text(other, "map[string]interface {}")),
    }
}

fn conversion(found: &Tree, wanted: &str) -> Stop {
    failed(conversion_text(found, wanted))
}

fn conversion_text(found: &Tree, wanted: &str) -> String {
    format!(
        "unable to parse key: interface conversion: interface {{}} is {}, not {wanted}",
        found.go_type()
    )
}

fn failed(message: String) -> Stop {
    Stop::Failed(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_kind(before: &str, text: &str, kind: SetKind<'_>, expected: &str) {
        let mut values = Tree::read_table(before.as_bytes()).unwrap();
        set(&mut values, text, kind).unwrap();
        let shown = portolan_gotmpl_json(&values);
        assert_eq!(shown, expected, "{text}");
    }

    fn check(text: &str, expected: &str) {
        check_kind("", text, SetKind::Typed, expected);
    }

    fn refused(text: &str) -> String {
        let mut values = Tree::empty_table();
        set(&mut values, text, SetKind::Typed)
            .unwrap_err()
            .to_string()
    }

    fn portolan_gotmpl_json(tree: &Tree) -> String {
        match tree {
            Tree::Null => "null".into(),
            Tree::Bool(b) => b.to_string(),
            Tree::Int(i) => i.to_string(),
            Tree::Float(f) => format!("{f}f"),
            Tree::Text(t) => format!("{t:?}"),
            Tree::List(items) => {
                let items: Vec<_> = items.iter().map(portolan_gotmpl_json).collect();
                format!("[{}]", items.join(","))
            }
            Tree::Table(table) => {
                let entries: Vec<_> = table
                    .iter()
                    .map(|(k, v)| format!("{k}:{}", portolan_gotmpl_json(v)))
                    .collect();
                format!("{{{}}}", entries.join(","))
            }
        }
    }

    #[test]
    fn values_get_types() {
        check(
            "a=1,b=true,c=null,d=text",
            r#"{a:1,b:true,c:null,d:"text"}"#,
        );
        check("a=0,b=00123,c=1.5,d=-3", r#"{a:0,b:"00123",c:"1.5",d:-3}"#);
        check("a=", r#"{a:""}"#);
        check("a=,b=x", r#"{a:"",b:"x"}"#);
    }

    #[test]
    fn names_nest_and_escape() {
        check("a.b.c=1", "{a:{b:{c:1}}}");
        check(r"a\.b=1,c=x\,y", r#"{a.b:1,c:"x,y"}"#);
        check_kind("a: {b: 1}", "a.c=2", SetKind::Typed, "{a:{b:1f,c:2}}");
    }

    #[test]
    fn lists_are_made_and_extended() {
        check("a={x,2}", r#"{a:["x",2]}"#);
        check("a={}", r#"{a:[""]}"#);
        check("a[1]=x", r#"{a:[null,"x"]}"#);
        check("a[0].b=1,a[0].c=2,a[1].b=3", "{a:[{b:1,c:2},{b:3}]}");
        check("a[0][1]=x", r#"{a:[[null,"x"]]}"#);
        check_kind("a: [1, 2]", "a[0]=x", SetKind::Typed, r#"{a:["x",2f]}"#);
    }

    /// Helm forgets a new list item whose value is empty at the end of the text.
    #[test]
    fn an_empty_value_at_the_end_of_a_new_item_is_lost() {
        check("a[0].b=", "{a:[]}");
    }

    #[test]
    fn the_other_flags_differ_in_the_value_only() {
        check_kind("", "a=1,b=true", SetKind::Strings, r#"{a:"1",b:"true"}"#);
        check_kind("", "a.b=x,y={z}", SetKind::Literal, r#"{a:{b:"x,y={z}"}}"#);
        check_kind(
            "",
            r#"a={"x": [1, "y"]},b=,c=null"#,
            SetKind::Json,
            r#"{a:{x:[1f,"y"]},b:null,c:null}"#,
        );
        let mut read = |path: &str| Ok(format!("<{path}>"));
        check_kind("", "a=f.txt", SetKind::Files(&mut read), r#"{a:"<f.txt>"}"#);
    }

    #[test]
    fn errors_are_helms() {
        assert_eq!(refused("a"), "key \"a\" has no value");
        assert_eq!(
            refused("a,b=1"),
            "key \"a\" has no value (cannot end with ,)"
        );
        assert_eq!(refused("a[-1]=x"), "negative -1 index not allowed");
        assert_eq!(refused("a={x"), "list must terminate with '}'");
        assert_eq!(
            refused("a[x]=1"),
            "error parsing index: strconv.Atoi: parsing \"x\": invalid syntax"
        );
        assert_eq!(
            refused("a=1,a.b=2"),
            "unable to parse key: interface conversion: interface {} is int64, not map[string]interface {}"
        );
    }

    #[test]
    fn limits_hold() {
        assert!(refused("a[65537]=x").contains("greater than maximum supported index of 65536"));
        let deep = format!("{}=1", vec!["a"; 32].join("."));
        assert!(refused(&deep).contains("nested level of 30"));
        let many = format!("a{}=1", "[0]".repeat(100_000));
        assert!(refused(&many).contains("list nested level"));
    }
}
