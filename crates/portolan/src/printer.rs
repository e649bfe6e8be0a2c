//! The only place that writes to the terminal: data to stdout, everything else to stderr.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use camino::{Utf8Path, Utf8PathBuf};
use clap::ColorChoice;
use portolan_secret::{KnownSecrets, Mask, without_passwords};

use crate::diagnostic::Diagnostic;
use crate::error::{CommandError, ErrorKind};
use crate::exit::ExitStatus;
use crate::log::LogFormat;
use crate::table::Canvas;

/// How much is said, and whether in colour.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OutputOptions {
    /// Say what became of each piece of work
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet", help_heading = "General")]
    pub(crate) verbose: u8,

    /// Say nothing but the answer, and why there is none
    #[arg(short, long, global = true, help_heading = "General")]
    pub(crate) quiet: bool,

    /// Use colour
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "General"
    )]
    pub(crate) color: ColorChoice,

    /// Write what happens as JSON lines to a file; `-` is standard output
    #[arg(
        long,
        alias = "event-log-file",
        global = true,
        value_name = "FILE",
        help_heading = "General"
    )]
    pub(crate) events: Option<Utf8PathBuf>,

    /// How log lines look; `PORTOLAN_LOG=debug` turns them on
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "General"
    )]
    pub(crate) log_format: LogFormat,
}

/// How a run is shown while it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressStyle {
    /// Not at all.
    None,
    /// One line that changes, on a terminal.
    Line,
    /// A line for each unit that changes, on a terminal.
    #[cfg(feature = "ship")]
    LineEach,
    /// Lines of text, in a log.
    Plain,
    /// A line for each unit.
    Each,
}

/// Owns stdout and stderr.
pub(crate) struct Printer {
    stdout: io::Stdout,
    stderr: io::Stderr,
    options: OutputOptions,
    /// Whether stderr shows colour; decided once.
    styled: bool,
    /// What data for people is drawn on.
    canvas: Canvas,
    /// What must not be seen.
    hidden: Hidden,
}

/// Hides what is secret, in everything that is written, until somebody asks to see it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hidden(Arc<HiddenState>);

#[derive(Debug, Default)]
struct HiddenState {
    secrets: Arc<KnownSecrets>,
    is_shown: AtomicBool,
}

impl Hidden {
    /// A text as it may be written.
    pub(crate) fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_shown() {
            return Cow::Borrowed(text);
        }
        match self.mask().text(text) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(clean) => Cow::Owned(clean),
        }
    }

    /// Bytes as they may be written: what of them is text is searched.
    pub(crate) fn clean_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.is_shown() || self.mask().is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut clean = Vec::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            clean.extend_from_slice(self.clean(chunk.valid()).as_bytes());
            clean.extend_from_slice(chunk.invalid());
        }
        Cow::Owned(clean)
    }

    /// A text for people as it may be written: without passwords in addresses, whether they are known or not.
    pub(crate) fn clean_message(&self, text: &str) -> String {
        if self.is_shown() {
            return text.to_owned();
        }
        without_passwords(&self.clean(text)).into_owned()
    }

    /// Finds what is known to be secret by now.
    pub(crate) fn mask(&self) -> Arc<Mask> {
        self.0.secrets.mask()
    }

    /// What is known to be secret.
    pub(crate) fn secrets(&self) -> &KnownSecrets {
        &self.0.secrets
    }

    /// Whether the user asked to see what is secret.
    pub(crate) fn is_shown(&self) -> bool {
        self.0.is_shown.load(Ordering::Relaxed)
    }
}

/// What error messages call the stream of data.
const STDOUT: &str = "standard output";

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

impl Printer {
    /// A printer for this process's streams.
    pub(crate) fn new(options: OutputOptions) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let styled = shows_colour(options.color, stderr.is_terminal());
        let canvas = Canvas {
            width: stdout.is_terminal().then(terminal_width).flatten(),
            styled: shows_colour(options.color, stdout.is_terminal()),
        };
        Self {
            stdout,
            stderr,
            options,
            styled,
            canvas,
            hidden: Hidden::default(),
        }
    }

    /// Where whoever reads something secret puts it, so that it is hidden.
    pub(crate) fn secrets(&self) -> Arc<KnownSecrets> {
        Arc::clone(&self.hidden.0.secrets)
    }

    /// Hides nothing any more: the user asked to see it.
    pub(crate) fn show_secrets(&self) {
        self.hidden.0.is_shown.store(true, Ordering::Relaxed);
    }

    /// Whether the user asked to see what is secret.
    pub(crate) fn shows_secrets(&self) -> bool {
        self.hidden.is_shown()
    }

    /// What must not be seen, for those who write elsewhere.
    pub(crate) fn hidden(&self) -> Hidden {
        self.hidden.clone()
    }

    /// Tells of remote accesses from any thread.
    pub(crate) fn announcer(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let quiet = self.options.quiet;
        let hidden = self.hidden();
        move |what: &str| {
            if !quiet {
                let what = hidden.clean_message(what);
                // When stderr is gone there is nobody left to tell.
                let _ = writeln!(io::stderr().lock(), "fetching {what}");
            }
        }
    }

    /// What stdout can show.
    pub(crate) fn canvas(&self) -> Canvas {
        self.canvas
    }

    /// How a run is to be shown.
    pub(crate) fn progress_style(&self) -> ProgressStyle {
        if self.options.quiet {
            ProgressStyle::None
        } else if self.options.verbose > 0 {
            ProgressStyle::Each
        } else if self.stderr.is_terminal() && !is_plain_terminal() {
            ProgressStyle::Line
        } else {
            ProgressStyle::Plain
        }
    }

    /// How a run of few units is to be shown, each of which people know by name.
    #[cfg(feature = "ship")]
    pub(crate) fn progress_style_of_few(&self) -> ProgressStyle {
        match self.progress_style() {
            ProgressStyle::Line => ProgressStyle::LineEach,
            style => style,
        }
    }

    /// Whether a changing line would be drawn over data on the same terminal.
    pub(crate) fn draws_over_data(&self) -> bool {
        self.progress_style() == ProgressStyle::Line && self.stdout.is_terminal()
    }

    /// The file that events are to be written to.
    pub(crate) fn events(&self) -> Option<&Utf8Path> {
        self.options.events.as_deref()
    }

    /// Writes data to stdout as it is.
    pub(crate) fn data(&self, bytes: impl AsRef<[u8]>) -> Result<(), CommandError> {
        let bytes = bytes.as_ref();
        let clean = self.hidden.clean_bytes(bytes);
        let written = self.stdout.lock().write_all(&clean);
        written.map_err(|error| CommandError::output(STDOUT, error))
    }

    /// Says that something is odd, though the work goes on.
    pub(crate) fn warning(&self, message: &str) {
        if !self.options.quiet {
            self.say(&format!("{}: {message}", self.paint(WARNING, "warning")));
        }
    }

    /// Says something that is odd in the words of another tool.
    pub(crate) fn remark(&self, words: &str) {
        if !self.options.quiet {
            self.say(words);
        }
    }

    /// Says something worth knowing that is no fault.
    pub(crate) fn note(&self, message: &str) {
        if !self.options.quiet {
            self.say(&format!("{}: {message}", self.paint(HINT, "note")));
        }
    }

    /// Says something that is neither data nor a fault.
    pub(crate) fn say_unless_quiet(&self, message: &str) {
        if !self.options.quiet {
            self.say(message);
        }
    }

    /// Whether nothing but the answer is to be said.
    pub(crate) fn is_quiet(&self) -> bool {
        self.options.quiet
    }

    /// Whether everything is to be said.
    pub(crate) fn is_verbose(&self) -> bool {
        self.options.verbose > 0
    }

    /// Whether stderr shows colour.
    pub(crate) fn is_styled(&self) -> bool {
        self.styled
    }

    /// Draws a message about a place in a file.
    pub(crate) fn diagnostic(&self, diagnostic: &Diagnostic<'_>) {
        self.say(&diagnostic.render(self.styled));
    }

    /// Tells why a command could not do its work, causes and advice included.
    pub(crate) fn error(&self, error: &CommandError) -> ExitStatus {
        if error.is_broken_pipe() {
            return ExitStatus::Clean;
        }
        let mut text = format!("{}: {}", self.paint(ERROR, "error"), error.source);
        for cause in error.source.chain().skip(1) {
            let _ = write!(text, "\n  because: {cause}");
        }
        for hint in &error.hints {
            let _ = write!(text, "\n{}: {hint}", self.paint(HINT, "hint"));
        }
        if error.kind == ErrorKind::Internal {
            text.push_str("\nthis is not your mistake; please report it with the command you ran");
        }
        self.say(&text);
        error.status()
    }

    /// Flushes what is left; the last word on the exit status.
    pub(crate) fn finish(&self, status: ExitStatus) -> ExitStatus {
        match self.stdout.lock().flush() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.error(&CommandError::output(STDOUT, error))
            }
            _ => status,
        }
    }

    fn say(&self, text: &str) {
        // When stderr is gone there is nobody left to tell.
        let _ = writeln!(self.stderr.lock(), "{}", self.hidden.clean_message(text));
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.styled {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

fn shows_colour(choice: ColorChoice, terminal: bool) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => terminal && !is_set("NO_COLOR") && !is_plain_terminal(),
    }
}

/// Whether the terminal cannot move its cursor, or nobody sits at it.
fn is_plain_terminal() -> bool {
    is_set("CI") || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn terminal_width() -> Option<usize> {
    let told = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let told = told.filter(|width| *width > 0);
    // Some terminals do not tell their size; shells and CI consoles say it here.
    told.or_else(|| {
        std::env::var("COLUMNS")
            .ok()?
            .parse()
            .ok()
            .filter(|width| *width > 0)
    })
}
