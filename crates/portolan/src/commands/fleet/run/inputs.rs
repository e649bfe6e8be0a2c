//! The inputs that a command line gives to a book.

use std::collections::BTreeMap;

use camino::Utf8Path;
use portolan_fleet::Input as BookInput;
use serde_json::{Map, Value};

use super::RunArgs;
use crate::error::CommandError;
use crate::input::Input;
use crate::printer::Printer;

/// Reads all inputs. Those of a book that is not known here stay texts; the server reads them.
pub(super) fn given_inputs(
    args: &RunArgs,
    declared: Option<&BTreeMap<String, BookInput>>,
    printer: &Printer,
) -> Result<Map<String, Value>, CommandError> {
    let declared = |name: &str| declared.and_then(|inputs| inputs.get(name));
    let mut given = Map::new();
    for text in &args.inputs {
        let (name, value) = named(text)?;
        let input = declared(name);
        if input.is_some_and(|input| input.is_secret) {
            let message =
                format!("the input `{name}` is secret: arguments can be read by every user");
            let hint = format!("write it to a file and give --input-file {name}=FILE");
            return Err(CommandError::usage(message).hint(hint));
        }
        let value = input.map_or_else(|| Value::from(value), |input| input.read(value));
        given.insert(name.to_owned(), value);
    }
    for text in &args.input_files {
        let (name, path) = named(text)?;
        let content = String::from_utf8(Input::read(Utf8Path::new(path))?.bytes);
        let content = content.map_err(|_| CommandError::usage(format!("`{path}` is not UTF-8")))?;
        let content = content.strip_suffix('\n').unwrap_or(&content);
        let input = declared(name);
        // Whoever gives a value by a file may not want to see it again.
        if input.is_none_or(|input| input.is_secret) {
            printer.secrets().add_text(name, content);
        }
        let value = input.map_or_else(|| Value::from(content), |input| input.read(content));
        given.insert(name.to_owned(), value);
    }
    Ok(given)
}

fn named(text: &str) -> Result<(&str, &str), CommandError> {
    let split = text.split_once('=');
    split.ok_or_else(|| CommandError::usage(format!("`{text}` is not NAME=VALUE")))
}
