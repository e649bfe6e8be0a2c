//! The patterns of `.Files.Glob`: those of the gobwas library with `/` between parts.
//!
//! `*` and `?` stay inside a part, `**` does not; `[a-z]`, `[!a]` and `{a,b*}` have their usual meaning, and a
//! backslash makes the next character literal. The matcher keeps a set of positions in the pattern, so no pattern
//! takes more than pattern × name steps.

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Glob {
    /// A graph of tokens; the last state is the goal.
    states: Vec<State>,
}

#[derive(Debug)]
struct State {
    token: Token,
    next: Vec<usize>,
}

#[derive(Debug, Clone)]
enum Token {
    Literal(char),
    /// `?`
    Single,
    /// `*`
    Any,
    /// `**`
    Super,
    Class {
        negated: bool,
        letters: Vec<(char, char)>,
    },
    /// Joins and goals: takes no letter.
    Nothing,
}

/// How deep braces may nest.
const MAX_DEPTH: usize = 32;

impl Glob {
    /// Compiles a pattern; `None` when it cannot be read.
    pub(crate) fn parse(pattern: &str) -> Option<Self> {
        let letters: Vec<char> = pattern.chars().collect();
        let mut parser = Parser {
            letters: &letters,
            at: 0,
            states: Vec::new(),
        };
        let start = parser.state(Token::Nothing);
        let end = parser.sequence(start, 0)?;
        if parser.at < letters.len() {
            return None;
        }
        let goal = parser.state(Token::Nothing);
        parser.states[end].next.push(goal);
        Some(Self {
            states: parser.states,
        })
    }

    /// Whether the whole name fits.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let mut now = vec![false; self.states.len()];
        self.enter(0, &mut now);
        for letter in name.chars() {
            let mut then = vec![false; self.states.len()];
            for (index, state) in self.states.iter().enumerate() {
                if now[index] && state.token.takes(letter) {
                    if matches!(state.token, Token::Any | Token::Super) {
                        self.enter(index, &mut then);
                    } else {
                        state
                            .next
                            .iter()
                            .for_each(|next| self.enter(*next, &mut then));
                    }
                }
            }
            now = then;
        }
        now.last().copied().unwrap_or_default()
    }

    /// Marks a state and all that are reached from it without a letter.
    fn enter(&self, index: usize, marks: &mut [bool]) {
        let mut pending = vec![index];
        while let Some(index) = pending.pop() {
            if std::mem::replace(&mut marks[index], true) {
                continue;
            }
            let state = &self.states[index];
            if matches!(state.token, Token::Nothing | Token::Any | Token::Super) {
                pending.extend(&state.next);
            }
        }
    }
}

impl Token {
    fn takes(&self, letter: char) -> bool {
        match self {
            Self::Literal(literal) => *literal == letter,
            Self::Single | Self::Any => letter != '/',
            Self::Super => true,
            Self::Class { negated, letters } => {
                letters
                    .iter()
                    .any(|(low, high)| (*low..=*high).contains(&letter))
                    != *negated
            }
            Self::Nothing => false,
        }
    }
}

struct Parser<'p> {
    letters: &'p [char],
    at: usize,
    states: Vec<State>,
}

impl Parser<'_> {
    fn state(&mut self, token: Token) -> usize {
        self.states.push(State {
            token,
            next: Vec::new(),
        });
        self.states.len() - 1
    }

    /// Appends tokens behind a state until the pattern, or a brace's alternative, ends.
    fn sequence(&mut self, mut last: usize, depth: usize) -> Option<usize> {
        while let Some(letter) = self.letters.get(self.at) {
            let token = match letter {
                ',' | '}' if depth > 0 => break,
                '{' => {
                    self.at += 1;
                    last = self.braces(last, depth + 1)?;
                    continue;
                }
                '*' if self.letters.get(self.at + 1) == Some(&'*') => {
                    self.at += 1;
                    Token::Super
                }
                '*' => Token::Any,
                '?' => Token::Single,
                '[' => self.class()?,
                '\\' => {
                    self.at += 1;
                    Token::Literal(*self.letters.get(self.at)?)
                }
                other => Token::Literal(*other),
            };
            self.at += 1;
            let next = self.state(token);
            self.states[last].next.push(next);
            last = next;
        }
        Some(last)
    }

    fn braces(&mut self, before: usize, depth: usize) -> Option<usize> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut ends = Vec::new();
        loop {
            let start = self.state(Token::Nothing);
            self.states[before].next.push(start);
            ends.push(self.sequence(start, depth)?);
            let letter = *self.letters.get(self.at)?;
            self.at += 1;
            if letter == '}' {
                break;
            }
        }
        let join = self.state(Token::Nothing);
        for end in ends {
            self.states[end].next.push(join);
        }
        Some(join)
    }

    /// Reads `[…]` and stops on the closing bracket.
    fn class(&mut self) -> Option<Token> {
        let rest = self.letters.get(self.at + 1..)?;
        let negated = rest.first() == Some(&'!');
        let rest = if negated { &rest[1..] } else { rest };
        let length = rest.iter().position(|letter| *letter == ']')?;
        if length == 0 {
            return None;
        }
        let inside = &rest[..length];
        let letters = match inside {
            [low, '-', high] if low <= high => vec![(*low, *high)],
            [_, '-', _] => return None,
            single => single.iter().map(|letter| (*letter, *letter)).collect(),
        };
        self.at += 1 + usize::from(negated) + length;
        Some(Token::Class { negated, letters })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, name: &str, expected: bool) {
        let glob = Glob::parse(pattern).unwrap();
        assert_eq!(glob.matches(name), expected, "{pattern} {name}");
    }

    #[test]
    fn stars_stay_inside_a_part_unless_doubled() {
        check("config/*", "config/a.yaml", true);
        check("config/*", "config/a/b.yaml", false);
        check("config/**", "config/a/b.yaml", true);
        check("**.yaml", "a/b/c.yaml", true);
        check("*.yaml", "a/c.yaml", false);
        check("a?c", "a/c", false);
    }

    #[test]
    fn braces_and_classes_choose() {
        check("{a,b*}/x", "bcd/x", true);
        check("{a,b*}/x", "c/x", false);
        check("[a-c]x", "bx", true);
        check("[!a-c]x", "bx", false);
        check("dashboards/{a,{b,c}d}.json", "dashboards/cd.json", true);
        check("a\\*", "a*", true);
    }

    #[test]
    fn broken_patterns_are_none() {
        for pattern in ["{a", "[", "[]", "a\\"] {
            assert!(Glob::parse(pattern).is_none(), "{pattern}");
        }
    }
}
