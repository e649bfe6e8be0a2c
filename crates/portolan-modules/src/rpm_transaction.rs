//! What rpm has installed, and what dnf would do, as their programs print it.

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpmPackage {
    /// Its name.
    pub name: String,
    /// Its version and release, after its epoch if that is not 0.
    pub version: String,
    /// Its architecture.
    pub architecture: String,
}

/// One part of what dnf would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnfStep {
    /// A package that is not there comes.
    Install {
        /// Its name.
        name: String,
        /// Its version.
        new: String,
    },
    /// A package gets another version.
    Replace {
        /// Its name.
        name: String,
        /// The version that it gets.
        new: String,
        /// Whether that is an older one.
        is_older: bool,
    },
    /// A package goes.
    Remove {
        /// Its name.
        name: String,
    },
}

/// How `rpm --queryformat` prints what [`parse_installed`] reads.
pub(crate) const QUERY_FORMAT: &str =
    "%{NAME}\\t%|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\\t%{ARCH}\\n";

impl RpmPackage {
    /// Whether it is called so; a name may have an architecture, as in `glibc:i686`.
    pub fn has_name(&self, name: &str) -> bool {
        match name.split_once(':') {
            Some((name, architecture)) => self.name == name && self.architecture == architecture,
            None => self.name == name,
        }
    }

    /// Whether it has a version, which may be given without its release and with an epoch of 0.
    pub fn has_version(&self, wanted: &str) -> bool {
        let wanted = wanted.strip_prefix("0:").unwrap_or(wanted);
        let short = self.version.rsplit_once('-').map(|(version, _)| version);
        self.version == wanted || short == Some(wanted)
    }
}

/// Reads what `rpm --query --all` prints with [`QUERY_FORMAT`].
pub fn parse_installed(text: &str) -> Vec<RpmPackage> {
    let package = |line: &str| {
        let mut fields = line.split('\t');
        let (name, version) = (fields.next()?, fields.next()?);
        Some(RpmPackage {
            name: name.to_owned(),
            version: version.strip_prefix("0:").unwrap_or(version).to_owned(),
            architecture: fields.next()?.to_owned(),
        })
    };
    // Keys are kept among packages under this name.
    let packages = text.lines().filter_map(package);
    packages
        .filter(|package| package.name != "gpg-pubkey")
        .collect()
}

/// Reads the table that dnf prints before it asks whether to go on.
///
/// Each part of it has a head, and a line for each package, which is broken where it is too long.
pub fn parse_transaction(text: &str) -> Vec<DnfStep> {
    let mut steps = Vec::new();
    let mut head = "";
    let mut words: Vec<&str> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(':')
            && !line.starts_with(' ')
        {
            head = name;
            words.clear();
            continue;
        }
        if !line.starts_with(' ') {
            // The column heads begin with a space too, but stand before the first part.
            if line.is_empty() || line.starts_with("Transaction Summary") {
                head = "";
            }
            continue;
        }
        if let Some(replaced) = line.trim_start().strip_prefix("replacing ") {
            if let Some(name) = replaced.split_ascii_whitespace().next() {
                let name = name.rsplit_once('.').map_or(name, |(name, _)| name);
                steps.push(DnfStep::Remove {
                    name: name.to_owned(),
                });
            }
            continue;
        }
        let is_first = !line.starts_with("  ");
        if is_first {
            words.clear();
        }
        let had = words.len();
        words.extend(line.split_ascii_whitespace());
        // Name, architecture and version; what comes after does not matter.
        if let (true, [name, _, version, ..]) = (had < 3, words.as_slice()) {
            steps.extend(step(head, name, version));
        }
    }
    steps
}

fn step(head: &str, name: &str, version: &str) -> Option<DnfStep> {
    let name = name.to_owned();
    let new = version.strip_prefix("0:").unwrap_or(version).to_owned();
    match head.split(' ').next()? {
        "Installing" => Some(DnfStep::Install { name, new }),
        "Upgrading" => Some(DnfStep::Replace {
            name,
            new,
            is_older: false,
        }),
        "Downgrading" => Some(DnfStep::Replace {
            name,
            new,
            is_older: true,
        }),
        "Removing" => Some(DnfStep::Remove { name }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by dnf 4.14.
    const TABLE: &str = "Dependencies resolved.
================================================================================
 Package           Architecture       Version           Repository         Size
================================================================================
Installing:
 base              noarch             1-1               test              6.0 k
 a-name-that-is-so-long-that-nothing-else-has-any-place-beside-it-in-its-line
                   noarch             2:1-1             test              6.0 k
     replacing  gone.noarch 1-1
Upgrading:
 tiny              noarch             2.0-1             test              5.9 k
Removing dependent packages:
 other             noarch             1-1               @test               2  

Transaction Summary
================================================================================
Install  1 Package
Remove   1 Package

Total size: 6.0 k
";

    #[test]
    fn all_parts_of_a_transaction_are_read() {
        let install = |name: &str, new: &str| DnfStep::Install {
            name: name.to_owned(),
            new: new.to_owned(),
        };
        let remove = |name: &str| DnfStep::Remove {
            name: name.to_owned(),
        };
        let long = "a-name-that-is-so-long-that-nothing-else-has-any-place-beside-it-in-its-line";
        let tiny = DnfStep::Replace {
            name: "tiny".to_owned(),
            new: "2.0-1".to_owned(),
            is_older: false,
        };
        assert_eq!(
            parse_transaction(TABLE),
            [
                install("base", "1-1"),
                install(long, "2:1-1"),
                remove("gone"),
                tiny,
                remove("other"),
            ]
        );
        assert_eq!(parse_transaction("Nothing to do.\n"), []);
    }

    #[test]
    fn a_version_may_be_given_without_its_release() {
        let packages = parse_installed("tiny\t2:1.0-1\tnoarch\ngpg-pubkey\t1-2\t(none)\n");
        assert_eq!(packages.len(), 1, "keys are no packages");
        let package = &packages[0];
        assert!(package.has_name("tiny") && package.has_name("tiny:noarch"));
        assert!(package.has_version("2:1.0") && package.has_version("2:1.0-1"));
        assert!(!package.has_version("1.0") && !package.has_version("2:1"));
    }
}
