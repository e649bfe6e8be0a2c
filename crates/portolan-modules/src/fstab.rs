//! `/etc/fstab` and the list of mounts: lines whose fields have blanks written as octal numbers.

use std::fmt::Write as _;

/// A line of `/etc/fstab`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountLine {
    /// What is mounted: `UUID=…`, a device, `server:/path`.
    pub source: String,
    /// Where.
    pub path: String,
    /// The type of the file system.
    pub kind: String,
    /// The options, with commas between them.
    pub options: String,
    /// Whether `dump` saves it, and when it is checked at start; as the line has them.
    pub rest: [String; 2],
}

impl MountLine {
    /// Reads a line; `None` for comments, empty lines and lines of another form.
    pub fn parse(line: &str) -> Option<Self> {
        if line.trim_ascii_start().starts_with('#') {
            return None;
        }
        let mut fields = line.split_ascii_whitespace().map(unescape);
        Some(Self {
            source: fields.next()?,
            path: fields.next()?,
            kind: fields.next()?,
            options: fields.next().unwrap_or_else(|| "defaults".to_owned()),
            rest: [
                fields.next().unwrap_or_else(|| "0".to_owned()),
                fields.next().unwrap_or_else(|| "0".to_owned()),
            ],
        })
    }

    /// The line as text.
    pub fn to_text(&self) -> String {
        let [dump, pass] = &self.rest;
        [
            &self.source,
            &self.path,
            &self.kind,
            &self.options,
            dump,
            pass,
        ]
        .map(|field| escape(field))
        .join(" ")
    }
}

/// The line for a mount point.
pub fn line_of(text: &str, path: &str) -> Option<MountLine> {
    text.split_terminator('\n')
        .filter_map(MountLine::parse)
        .find(|line| line.path == path)
}

/// The text with this line for its mount point, or without one. Other lines for the same mount point go.
pub fn with_line(text: &str, path: &str, wanted: Option<&MountLine>) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut missing = wanted;
    for line in text.split_terminator('\n') {
        match MountLine::parse(line) {
            Some(known) if known.path == path => {
                if let Some(wanted) = missing.take() {
                    let is_same = known == *wanted;
                    lines.push(if is_same {
                        line.to_owned()
                    } else {
                        wanted.to_text()
                    });
                }
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.extend(missing.map(MountLine::to_text));
    if lines.is_empty() {
        return String::new();
    }
    lines.join("\n") + "\n"
}

/// The type of what is mounted at a path, by the text of `/proc/self/mountinfo`; the last mount covers earlier ones.
pub fn mounted_type(mountinfo: &str, path: &str) -> Option<String> {
    mountinfo.lines().rev().find_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let point = front.split(' ').nth(4).map(unescape)?;
        (point == path).then(|| back.split(' ').next().unwrap_or_default().to_owned())
    })
}

fn escape(field: &str) -> String {
    let mut text = String::new();
    for letter in field.chars() {
        let is_special = letter.is_ascii_whitespace() || letter.is_ascii_control();
        if is_special || letter == '\\' || (letter == '#' && text.is_empty()) {
            // Only ASCII letters come here, which octal numbers of three digits can write.
            let _ = write!(text, "\\{:03o}", u32::from(letter));
        } else {
            text.push(letter);
        }
    }
    text
}

fn unescape(field: &str) -> String {
    let mut text = String::new();
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let code = rest
            .get(at + 1..at + 4)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code.filter(u8::is_ascii) {
            Some(code) => {
                text.push(char::from(code));
                rest = &rest[at + 4..];
            }
            None => {
                text.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> MountLine {
        MountLine::parse(text).unwrap()
    }

    #[test]
    fn lines_with_blanks_survive() {
        let data = line("UUID=1 /srv/my\\040data ext4 defaults,nofail 0 2");
        assert_eq!(data.path, "/srv/my data");
        assert_eq!(line(&data.to_text()), data);
        let odd = MountLine {
            path: "/a\\b #c\td".to_owned(),
            ..data
        };
        assert_eq!(line(&odd.to_text()), odd);
        assert_eq!(MountLine::parse("# UUID=1 / ext4"), None);
        assert_eq!(MountLine::parse(""), None);
    }

    #[test]
    fn one_line_for_a_mount_point_is_changed() {
        let text = "# disks\nUUID=1 / ext4 defaults 0 1\n/dev/sdb1\t/srv ext4 defaults\n/dev/sdc1 /srv xfs ro\n";
        let wanted = line("UUID=2 /srv ext4 nofail 0 0");
        let changed = with_line(text, "/srv", Some(&wanted));
        assert_eq!(
            changed,
            "# disks\nUUID=1 / ext4 defaults 0 1\nUUID=2 /srv ext4 nofail 0 0\n"
        );
        assert_eq!(with_line(&changed, "/srv", Some(&wanted)), changed);
        assert_eq!(
            with_line(&changed, "/srv", None),
            "# disks\nUUID=1 / ext4 defaults 0 1\n"
        );
        assert_eq!(with_line("", "/srv", None), "");
    }

    #[test]
    fn the_last_mount_covers_earlier_ones() {
        let text = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n22 21 0:5 / /my\\040data rw shared:1 - tmpfs none rw\n\
                    23 22 0:6 / /my\\040data rw - xfs /dev/sdb rw\n";
        assert_eq!(mounted_type(text, "/my data").as_deref(), Some("xfs"));
        assert_eq!(mounted_type(text, "/").as_deref(), Some("ext4"));
        assert_eq!(mounted_type(text, "/srv"), None);
    }
}
