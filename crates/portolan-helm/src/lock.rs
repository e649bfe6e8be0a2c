//! Compares `Chart.lock` with `Chart.yaml`: whether the lock is current, and what must be fetched into `charts/`.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::dependency::is_compatible;
use crate::package::{Dependency, Package};
use crate::storage;

/// A chart that has to be put into `charts/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// The chart's name.
    pub name: String,
    /// The locked version, or the range of `Chart.yaml` when there is no lock.
    pub version: String,
    /// Where it comes from: `https://…`, `oci://…`, `file://…`, `@name` or empty for `charts/` itself.
    pub repository: String,
}

/// Why dependencies cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// `Chart.yaml` was changed after the lock was written.
    #[error(
        "the lock file (Chart.lock) is out of sync with the dependencies file (Chart.yaml). Please update the dependencies"
    )]
    OutOfSync,
}

/// What `dependency build` fetches: the locked versions, or the ranges of `Chart.yaml` without a lock.
pub fn build_plan(chart: &Package) -> Result<Vec<Fetch>, LockError> {
    let listed = chart.metadata.dependencies.as_deref().unwrap_or_default();
    let Some(lock) = &chart.lock else {
        return Ok(listed.iter().map(fetch).collect());
    };
    // A v1 chart's lock may stem from Helm 2, whose digest covers less.
    let current = digest(listed, &lock.dependencies) == lock.digest
        || (chart.metadata.api_version == "v1" && digest_v2(listed) == lock.digest);
    if current {
        Ok(lock.dependencies.iter().map(fetch).collect())
    } else {
        Err(LockError::OutOfSync)
    }
}

/// Whether `charts/` already holds a chart that fits.
pub fn is_vendored(chart: &Package, wanted: &Fetch) -> bool {
    chart.subcharts.iter().any(|subchart| {
        subchart.name() == wanted.name && is_compatible(&wanted.version, &subchart.metadata.version)
    })
}

fn fetch(dependency: &Dependency) -> Fetch {
    Fetch {
        name: dependency.name.clone(),
        version: dependency.version.clone(),
        repository: dependency.repository.clone(),
    }
}

/// The digest a lock carries: of the dependencies as listed and as locked.
pub fn digest(listed: &[Dependency], locked: &[Dependency]) -> String {
    hash(&format!("[{},{}]", list(listed), list(locked)))
}

fn digest_v2(listed: &[Dependency]) -> String {
    hash(&format!("{{\"dependencies\":{}}}", list(listed)))
}

fn list(dependencies: &[Dependency]) -> String {
    let items: Vec<_> = dependencies.iter().map(dependency_json).collect();
    format!("[{}]", items.join(","))
}

/// One dependency as Go writes it: the struct's field order counts for the digest.
fn dependency_json(dependency: &Dependency) -> String {
    let json = storage::dependency(dependency);
    let fields = [
        "name",
        "version",
        "repository",
        "condition",
        "tags",
        "enabled",
        "import-values",
        "alias",
    ];
    let shown: Vec<_> = fields
        .iter()
        .filter_map(|field| Some(format!("\"{field}\":{}", go_escaped(json.get(field)?))))
        .collect();
    format!("{{{}}}", shown.join(","))
}

fn go_escaped(json: &serde_json::Value) -> String {
    json.to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mut text = "sha256:".to_owned();
    for byte in digest {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependency(version: &str) -> Dependency {
        Dependency {
            name: "mariadb".into(),
            version: version.into(),
            repository: "oci://registry.example/charts".into(),
            condition: "mariadb.enabled".into(),
            ..Dependency::default()
        }
    }

    /// The text that is hashed is the one Go's encoder writes.
    #[test]
    fn dependencies_are_written_in_gos_field_order() {
        assert_eq!(
            dependency_json(&dependency(">=1.0")),
            r#"{"name":"mariadb","version":"\u003e=1.0","repository":"oci://registry.example/charts","condition":"mariadb.enabled"}"#
        );
    }

    #[test]
    fn a_changed_list_is_out_of_sync() {
        let files = |range: &str, digest: &str| {
            let chart = format!(
                "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies:\n- {{name: mariadb, version: '{range}', repository: 'oci://registry.example/charts', condition: mariadb.enabled}}\n"
            );
            let lock = format!(
                "digest: {digest}\ngenerated: '2024-01-01T00:00:00Z'\ndependencies:\n- {{name: mariadb, version: 1.2.3, repository: 'oci://registry.example/charts'}}\n"
            );
            let file = |name: &str, text: String| {
                crate::package::ChartFile::new(name.to_owned(), text.as_bytes())
            };
            Package::from_files(vec![file("Chart.yaml", chart), file("Chart.lock", lock)]).unwrap()
        };
        let chart = files("1.x", "x");
        let locked = &chart.lock.as_ref().unwrap().dependencies;
        let right = digest(chart.metadata.dependencies.as_ref().unwrap(), locked);
        assert_eq!(
            build_plan(&files("1.x", &right)).unwrap()[0].version,
            "1.2.3"
        );
        assert_eq!(build_plan(&files("2.x", &right)), Err(LockError::OutOfSync));
    }
}
