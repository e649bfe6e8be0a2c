//! Expressions of Jinja: names in templates are replaced, and conditions become CEL.

use std::collections::BTreeSet;

/// What names of a playbook stand for.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Variables of the play.
    pub(super) vars: BTreeSet<String>,
    /// Names of registered results.
    pub(super) registered: BTreeSet<String>,
    /// Names that nobody in the play defines: they become inputs.
    pub(super) inputs: BTreeSet<String>,
}

/// Facts and magic variables by the names that Ansible has for them.
const FACTS: &[(&str, &str)] = &[
    ("ansible_architecture", "facts.kernel.machine"),
    ("ansible_check_mode", "run.check"),
    ("ansible_distribution", "facts.os.id"),
    ("ansible_distribution_release", "facts.os.codename"),
    ("ansible_distribution_version", "facts.os.version"),
    ("ansible_fqdn", "facts.hostname"),
    ("ansible_hostname", "facts.hostname"),
    ("ansible_kernel", "facts.kernel.release"),
    ("ansible_os_family", "facts.os.family"),
    ("ansible_processor_vcpus", "facts.cpus"),
    ("inventory_hostname", "node.name"),
];

/// Facts that have small letters only, where Ansible has capitals.
const SMALL: &[&str] = &["facts.os.family", "facts.os.id"];

/// Words that are no names.
const WORDS: &[&str] = &[
    "and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None",
    "index", "key", "loop",
];

/// Tests after `is` of results, and what they are in CEL.
const RESULT_TESTS: &[(&str, &str)] = &[("changed", ".changed == true")];

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Number(String),
    Text(String),
    Sign(String),
    Space(String),
}

impl Names {
    /// A text with templates, with its names replaced.
    ///
    /// # Errors
    /// What in it has no counterpart.
    pub(super) fn text(&mut self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        loop {
            let next = ["{{", "{%"]
                .iter()
                .filter_map(|open| Some((rest.find(open)?, *open)))
                .min();
            let Some((start, open)) = next else {
                out.push_str(rest);
                return Ok(out);
            };
            let close = if open == "{{" { "}}" } else { "%}" };
            let (before, inner) = rest.split_at(start);
            let inner = inner.get(2..).unwrap_or_default();
            let Some(end) = inner.find(close) else {
                return Err("a template has no end".to_owned());
            };
            if open == "{%" {
                return Err("a statement of Jinja stands outside a template file".to_owned());
            }
            let (expression, after) = inner.split_at(end);
            out.push_str(before);
            out.push_str("{{");
            out.push_str(&self.renamed(expression)?);
            out.push_str("}}");
            rest = after.get(2..).unwrap_or_default();
        }
    }

    /// A condition as CEL.
    ///
    /// # Errors
    /// What in it has no counterpart.
    pub(super) fn condition(&mut self, text: &str) -> Result<String, String> {
        let text = text.trim();
        let inner = text
            .strip_prefix("{{")
            .and_then(|text| text.strip_suffix("}}"))
            .unwrap_or(text);
        if inner.contains("{{") || inner.contains("{%") {
            return Err("a template stands inside a condition".to_owned());
        }
        let tokens: Vec<Token> = tokens(&facts_by_name(inner))?
            .into_iter()
            .filter(|token| !matches!(token, Token::Space(_)))
            .collect();
        self.cel(&tokens)
    }

    fn cel(&mut self, tokens: &[Token]) -> Result<String, String> {
        let mut out: Vec<String> = Vec::new();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                Token::Number(number) => out.push(number.clone()),
                Token::Text(text) => out.push(quoted(&small(&out, text))),
                Token::Sign(sign) if sign == "|" => {
                    let Some(Token::Name(filter)) = tokens.get(at) else {
                        return Err("a filter has no name".to_owned());
                    };
                    at += 1;
                    let Some(last) = out.pop() else {
                        return Err(format!("the filter `{filter}` stands alone"));
                    };
                    out.push(match filter.as_str() {
                        "bool" => last,
                        "int" => format!("int({last})"),
                        "length" | "count" => format!("size({last})"),
                        "string" => format!("string({last})"),
                        _ => {
                            return Err(format!("the filter `{filter}` has no counterpart in CEL"));
                        }
                    });
                }
                Token::Sign(sign) if sign == "~" || sign == "//" || sign == "**" => {
                    return Err(format!("`{sign}` has no counterpart in CEL"));
                }
                Token::Sign(sign) => out.push(sign.clone()),
                Token::Space(_) => {}
                Token::Name(word) => match word.as_str() {
                    "and" => out.push("&&".to_owned()),
                    "or" => out.push("||".to_owned()),
                    "not" if matches!(tokens.get(at), Some(Token::Name(next)) if next == "in") => {
                        return Err(
                            "`not in` has no counterpart in CEL: write `!(a in b)`".to_owned()
                        );
                    }
                    "not" => out.push("!".to_owned()),
                    "in" => out.push("in".to_owned()),
                    "true" | "True" => out.push("true".to_owned()),
                    "false" | "False" => out.push("false".to_owned()),
                    "none" | "None" => out.push("null".to_owned()),
                    "is" => {
                        let (test, taken) = test(&mut out, tokens.get(at..).unwrap_or_default())?;
                        out.push(test);
                        at += taken;
                    }
                    "if" | "else" => {
                        return Err("`if` and `else` have no counterpart in CEL".to_owned());
                    }
                    _ => {
                        let (path, taken) =
                            self.path(word, tokens.get(at..).unwrap_or_default())?;
                        out.push(path);
                        at += taken;
                    }
                },
            }
        }
        if out.is_empty() {
            return Err("the condition is empty".to_owned());
        }
        Ok(joined(&out))
    }

    /// A name with its fields. Gives it, and how many more tokens it has.
    fn path(&mut self, first: &str, rest: &[Token]) -> Result<(String, usize), String> {
        if matches!(rest.first(), Some(Token::Sign(sign)) if sign == "(") {
            return Err(format!("the function `{first}` has no counterpart in CEL"));
        }
        let mut path = self.name(first)?;
        let mut taken = 0;
        while let [Token::Sign(dot), Token::Name(field), ..] = rest.get(taken..).unwrap_or_default()
            && dot == "."
        {
            if matches!(rest.get(taken + 2), Some(Token::Sign(sign)) if sign == "(") {
                return Err(format!("the function `{field}` has no counterpart in CEL"));
            }
            // The exit code of a command.
            let field = if field == "rc" { "code" } else { field };
            path.push('.');
            path.push_str(field);
            taken += 2;
        }
        Ok((path, taken))
    }

    /// The names of an expression replaced, everything else as it is.
    fn renamed(&mut self, expression: &str) -> Result<String, String> {
        let tokens = tokens(&facts_by_name(expression))?;
        let mut out = String::new();
        let mut before = String::new();
        for (at, token) in tokens.iter().enumerate() {
            let text = match token {
                Token::Name(name) => {
                    let next = tokens
                        .get(at + 1..)
                        .unwrap_or_default()
                        .iter()
                        .find(|token| !matches!(token, Token::Space(_)));
                    let is_call = matches!(next, Some(Token::Sign(sign)) if sign == "(");
                    let is_argument = matches!(next, Some(Token::Sign(sign)) if sign == "=");
                    let is_part = matches!(before.as_str(), "." | "|" | "is" | "is not");
                    if is_part && before == "." && name == "rc" {
                        "code".to_owned()
                    } else if is_part || is_argument || WORDS.contains(&name.as_str()) {
                        name.clone()
                    } else if is_call {
                        return Err(format!("the function `{name}` has no counterpart"));
                    } else {
                        self.name(name)?
                    }
                }
                Token::Text(text) => quoted(text),
                Token::Number(text) | Token::Sign(text) | Token::Space(text) => text.clone(),
            };
            if !matches!(token, Token::Space(_)) {
                before = match token {
                    Token::Name(name) if name == "not" && before == "is" => "is not".to_owned(),
                    Token::Name(name) => name.clone(),
                    _ => text.clone(),
                };
            }
            out.push_str(&text);
        }
        Ok(out)
    }

    /// What a name stands for in a book.
    fn name(&mut self, name: &str) -> Result<String, String> {
        if name == "item" {
            return Ok(name.to_owned());
        }
        if let Some((_, fact)) = FACTS.iter().find(|(known, _)| *known == name) {
            return Ok((*fact).to_owned());
        }
        if self.registered.contains(name) {
            return Ok(format!("steps['{name}']"));
        }
        if self.vars.contains(name) {
            return Ok(format!("vars.{name}"));
        }
        let is_magic = [
            "hostvars",
            "groups",
            "group_names",
            "lookup",
            "query",
            "omit",
        ];
        if name.starts_with("ansible_") || is_magic.contains(&name) {
            return Err(format!("`{name}` has no counterpart"));
        }
        self.inputs.insert(name.to_owned());
        Ok(format!("inputs.{name}"))
    }
}

/// What comes after `is`: a test of a result. Gives it, and how many tokens it has.
fn test(out: &mut Vec<String>, rest: &[Token]) -> Result<(String, usize), String> {
    let (negated, word, taken) = match rest {
        [Token::Name(not), Token::Name(word), ..] if not == "not" => (true, word, 2),
        [Token::Name(word), ..] => (false, word, 1),
        _ => return Err("`is` has no test".to_owned()),
    };
    let known = RESULT_TESTS.iter().find(|(test, _)| test == word);
    let Some((_, cel)) = known else {
        return Err(format!("the test `is {word}` has no counterpart in CEL"));
    };
    let Some(subject) = out.pop().filter(|subject| subject.starts_with("steps[")) else {
        return Err(format!("`is {word}` needs the name of a result"));
    };
    let not = if negated { "!" } else { "" };
    Ok((format!("{not}({subject}{cel})"), taken))
}

/// `ansible_facts['os_family']` and `ansible_facts.os_family` by the older name.
fn facts_by_name(text: &str) -> String {
    let mut out = text.to_owned();
    for (name, _) in FACTS {
        let Some(short) = name.strip_prefix("ansible_") else {
            continue;
        };
        for form in [
            format!("ansible_facts['{short}']"),
            format!("ansible_facts[\"{short}\"]"),
        ] {
            out = out.replace(&form, name);
        }
        let dotted = format!("ansible_facts.{short}");
        let ends = |rest: &str| {
            !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
        };
        if let Some(at) = out.find(&dotted)
            && ends(out.get(at + dotted.len()..).unwrap_or_default())
        {
            out = out.replace(&dotted, name);
        }
    }
    out
}

/// A text that is compared with a fact of small letters.
fn small(out: &[String], text: &str) -> String {
    let is_compared = match out {
        [.., fact, sign] => SMALL.contains(&fact.as_str()) && (sign == "==" || sign == "!="),
        _ => false,
    };
    // `facts.os.family in ['Debian', …]`
    let fact = out.iter().rposition(|part| SMALL.contains(&part.as_str()));
    let is_listed = fact.is_some_and(|at| {
        let after: Vec<&str> = out[at + 1..].iter().map(String::as_str).collect();
        after.first() == Some(&"in") && !after.contains(&"]")
    });
    if is_compared || is_listed {
        text.to_ascii_lowercase()
    } else {
        text.to_owned()
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Parts of an expression with spaces where people expect them.
fn joined(parts: &[String]) -> String {
    let mut text = String::new();
    let mut before_is_name = false;
    for part in parts {
        // A bracket after a name is an index, and begins a list after anything else.
        let is_index = part == "[" && (before_is_name || text.ends_with([']', ')']));
        let is_tight = text.is_empty()
            || text.ends_with(['(', '[', '!', '.'])
            || matches!(part.as_str(), ")" | "]" | "," | ".")
            || is_index;
        if !is_tight {
            text.push(' ');
        }
        text.push_str(part);
        before_is_name = part != "in"
            && part.ends_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
    }
    text
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut found = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(&first) = letters.peek() {
        let mut taken = String::new();
        let mut take_while = |taken: &mut String, is_part: fn(char) -> bool| {
            while let Some(letter) = letters.next_if(|letter| is_part(*letter)) {
                taken.push(letter);
            }
        };
        if first.is_whitespace() {
            take_while(&mut taken, char::is_whitespace);
            found.push(Token::Space(taken));
        } else if first.is_ascii_alphabetic() || first == '_' {
            take_while(&mut taken, |letter| {
                letter.is_ascii_alphanumeric() || letter == '_'
            });
            found.push(Token::Name(taken));
        } else if first.is_ascii_digit() {
            take_while(&mut taken, |letter| {
                letter.is_ascii_digit() || letter == '.'
            });
            found.push(Token::Number(taken));
        } else if first == '\'' || first == '"' {
            letters.next();
            found.push(Token::Text(string(&mut letters, first)?));
        } else {
            letters.next();
            let pair = letters
                .peek()
                .map(|second| format!("{first}{second}"))
                .filter(|pair| matches!(pair.as_str(), "==" | "!=" | "<=" | ">=" | "//" | "**"));
            if pair.is_some() {
                letters.next();
            }
            found.push(Token::Sign(pair.unwrap_or_else(|| first.to_string())));
        }
    }
    Ok(found)
}

fn string(
    letters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    quote: char,
) -> Result<String, String> {
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.extend(letters.next()),
            letter if letter == quote => return Ok(text),
            letter => text.push(letter),
        }
    }
    Err("a text has no end".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names {
            vars: ["port".to_owned()].into(),
            registered: ["out".to_owned()].into(),
            inputs: BTreeSet::new(),
        }
    }

    #[test]
    fn conditions_become_cel() {
        for (jinja, cel) in [
            (
                "ansible_os_family == \"Debian\"",
                "facts.os.family == 'debian'",
            ),
            (
                "ansible_facts['os_family'] in ['Debian', 'RedHat']",
                "facts.os.family in ['debian', 'redhat']",
            ),
            (
                "port > 80 and not out.changed",
                "vars.port > 80 && !steps['out'].changed",
            ),
            (
                "out is changed or out.rc != 0",
                "(steps['out'].changed == true) || steps['out'].code != 0",
            ),
            ("out is not changed", "!(steps['out'].changed == true)"),
            ("fast | bool", "inputs.fast"),
            ("out.stdout | length > 0", "size(steps['out'].stdout) > 0"),
            ("(a == 'b\\'c')", "(inputs.a == 'b\\'c')"),
        ] {
            assert_eq!(names().condition(jinja).as_deref(), Ok(cel), "{jinja}");
        }
    }

    #[test]
    fn what_has_no_counterpart_is_told() {
        for (jinja, told) in [
            ("x is defined", "is defined"),
            ("x | default(3) == 3", "the filter `default`"),
            ("lookup('env', 'HOME') == 'x'", "the function `lookup`"),
            ("hostvars['a'].b", "`hostvars`"),
            ("'a' not in x", "`not in`"),
            ("x == 'a", "a text has no end"),
            ("", "empty"),
        ] {
            let error = names().condition(jinja).unwrap_err();
            assert!(error.contains(told), "{jinja}: {error}");
        }
    }

    #[test]
    fn names_in_templates_are_replaced() {
        let mut names = names();
        for (from, to) in [
            ("{{ port }}", "{{ vars.port }}"),
            (
                "a {{ item.name | upper }} {{ out.stdout }}",
                "a {{ item.name | upper }} {{ steps['out'].stdout }}",
            ),
            (
                "{{ zone | default('x', true) }}",
                "{{ inputs.zone | default('x', true) }}",
            ),
            ("{{ ansible_hostname }}", "{{ facts.hostname }}"),
            ("plain {x}", "plain {x}"),
        ] {
            assert_eq!(names.text(from).as_deref(), Ok(to));
        }
        assert!(names.inputs.contains("zone"));
        assert!(names.text("{% if x %}").is_err() && names.text("{{ x").is_err());
        assert!(names.text("{{ lookup('file', 'x') }}").is_err());
    }
}
