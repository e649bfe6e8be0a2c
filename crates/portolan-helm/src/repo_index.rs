//! `index.yaml`: the charts of a repository, and which version a range selects.

use portolan_semver::{Constraints, Version};

use crate::package::decode::{Fields, read_yaml};

/// The charts of a repository.
#[derive(Debug, Clone, Default)]
pub struct RepoIndex {
    charts: Vec<(String, Vec<IndexEntry>)>,
}

/// One version of one chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// The chart's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The version of what it installs.
    pub app_version: String,
    /// Where its archive is; relative addresses start at the repository's.
    pub urls: Vec<String>,
    /// The archive's SHA-256, or empty.
    pub digest: String,
    /// When it was made, as written.
    pub created: String,
    /// Whether its authors advise against it.
    pub deprecated: bool,
}

/// Why no chart was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The index is not YAML, or not an index.
    #[error("cannot read the repository index: {0}")]
    Unreadable(String),
    /// The repository has no chart of that name.
    #[error("no chart name found")]
    NoChart,
    /// The range cannot be read.
    #[error("improper constraint: {0}")]
    BadRange(String),
    /// No version lies in the range.
    #[error("no chart version found for {name}-{range}")]
    NoVersion {
        /// The chart.
        name: String,
        /// The range asked for.
        range: String,
    },
}

impl RepoIndex {
    /// Reads an index; entries without a readable version are left out, as Helm does.
    pub fn parse(text: &[u8]) -> Result<Self, IndexError> {
        Self::read(text).map_err(IndexError::Unreadable)
    }

    fn read(text: &[u8]) -> Result<Self, String> {
        let node = read_yaml(&text.into())?;
        let fields = Fields::of(&node, "repo.IndexFile")?;
        if fields.text("apiVersion")?.is_empty() {
            return Err("no API version specified".to_owned());
        }
        let mut charts = Vec::new();
        let entries = fields.node("entries").and_then(|entries| entries.as_map());
        for entry in entries.into_iter().flatten() {
            let name = entry.key.as_str();
            let versions = entry.value.as_list().into_iter().flatten();
            let mut versions = versions
                .filter(|version| !version.is_null())
                .map(|version| IndexEntry::read(&Fields::of(version, "repo.ChartVersion")?, name))
                .collect::<Result<Vec<_>, String>>()?;
            versions.retain(|entry| Version::parse(&entry.version).is_ok());
            versions.sort_by(newest_first);
            charts.push((name.to_owned(), versions));
        }
        Ok(Self { charts })
    }

    /// The names of all charts, in the order of the index.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.charts.iter().map(|(name, _)| name.as_str())
    }

    /// The versions of a chart, newest first.
    pub fn versions(&self, name: &str) -> Option<&[IndexEntry]> {
        let found = self.charts.iter().find(|(chart, _)| chart == name)?;
        Some(&found.1)
    }

    /// Finds a chart: the exact version where it is there, else the newest in the range; an empty range means the
    /// newest that is no pre-release.
    pub fn find(&self, name: &str, range: &str) -> Result<&IndexEntry, IndexError> {
        let versions = self.versions(name).filter(|versions| !versions.is_empty());
        let versions = versions.ok_or(IndexError::NoChart)?;
        if let Some(exact) = versions.iter().find(|entry| entry.version == range) {
            return Ok(exact);
        }
        let wanted = if range.is_empty() { "*" } else { range };
        let constraints =
            Constraints::parse(wanted).map_err(|_| IndexError::BadRange(range.to_owned()))?;
        let fits = |entry: &&IndexEntry| {
            Version::parse(&entry.version).is_ok_and(|version| constraints.check(&version))
        };
        versions
            .iter()
            .find(fits)
            .ok_or_else(|| IndexError::NoVersion {
                name: name.to_owned(),
                range: range.to_owned(),
            })
    }
}

fn newest_first(a: &IndexEntry, b: &IndexEntry) -> std::cmp::Ordering {
    match (Version::parse(&a.version), Version::parse(&b.version)) {
        (Ok(a_version), Ok(b_version)) => b_version
            .cmp(&a_version)
            .then_with(|| b.created.cmp(&a.created)),
        _ => std::cmp::Ordering::Equal,
    }
}

impl IndexEntry {
    fn read(fields: &Fields<'_>, name: &str) -> Result<Self, String> {
        let own = fields.text("name")?;
        Ok(Self {
            name: if own.is_empty() { name.to_owned() } else { own },
            version: fields.text("version")?,
            app_version: fields.text("appVersion")?,
            urls: fields.texts("urls")?,
            digest: fields.text("digest")?,
            created: fields.text("created")?,
            deprecated: fields.bool("deprecated")?,
        })
    }

    /// The archive's address, made absolute by the repository's.
    pub fn url(&self, repository: &str) -> Option<String> {
        let url = self.urls.first()?;
        if url.contains("://") {
            return Some(url.clone());
        }
        if let Some(path) = url.strip_prefix('/') {
            let after_scheme = repository.find("://").map_or(0, |at| at + 3);
            let host_end = repository
                .get(after_scheme..)
                .and_then(|rest| rest.find('/'))
                .map_or(repository.len(), |at| after_scheme + at);
            return Some(format!("{}/{path}", repository.get(..host_end)?));
        }
        Some(format!("{}/{url}", repository.trim_end_matches('/')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "apiVersion: v1
entries:
  web:
  - {version: 1.2.0, urls: [web-1.2.0.tgz], created: '2024-01-01T00:00:00Z'}
  - {version: 2.0.0-rc.1, urls: [https://example.com/x.tgz]}
  - {version: 1.10.0, urls: [/charts/web-1.10.0.tgz]}
  - {version: nonsense}
";

    #[test]
    fn the_newest_of_a_range_is_found() {
        let index = RepoIndex::parse(INDEX.as_bytes()).unwrap();
        let find = |range| index.find("web", range).map(|entry| entry.version.as_str());
        assert_eq!(find(""), Ok("1.10.0"));
        assert_eq!(find("~1.2"), Ok("1.2.0"));
        assert_eq!(find(">0.0.0-0"), Ok("2.0.0-rc.1"));
        assert_eq!(find("1.2.0"), Ok("1.2.0"));
        assert!(matches!(find(">3"), Err(IndexError::NoVersion { .. })));
        assert_eq!(index.find("db", ""), Err(IndexError::NoChart));
    }

    #[test]
    fn addresses_are_made_absolute() {
        let index = RepoIndex::parse(INDEX.as_bytes()).unwrap();
        let url = |range| index.find("web", range).unwrap().url("https://h/r/");
        assert_eq!(url("1.2.0").unwrap(), "https://h/r/web-1.2.0.tgz");
        assert_eq!(url("1.10.0").unwrap(), "https://h/charts/web-1.10.0.tgz");
        assert_eq!(url("2.0.0-rc.1").unwrap(), "https://example.com/x.tgz");
    }
}
