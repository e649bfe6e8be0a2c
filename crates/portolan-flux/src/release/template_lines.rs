//! The line of a template at which a rendered document begins.
//!
//! A template is cut at its `---` lines, as its output is:
//!
//! ```text
//! templates/web.yaml ──▶ part at line 1, part at line 30 ──▶ the part that has most lines in common with a document
//! ```
//!
//! Most templates have one part and need no comparison. A loop prints a part several times; if several parts match
//! equally well, each document takes the next one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::OnceLock;

use portolan_helm::Package;
use portolan_yaml::{Position, Text};

use crate::release::chart_places::names;

/// How many lines of a part are held against a document: its head tells it apart.
const COMPARED_LINES: usize = 24;

/// Where the documents of a chart's templates begin, found out when first asked for.
#[derive(Debug, Default)]
pub(crate) struct TemplateLines(OnceLock<BTreeMap<String, Vec<Part>>>);

/// What stands between two separators of a template.
#[derive(Debug)]
struct Part {
    line: u32,
    /// The first lines that are printed as they stand.
    literal: Vec<String>,
}

/// Finds the lines of one release's documents, in the order in which they were printed.
pub(crate) struct Finder<'a> {
    templates: &'a BTreeMap<String, Vec<Part>>,
    /// The part that a template's last document came from.
    last: HashMap<Text, usize>,
}

impl TemplateLines {
    pub(crate) fn finder(&self, package: &Package) -> Finder<'_> {
        let read = || {
            let mut templates = BTreeMap::new();
            read_templates(package, package.name(), &mut templates);
            templates
        };
        Finder {
            templates: self.0.get_or_init(read),
            last: HashMap::new(),
        }
    }
}

impl Finder<'_> {
    /// Where the document that a template printed begins in it.
    pub(crate) fn position(&mut self, template: &Text, document: &str) -> Position {
        let line = match self.templates.get(template.as_str()).map(Vec::as_slice) {
            None => 0,
            Some([only]) => only.line,
            Some(parts) => self
                .best(template, parts, document)
                .map_or(0, |part| part.line),
        };
        Position {
            line,
            column: u32::from(line > 0),
        }
    }

    fn best<'a>(&mut self, template: &Text, parts: &'a [Part], document: &str) -> Option<&'a Part> {
        let lines: HashSet<&str> = document.lines().map(str::trim).collect();
        // Of parts with as many lines in common, the one that lacks fewest.
        let alike = |part: &Part| {
            let literal = part.literal.iter();
            let in_common = literal.filter(|line| lines.contains(line.as_str())).count();
            (in_common, Reverse(part.literal.len()))
        };
        let most = parts.iter().map(alike).max();
        let best = || {
            parts
                .iter()
                .enumerate()
                .filter(|(_, part)| Some(alike(part)) == most)
        };
        let last = self.last.get(template).copied();
        let (at, part) = best()
            .find(|(at, _)| last < Some(*at))
            .or_else(|| best().next())?;
        self.last.insert(template.clone(), at);
        Some(part)
    }
}

/// Reads the templates of a chart and of those below it, by the names that their documents give as their source.
fn read_templates(package: &Package, path: &str, templates: &mut BTreeMap<String, Vec<Part>>) {
    for file in &package.templates {
        let text = String::from_utf8_lossy(&file.content);
        templates.insert(format!("{path}/{}", file.name), parts(&text));
    }
    for below in &package.subcharts {
        for name in names(package, below) {
            read_templates(below, &format!("{path}/charts/{name}"), templates);
        }
    }
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut begin = 0;
    let lines: Vec<&str> = text.lines().collect();
    for at in 0..=lines.len() {
        let ends = lines.get(at).is_none_or(|line| line.starts_with("---"));
        if ends {
            parts.extend(
                lines
                    .get(begin..at)
                    .and_then(|part| Part::read(part, begin)),
            );
            begin = at + 1;
        }
    }
    // One part by itself is compared with nothing.
    if let [only] = parts.as_mut_slice() {
        only.literal = Vec::new();
    }
    parts
}

impl Part {
    /// The part that some lines make; the first of them stands `above` lines below the top.
    fn read(lines: &[&str], above: usize) -> Option<Self> {
        let is_key = |line: &&str| line.starts_with(|first: char| first.is_ascii_alphabetic());
        let prints = |line: &&str| line.contains("include") || line.contains("template");
        let is_text = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
        let begins = lines.iter().position(is_key);
        let begins = begins.or_else(|| lines.iter().position(prints));
        let begins = begins.or_else(|| lines.iter().position(is_text))?;
        let literal = lines.iter().map(|line| line.trim());
        let literal = literal.filter(|line| !line.is_empty() && !line.contains("{{"));
        Some(Self {
            line: u32::try_from(above + begins + 1).unwrap_or(u32::MAX),
            literal: literal.take(COMPARED_LINES).map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(template: &str, documents: &[&str]) -> Vec<u32> {
        let templates = BTreeMap::from([("web/templates/all.yaml".to_owned(), parts(template))]);
        let mut finder = Finder {
            templates: &templates,
            last: HashMap::new(),
        };
        let name = Text::from_static("web/templates/all.yaml");
        let found = documents.iter();
        found
            .map(|document| finder.position(&name, document).line)
            .collect()
    }

    #[test]
    fn a_document_begins_at_its_first_key() {
        let template =
            "{{- if .Values.on }}\n# The service.\napiVersion: v1\nkind: Service\n{{- end }}\n";
        assert_eq!(lines(template, &["apiVersion: v1\nkind: Service"]), [3]);
    }

    #[test]
    fn a_template_that_only_includes_another_begins_where_it_does() {
        let template = "{{- $x := 1 }}\n{{ include \"common.all\" . }}\n";
        assert_eq!(lines(template, &["kind: Service"]), [2]);
    }

    #[test]
    fn documents_are_told_apart_by_their_lines() {
        let template = "kind: Service\nspec: {a: 1}\n---\nkind: ConfigMap\ndata: {}\n";
        let documents = ["kind: ConfigMap\ndata: {}", "kind: Service\nspec: {a: 1}"];
        assert_eq!(lines(template, &documents), [4, 1]);
    }

    #[test]
    fn documents_that_look_alike_are_taken_in_turn() {
        let template = "kind: Role\nname: {{ 1 }}\n---\nkind: Role\nname: {{ 2 }}\n";
        assert_eq!(
            lines(template, &["kind: Role\nname: 1", "kind: Role\nname: 2"]),
            [1, 4]
        );
    }

    #[test]
    fn a_loop_prints_one_part_many_times() {
        let template = "{{ range .Values.all }}\n---\nkind: Role\n{{ end }}\n";
        assert_eq!(lines(template, &["kind: Role", "kind: Role"]), [3, 3]);
    }
}
