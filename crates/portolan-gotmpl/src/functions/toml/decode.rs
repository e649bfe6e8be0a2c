//! TOML as values.
//!
//! ```text
//! text ──lines──▶ keys and values ──▶ tables, each remembering how it was made
//! ```

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use crate::fmt::quote;
use crate::functions::strconv::{parse_float, parse_int};
use crate::functions::time::Time;
use crate::value::{ElementType, Map, MapType, Value};

/// How deep arrays and inline tables may nest.
const MAX_NESTING: usize = 200;

/// Reads a document; the error is the library's, with the line and the last key.
pub(super) fn decode(text: &str) -> Result<Value, String> {
    let root = new_table();
    let mut decoder = Decoder {
        text,
        at: 0,
        depth: 0,
        last_key: String::new(),
        table: Rc::clone(&root),
        table_key: Vec::new(),
        root,
        defined: HashSet::new(),
        implicit: HashSet::new(),
        closed: HashSet::new(),
    };
    decoder
        .document()
        .map_err(|problem| decoder.describe(&problem))?;
    Ok(Value::Map(decoder.root))
}

fn new_table() -> Rc<Map> {
    Rc::new(Map::new(MapType::Any, BTreeMap::new()))
}

type Key = Vec<String>;
type Step<T = ()> = Result<T, Problem>;

/// What is wrong at the decoder's place.
enum Problem {
    /// The text ends too early; the library counts one line less then.
    End(String),
    Text(String),
    /// A problem that does not name the last key.
    Plain(String),
}

fn fail<T>(message: impl Into<String>) -> Step<T> {
    Err(Problem::Text(message.into()))
}

struct Decoder<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    last_key: String,
    root: Rc<Map>,
    /// The table that entries go into, and its key.
    table: Rc<Map>,
    table_key: Key,
    /// Tables and entries that have been written out, by their whole key.
    defined: HashSet<Key>,
    /// Tables that exist only because their children do.
    implicit: HashSet<Key>,
    /// Inline tables and plain arrays, which take nothing more.
    closed: HashSet<Key>,
}

impl Decoder<'_> {
    fn describe(&self, problem: &Problem) -> String {
        let line = 1 + self.text[..self.at].matches('\n').count();
        let (line, message, key) = match problem {
            Problem::End(message) => (line - 1, message, &self.last_key),
            Problem::Text(message) => (line, message, &self.last_key),
            Problem::Plain(message) => return format!("toml: line {line}: {message}"),
        };
        if key.is_empty() {
            return format!("toml: line {line}: {message}");
        }
        let key = quote(key.as_bytes(), false);
        format!("toml: line {line} (last key {key}): {message}")
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    /// Blanks, line ends and comments.
    fn skip_lines(&mut self) {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some('\n' | '\r') => self.at += 1,
                Some('#') => self.skip_comment(),
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        let end = self.rest().find('\n').unwrap_or(self.rest().len());
        self.at += end;
    }

    fn document(&mut self) -> Step {
        let forbidden = |c: char| c.is_ascii_control() && !matches!(c, '\t' | '\n' | '\r');
        if let Some(at) = self.text.find(forbidden) {
            let code = self.text.as_bytes()[at];
            self.at = at;
            return fail(format!(
                "TOML files cannot contain control characters: '0x{code:02x}'"
            ));
        }
        loop {
            self.skip_lines();
            match self.peek() {
                None => return Ok(()),
                Some('[') => self.header()?,
                Some(_) => self.entry_line()?,
            }
            self.end_of_line()?;
        }
    }

    fn end_of_line(&mut self) -> Step {
        self.skip_blanks();
        match self.peek() {
            None | Some('\n' | '#') => Ok(()),
            Some('\r') if self.rest().starts_with("\r\n") => Ok(()),
            Some(other) => fail(format!(
                "expected a top-level item to end with a newline, comment, or EOF, but got {} instead",
                rune(other)
            )),
        }
    }

    // === Tables ===

    fn header(&mut self) -> Step {
        self.at += 1;
        let array = self.eat("[");
        let key = self.header_key()?;
        if !self.eat(if array { "]]" } else { "]" }) {
            return match self.peek() {
                Some(other) => fail(format!(
                    "expected end of table array name delimiter ']', but got {} instead",
                    rune(other)
                )),
                None => Err(Problem::End("unexpected EOF".to_owned())),
            };
        }
        self.last_key = key.join(".");
        self.table = if array {
            self.array_table(&key)?
        } else {
            self.plain_table(&key)?
        };
        self.table_key = key;
        Ok(())
    }

    fn header_key(&mut self) -> Step<Key> {
        let mut key = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(']') | None => {
                    return fail("unexpected end of table name (table names cannot be empty)");
                }
                Some('.') => {
                    return fail("unexpected table separator (table names cannot be empty)");
                }
                _ => {}
            }
            key.push(self.key_part()?);
            self.skip_blanks();
            match self.peek() {
                Some('.') => self.at += 1,
                Some(']') => return Ok(key),
                Some(other) => {
                    return fail(format!(
                        "expected '.' or ']' to end table name, but got {} instead",
                        rune(other)
                    ));
                }
                None => return Err(Problem::End("unexpected EOF".to_owned())),
            }
        }
    }

    fn plain_table(&mut self, key: &Key) -> Step<Rc<Map>> {
        let parent = self.walk(&self.root.clone(), &[], &key[..key.len() - 1])?;
        let name = last(key);
        match parent.get(name) {
            None => {
                let table = new_table();
                parent.insert(name, Value::Map(Rc::clone(&table)));
                self.defined.insert(key.clone());
                Ok(table)
            }
            Some(Value::Map(table)) if self.implicit.remove(key) => {
                self.defined.insert(key.clone());
                Ok(table)
            }
            Some(_) => Err(already_defined(key)),
        }
    }

    fn array_table(&mut self, key: &Key) -> Step<Rc<Map>> {
        let parent = self.walk(&self.root.clone(), &[], &key[..key.len() - 1])?;
        let name = last(key);
        let mut items = match parent.get(name) {
            None => Vec::new(),
            Some(Value::List(list)) if !self.closed.contains(key) => list.to_vec(),
            Some(_) => {
                let key = key.join(".");
                return Err(Problem::Plain(format!(
                    "Key '{key}' was already created and cannot be used as an array."
                )));
            }
        };
        let table = new_table();
        items.push(Value::Map(Rc::clone(&table)));
        parent.insert(name, Value::typed_list(ElementType::AnyMap, items));
        // What the item before holds says nothing about this one.
        self.defined.retain(|defined| !defined.starts_with(key));
        self.implicit.retain(|implicit| !implicit.starts_with(key));
        Ok(table)
    }

    /// The table at the end of a path, made on the way where it is missing.
    fn walk(&mut self, from: &Rc<Map>, base: &[String], path: &[String]) -> Step<Rc<Map>> {
        let mut table = Rc::clone(from);
        let mut key = base.to_vec();
        for part in path {
            key.push(part.clone());
            let next = match table.get(part) {
                None => {
                    let made = new_table();
                    table.insert(part.as_str(), Value::Map(Rc::clone(&made)));
                    self.implicit.insert(key.clone());
                    made
                }
                Some(Value::Map(found)) if !self.closed.contains(&key) => found,
                Some(Value::List(list)) => match list.last() {
                    Some(Value::Map(found)) if !self.closed.contains(&key) => Rc::clone(found),
                    _ => return Err(already_defined(&key)),
                },
                Some(_) => return Err(already_defined(&key)),
            };
            table = next;
        }
        Ok(table)
    }

    // === Entries ===

    fn entry_line(&mut self) -> Step {
        let (table, base) = (Rc::clone(&self.table), self.table_key.clone());
        self.entry(&table, &base)
    }

    fn entry(&mut self, table: &Rc<Map>, base: &[String]) -> Step {
        let key = self.dotted_key()?;
        let mut whole = base.to_vec();
        whole.extend_from_slice(&key);
        self.last_key = whole.join(".");
        self.skip_blanks();
        let value = self.value(&whole)?;
        let parent = self.walk(table, base, &key[..key.len() - 1])?;
        for length in base.len() + 1..whole.len() {
            // Tables made by dotted keys take no header any more.
            let part = whole[..length].to_vec();
            self.implicit.remove(&part);
            self.defined.insert(part);
        }
        let name = last(&key);
        if parent.get(name).is_some() {
            return Err(already_defined(&whole));
        }
        parent.insert(name, value);
        self.defined.insert(whole);
        Ok(())
    }

    fn dotted_key(&mut self) -> Step<Key> {
        match self.peek() {
            Some('=') => {
                return Err(Problem::Plain(
                    "unexpected '=': key name appears blank".to_owned(),
                ));
            }
            Some('.') => {
                let message = "unexpected '.': keys cannot start with a '.'";
                return Err(Problem::Plain(message.to_owned()));
            }
            _ => {}
        }
        let mut key = Vec::new();
        loop {
            key.push(self.key_part()?);
            self.skip_blanks();
            match self.peek() {
                Some('.') => {
                    self.at += 1;
                    self.skip_blanks();
                }
                Some('=') => {
                    self.at += 1;
                    return Ok(key);
                }
                None => {
                    let message = "unexpected EOF; expected key separator '='";
                    return Err(Problem::End(message.to_owned()));
                }
                Some(other) => {
                    return fail(format!(
                        "expected '.' or '=', but got {} instead",
                        rune(other)
                    ));
                }
            }
        }
    }

    fn key_part(&mut self) -> Step<String> {
        match self.peek() {
            Some('"') => self.basic_string(),
            Some('\'') => self.literal_string(),
            _ => {
                let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                let rest = self.rest();
                let end = rest.find(|c| !bare(c)).unwrap_or(rest.len());
                let part = rest[..end].to_owned();
                if part.is_empty() {
                    return match self.peek() {
                        Some('=') | None => fail("unexpected '='"),
                        Some('.') => fail("unexpected '.'"),
                        Some(other) => fail(format!(
                            "expected '.' or '=', but got {} instead",
                            rune(other)
                        )),
                    };
                }
                self.at += end;
                Ok(part)
            }
        }
    }

    // === Values ===

    fn value(&mut self, key: &[String]) -> Step<Value> {
        match self.peek() {
            None => Err(Problem::End("unexpected EOF; expected value".to_owned())),
            Some('"') if self.rest().starts_with("\"\"\"") => {
                self.long_string("\"\"\"").map(Value::from)
            }
            Some('"') => self.basic_string().map(Value::from),
            Some('\'') if self.rest().starts_with("'''") => {
                self.long_string("'''").map(Value::from)
            }
            Some('\'') => self.literal_string().map(Value::from),
            Some('[') => self.nested(key, Self::array),
            Some('{') => self.nested(key, Self::inline_table),
            Some(_) => self.scalar(),
        }
    }

    fn nested(
        &mut self,
        key: &[String],
        read: fn(&mut Self, &[String]) -> Step<Value>,
    ) -> Step<Value> {
        if self.depth >= MAX_NESTING {
            return fail(format!("values nest more than {MAX_NESTING} deep"));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self, key)?;
        self.depth -= 1;
        self.closed.insert(key.to_vec());
        Ok(value)
    }

    fn array(&mut self, key: &[String]) -> Step<Value> {
        let mut items = Vec::new();
        loop {
            self.skip_lines();
            if self.eat("]") {
                break;
            }
            if self.peek() == Some(',') {
                return fail("unexpected comma");
            }
            items.push(self.value(key)?);
            self.skip_lines();
            if !self.eat(",") && self.peek() != Some(']') {
                let found = self.peek().map_or("end of file".to_owned(), rune);
                return fail(format!(
                    "expected a comma (',') or array terminator (']'), but got {found}"
                ));
            }
        }
        let tables = !items.is_empty() && items.iter().all(|item| matches!(item, Value::Map(_)));
        let element = if tables {
            ElementType::AnyMap
        } else {
            ElementType::Any
        };
        Ok(Value::typed_list(element, items))
    }

    fn inline_table(&mut self, key: &[String]) -> Step<Value> {
        let table = new_table();
        // Inside, keys are compared under a path that no other table can have.
        let mut base = key.to_vec();
        base.push(format!("\0{}", self.at));
        let outer = self.last_key.clone();
        self.skip_blanks();
        if self.eat("}") {
            return Ok(Value::Map(table));
        }
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(',') => return fail("unexpected comma"),
                Some('}') => return fail("trailing comma not allowed in inline tables"),
                _ => {}
            }
            self.entry(&table, &base)?;
            self.skip_blanks();
            if self.eat("}") {
                self.last_key = outer;
                return Ok(Value::Map(table));
            }
            if !self.eat(",") {
                let found = self.peek().map_or("end of file".to_owned(), rune);
                return fail(format!(
                    "expected a comma or an inline table terminator '}}', but got {found} instead"
                ));
            }
        }
    }

    /// A number, boolean or date: everything up to what can follow a value.
    fn scalar(&mut self) -> Step<Value> {
        let rest = self.rest();
        let end = rest
            .find([',', ']', '}', '#', '\n', '\r', '\t', '='])
            .unwrap_or(rest.len());
        let word = rest[..end].trim_end_matches(' ').to_owned();
        // A date and a time may have a space between them, nothing else may.
        let word = match word.split_once(' ') {
            Some((date, time))
                if is_date(date) && time.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                word
            }
            Some((first, _)) => first.to_owned(),
            None => word,
        };
        if word.is_empty() {
            let found = rest.chars().next().map(rune).unwrap_or_default();
            return fail(format!("expected value but found {found} instead"));
        }
        self.at += word.len();
        match scalar(&word) {
            Ok(value) => Ok(value),
            Err(message) => {
                self.at -= word.len();
                Err(Problem::Text(message))
            }
        }
    }

    // === Strings ===

    fn basic_string(&mut self) -> Step<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            match self.peek() {
                None => return Err(Problem::End("unexpected EOF; expected '\"'".to_owned())),
                Some('"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some('\n') => return fail("strings cannot contain newlines"),
                Some('\\') => out.push(self.escape()?),
                Some(other) => {
                    self.at += other.len_utf8();
                    out.push(other);
                }
            }
        }
    }

    fn literal_string(&mut self) -> Step<String> {
        self.at += 1;
        let rest = self.rest();
        match rest.find(['\'', '\n']) {
            Some(end) if rest[end..].starts_with('\'') => {
                let text = rest[..end].to_owned();
                self.at += end + 1;
                Ok(text)
            }
            Some(_) => fail("strings cannot contain newlines"),
            None => Err(Problem::End("unexpected EOF; expected \"'\"".to_owned())),
        }
    }

    /// A string between three quotes; the first line end is dropped, and up to two quotes may stand before the end.
    fn long_string(&mut self, quotes: &str) -> Step<String> {
        self.at += quotes.len();
        if !self.eat("\n") {
            self.eat("\r\n");
        }
        let mut out = String::new();
        loop {
            if self.rest().starts_with(quotes) {
                let extra = self.rest()[3..]
                    .chars()
                    .take(2)
                    .take_while(|c| quotes.starts_with(*c))
                    .count();
                out.push_str(&quotes[..extra]);
                self.at += 3 + extra;
                return Ok(out);
            }
            match self.peek() {
                None => {
                    let shown = if quotes == "'''" {
                        "\"'''\""
                    } else {
                        "'\"\"\"'"
                    };
                    return Err(Problem::End(format!("unexpected EOF; expected {shown}")));
                }
                Some('\\') if quotes != "'''" && self.skips_line_end() => {}
                Some('\\') if quotes != "'''" => out.push(self.escape()?),
                Some('\r') if self.rest().starts_with("\r\n") => self.at += 1,
                Some(other) => {
                    self.at += other.len_utf8();
                    out.push(other);
                }
            }
        }
    }

    /// A backslash at the end of a line takes all white space after it away.
    fn skips_line_end(&mut self) -> bool {
        let after = self.rest()[1..].trim_start_matches([' ', '\t', '\r']);
        if !after.starts_with('\n') {
            return false;
        }
        let trimmed = after.trim_start_matches([' ', '\t', '\r', '\n']);
        self.at = self.text.len() - trimmed.len();
        true
    }

    fn escape(&mut self) -> Step<char> {
        let letter = self.rest()[1..].chars().next().unwrap_or('\0');
        let simple = match letter {
            'b' => '\x08',
            't' => '\t',
            'n' => '\n',
            'f' => '\x0c',
            'r' => '\r',
            '"' => '"',
            '\\' => '\\',
            'u' => return self.unicode_escape(4, "four", 'u'),
            'U' => return self.unicode_escape(8, "eight", 'U'),
            _ => {
                return fail(format!(
                    "invalid escape character {}; only the following escape characters are allowed: \\b, \\t, \\n, \\f, \\r, \\\", \\\\, \\uXXXX, and \\UXXXXXXXX",
                    rune(letter)
                ));
            }
        };
        self.at += 2;
        Ok(simple)
    }

    fn unicode_escape(&mut self, count: usize, word: &str, letter: char) -> Step<char> {
        let digits: String = self.rest()[2..].chars().take(count).collect();
        let valid = digits.len() == count && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !valid {
            let shown = quote(digits.as_bytes(), false);
            return fail(format!(
                "expected {word} hexadecimal digits after '\\{letter}', but got {shown} instead"
            ));
        }
        self.at += 2 + count;
        let code = u32::from_str_radix(&digits, 16).unwrap_or(u32::MAX);
        match char::from_u32(code) {
            Some(character) => Ok(character),
            None => fail(format!(
                "Escaped character '\\u{digits}' is not valid UTF-8."
            )),
        }
    }
}

fn last(key: &[String]) -> &str {
    key.last().map_or("", String::as_str)
}

fn already_defined(key: &[String]) -> Problem {
    let visible: Vec<&str> = key
        .iter()
        .map(String::as_str)
        .filter(|part| !part.starts_with('\0'))
        .collect();
    Problem::Plain(format!(
        "Key '{}' has already been defined.",
        visible.join(".")
    ))
}

fn rune(character: char) -> String {
    crate::fmt::quote_rune(character, false)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && Time::parse("2006-01-02", text).is_ok()
}

fn scalar(word: &str) -> Result<Value, String> {
    match word {
        "true" => return Ok(true.into()),
        "false" => return Ok(false.into()),
        "nan" | "+nan" | "-nan" => return Ok(Value::float(f64::NAN)),
        "inf" | "+inf" => return Ok(Value::float(f64::INFINITY)),
        "-inf" => return Ok(Value::float(f64::NEG_INFINITY)),
        _ => {}
    }
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        if unsigned.starts_with('.') {
            return Err("floats must start with a digit, not '.'".to_owned());
        }
        let shown = match word.chars().next() {
            Some(first) if !first.is_ascii_alphabetic() => rune(first),
            _ => quote(word.as_bytes(), false),
        };
        return Err(format!("expected value but found {shown} instead"));
    }
    if let Some(date) = date(word) {
        return Ok(date);
    }
    let prefixed = ["0x", "0o", "0b"]
        .iter()
        .any(|prefix| unsigned.starts_with(prefix));
    if !prefixed && unsigned.contains(['.', 'e', 'E']) {
        return float(word, unsigned);
    }
    integer(word, unsigned, prefixed)
}

fn integer(word: &str, unsigned: &str, prefixed: bool) -> Result<Value, String> {
    let shown = || quote(word.as_bytes(), false);
    let digits = if prefixed { &unsigned[2..] } else { unsigned };
    if digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") {
        return Err(format!(
            "Invalid integer {}: underscores must be surrounded by digits",
            shown()
        ));
    }
    if !prefixed && unsigned.len() > 1 && unsigned.starts_with('0') {
        return Err(format!(
            "Invalid integer {}: cannot have leading zeroes",
            shown()
        ));
    }
    let plain = word.replace('_', "");
    let radix = match unsigned.get(..2) {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => 10,
    };
    let valid = !digits.is_empty() && digits.chars().all(|c| c == '_' || c.is_digit(radix));
    if !valid {
        let wrong = digits
            .chars()
            .find(|c| !c.is_digit(radix) && *c != '_')
            .unwrap_or(' ');
        return Err(format!(
            "expected a top-level item to end with a newline, comment, or EOF, but got {} instead",
            rune(wrong)
        ));
    }
    match parse_int(&plain, 0) {
        Some(value) => Ok(Value::int64(value)),
        None => Err(format!("{plain} is out of range for int64")),
    }
}

fn float(word: &str, unsigned: &str) -> Result<Value, String> {
    let shown = || quote(word.as_bytes(), false);
    let whole = unsigned.split(['.', 'e', 'E']).next().unwrap_or_default();
    if whole.len() > 1 && whole.starts_with('0') {
        return Err(format!(
            "Invalid float {}: cannot have leading zeroes",
            shown()
        ));
    }
    let fraction = unsigned.split_once('.').map(|(_, fraction)| fraction);
    if fraction.is_some_and(|fraction| !fraction.starts_with(|c: char| c.is_ascii_digit())) {
        return Err(format!(
            "Invalid float {}: '.' must be followed by one or more digits",
            shown()
        ));
    }
    match parse_float(&word.replace('_', "")) {
        Some(value) => Ok(Value::float(value)),
        None => Err(format!("Invalid float value: {}", shown())),
    }
}

/// Dates and times of every form; those without a zone are taken to be in UTC.
fn date(word: &str) -> Option<Value> {
    let looks_like_one =
        word.as_bytes().get(4) == Some(&b'-') || word.as_bytes().get(2) == Some(&b':');
    if !looks_like_one {
        return None;
    }
    let word = word.replace(['t', ' '], "T").replace('z', "Z");
    let layouts = [
        "2006-01-02T15:04:05Z07:00",
        "2006-01-02T15:04:05",
        "2006-01-02",
        "15:04:05",
    ];
    let time = layouts
        .iter()
        .find_map(|layout| Time::parse(layout, &word).ok())?;
    Some(Value::object(time))
}
