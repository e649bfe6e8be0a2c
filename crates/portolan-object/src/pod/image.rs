//! References to container images: `registry.example.com:5000/team/app:v1@sha256:…`.
//!
//! The grammar is Docker's, with its defaults: no registry means `docker.io`, a single name there belongs to
//! `library/`, and a reference without tag and digest means the tag `latest`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The longest repository path.
const PATH_MAX: usize = 255;
/// The longest tag.
const TAG_MAX: usize = 128;
const DEFAULT_REGISTRY: &str = "docker.io";
const OLD_DEFAULT_REGISTRY: &str = "index.docker.io";
const OFFICIAL_PREFIX: &str = "library/";

/// An image's registry, repository, and tag or digest or both.
///
/// ```
/// use portolan_object::ImageRef;
///
/// let image: ImageRef = "nginx:1.29".parse()?;
/// assert_eq!(image.registry(), "docker.io");
/// assert_eq!(image.repository(), "library/nginx");
/// assert_eq!(image.tag(), Some("1.29"));
/// assert_eq!(image.canonical(), "docker.io/library/nginx:1.29");
/// assert_eq!(image.to_string(), "nginx:1.29");
/// # Ok::<(), portolan_object::ImageError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageRef {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

/// Why a text is not an image reference, in Docker's words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImageError {
    /// It does not follow the grammar.
    #[error("invalid reference format")]
    Format,
    /// The repository has upper-case letters.
    #[error("invalid reference format: repository name ({0}) must be lowercase")]
    Uppercase(String),
    /// It is 64 hexadecimal digits, which would be an image's id.
    #[error("invalid repository name ({0}), cannot specify 64-byte hexadecimal strings")]
    Identifier(String),
    /// The repository is too long.
    #[error("repository name must not be more than 255 characters")]
    TooLong,
    /// The digest's algorithm is none that is known.
    #[error("unsupported digest algorithm")]
    DigestAlgorithm,
    /// The digest has not the length of its algorithm.
    #[error("invalid checksum digest length")]
    DigestLength,
    /// The digest has other characters than lower-case hexadecimal digits.
    #[error("invalid checksum digest format")]
    DigestFormat,
}

impl ImageRef {
    /// The registry's host, with its port.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The path inside the registry.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag as written.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, `sha256:…`.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The tag that is meant: `latest` when neither tag nor digest is written.
    pub fn tag_or_latest(&self) -> Option<&str> {
        match (&self.tag, &self.digest) {
            (Some(tag), _) => Some(tag),
            (None, None) => Some("latest"),
            (None, Some(_)) => None,
        }
    }

    /// Registry and repository, without tag or digest: `docker.io/library/nginx`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// Registry and repository as people write them: `nginx`.
    pub fn familiar_name(&self) -> String {
        if self.registry != DEFAULT_REGISTRY {
            return self.name();
        }
        let official = self.repository.strip_prefix(OFFICIAL_PREFIX);
        official
            .filter(|rest| !rest.contains('/'))
            .unwrap_or(&self.repository)
            .to_owned()
    }

    /// The whole reference with every default written out: `docker.io/library/nginx:latest`.
    pub fn canonical(&self) -> String {
        let tag = self
            .tag_or_latest()
            .map(|tag| format!(":{tag}"))
            .unwrap_or_default();
        let digest = self
            .digest()
            .map(|digest| format!("@{digest}"))
            .unwrap_or_default();
        format!("{}{tag}{digest}", self.name())
    }

    /// The same image with another tag and without a digest, when that is a tag.
    pub fn with_tag(&self, tag: &str) -> Option<Self> {
        (is_tag(tag)).then(|| Self {
            tag: Some(tag.to_owned()),
            digest: None,
            ..self.clone()
        })
    }
}

/// The familiar form: Docker Hub's host and `library/` are left out, no default is added.
impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.familiar_name())?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

impl FromStr for ImageRef {
    type Err = ImageError;

    fn from_str(text: &str) -> Result<Self, ImageError> {
        if text.len() == 64 && is_hex(text) {
            return Err(ImageError::Identifier(text.to_owned()));
        }
        let (registry, rest) = split_registry(text);
        // Upper-case letters are told before anything else, as far as the first colon.
        let before_colon = rest.split(':').next().unwrap_or_default();
        if before_colon.chars().any(char::is_uppercase) {
            return Err(ImageError::Uppercase(before_colon.to_owned()));
        }
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (rest.as_str(), None),
        };
        let (repository, tag) = match rest.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (rest, None),
        };
        let well_formed = is_registry(registry)
            && is_repository(repository)
            && tag.is_none_or(is_tag)
            && digest.is_none_or(is_digest);
        if !well_formed {
            return Err(ImageError::Format);
        }
        if repository.len() > PATH_MAX {
            return Err(ImageError::TooLong);
        }
        digest.map_or(Ok(()), check_digest)?;
        Ok(Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }
}

/// The registry and the rest: a first part is a registry when it could not be a user's name on Docker Hub.
fn split_registry(text: &str) -> (&str, String) {
    let (registry, rest) = match text.split_once('/') {
        Some((OLD_DEFAULT_REGISTRY, rest)) => (DEFAULT_REGISTRY, rest),
        Some((first, rest)) if is_host_like(first) => (first, rest),
        _ => (DEFAULT_REGISTRY, text),
    };
    if registry == DEFAULT_REGISTRY && !rest.contains('/') {
        (registry, format!("{OFFICIAL_PREFIX}{rest}"))
    } else {
        (registry, rest.to_owned())
    }
}

fn is_host_like(text: &str) -> bool {
    text == "localhost" || text.contains(['.', ':']) || text.chars().any(char::is_uppercase)
}

/// A host name or an IPv6 address in brackets, and perhaps a port.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => {
            let address_byte = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
            let valid = !address.is_empty() && address.bytes().all(address_byte);
            (
                valid,
                port.strip_prefix(':')
                    .map_or(port.is_empty().then_some("0"), Some),
            )
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host.split('.').all(is_host_label), Some(port)),
            None => (text.split('.').all(is_host_label), Some("0")),
        },
    };
    host && port.is_some_and(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

fn is_host_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

fn is_repository(text: &str) -> bool {
    text.split('/').all(is_path_part)
}

/// Lower-case letters and digits, with `.`, `_`, `__` or any number of `-` between them.
fn is_path_part(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let words =
        |text: &str| text.bytes().next().is_some_and(word) && text.bytes().last().is_some_and(word);
    let between =
        |gap: &str| matches!(gap, "" | "." | "_" | "__") || gap.bytes().all(|byte| byte == b'-');
    words(text)
        && text
            .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            .all(between)
}

fn is_tag(text: &str) -> bool {
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let bytes = text.as_bytes();
    bytes.first().is_some_and(word)
        && bytes.len() <= TAG_MAX
        && bytes
            .iter()
            .all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
}

/// The general shape, whatever the algorithm: `name[+name…]:` and at least 32 hexadecimal digits.
fn is_digest(text: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    text.split_once(':').is_some_and(|(algorithm, encoded)| {
        algorithm.split(['-', '_', '+', '.']).all(part)
            && encoded.len() >= 32
            && encoded.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn check_digest(text: &str) -> Result<(), ImageError> {
    let (algorithm, encoded) = text.split_once(':').unwrap_or_default();
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err(ImageError::DigestAlgorithm),
    };
    if encoded.len() != length {
        return Err(ImageError::DigestLength);
    }
    if is_hex(encoded) {
        Ok(())
    } else {
        Err(ImageError::DigestFormat)
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reference() -> impl Strategy<Value = String> {
        let registry = "([a-z]{1,4}\\.[a-z]{2,3}(:[0-9]{1,4})?/|localhost/|)";
        let repository = "[a-z0-9]{1,4}((_|__|-{1,3})[a-z0-9]{1,3}){0,2}(/[a-z0-9]{1,4}(\\.[a-z0-9]{1,2})?){0,2}";
        let tag = "(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,6}|)";
        let digest = "(@sha256:[0-9a-f]{64}|)";
        (registry, repository, tag, digest).prop_map(|(registry, repository, tag, digest)| {
            format!("{registry}{repository}{tag}{digest}")
        })
    }

    proptest! {
        #[test]
        fn both_forms_read_back_as_the_same_image(text in reference()) {
            let image: ImageRef = text.parse().expect("made to be right");
            prop_assert_eq!(image.to_string().parse(), Ok(image.clone()));
            let canonical: ImageRef = image.canonical().parse().expect("still right");
            prop_assert_eq!(canonical.canonical(), image.canonical());
            prop_assert_eq!(canonical.tag(), image.tag_or_latest());
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,60}") {
            let _ = text.parse::<ImageRef>();
        }
    }

    /// Docker's own parser takes such a host for a path without a registry, which no runtime can pull from.
    #[test]
    fn a_host_that_is_no_host_is_refused() {
        assert_eq!(
            "ex_ample.com/app".parse::<ImageRef>(),
            Err(ImageError::Format)
        );
    }

    #[test]
    fn a_new_tag_drops_the_digest() {
        let image: ImageRef = format!("a/b:1@sha256:{}", "0".repeat(64))
            .parse()
            .expect("an image");
        assert_eq!(image.with_tag("2").expect("a tag").to_string(), "a/b:2");
        assert_eq!(image.with_tag("not a tag"), None);
    }
}
