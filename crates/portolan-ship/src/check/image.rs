//! What is in an image: its files, its config, its size, and nothing that looks like a secret.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use portolan_image::{BlobSource, Descriptor, Ignore, ImageContent, Manifest, read_image};
use regex::bytes::Regex;
use serde_json::Value;

use super::{CheckError, Passed, Tester};
use crate::builder::BuildSetup;
use crate::document::{ConfigCheck, FileCheck, ImageCheck};
use crate::outcome::Built;
use crate::parts::parts;
use crate::task::Task;

/// How much of a file is looked at again with its next piece: no pattern is longer.
const OVERLAP: usize = 128;

/// How many files with secrets are told.
const TOLD: usize = 10;

/// What looks like a secret.
static SECRETS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let patterns = [
        (
            "a private key",
            r"(?-u)-----BEGIN [A-Z ]{0,40}PRIVATE KEY( BLOCK)?-----",
        ),
        ("an access key of AWS", r"(?-u)\b(AKIA|ASIA)[0-9A-Z]{16}\b"),
        ("a token of GitHub", r"(?-u)\bgh[pousr]_[0-9A-Za-z]{36}"),
        ("a token of Slack", r"(?-u)\bxox[abprs]-[0-9A-Za-z-]{10}"),
        ("a key of Google", r"(?-u)\bAIza[0-9A-Za-z_-]{35}"),
    ];
    let compiled = patterns.into_iter();
    compiled
        .filter_map(|(what, pattern)| Some((what, Regex::new(pattern).ok()?)))
        .collect()
});

/// Looks into an image.
pub(super) struct ImageTester {
    pub(super) check: ImageCheck,
    pub(super) image: Arc<Built>,
    pub(super) setup: BuildSetup,
}

impl Tester for ImageTester {
    fn test(&self, task: &Task) -> Result<Passed, CheckError> {
        let store: &dyn BlobSource = &*self.setup.store;
        let image = Descriptor::new(&self.image.media_type, self.image.digest, self.image.size);
        let parts = parts(store, &image)
            .ok_or_else(|| CheckError::Image(vec!["the image is not in the store".to_owned()]))?;
        let mut wrong = Vec::new();
        for (_, document) in &parts.documents {
            // An index has no config; its images are documents of their own.
            let Ok(manifest) = serde_json::from_slice::<Manifest>(document) else {
                continue;
            };
            task.progress(0, None, "reading the image");
            if task.is_cancelled() {
                return Err(CheckError::Cancelled);
            }
            wrong.extend(self.look(store, &manifest)?);
        }
        let mut seen = BTreeSet::new();
        wrong.retain(|line| seen.insert(line.clone()));
        if wrong.is_empty() {
            Ok(Passed { is_cached: false })
        } else {
            Err(CheckError::Image(wrong))
        }
    }
}

impl ImageTester {
    /// What is wrong with one image.
    fn look(&self, store: &dyn BlobSource, manifest: &Manifest) -> Result<Vec<String>, CheckError> {
        let allowed = self.check.secrets.as_ref();
        let allowed = allowed
            .map(|patterns| Ignore::new(patterns.iter().map(String::as_str)))
            .transpose()?;
        let mut scan = SecretScan::default();
        let content = read_image(store, manifest, &mut |path, piece| {
            if allowed.is_some() {
                scan.look(path, piece);
            }
        })?;
        let mut wrong: Vec<String> = self
            .check
            .files
            .iter()
            .filter_map(|file| wrong_file(file, &content))
            .collect();
        wrong.extend(wrong_config(&self.check.config, &content));
        if let Some(most) = self.check.max_size.filter(|most| content.size > *most) {
            wrong.push(format!(
                "its layers have {} bytes, more than {most}",
                content.size
            ));
        }
        if let Some(allowed) = allowed {
            let mut found = 0;
            for (path, what) in &scan.found {
                if !allowed.is_left_out(path)? && found < TOLD {
                    found += 1;
                    wrong.push(format!("`/{path}` holds {what}"));
                }
            }
        }
        Ok(wrong)
    }
}

fn wrong_file(check: &FileCheck, content: &ImageContent) -> Option<String> {
    let path = check.path.trim_matches('/');
    let below = format!("{path}/");
    let file = content.files.get(path);
    let shown = &check.path;
    if check.is_absent {
        let is_there = file.is_some()
            || content
                .files
                .range(below.clone()..)
                .next()
                .is_some_and(|(name, _)| name.starts_with(&below));
        return is_there.then(|| format!("`{shown}` is there"));
    }
    let Some(file) = file else {
        return Some(format!("`{shown}` is not there"));
    };
    if let Some(mode) = check.mode.filter(|mode| *mode != file.mode) {
        return Some(format!(
            "`{shown}` has the mode {:04o} and not {mode:04o}",
            file.mode
        ));
    }
    let owner = format!("{}:{}", file.user, file.group);
    let wanted = check.owner.as_ref().filter(|wanted| **wanted != owner)?;
    Some(format!("`{shown}` belongs to {owner} and not to {wanted}"))
}

fn wrong_config(check: &ConfigCheck, content: &ImageContent) -> Vec<String> {
    let config = content.config.get("config").cloned().unwrap_or_default();
    let mut wrong = Vec::new();
    let mut compare = |name: &str, found: &Value, wanted: Option<Value>| {
        if let Some(wanted) = wanted.filter(|wanted| wanted != found) {
            wrong.push(format!("`{name}` is {found} and not {wanted}"));
        }
    };
    let word = |value: &Option<String>| value.clone().map(Value::from);
    let words = |value: &Option<Vec<String>>| value.clone().map(Value::from);
    let text = |key: &str| Value::from(config[key].as_str().unwrap_or_default());
    compare("user", &text("User"), word(&check.user));
    compare("workdir", &text("WorkingDir"), word(&check.workdir));
    compare(
        "entrypoint",
        &config["Entrypoint"],
        words(&check.entrypoint),
    );
    compare("cmd", &config["Cmd"], words(&check.cmd));
    for (name, wanted) in &check.labels {
        compare(
            &format!("labels.{name}"),
            &config["Labels"][name],
            Some(wanted.as_str().into()),
        );
    }
    let env = config["Env"].as_array().cloned().unwrap_or_default();
    for (name, wanted) in &check.env {
        let found = env
            .iter()
            .filter_map(Value::as_str)
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        compare(
            &format!("env.{name}"),
            &found.map_or(Value::Null, Value::from),
            Some(wanted.as_str().into()),
        );
    }
    wrong
}

/// Looks for secrets in files that come in pieces.
#[derive(Default)]
struct SecretScan {
    path: String,
    /// The end of the last piece, in front of the next.
    window: Vec<u8>,
    found: BTreeSet<(String, &'static str)>,
}

impl SecretScan {
    fn look(&mut self, path: &str, piece: &[u8]) {
        if self.path != path {
            path.clone_into(&mut self.path);
            self.window.clear();
        }
        self.window.extend_from_slice(piece);
        for (what, pattern) in SECRETS.iter() {
            if pattern.is_match(&self.window) {
                self.found.insert((path.to_owned(), what));
            }
        }
        let surplus = self.window.len().saturating_sub(OVERLAP);
        self.window.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_across_pieces() {
        assert_eq!(SECRETS.len(), 5, "every pattern is one");
        let mut scan = SecretScan::default();
        let key = format!("-----BEGIN RSA {} KEY-----", "PRIVATE");
        let (first, second) = key.as_bytes().split_at(12);
        scan.look("a", first);
        scan.look("a", second);
        scan.look("b", b"-----BEGIN RSA ");
        scan.look("c", second);
        let found: Vec<_> = scan
            .found
            .iter()
            .map(|(path, what)| (path.as_str(), *what))
            .collect();
        assert_eq!(found, [("a", "a private key")]);
    }
}
