//! The database of dpkg: which packages a Debian system has, and in which state.

/// A package of the database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DpkgPackage {
    /// Its name.
    pub name: String,
    /// Its architecture; `all` if it fits every machine.
    pub architecture: String,
    /// Its version.
    pub version: String,
    /// What somebody wants of it: `install`, `hold`, `deinstall` or `purge`.
    pub wanted: String,
    /// How far it is: `installed`, `config-files`, `half-configured` and others.
    pub state: String,
    /// Virtual packages that it stands for.
    pub provides: Vec<String>,
}

impl DpkgPackage {
    /// Whether it is there as a whole. After a removal its settings may stay; that is not installed.
    pub fn is_installed(&self) -> bool {
        self.state == "installed" || self.state.starts_with("triggers-")
    }

    /// Whether it must not change.
    pub fn is_held(&self) -> bool {
        self.wanted == "hold"
    }

    /// Whether dpkg was interrupted while it worked on it.
    pub fn is_broken(&self) -> bool {
        matches!(
            &*self.state,
            "half-installed" | "half-configured" | "unpacked"
        )
    }

    /// Whether a name means it: `web`, or `web:i386` for one architecture.
    pub fn has_name(&self, name: &str) -> bool {
        match name.split_once(':') {
            Some((name, architecture)) => {
                self.name == name
                    && (self.architecture == architecture || self.architecture == "all")
            }
            None => self.name == name,
        }
    }
}

/// The packages of a text like `/var/lib/dpkg/status`.
pub fn parse_status(text: &str) -> Vec<DpkgPackage> {
    text.split("\n\n")
        .map(parse_package)
        .filter(|package| !package.name.is_empty())
        .collect()
}

fn parse_package(paragraph: &str) -> DpkgPackage {
    let mut package = DpkgPackage::default();
    // Lines that begin with a blank continue a field that is of no use here.
    for (field, value) in paragraph.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match field {
            "Package" => value.clone_into(&mut package.name),
            "Architecture" => value.clone_into(&mut package.architecture),
            "Version" => value.clone_into(&mut package.version),
            "Provides" => {
                let names = value
                    .split(',')
                    .filter_map(|item| item.split_whitespace().next());
                package.provides = names.map(str::to_owned).collect();
            }
            "Status" => {
                let mut words = value.split_whitespace();
                words
                    .next()
                    .unwrap_or_default()
                    .clone_into(&mut package.wanted);
                words
                    .nth(1)
                    .unwrap_or_default()
                    .clone_into(&mut package.state);
            }
            _ => {}
        }
    }
    package
}

/// A package that apt would install or remove, by a line of its simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AptStep {
    /// `Inst name [old] (new …)`.
    Install {
        /// The package.
        name: String,
        /// The version before; `None` for a new package.
        old: Option<String>,
        /// The version after.
        new: String,
    },
    /// `Remv name [old]` or `Purg name [old]`.
    Remove {
        /// The package.
        name: String,
        /// The version before.
        old: String,
    },
}

/// The steps that `apt-get --simulate` prints.
pub fn parse_simulation(text: &str) -> Vec<AptStep> {
    let steps = text.lines().filter_map(|line| {
        let (verb, rest) = line.split_once(' ')?;
        let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let old = rest
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next())
            .map(str::to_owned);
        match verb {
            "Inst" => {
                let new = rest.split('(').nth(1)?.split([' ', ')']).next()?;
                Some(AptStep::Install {
                    name: name.to_owned(),
                    old,
                    new: new.to_owned(),
                })
            }
            "Remv" | "Purg" => Some(AptStep::Remove {
                name: name.to_owned(),
                old: old.unwrap_or_default(),
            }),
            _ => None,
        }
    });
    let mut unique: Vec<AptStep> = Vec::new();
    for step in steps {
        if !unique.contains(&step) {
            unique.push(step);
        }
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_with_their_states() {
        let text = "Package: web\nStatus: hold ok installed\nArchitecture: amd64\nVersion: 1:2.0-1\n\
                    Provides: httpd, httpd-cgi (= 2)\nDescription: x\n Package: not\n\n\
                    Package: old\nStatus: deinstall ok config-files\nVersion: 1\nArchitecture: all\n\n\n";
        let packages = parse_status(text);
        assert_eq!(packages.len(), 2);
        let web = &packages[0];
        assert!(web.is_installed() && web.is_held());
        assert_eq!(web.provides, ["httpd", "httpd-cgi"]);
        assert!(web.has_name("web") && web.has_name("web:amd64") && !web.has_name("web:i386"));
        assert!(!packages[1].is_installed());
        assert!(
            packages[1].has_name("old:i386"),
            "`all` is every architecture"
        );
    }

    #[test]
    fn a_simulation_is_read_line_by_line() {
        let text = "Reading package lists...\nRemv other [1]\nInst tiny [1:1.0-1] (1:2.0-1 localhost [all])\n\
                    Inst new (3 x [amd64]) []\nConf tiny (1:2.0-1 localhost [all])\nPurg gone [4]\nRemv other [1]\n";
        let steps = parse_simulation(text);
        assert_eq!(steps.len(), 4);
        let update = AptStep::Install {
            name: "tiny".to_owned(),
            old: Some("1:1.0-1".to_owned()),
            new: "1:2.0-1".to_owned(),
        };
        assert_eq!(steps[1], update);
        let removal = AptStep::Remove {
            name: "other".to_owned(),
            old: "1".to_owned(),
        };
        assert_eq!(steps[0], removal);
        assert!(parse_simulation("Inst\nInst x\nRemv").len() < 2);
    }
}
