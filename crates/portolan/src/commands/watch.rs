//! `portolan watch`: what a saved file changes in the rendered repository, told at once.
//!
//! ```text
//! Wakeups ──▶ Snapshot ──(files differ)──▶ render with one Session ──▶ Seen ──▶ difference, problems
//! ```
//!
//! The session keeps what was built, so a render costs what the saved file reaches. A state that cannot be rendered, as
//! in the middle of an edit or of a branch switch, is told and waited out; the next good one is compared with the last.

mod seen;
mod snapshot;
mod wakeups;

use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_diff::render::{Colour, TerminalOptions, json, unified};
use portolan_diff::{Options, Report, StripAttributes};
use portolan_flux::{Depth, Session, Work};
use portolan_object::counted;
use portolan_vfs::Lineage;

use super::CommandResult;
use crate::error::{CommandError, ErrorKind};
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::repository::{Located, Rendered, RepositoryArgs};
use seen::Seen;
use snapshot::Snapshot;
use wakeups::{Wakeup, Wakeups};

/// Render again whenever a file is saved, and show what changed
///
/// The repository is rendered once, then its files are watched. A saved file is rendered with all that it reaches and no
/// more; what differs in the objects goes to standard output, what was done and what is wrong to standard error. A state
/// that cannot be rendered is waited out. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan watch
  portolan watch --path clusters/production
  portolan watch -o json | jq -r '.changes[].name'")]
pub(crate) struct WatchArgs {
    /// In which form differences are shown
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    output: Form,

    #[command(flatten)]
    repository: RepositoryArgs,
}

/// In which form differences are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// Old values above new ones
    Text,
    /// A document for each change
    Json,
}

/// How many saved files are named.
const NAMED_FILES: usize = 3;

pub(crate) fn watch(args: &WatchArgs, printer: &Printer) -> CommandResult {
    let mut watch = Watch {
        args,
        printer,
        located: args.repository.locate()?,
        session: Arc::default(),
        lineage: Lineage::begin(),
        snapshot: Snapshot::default(),
        seen: Seen::default(),
    };
    let mut wakeups = Wakeups::below(&watch.root())?;
    watch.begin(&wakeups)?;
    loop {
        match wakeups.next() {
            Wakeup::Stop => return Ok(ExitStatus::Interrupted),
            Wakeup::Told => {
                watch.look()?;
            }
            // Nobody told us of a change: the directories we listen to are not the ones that are there.
            Wakeup::Time => {
                if watch.look()? {
                    wakeups.listen_anew();
                }
            }
        }
    }
}

/// A repository that is watched.
struct Watch<'a> {
    args: &'a WatchArgs,
    printer: &'a Printer,
    located: Located,
    session: Arc<Session>,
    /// Which files were touched when, so that nothing else is looked at again.
    lineage: Lineage,
    snapshot: Snapshot,
    seen: Seen,
}

impl Watch<'_> {
    fn root(&self) -> Utf8PathBuf {
        self.located.disk.root().to_owned()
    }

    /// Renders for the first time.
    fn begin(&mut self, wakeups: &Wakeups) -> Result<(), CommandError> {
        self.snapshot = Snapshot::of(&self.root());
        let began = Instant::now();
        if let Some(rendered) = self.render()? {
            self.take(&rendered)?;
        }
        let made = self.session.made();
        self.printer.say_unless_quiet(&format!(
            "watching {} · {} and {} in {}",
            self.root(),
            counted(made.kustomizations, "Kustomization"),
            counted(made.releases, "release"),
            spent(began.elapsed()),
        ));
        if !wakeups.is_told() {
            self.printer.warning(
                "the system does not tell of saved files; they are looked at every second",
            );
        }
        Ok(())
    }

    /// Renders if a file differs; says whether one does.
    fn look(&mut self) -> Result<bool, CommandError> {
        let snapshot = Snapshot::of(&self.root());
        let touched = snapshot.since(&self.snapshot);
        if touched.is_empty() {
            return Ok(false);
        }
        self.snapshot = snapshot;
        let paths: Vec<_> = touched
            .iter()
            .map(|path| Utf8Path::new("/").join(path))
            .collect();
        self.lineage = self
            .lineage
            .followed_by(paths.iter().map(Utf8PathBuf::as_path));
        let (began, before) = (Instant::now(), self.session.made());
        let rendered = self.render()?;
        let after = self.session.made();
        self.printer.say_unless_quiet(&format!(
            "saved {}: {} in {}",
            named(&touched),
            rebuilt(before, after),
            spent(began.elapsed())
        ));
        if let Some(rendered) = rendered {
            self.take(&rendered)?;
            // In the middle of an edit, what is not asked for now is wanted again in a moment.
            if rendered.problems().is_empty() {
                self.session.forget_unused();
            }
        }
        Ok(true)
    }

    /// Renders the files as they are; what stops all of it is told and waited out.
    fn render(&self) -> Result<Option<Rendered>, CommandError> {
        let repository = &self.args.repository;
        let rendered = repository.render_state(
            &self.located,
            &self.lineage,
            &self.session,
            Depth::Releases,
            self.printer,
        );
        match rendered {
            Ok(rendered) => Ok(Some(rendered)),
            Err(error) if error.kind == ErrorKind::User => {
                self.printer.error(&error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Tells what differs from what was seen last.
    fn take(&mut self, rendered: &Rendered) -> Result<(), CommandError> {
        let is_first = self.seen.is_empty();
        let before = self.seen.batches();
        self.seen.take(rendered, self.printer);
        if is_first {
            return Ok(());
        }
        let options = Options {
            strip: StripAttributes::common(),
            ..Options::default()
        };
        let report = portolan_diff::diff(&before, &self.seen.batches(), &options);
        self.print(&report)
    }

    fn print(&self, report: &Report) -> Result<(), CommandError> {
        if report.changes.is_empty() {
            self.printer
                .say_unless_quiet("nothing changed in the objects");
            return Ok(());
        }
        let canvas = self.printer.canvas();
        let options = TerminalOptions {
            colour: if canvas.styled {
                Colour::Always
            } else {
                Colour::Never
            },
            width: canvas.width.unwrap_or(120),
            full: false,
        };
        self.printer.data(match self.args.output {
            Form::Text => unified(report, &options),
            Form::Json => json(report),
        })
    }
}

/// `apps/a.yaml, apps/b.yaml and 3 more`
fn named(files: &[Utf8PathBuf]) -> String {
    let first: Vec<&str> = files
        .iter()
        .take(NAMED_FILES)
        .map(|file| file.as_str())
        .collect();
    match files.len().saturating_sub(NAMED_FILES) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// `built 1 Kustomization and 2 releases again`
fn rebuilt(before: Work, after: Work) -> String {
    format!(
        "built {} and {} again",
        counted(
            after.kustomizations - before.kustomizations,
            "Kustomization"
        ),
        counted(after.releases - before.releases, "release"),
    )
}

fn spent(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1000.0)
}
