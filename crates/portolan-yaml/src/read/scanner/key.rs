//! Simple keys: what becomes a key if a `:` follows on the same line.

use super::Scanner;
use crate::error::Fallible;
use crate::limits::MAX_SIMPLE_KEY;
use crate::read::token::Mark;

/// A token that becomes a key if a `:` follows on the same line.
#[derive(Clone, Copy, Default)]
pub(super) struct SimpleKey {
    pub(super) possible: bool,
    /// It stands where only a key can stand.
    pub(super) required: bool,
    pub(super) token: usize,
    pub(super) mark: Mark,
}

impl Scanner<'_> {
    /// Whether the key of a flow level is still possible: on this line, and not too far back.
    pub(super) fn key_is_valid(&mut self, level: usize) -> Fallible<bool> {
        let Some(key) = self.keys.get(level).copied() else {
            return Ok(false);
        };
        if !key.possible {
            return Ok(false);
        }
        let here = self.cursor.mark();
        if key.mark.line == here.line && key.mark.column + MAX_SIMPLE_KEY >= here.column {
            return Ok(true);
        }
        if key.required {
            return self.fail(key.mark, "could not find expected ':'");
        }
        self.keys[level].possible = false;
        Ok(false)
    }

    /// Notes that the next token may become a key; gives its place.
    pub(super) fn save_key(&mut self) -> Fallible<Mark> {
        let mark = self.cursor.mark();
        if !self.key_allowed {
            return Ok(mark);
        }
        let required = self.flow_level == 0 && self.indent == mark.column as i32;
        self.remove_key()?;
        let token = self.next_number();
        let level = self.keys.len() - 1;
        self.keys[level] = SimpleKey {
            possible: true,
            required,
            token,
            mark,
        };
        self.forget_key(token);
        self.keys_by_token.push_back((token, level));
        Ok(mark)
    }

    /// Gives up the key of the current flow level.
    pub(super) fn remove_key(&mut self) -> Fallible<()> {
        let level = self.keys.len() - 1;
        let key = self.keys[level];
        if !key.possible {
            return Ok(());
        }
        if key.required {
            return self.fail(key.mark, "could not find expected ':'");
        }
        self.keys[level].possible = false;
        self.forget_key(key.token);
        Ok(())
    }

    pub(super) fn forget_key(&mut self, token: usize) {
        // Numbers rise, so it is nearly always the last one.
        if self.keys_by_token.back().is_some_and(|key| key.0 == token) {
            self.keys_by_token.pop_back();
        } else if self.keys_by_token.back().is_some_and(|key| key.0 < token) {
            // It is not there.
        } else if let Some(index) = self.keys_by_token.iter().rposition(|key| key.0 == token) {
            self.keys_by_token.remove(index);
        }
    }

    pub(super) fn next_number(&self) -> usize {
        self.parsed + self.queue.len()
    }
}
