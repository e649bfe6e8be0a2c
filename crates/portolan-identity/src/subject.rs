//! Whom a certificate is for, as its URI names say it.
//!
//! ```text
//! portolan://FLEET/node/UID     or     portolan://FLEET/user/ID     or     portolan://FLEET/server/NAME
//! portolan://FLEET/epoch/NUMBER
//! ```

use crate::error::{IdentityError, malformed};

const SCHEME: &str = "portolan://";

/// The longest part of a name.
const MAX_PART: usize = 64;

/// Whom a certificate is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateSubject {
    /// The fleet.
    pub fleet: String,
    /// A node, a user or a server.
    pub kind: SubjectKind,
    /// The uuid of the node, the id that the user's certificate is known by, or the name of the server.
    pub id: String,
    /// A raised epoch of the node makes all certificates with lower ones useless.
    pub epoch: u32,
}

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectKind {
    /// An agent's node.
    Node,
    /// A person or a program.
    User,
    /// A server that asks another one.
    Server,
}

impl SubjectKind {
    fn word(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::User => "user",
            Self::Server => "server",
        }
    }
}

impl CertificateSubject {
    /// The URI names of the certificate.
    pub fn names(&self) -> [String; 2] {
        [
            format!("{SCHEME}{}/{}/{}", self.fleet, self.kind.word(), self.id),
            format!("{SCHEME}{}/epoch/{}", self.fleet, self.epoch),
        ]
    }

    /// Reads the URI names of a certificate. All of them must be ours, and each must be there once.
    ///
    /// # Errors
    /// When one is missing, stands there twice, or is something else.
    pub fn read<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, IdentityError> {
        let wrong = || malformed("certificate of a node or user");
        let (mut subject, mut epoch) = (None, None);
        for name in names {
            let parts = name.strip_prefix(SCHEME).ok_or_else(wrong)?;
            let parts: Vec<&str> = parts.split('/').collect();
            let [fleet, word, id] = parts.as_slice() else {
                return Err(wrong());
            };
            if ![*fleet, *id].into_iter().all(is_part) {
                return Err(wrong());
            }
            let slot_taken = match *word {
                "node" => subject.replace((*fleet, SubjectKind::Node, *id)).is_some(),
                "user" => subject.replace((*fleet, SubjectKind::User, *id)).is_some(),
                "server" => subject
                    .replace((*fleet, SubjectKind::Server, *id))
                    .is_some(),
                "epoch" => {
                    let number: u32 = id.parse().map_err(|_| wrong())?;
                    // One way to write a number, so that equal names are equal texts.
                    if number.to_string() != **id {
                        return Err(wrong());
                    }
                    epoch.replace((*fleet, number)).is_some()
                }
                _ => true,
            };
            if slot_taken {
                return Err(wrong());
            }
        }
        match (subject, epoch) {
            (Some((fleet, kind, id)), Some((same, epoch))) if fleet == same => Ok(Self {
                fleet: fleet.to_owned(),
                kind,
                id: id.to_owned(),
                epoch,
            }),
            _ => Err(wrong()),
        }
    }
}

fn is_part(part: &str) -> bool {
    !part.is_empty()
        && part.len() <= MAX_PART
        && part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_reads_as_it_is_written() {
        let subject = CertificateSubject {
            fleet: "0a1b".to_owned(),
            kind: SubjectKind::Node,
            id: "7c-9".to_owned(),
            epoch: 3,
        };
        let names = subject.names();
        assert_eq!(names[0], "portolan://0a1b/node/7c-9");
        assert_eq!(
            CertificateSubject::read(names.iter().map(String::as_str)),
            Ok(subject)
        );
    }

    #[test]
    fn names_that_could_mean_two_things_are_refused() {
        let check = |names: &[&str]| {
            let read = CertificateSubject::read(names.iter().copied());
            assert!(read.is_err(), "{names:?}");
        };
        let (node, epoch) = ("portolan://a/node/x", "portolan://a/epoch/1");
        check(&[node]);
        check(&[epoch]);
        check(&[node, epoch, node]);
        check(&[node, "portolan://a/user/y", epoch]);
        check(&[node, "portolan://b/epoch/1"]);
        check(&[node, "portolan://a/epoch/01"]);
        check(&[node, "portolan://a/epoch/+1"]);
        check(&["portolan://a/node/x/../y", epoch]);
        check(&["portolan://a/node/", epoch]);
        check(&[node, epoch, "https://example.com/"]);
    }
}
