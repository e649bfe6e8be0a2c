//! The audit's tables, compiled from the text files that people edit: lifecycles, field deprecations, migrations.
//!
//! The format of each file is described at its top.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// Makes the tables' source text.
pub(crate) fn generate() -> Result<String> {
    let mut text = String::from(
        "//! The audit's tables; made from `data/*.txt` by `cargo run -p xtask -- gen audit-table`.\n\n\
         use std::borrow::Cow::Borrowed;\n\n\
         use portolan_object::KubeVersion;\n\n\
         use crate::deprecation::{Deprecation, Part};\n\
         use crate::lifecycle::{Api, Basis, Lifecycle};\n\
         use crate::migration::{Change, ChangeKind, Migration};\n\
         use crate::release::Release;\n\n",
    );
    lifecycles(&mut text, &read("lifecycle.txt")?)?;
    deprecations(&mut text, &read("fields.txt")?)?;
    migrations(&mut text, &read("migrations.txt")?)?;
    text.push_str(
        "\n#[expect(clippy::unnecessary_wraps, reason = \"the rows' fields are optional\")]\n\
         const fn release(major: u32, minor: u32, patch: u32) -> Option<Release> {\n    \
         Some(Release::new(major, minor, patch))\n}\n",
    );
    Ok(text)
}

fn read(name: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../portolan-audit/data")
        .join(name);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// The lines that say something, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    numbered.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

// === Lifecycles ===

fn lifecycles(text: &mut String, data: &str) -> Result<()> {
    let mut component = "";
    let mut newest = String::new();
    let mut rows = Vec::new();
    for (number, line) in lines(data) {
        let place = || format!("lifecycle.txt:{number}");
        if let Some(release) = line.strip_prefix("newest=") {
            newest = release.replace('.', ", ");
            release_numbers(release).with_context(place)?;
        } else if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            component = name;
        } else {
            rows.push(lifecycle(component, line).with_context(place)?);
        }
    }
    ensure!(!newest.is_empty(), "lifecycle.txt names no newest release");
    rows.sort();
    let _ = write!(
        text,
        "pub(super) const NEWEST: KubeVersion = KubeVersion::new({newest});\n\n\
         /// Sorted by group, kind and version.\n#[rustfmt::skip]\n\
         pub(super) static LIFECYCLES: &[Lifecycle] = &[\n"
    );
    for (_, row) in rows {
        let _ = writeln!(text, "    {row}");
    }
    text.push_str("];\n\n");
    Ok(())
}

/// A row's sort key and its source text.
fn lifecycle(component: &str, line: &str) -> Result<([String; 3], String)> {
    let (name, words) = line.split_once(' ').unwrap_or((line, ""));
    let words = Words::read(words)?;
    let [group, version, kind] = api(name)?;
    let basis = match words.get("why") {
        Some("declared") | None => "Declared",
        Some("implied") => "Implied",
        Some("observed") => "Observed",
        Some(other) => bail!("`{other}` is no reason"),
    };
    let replacement = match words.get("use") {
        Some(name) => {
            let [group, version, kind] = api(name)?;
            format!("Some(Api::fixed({group:?}, {version:?}, {kind:?}))")
        }
        None => "None".to_owned(),
    };
    let namespaced = match words.get("scope") {
        Some("namespaced") => "Some(true)",
        Some("cluster") => "Some(false)",
        None => "None",
        Some(other) => bail!("`{other}` is no scope"),
    };
    let row = format!(
        "Lifecycle {{ component: Borrowed({component:?}), api: Api::fixed({group:?}, {version:?}, {kind:?}), \
         introduced: {}, deprecated: {}, removed: {}, basis: Basis::{basis}, replacement: {replacement}, \
         resource: Borrowed({:?}), namespaced: {namespaced}, note: Borrowed({:?}) }},",
        words.release("in")?,
        words.release("dep")?,
        words.release("out")?,
        words.get("as").unwrap_or_default(),
        words.get("note").unwrap_or_default(),
    );
    Ok(([group, kind, version], row))
}

/// Group, version and kind of `apps/v1/Deployment` or `v1/Pod`.
fn api(name: &str) -> Result<[String; 3]> {
    let parts: Vec<&str> = name.split('/').collect();
    Ok(match parts.as_slice() {
        [version, kind] => ["", version, kind].map(str::to_owned),
        [group, version, kind] => [*group, version, kind].map(str::to_owned),
        _ => bail!("`{name}` is not APIVERSION/KIND"),
    })
}

// === Fields ===

fn deprecations(text: &mut String, data: &str) -> Result<()> {
    text.push_str("#[rustfmt::skip]\npub(super) static DEPRECATIONS: &[Deprecation] = &[\n");
    for (number, line) in lines(data) {
        let row = deprecation(line).with_context(|| format!("fields.txt:{number}"))?;
        let _ = writeln!(text, "    {row}");
    }
    text.push_str("];\n\n");
    Ok(())
}

fn deprecation(line: &str) -> Result<String> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        word
    };
    let (what, place, path) = (word(), word(), word());
    let part = match what {
        "field" => "Part::Field".to_owned(),
        "annotation" => "Part::Annotation".to_owned(),
        "node-label" => "Part::NodeLabel".to_owned(),
        "value" => {
            ensure!(word() == "=", "a value follows `=`");
            format!("Part::Value({:?})", word())
        }
        other => bail!("`{other}` is nothing that can be deprecated"),
    };
    let words = Words::read(rest)?;
    Ok(format!(
        "Deprecation {{ part: {part}, place: {place:?}, path: {path:?}, deprecated: {}, nonfunctional: {}, \
         replacement: {:?}, note: {:?} }},",
        words.release("dep")?,
        words.release("out")?,
        words.get("use").unwrap_or_default(),
        words.get("note").unwrap_or_default(),
    ))
}

// === Migrations ===

fn migrations(text: &mut String, data: &str) -> Result<()> {
    text.push_str("#[rustfmt::skip]\npub(super) static MIGRATIONS: &[Migration] = &[\n");
    let mut open = false;
    for (number, line) in lines(data) {
        let place = || format!("migrations.txt:{number}");
        if let Some(change) = line.strip_prefix("  ") {
            ensure!(open, "{}: a change of nothing", place());
            let _ = writeln!(text, "        {}", change_row(change).with_context(place)?);
        } else {
            if open {
                text.push_str("    ] },\n");
            }
            open = true;
            let _ = writeln!(text, "    {}", migration_head(line).with_context(place)?);
        }
    }
    if open {
        text.push_str("    ] },\n");
    }
    text.push_str("];\n");
    Ok(())
}

fn migration_head(line: &str) -> Result<String> {
    let (kind, versions) = line.split_once(": ").context("no kind")?;
    let (from, to) = versions.split_once(" -> ").context("no new version")?;
    let from: Vec<&str> = from.split(", ").collect();
    Ok(format!(
        "Migration {{ kind: {kind:?}, from: &{from:?}, to: {to:?}, changes: &["
    ))
}

fn change_row(line: &str) -> Result<String> {
    let (word, rest) = line.split_once(' ').context("a change without a path")?;
    let kind = match word {
        "renamed" => "Renamed",
        "removed" => "Removed",
        "required" => "Required",
        "forbidden" => "Forbidden",
        "limited" => "Limited",
        "unique" => "Unique",
        "default" => "Default",
        "semantics" => "Semantics",
        other => bail!("`{other}` is no change"),
    };
    let split = rest.split_once(" => ").or_else(|| rest.split_once(" : "));
    let (path, to) = split.unwrap_or((rest, ""));
    Ok(format!(
        "Change {{ kind: ChangeKind::{kind}, path: {path:?}, to: {to:?} }},"
    ))
}

// === Words ===

/// `key=value` words; a value in quotes may hold spaces.
struct Words<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Words<'a> {
    fn read(text: &'a str) -> Result<Self> {
        let mut words = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (key, after) = rest.split_once('=').context("a word without `=`")?;
            let (value, after) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').context("a quote is not closed")?,
                None => after.split_once(' ').unwrap_or((after, "")),
            };
            words.push((key, value));
            rest = after.trim_start();
        }
        Ok(Self(words))
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        let word = self.0.iter().find(|(name, _)| *name == key);
        word.map(|(_, value)| *value)
    }

    fn release(&self, key: &str) -> Result<String> {
        Ok(match self.get(key) {
            Some(text) => format!("release({})", release_numbers(text)?),
            None => "None".to_owned(),
        })
    }
}

/// `1.29` as `1, 29, 0`.
fn release_numbers(text: &str) -> Result<String> {
    let numbers: Vec<u32> = text
        .split('.')
        .map(|part| {
            part.parse()
                .with_context(|| format!("`{text}` is no release"))
        })
        .collect::<Result<_>>()?;
    ensure!((2..=3).contains(&numbers.len()), "`{text}` is no release");
    let patch = numbers.get(2).copied().unwrap_or(0);
    Ok(format!("{}, {}, {patch}", numbers[0], numbers[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_may_hold_spaces() {
        let words = Words::read("dep=1.8 use=\"a CSI driver\" out=1.16").unwrap();
        assert_eq!(words.get("use"), Some("a CSI driver"));
        assert_eq!(words.release("out").unwrap(), "release(1, 16, 0)");
        assert_eq!(words.release("in").unwrap(), "None");
    }
}
