//! The frame of the command line: help, usage errors, exit codes, completions and manual pages.

mod portolan;

use portolan::portolan;

#[test]
fn no_command_shows_the_help_and_fails() {
    let answer = portolan(&[]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("Usage: portolan"),
        "{}",
        answer.stderr
    );
}

#[test]
fn an_unknown_command_suggests_the_nearest() {
    insta::assert_snapshot!(portolan(&["versoin"]), @r"
    exit 2
    --- stderr
    error: unrecognized subcommand 'versoin'

      tip: a similar subcommand exists: 'version'

    Usage: portolan [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn the_version_is_data_on_stdout() {
    let answer = portolan(&["version"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    assert_eq!(
        answer.stdout,
        format!("portolan {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn completions_name_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let answer = portolan(&["completions", shell]);
        assert_eq!(answer.code, 0);
        assert!(answer.stdout.contains("completions"), "{shell}");
    }
}

#[test]
fn manual_pages_are_written_one_per_command() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("man1");
    let answer = portolan(&["man", "--dir", target.to_str().unwrap()]);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(target.join("portolan.1").is_file());
    assert!(target.join("portolan-completions.1").is_file());
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let answer = portolan(&["man", "--dir", "/dev/null/man"]);
    assert_eq!(answer.code, 2);
    insta::assert_snapshot!(answer.stderr, @r"
    error: cannot write manual pages to `/dev/null/man`
      because: Not a directory (os error 20)
    ");
}

#[test]
fn output_is_plain_when_piped_and_coloured_on_request() {
    assert!(
        !portolan(&["man", "--dir", "/dev/null/man"])
            .stderr
            .contains('\u{1b}')
    );
    assert!(
        portolan(&["man", "--dir", "/dev/null/man", "--color", "always"])
            .stderr
            .contains('\u{1b}')
    );
}

#[test]
fn logs_are_off_unless_asked_for_and_json_lines_on_request() {
    let run = |log: &str, format: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args([
                "build",
                "ks",
                "apps",
                "--path",
                "clusters/staging",
                "--log-format",
                format,
            ])
            .current_dir(portolan::repository::HARBOR)
            .env("PORTOLAN_LOG", log)
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(run("", "text"), "");
    let text = run("debug", "text");
    assert!(
        text.contains("debug portolan::session::log: unit done unit="),
        "{text}"
    );
    let json = run("portolan=info", "json");
    let line = json.lines().last().unwrap();
    assert!(line.starts_with("{\"at\":"), "{json}");
    assert!(
        line.contains("\"level\":\"info\",\"message\":\"run ended\""),
        "{json}"
    );
    assert!(run("loud", "text").starts_with("warning: PORTOLAN_LOG: `loud` is no filter"));
}

/// Linux puts such a program at another address each time it starts.
#[test]
#[cfg(target_os = "linux")]
fn the_program_has_no_fixed_address() {
    const SHARED_OBJECT: u16 = 3;
    let program = std::fs::read(env!("CARGO_BIN_EXE_portolan")).expect("is there");
    let kind = u16::from_le_bytes([program[16], program[17]]);
    assert_eq!(kind, SHARED_OBJECT, "the type in the ELF header");
}
