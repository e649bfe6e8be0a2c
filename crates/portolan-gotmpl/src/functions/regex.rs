//! Regular expressions: Go's syntax checked and translated by portolan-go, matched by the `regex` crate.
//!
//! Both engines find the same matches (leftmost, first alternative), in linear time. For an ASCII text, the
//! expression is compiled for ASCII only, which is many times cheaper and finds the same matches.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use portolan_go::regexp::{SyntaxError, translate};
use regex::bytes::{Match, Regex, RegexBuilder};

use crate::fmt::quote;
use crate::fmt::raw::{first_mark, is_marked};
use crate::function::{Args, Ctx, FuncError};
use crate::functions::strings::{BYTES_PER_TEXT, STEPS_PER_TEXT};
use crate::limits::Limits;
use crate::value::{ElementType, Value};

type Answer = Result<Value, FuncError>;

/// How many compiled expressions a thread keeps; charts use a few, in loops.
const CACHE_SIZE: usize = 64;

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

/// Compiled expressions by their text, those for ASCII apart.
#[derive(Default)]
struct Cache {
    any: HashMap<String, Rc<Regex>>,
    ascii: HashMap<String, Rc<Regex>>,
}

impl Cache {
    fn kept(&mut self, ascii: bool) -> &mut HashMap<String, Rc<Regex>> {
        if ascii {
            &mut self.ascii
        } else {
            &mut self.any
        }
    }
}

/// Compiles an expression to be matched with a text; the error is Go's.
fn compile(ctx: &Ctx<'_>, pattern: &str, text: &[u8]) -> Result<Rc<Regex>, FuncError> {
    let ascii = text.is_ascii() && is_ascii_only(pattern);
    if let Some(found) = CACHE.with_borrow_mut(|cache| cache.kept(ascii).get(pattern).cloned()) {
        return Ok(found);
    }
    let fail = |reason: &str| FuncError::new(format!("error parsing regexp: {reason}"));
    ctx.step(compile_steps(pattern, ascii))?;
    let translated = match first_mark(pattern) {
        Some(at) => Err(SyntaxError::invalid_utf8(&pattern[at..])),
        None => translate(pattern),
    };
    let translated = translated.map_err(|error| fail(&error.to_string()))?;
    let build = |unicode| {
        RegexBuilder::new(&translated)
            .unicode(unicode)
            .size_limit(ctx.limits.regex_bytes)
            .dfa_size_limit(ctx.limits.regex_bytes)
            .build()
    };
    let regex = build(!ascii)
        .or_else(|_| build(true))
        .map_err(|_| fail(&format!("expression too large: `{pattern}`")))?;
    let regex = Rc::new(regex);
    CACHE.with_borrow_mut(|cache| {
        let kept = cache.kept(ascii);
        if kept.len() >= CACHE_SIZE {
            kept.clear();
        }
        kept.insert(pattern.to_owned(), Rc::clone(&regex));
    });
    Ok(regex)
}

/// What compiling an expression costs, roughly: repetitions are written out, and classes beyond ASCII are large.
fn compile_steps(pattern: &str, ascii: bool) -> u64 {
    /// The largest expression that compiles at all takes about a fifth of a second.
    const LARGEST: u64 = 20_000_000;
    let each = if ascii { 16 } else { 200 };
    let size = expanded_size(pattern).saturating_mul(each);
    size.saturating_add(2_000).min(LARGEST)
}

/// How long an expression is at most once its counted repetitions are written out.
fn expanded_size(pattern: &str) -> u64 {
    let mut size = pattern.len() as u64;
    for counted in pattern.split('{').skip(1) {
        let count = counted.split('}').next().unwrap_or_default();
        let largest = count.split(',').filter_map(|text| text.trim().parse().ok());
        size = size.saturating_mul(largest.max().unwrap_or(1_u64).max(1));
    }
    size
}

/// Charges one search through a text: the automaton of a large expression is slow where its states do not fit.
fn check_search(ctx: &Ctx<'_>, pattern: &[u8], text: &[u8]) -> Result<(), FuncError> {
    /// States that are looked at together.
    const SIZE_PER_STEP: u64 = 256;
    let states = expanded_size(&String::from_utf8_lossy(pattern)) / SIZE_PER_STEP;
    // Few expressions are as slow as their size allows.
    let each = states.min(64) + 1;
    ctx.step((text.len() as u64).saturating_mul(each) / BYTES_PER_STEP)
}

/// Charges what one more match may have cost: a search can look at all that is left to find a short one.
fn check_match(ctx: &Ctx<'_>, left: usize) -> Result<(), FuncError> {
    ctx.step(STEPS_PER_TEXT + left as u64 / BYTES_PER_STEP)
}

/// Bytes that are searched in one step.
const BYTES_PER_STEP: u64 = 16;

/// An expression of Go's, for those who match texts outside templates.
#[derive(Debug, Clone)]
pub struct GoRegex {
    pattern: String,
    regex: Regex,
}

impl GoRegex {
    /// Compiles an expression; the error is Go's.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let fail = |reason: &str| format!("error parsing regexp: {reason}");
        let translated = match first_mark(pattern) {
            Some(at) => Err(SyntaxError::invalid_utf8(&pattern[at..])),
            None => translate(pattern),
        };
        let translated = translated.map_err(|error| fail(&error.to_string()))?;
        let limit = Limits::default().regex_bytes;
        let regex = RegexBuilder::new(&translated)
            .size_limit(limit)
            .dfa_size_limit(limit)
            .build()
            .map_err(|_| fail(&format!("expression too large: `{pattern}`")))?;
        Ok(Self {
            pattern: pattern.to_owned(),
            regex,
        })
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Whether it matches any part of a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text.as_bytes())
    }
}

/// Whether an expression names no character beyond ASCII, of which some are other cases of ASCII letters.
fn is_ascii_only(pattern: &str) -> bool {
    pattern.is_ascii()
        && !["\\x", "\\p", "\\P"]
            .iter()
            .any(|escape| pattern.contains(escape))
}

/// Compiles an expression as `regexp.MustCompile` does, whose panic names it.
fn must_compile(ctx: &Ctx<'_>, pattern: &str, text: &[u8]) -> Result<Rc<Regex>, FuncError> {
    compile(ctx, pattern, text).map_err(|error| {
        let raw = !is_marked(pattern)
            && !pattern.contains(['`', '\u{7f}', '\u{feff}'])
            && pattern.chars().all(|c| c >= ' ' || c == '\t');
        let shown = if raw {
            format!("`{pattern}`")
        } else {
            quote(pattern.as_bytes(), false)
        };
        FuncError::new(format!("regexp: Compile({shown}): {error}"))
    })
}

type Compile = fn(&Ctx<'_>, &str, &[u8]) -> Result<Rc<Regex>, FuncError>;

pub(super) fn regex_match(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    check_search(ctx, args.bytes(0), args.bytes(1))?;
    let regex = compile(ctx, &args.str(0), args.bytes(1));
    if let Err(error) = &regex
        && error.exceeded.is_some()
    {
        return Err(error.clone());
    }
    Ok(regex
        .is_ok_and(|regex| regex.is_match(args.bytes(1)))
        .into())
}

pub(super) fn must_regex_match(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    check_search(ctx, args.bytes(0), args.bytes(1))?;
    Ok(compile(ctx, &args.str(0), args.bytes(1))?
        .is_match(args.bytes(1))
        .into())
}

pub(super) fn regex_find(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    find(ctx, args, must_compile)
}

pub(super) fn must_regex_find(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    find(ctx, args, compile)
}

fn find(ctx: &Ctx<'_>, args: Args<'_>, compile: Compile) -> Answer {
    check_search(ctx, args.bytes(0), args.bytes(1))?;
    let regex = compile(ctx, &args.str(0), args.bytes(1))?;
    let found = regex.find(args.bytes(1)).map(|found| found.as_bytes());
    Ok(Value::str_from_bytes(found.unwrap_or_default()))
}

pub(super) fn regex_find_all(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    find_all(ctx, args, must_compile)
}

pub(super) fn must_regex_find_all(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    find_all(ctx, args, compile)
}

fn find_all(ctx: &Ctx<'_>, args: Args<'_>, compile: Compile) -> Answer {
    check_search(ctx, args.bytes(0), args.bytes(1))?;
    let regex = compile(ctx, &args.str(0), args.bytes(1))?;
    let limit = usize::try_from(args.int(2)).unwrap_or(usize::MAX);
    let text = args.bytes(1);
    let mut parts = Parts::new(ctx);
    for found in matches(&regex, text).take(limit) {
        check_match(ctx, text.len() - found.start())?;
        parts.push(found.as_bytes())?;
    }
    Ok(parts.into_strings())
}

/// Texts that are cut out of another one, charged one by one.
struct Parts<'c, 'h> {
    ctx: &'c Ctx<'h>,
    parts: Vec<Value>,
}

impl<'c, 'h> Parts<'c, 'h> {
    fn new(ctx: &'c Ctx<'h>) -> Self {
        Self {
            ctx,
            parts: Vec::new(),
        }
    }

    fn push(&mut self, part: &[u8]) -> Result<(), FuncError> {
        let count = self.parts.len() + 1;
        self.ctx.meter.check_value(count * size_of::<Value>())?;
        self.ctx.allocate(part.len() + BYTES_PER_TEXT)?;
        self.parts.push(Value::str_from_bytes(part));
        Ok(())
    }

    /// A `[]string`, which Go does not make at all when it would be empty.
    fn into_strings(self) -> Value {
        if self.parts.is_empty() {
            return Value::nil_list(ElementType::Str);
        }
        Value::typed_list(ElementType::Str, self.parts)
    }
}

/// All matches from left to right.
fn matches<'t>(regex: &Regex, text: &'t [u8]) -> impl Iterator<Item = Match<'t>> {
    regex
        .find_iter(text)
        .filter(move |found| is_whole(text, found))
}

/// Whether a match is not one of nothing inside a character, which Go does not look for.
fn is_whole(text: &[u8], found: &Match<'_>) -> bool {
    let inside = text
        .get(found.start())
        .is_some_and(|byte| byte & 0xc0 == 0x80);
    !(found.is_empty() && inside)
}

pub(super) fn regex_split(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    split(ctx, args, must_compile)
}

pub(super) fn must_regex_split(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    split(ctx, args, compile)
}

/// What stands between matches, in at most so many parts. A match at the very start that is empty separates nothing.
fn split(ctx: &Ctx<'_>, args: Args<'_>, compile: Compile) -> Answer {
    check_search(ctx, args.bytes(0), args.bytes(1))?;
    let regex = compile(ctx, &args.str(0), args.bytes(1))?;
    let (text, limit) = (args.bytes(1), args.int(2));
    let mut parts = Parts::new(ctx);
    if limit == 0 {
        return Ok(parts.into_strings());
    }
    if text.is_empty() && !args.bytes(0).is_empty() {
        parts.push(text)?;
        return Ok(parts.into_strings());
    }
    let separators = usize::try_from(limit).map_or(usize::MAX, |limit| limit - 1);
    let (mut begin, mut end) = (0, 0);
    for found in matches(&regex, text) {
        check_match(ctx, text.len() - found.start())?;
        if parts.parts.len() == separators {
            break;
        }
        end = found.start();
        if found.end() != 0 {
            parts.push(&text[begin..end])?;
        }
        begin = found.end();
    }
    if end != text.len() {
        parts.push(&text[begin..])?;
    }
    Ok(parts.into_strings())
}

pub(super) fn regex_replace_all(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    replace(ctx, args, must_compile, Replacement::Template)
}

pub(super) fn must_regex_replace_all(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    replace(ctx, args, compile, Replacement::Template)
}

pub(super) fn regex_replace_all_literal(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    replace(ctx, args, must_compile, Replacement::Literal)
}

pub(super) fn must_regex_replace_all_literal(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    replace(ctx, args, compile, Replacement::Literal)
}

/// Whether `$1` in a replacement stands for a group.
#[derive(Clone, Copy)]
enum Replacement {
    Template,
    Literal,
}

fn replace(ctx: &Ctx<'_>, args: Args<'_>, compile: Compile, kind: Replacement) -> Answer {
    check_search(ctx, args.bytes(0), args.bytes(1))?;
    let regex = compile(ctx, &args.str(0), args.bytes(1))?;
    let (text, replacement) = (args.bytes(1), args.bytes(2));
    let references = replacement.split(|byte| *byte == b'$').count() - 1;
    let mut replaced = Vec::with_capacity(text.len());
    let mut copied = 0;
    for groups in regex.captures_iter(text) {
        let Some(found) = groups.get(0).filter(|found| is_whole(text, found)) else {
            continue;
        };
        check_match(ctx, text.len() - found.start())?;
        replaced.extend_from_slice(&text[copied..found.start()]);
        let longest = references
            .saturating_mul(found.len())
            .saturating_add(replacement.len());
        ctx.meter
            .check_value(replaced.len().saturating_add(longest))?;
        ctx.meter.copy(longest)?;
        match kind {
            Replacement::Template => groups.expand(replacement, &mut replaced),
            Replacement::Literal => replaced.extend_from_slice(replacement),
        }
        copied = found.end();
    }
    replaced.extend_from_slice(&text[copied..]);
    Ok(Value::str_from_bytes(&replaced))
}

pub(super) fn regex_quote_meta(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let mut quoted = Vec::with_capacity(args.bytes(0).len());
    for byte in args.bytes(0) {
        if br"\.+*?()|[]{}^$".contains(byte) {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    Ok(Value::str_from_bytes(&quoted))
}
