//! The reference of all modules as Markdown, made from their definitions.

use std::fmt::Write as _;

use crate::definition::{Effect, ModuleDefinition, ParameterType, RootSupport};

/// The reference of modules as Markdown, in their order.
pub fn reference(modules: &[&ModuleDefinition]) -> String {
    let mut out = String::from(
        "# Modules of TaskBooks\n\nThis page is made from the definitions of the modules. A step names one module and its parameters:\n\n\
         ```yaml\n- name: config\n  file: {path: /etc/web.conf, content: \"port = 80\\n\", mode: \"0640\"}\n```\n\n\
         Each module looks at the host first, says what it would change, and does only that.\n\n| module | |\n| --- | --- |\n",
    );
    for module in modules {
        let _ = writeln!(out, "| [{0}](#{0}) | {1} |", module.name, module.summary);
    }
    for module in modules {
        section(module, &mut out);
    }
    out
}

fn section(module: &ModuleDefinition, out: &mut String) {
    let _ = writeln!(out, "\n## {}\n\n{}\n", module.name, module.summary);
    if !module.parameters.is_empty() {
        out.push_str("| parameter | value | |\n| --- | --- | --- |\n");
    }
    for parameter in module.parameters {
        let required = if parameter.is_required {
            " (required)"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "| `{}`{required} | {} | {} |",
            parameter.name,
            value(parameter.kind),
            parameter.summary.replace('|', "\\|")
        );
    }
    let _ = writeln!(
        out,
        "\nEffect: {}. Below another root directory: {}.",
        effect(module.effect),
        root(module.root)
    );
}

fn value(kind: ParameterType) -> String {
    let words = match kind {
        ParameterType::Text => "text",
        ParameterType::Path => "path",
        ParameterType::Mode => "quoted octal number",
        ParameterType::Integer => "whole number",
        ParameterType::Boolean => "`true` or `false`",
        ParameterType::Duration => "duration",
        ParameterType::TextList => "list of texts",
        ParameterType::TextMap => "map of texts",
        ParameterType::Map => "map",
        ParameterType::Any => "any",
        ParameterType::Word(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            return words.join(", ");
        }
    };
    words.to_owned()
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read (changes nothing, and also runs in a check)",
        Effect::Converge => "converge (looks first, so it may be repeated)",
        Effect::Once => "once (never repeated by itself)",
    }
}

fn root(support: RootSupport) -> &'static str {
    match support {
        RootSupport::Full => "full",
        RootSupport::FilesOnly => "files only",
        RootSupport::Refused => "refused",
    }
}
