//! Builds a directory and prints it: `build DIR [--load-restrictor LoadRestrictionsNone]`.

use std::error::Error;
use std::io::Write as _;

use camino::Utf8PathBuf;
use portolan_kustomize::{LoadRestrictor, Options, build, to_yaml};
use portolan_vfs::Disk;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let current = Utf8PathBuf::try_from(std::env::current_dir()?)?;
    let root = current.join(args.first().map_or(".", String::as_str));
    let mut options = Options::default();
    if args.iter().any(|arg| arg.ends_with("LoadRestrictionsNone")) {
        options.load_restrictor = LoadRestrictor::None;
    }
    let set = build(&root, &Disk::machine(), &options)?;
    Ok(std::io::stdout().write_all(to_yaml(&set)?.as_bytes())?)
}
