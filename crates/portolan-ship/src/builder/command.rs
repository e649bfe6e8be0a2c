//! An image that a command makes.
//!
//! The command's environment is empty but for what the document names; its output goes to `PORTOLAN_OUT`, an empty
//! directory. What it reads must be named: the files, variables and versions of tools make the key by which it is not run
//! again.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;
use portolan_image::{CopySpec, Descriptor, Entry, Node, Scan, ScanOptions, scan};
use portolan_layout::{ActionResult, Directory, Run};

use super::oci::{BUILDER_VERSION, Layout, built};
use super::referrers::{Subject, refer};
use super::secrets::give_secrets;
use super::{BuildSetup, Builder, Needs, Prospect, ShipError, ended_well};
use crate::document::{CommandOutput, CommandSource};
use crate::inputs::{Inputs, is_of};
use crate::outcome::Built;
use crate::process::Program;
use crate::task::Task;

/// How long a command that prints a version may take.
const VERSION_LIMIT: Duration = Duration::from_secs(30);

/// Runs a command.
pub(crate) struct CommandBuilder {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) source: CommandSource,
    pub(crate) setup: BuildSetup,
    pub(crate) needs: Needs,
}

/// A command that is ready to run: all that it is given was read.
struct Prepared<'a> {
    run: Run<'a>,
    directory: Utf8PathBuf,
    found: Scan,
    env: BTreeMap<String, String>,
    inputs: Inputs,
    key: Digest,
}

impl Builder for CommandBuilder {
    fn build(&self, task: &Task) -> Result<Built, ShipError> {
        let mut prepared = self.prepare(task)?;
        let known = prepared.run.cached(&prepared.key)?;
        let last = prepared.run.inputs(&self.name);
        prepared.inputs.add_entries(&prepared.found.entries);
        if let Some(known) = known {
            prepared.run.tag(&self.name, &known.image)?;
            if !is_of(last.as_deref(), &prepared.key) {
                prepared.keep_inputs(&self.name);
            }
            self.refer(&prepared.run, &known.image, &prepared.key)?;
            return Ok(built(&known, true, Vec::new()));
        }
        let because = prepared.inputs.changes_since(last.as_deref());
        let image = self.make(&prepared, task)?;
        let result = ActionResult {
            image,
            inputs: Vec::new(),
        };
        prepared.run.record(&prepared.key, &result)?;
        prepared.run.tag(&self.name, &result.image)?;
        prepared.keep_inputs(&self.name);
        self.refer(&prepared.run, &result.image, &prepared.key)?;
        Ok(built(&result, false, because))
    }
}

impl Prepared<'_> {
    fn keep_inputs(&self, name: &str) {
        self.run.keep_inputs(name, &self.inputs.kept(&self.key));
    }
}

impl CommandBuilder {
    /// Says beside the image where it comes from.
    fn refer(&self, run: &Run<'_>, image: &Descriptor, key: &Digest) -> Result<(), ShipError> {
        let subject = Subject {
            repository: &self.image,
            image,
            key,
            base: None,
            files: None,
        };
        refer(&subject, &self.setup, run)
    }

    /// What is known before it is built.
    pub(crate) fn look(&self, task: &Task) -> Result<Prospect, ShipError> {
        let mut prepared = self.prepare(task)?;
        let image = prepared.run.cached(&prepared.key)?;
        prepared.inputs.add_entries(&prepared.found.entries);
        Ok(Prospect {
            key: prepared.key,
            image: image.map(|known| known.image.digest),
            last: prepared.run.inputs(&self.name),
            inputs: prepared.inputs,
        })
    }

    fn prepare(&self, task: &Task) -> Result<Prepared<'_>, ShipError> {
        let directory = self.setup.path(&self.source.directory)?;
        let run = self.setup.store.begin()?;
        let files = Directory::open(&directory).map_err(|source| ShipError::Context {
            path: directory.clone(),
            source,
        })?;
        task.progress(0, None, "reading files");
        let found = self.scan(&files, &directory, &run)?;
        let mut inputs = Inputs::default();
        let env = self.environment(&mut inputs)?;
        self.add_settings(&mut inputs, &directory, &env, task)?;
        let key = inputs.key(std::iter::once(&found));
        Ok(Prepared {
            run,
            directory,
            found,
            env,
            inputs,
            key,
        })
    }

    /// Runs the command and takes over what it leaves.
    fn make(&self, prepared: &Prepared<'_>, task: &Task) -> Result<Descriptor, ShipError> {
        let directory = if self.source.hermetic {
            copy_inputs(&prepared.directory, &prepared.found, task)?
        } else {
            prepared.directory.clone()
        };
        let out = self.run(&directory, prepared.env.clone(), task)?;
        let CommandOutput::Files(source) = &self.source.output else {
            return Ok(prepared.run.import(&out, None)?);
        };
        let name = format!("{}.files", self.name);
        let layout = Layout {
            name: &name,
            image: &self.image,
            made_of: Some(&prepared.key),
            source,
            setup: &self.setup,
            needs: &self.needs,
        };
        let made = layout.build(&out, Inputs::default(), task)?;
        let mut image = Descriptor::new(&made.media_type, made.digest, made.size);
        image.platform = source
            .platforms
            .first()
            .filter(|_| source.platforms.len() == 1)
            .cloned();
        Ok(image)
    }

    /// The files that the command reads.
    fn scan(
        &self,
        files: &Directory,
        directory: &Utf8Path,
        run: &Run<'_>,
    ) -> Result<Scan, ShipError> {
        // All is left out but what is named.
        let mut patterns = vec!["**".to_owned()];
        patterns.extend(
            self.source
                .inputs
                .iter()
                .map(|pattern| format!("!{pattern}")),
        );
        let copy = CopySpec {
            to: "/".to_owned(),
            ignore: if self.source.inputs.is_empty() {
                Vec::new()
            } else {
                patterns
            },
            ..CopySpec::default()
        };
        let never = self.setup.never_read(directory);
        let memo = run.memo(&self.name);
        let options = ScanOptions {
            ignore: &[],
            never: &never,
            memo: &memo,
            now: self.setup.now,
            threads: self.setup.threads,
        };
        let found = scan(files, &[copy], &options)?;
        run.keep_memo(&self.name, &found.memo);
        Ok(found)
    }

    /// The variables of the command, without secrets; those that the document names go into the key.
    fn environment(&self, inputs: &mut Inputs) -> Result<BTreeMap<String, String>, ShipError> {
        let given = |name: &str| self.setup.env.get(name).cloned();
        let mut env = self.setup.usual_variables();
        for name in &self.source.env {
            let value = given(name).ok_or_else(|| ShipError::NoVariable(name.clone()))?;
            inputs.add(format!("variable {name}"), &value);
            env.insert(name.clone(), value);
        }
        for (name, value) in &self.source.set {
            inputs.add(format!("variable {name}"), value);
            env.insert(name.clone(), value.clone());
        }
        let root = self.setup.store.root();
        for (name, digest) in &self.needs {
            let is_part = |letter: char| letter.is_ascii_alphanumeric();
            let word: String = name
                .chars()
                .map(|letter| {
                    if is_part(letter) {
                        letter.to_ascii_uppercase()
                    } else {
                        '_'
                    }
                })
                .collect();
            inputs.add(format!("need {name}"), &digest.to_string());
            env.insert(format!("PORTOLAN_NEED_{word}"), format!("{root}@{digest}"));
        }
        Ok(env)
    }

    /// Everything beside files and variables that decides what comes out.
    fn add_settings(
        &self,
        inputs: &mut Inputs,
        directory: &Utf8Path,
        env: &BTreeMap<String, String>,
        task: &Task,
    ) -> Result<(), ShipError> {
        inputs.add("builder", BUILDER_VERSION);
        inputs.add_list("command", Some(&self.source.run));
        inputs.add("hermetic", &self.source.hermetic.to_string());
        // The value of a secret is nowhere, not even as a digest.
        let secrets: Vec<String> = self.source.secrets.keys().cloned().collect();
        inputs.add_list("secrets", Some(&secrets));
        if let CommandOutput::Files(source) = &self.source.output {
            let layout = Layout {
                name: &self.name,
                image: &self.image,
                made_of: None,
                source,
                setup: &self.setup,
                needs: &self.needs,
            };
            layout.add_settings(inputs);
        }
        for argv in &self.source.versions {
            let program = Program {
                argv: argv.clone(),
                directory: directory.to_owned(),
                env: env.clone(),
            };
            let ended = ended_well(task.run(&program, VERSION_LIMIT), argv, VERSION_LIMIT)?;
            inputs.add(
                format!("version {}", argv.join(" ")),
                &ended.last_lines.join("\n"),
            );
        }
        Ok(())
    }

    /// Runs the command and returns the directory of its output.
    fn run(
        &self,
        directory: &Utf8Path,
        mut env: BTreeMap<String, String>,
        task: &Task,
    ) -> Result<Utf8PathBuf, ShipError> {
        let out = task.scratch().join("out");
        fs::create_dir(&out).map_err(at(&out))?;
        env.insert("PORTOLAN_OUT".to_owned(), out.to_string());
        let platform = match &self.source.output {
            CommandOutput::Files(source) => source.platforms.first().map(ToString::to_string),
            CommandOutput::Image => None,
        };
        env.insert(
            "PORTOLAN_PLATFORM".to_owned(),
            platform.unwrap_or_else(|| "linux/amd64".to_owned()),
        );
        let secrets = give_secrets(&self.source.secrets, &self.setup, task)?;
        env.extend(secrets.variables);
        let program = Program {
            argv: self.source.run.clone(),
            directory: directory.to_owned(),
            env,
        };
        task.progress(0, None, "running");
        let ended = task.run_hiding(&program, self.source.timeout, &secrets.known.mask());
        ended_well(ended, &self.source.run, self.source.timeout)?;
        Ok(out)
    }
}

/// A directory with the inputs and nothing else.
fn copy_inputs(directory: &Utf8Path, found: &Scan, task: &Task) -> Result<Utf8PathBuf, ShipError> {
    let target = task.scratch().join("inputs");
    fs::create_dir(&target).map_err(at(&target))?;
    for Entry {
        path, node, mode, ..
    } in &found.entries
    {
        if task.is_cancelled() {
            return Err(ShipError::Cancelled);
        }
        let to = target.join(path);
        let made = match node {
            Node::Directory => fs::create_dir_all(&to),
            Node::Link(link) => symlink(link, &to),
            Node::File { source, .. } => fs::copy(directory.join(source), &to)
                .and_then(|_| fs::set_permissions(&to, fs::Permissions::from_mode(*mode))),
        };
        made.map_err(at(&to))?;
    }
    Ok(target)
}

fn at(path: &Utf8Path) -> impl FnOnce(std::io::Error) -> ShipError {
    let path = path.to_owned();
    move |source| ShipError::File { path, source }
}
