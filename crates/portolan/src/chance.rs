//! Randomness and time for templates: from a seed so that equal input gives equal output, or real ones on request.

use std::fs::File;
use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

use portolan_gotmpl::{Host, Seeded};

/// Whether chance is real.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Chance {
    /// Make random functions, keys and the clock real, as Helm does; every run prints something else
    #[arg(long)]
    live_random: bool,
}

impl Chance {
    /// The time that templates see, in nanoseconds since 1970; it stands still unless chance is real.
    pub(crate) fn now(self) -> i128 {
        if self.live_random { now() } else { 0 }
    }

    /// A seed nobody can guess, when chance is real.
    pub(crate) fn live_seed(self) -> Option<String> {
        self.live_random.then(entropy)
    }
}

/// What templates see of the outside world when the command line executes them.
pub(crate) struct CommandHost {
    seeded: Seeded,
    live: bool,
}

impl CommandHost {
    /// A host whose chance follows from the seed, unless it is to be real.
    pub(crate) fn new(seed: &str, chance: Chance) -> Self {
        let live = chance.live_random;
        let seed = chance.live_seed().unwrap_or_else(|| seed.to_owned());
        let seeded = Seeded::new(&seed, chance.now());
        Self { seeded, live }
    }
}

impl Host for CommandHost {
    fn now(&self) -> i128 {
        self.seeded.now()
    }

    fn fill_random(&mut self, buffer: &mut [u8]) {
        if self.live
            && File::open("/dev/urandom")
                .and_then(|mut source| source.read_exact(buffer))
                .is_ok()
        {
            return;
        }
        self.seeded.fill_random(buffer);
    }

    fn quick_keys(&self) -> bool {
        !self.live
    }
}

fn now() -> i128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as i128)
}

/// A seed nobody can guess; the clock alone where the system gives no randomness.
fn entropy() -> String {
    let mut bytes = [0; 32];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    format!("{:?} {} {:?}", bytes, now(), read.is_ok())
}
