//! A program that says whether all is well: an artifact is as it should be, or what was deployed works.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_image::Descriptor;
use portolan_layout::{ActionResult, Run};

use super::{CheckError, Passed, Tester, Verifier};
use crate::builder::{BuildSetup, InputFiles, ShipError, ended_well, give_secrets};
use crate::document::CommandCheck;
use crate::inputs::Inputs;
use crate::outcome::Built;
use crate::process::Program;
use crate::task::Task;

/// Runs a program.
pub(crate) struct CommandTester {
    pub(crate) name: String,
    pub(crate) check: CommandCheck,
    /// The artifact that is tested, and its image.
    pub(crate) image: Option<(String, Arc<Built>)>,
    /// Variables that it gets besides.
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) setup: BuildSetup,
}

impl Tester for CommandTester {
    /// With the same inputs and the same image, a test that passed is not run again. One that names no inputs may read
    /// anything, and is run each time.
    fn test(&self, task: &Task) -> Result<Passed, CheckError> {
        let run = self.setup.store.begin().map_err(ShipError::from)?;
        let mut inputs = Inputs::default();
        let env = self.environment(&mut inputs)?;
        let (directory, files) = self.directory(&run, task)?;
        let key = inputs.key(files.iter().map(|files| &files.found));
        let Some((image, files)) = self.image.as_ref().map(|(_, image)| image).zip(files) else {
            self.run(directory, env, task)?;
            return Ok(Passed { is_cached: false });
        };
        if run.cached(&key).map_err(ShipError::from)?.is_some() {
            return Ok(Passed { is_cached: true });
        }
        self.run(files.copy(task)?, env, task)?;
        let passed = ActionResult {
            image: Descriptor::new(&image.media_type, image.digest, image.size),
            inputs: Vec::new(),
        };
        run.record(&key, &passed).map_err(ShipError::from)?;
        Ok(Passed { is_cached: false })
    }
}

impl Verifier for CommandTester {
    fn verify(&self, task: &Task) -> Result<Passed, CheckError> {
        let run = self.setup.store.begin().map_err(ShipError::from)?;
        let env = self.environment(&mut Inputs::default())?;
        let (directory, files) = self.directory(&run, task)?;
        let directory = match files {
            Some(files) => files.copy(task)?,
            None => directory,
        };
        self.run(directory, env, task)?;
        Ok(Passed { is_cached: false })
    }
}

impl CommandTester {
    /// Where it runs, and the files that it reads if it names them.
    fn directory(
        &self,
        run: &Run<'_>,
        task: &Task,
    ) -> Result<(Utf8PathBuf, Option<InputFiles>), ShipError> {
        if self.check.inputs.is_empty() {
            return Ok((self.setup.path(&self.check.directory)?, None));
        }
        task.progress(0, None, "reading files");
        let name = format!("check.{}", self.name);
        let files = InputFiles::read(
            &self.setup,
            &name,
            &self.check.directory,
            &self.check.inputs,
            run,
        )?;
        Ok((files.directory.clone(), Some(files)))
    }

    /// Its variables without secrets; everything that decides what it does goes into the inputs.
    fn environment(&self, inputs: &mut Inputs) -> Result<BTreeMap<String, String>, ShipError> {
        inputs.add("check", "1");
        inputs.add_list("command", Some(&self.check.run));
        let secrets: Vec<String> = self.check.secrets.keys().cloned().collect();
        inputs.add_list("secrets", Some(&secrets));
        let mut env = self.setup.usual_variables();
        for name in &self.check.env {
            let value = self.setup.env.get(name).cloned();
            let value = value.ok_or_else(|| ShipError::NoVariable(name.clone()))?;
            inputs.add(format!("variable {name}"), &value);
            env.insert(name.clone(), value);
        }
        for (name, value) in &self.check.set {
            inputs.add(format!("variable {name}"), value);
            env.insert(name.clone(), value.clone());
        }
        for (name, value) in &self.variables {
            inputs.add(format!("variable {name}"), value);
            env.insert(name.clone(), value.clone());
        }
        if let Some((name, image)) = &self.image {
            let digest = image.digest.to_string();
            inputs.add("image", &digest);
            env.insert("PORTOLAN_ARTIFACT".to_owned(), name.clone());
            env.insert(
                "PORTOLAN_IMAGE".to_owned(),
                format!("{}@{digest}", self.setup.store.root()),
            );
        }
        Ok(env)
    }

    fn run(
        &self,
        directory: Utf8PathBuf,
        mut env: BTreeMap<String, String>,
        task: &Task,
    ) -> Result<(), ShipError> {
        let secrets = give_secrets(&self.check.secrets, &self.setup, task)?;
        env.extend(secrets.variables);
        let program = Program {
            argv: self.check.run.clone(),
            directory,
            env,
        };
        task.progress(0, None, "running");
        let ended = task.run_hiding(&program, self.check.timeout, &secrets.known.mask());
        ended_well(ended, &self.check.run, self.check.timeout).map(|_| ())
    }
}
