//! How the process's memory is divided, for commands that are to take little of it.
//!
//! glibc gives each thread that allocates an arena of its own, and what one thread frees another cannot use: a fifth of the
//! memory of a large render. glibc reads how many arenas there may be from the environment, once, before `main`.

use std::env;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// How many arenas glibc makes at most.
const VARIABLE: &str = "MALLOC_ARENA_MAX";

/// What the names of programs begin with that load others: such a one would take the arguments for its own.
const LOADER: &str = "ld";

/// Begins the process anew with one arena for all threads, unless the environment says how many there are to be.
///
/// Returns where that cannot be done; the command then works all the same and takes more memory. Taking turns for one
/// arena costs one part in a hundred of the time of a render.
pub(crate) fn restart_with_one() {
    if !cfg!(target_env = "gnu") || env::var_os(VARIABLE).is_some() {
        return;
    }
    let mut arguments = env::args_os();
    let (Ok(program), Some(name)) = (env::current_exe(), arguments.next()) else {
        return;
    };
    if is_loader(&program) {
        return;
    }
    let _failed = Command::new(program)
        .arg0(name)
        .args(arguments)
        .env(VARIABLE, "1")
        .exec();
}

fn is_loader(program: &Path) -> bool {
    let name = program.file_name().and_then(OsStr::to_str);
    name.is_none_or(|name| name.starts_with(LOADER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_loads_others_is_not_started_again() {
        assert!(is_loader(Path::new("/lib64/ld-linux-x86-64.so.2")));
        assert!(is_loader(Path::new("/")));
        assert!(!is_loader(Path::new("/usr/bin/portolan")));
    }
}
