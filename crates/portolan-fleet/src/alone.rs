//! Whether a node can take a book without a server: schedules that nodes keep, and beacons that compare a book with them.

use crate::book::{Book, ModuleCall, RunOn, Step, Work};

/// Why a node cannot take a book by itself, without a server and other nodes, from what it keeps on its disk; `None` if it
/// can.
pub fn needs_others(book: &Book) -> Option<String> {
    if let Some((name, _)) = book.inputs.iter().find(|(_, input)| input.is_secret) {
        return Some(format!(
            "its input `{name}` is secret, and secrets are not kept on nodes"
        ));
    }
    if book.asks_fleet.peers || book.asks_fleet.nodes {
        return Some("it asks for other nodes".to_owned());
    }
    if let Some(step) = book.gathered.keys().next() {
        return Some(format!(
            "it asks for the results of `{step}` on other nodes"
        ));
    }
    let mut found = None;
    for step in book.steps.iter().chain(&book.handlers) {
        step.visit(&mut |step| {
            if found.is_none()
                && let Some(why) = step_needs_others(step)
            {
                found = Some(format!("its step `{}` {why}", step.id));
            }
        });
    }
    found
}

fn step_needs_others(step: &Step) -> Option<&'static str> {
    match step.options.run_on {
        RunOn::All => {}
        RunOn::First => return Some("runs on one of all nodes"),
        RunOn::Others { .. } => return Some("runs on other nodes"),
    }
    if step.options.throttle > 0 {
        return Some("is taken by few nodes at the same time");
    }
    match &step.work {
        Work::Module(call) if uses_share(call) => Some("needs a server, which passes shares on"),
        _ => None,
    }
}

fn uses_share(call: &ModuleCall) -> bool {
    match call.module.name {
        "publish" | "fetch" => true,
        "wait" => call.parameters.contains_key("share"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::book_files::MemoryFiles;
    use crate::compile::{BookSource, compile};

    fn reason(spec: &str) -> Option<String> {
        let text = format!(
            "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {{name: web, namespace: shop}}\nspec:\n{spec}"
        );
        let source = BookSource::new("web.yaml", &text, Arc::new(MemoryFiles::default()));
        needs_others(&compile(&source).expect("a book"))
    }

    #[test]
    fn a_book_for_one_node_needs_nobody() {
        let own = "  target: {all: true}\n  batches: [1]\n  steps:\n  - {name: a, barrier: run, file: {path: /a, content: '{{ node.name }}'}}\n";
        assert_eq!(reason(own), None);
    }

    #[test]
    fn what_a_node_cannot_do_by_itself_is_named() {
        let check = |spec: &str, expected: &str| {
            let found = reason(spec).expect("a reason");
            assert!(found.contains(expected), "{found}");
        };
        let steps = "  steps:\n  - {name: a, print: {message: x}}\n";
        check(
            &format!("  inputs: {{token: {{type: string, secret: true}}}}\n{steps}"),
            "input `token` is secret",
        );
        check(
            "  steps:\n  - {name: a, runOn: first, print: {message: x}}\n",
            "step `a` runs on one of all nodes",
        );
        check(
            "  steps:\n  - name: b\n    steps:\n    - {name: a, runOn: {group: lb}, print: {message: x}}\n",
            "step `b/a` runs on other nodes",
        );
        check(
            "  steps:\n  - {name: a, fetch: {share: s, path: /s}}\n",
            "needs a server",
        );
        check(
            "  steps:\n  - {name: a, wait: {share: s}}\n",
            "needs a server",
        );
        check(
            "  compute: {n: 'peers.size()'}\n  steps:\n  - {name: a, print: {message: x}}\n",
            "asks for other nodes",
        );
    }
}
