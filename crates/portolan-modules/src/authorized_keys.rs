//! Lines of `~/.ssh/authorized_keys`. Two lines are about the same key if type and key are equal; options and comment
//! are what a step may change.

/// A line that holds a key: options, type, key, comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyLine {
    text: String,
    kind: String,
    key: String,
}

/// The types of keys that `sshd` reads.
const KEY_TYPES: &[&str] = &[
    "ssh-ed25519",
    "ssh-rsa",
    "ssh-dss",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "ssh-ed25519-cert-v01@openssh.com",
    "ssh-rsa-cert-v01@openssh.com",
    "ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "ecdsa-sha2-nistp384-cert-v01@openssh.com",
    "ecdsa-sha2-nistp521-cert-v01@openssh.com",
    "sk-ssh-ed25519-cert-v01@openssh.com",
    "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
];

impl KeyLine {
    /// Reads a line; `None` if it holds no key, as comments and empty lines.
    pub fn parse(line: &str) -> Option<Self> {
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') || text.contains(['\n', '\r', '\0']) {
            return None;
        }
        let mut words = words_of(text).into_iter();
        let first = words.next()?;
        // Options stand before the type and may contain blanks in quotes.
        let kind = if KEY_TYPES.contains(&first) {
            first
        } else {
            words.next()?
        };
        let key = words.next()?;
        let is_key = key.len() >= 16
            && key
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
        (KEY_TYPES.contains(&kind) && is_key).then(|| Self {
            text: text.to_owned(),
            kind: kind.to_owned(),
            key: key.to_owned(),
        })
    }

    /// The whole line.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn is_same_key(&self, other: &Self) -> bool {
        self.kind == other.kind && self.key == other.key
    }
}

/// The text of `authorized_keys` with all of the wanted keys. Other lines stay as they are; if `is_exclusive`, other
/// keys are left out.
pub fn with_keys(text: &str, wanted: &[KeyLine], is_exclusive: bool) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut is_there = vec![false; wanted.len()];
    for line in text.split_terminator('\n') {
        let Some(known) = KeyLine::parse(line) else {
            lines.push(line.to_owned());
            continue;
        };
        match wanted.iter().position(|key| key.is_same_key(&known)) {
            // A second line about the same key would keep its old options alive.
            Some(index) if std::mem::replace(&mut is_there[index], true) => {}
            Some(index) => lines.push(wanted[index].text.clone()),
            None if is_exclusive => {}
            None => lines.push(line.to_owned()),
        }
    }
    let missing = wanted
        .iter()
        .zip(is_there)
        .filter(|(_, is_there)| !is_there);
    lines.extend(missing.map(|(key, _)| key.text.clone()));
    let mut joined = lines.join("\n");
    if !joined.is_empty() {
        joined.push('\n');
    }
    joined
}

/// Splits at blanks that are not inside double quotes; `\"` does not end a quoted text.
fn words_of(text: &str) -> Vec<&str> {
    let (mut words, mut start, mut is_quoted, mut is_escaped) = (Vec::new(), None, false, false);
    for (at, letter) in text.char_indices() {
        let is_blank = matches!(letter, ' ' | '\t') && !is_quoted;
        match (start, is_blank) {
            (None, false) => start = Some(at),
            (Some(begin), true) => {
                words.push(&text[begin..at]);
                start = None;
            }
            _ => {}
        }
        if letter == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    words.extend(start.map(|begin| &text[begin..]));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANNA: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIanna anna@desk";
    const BERT: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABbert bert";

    fn key(text: &str) -> KeyLine {
        KeyLine::parse(text).unwrap()
    }

    #[test]
    fn options_are_part_of_the_line_and_not_of_the_key() {
        let limited = format!(r#"from="10.0.0.0/8, ::1",command="echo \"hi there\"" {ANNA}"#);
        let text = format!("# mine\n{ANNA}\n{BERT}\n");
        let changed = with_keys(&text, &[key(&limited)], false);
        assert_eq!(changed, format!("# mine\n{limited}\n{BERT}\n"));
        assert_eq!(with_keys(&changed, &[key(&limited)], false), changed);
    }

    #[test]
    fn other_keys_go_only_when_asked() {
        let text = format!("# mine\n{BERT}\n{BERT}");
        assert_eq!(
            with_keys(&text, &[key(ANNA)], false),
            format!("# mine\n{BERT}\n{BERT}\n{ANNA}\n")
        );
        assert_eq!(
            with_keys(&text, &[key(ANNA)], true),
            format!("# mine\n{ANNA}\n")
        );
        assert_eq!(with_keys("", &[], true), "");
    }

    #[test]
    fn a_doubled_key_is_kept_once() {
        let text = format!("{ANNA}\nno-pty {ANNA}\n");
        assert_eq!(with_keys(&text, &[key(ANNA)], false), format!("{ANNA}\n"));
    }

    #[test]
    fn lines_that_hold_no_key_are_refused() {
        for bad in [
            "",
            "# x",
            "anna",
            "ssh-ed25519",
            "ssh-ed25519 short",
            "ssh-foo AAAAC3NzaC1lZDI1NTE5",
            &format!("{ANNA}\n{BERT}"),
        ] {
            assert_eq!(KeyLine::parse(bad), None, "{bad}");
        }
    }
}
