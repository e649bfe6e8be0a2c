//! The password of a user: a field of `/etc/shadow`, and how it is changed.

/// What a field of `/etc/shadow` says about a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Password {
    /// The field as it is.
    field: String,
}

impl Password {
    /// The password of a user in the text of `/etc/shadow`.
    pub(crate) fn of_user(shadow: &str, name: &str) -> Option<Self> {
        shadow.lines().find_map(|line| {
            let mut fields = line.split(':');
            let is_user = fields.next() == Some(name);
            let field = fields.next().filter(|_| is_user)?;
            Some(Self {
                field: field.to_owned(),
            })
        })
    }

    /// A password with this hash, or none at all with an empty one.
    pub(crate) fn of_hash(hash: &str) -> Self {
        Self {
            field: hash.to_owned(),
        }
    }

    /// Whether nobody can log in with it, because a lock stands before the hash.
    pub(crate) fn is_locked(&self) -> bool {
        self.field.starts_with('!')
    }

    /// The hash without the lock.
    pub(crate) fn hash(&self) -> &str {
        self.field.trim_start_matches('!')
    }

    /// The same password with a lock or without.
    pub(crate) fn locked(&self, locked: bool) -> Self {
        let lock = if locked { "!" } else { "" };
        Self {
            field: format!("{lock}{}", self.hash()),
        }
    }

    /// The text of `/etc/shadow` with this password for a user, changed on a day counted from 1970; `None` if the
    /// user has no line.
    pub(crate) fn set_in(&self, shadow: &str, name: &str, day: u64) -> Option<String> {
        let mut is_found = false;
        let lines: Vec<String> = shadow
            .split('\n')
            .map(|line| {
                let mut fields: Vec<&str> = line.split(':').collect();
                if is_found || fields.len() < 3 || fields.first() != Some(&name) {
                    return line.to_owned();
                }
                is_found = true;
                let day = day.to_string();
                fields[1] = &self.field;
                fields[2] = &day;
                fields.join(":")
            })
            .collect();
        is_found.then(|| lines.join("\n"))
    }
}

/// Why a text is not a hash for `/etc/shadow`; `None` if it is one.
pub(crate) fn fault_of_hash(hash: &str) -> Option<&'static str> {
    let is_crypt = hash.starts_with('$') && hash.matches('$').count() >= 3;
    let is_one_field = hash
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b':' && byte != b'!');
    match (is_crypt, is_one_field) {
        (false, _) => Some("must be a hash that begins with `$`, never the password itself"),
        (_, false) => Some("must not contain blanks, `:` or `!`"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHADOW: &str = "root:*:19000:0:99999:7:::\nweb:!$6$a$b:19000::::::\n";

    #[test]
    fn only_one_line_of_shadow_changes() {
        let password = Password::of_user(SHADOW, "web").unwrap();
        assert!(password.is_locked());
        assert_eq!(password.hash(), "$6$a$b");
        let text = password
            .locked(false)
            .set_in(SHADOW, "web", 20_000)
            .unwrap();
        assert_eq!(text, "root:*:19000:0:99999:7:::\nweb:$6$a$b:20000::::::\n");
        assert_eq!(password.set_in(SHADOW, "db", 1), None);
    }

    #[test]
    fn a_password_in_clear_is_no_hash() {
        for bad in [
            "secret",
            "",
            "$6$",
            "$6$a$b:c",
            "!$6$a$b",
            "$6$a$b\n",
            "ab1234567890a",
        ] {
            assert!(fault_of_hash(bad).is_some(), "{bad:?}");
        }
        assert_eq!(fault_of_hash("$y$j9T$salt$hash"), None);
    }
}
