//! The path of a file of variables, in which names stand for what is known of a node.
//!
//! Each part between two `/` is filled in by itself, and what a node says of itself fills in a piece of one name only: it
//! leads to no other directory.

use std::fmt;

use serde_json::Value as Json;

/// The most names that a path has.
const MAX_NAMES: usize = 20;

/// The longest name that a path has after it was filled in, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// What a path can be filled in with.
const ROOTS: [&str; 2] = ["facts", "node"];

/// The path of a file of variables, such as `vars/{{ facts.os.id }}.yaml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariablePath {
    segments: Vec<Vec<PathPiece>>,
}

/// A part of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathPiece {
    Text(String),
    /// A value of a node, as in `facts.os.id`.
    Name(Vec<String>),
}

impl VariablePath {
    /// Reads a path.
    ///
    /// ```
    /// use portolan_trigger::VariablePath;
    /// use serde_json::json;
    ///
    /// let path = VariablePath::parse("vars/{{ facts.os.id }}.yaml")?.beside("shop/variables.yaml")?;
    /// let filled = path.of_node(&json!({"os": {"id": "debian"}}), &json!({"name": "web-1"}))?;
    /// assert_eq!(filled, "shop/vars/debian.yaml");
    /// assert!(path.fits("shop/vars/fedora.yaml") && !path.fits("shop/vars/a/b.yaml"));
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// A sentence without its subject when it is no path below a directory, or names what is not known of a node.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return Err("must begin beside the file that the Variable is in, not with `/`".into());
        }
        if text.contains(['\\', '\0']) || text.contains("{%") || text.contains("{#") {
            return Err("must be names, `/` and `{{ … }}` only".into());
        }
        let segments: Vec<Vec<PathPiece>> = split(text)?
            .into_iter()
            .map(pieces)
            .collect::<Result<_, _>>()?;
        if segments.len() > MAX_NAMES {
            return Err(format!("must have at most {MAX_NAMES} names"));
        }
        let is_up = |segment: &Vec<PathPiece>| *segment == [PathPiece::Text("..".to_owned())];
        let is_inside = segments.iter().skip_while(|segment| is_up(segment));
        if is_inside.clone().any(is_up) || is_inside.count() == 0 {
            return Err("may have `..` at its beginning only".into());
        }
        Ok(Self { segments })
    }

    /// The same path from the root of a repository. `file` is where the Variable is in it.
    ///
    /// # Errors
    /// When it leads out of the repository.
    pub fn beside(&self, file: &str) -> Result<Self, String> {
        let mut directory: Vec<&str> = file.split('/').filter(|name| !name.is_empty()).collect();
        directory.pop();
        let mut segments: Vec<Vec<PathPiece>> = directory
            .into_iter()
            .map(|name| vec![PathPiece::Text(name.to_owned())])
            .collect();
        for segment in &self.segments {
            if *segment != [PathPiece::Text("..".to_owned())] {
                segments.push(segment.clone());
            } else if segments.pop().is_none() {
                return Err(format!("`{self}` leads out of the repository"));
            }
        }
        Ok(Self { segments })
    }

    /// The path for a node.
    ///
    /// # Errors
    /// When something that the path names is not known of the node, or cannot be a part of a name.
    pub fn of_node(&self, facts: &Json, node: &Json) -> Result<String, String> {
        let mut names = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            let mut name = String::new();
            for piece in segment {
                match piece {
                    PathPiece::Text(text) => name.push_str(text),
                    PathPiece::Name(path) => name.push_str(&value_of(path, facts, node)?),
                }
            }
            let is_filled = segment
                .iter()
                .any(|piece| matches!(piece, PathPiece::Name(_)));
            if is_filled && (name.starts_with('.') || name.len() > MAX_NAME_BYTES) {
                return Err(format!(
                    "`{self}`: `{}` is no name of a file",
                    name.escape_debug()
                ));
            }
            names.push(name);
        }
        Ok(names.join("/"))
    }

    /// Whether it can be the path of some node.
    pub fn fits(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        names.len() == self.segments.len()
            && self
                .segments
                .iter()
                .zip(names)
                .all(|(segment, name)| segment_fits(segment, name))
    }

    /// Whether it is another one for each node, as `{{ node.name }}` is in it.
    pub fn is_of_one_node(&self) -> bool {
        let mut pieces = self.segments.iter().flatten();
        pieces.any(|piece| matches!(piece, PathPiece::Name(path) if *path == ["node", "name"]))
    }
}

impl fmt::Display for VariablePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.segments.iter().enumerate() {
            if index > 0 {
                out.write_str("/")?;
            }
            for piece in segment {
                match piece {
                    PathPiece::Text(text) => out.write_str(text)?,
                    PathPiece::Name(path) => write!(out, "{{{{ {} }}}}", path.join("."))?,
                }
            }
        }
        Ok(())
    }
}

/// The parts between two `/`; one inside of braces is no border.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut rest) = (Vec::new(), 0, text);
    while let Some(at) = rest.find(['/', '{']) {
        let here = text.len() - rest.len() + at;
        let tail = rest.get(at..).unwrap_or_default();
        if let Some(inner) = tail.strip_prefix("{{") {
            let end = inner.find("}}").ok_or("has `{{` without `}}`")?;
            rest = inner.get(end + 2..).unwrap_or_default();
        } else if let Some(behind) = tail.strip_prefix('/') {
            parts.push(text.get(start..here).unwrap_or_default());
            start = here + 1;
            rest = behind;
        } else {
            return Err("has a `{` that is not part of `{{ … }}`".into());
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    Ok(parts)
}

fn pieces(segment: &str) -> Result<Vec<PathPiece>, String> {
    if segment.is_empty() || segment == "." {
        return Err("must have a name between every two `/`".into());
    }
    let (mut pieces, mut rest) = (Vec::new(), segment);
    while let Some((before, tail)) = rest.split_once("{{") {
        if !before.is_empty() {
            pieces.push(PathPiece::Text(before.to_owned()));
        }
        let (inner, behind) = tail.split_once("}}").ok_or("has `{{` without `}}`")?;
        pieces.push(PathPiece::Name(named(inner)?));
        rest = behind;
    }
    if rest.contains("}}") {
        return Err("has `}}` without `{{`".into());
    }
    if !rest.is_empty() {
        pieces.push(PathPiece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

fn named(inner: &str) -> Result<Vec<String>, String> {
    let path: Vec<String> = inner.trim().split('.').map(str::to_owned).collect();
    let is_word = |word: &String| {
        let mut letters = word.bytes();
        !word.is_empty()
            && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-'))
    };
    let is_known = path
        .first()
        .is_some_and(|root| ROOTS.contains(&root.as_str()));
    if !is_known || path.len() < 2 || !path.iter().all(is_word) {
        let shown = inner.trim();
        return Err(format!(
            "has `{{{{ {shown} }}}}`, and only names such as `facts.os.id`, `node.name` and `node.labels.role` can be filled in"
        ));
    }
    Ok(path)
}

fn value_of(path: &[String], facts: &Json, node: &Json) -> Result<String, String> {
    let shown = path.join(".");
    let (root, keys) = path
        .split_first()
        .map_or(("", path), |(root, keys)| (root.as_str(), keys));
    let above = if root == "facts" { facts } else { node };
    let found = keys.iter().try_fold(above, |value, key| value.get(key));
    let text = match found {
        Some(Json::String(text)) => text.clone(),
        Some(value @ (Json::Number(_) | Json::Bool(_))) => value.to_string(),
        None | Some(Json::Null) => return Err(format!("`{shown}` is not known of the node")),
        Some(_) => return Err(format!("`{shown}` of the node is no text")),
    };
    let is_plain = |letter: char| !letter.is_control() && !matches!(letter, '/' | '\\');
    if text.is_empty() || text.len() > MAX_NAME_BYTES || !text.chars().all(is_plain) {
        let text: String = text.chars().take(80).collect();
        return Err(format!(
            "`{shown}` of the node is `{}`, which is no part of the name of a file",
            text.escape_debug()
        ));
    }
    Ok(text)
}

/// Whether a name is what a segment can become: names that are filled in stand for anything that is not empty.
fn segment_fits(segment: &[PathPiece], name: &str) -> bool {
    // How many letters at least stand for what is filled in before the next text.
    let (mut rest, mut filled) = (name, 0);
    for (index, piece) in segment.iter().enumerate() {
        let PathPiece::Text(text) = piece else {
            filled += 1;
            continue;
        };
        let is_last = index + 1 == segment.len();
        let start = rest
            .char_indices()
            .map(|(at, _)| at)
            .chain([rest.len()])
            .nth(filled);
        let Some(tail) = start.and_then(|start| rest.get(start..)) else {
            return false;
        };
        rest = if filled == 0 {
            match tail.strip_prefix(text.as_str()) {
                Some(behind) => behind,
                None => return false,
            }
        } else if is_last {
            return tail.ends_with(text.as_str());
        } else {
            match tail.split_once(text.as_str()) {
                Some((_, behind)) => behind,
                None => return false,
            }
        };
        filled = 0;
    }
    if filled == 0 {
        rest.is_empty()
    } else {
        rest.chars().count() >= filled
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_is_filled_in_with_what_is_known_of_a_node() {
        let facts =
            json!({"os": {"id": "debian", "version": 12}, "bad": "../../etc", "dot": ".ssh"});
        let node = json!({"name": "web-1", "labels": {"role": "web"}});
        let path = |text: &str| {
            let path = VariablePath::parse(text).and_then(|path| path.beside("a/b/vars.yaml"));
            path.and_then(|path| path.of_node(&facts, &node))
        };
        let known = [
            ("all.yaml", "a/b/all.yaml"),
            ("../v/{{ facts.os.id }}.yaml", "a/v/debian.yaml"),
            (
                "{{facts.os.id}}-{{ facts.os.version }}/x.yaml",
                "a/b/debian-12/x.yaml",
            ),
            ("nodes/{{ node.name }}.yaml", "a/b/nodes/web-1.yaml"),
            ("{{ node.labels.role }}", "a/b/web"),
        ];
        for (text, expected) in known {
            assert_eq!(path(text).as_deref(), Ok(expected), "{text}");
        }
        let refused = [
            ("/etc/passwd", "not with `/`"),
            ("../../../x", "leads out of the repository"),
            ("a/../b", "`..` at its beginning only"),
            ("..", "`..` at its beginning only"),
            ("a//b", "between every two `/`"),
            ("", "between every two `/`"),
            ("{% if x %}", "names, `/` and `{{ … }}` only"),
            ("{{ facts.os.id", "`{{` without `}}`"),
            ("a}}", "`}}` without `{{`"),
            ("{{ vars.x }}", "can be filled in"),
            ("{{ facts }}", "can be filled in"),
            ("{{ facts.os.id | upper }}", "can be filled in"),
            ("{{ facts.none }}", "`facts.none` is not known of the node"),
            ("{{ facts.os }}", "is no text"),
            ("{{ facts.bad }}", "no part of the name of a file"),
            ("{{ facts.dot }}", "is no name of a file"),
        ];
        for (text, expected) in refused {
            let why = path(text).expect_err(text);
            assert!(why.contains(expected), "{text}: {why}");
        }
    }

    #[test]
    fn the_files_of_all_nodes_are_known_by_their_names() {
        let path = VariablePath::parse("v/{{ facts.os.id }}-{{ node.name }}.yaml").expect("a path");
        assert!(path.is_of_one_node());
        for (file, fits) in [
            ("v/debian-web-1.yaml", true),
            ("v/-web.yaml", false),
            ("v/debian-.yaml", false),
            ("v/x/debian-web.yaml", false),
            ("debian-web.yaml", false),
        ] {
            assert_eq!(path.fits(file), fits, "{file}");
        }
        assert_eq!(path.to_string(), "v/{{ facts.os.id }}-{{ node.name }}.yaml");
    }
}
