//! Small grammars on one line of text: versions and substitution.

use portolan_envsubst::{Unset, substitute};
use portolan_semver::{Constraints, Version};

use crate::{Target, pieces, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "envsubst",
        about: "a text with variables, then the value of every second one: refused inside the text or substituted",
        run: envsubst,
        seeds: || {
            texts(&[
                "a ${B:-c} $$ ${D//e/f}\n%%\nvalue",
                "${x:=${y:+${z}}} ${a:1:2} ${b^^} ${c,,} ${#d}\n%%\n$y",
                "${a/./-}-production $${kept} ${un closed\n%%\n\u{1f980}",
            ])
        },
    },
    Target {
        name: "semver",
        about: "a version, then a constraint: what is read prints as something that reads the same",
        run: semver,
        seeds: || {
            texts(&[
                "v1.2.3-rc.1+build\n%%\n>=1.2.0-0 <2 || ~3.x",
                "1.2\n%%\n^0.0.3, !=0.0.5",
                "18446744073709551615.0.0\n%%\n1.2 - 2.3.4",
                "2026.11.17\n%%\n*",
            ])
        },
    },
];

fn envsubst(bytes: &[u8]) -> bool {
    let Some(mut parts) = pieces(bytes) else {
        return false;
    };
    let (text, value) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let [_, is_taken] = [Unset::Refused, Unset::Empty].map(|unset| {
        let lookup = |name: &str| name.len().is_multiple_of(2).then_some(value);
        let substituted = substitute(text, unset, lookup);
        if let Err(error) = &substituted {
            assert!(error.offset <= text.len());
        }
        substituted.is_ok()
    });
    is_taken
}

fn semver(bytes: &[u8]) -> bool {
    let Some(mut parts) = pieces(bytes) else {
        return false;
    };
    let version = Version::parse(parts.next().unwrap_or_default());
    if let Ok(version) = &version {
        assert_eq!(Version::parse(&version.to_string()).as_ref(), Ok(version));
    }
    let constraints = Constraints::parse(parts.next().unwrap_or_default());
    let (Ok(constraints), Ok(version)) = (constraints, &version) else {
        return false;
    };
    let holds = constraints.check(version);
    assert_eq!(holds, constraints.validate(version).is_ok());
    true
}
