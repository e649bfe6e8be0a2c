//! Documents written for somebody who has none: of what lies in a directory, or of another tool's file.

mod directory;
mod skaffold;

use std::fmt::Write as _;

pub use directory::{DraftError, draft_of_directory};
pub use skaffold::{SkaffoldError, draft_of_skaffold};

use crate::document::{API_VERSION, KIND};

/// A document that was made up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The document.
    pub text: String,
    /// How many artifacts it has.
    pub artifacts: usize,
    /// What somebody should look at.
    pub notes: Vec<String>,
    /// Whether everything that was there is in it.
    pub is_whole: bool,
}

/// An artifact of a draft: its name and image, and its part of the document, in lines.
struct DraftArtifact {
    name: String,
    image: String,
    needs: Vec<String>,
    /// `dockerfile:` and what is below it, not indented.
    source: Vec<String>,
}

/// Writes a document.
fn document(name: &str, artifacts: &[DraftArtifact], parts: &[(&str, Vec<String>)]) -> String {
    let name = quoted(name);
    let mut text = format!(
        "apiVersion: {API_VERSION}\nkind: {KIND}\nmetadata: {{name: {name}}}\nspec:\n  artifacts:\n"
    );
    for artifact in artifacts {
        let (name, image) = (quoted(&artifact.name), quoted(&artifact.image));
        let _ = writeln!(text, "  - name: {name}\n    image: {image}");
        if !artifact.needs.is_empty() {
            let needs: Vec<String> = artifact.needs.iter().map(|need| quoted(need)).collect();
            let _ = writeln!(text, "    needs: [{}]", needs.join(", "));
        }
        for line in &artifact.source {
            let _ = writeln!(text, "    {line}");
        }
    }
    for (part, lines) in parts {
        let _ = writeln!(text, "  {part}:");
        for line in lines {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// A text as it stands in YAML: bare if nothing in it could be anything else.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./-".contains(letter);
    let begins_well = text.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_word = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
        .contains(&text.to_ascii_lowercase().as_str());
    // What looks like a variable is none here.
    let text = text.replace("${", "$${");
    if begins_well && text.chars().all(is_plain) && !is_word {
        return text;
    }
    serde_json::Value::from(text).to_string()
}

/// A name for an artifact, of any text.
fn plain_name(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let name: String = text
        .chars()
        .map(|letter| if is_plain(letter) { letter } else { '-' })
        .take(63)
        .collect();
    let name = name.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    if name.is_empty() {
        "artifact".to_owned()
    } else {
        name.to_ascii_lowercase()
    }
}

/// Makes names unique by numbers.
fn unique(name: &str, taken: &[DraftArtifact]) -> String {
    let is_taken = |name: &str| taken.iter().any(|artifact| artifact.name == name);
    let mut unique = name.to_owned();
    let mut number = 2;
    while is_taken(&unique) {
        unique = format!("{name}-{number}");
        number += 1;
    }
    unique
}
