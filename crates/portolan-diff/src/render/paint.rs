//! Colour for terminals.

use anstyle::{AnsiColor, Style};

/// Whether a text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// Plain text.
    #[default]
    Never,
    /// With the codes that terminals understand.
    Always,
}

/// What is coloured, by its meaning.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ink {
    Name,
    Added,
    Removed,
    Warning,
    Error,
    Faint,
    Strong,
}

impl Colour {
    /// The text in the ink's colour.
    pub(super) fn paint(self, ink: Ink, text: &str) -> String {
        if self == Self::Never || text.is_empty() {
            return text.to_owned();
        }
        let style = match ink {
            Ink::Name => AnsiColor::Cyan.on_default(),
            Ink::Added => AnsiColor::Green.on_default(),
            Ink::Removed => AnsiColor::Red.on_default(),
            Ink::Warning => AnsiColor::Yellow.on_default(),
            Ink::Error => AnsiColor::Red.on_default().bold(),
            Ink::Faint => Style::new().dimmed(),
            Ink::Strong => Style::new().bold(),
        };
        format!("{style}{text}{style:#}")
    }
}
