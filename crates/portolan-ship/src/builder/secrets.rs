//! What is secret, given to a program: in files that only we can read, or in variables if the document asks for it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_secret::KnownSecrets;

use super::{BuildSetup, ShipError, named_inside};
use crate::document::{SecretPlace, SecretSource};
use crate::task::Task;

/// The longest secret: a line that holds one is searched this far.
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// Secrets as a program gets them.
#[derive(Debug, Default)]
pub(crate) struct GivenSecrets {
    /// What must not be seen in what the program prints.
    pub(crate) known: KnownSecrets,
    /// Variables for the program: secrets, and where the files are.
    pub(crate) variables: BTreeMap<String, String>,
    /// The file of each secret that is not a variable.
    pub(super) files: BTreeMap<String, Utf8PathBuf>,
}

/// Puts secrets where a program finds them; the files go with the scratch directory of the task.
pub(crate) fn give_secrets(
    secrets: &BTreeMap<String, SecretSource>,
    setup: &BuildSetup,
    task: &Task,
) -> Result<GivenSecrets, ShipError> {
    let mut given = GivenSecrets::default();
    if secrets.is_empty() {
        return Ok(given);
    }
    let directory = task.own_directory("secrets").map_err(at(task.scratch()))?;
    for (name, source) in secrets {
        let value = read(source, setup)?;
        // A file ends with a line end that is no part of what it holds.
        let text = value.trim_end_matches(['\n', '\r']);
        given.known.add_text(name, text);
        if source.is_variable {
            given.variables.insert(name.clone(), text.to_owned());
            continue;
        }
        let path = directory.join(name);
        let file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        file.and_then(|mut file| file.write_all(value.as_bytes()))
            .map_err(at(&path))?;
        given.files.insert(name.clone(), path);
    }
    let directory = directory.into_string();
    given
        .variables
        .insert("PORTOLAN_SECRETS".to_owned(), directory);
    Ok(given)
}

fn read(source: &SecretSource, setup: &BuildSetup) -> Result<String, ShipError> {
    let (value, name) = match &source.from {
        SecretPlace::Variable(name) => {
            let value = setup.env.get(name).cloned();
            let value = value.ok_or_else(|| ShipError::NoVariable(name.clone()))?;
            (value, format!("variable {name}"))
        }
        SecretPlace::File(path) => {
            // A file may be a link to where a machine keeps its secrets.
            let path = named_inside(&setup.directory, path)
                .ok_or_else(|| ShipError::Outside(path.clone()))?;
            let mut value = String::new();
            let file = File::open(&path).map_err(at(&path))?;
            let mut file = file.take(MAX_SECRET_BYTES + 1);
            file.read_to_string(&mut value).map_err(at(&path))?;
            (value, path.into_string())
        }
    };
    if value.len() as u64 > MAX_SECRET_BYTES {
        return Err(ShipError::LongSecret(name));
    }
    Ok(value)
}

fn at(path: &Utf8Path) -> impl FnOnce(std::io::Error) -> ShipError {
    let path = path.to_owned();
    move |source| ShipError::File { path, source }
}
