//! The file that names a repository: deb822 for apt, with the keys in it, and an INI file for dnf.

use std::fmt::Write as _;

use crate::openpgp_key::PublicKeys;
use crate::state::State;

/// A repository as a file names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) uris: Vec<String>,
    pub(crate) suites: Vec<String>,
    pub(crate) components: Vec<String>,
    pub(crate) architectures: Vec<String>,
    pub(crate) is_trusted: bool,
}

impl Source {
    /// The file for apt. Keys stand in it, so that a repository never has a file without its key.
    pub(crate) fn deb822(&self, origin: &str, keys: Option<&PublicKeys>) -> String {
        let mut text = format!("# {origin}\nTypes: deb\n");
        let fields = [
            ("URIs", &self.uris),
            ("Suites", &self.suites),
            ("Components", &self.components),
            ("Architectures", &self.architectures),
        ];
        for (name, values) in fields {
            if !values.is_empty() {
                // Writing to a text cannot fail.
                let _ = writeln!(text, "{name}: {}", values.join(" "));
            }
        }
        if self.is_trusted {
            text.push_str("Trusted: yes\n");
        }
        if let Some(keys) = keys {
            text.push_str("Signed-By:\n");
            for line in keys.armored().lines() {
                // A line alone with a dot is an empty one.
                let _ = writeln!(text, " {}", if line.is_empty() { "." } else { line });
            }
        }
        text
    }

    /// The file for dnf, which names the file of the keys.
    pub(crate) fn ini(&self, origin: &str, name: &str, key_path: Option<&str>) -> String {
        let mut text = format!("# {origin}\n[{name}]\nname={name}\nbaseurl=");
        text.push_str(&self.uris.join("\n        "));
        text.push_str("\nenabled=1\n");
        // Without a key, the keys that the system has already decide.
        let checks = u8::from(!self.is_trusted);
        let _ = writeln!(text, "gpgcheck={checks}");
        if let Some(path) = key_path {
            let _ = writeln!(text, "gpgkey=file://{path}");
        }
        text
    }

    /// The repository as named values, for people.
    pub(crate) fn state(&self, fingerprints: &[String]) -> State {
        let mut state = State::default().with("uris", self.uris.join(" "));
        let lists = [
            ("suites", &self.suites),
            ("components", &self.components),
            ("architectures", &self.architectures),
        ];
        for (name, values) in lists {
            if !values.is_empty() {
                state = state.with(name, values.join(" "));
            }
        }
        if self.is_trusted {
            state = state.with("trusted", "yes");
        }
        if !fingerprints.is_empty() {
            state = state.with("key", fingerprints.join(" "));
        }
        state
    }
}

/// Reads the first repository of a file for apt, and its keys.
pub(crate) fn parse_deb822(text: &str) -> (Source, Option<PublicKeys>) {
    let mut source = Source::default();
    let mut armor = String::new();
    let mut field = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with([' ', '\t']) {
            if field == "signed-by" {
                let line = line.trim();
                armor.push_str(if line == "." { "" } else { line });
                armor.push('\n');
            }
            continue;
        }
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let words = || value.split_ascii_whitespace().map(str::to_owned).collect();
        field = match name.to_ascii_lowercase().as_str() {
            "uris" => {
                source.uris = words();
                ""
            }
            "suites" => {
                source.suites = words();
                ""
            }
            "components" => {
                source.components = words();
                ""
            }
            "architectures" => {
                source.architectures = words();
                ""
            }
            "trusted" => {
                source.is_trusted = value.trim() == "yes";
                ""
            }
            "signed-by" => "signed-by",
            _ => "",
        };
    }
    (source, PublicKeys::parse(armor.as_bytes()).ok())
}

/// Reads the first repository of a file for dnf.
pub(crate) fn parse_ini(text: &str) -> Source {
    let mut source = Source::default();
    let mut is_address = false;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let value = if is_address && line.starts_with([' ', '\t']) {
            line
        } else if let Some((name, value)) = line.split_once('=') {
            is_address = name.trim() == "baseurl";
            if name.trim() == "gpgcheck" {
                source.is_trusted = value.trim() == "0";
            }
            value
        } else {
            is_address = false;
            ""
        };
        if is_address {
            let words = value.split_ascii_whitespace().map(str::to_owned);
            source.uris.extend(words);
        }
    }
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        Source {
            uris: vec![
                "https://a.example/x".to_owned(),
                "https://b.example/x".to_owned(),
            ],
            suites: vec!["stable".to_owned()],
            components: vec!["main".to_owned(), "extra".to_owned()],
            architectures: Vec::new(),
            is_trusted: false,
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = source().deb822("by a test", None);
        assert_eq!(parse_deb822(&text), (source(), None));
        let plain = Source {
            suites: Vec::new(),
            components: Vec::new(),
            is_trusted: true,
            ..source()
        };
        assert_eq!(parse_ini(&plain.ini("by a test", "x", None)), plain);
    }
}
