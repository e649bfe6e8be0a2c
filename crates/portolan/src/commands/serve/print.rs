//! What `portolan serve` says when it is ready.

use std::net::SocketAddr;

use portolan_server::{DataDirectory, FirstStart};

use crate::printer::Printer;

/// Where it listens; after the first start also what was made, and the commands to begin with.
pub(super) fn welcome(
    files: &DataDirectory,
    first: Option<&FirstStart>,
    address: SocketAddr,
    printer: &Printer,
) {
    printer.note(&format!("listening on https://{address}"));
    let Some(first) = first else {
        return;
    };
    let (token, authority) = (first.token_file.display(), files.authority());
    printer.note(&format!(
        "made an authority and a token for user admin, which works for {} hours; try:",
        first.token_life.as_secs() / 3600
    ));
    printer.note(&format!(
        "  portolan fleet login --server https://localhost:{} --token-file {token} --ca-file {}",
        address.port(),
        authority.display()
    ));
    printer.note("  portolan fleet get namespaces");
}
