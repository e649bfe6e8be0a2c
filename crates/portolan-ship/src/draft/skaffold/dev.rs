//! What Skaffold does while somebody works: files copied into pods, ports forwarded.

use portolan_yaml::Node;

use super::{Conversion, entries, items, quoted, scalar, word};

/// The parts of `dev`.
#[derive(Default)]
pub(super) struct DevLines {
    sync: Vec<String>,
    forward: Vec<String>,
}

// === impl DevLines ===

impl DevLines {
    /// The lines below `dev:`.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (key, rules) in [("sync:", &self.sync), ("forward:", &self.forward)] {
            if !rules.is_empty() {
                lines.push(format!("  {key}"));
                lines.extend(rules.iter().map(|rule| format!("  {rule}")));
            }
        }
        lines
    }
}

// === impl Conversion ===

impl Conversion {
    /// The rules of an artifact for files that are copied into its pods.
    pub(super) fn sync(&mut self, sync: &Node, artifact: &str, path: &str) {
        for (key, value) in entries(sync) {
            if key != "manual" {
                self.lost(format!("`{path}.{key}` (line {})", value.at.line));
                continue;
            }
            for rule in items(value) {
                match sync_rule(rule, artifact) {
                    Some(line) => self.dev.sync.push(line),
                    None => self.lost(format!("a rule of `{path}.manual` (line {})", rule.at.line)),
                }
            }
        }
    }

    pub(super) fn port_forward(&mut self, list: &Node) {
        for rule in items(list) {
            match forward_rule(rule) {
                Some(line) => self.dev.forward.push(line),
                None => self.lost(format!("a rule of `portForward` (line {})", rule.at.line)),
            }
        }
    }
}

/// Skaffold keeps the path below `dest` but for what `strip` takes from its beginning; ours replaces what is before the first
/// wildcard. `None` if no such rule does the same.
fn sync_rule(rule: &Node, artifact: &str) -> Option<String> {
    let (src, dest) = (word(rule, "src")?, word(rule, "dest")?);
    let strip = word(rule, "strip").unwrap_or_default();
    // Up to the last directory that has no wildcard in it.
    let fixed = src.split(['*', '?', '[']).next()?;
    let fixed = fixed.rsplit_once('/').map_or("", |(fixed, _)| fixed);
    let strip = strip.trim_end_matches('/');
    let kept = match fixed.strip_prefix(strip)? {
        "" => "",
        rest if strip.is_empty() => rest,
        rest => rest.strip_prefix('/')?,
    };
    // A relative place is below the container's directory, which is not known here.
    if !dest.starts_with('/') || src.contains('{') {
        return None;
    }
    let dest = dest.trim_end_matches('/');
    let to = match kept {
        "" if dest.is_empty() => "/".to_owned(),
        "" => dest.to_owned(),
        kept => format!("{dest}/{kept}"),
    };
    let (artifact, src, to) = (quoted(artifact), quoted(src), quoted(&to));
    Some(format!("- {{artifact: {artifact}, from: {src}, to: {to}}}"))
}

fn forward_rule(rule: &Node) -> Option<String> {
    let kind = word(rule, "resourceType")?.to_ascii_lowercase();
    let resource = format!("{kind}/{}", word(rule, "resourceName")?);
    portolan_cluster::PodTarget::parse("", &resource)?;
    let number = |key: &str| rule.get(key).map(|node| scalar(node)?.parse::<u16>().ok());
    let port = number("port")??;
    let mut fields = vec![
        format!("resource: {}", quoted(&resource)),
        format!("port: {port}"),
    ];
    if let Some(namespace) = word(rule, "namespace") {
        fields.push(format!("namespace: {}", quoted(namespace)));
    }
    if let Some(local) = number("localPort") {
        fields.push(format!("local: {}", local?));
    }
    let is_elsewhere = word(rule, "address").is_some_and(|it| it != "127.0.0.1");
    (!is_elsewhere).then(|| format!("- {{{}}}", fields.join(", ")))
}
