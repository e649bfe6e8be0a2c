//! Which programs manage the packages of a host, by the database that it has.

use camino::Utf8Path;

use crate::action::ModuleError;
use crate::apt_tool::STATUS;
use crate::host::Host;
use crate::root::{Follow, Status};

/// Where rpm keeps its database, by distribution.
pub(crate) const RPM_DIRECTORIES: &[&str] = &["/usr/lib/sysimage/rpm", "/var/lib/rpm"];

/// The files of which one is the database of rpm, by its age.
const RPM_DATABASES: &[&str] = &["rpmdb.sqlite", "Packages.db", "Packages"];

/// What manages packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackageSystem {
    /// apt and dpkg, on Debian and its family.
    Apt,
    /// dnf and rpm, on Fedora and its family; the directory of rpm's database.
    Dnf { database: &'static str },
}

impl PackageSystem {
    /// What manages the packages of a host; one without a database is refused.
    pub(crate) fn find(host: &Host) -> Result<Self, ModuleError> {
        let dpkg = status(host, STATUS)?;
        let database = rpm_database(host)?;
        match (dpkg, database) {
            // Each of them may be installed where the other one is at work.
            (Some(status), _) if status.size > 0 => Ok(Self::Apt),
            (_, Some(database)) => Ok(Self::Dnf { database }),
            (Some(_), None) => Ok(Self::Apt),
            (None, None) => {
                let reason = format!("there is no `{STATUS}` and no database of rpm");
                let root = host.root.path().as_str();
                Err(ModuleError::failed("find packages in", root, reason)
                    .with_hint("packages need a system of the family of Debian or Fedora"))
            }
        }
    }
}

/// The directory of rpm's database, if there is one.
pub(crate) fn rpm_database(host: &Host) -> Result<Option<&'static str>, ModuleError> {
    for directory in RPM_DIRECTORIES {
        for name in RPM_DATABASES {
            if status(host, &format!("{directory}/{name}"))?.is_some() {
                return Ok(Some(directory));
            }
        }
    }
    Ok(None)
}

fn status(host: &Host, path: &str) -> Result<Option<Status>, ModuleError> {
    host.root
        .status(Utf8Path::new(path), Follow::Yes)
        .map_err(|error| ModuleError::failed("look at", path, error))
}
