//! Logins in a `.netrc` file, as curl and git read them.

use portolan_http::Credentials;

/// The logins of a `.netrc` file.
#[derive(Debug, Clone, Default)]
pub struct Netrc {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    /// The host; none for `default`.
    machine: Option<String>,
    login: String,
    password: String,
}

impl Netrc {
    /// Reads the file's text; what it does not understand it passes over.
    pub fn parse(text: &str) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        let uncommented = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        let mut words = uncommented.flat_map(str::split_whitespace);
        while let Some(word) = words.next() {
            match word {
                "machine" => entries.push(Entry::of(words.next().map(str::to_owned))),
                "default" => entries.push(Entry::of(None)),
                "login" | "password" | "account" => {
                    let value = words.next().unwrap_or_default();
                    if let Some(entry) = entries.last_mut() {
                        entry.set(word, value);
                    }
                }
                _ => {}
            }
        }
        Self { entries }
    }

    /// The login for the host of an address, if there is one.
    pub fn login(&self, url: &str) -> Option<Credentials> {
        let url = portolan_http::Url::parse(url).ok()?;
        let host = url.host_str()?;
        let fits = |entry: &&Entry| entry.machine.as_deref().is_none_or(|name| name == host);
        let entry = self.entries.iter().find(fits)?;
        Some(Credentials::new(&entry.login, entry.password.as_str()))
    }
}

impl Entry {
    fn of(machine: Option<String>) -> Self {
        Self {
            machine,
            login: String::new(),
            password: String::new(),
        }
    }

    fn set(&mut self, field: &str, value: &str) {
        match field {
            "login" => value.clone_into(&mut self.login),
            "password" => value.clone_into(&mut self.password),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_found_by_its_host() {
        let text = "# mine\nmachine a.example login ada password one\nmachine b.example\n  login bob\n  password two\n";
        let netrc = Netrc::parse(text);
        let found = netrc.login("https://b.example/charts").unwrap();
        assert_eq!(
            (found.username.as_str(), found.password.expose()),
            ("bob", "two")
        );
        assert!(netrc.login("https://c.example/charts").is_none());
    }

    #[test]
    fn the_default_entry_stands_for_all_other_hosts() {
        let netrc =
            Netrc::parse("machine a.example login ada password one default login x password y");
        assert_eq!(netrc.login("https://c.example").unwrap().username, "x");
    }
}
