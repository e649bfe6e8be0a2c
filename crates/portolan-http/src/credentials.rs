//! User names, passwords and tokens: types that never print what they hold.

use std::fmt;

/// Text that must not reach a log, an error or a screen.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Secret(String);

/// A user and the password that goes with the name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// The user name.
    pub username: String,
    /// The password or personal token.
    pub password: Secret,
}

// === impl Secret ===

impl Secret {
    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

// === impl Credentials ===

impl Credentials {
    /// Pairs a user with a password.
    pub fn new(username: impl Into<String>, password: impl Into<Secret>) -> Self {
        Self {
            username: username.into(),
            password: password.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_printed() {
        let credentials = Credentials::new("ada", "hunter2");
        let printed = format!("{credentials:?}");
        assert!(printed.contains("ada") && printed.contains("[redacted]"));
        assert!(!printed.contains("hunter2"));
    }
}
