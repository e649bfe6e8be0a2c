//! Names of artifacts in registries: `host[:port]/name[:tag][@sha256:…]`, with or without `oci://` before it.

use std::fmt;
use std::str::FromStr;

use crate::{Digest, ReferenceError};

/// A repository of a registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Repository {
    registry: String,
    name: String,
}

/// What a reference points at within its repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pointer {
    /// A name that may move.
    Tag(String),
    /// A content that cannot change.
    Digest(Digest),
}

/// A repository and what to take from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The repository.
    pub repository: Repository,
    /// The tag or digest; a digest wins when both are written.
    pub pointer: Option<Pointer>,
}

// === impl Repository ===

impl Repository {
    /// The host, with port when written.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The path after the host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The repository of a longer path, as Helm puts the chart's name behind a repository's address.
    pub fn join(&self, segment: &str) -> Result<Self, ReferenceError> {
        let name = format!("{}/{segment}", self.name);
        check_name(&name)?;
        Ok(Self {
            registry: self.registry.clone(),
            name,
        })
    }

    /// A reference to a tag.
    pub fn tag(&self, tag: &str) -> Result<Reference, ReferenceError> {
        check_tag(tag)?;
        Ok(self.at(Pointer::Tag(tag.to_owned())))
    }

    /// A reference to a digest.
    pub fn digest(&self, digest: Digest) -> Reference {
        self.at(Pointer::Digest(digest))
    }

    fn at(&self, pointer: Pointer) -> Reference {
        Reference {
            repository: self.clone(),
            pointer: Some(pointer),
        }
    }

    /// The host that answers for the registry: Docker Hub's differs from its name.
    pub(crate) fn api_host(&self) -> &str {
        match self.registry.as_str() {
            "docker.io" | "index.docker.io" => "registry-1.docker.io",
            other => other,
        }
    }

    /// The host without its port.
    pub(crate) fn host(&self) -> &str {
        match self.registry.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            _ => &self.registry,
        }
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.name)
    }
}

impl FromStr for Repository {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bare = text.strip_prefix("oci://").unwrap_or(text);
        let bare = bare.trim_end_matches('/');
        let no_registry = || ReferenceError::Registry(text.to_owned());
        let (registry, name) = bare.split_once('/').ok_or_else(no_registry)?;
        if !is_registry(registry) {
            return Err(no_registry());
        }
        check_name(name)?;
        // Docker Hub keeps its own images under `library`.
        let is_hub = matches!(registry, "docker.io" | "index.docker.io");
        let name = if is_hub && !name.contains('/') {
            format!("library/{name}")
        } else {
            name.to_owned()
        };
        Ok(Self {
            registry: registry.to_owned(),
            name,
        })
    }
}

// === impl Reference ===

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pointer {
            None => write!(f, "{}", self.repository),
            Some(Pointer::Tag(tag)) => write!(f, "{}:{tag}", self.repository),
            Some(Pointer::Digest(digest)) => write!(f, "{}@{digest}", self.repository),
        }
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse::<Digest>()?)),
            None => (text, None),
        };
        // A colon before the last slash belongs to the scheme or the port.
        let (repository, tag) = match rest.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') && repository.contains('/') => {
                (repository, Some(tag))
            }
            _ => (rest, None),
        };
        if let Some(tag) = tag {
            check_tag(tag)?;
        }
        let tag = tag.map(|tag| Pointer::Tag(tag.to_owned()));
        Ok(Self {
            repository: repository.parse()?,
            pointer: digest.map(Pointer::Digest).or(tag),
        })
    }
}

fn is_registry(text: &str) -> bool {
    let looks_like_host = text.contains(['.', ':']) || text == "localhost";
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b".-:[]_".contains(&b);
    looks_like_host && text.bytes().all(allowed)
}

fn check_name(name: &str) -> Result<(), ReferenceError> {
    let is_part = |part: &str| {
        let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
        edge(part.as_bytes().first()) && edge(part.as_bytes().last()) && part.bytes().all(allowed)
    };
    if name.len() <= 255 && name.split('/').all(is_part) {
        Ok(())
    } else {
        Err(ReferenceError::Name(name.to_owned()))
    }
}

fn check_tag(tag: &str) -> Result<(), ReferenceError> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let starts_well = tag.bytes().next().is_some_and(word);
    let rest_is_well = tag.bytes().all(|b| word(b) || b == b'.' || b == b'-');
    if starts_well && rest_is_well && tag.len() <= 128 {
        Ok(())
    } else {
        Err(ReferenceError::Tag(tag.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, expected: &str) {
        let reference: Reference = written.parse().unwrap();
        assert_eq!(reference.to_string(), expected);
    }

    #[test]
    fn a_reference_is_read_with_port_tag_and_digest() {
        let digest = Digest::of(b"");
        check("ghcr.io/org/app:v1", "ghcr.io/org/app:v1");
        check("oci://localhost:5000/app", "localhost:5000/app");
        check("oci://[::1]:5000/app:1", "[::1]:5000/app:1");
        check(
            &format!("ghcr.io/org/app:v1@{digest}"),
            &format!("ghcr.io/org/app@{digest}"),
        );
    }

    #[test]
    fn docker_hub_keeps_short_names_under_library() {
        check("docker.io/nginx:1", "docker.io/library/nginx:1");
        let repository: Repository = "docker.io/nginx".parse().unwrap();
        assert_eq!(repository.api_host(), "registry-1.docker.io");
    }

    #[test]
    fn a_name_that_could_leave_its_path_is_refused() {
        for bad in [
            "app",
            "org/app",
            "ghcr.io/",
            "ghcr.io/a/../b",
            "ghcr.io/A",
            "ghcr.io/a:b?c",
            "ghcr.io/a@sha256:1",
            "user@ghcr.io/a",
        ] {
            assert!(bad.parse::<Reference>().is_err(), "{bad}");
        }
    }
}
