//! The names of a context: what is copied, what is left out, what is refused.

use crate::copy::CopySpec;
use crate::entry::{Entry, Node};
use crate::ignore::{Ignore, Matched};
use crate::notice::{Notice, Refusal};
use crate::scan::{MAX_ENTRIES, MAX_PATH_BYTES, ScanError};
use crate::source::{Listed, ListedKind, Source, Stamp};

/// What a walk has found so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// In the order of the copies; files have no digest yet.
    pub(super) entries: Vec<Entry>,
    /// Which entries are files, and the state in which they were listed.
    pub(super) files: Vec<(usize, Stamp)>,
    pub(super) notices: Vec<Notice>,
    pub(super) refusals: Vec<Refusal>,
}

/// One directory that is still to be listed.
struct Pending {
    source: String,
    target: String,
    matched: Matched,
}

struct Walk<'a> {
    source: &'a dyn Source,
    copy: &'a CopySpec,
    ignore: &'a Ignore,
    never: &'a [String],
    found: &'a mut Found,
    pending: Vec<Pending>,
}

/// Walks over what one copy names.
pub(super) fn walk(
    source: &dyn Source,
    copy: &CopySpec,
    ignore: &Ignore,
    never: &[String],
    found: &mut Found,
) -> Result<(), ScanError> {
    let failed = |why: &str| ScanError::Copy {
        from: copy.from.clone(),
        to: copy.to.clone(),
        why: why.to_owned(),
    };
    let from = copy
        .source()
        .ok_or_else(|| failed("the path leads out of the context"))?;
    let to = copy
        .target()
        .ok_or_else(|| failed("the place in the image must begin with `/`"))?;
    let mut walk = Walk {
        source,
        copy,
        ignore,
        never,
        found,
        pending: Vec::new(),
    };
    let start = walk.start(&from)?;
    match start {
        Start::Nothing => return Err(failed("it does not exist")),
        Start::LeftOut => return Err(failed("the ignore file leaves it out")),
        Start::Link(path) => {
            return Err(failed(&format!(
                "`{path}` is a symbolic link, and links are not followed"
            )));
        }
        Start::Unreadable => return Ok(()),
        Start::Directory(mode, matched) => {
            if !to.is_empty() {
                walk.directory(&from, &to, mode);
            }
            walk.pending.push(Pending {
                source: from,
                target: to,
                matched,
            });
        }
        Start::Other(listed) => {
            let name = from.rsplit('/').next().unwrap_or(&from);
            let target = if copy.to.ends_with('/') {
                join(&to, name)
            } else {
                to
            };
            if target.is_empty() {
                return Err(failed("a file needs a name in the image"));
            }
            walk.leaf(&from, target, listed);
        }
    }
    walk.run()
}

/// What the path of a copy leads to.
enum Start {
    Nothing,
    LeftOut,
    Link(String),
    /// The reason is among the refusals.
    Unreadable,
    Directory(u32, Matched),
    Other(Listed),
}

impl Walk<'_> {
    /// Goes down to the path of a copy name by name, as the patterns want it.
    fn start(&mut self, from: &str) -> Result<Start, ScanError> {
        let mut matched = Matched::default();
        let mut at = String::new();
        let mut mode = 0o755;
        if from.is_empty() {
            return Ok(Start::Directory(mode, matched));
        }
        for (index, name) in from.split('/').enumerate() {
            let listed = match self.source.list(&at) {
                Ok(listed) => listed,
                Err(error) => {
                    self.refuse(&at, unreadable(&error));
                    return Ok(Start::Unreadable);
                }
            };
            let Some(listed) = listed
                .into_iter()
                .find(|listed| listed.name == name.as_bytes())
            else {
                return Ok(Start::Nothing);
            };
            at = join(&at, name);
            let left_out;
            (left_out, matched) = self.ignore.matches(&at, &matched)?;
            let is_last = index == from.matches('/').count();
            match listed.kind {
                ListedKind::Directory if left_out && !self.ignore.may_take_in_below(&at) => {
                    return Ok(Start::LeftOut);
                }
                ListedKind::Directory => mode = listed.mode,
                ListedKind::Link(_) if !is_last => return Ok(Start::Link(at)),
                _ if !is_last => return Ok(Start::Nothing),
                _ if left_out => return Ok(Start::LeftOut),
                _ => return Ok(Start::Other(listed)),
            }
        }
        Ok(Start::Directory(mode, matched))
    }

    fn run(&mut self) -> Result<(), ScanError> {
        while let Some(directory) = self.pending.pop() {
            match self.source.list(&directory.source) {
                Ok(mut listed) => {
                    // Notices and errors come in the same order on every machine.
                    listed.sort_unstable_by(|a, b| a.name.cmp(&b.name));
                    for listed in listed {
                        self.one(&directory, listed)?;
                    }
                }
                Err(error) => self.refuse(&directory.source, unreadable(&error)),
            }
            if self.found.entries.len() > MAX_ENTRIES {
                return Err(ScanError::TooMany);
            }
        }
        Ok(())
    }

    fn one(&mut self, directory: &Pending, listed: Listed) -> Result<(), ScanError> {
        let Ok(name) = std::str::from_utf8(&listed.name) else {
            let shown = join(&directory.source, &listed.name.escape_ascii().to_string());
            self.refuse(&shown, "has a name that is not UTF-8".to_owned());
            return Ok(());
        };
        let source = join(&directory.source, name);
        if name == ".git" || self.never.contains(&source) {
            return Ok(());
        }
        let (left_out, matched) = self.ignore.matches(&source, &directory.matched)?;
        let is_directory = listed.kind == ListedKind::Directory;
        if left_out && !(is_directory && self.ignore.may_take_in_below(&source)) {
            return Ok(());
        }
        let target = join(&directory.target, name);
        if source.len().max(target.len()) > MAX_PATH_BYTES {
            self.refuse(
                &source,
                format!("has a path of more than {MAX_PATH_BYTES} bytes"),
            );
        } else if name.starts_with(".wh.") {
            let why = "has a name that begins with `.wh.`, which in a layer deletes a file of the layers below";
            self.refuse(&source, why.to_owned());
        } else if is_directory {
            if !left_out {
                self.directory(&source, &target, listed.mode);
            }
            self.pending.push(Pending {
                source,
                target,
                matched,
            });
        } else {
            self.leaf(&source, target, listed);
        }
        Ok(())
    }

    fn directory(&mut self, source: &str, target: &str, mode: u32) {
        self.notice_special_bits(source, mode);
        self.found.entries.push(Entry {
            path: target.to_owned(),
            node: Node::Directory,
            mode: self.copy.directory_mode(mode),
            owner: self.copy.owner,
            capability: None,
        });
    }

    /// A file or a link, or something that is refused.
    fn leaf(&mut self, source: &str, target: String, listed: Listed) {
        let (node, mode) = match listed.kind {
            ListedKind::File => {
                self.notice_special_bits(source, listed.mode);
                let file = Node::File {
                    source: source.to_owned(),
                    size: listed.stamp.size,
                    content: [0; 32],
                };
                (file, self.copy.file_mode(listed.mode))
            }
            ListedKind::Link(link) => match String::from_utf8(link) {
                Ok(link) => (Node::Link(link), 0o777),
                Err(_) => {
                    return self.refuse(source, "leads to a name that is not UTF-8".to_owned());
                }
            },
            ListedKind::Special(what) => return self.refuse(source, format!("is a {what}")),
            ListedKind::Directory => return,
        };
        let mut capability = None;
        if matches!(node, Node::File { .. }) {
            capability = self.attributes(source);
            self.found
                .files
                .push((self.found.entries.len(), listed.stamp));
        }
        self.found.entries.push(Entry {
            path: target,
            node,
            mode,
            owner: self.copy.owner,
            capability,
        });
    }

    /// Notices attributes that are lost, and returns the capabilities if they are kept.
    fn attributes(&mut self, source: &str) -> Option<Vec<u8>> {
        const CAPABILITY: &str = "security.capability";
        let names = match self.source.attribute_names(source) {
            Ok(names) if names.is_empty() => return None,
            Ok(names) => names,
            Err(error) => {
                self.refuse(source, unreadable(&error));
                return None;
            }
        };
        let (capability, others): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| name == CAPABILITY);
        if !others.is_empty() {
            self.found.notices.push(Notice::Attributes {
                path: source.to_owned(),
                names: others,
            });
        }
        if capability.is_empty() {
            return None;
        }
        if !self.copy.keep.capabilities {
            self.found.notices.push(Notice::Capabilities {
                path: source.to_owned(),
            });
            return None;
        }
        match self.source.attribute(source, CAPABILITY) {
            Ok(value) => value,
            Err(error) => {
                self.refuse(source, unreadable(&error));
                None
            }
        }
    }

    fn notice_special_bits(&mut self, source: &str, mode: u32) {
        let bits = mode & 0o7000;
        if bits != 0 && !self.copy.keep.special_bits {
            self.found.notices.push(Notice::SpecialBits {
                path: source.to_owned(),
                bits,
            });
        }
    }

    fn refuse(&mut self, path: &str, why: String) {
        let path = if path.is_empty() { "." } else { path };
        self.found.refusals.push(Refusal {
            path: path.to_owned(),
            why,
        });
    }
}

/// Why something that was listed cannot be read.
fn unreadable(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::NotFound {
        "vanished while the files were looked for".to_owned()
    } else {
        format!("cannot be read: {error}")
    }
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    }
}
