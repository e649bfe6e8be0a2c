//! `portolan fleet auth certificate`: a client certificate for a person or program.

use std::path::{Path, PathBuf};

use portolan_identity::NodeKey;
use portolan_server::{FleetMethod, create_private};
use serde_json::json;

use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::fleet::connection::{ConnectionArgs, told};
use crate::commands::fleet::shown;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Make a client certificate
///
/// The key is made on this machine and stays here; the server gets a signing request only. NAME.key and NAME.pem are written for
/// their owner alone, and never over files that exist. You can make certificates for users who have no right that you do not
/// have. `portolan fleet auth token --list` shows them, and --end ends one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet auth certificate anna --life 720h
  portolan fleet login anna --server https://localhost:7443 --certificate-file anna.pem --key-file anna.key --ca-file data/ca.pem
  curl --cacert data/ca.pem --cert anna.pem --key anna.key https://localhost:7443/api/v1alpha/namespaces")]
pub(super) struct CertificateArgs {
    /// The user that the certificate is for
    #[arg(value_name = "NAME")]
    user: String,

    /// A group of the user
    #[arg(long = "group", value_name = "NAME", help_heading = "Certificate")]
    groups: Vec<String>,

    /// How long the certificate works, as in 720h; without it a year, which is the most
    #[arg(long, value_name = "TIME", help_heading = "Certificate")]
    life: Option<String>,

    /// What it is for
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        help_heading = "Certificate"
    )]
    description: String,

    /// The directory for NAME.key and NAME.pem
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = "Output")]
    out: PathBuf,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn certificate(args: &CertificateArgs, app: &App) -> CommandResult {
    let [key_file, certificate_file] = ["key", "pem"].map(|ending| args.file(ending));
    for file in [&key_file, &certificate_file] {
        if file.exists() {
            let message = format!("`{}` exists already", file.display());
            return Err(CommandError::usage(message)
                .hint("move it away, or name another directory with --out"));
        }
    }
    let key = NodeKey::generate().map_err(CommandError::user)?;
    let request = key.signing_request().map_err(CommandError::user)?;
    let client = args.connection.connect()?;
    let body = json!({
        "user": args.user, "groups": args.groups, "life": args.life,
        "description": args.description, "csr": request,
    });
    let body = body.to_string();
    let path = "/api/v1alpha/auth/certificates";
    let asked = client.request(FleetMethod::Post, path, &[], Some(&body));
    let answer = app.runtime()?.block_on(asked).map_err(told)?;
    write(&key_file, key.to_pem().as_bytes())?;
    let issued = answer["certificate"].as_str().unwrap_or_default();
    write(&certificate_file, issued.as_bytes())?;
    app.printer.data(format!(
        "certificate {} of user {}, ends {}: {} with key {}\n",
        shown::text(&answer, "id"),
        args.user,
        shown::text(&answer, "expires"),
        certificate_file.display(),
        key_file.display(),
    ))?;
    Ok(ExitStatus::Clean)
}

impl CertificateArgs {
    /// A file of the user; what could leave the directory does not get into its name.
    fn file(&self, ending: &str) -> PathBuf {
        let safe = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
        let name = self.user.chars();
        let name: String = name.map(|one| if safe(one) { one } else { '_' }).collect();
        self.out.join(format!("{name}.{ending}"))
    }
}

fn write(path: &Path, content: &[u8]) -> Result<(), CommandError> {
    create_private(path, content).map_err(|error| {
        let context = format!("cannot write `{}`", path.display());
        CommandError::user(anyhow::Error::new(error).context(context))
    })
}
