//! Tables: what a header creates or opens, and how dotted names lead to a table.

use std::rc::Rc;

use super::{Decoder, Key, Problem, Step, check_depth, dotted, fail, new_table};
use crate::value::{ElementType, Map, Value};

/// Who asks for a table on the way to another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    Header,
    DottedKey,
}

impl Decoder<'_> {
    pub(super) fn header(&mut self) -> Step {
        self.at += 1;
        let is_array = self.eat("[");
        let key = self.header_key()?;
        if !self.eat(if is_array { "]]" } else { "]" }) {
            self.at += 1;
            return Err(self.unexpected(|found| {
                format!("expected end of table array name delimiter ']', but got {found} instead")
            }));
        }
        let parent = self.parent(&key)?;
        let (name, path) = split_last(&key);
        self.context = path.to_vec();
        self.table = if is_array {
            self.array_table(&parent, &key)?
        } else {
            self.plain_table(&parent, name)?
        };
        self.context.push(name.to_owned());
        Ok(())
    }

    fn header_key(&mut self) -> Step<Key> {
        let mut key = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(']') => {
                    return fail("unexpected end of table name (table names cannot be empty)");
                }
                Some('.') => {
                    return fail("unexpected table separator (table names cannot be empty)");
                }
                _ => {}
            }
            key.push(self.key_part("]")?);
            check_depth(key.len())?;
            self.skip_blanks();
            match self.peek() {
                Some('.') => self.at += 1,
                Some(']') => return Ok(key),
                _ => return Err(self.unexpected(|found| wrong_key("]", found))),
            }
        }
    }

    fn plain_table(&mut self, parent: &Map, name: &str) -> Step<Rc<Map>> {
        self.define(parent, name, Value::Map(new_table()))?;
        match parent.get(name) {
            Some(Value::Map(table)) => Ok(table),
            _ => fail("no table"),
        }
    }

    fn array_table(&mut self, parent: &Map, key: &[String]) -> Step<Rc<Map>> {
        let (name, _) = split_last(key);
        let mut items = match parent.get(name) {
            None => Vec::new(),
            Some(Value::List(list)) if self.growing.remove(&Rc::as_ptr(&list)) => {
                // Out of the table, so that nobody else holds the list and it can grow in place.
                parent.insert(name, Value::Nil);
                list.into_items()
            }
            Some(_) => {
                return fail(format!(
                    "Key '{}' was already created and cannot be used as an array.",
                    dotted(key)
                ));
            }
        };
        let table = new_table();
        items.push(Value::Map(Rc::clone(&table)));
        let list = Value::typed_list(ElementType::AnyMap, items);
        self.growing.extend(list.as_list().map(Rc::as_ptr));
        parent.insert(name, list);
        Ok(table)
    }

    /// The table that holds what a header names.
    fn parent(&mut self, key: &[String]) -> Step<Rc<Map>> {
        let (_, path) = split_last(key);
        let mut table = Rc::clone(&self.root);
        for (index, name) in path.iter().enumerate() {
            table = self.child(&table, name, Asker::Header).ok_or_else(|| {
                let key = dotted(&path[..=index]);
                Problem::Text(format!("Key '{key}' was already created as a hash."))
            })?;
        }
        Ok(table)
    }

    /// The table of a name in another, made when it is missing; none when the name is something else.
    pub(super) fn child(&mut self, table: &Map, name: &str, asker: Asker) -> Option<Rc<Map>> {
        match table.get(name) {
            None => {
                let made = new_table();
                table.insert(name, Value::Map(Rc::clone(&made)));
                self.implicit.insert(Rc::as_ptr(&made));
                Some(made)
            }
            Some(Value::Map(found)) => {
                if asker == Asker::DottedKey {
                    self.implicit.remove(&Rc::as_ptr(&found));
                }
                Some(found)
            }
            Some(Value::List(list)) if self.growing.contains(&Rc::as_ptr(&list)) => {
                list.last().and_then(Value::as_map).map(Rc::clone)
            }
            Some(_) => None,
        }
    }

    /// Sets a name in a table. A plain array may be replaced; a table that only its children made stays, once.
    pub(super) fn define(&mut self, table: &Map, name: &str, value: Value) -> Step {
        match table.get(name) {
            None => {}
            Some(Value::List(list)) if !self.growing.contains(&Rc::as_ptr(&list)) => {}
            Some(Value::Map(found)) if self.implicit.remove(&Rc::as_ptr(&found)) => return Ok(()),
            Some(_) => {
                let mut key = self.context.clone();
                key.push(name.to_owned());
                return Err(already_defined(&key));
            }
        }
        table.insert(name, value);
        Ok(())
    }
}

/// The last part of a key and those before it.
pub(super) fn split_last(key: &[String]) -> (&str, &[String]) {
    key.split_last()
        .map_or(("", key), |(last, path)| (last, path))
}

pub(super) fn already_defined(key: &[String]) -> Problem {
    let key = dotted(key);
    Problem::Text(format!("Key '{key}' has already been defined."))
}

/// What the library says when a key ends neither in a dot nor in `end`.
pub(super) fn wrong_key(end: &str, found: &str) -> String {
    if end == "]" {
        format!("expected '.' or ']' to end table name, but got {found} instead")
    } else {
        format!("expected '.' or '=', but got {found} instead")
    }
}
