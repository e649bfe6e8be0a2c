//! Flags that `helm template` has only because `helm install` has them; most have no effect without a cluster.

use crate::error::CommandError;

/// The flags, all hidden from the help.
///
/// Those without effect are there so that Helm's command lines work.
#[derive(Debug, clap::Args)]
pub(crate) struct InstallOptions {
    #[arg(long, hide = true)]
    atomic: bool,
    #[arg(long, hide = true)]
    create_namespace: bool,
    #[arg(long, hide = true)]
    debug: bool,
    #[arg(long, hide = true)]
    description: Option<String>,
    #[arg(long, hide = true)]
    disable_openapi_validation: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    #[expect(
        clippy::option_option,
        reason = "clap's form of a flag with an optional value"
    )]
    dry_run: Option<Option<String>>,
    #[arg(long, hide = true)]
    force: bool,
    #[arg(long, hide = true)]
    hide_notes: bool,
    #[arg(short, long, hide = true)]
    labels: Vec<String>,
    #[arg(long, hide = true)]
    render_subchart_notes: bool,
    #[arg(long, hide = true)]
    replace: bool,
    #[arg(long, hide = true)]
    take_ownership: bool,
    #[arg(long, hide = true)]
    timeout: Option<String>,
    #[arg(long, hide = true)]
    wait: bool,
    #[arg(long, hide = true)]
    wait_for_jobs: bool,

    /// Also takes versions before a release when no version is asked for.
    #[arg(long, hide = true)]
    devel: bool,

    #[arg(long, hide = true)]
    enable_dns: bool,
    #[arg(long, hide = true)]
    keyring: Option<String>,
    #[arg(long, hide = true)]
    post_renderer: Option<String>,
    #[arg(long, hide = true)]
    post_renderer_args: Vec<String>,
    #[arg(long, hide = true)]
    verify: bool,
}

impl InstallOptions {
    /// Refuses what would change the output and is not done here.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        if self.post_renderer.is_some() || !self.post_renderer_args.is_empty() {
            return Err(CommandError::usage(
                "--post-renderer starts a program, and this command starts none",
            )
            .hint(
                "pipe the output through that program, or patch it with `portolan kustomize build`",
            ));
        }
        if self.verify {
            return Err(CommandError::usage(
                "--verify: signatures of charts are not checked",
            ));
        }
        if self.enable_dns {
            return Err(CommandError::usage(
                "--enable-dns: a template that asks for addresses would not print the same twice",
            ));
        }
        Ok(())
    }

    /// The version to ask for: any at all with `--devel`, where none was given.
    pub(crate) fn version<'a>(&self, given: &'a str) -> &'a str {
        match given {
            "" if self.devel => ">0.0.0-0",
            given => given,
        }
    }
}
