//! The kinds that each Kubernetes release serves, from a table generated from its `swagger.json` documents.

mod table;

use crate::gvk::Gvk;
use crate::kind::version::KubeVersion;
use table::ROWS;

pub(crate) use table::RELEASES;

/// Whether the objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Each object is in a namespace.
    Namespaced,
    /// Objects belong to the whole cluster.
    Cluster,
}

/// A kind that a release serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// The group; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The plural name in the API's paths.
    pub resource: &'static str,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
    /// Whether the release serves it without being told to. Alpha versions, and beta versions since 1.24, are off;
    /// only `flowcontrol.apiserver.k8s.io/v1beta3` was exempt.
    pub on_by_default: bool,
}

/// A kind and the minor releases of Kubernetes 1 that serve it.
#[derive(Debug)]
struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    resource: &'static str,
    scope: Scope,
    since: u32,
    until: u32,
}

/// Every kind that a release serves with all API groups switched on, sorted by group, version and kind.
///
/// The table knows 1.29 to 1.36; an older release answers as the oldest, a newer one as the newest.
///
/// ```
/// use portolan_object::served;
///
/// let mut kinds = served("1.36".parse()?);
/// assert!(kinds.any(|kind| (kind.group, kind.version, kind.kind) == ("apps", "v1", "Deployment")));
/// # Ok::<(), portolan_object::KubeVersionError>(())
/// ```
pub fn served(release: KubeVersion) -> impl Iterator<Item = Served> {
    let minor = release.nearest_known().minor;
    ROWS.iter()
        .filter(move |row| (row.since..=row.until).contains(&minor))
        .map(Row::served)
}

/// The first known release that serves a kind without being told to; `None` if none does.
pub fn first_served(gvk: &Gvk) -> Option<KubeVersion> {
    let rows = ROWS.iter().filter(|row| {
        gvk.is(row.group, row.kind) && gvk.version == row.version && row.on_by_default()
    });
    let since = rows.map(|row| row.since).min()?;
    Some(KubeVersion::new(1, since))
}

/// The scope of a kind in whichever release served it; a version nobody served has that of the kind's other versions.
pub(crate) fn served_scope(gvk: &Gvk) -> Option<Scope> {
    let of_kind = || ROWS.iter().filter(|row| gvk.is(row.group, row.kind));
    of_kind()
        .find(|row| gvk.version == row.version)
        .or_else(|| of_kind().next())
        .map(|row| row.scope)
}

/// Group, kind and plural name of everything that some release serves; a kind is repeated for each of its versions.
pub(crate) fn served_resources() -> impl Iterator<Item = (&'static str, &'static str, &'static str)>
{
    ROWS.iter().map(|row| (row.group, row.kind, row.resource))
}

impl Row {
    fn served(&self) -> Served {
        Served {
            group: self.group,
            version: self.version,
            kind: self.kind,
            resource: self.resource,
            scope: self.scope,
            on_by_default: self.on_by_default(),
        }
    }

    fn on_by_default(&self) -> bool {
        let stable = !self.version.contains("alpha") && !self.version.contains("beta");
        stable || (self.group, self.version) == ("flowcontrol.apiserver.k8s.io", "v1beta3")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_served(release: &str, gvk: &str) -> bool {
        let gvk: Gvk = gvk.parse().expect("a group, version and kind");
        served(release.parse().expect("a release"))
            .any(|kind| gvk.is(kind.group, kind.kind) && gvk.version == kind.version)
    }

    #[test]
    fn kinds_come_and_go_with_releases() {
        assert!(is_served(
            "1.31",
            "flowcontrol.apiserver.k8s.io/v1beta3/FlowSchema"
        ));
        assert!(!is_served(
            "1.32",
            "flowcontrol.apiserver.k8s.io/v1beta3/FlowSchema"
        ));
        assert!(!is_served("1.33", "resource.k8s.io/v1/ResourceClaim"));
        assert!(is_served("1.34", "resource.k8s.io/v1/ResourceClaim"));
    }

    #[test]
    fn releases_outside_the_table_answer_as_the_nearest() {
        assert!(is_served("1.20", "apps/v1/Deployment"));
        assert!(is_served("1.99", "apps/v1/Deployment"));
        assert_eq!(
            served(KubeVersion::new(2, 0)).count(),
            served(KubeVersion::new(1, 36)).count()
        );
    }

    #[test]
    fn the_first_release_that_serves_a_kind_is_known() {
        let first = |gvk: &str| first_served(&gvk.parse().expect("a group, version and kind"));
        let claims = first("resource.k8s.io/v1/ResourceClaim");
        assert_eq!(claims, Some(KubeVersion::new(1, 34)));
        assert_eq!(first("resource.k8s.io/v1beta1/ResourceClaim"), None);
        assert_eq!(first("apps/v9/Deployment"), None);
    }

    #[test]
    fn beta_versions_are_off_unless_exempt() {
        let off = |kind: &Served| !kind.on_by_default;
        assert!(
            served(KubeVersion::new(1, 36))
                .filter(off)
                .all(|kind| { kind.version.contains("alpha") || kind.version.contains("beta") })
        );
    }

    #[test]
    fn rows_are_sorted_and_their_releases_in_order() {
        let key = |row: &Row| (row.group, row.version, row.kind, row.since);
        assert!(ROWS.windows(2).all(|pair| key(&pair[0]) < key(&pair[1])));
        assert!(ROWS.iter().all(|row| row.since <= row.until));
    }
}
