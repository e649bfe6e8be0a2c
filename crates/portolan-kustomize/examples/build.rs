//! Builds a directory and prints it: `cargo run -p portolan-kustomize --example build -- DIR`.

use std::io::Write;

use camino::Utf8PathBuf;
use portolan_kustomize::{LoadRestrictor, Options, build, to_yaml};
use portolan_vfs::Disk;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let root = Utf8PathBuf::try_from(std::path::absolute(directory)?)?;
    let options = Options {
        load_restrictor: LoadRestrictor::RootOnly,
        ..Options::default()
    };
    let objects = build(&root, &Disk::machine(), &options)?;
    std::io::stdout().write_all(to_yaml(&objects)?.as_bytes())?;
    Ok(())
}
