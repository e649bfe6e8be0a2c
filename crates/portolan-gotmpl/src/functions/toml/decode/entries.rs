//! Entries: a key, which may have dots, and its value.

use std::rc::Rc;

use super::tables::{Asker, already_defined, split_last, wrong_key};
use super::{Decoder, Key, Step, check_depth, fail};
use crate::value::Map;

impl Decoder<'_> {
    pub(super) fn entry_line(&mut self) -> Step {
        let table = Rc::clone(&self.table);
        self.entry(&table)?;
        self.current.clear();
        Ok(())
    }

    /// An entry of a table whose key is the context.
    pub(super) fn entry(&mut self, table: &Rc<Map>) -> Step {
        let key = self.dotted_key()?;
        let (name, path) = split_last(&key);
        let outer = self.context.len();
        check_depth(outer + key.len())?;
        self.context.extend_from_slice(path);
        name.clone_into(&mut self.current);
        let mut table = Rc::clone(table);
        for (index, part) in path.iter().enumerate() {
            let child = self.child(&table, part, Asker::DottedKey);
            table = child.ok_or_else(|| already_defined(&self.context[..=outer + index]))?;
        }
        self.skip_blanks();
        let value = self.value()?;
        self.define(&table, name, value)?;
        self.context.truncate(outer);
        Ok(())
    }

    fn dotted_key(&mut self) -> Step<Key> {
        match self.peek() {
            None if self.forbidden.is_some() => return Err(self.end("")),
            None | Some('=') => return fail("unexpected '=': key name appears blank"),
            Some('.') => return fail("unexpected '.': keys cannot start with a '.'"),
            _ => {}
        }
        let mut key = Vec::new();
        loop {
            key.push(self.key_part("=")?);
            check_depth(key.len())?;
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
                None => return Err(self.end("unexpected EOF; expected key separator '='")),
                Some(_) => return Err(self.unexpected(|found| wrong_key("=", found))),
            }
        }
    }

    /// One part of a key that goes on with a dot or ends with `end`.
    pub(super) fn key_part(&mut self, end: &str) -> Step<String> {
        match self.peek() {
            Some('"') => return self.basic_string(),
            Some('\'') => return self.literal_string(),
            _ => {}
        }
        let rest = self.rest();
        let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let length = rest.find(|c| !is_bare(c)).unwrap_or(rest.len());
        if length == 0 {
            return Err(match self.peek() {
                Some('=') => return fail("unexpected '='"),
                Some('.') => return fail("unexpected '.'"),
                _ => self.unexpected(|found| wrong_key(end, found)),
            });
        }
        self.at += length;
        Ok(rest[..length].to_owned())
    }
}
