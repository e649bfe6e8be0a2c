//! A generator: a name, the file it owns, and the function that makes the file's text.

use std::path::Path;

use anyhow::{Context, Result, bail};

/// What to do with a generated text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Write the file.
    Write,
    /// Fail when the committed file differs.
    Check,
}

/// Makes one committed file.
pub(crate) struct Generator {
    /// What the command line calls it.
    pub(crate) name: &'static str,
    /// The file, relative to the repository's root.
    pub(crate) output: &'static str,
    /// Makes the file's text.
    pub(crate) generate: fn() -> Result<String>,
}

impl Generator {
    /// Runs the generator and says what happened.
    pub(crate) fn run(&self, mode: Mode) -> Result<String> {
        let text = (self.generate)().with_context(|| format!("cannot generate `{}`", self.name))?;
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(self.output);
        let current = std::fs::read_to_string(&path).unwrap_or_default();
        match mode {
            _ if current == text => Ok(format!("{}: current", self.output)),
            Mode::Check => bail!(
                "{} is not current: run `cargo run -p xtask -- gen {}`",
                self.output,
                self.name
            ),
            Mode::Write => {
                std::fs::write(&path, text)
                    .with_context(|| format!("cannot write `{}`", self.output))?;
                Ok(format!("{}: written", self.output))
            }
        }
    }
}
