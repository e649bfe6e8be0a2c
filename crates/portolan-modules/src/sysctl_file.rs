//! Files of kernel settings, such as those in `/etc/sysctl.d`: read, edited by key, and which of them has the last word.

/// A key in one form, however it is written: the path below `/proc/sys`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SysctlKey(String);

impl SysctlKey {
    /// Reads `net.ipv4.ip_forward` or `net/ipv4/conf/eth0.1/forwarding`; `None` if it could be another path.
    pub fn parse(text: &str) -> Option<Self> {
        let first = text.find(['.', '/']);
        // The first separator decides which of both letters separates.
        let is_dotted = first.is_some_and(|at| text[at..].starts_with('.'));
        let path: String = text
            .chars()
            .map(|letter| match letter {
                '.' if is_dotted => '/',
                '/' if is_dotted => '.',
                other => other,
            })
            .collect();
        let is_part = |part: &str| {
            !matches!(part, "" | "." | "..")
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-.:@".contains(&byte))
        };
        (first.is_some() && path.split('/').all(is_part)).then_some(Self(path))
    }

    /// The path below `/proc/sys`.
    pub fn path(&self) -> &str {
        &self.0
    }
}

/// The key and value of a line; `None` for comments, empty lines and lines of another form.
fn parse_line(line: &str) -> Option<(SysctlKey, String)> {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return None;
    }
    let (key, value) = line.split_once('=')?;
    let key = key.trim();
    // A `-` before the key means that a failure to set it is ignored.
    let key = SysctlKey::parse(key.strip_prefix('-').unwrap_or(key))?;
    Some((key, plain_value(value)))
}

/// A value with single blanks, as the kernel's tabs and those of people mean the same.
pub fn plain_value(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// The value that a file gives to a key; the last line counts.
pub fn value_of(text: &str, key: &SysctlKey) -> Option<String> {
    let lines = text.split_terminator('\n').rev().filter_map(parse_line);
    lines
        .filter(|(known, _)| known == key)
        .map(|(_, value)| value)
        .next()
}

/// The text with a value for a key: on the key's last line, or on a new one. Other lines of the key go.
pub fn with_value(text: &str, key: &SysctlKey, name: &str, value: &str) -> String {
    let is_key = |line: &str| parse_line(line).is_some_and(|(known, _)| known == *key);
    let last = text
        .split_terminator('\n')
        .filter(|line| is_key(line))
        .count();
    let mut seen = 0;
    let mut lines: Vec<String> = Vec::new();
    for line in text.split_terminator('\n') {
        if !is_key(line) {
            lines.push(line.to_owned());
            continue;
        }
        seen += 1;
        if seen < last {
            continue;
        }
        let is_same = parse_line(line).is_some_and(|(_, known)| known == value);
        lines.push(if is_same {
            line.to_owned()
        } else {
            format!("{name} = {value}")
        });
    }
    if last == 0 {
        lines.push(format!("{name} = {value}"));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> SysctlKey {
        SysctlKey::parse(text).unwrap()
    }

    #[test]
    fn a_key_is_the_same_in_both_forms() {
        assert_eq!(key("net.ipv4.ip_forward"), key("net/ipv4/ip_forward"));
        assert_eq!(key("net.ipv4.conf.eth0/1.x"), key("net/ipv4/conf/eth0.1/x"));
        for bad in [
            "",
            "kernel",
            "../etc",
            "net/../../etc",
            "/etc",
            "net..x",
            "a b.c",
            "net.x\n",
        ] {
            assert_eq!(SysctlKey::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn one_line_of_a_key_is_kept_and_changed() {
        let text =
            "# forward\nnet.ipv4.ip_forward=0\n-net/ipv4/ip_forward = 1\nvm.swappiness = 5\n";
        assert_eq!(
            value_of(text, &key("net.ipv4.ip_forward")).as_deref(),
            Some("1")
        );
        let changed = with_value(
            text,
            &key("net.ipv4.ip_forward"),
            "net.ipv4.ip_forward",
            "0",
        );
        assert_eq!(
            changed,
            "# forward\nnet.ipv4.ip_forward = 0\nvm.swappiness = 5\n"
        );
        let again = with_value(
            &changed,
            &key("net.ipv4.ip_forward"),
            "net.ipv4.ip_forward",
            "0",
        );
        assert_eq!(again, changed);
        assert_eq!(with_value("", &key("a.b"), "a.b", "1 2"), "a.b = 1 2\n");
    }
}
