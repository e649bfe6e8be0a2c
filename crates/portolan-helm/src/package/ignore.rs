//! `.helmignore`: which files of a chart directory are not part of the chart.
//!
//! The rules look like git's but differ: they are tried in order and the first that decides wins, a negated rule
//! ignores everything it does *not* match, and `**` is an error. A pattern without a slash is compared with the last
//! part of the path only.

use portolan_go::wildcard;

/// The rules of one `.helmignore` file and Helm's own rule for hidden files in `templates/`.
#[derive(Debug)]
pub(crate) struct IgnoreRules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    pattern: Pattern,
    /// A pattern with a slash is compared with the whole path.
    whole_path: bool,
    negated: bool,
    directories_only: bool,
}

/// Nearly every rule is a plain name or `*.ending`: no need to walk those letter by letter.
#[derive(Debug)]
enum Pattern {
    Name(String),
    /// What stands behind the star, and the whole of it.
    Ending(String, String),
    /// What stands before the first sign with a meaning, and the whole of it.
    Wildcard(String, String),
}

impl IgnoreRules {
    /// Reads the rules; an empty text is the file that is not there.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.lines().chain(["templates/.?*"]);
        let rules = lines
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(Rule::parse)
            .collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }

    /// Whether the file or directory at this path below the chart is left out.
    pub(crate) fn ignores(&self, path: &str, is_directory: bool) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        for rule in &self.rules {
            let fits = rule
                .pattern
                .matches(if rule.whole_path { path } else { name });
            if rule.negated {
                if (rule.directories_only && !is_directory) || !fits {
                    return true;
                }
            } else if fits && (is_directory || !rule.directories_only) {
                return true;
            }
        }
        false
    }
}

impl Rule {
    fn parse(line: &str) -> Result<Self, String> {
        if line.contains("**") {
            return Err("double-star (**) syntax is not supported".to_owned());
        }
        if wildcard::matches(line, "abc").is_err() {
            return Err("syntax error in pattern".to_owned());
        }
        let (negated, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (directories_only, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        Ok(Self {
            whole_path: line.contains('/'),
            pattern: Pattern::new(line.strip_prefix('/').unwrap_or(line)),
            negated,
            directories_only,
        })
    }
}

impl Pattern {
    fn new(text: &str) -> Self {
        match text.strip_prefix('*') {
            _ if is_plain(text) => Self::Name(text.to_owned()),
            Some(ending) if is_plain(ending) => Self::Ending(ending.to_owned(), text.to_owned()),
            _ => {
                let plain = text.split(SIGNS).next().unwrap_or_default();
                Self::Wildcard(plain.to_owned(), text.to_owned())
            }
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(wanted) => wanted == name,
            Self::Ending(ending, _) if !name.contains('/') => name.ends_with(ending),
            Self::Wildcard(start, _) if !name.starts_with(start) => false,
            Self::Ending(_, whole) | Self::Wildcard(_, whole) => {
                wildcard::matches(whole, name).unwrap_or(false)
            }
        }
    }
}

/// What has a meaning in a pattern.
const SIGNS: [char; 4] = ['*', '?', '[', '\\'];

fn is_plain(pattern: &str) -> bool {
    !pattern.contains(SIGNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignored(rules: &str, path: &str, is_directory: bool) -> bool {
        IgnoreRules::parse(rules)
            .unwrap()
            .ignores(path, is_directory)
    }

    #[test]
    fn a_pattern_without_a_slash_looks_at_the_last_part_only() {
        assert!(ignored("*.swp", "templates/a.swp", false));
        assert!(!ignored("/a.swp", "templates/a.swp", false));
        assert!(ignored("/a.swp", "a.swp", false));
        assert!(ignored("templates/*.swp", "templates/a.swp", false));
    }

    #[test]
    fn a_slash_at_the_end_means_directories() {
        assert!(ignored("docs/", "docs", true));
        assert!(!ignored("docs/", "docs", false));
    }

    #[test]
    fn hidden_files_in_templates_are_always_ignored() {
        assert!(ignored("", "templates/.x", false));
        assert!(!ignored("", ".x", false));
    }

    #[test]
    fn a_negated_rule_ignores_all_it_does_not_match() {
        assert!(ignored("!keep.txt", "other.txt", false));
        assert!(!ignored("!keep.txt", "keep.txt", false));
    }

    #[test]
    fn double_stars_are_refused() {
        assert!(IgnoreRules::parse("a/**").is_err());
    }
}
