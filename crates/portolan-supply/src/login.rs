//! The login of a source: from its Secret, or otherwise from the user's own files.

use std::sync::Arc;

use portolan_flux::Access as Asked;
use portolan_http::{Credentials, Identity, Tls};
use portolan_object::holds_placeholder;
use portolan_oci::DockerConfig;
use portolan_sources::Access;

use crate::netrc::Netrc;

/// The keys of user name and password in a source's Secret; a Bucket's come second.
const LOGINS: [(&str, &str); 2] = [("username", "password"), ("accesskey", "secretkey")];

/// Makes a source's access from its Secret, or from the user's logins when it has none that can be read.
pub(crate) fn access(asked: &Asked, url: &str, netrc: &Netrc) -> Access {
    let text = |key: &str| text(asked, key);
    let credentials = LOGINS
        .iter()
        .find_map(|(name, password)| Some(Credentials::new(text(name)?, text(password)?)));
    let docker = text(".dockerconfigjson");
    let docker = docker.and_then(|text| DockerConfig::parse(text.as_bytes()).ok());
    Access {
        credentials: credentials.or_else(|| netrc.login(url)),
        pass_credentials: false,
        tls: tls(asked),
        plain_http: asked.insecure,
        docker_config: docker.map(Arc::new),
        ..Access::default()
    }
}

fn tls(asked: &Asked) -> Option<Tls> {
    let either = |new: &str, old: &str| text(asked, new).or_else(|| text(asked, old));
    let pair = either("tls.crt", "certFile").zip(either("tls.key", "keyFile"));
    let tls = Tls {
        authorities: either("ca.crt", "caFile").into_iter().collect(),
        identity: pair.map(|(certificate, key)| Identity {
            certificate,
            key: key.into(),
        }),
        skip_verification: false,
    };
    (tls != Tls::default()).then_some(tls)
}

/// A value of the Secret; what stands for an unknown one is no value.
fn text(asked: &Asked, key: &str) -> Option<String> {
    let value = asked.secret.as_ref()?.get(key)?;
    let text = std::str::from_utf8(value).ok()?;
    (!text.is_empty() && !holds_placeholder(text)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use portolan_object::placeholder;
    use portolan_yaml::Text;

    use super::*;

    fn asked(entries: &[(&'static str, &str)]) -> Asked {
        let data: BTreeMap<Text, Vec<u8>> = entries
            .iter()
            .map(|(key, value)| (Text::from_static(key), value.as_bytes().to_vec()))
            .collect();
        Asked {
            secret: Some(Arc::new(data)),
            insecure: false,
        }
    }

    #[test]
    fn a_secret_comes_before_the_users_own_login() {
        let netrc = Netrc::parse("machine a.example login own password own");
        let url = "https://a.example";
        let with = access(&asked(&[("username", "u"), ("password", "p")]), url, &netrc);
        assert_eq!(with.credentials.unwrap().username, "u");
        let without = access(&Asked::default(), url, &netrc);
        assert_eq!(without.credentials.unwrap().username, "own");
    }

    #[test]
    fn a_placeholder_is_no_password() {
        let sealed = asked(&[
            ("username", placeholder("a").as_str()),
            ("password", placeholder("b").as_str()),
        ]);
        let access = access(&sealed, "https://a.example", &Netrc::default());
        assert!(access.credentials.is_none());
    }
}
