//! An image that a command makes.
//!
//! The command's environment is empty but for what the document names; its output goes to `PORTOLAN_OUT`, an empty
//! directory. What it reads must be named: the files, variables and versions of tools make the key by which it is not run
//! again.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_image::Descriptor;

use super::input_files::{InputFiles, copy_files};
use super::oci::{BUILDER_VERSION, Layout};
use super::read_artifact::{ArtifactName, ReadArtifact};
use super::secrets::give_secrets;
use super::{BuildSetup, Builder, Needs, Prospect, ShipError, ended_well, variable_word};
use crate::document::{CommandOutput, CommandSource};
use crate::inputs::Inputs;
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
    read: ReadArtifact<'a>,
    directory: Utf8PathBuf,
    env: BTreeMap<String, String>,
}

impl Builder for CommandBuilder {
    fn build(&self, task: &Task) -> Result<Built, ShipError> {
        let Prepared {
            read,
            directory,
            env,
        } = self.prepare(task)?;
        read.build(&self.named(), |read| self.make(read, &directory, env, task))
    }
}

impl CommandBuilder {
    /// What is known before it is built.
    pub(crate) fn look(&self, task: &Task) -> Result<Prospect, ShipError> {
        self.prepare(task)?.read.look(&self.named())
    }

    fn named(&self) -> ArtifactName<'_> {
        ArtifactName {
            name: &self.name,
            repository: &self.image,
            setup: &self.setup,
        }
    }

    fn prepare(&self, task: &Task) -> Result<Prepared<'_>, ShipError> {
        let run = self.setup.store.begin()?;
        task.progress(0, None, "reading files");
        let source = &self.source;
        let files = InputFiles::read(
            &self.setup,
            &self.name,
            &source.directory,
            &source.inputs,
            &run,
        )?;
        let InputFiles { directory, found } = files;
        let mut inputs = Inputs::default();
        let env = self.environment(&mut inputs)?;
        self.add_settings(&mut inputs, &directory, &env, task)?;
        let key = inputs.key(std::iter::once(&found));
        Ok(Prepared {
            read: ReadArtifact {
                run,
                found,
                inputs,
                key,
            },
            directory,
            env,
        })
    }

    /// Runs the command and takes over what it leaves.
    fn make(
        &self,
        read: &ReadArtifact<'_>,
        directory: &Utf8Path,
        env: BTreeMap<String, String>,
        task: &Task,
    ) -> Result<Descriptor, ShipError> {
        let directory = if self.source.hermetic {
            copy_files(directory, &read.found, task)?
        } else {
            directory.to_owned()
        };
        let out = self.run(&directory, env, task)?;
        let CommandOutput::Files(source) = &self.source.output else {
            return Ok(read.run.import(&out, None)?);
        };
        let name = format!("{}.files", self.name);
        let layout = Layout {
            name: &name,
            image: &self.image,
            made_of: Some(&read.key),
            source,
            setup: &self.setup,
            needs: &self.needs,
            is_named: true,
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
            let word = variable_word(name);
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
                is_named: true,
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

fn at(path: &Utf8Path) -> impl FnOnce(std::io::Error) -> ShipError {
    let path = path.to_owned();
    move |source| ShipError::File { path, source }
}
