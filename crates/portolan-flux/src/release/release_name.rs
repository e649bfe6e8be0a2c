//! How Flux names a Helm release.

use portolan_yaml::Text;
use sha2::{Digest, Sha256};

use crate::api::HelmRelease;

/// The longest name that Helm takes.
const MAX_BYTES: usize = 53;

/// How much of a longer name is kept before its hash.
const KEPT_BYTES: usize = 40;

/// How many hexadecimal digits of the hash follow.
const HASH_DIGITS: usize = 12;

/// The release's name: as given, or made of namespace and name, shortened by a hash when it is too long.
pub fn release_name(release: &HelmRelease) -> Text {
    let name = match (&release.release_name, &release.target_namespace) {
        (Some(name), _) => name.clone(),
        (None, Some(namespace)) => format!("{namespace}-{}", release.id.name).into(),
        (None, None) => release.id.name.clone(),
    };
    shorten(name)
}

/// The namespace the release is installed to.
pub fn release_namespace(release: &HelmRelease) -> &Text {
    release
        .target_namespace
        .as_ref()
        .unwrap_or(&release.id.namespace)
}

fn shorten(name: Text) -> Text {
    if name.len() <= MAX_BYTES {
        return name;
    }
    let hash = Sha256::digest(name.as_bytes());
    let digits: String = hash
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .take(HASH_DIGITS)
        .map(digit)
        .collect();
    let kept = (0..=KEPT_BYTES)
        .rev()
        .find_map(|end| name.get(..end))
        .unwrap_or_default();
    format!("{kept}-{digits}").into()
}

fn digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_40_bytes_and_12_digits_of_its_hash() {
        let name = Text::from("a".repeat(60));
        let short = shorten(name);
        assert_eq!(short.len(), 53);
        assert!(short.starts_with(&"a".repeat(40)));
        assert_eq!(shorten("web".into()), "web");
    }
}
