//! Notices about the files of an image, and errors for what no image can hold.

use std::fmt;

/// Something that is left out of the image or may surprise; the build goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// setuid, setgid or sticky bits that the image does not have.
    SpecialBits {
        /// The path in the source.
        path: String,
        /// The bits, as in 0o4000.
        bits: u32,
    },
    /// File capabilities that the image does not have.
    Capabilities {
        /// The path in the source.
        path: String,
    },
    /// Extended attributes that no image of ours has.
    Attributes {
        /// The path in the source.
        path: String,
        /// Their names.
        names: Vec<String>,
    },
    /// Two names of one directory that differ in case only: on some systems one replaces the other.
    CaseEqual {
        /// One path in the image.
        first: String,
        /// The other.
        second: String,
    },
}

/// Something that no image can hold; the build cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The path in the source; what is not UTF-8 shows as `\xff`.
    pub path: String,
    /// What is wrong with it, as in `is a socket`.
    pub why: String,
}

impl Notice {
    /// What to do to have it in the image, or to be rid of the notice.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::SpecialBits { .. } => "`keep: [special]` of the copy keeps these bits",
            Self::Capabilities { .. } => "`keep: [capabilities]` of the copy keeps them",
            Self::Attributes { .. } => {
                "an image has no such attributes; remove them, or leave the file out"
            }
            Self::CaseEqual { .. } => "rename one of them, or leave one out",
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SpecialBits { path, bits } => {
                write!(f, "`{path}` loses {}", names_of_bits(*bits).join(", "))
            }
            Self::Capabilities { path } => write!(f, "`{path}` loses its capabilities"),
            Self::Attributes { path, names } => {
                write!(f, "`{path}` loses the attributes {}", names.join(", "))
            }
            Self::CaseEqual { first, second } => {
                write!(f, "`/{first}` and `/{second}` differ in case only")
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.path, self.why)
    }
}

fn names_of_bits(bits: u32) -> Vec<&'static str> {
    [(0o4000, "setuid"), (0o2000, "setgid"), (0o1000, "sticky")]
        .into_iter()
        .filter(|(bit, _)| bits & bit != 0)
        .map(|(_, name)| name)
        .collect()
}
