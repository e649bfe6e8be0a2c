//! Ansible's modules, and the modules of a book that do the same.

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::document::Fields;
use super::expression::Names;

/// A module of a book with its parameters.
pub(super) type Call = (&'static str, Fields);

/// The same in a book.
///
/// # Errors
/// What has no counterpart.
pub(super) fn call(
    module: &str,
    arguments: &mut Arguments,
    names: &mut Names,
) -> Result<Call, String> {
    let short = ["ansible.builtin.", "ansible.legacy.", "ansible.posix."]
        .iter()
        .find_map(|prefix| module.strip_prefix(prefix))
        .unwrap_or(module);
    match short {
        "copy" | "template" => content(short, arguments),
        "file" => path(arguments),
        "lineinfile" => line(arguments),
        "blockinfile" => block(arguments),
        "apt" | "package" | "dnf" | "yum" => package(arguments),
        "service" | "systemd" | "systemd_service" => service(arguments),
        "user" => user(arguments),
        "group" => group(arguments),
        "command" | "shell" | "script" => command(short, arguments),
        "cron" => cron(arguments),
        "git" => git(arguments),
        "get_url" => download(arguments),
        "unarchive" => archive(arguments),
        "deb822_repository" | "yum_repository" => repository(arguments),
        "sysctl" => sysctl(arguments),
        "mount" => mount(arguments),
        "hostname" => hostname(arguments),
        "wait_for" => wait(arguments),
        "reboot" => Ok(reboot(arguments)),
        "set_fact" => Ok(set(arguments)),
        "slurp" => read(arguments),
        "assert" => assert(arguments, names),
        "fail" => Ok(fail(arguments)),
        "debug" => print(arguments, names),
        _ => Err(format!("the module `{module}` has no counterpart")),
    }
}

fn attributes(arguments: &mut Arguments, fields: &mut Fields) -> Result<(), String> {
    fields.set_some("owner", arguments.text(&["owner"]));
    fields.set_some("group", arguments.text(&["group"]));
    fields.set_some("mode", arguments.mode("mode")?);
    Ok(())
}

fn content(module: &str, arguments: &mut Arguments) -> Result<Call, String> {
    if arguments.boolean("remote_src") == Some(true) {
        return Err("`remote_src` has no counterpart: use a `command` step".to_owned());
    }
    let mut fields = Fields::default();
    fields.set("path", arguments.required(&["dest", "path"])?);
    match (arguments.value("content"), arguments.text(&["src"])) {
        (Some(content), _) => fields.set("content", content),
        (None, Some(source)) if module == "template" => fields.set("template", source),
        (None, Some(source)) if source.ends_with('/') => {
            fields.set("source", source.trim_end_matches('/'));
            attributes(arguments, &mut fields)?;
            return Ok(("directory", fields));
        }
        (None, Some(source)) => fields.set("source", source),
        (None, None) => return Err("it has neither `content` nor `src`".to_owned()),
    }
    attributes(arguments, &mut fields)?;
    if arguments.boolean("backup") == Some(true) {
        fields.set("backup", 1_u32);
    }
    if let Some(validate) = arguments.text(&["validate"]) {
        let words: Vec<Value> = validate.split_ascii_whitespace().map(Value::from).collect();
        fields.set("validate", words);
    }
    if arguments.boolean("follow") == Some(false) {
        fields.set("follow", false);
    }
    Ok(("file", fields))
}

fn path(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    fields.set("path", arguments.required(&["path", "dest", "name"])?);
    let state = arguments.text(&["state"]);
    match state.as_deref() {
        Some("directory") => {
            attributes(arguments, &mut fields)?;
            if arguments.boolean("recurse") == Some(true) {
                fields.set("recurse", true);
            }
            Ok(("directory", fields))
        }
        Some(state @ ("link" | "hard")) => {
            fields.set("to", arguments.required(&["src"])?);
            if state == "hard" {
                fields.set("hard", true);
            }
            if arguments.boolean("force") == Some(true) {
                fields.set("force", true);
            }
            Ok(("link", fields))
        }
        Some("absent") => {
            fields.set("state", "absent");
            Ok(("file", fields))
        }
        Some("touch") => {
            Err("`state: touch` changes each time: use `file` with `content`".to_owned())
        }
        _ => {
            attributes(arguments, &mut fields)?;
            Ok(("file", fields))
        }
    }
}

fn line(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    fields.set(
        "path",
        arguments.required(&["path", "dest", "name", "destfile"])?,
    );
    let is_absent = arguments.text(&["state"]).as_deref() == Some("absent");
    fields.set_some("line", arguments.text(&["line", "value"]));
    fields.set_some("match", arguments.text(&["regexp", "regex"]));
    if arguments.boolean("backrefs") == Some(true) {
        return Err("`backrefs` has no counterpart".to_owned());
    }
    for (from, to) in [("insertafter", "after"), ("insertbefore", "before")] {
        match arguments.text(&[from]).as_deref() {
            None | Some("EOF") => {}
            Some("BOF") => return Err("`insertbefore: BOF` has no counterpart".to_owned()),
            Some(pattern) => fields.set(to, pattern),
        }
    }
    if is_absent {
        fields.set("state", "absent");
    }
    if arguments.boolean("create") == Some(true) {
        fields.set("create", true);
    }
    Ok(("line", fields))
}

fn block(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    fields.set(
        "path",
        arguments.required(&["path", "dest", "name", "destfile"])?,
    );
    let is_absent = arguments.text(&["state"]).as_deref() == Some("absent");
    let block = arguments.text(&["block", "content"]).unwrap_or_default();
    fields.set("block", if is_absent { String::new() } else { block });
    for (from, to) in [("insertafter", "after"), ("insertbefore", "before")] {
        match arguments.text(&[from]).as_deref() {
            None | Some("EOF") => {}
            Some("BOF") => return Err("`insertbefore: BOF` has no counterpart".to_owned()),
            Some(pattern) => fields.set(to, pattern),
        }
    }
    if arguments.boolean("create") == Some(true) {
        fields.set("create", true);
    }
    Ok(("block", fields))
}

fn package(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    let names = arguments.list(&["name", "pkg", "package"]);
    let Some(names) = names else {
        return Err(
            "it installs nothing: lists of packages are fetched by `refresh` of a `package` step"
                .to_owned(),
        );
    };
    match names.as_slice() {
        [Value::String(name)] => match name.split_once('=') {
            Some((name, version)) if !name.contains("{{") => {
                fields.set("name", name);
                fields.set("version", version);
            }
            // A template may give a list.
            _ if name.starts_with("{{") => fields.set("names", name.as_str()),
            _ => fields.set("name", name.as_str()),
        },
        names => fields.set("names", names.to_vec()),
    }
    match arguments.text(&["state"]).as_deref() {
        None | Some("present" | "installed") => {}
        Some("latest") => fields.set("state", "latest"),
        Some("absent" | "removed") => fields.set("state", "absent"),
        Some(other) => return Err(format!("`state: {other}` of a package has no counterpart")),
    }
    if arguments.boolean("update_cache") == Some(true) {
        fields.set("refresh", true);
    }
    if arguments.boolean("purge") == Some(true) {
        fields.set("purge", true);
    }
    if arguments.boolean("allow_downgrade") == Some(true) {
        fields.set("allowDowngrade", true);
    }
    // How old the lists may be is decided by `refresh` alone.
    arguments.value("cache_valid_time");
    Ok(("package", fields))
}

fn service(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    let Some(name) = arguments.text(&["name", "unit", "service"]) else {
        return Err("it names no unit: systemd is reloaded when a unit needs it".to_owned());
    };
    fields.set("name", name);
    match arguments.text(&["state"]).as_deref() {
        None => {}
        Some("started") => fields.set("state", "running"),
        Some(state @ ("stopped" | "restarted" | "reloaded")) => fields.set("state", state),
        Some(other) => return Err(format!("`state: {other}` of a service has no counterpart")),
    }
    fields.set_some("enabled", arguments.boolean("enabled"));
    fields.set_some("masked", arguments.boolean("masked"));
    // It is done whenever a unit needs it.
    arguments.value("daemon_reload");
    Ok(("service", fields))
}

fn user(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    fields.set("name", arguments.required(&["name", "user"])?);
    fields.set_some("uid", arguments.value("uid"));
    fields.set_some("system", arguments.boolean("system"));
    fields.set_some("group", arguments.text(&["group"]));
    let groups = if arguments.boolean("append") == Some(true) {
        "addGroups"
    } else {
        "groups"
    };
    fields.set_some(groups, arguments.list(&["groups"]));
    fields.set_some("home", arguments.text(&["home"]));
    fields.set_some("shell", arguments.text(&["shell"]));
    fields.set_some("comment", arguments.text(&["comment"]));
    fields.set_some("passwordHash", arguments.text(&["password"]));
    if fields.has("passwordHash")
        && arguments.text(&["update_password"]).as_deref() != Some("on_create")
    {
        fields.set("setPassword", "always");
    }
    fields.set_some("locked", arguments.boolean("password_lock"));
    if arguments.text(&["state"]).as_deref() == Some("absent") {
        fields.set("state", "absent");
        if arguments.boolean("remove") == Some(true) {
            fields.set("removeHome", true);
        }
    }
    Ok(("user", fields))
}

fn group(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    fields.set("name", arguments.required(&["name"])?);
    fields.set_some("gid", arguments.value("gid"));
    fields.set_some("system", arguments.boolean("system"));
    if arguments.text(&["state"]).as_deref() == Some("absent") {
        fields.set("state", "absent");
    }
    Ok(("group", fields))
}

fn command(module: &str, arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    let free = arguments.free.take();
    let text = arguments.text(&["cmd", "_raw_params"]).or(free);
    match (module, text, arguments.value("argv")) {
        (_, _, Some(words)) => fields.set("run", words),
        ("shell", Some(text), None) => fields.set("shell", text),
        ("script", Some(text), None) if !text.trim().contains(' ') => {
            fields.set("script", text.trim());
        }
        ("script", Some(_), None) => {
            return Err("arguments of a script have no counterpart".to_owned());
        }
        (_, Some(text), None) => fields.set("run", words(&text)?),
        (_, None, None) => return Err("it has no command".to_owned()),
    }
    fields.set_some("creates", arguments.text(&["creates"]));
    fields.set_some("removes", arguments.text(&["removes"]));
    fields.set_some("cwd", arguments.text(&["chdir"]));
    fields.set_some("stdin", arguments.text(&["stdin"]));
    Ok(("command", fields))
}

/// A command line as words, with quotes as a shell has them.
fn words(text: &str) -> Result<Vec<Value>, String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut depth = 0_usize;
    let mut letters = text.trim().chars().peekable();
    while let Some(letter) = letters.next() {
        let is_next = |letters: &mut std::iter::Peekable<std::str::Chars<'_>>, next| {
            letters.peek() == Some(&next)
        };
        if letter == '{' && is_next(&mut letters, '{') {
            depth += 1;
        }
        match (quote, letter) {
            // A template is one word, whatever is in it.
            _ if depth > 0 => {
                word.get_or_insert_default().push(letter);
                if letter == '}' && is_next(&mut letters, '}') {
                    word.get_or_insert_default().extend(letters.next());
                    depth -= 1;
                }
            }
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if letter == open => quote = None,
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() || depth > 0 {
        return Err("a quote of the command has no end".to_owned());
    }
    words.extend(word);
    Ok(words.into_iter().map(Value::from).collect())
}

fn cron(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    let name = arguments.required(&["name"])?;
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let file: String = name
        .chars()
        .map(|letter| if is_letter(letter) { letter } else { '-' })
        .collect();
    fields.set("name", file);
    if arguments.text(&["state"]).as_deref() == Some("absent") {
        fields.set("state", "absent");
        return Ok(("cron", fields));
    }
    let schedule = match arguments.text(&["special_time"]) {
        Some(word) => format!("@{word}"),
        None => {
            let parts = ["minute", "hour", "day", "month", "weekday"];
            let parts = parts.map(|part| arguments.text(&[part]).unwrap_or_else(|| "*".to_owned()));
            parts.join(" ")
        }
    };
    fields.set("schedule", schedule);
    fields.set("command", arguments.required(&["job"])?.replace("\\%", "%"));
    fields.set_some("user", arguments.text(&["user"]));
    Ok(("cron", fields))
}

fn git(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    fields.set("url", arguments.required(&["repo", "name"])?);
    fields.set("path", arguments.required(&["dest"])?);
    let version = arguments.text(&["version"]);
    fields.set_some("ref", version.filter(|version| version != "HEAD"));
    if arguments.boolean("force") == Some(true) {
        fields.set("dirty", "discard");
    }
    Ok(("git", fields))
}

fn sha256(arguments: &mut Arguments) -> Result<String, String> {
    let sum = arguments.text(&["checksum"]).unwrap_or_default();
    match sum.strip_prefix("sha256:") {
        Some(digits) if !digits.contains("://") => Ok(digits.to_owned()),
        _ => Err(
            "it has no `checksum: sha256:…`: what is downloaded is known by its digest".to_owned(),
        ),
    }
}

fn download(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    fields.set("url", arguments.required(&["url"])?);
    fields.set("sha256", sha256(arguments)?);
    fields.set("path", arguments.required(&["dest"])?);
    attributes(arguments, &mut fields)?;
    Ok(("download", fields))
}

fn archive(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    let source = arguments.required(&["src"])?;
    if arguments.boolean("remote_src") == Some(true) || source.contains("://") {
        return Err(
            "an archive from elsewhere needs its `sha256`: use `archive` with `url`".to_owned(),
        );
    }
    fields.set("source", source);
    fields.set("into", arguments.required(&["dest"])?);
    Ok(("archive", fields))
}

fn repository(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    fields.set("name", arguments.required(&["name"])?);
    if arguments.text(&["state"]).as_deref() == Some("absent") {
        fields.set("state", "absent");
        return Ok(("repository", fields));
    }
    if arguments.any(&["signed_by", "gpgkey"]).is_some() {
        return Err(
            "its key needs a `fingerprint`: use `repository` with `key` and `fingerprint`"
                .to_owned(),
        );
    }
    fields.set_some("uris", arguments.list(&["uris", "baseurl"]));
    fields.set_some("suites", arguments.list(&["suites"]));
    fields.set_some("components", arguments.list(&["components"]));
    fields.set_some("architectures", arguments.list(&["architectures"]));
    let checks = arguments.boolean("gpgcheck");
    if arguments.boolean("trusted") == Some(true) || checks == Some(false) {
        fields.set("trusted", true);
    }
    arguments.value("description");
    arguments.value("types");
    Ok(("repository", fields))
}

fn sysctl(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    let name = arguments.required(&["name", "key"])?;
    if arguments.text(&["state"]).as_deref() == Some("absent") {
        return Err(
            "removing a setting has no counterpart: use `line` with `state: absent`".to_owned(),
        );
    }
    let value = arguments.required(&["value", "val"])?;
    fields.set("values", json!({ name: value }));
    fields.set_some("file", arguments.text(&["sysctl_file"]));
    // The kernel is told in any case.
    arguments.value("sysctl_set");
    arguments.value("reload");
    Ok(("sysctl", fields))
}

fn mount(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    fields.set("path", arguments.required(&["path", "name"])?);
    fields.set_some("source", arguments.text(&["src"]));
    fields.set_some("type", arguments.text(&["fstype"]));
    fields.set_some("options", arguments.list(&["opts"]));
    match arguments.text(&["state"]).as_deref() {
        Some("mounted") | None => {}
        Some("present") => fields.set("state", "listed"),
        Some("absent") => fields.set("state", "absent"),
        Some(other) => return Err(format!("`state: {other}` of a mount has no counterpart")),
    }
    Ok(("mount", fields))
}

fn hostname(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    fields.set("name", arguments.required(&["name"])?);
    arguments.value("use");
    Ok(("hostname", fields))
}

fn wait(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    match arguments.text(&["state"]).as_deref() {
        None | Some("started" | "present") => {}
        Some(other) => return Err(format!("`state: {other}` of a wait has no counterpart")),
    }
    let port = arguments.value("port").map(|port| match &port {
        Value::String(text) => text.parse::<u16>().map_or(port.clone(), Value::from),
        _ => port,
    });
    fields.set_some("port", port);
    fields.set_some("host", arguments.text(&["host"]));
    fields.set_some("path", arguments.text(&["path"]));
    if !fields.has("port") && !fields.has("path") {
        return Err("a pause has no counterpart: wait for a port or a path".to_owned());
    }
    fields.set_some(
        "timeout",
        arguments
            .text(&["timeout"])
            .map(|seconds| format!("{seconds}s")),
    );
    Ok(("wait", fields))
}

fn reboot(arguments: &mut Arguments) -> Call {
    let mut fields = Fields::default();
    let timeout = arguments.text(&["reboot_timeout"]);
    fields.set_some("timeout", timeout.map(|seconds| format!("{seconds}s")));
    ("reboot", fields)
}

fn set(arguments: &mut Arguments) -> Call {
    let mut values = Fields::default();
    for name in arguments.unread() {
        if name == "cacheable" {
            continue;
        }
        values.set_some(&name, arguments.value(&name));
    }
    let mut fields = Fields::default();
    fields.set("values", values);
    ("set", fields)
}

fn read(arguments: &mut Arguments) -> Result<Call, String> {
    let mut fields = Fields::default();
    fields.set("path", arguments.required(&["src", "path"])?);
    Ok(("read", fields))
}

fn assert(arguments: &mut Arguments, names: &mut Names) -> Result<Call, String> {
    let mut that = Vec::new();
    for condition in arguments.list(&["that"]).unwrap_or_default() {
        let text = condition
            .as_str()
            .map_or_else(|| condition.to_string(), str::to_owned);
        that.push(Value::from(names.condition(&text)?));
    }
    let mut fields = Fields::default();
    fields.set("that", that);
    fields.set_some("message", arguments.text(&["fail_msg", "msg"]));
    arguments.value("success_msg");
    arguments.value("quiet");
    Ok(("assert", fields))
}

fn fail(arguments: &mut Arguments) -> Call {
    let mut fields = Fields::default();
    fields.set("that", vec![Value::from("false")]);
    fields.set_some("message", arguments.text(&["msg"]));
    ("assert", fields)
}

fn print(arguments: &mut Arguments, names: &mut Names) -> Result<Call, String> {
    let mut fields = Fields::default();
    let message = match arguments.text(&["var"]) {
        Some(name) => names.text(&format!("{{{{ {name} }}}}"))?,
        None => arguments
            .text(&["msg"])
            .unwrap_or_else(|| "Hello world!".to_owned()),
    };
    arguments.value("verbosity");
    fields.set("message", message);
    Ok(("print", fields))
}
