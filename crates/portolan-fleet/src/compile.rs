//! Compiles a book: reads it, checks every name, type and template in it, and says everything that is wrong at once.
//!
//! ```text
//! text ──BookReader──▶ steps ──NameCheck──▶ Book
//!                        │                   or every BookFault, root causes first
//!                 includes, handlers
//! ```

mod check;
mod parameters;
mod selection;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;

use portolan_cel::STACK_BYTES;
use portolan_digest::Hasher;
use portolan_modules::{BookFiles, MODULES, ModuleDefinition};

use crate::book::{AskedFleet, Book, BookReader};
use crate::decision::Decision;
use crate::fault::{BookFault, Faults};

pub use selection::TagSelection;

/// Parameters of a module that name files of the book.
pub(crate) fn file_parameters(module: &str) -> &'static [&'static str] {
    match module {
        // What is mounted is a device, or a word such as `tmpfs`.
        "mount" => &[],
        _ => &["template", "source", "script", "key"],
    }
}

/// Whether such a parameter names a file of the book, not a path of the node, an address or the content itself.
pub(crate) fn is_book_file(path: &str) -> bool {
    !path.starts_with('/') && !path.contains("://") && !path.contains('\n')
}

/// A book to compile.
pub struct BookSource<'a> {
    /// Its file, as messages name it.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
    /// The files that came with it.
    pub files: Arc<dyn BookFiles>,
    /// The modules that it can use; all of them outside tests.
    pub modules: &'static [&'static ModuleDefinition],
    /// Which steps are taken.
    pub selection: TagSelection,
    /// Names of `vars` whose values on a node are secret.
    pub secret_vars: BTreeSet<String>,
}

impl<'a> BookSource<'a> {
    /// A book with all modules, of which all steps are taken.
    pub fn new(file: &'a str, text: &'a str, files: Arc<dyn BookFiles>) -> Self {
        Self {
            file,
            text,
            files,
            modules: MODULES,
            selection: TagSelection::default(),
            secret_vars: BTreeSet::new(),
        }
    }
}

/// Compiles a book.
///
/// # Errors
/// Everything that is wrong with it, root causes first.
pub fn compile(source: &BookSource<'_>) -> Result<Book, Vec<BookFault>> {
    // Parsing CEL needs more stack than the caller may have left.
    thread::scope(|scope| {
        let compiler = thread::Builder::new()
            .name("compile".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || compile_here(source));
        let compiled = compiler.ok().and_then(|compiler| compiler.join().ok());
        compiled.unwrap_or_else(|| {
            Err(vec![BookFault {
                place: crate::fault::Place::new(
                    &source.file.into(),
                    portolan_yaml::Position::default(),
                ),
                message: "the book cannot be compiled on this machine: no thread for it".to_owned(),
                hint: None,
                is_consequence: false,
            }])
        })
    })
}

fn compile_here(source: &BookSource<'_>) -> Result<Book, Vec<BookFault>> {
    let mut reader = BookReader::new(Arc::clone(&source.files), source.modules);
    let read = reader.read(source.file, source.text);
    let BookReader {
        mut faults,
        handlers,
        sources,
        ..
    } = reader;
    let Some(read) = read else {
        return Err(faults.into_sorted());
    };
    let is_whole = faults.is_empty();
    let compute = ordered(read.values.compute, &mut faults);
    let mut hasher = Hasher::default();
    for (file, text) in &sources {
        hasher.update(file.as_bytes());
        hasher.update(&[0]);
        hasher.update(text.as_bytes());
        hasher.update(&[0]);
    }
    source.selection.hash(&mut hasher);
    for name in &source.secret_vars {
        // An agent that does not know of secret variables gets another digest, and takes no step.
        hasher.update(b"secret variable\0");
        hasher.update(name.as_bytes());
        hasher.update(&[0]);
    }
    let mut book = Book {
        name: read.name,
        namespace: read.namespace,
        inputs: read.values.inputs,
        vars: read.values.vars,
        compute,
        run: read.run,
        steps: read.steps,
        handlers: handlers.into_iter().flatten().collect(),
        digest: hasher.finish(),
        facts: BTreeSet::new(),
        gathered: BTreeMap::new(),
        read_results: BTreeSet::new(),
        asks_fleet: AskedFleet::default(),
        secret_vars: source.secret_vars.clone(),
    };
    // Steps that could not be read are missing, and what needs them would be told as well.
    let mut checked = check::check(&book, source, is_whole);
    for fault in std::mem::take(&mut checked.faults) {
        faults.push(fault);
    }
    if !faults.is_empty() {
        return Err(faults.into_sorted());
    }
    book.facts = checked.facts;
    book.gathered = checked.gathered;
    book.read_results = checked.read_results;
    book.asks_fleet = checked.asks_fleet;
    check::mark_sensitive(&mut book.steps, &checked.sensitive);
    check::mark_sensitive(&mut book.handlers, &checked.sensitive);
    source.selection.apply(&mut book.steps);
    Ok(book)
}

/// Computed values, each after those that it needs. What is part of a circle is told and left out.
pub(crate) fn ordered(
    compute: Vec<(String, Decision)>,
    faults: &mut Faults,
) -> Vec<(String, Decision)> {
    let needs: BTreeMap<&str, Vec<String>> = compute
        .iter()
        .map(|(name, decision)| (name.as_str(), decision.expression().keys_of("vars")))
        .collect();
    let mut order: Vec<&str> = Vec::new();
    let mut path: Vec<&str> = Vec::new();
    for name in needs.keys() {
        if let Some(circle) = place_after(name, &needs, &mut order, &mut path) {
            let place = compute.iter().find(|(known, _)| *known == circle[0]);
            if let Some((_, decision)) = place {
                let message = format!("computed values need each other: {}", circle.join(" → "));
                faults.add(decision.place.clone(), message);
            }
            return Vec::new();
        }
    }
    let places: BTreeMap<String, usize> = order
        .iter()
        .enumerate()
        .map(|(at, name)| ((*name).to_owned(), at))
        .collect();
    let mut compute = compute;
    compute.sort_by_key(|(name, _)| places.get(name).copied());
    compute
}

/// Puts a name behind everything that it needs. Gives a circle if there is one.
fn place_after<'n>(
    name: &'n str,
    needs: &'n BTreeMap<&'n str, Vec<String>>,
    order: &mut Vec<&'n str>,
    path: &mut Vec<&'n str>,
) -> Option<Vec<String>> {
    if order.contains(&name) {
        return None;
    }
    if let Some(start) = path.iter().position(|above| *above == name) {
        let circle = path[start..].iter().chain([&name]);
        return Some(circle.map(|name| (*name).to_owned()).collect());
    }
    path.push(name);
    for needed in needs.get(name).into_iter().flatten() {
        if let Some((needed, _)) = needs.get_key_value(needed.as_str())
            && let Some(circle) = place_after(needed, needs, order, path)
        {
            return Some(circle);
        }
    }
    path.pop();
    order.push(name);
    None
}
