//! Which files of a context go where in an image.

use portolan_go::path::clean;

use crate::entry::Owner;

/// Files of a context and their place in the image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopySpec {
    /// A file, link or directory of the context; of a directory the content is copied. `.` or empty is the whole context.
    pub from: String,
    /// Where it goes. For a file, a `/` at the end means that directory; else it is the file's new path.
    pub to: String,
    /// Who owns it in the image.
    pub owner: Owner,
    /// Permissions in place of 0644 and 0755; directories may also be entered by those who may read them.
    pub mode: Option<u32>,
    /// Patterns as in `.dockerignore`, from the context's root, after those of that file.
    pub ignore: Vec<String>,
    /// What is kept of a file beside its content and its execute bit.
    pub keep: Keep,
}

/// What is kept of a file beside its content and its execute bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keep {
    /// setuid, setgid and sticky.
    pub special_bits: bool,
    /// File capabilities.
    pub capabilities: bool,
}

impl CopySpec {
    /// The path in the context, `""` for all of it; `None` if it leads out of it.
    pub(crate) fn source(&self) -> Option<String> {
        let cleaned = clean(self.from.trim_start_matches('/'));
        match cleaned.as_str() {
            "." => Some(String::new()),
            ".." => None,
            path if path.starts_with("../") => None,
            _ => Some(cleaned),
        }
    }

    /// The path in the image without its leading `/`, `""` for the root; `None` if it is not absolute.
    pub(crate) fn target(&self) -> Option<String> {
        let cleaned = clean(&self.to);
        cleaned.strip_prefix('/').map(str::to_owned)
    }

    /// The permissions of a file.
    pub(crate) fn file_mode(&self, mode: u32) -> u32 {
        let folded = match self.mode {
            Some(given) => given & 0o7777,
            None if mode & 0o100 != 0 => 0o755,
            None => 0o644,
        };
        folded | self.special(mode)
    }

    /// The permissions of a directory.
    pub(crate) fn directory_mode(&self, mode: u32) -> u32 {
        let folded = self
            .mode
            .map_or(0o755, |given| (given & 0o7777) | ((given & 0o444) >> 2));
        folded | self.special(mode)
    }

    fn special(&self, mode: u32) -> u32 {
        if self.keep.special_bits {
            mode & 0o7000
        } else {
            0
        }
    }
}
