//! Random values and time for templates: from a seed, so equal input gives equal output, or real ones on request.

use std::fs::File;
use std::io::{self, Read};
use std::time::{SystemTime, UNIX_EPOCH};

use portolan_gotmpl::{Host, Seeded};

use crate::error::CommandError;

/// How templates get random values and the time.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct RandomArgs {
    /// Use real random values, keys and time, as Helm does; the output differs in every run
    #[arg(long, help_heading = "Random values and time")]
    live_random: bool,
}

impl RandomArgs {
    /// The time that templates see, in nanoseconds since 1970; it stands still unless `--live-random` is given.
    pub(crate) fn now(self) -> i128 {
        if self.live_random { now() } else { 0 }
    }

    /// A seed nobody can guess, with `--live-random`; an error when the system gives no randomness.
    pub(crate) fn live_seed(self) -> Result<Option<String>, CommandError> {
        if !self.live_random {
            return Ok(None);
        }
        let mut bytes = [0; 32];
        SystemRandom::open()?.fill(&mut bytes).map_err(no_random)?;
        Ok(Some(format!("{bytes:?} {}", now())))
    }
}

/// The system's source of random numbers, held open.
struct SystemRandom(File);

const SOURCE: &str = "/dev/urandom";

impl SystemRandom {
    fn open() -> Result<Self, CommandError> {
        File::open(SOURCE).map(Self).map_err(no_random)
    }

    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact(buffer)
    }
}

fn no_random(error: io::Error) -> CommandError {
    let what = format!("cannot read random numbers from `{SOURCE}`");
    CommandError::user(anyhow::Error::new(error).context(what))
        .hint("leave out `--live-random` to get the same output every time")
}

/// What templates see of the outside world when the command line executes them.
pub(crate) struct CommandHost {
    seeded: Seeded,
    live: Option<SystemRandom>,
    /// The first failure of the system's source: the output that was made meanwhile is not to be used.
    failure: Option<io::Error>,
}

impl CommandHost {
    /// A host whose random values follow from the seed, unless `--live-random` is given.
    pub(crate) fn new(seed: &str, random: RandomArgs) -> Result<Self, CommandError> {
        let live = random.live_random.then(SystemRandom::open).transpose()?;
        let seed = random.live_seed()?.unwrap_or_else(|| seed.to_owned());
        Ok(Self {
            seeded: Seeded::new(&seed, random.now()),
            live,
            failure: None,
        })
    }

    /// Fails where `--live-random` was given and the system's source failed since.
    pub(crate) fn check(self) -> Result<(), CommandError> {
        self.failure.map_or(Ok(()), |error| Err(no_random(error)))
    }
}

impl Host for CommandHost {
    fn now(&self) -> i128 {
        self.seeded.now()
    }

    fn fill_random(&mut self, buffer: &mut [u8]) {
        let filled = self.live.as_mut().map(|source| source.fill(buffer));
        match filled {
            Some(Ok(())) => {}
            Some(Err(error)) => self.failure = Some(self.failure.take().unwrap_or(error)),
            None => self.seeded.fill_random(buffer),
        }
    }

    fn quick_keys(&self) -> bool {
        self.live.is_none()
    }
}

fn now() -> i128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as i128)
}
