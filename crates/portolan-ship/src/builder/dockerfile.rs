//! An image that a Dockerfile describes, built by a program that knows Dockerfiles.
//!
//! The program leaves an OCI layout in the scratch directory, which is taken over. `buildah` is run in the tests; the command
//! lines of the other two follow their documentation.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_image::{CopySpec, Descriptor, Scan, ScanOptions, ignore_patterns, scan};
use portolan_layout::{Directory, Run};

use super::oci::BUILDER_VERSION;
use super::read_artifact::{ArtifactName, ReadArtifact};
use super::secrets::{GivenSecrets, give_secrets};
use super::{BuildSetup, Builder, Needs, Prospect, ShipError, ended_well, inside};
use crate::document::{DockerfileEngine, DockerfileSource};
use crate::inputs::Inputs;
use crate::outcome::Built;
use crate::process::Program;
use crate::task::Task;

/// How long a program may take to say its version, and to remove an image.
const SHORT_LIMIT: Duration = Duration::from_mins(1);

/// Variables that programs which build Dockerfiles are set up by.
const ENGINE_VARIABLES: &[&str] = &[
    "BUILDAH_ISOLATION",
    "BUILDKIT_HOST",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "REGISTRY_AUTH_FILE",
    "STORAGE_DRIVER",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
];

/// Builds a Dockerfile.
pub(crate) struct DockerfileBuilder {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) source: DockerfileSource,
    pub(crate) setup: BuildSetup,
    pub(crate) needs: Needs,
}

/// A Dockerfile that is ready to be built.
struct Prepared<'a> {
    read: ReadArtifact<'a>,
    context: Utf8PathBuf,
    engine: DockerfileEngine,
}

impl Builder for DockerfileBuilder {
    fn build(&self, task: &Task) -> Result<Built, ShipError> {
        let Prepared {
            read,
            context,
            engine,
        } = self.prepare(task)?;
        read.build(&self.named(), |read| {
            self.make(read, &context, engine, task)
        })
    }
}

impl DockerfileBuilder {
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
        let (context, files) = self.setup.open(&self.source.context)?;
        if inside(&context, &self.source.file).is_none() {
            return Err(ShipError::OutsideContext(self.source.file.clone()));
        }
        let run = self.setup.store.begin()?;
        task.progress(0, None, "reading files");
        let found = self.scan(&files, &context, &run)?;
        let mut inputs = Inputs::default();
        let engine = self.engine(&mut inputs, &context, task)?;
        self.add_settings(&mut inputs);
        let key = inputs.key(std::iter::once(&found));
        Ok(Prepared {
            read: ReadArtifact {
                run,
                found,
                inputs,
                key,
            },
            context,
            engine,
        })
    }

    /// The files that the program gets: what the ignore file leaves of the context, and always the Dockerfile.
    fn scan(
        &self,
        files: &Directory,
        context: &Utf8Path,
        run: &Run<'_>,
    ) -> Result<Scan, ShipError> {
        let mut ignore = ignore_patterns(files, Some(&self.source.file))?;
        ignore.push(format!("!{}", self.source.file));
        let never = self.setup.never_read(context);
        let memo = run.memo(&self.name);
        let options = ScanOptions {
            ignore: &ignore,
            never: &never,
            memo: &memo,
            now: self.setup.now,
            threads: self.setup.threads,
        };
        let copy = CopySpec {
            to: "/".to_owned(),
            ..CopySpec::default()
        };
        let found = scan(files, &[copy], &options)?;
        run.keep_memo(&self.name, &found.memo);
        Ok(found)
    }

    /// The program that builds it; its version goes into the key.
    fn engine(
        &self,
        inputs: &mut Inputs,
        directory: &Utf8Path,
        task: &Task,
    ) -> Result<DockerfileEngine, ShipError> {
        use DockerfileEngine::{Auto, Buildah, Buildkit, Docker};
        let candidates: &[DockerfileEngine] = match self.source.engine {
            Auto => &[Buildah, Buildkit, Docker],
            Buildah => &[Buildah],
            Buildkit => &[Buildkit],
            Docker => &[Docker],
        };
        for engine in candidates {
            let argv = words(&[program(*engine), "--version"]);
            let ended = task.run(&self.program(&argv, directory), SHORT_LIMIT);
            let is_missing = ended
                .as_ref()
                .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
            if is_missing && self.source.engine == Auto {
                continue;
            }
            let ended = ended_well(ended, &argv, SHORT_LIMIT)?;
            inputs.add("engine", &ended.last_lines.join("\n"));
            return Ok(*engine);
        }
        Err(ShipError::NoEngine)
    }

    fn add_settings(&self, inputs: &mut Inputs) {
        inputs.add("builder", BUILDER_VERSION);
        inputs.add("file", &self.source.file);
        inputs.add_list(
            "target",
            self.source.target.as_ref().map(std::slice::from_ref),
        );
        for (name, value) in &self.source.args {
            inputs.add(format!("argument {name}"), value);
        }
        // The value of a secret is nowhere, not even as a digest.
        let secrets: Vec<String> = self.source.secrets.keys().cloned().collect();
        inputs.add_list("secrets", Some(&secrets));
        let platforms = self.source.platforms.iter().map(ToString::to_string);
        inputs.add_list("platforms", Some(&platforms.collect::<Vec<_>>()));
        for (name, digest) in &self.needs {
            inputs.add(format!("need {name}"), &digest.to_string());
        }
    }

    /// Builds it and takes the image over.
    fn make(
        &self,
        read: &ReadArtifact<'_>,
        context: &Utf8Path,
        engine: DockerfileEngine,
        task: &Task,
    ) -> Result<Descriptor, ShipError> {
        let secrets = give_secrets(&self.source.secrets, &self.setup, task)?;
        let out = task.scratch().join("out");
        task.progress(0, None, format!("running {}", program(engine)));
        let run = |argv: &[String], limit: Duration| {
            let mut program = self.program(argv, context);
            program.env.extend(secrets.variables.clone());
            let ended = task.run_hiding(&program, limit, &secrets.known.mask());
            ended_well(ended, argv, limit)
        };
        match engine {
            DockerfileEngine::Buildkit => {
                run(&self.buildctl(context, &secrets, &out), self.source.timeout)?;
            }
            DockerfileEngine::Docker => {
                run(&self.docker(context, &secrets, &out), self.source.timeout)?;
            }
            DockerfileEngine::Buildah | DockerfileEngine::Auto => {
                let name = format!("localhost/portolan-{}", read.key.hex());
                let build = self.buildah(context, &secrets, &name);
                let built = run(&build, self.source.timeout);
                let pushed = built.and_then(|_| run(&self.push(&name, &out), self.source.timeout));
                // Its own store needs no copy of what is in ours, also when the build failed half-way.
                let removed = run(&self.remove(&name), SHORT_LIMIT);
                pushed?;
                removed?;
            }
        }
        Ok(read.run.import(&out, None)?)
    }

    fn buildah(&self, context: &Utf8Path, secrets: &GivenSecrets, name: &str) -> Vec<String> {
        // Without a fixed time every build would be another image.
        let mut argv = words(&["buildah", "bud", "--timestamp", "0", "--format", "oci"]);
        // Nothing of the build stays in buildah's own storage; only layers of other images are looked for there.
        let cache = if self.source.cache_from.is_empty() {
            "--no-cache"
        } else {
            "--layers"
        };
        argv.extend(words(&[cache, "--force-rm"]));
        argv.extend(words(&["--file", self.file(context).as_str()]));
        self.add_options(&mut argv, secrets, "--platform");
        for image in &self.source.cache_from {
            argv.extend(words(&["--cache-from", image]));
        }
        // A list of images has a name of its own.
        let kind = if self.is_list() {
            "--manifest"
        } else {
            "--tag"
        };
        argv.extend(words(&[kind, name, context.as_str()]));
        argv
    }

    fn push(&self, name: &str, out: &Utf8Path) -> Vec<String> {
        let target = format!("oci:{out}:image");
        if self.is_list() {
            return words(&["buildah", "manifest", "push", "--all", name, &target]);
        }
        words(&["buildah", "push", name, &target])
    }

    fn remove(&self, name: &str) -> Vec<String> {
        if self.is_list() {
            return words(&["buildah", "manifest", "rm", name]);
        }
        words(&["buildah", "rmi", "--force", name])
    }

    fn docker(&self, context: &Utf8Path, secrets: &GivenSecrets, out: &Utf8Path) -> Vec<String> {
        let output = format!("type=oci,dest={out},tar=false");
        let mut argv = words(&["docker", "buildx", "build", "--progress", "plain"]);
        argv.extend(words(&["--provenance", "false", "--output", &output]));
        argv.extend(words(&["--file", self.file(context).as_str()]));
        self.add_options(&mut argv, secrets, "--platform");
        for image in &self.source.cache_from {
            argv.extend(words(&["--cache-from", image]));
        }
        argv.push(context.to_string());
        argv
    }

    fn buildctl(&self, context: &Utf8Path, secrets: &GivenSecrets, out: &Utf8Path) -> Vec<String> {
        let file = self.file(context);
        let directory = file.parent().unwrap_or(context);
        let name = file.file_name().unwrap_or("Dockerfile");
        let mut argv = words(&["buildctl", "build", "--progress", "plain"]);
        argv.extend(words(&["--frontend", "dockerfile.v0"]));
        for (kind, path) in [("context", context), ("dockerfile", directory)] {
            argv.extend(words(&["--local", &format!("{kind}={path}")]));
        }
        let mut option = |text: String| argv.extend(words(&["--opt", &text]));
        option(format!("filename={name}"));
        if let Some(target) = &self.source.target {
            option(format!("target={target}"));
        }
        for (name, value) in &self.source.args {
            option(format!("build-arg:{name}={value}"));
        }
        if !self.source.platforms.is_empty() {
            option(format!("platform={}", self.platforms()));
        }
        for (id, path) in &secrets.files {
            argv.extend(words(&["--secret", &format!("id={id},src={path}")]));
        }
        for image in &self.source.cache_from {
            argv.extend(words(&[
                "--import-cache",
                &format!("type=registry,ref={image}"),
            ]));
        }
        argv.extend(words(&[
            "--output",
            &format!("type=oci,dest={out},tar=false"),
        ]));
        argv
    }

    /// Options that buildah and docker spell alike.
    fn add_options(&self, argv: &mut Vec<String>, secrets: &GivenSecrets, platform: &str) {
        if let Some(target) = &self.source.target {
            argv.extend(words(&["--target", target]));
        }
        for (name, value) in &self.source.args {
            argv.extend(words(&["--build-arg", &format!("{name}={value}")]));
        }
        for (id, path) in &secrets.files {
            argv.extend(words(&["--secret", &format!("id={id},src={path}")]));
        }
        for id in secrets
            .variables
            .keys()
            .filter(|id| *id != "PORTOLAN_SECRETS")
        {
            argv.extend(words(&["--secret", &format!("id={id},env={id}")]));
        }
        if !self.source.platforms.is_empty() {
            argv.extend(words(&[platform, &self.platforms()]));
        }
    }

    fn platforms(&self) -> String {
        let platforms = self.source.platforms.iter().map(ToString::to_string);
        platforms.collect::<Vec<_>>().join(",")
    }

    fn is_list(&self) -> bool {
        self.source.platforms.len() > 1
    }

    fn file(&self, context: &Utf8Path) -> Utf8PathBuf {
        context.join(&self.source.file)
    }

    fn program(&self, argv: &[String], directory: &Utf8Path) -> Program {
        let mut env: BTreeMap<String, String> = self.setup.usual_variables();
        for name in ENGINE_VARIABLES {
            env.extend(
                self.setup
                    .env
                    .get(*name)
                    .map(|value| ((*name).to_owned(), value.clone())),
            );
        }
        Program {
            argv: argv.to_vec(),
            directory: directory.to_owned(),
            env,
        }
    }
}

fn program(engine: DockerfileEngine) -> &'static str {
    match engine {
        DockerfileEngine::Buildah | DockerfileEngine::Auto => "buildah",
        DockerfileEngine::Buildkit => "buildctl",
        DockerfileEngine::Docker => "docker",
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
