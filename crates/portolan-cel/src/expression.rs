//! The text of an expression as a tree.

use kube_cel::cel::common::ast::{EntryExpr, Expr, operators};
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{IdedExpr, Value};

use crate::depth::depth;
use crate::failure::Failure;

/// The longest expression that is read, in bytes; the longest in public definitions have three thousand.
const MAX_BYTES: usize = 32 << 10;

/// The deepest tree that is read and evaluated.
///
/// An evaluation goes a few calls deeper for each level and must fit a thread of 2 MB.
const MAX_DEPTH: usize = 250;

/// The stack that a thread needs to parse an expression of [`MAX_DEPTH`]; see the test beside [`Expression::parse`].
pub const STACK_BYTES: usize = 32 << 20;

/// An expression that can be evaluated.
#[derive(Debug)]
pub struct Expression {
    tree: IdedExpr,
}

impl Expression {
    /// Reads an expression, on a stack of at least [`STACK_BYTES`].
    ///
    /// # Errors
    /// When it is too large, or no CEL.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if text.len() > MAX_BYTES {
            let why = format!("it is longer than {MAX_BYTES} bytes");
            return Err(Failure::TooLarge(why));
        }
        let too_deep = || Failure::TooLarge(format!("it is nested more than {MAX_DEPTH} levels"));
        if depth(text) > MAX_DEPTH {
            return Err(too_deep());
        }
        let tree = Parser::new()
            .enable_optional_syntax(true)
            .parse(text)
            .map_err(|_| Failure::Unsupported("it cannot be read as CEL".to_owned()))?;
        if levels(&tree) > MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(Self { tree })
    }

    pub(crate) fn tree(&self) -> &IdedExpr {
        &self.tree
    }

    /// Whether a variable of this name is used in it.
    pub fn names(&self, name: &str) -> bool {
        names(&self.tree, name)
    }

    /// Whether a function of this name is called in it.
    pub fn calls(&self, name: &str) -> bool {
        calls(&self.tree, name)
    }

    /// What it looks at, each as a variable and the keys behind it: `facts.os.family` and `steps['a'].changed`.
    pub fn paths(&self) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        collect_paths(&self.tree, &mut paths);
        paths
    }

    /// The literal texts that a variable of this name is indexed by, as in `steps['a']` or `steps.a`, or that a
    /// function of this name is called with, as in `results('a')`.
    pub fn keys_of(&self, name: &str) -> Vec<String> {
        let mut keys = Vec::new();
        collect_keys(&self.tree, name, &mut keys);
        keys
    }
}

/// Returns the depth of a tree.
fn levels(tree: &IdedExpr) -> usize {
    1 + parts(tree).into_iter().map(levels).max().unwrap_or(0)
}

fn names(tree: &IdedExpr, name: &str) -> bool {
    matches!(&tree.expr, Expr::Ident(ident) if ident == name)
        || parts(tree).into_iter().any(|part| names(part, name))
}

fn calls(tree: &IdedExpr, name: &str) -> bool {
    let is_call =
        matches!(&tree.expr, Expr::Call(call) if call.func_name == name && call.target.is_none());
    is_call || parts(tree).into_iter().any(|part| calls(part, name))
}

fn collect_paths(tree: &IdedExpr, paths: &mut Vec<Vec<String>>) {
    if let Some(path) = path_of(tree) {
        if !paths.contains(&path) {
            paths.push(path);
        }
        return;
    }
    for part in parts(tree) {
        collect_paths(part, paths);
    }
}

/// A variable with the keys behind it; `None` for anything else.
fn path_of(tree: &IdedExpr) -> Option<Vec<String>> {
    match &tree.expr {
        Expr::Ident(name) => Some(vec![name.clone()]),
        Expr::Select(select) => {
            let mut path = path_of(&select.operand)?;
            path.push(select.field.clone());
            Some(path)
        }
        Expr::Call(call) if call.func_name == operators::INDEX => {
            let [value, key] = call.args.as_slice() else {
                return None;
            };
            let mut path = path_of(value)?;
            path.push(literal_text(key)?);
            Some(path)
        }
        _ => None,
    }
}

fn collect_keys(tree: &IdedExpr, name: &str, keys: &mut Vec<String>) {
    let is_named = |tree: &IdedExpr| matches!(&tree.expr, Expr::Ident(ident) if ident == name);
    match &tree.expr {
        Expr::Select(select) if is_named(&select.operand) => keys.push(select.field.clone()),
        Expr::Call(call) => {
            let key = match call.args.as_slice() {
                [value, key] if call.func_name == operators::INDEX && is_named(value) => Some(key),
                [key] if call.func_name == name && call.target.is_none() => Some(key),
                _ => None,
            };
            keys.extend(key.and_then(literal_text));
        }
        _ => {}
    }
    for part in parts(tree) {
        collect_keys(part, name, keys);
    }
}

/// The text, if an expression is nothing else.
pub(crate) fn literal_text(tree: &IdedExpr) -> Option<String> {
    let Expr::Literal(literal) = &tree.expr else {
        return None;
    };
    match Value::try_from(literal.to_val().as_ref()) {
        Ok(Value::String(text)) => Some(text.to_string()),
        _ => None,
    }
}

/// Returns the expressions directly inside one.
fn parts(tree: &IdedExpr) -> Vec<&IdedExpr> {
    match &tree.expr {
        Expr::Call(call) => call
            .target
            .as_deref()
            .into_iter()
            .chain(&call.args)
            .collect(),
        Expr::Comprehension(loop_) => vec![
            &loop_.iter_range,
            &loop_.accu_init,
            &loop_.loop_cond,
            &loop_.loop_step,
            &loop_.result,
        ],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => entries(&map.entries),
        Expr::Struct(made) => entries(&made.entries),
        Expr::Select(select) => vec![&*select.operand],
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn entries(entries: &[kube_cel::cel::common::ast::IdedEntryExpr]) -> Vec<&IdedExpr> {
    let both = entries.iter().map(|entry| match &entry.expr {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    });
    both.flatten().collect()
}
