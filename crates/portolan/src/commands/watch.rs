//! `portolan watch`: shows immediately what a saved file changes in the rendered repository.
//!
//! ```text
//! Wakeups ──▶ RepositoryWatch::touched ──(files differ)──▶ RepositoryWatch::render ──▶ difference, problems
//! ```
//!
//! A state that cannot be rendered, for example in the middle of an edit or of a branch switch, is reported; the next
//! good state is compared with the last good one.

mod print;
mod wakeups;

use std::time::Instant;

use portolan_object::counted;
use portolan_review::watch::{RepositoryWatch, WatchedState};

use super::CommandResult;
use crate::app::App;
use crate::error::{CommandError, ErrorKind};
use crate::exit::ExitStatus;
use crate::repository::{RepositoryArgs, tell_new_problems};
use crate::session::ShownRuns;
use print::{named, print, rebuilt, spent};
use wakeups::{Wakeup, Wakeups};

/// Render again whenever a file is saved, and show what changed
///
/// The repository is rendered once, then its files are watched. When a file is saved, only what depends on it is
/// rendered again. Differences go to standard output, progress and problems to standard error. If the files cannot be
/// rendered, the command waits for the next change. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan watch
  portolan watch --path clusters/production
  portolan watch -o json | jq -r '.changes[].name'")]
pub(crate) struct WatchArgs {
    /// Output format
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

/// Output format of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// Old values above new ones
    Text,
    /// A document for each change
    Json,
}

pub(crate) fn watch(args: &WatchArgs, app: &App) -> CommandResult {
    let mut watched = Watched {
        watch: RepositoryWatch::begin(&args.repository.repository(app)?),
        args,
        app,
    };
    let mut wakeups = Wakeups::below(watched.watch.root(), app)?;
    watched.begin(&wakeups)?;
    loop {
        match wakeups.next() {
            Wakeup::Stop => return Ok(ExitStatus::Interrupted),
            Wakeup::Told => {
                watched.look()?;
            }
            // Nobody told us of a change: the directories we listen to are not the ones that are there.
            Wakeup::Time => {
                if watched.look()? {
                    wakeups.listen_anew();
                }
            }
        }
    }
}

/// A repository that is watched, and how its changes are told.
struct Watched<'a> {
    watch: RepositoryWatch,
    args: &'a WatchArgs,
    app: &'a App,
}

impl Watched<'_> {
    /// Renders for the first time.
    fn begin(&mut self, wakeups: &Wakeups<'_>) -> Result<(), CommandError> {
        let began = Instant::now();
        if let Some(state) = self.render()? {
            self.tell(&state)?;
        }
        let made = self.watch.made();
        self.app.printer.say_unless_quiet(&format!(
            "watching {} · {} and {} in {}",
            self.watch.root(),
            counted(made.kustomizations, "Kustomization"),
            counted(made.releases, "release"),
            spent(began.elapsed()),
        ));
        if !wakeups.is_told() {
            self.app.printer.warning(
                "the system does not tell of saved files; they are looked at every second",
            );
        }
        Ok(())
    }

    /// Renders if a file differs; says whether one does.
    fn look(&mut self) -> Result<bool, CommandError> {
        let touched = self.watch.touched();
        if touched.is_empty() {
            return Ok(false);
        }
        let (began, before) = (Instant::now(), self.watch.made());
        let state = self.render()?;
        self.app.printer.say_unless_quiet(&format!(
            "saved {}: {} in {}",
            named(&touched),
            rebuilt(before, self.watch.made()),
            spent(began.elapsed())
        ));
        if let Some(state) = state {
            self.tell(&state)?;
        }
        Ok(true)
    }

    /// Renders the files as they are; what stops all of it is told and waited out.
    fn render(&mut self) -> Result<Option<WatchedState>, CommandError> {
        // Opened anew each time: the lock file and what is fetched may have changed too.
        let repository = self.args.repository.repository(self.app)?;
        let runs = ShownRuns::new(self.app);
        match self.watch.render(&repository, &runs) {
            Ok(state) => Ok(Some(state)),
            Err(error) if error.kind == ErrorKind::User => {
                self.app.printer.error(&error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Tells what differs from what was seen last.
    fn tell(&self, state: &WatchedState) -> Result<(), CommandError> {
        tell_new_problems(&state.rendered, &state.new_problems, &self.app.printer);
        for message in &state.fixed {
            self.app
                .printer
                .say_unless_quiet(&format!("fixed: {message}"));
        }
        state.report.as_ref().map_or(Ok(()), |report| {
            print(report, self.args.output, &self.app.printer)
        })
    }
}
