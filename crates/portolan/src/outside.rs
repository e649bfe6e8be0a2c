//! What commands on a Flux repository use outside of it: the network, the cache, the lock file, age keys.

use std::sync::Arc;

use anyhow::Context;
use camino::Utf8PathBuf;
use portolan_git::Repository;
use portolan_oci::DockerConfig;
use portolan_review::Supply;
use portolan_sops::Keys;
use portolan_sources::{Lock, Options, Pinning, Sources, Watch};
use portolan_supply::{Netrc, Opener, OwnTree, Remote, WithoutKeys};
use portolan_vfs::Disk;

use crate::app::App;
use crate::error::CommandError;
use crate::places;
use crate::printer::Printer;

/// The file beside the repository's other files that pins what is remote.
pub(crate) const LOCK_FILE: &str = "portolan.lock";

/// How the world outside of the repository is reached.
#[derive(Debug, clap::Args)]
pub(crate) struct OutsideArgs {
    /// Fetch nothing: use what was fetched before
    #[arg(long, help_heading = "Sources and network")]
    offline: bool,

    /// A file with age keys to decrypt sops files; may be repeated
    ///
    /// Keys in `$SOPS_AGE_KEY`, `$SOPS_AGE_KEY_FILE` and sops's own directory are used too. Without any key, encrypted
    /// values are built as placeholders of their type, or as they are written with --show-secrets.
    #[arg(long, value_name = "FILE", help_heading = "Sources and network")]
    age_key_file: Vec<Utf8PathBuf>,
}

impl OutsideArgs {
    /// Makes ready what a repository may need; nothing is fetched yet.
    pub(crate) fn open(
        &self,
        disk: &Disk,
        pinning: Pinning,
        app: &App,
    ) -> Result<Supply, CommandError> {
        let printer = &app.printer;
        let lock_file = disk.root().join(LOCK_FILE);
        let lock = Lock::load(&lock_file).map_err(CommandError::user)?;
        let options = Options {
            offline: self.offline,
            pinning,
            docker_config: Arc::new(docker_config()),
            watch: Watch::new(printer.announcer()),
            ..Options::default()
        };
        let cache = places::cache_directory();
        let sources = Arc::new(Sources::open(&cache, lock.clone(), options));
        let own = OwnTree {
            urls: Repository::discover(disk.root())
                .map(|repository| repository.remote_urls())
                .unwrap_or_default(),
            files: Arc::new(disk.clone()),
        };
        // Whoever asks to see what is secret wants the encrypted text rather than a word in its place.
        let without_keys = if printer.shows_secrets() {
            WithoutKeys::AsWritten
        } else {
            WithoutKeys::Placeholders
        };
        let opener = Opener::new(self.keys()?, without_keys, printer.secrets());
        Ok(Supply {
            remote: Arc::new(Remote::new(
                Arc::clone(&sources),
                netrc(),
                Some(own),
                app.lazy_runtime().clone(),
            )),
            opener: Arc::new(opener),
            secrets: (!printer.shows_secrets()).then(|| printer.secrets()),
            sources,
            lock,
            lock_file,
            fetches_charts: true,
        })
    }

    fn keys(&self) -> Result<Keys, CommandError> {
        let mut keys = Keys::none();
        let (text, named) = places::age_keys();
        if let Some(text) = text {
            keys.extend(parsed(&text, "$SOPS_AGE_KEY")?);
        }
        for file in self.age_key_file.iter().chain(&named) {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read the age keys in `{file}`"))
                .map_err(CommandError::user)?;
            keys.extend(parsed(&text, file.as_str())?);
        }
        if let Some(file) = places::default_age_keys()
            && let Ok(text) = std::fs::read_to_string(&file)
        {
            keys.extend(parsed(&text, file.as_str())?);
        }
        Ok(keys)
    }
}

/// Says once that encrypted values were not opened.
pub(crate) fn tell_placeholders(supply: Option<&Supply>, printer: &Printer) {
    let Some(opener) = supply.map(|supply| &supply.opener) else {
        return;
    };
    let count = opener.left_closed();
    if count == 0 {
        return;
    }
    let (objects, were) = match count {
        1 => ("object or file", "was"),
        _ => ("objects and files", "were"),
    };
    let treated = match opener.without_keys() {
        WithoutKeys::Placeholders => "built with placeholders",
        WithoutKeys::AsWritten => "left as written",
    };
    printer.note(&format!(
        "{count} encrypted {objects} {were} {treated}, for want of an age key (--age-key-file)"
    ));
}

fn parsed(text: &str, place: &str) -> Result<Keys, CommandError> {
    Keys::parse(text)
        .with_context(|| format!("cannot use the age keys in `{place}`"))
        .map_err(CommandError::user)
}

/// The user's logins of registries; a broken file is told when a registry asks for a login.
pub(crate) fn docker_config() -> DockerConfig {
    places::docker_config()
        .map(DockerConfig::at)
        .unwrap_or_default()
}

/// A file that cannot be read has no logins.
pub(crate) fn netrc() -> Netrc {
    let text = places::netrc().and_then(|path| std::fs::read_to_string(path).ok());
    text.map(|text| Netrc::parse(&text)).unwrap_or_default()
}
