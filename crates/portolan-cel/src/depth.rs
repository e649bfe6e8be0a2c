//! The maximum depth of an expression's tree, found in its text.
//!
//! The parser and everything that walks its tree go one call deeper for each level, so the depth is found before the
//! parser sees the text. `&&` and `||` do not count: the parser balances them.

/// Returns an upper bound of the depth of a text's syntax tree.
pub(crate) fn depth(text: &str) -> usize {
    let mut levels = vec![Level::default()];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = token(rest, first);
        let (token, after) = rest.split_at(length.clamp(first.len_utf8(), rest.len()));
        take(&mut levels, token, after);
        rest = after;
    }
    while levels.len() > 1 {
        close(&mut levels);
    }
    levels.pop().map_or(0, Level::finish)
}

/// What stands between two brackets.
#[derive(Default)]
struct Level {
    /// Operators, selections and calls since the last `&&`, `||` or `,`: each takes all before it as its operand.
    links: usize,
    /// The deepest brackets among them.
    inside: usize,
    /// The deepest part that is complete.
    deepest: usize,
    /// `?` nests to the right.
    choices: usize,
}

impl Level {
    fn end_part(&mut self) {
        self.deepest = self.deepest.max(self.links + self.inside);
        (self.links, self.inside) = (0, 0);
    }

    fn finish(mut self) -> usize {
        self.end_part();
        self.deepest + self.choices + 1
    }
}

fn take(levels: &mut Vec<Level>, token: &str, after: &str) {
    if matches!(token, "(" | "[" | "{") {
        return levels.push(Level::default());
    }
    if matches!(token, ")" | "]" | "}") {
        return close(levels);
    }
    let Some(level) = levels.last_mut() else {
        return;
    };
    match token {
        "&&" | "||" | ":" | "," => level.end_part(),
        // `.?` and `[?` select, they do not choose.
        "?" if !after.starts_with('.') => {
            level.end_part();
            level.choices += 1;
        }
        "in" | "." | "+" | "-" | "*" | "/" | "%" | "<" | ">" | "=" | "!" | "?" => level.links += 1,
        _ => {}
    }
}

fn close(levels: &mut Vec<Level>) {
    // A bracket too many is for the parser to refuse.
    if levels.len() < 2 {
        return;
    }
    if let (Some(inner), Some(outer)) = (levels.pop(), levels.last_mut()) {
        outer.inside = outer.inside.max(inner.finish());
        outer.links += 1;
    }
}

/// Length of the token that a text begins with: a word, a quoted text, a comment, or a sign.
fn token(text: &str, first: char) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("&&") || text.starts_with("||") {
        return 2;
    }
    if matches!(first, '"' | '\'') {
        return quoted(text, first, true);
    }
    if !is_word(first) {
        return first.len_utf8();
    }
    let end = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    match after.chars().next() {
        Some(quote @ ('"' | '\'')) if is_prefix(word) => {
            end + quoted(after, quote, !word.contains(['r', 'R']))
        }
        _ => end,
    }
}

/// Whether a word before a quote belongs to it: `r'…'`, `b"…"`, `br'…'`.
fn is_prefix(word: &str) -> bool {
    word.len() <= 2 && word.chars().all(|c| matches!(c, 'r' | 'R' | 'b' | 'B'))
}

/// Length of a quoted text with its quotes; one without an end goes to the end.
fn quoted(text: &str, quote: char, escapes: bool) -> usize {
    let triple: String = [quote; 3].iter().collect();
    let close = if text.starts_with(&triple) {
        triple
    } else {
        quote.to_string()
    };
    let mut at = close.len();
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(&close) {
            return at + close.len();
        }
        let mut chars = rest.chars();
        let first = chars.next().map_or(1, char::len_utf8);
        let escaped = match chars.next() {
            Some(next) if escapes && rest.starts_with('\\') => next.len_utf8(),
            _ => 0,
        };
        at += first + escaped;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_and_brackets_add_up_and_logic_does_not() {
        for (text, expected) in [
            ("", 1),
            ("a", 1),
            ("1+1+1", 3),
            ("self.l.l", 3),
            ("a && b && c || d", 1),
            ("a.b && a.b.c.d", 4),
            ("(((a)))", 7),
            ("[1,2,3]", 3),
            ("a ? b : c ? d : e", 3),
            ("self.?a", 3),
            ("'((((' + \"[[['\\\"\" + r'\\' + '''a'b''' // ((((", 4),
            (")))) a", 1),
        ] {
            assert_eq!(depth(text), expected, "{text}");
        }
    }
}
