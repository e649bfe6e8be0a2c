//! The names that a server is called by: in its certificate, by clients and by other servers.

use std::net::SocketAddr;

/// Names and addresses of a server, the one in its certificate first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerHosts {
    names: Vec<String>,
    port: u16,
}

impl ServerHosts {
    /// The names that were given, those of the own machine, and the address that the server listens on.
    pub fn new(given: &[String], listening: SocketAddr) -> Self {
        let mut names = given.to_vec();
        names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
        if !listening.ip().is_unspecified() {
            names.push(listening.ip().to_string());
        }
        names.sort();
        names.dedup();
        if let Some(first) = given.first() {
            names.retain(|name| name != first);
            names.insert(0, first.clone());
        }
        Self {
            names,
            port: listening.port(),
        }
    }

    /// All names, the one in the certificate first.
    pub fn all(&self) -> &[String] {
        &self.names
    }

    /// The address that other servers call.
    pub fn url(&self) -> String {
        let name = self.names.first().map_or("localhost", String::as_str);
        let port = self.port;
        // An IPv6 address stands in brackets.
        if name.contains(':') {
            format!("https://[{name}]:{port}")
        } else {
            format!("https://{name}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &[&str], listening: &str) -> ServerHosts {
        let given: Vec<String> = given.iter().map(|&name| name.to_owned()).collect();
        ServerHosts::new(&given, listening.parse().expect("an address"))
    }

    #[test]
    fn the_first_given_name_is_the_one_in_the_certificate() {
        let names = names(&["fleet.example.com", "a.example.com"], "0.0.0.0:7443");
        let expected = [
            "fleet.example.com",
            "127.0.0.1",
            "::1",
            "a.example.com",
            "localhost",
        ];
        assert_eq!(names.all(), expected);
        assert_eq!(names.url(), "https://fleet.example.com:7443");
    }

    #[test]
    fn an_address_that_is_listened_on_is_a_name() {
        let names = names(&[], "10.0.0.7:1");
        assert!(names.all().contains(&"10.0.0.7".to_owned()));
        assert_eq!(names.url(), "https://10.0.0.7:1");
    }

    #[test]
    fn an_ipv6_address_stands_in_brackets() {
        assert_eq!(
            names(&["fd00::7"], "[::]:7443").url(),
            "https://[fd00::7]:7443"
        );
    }
}
