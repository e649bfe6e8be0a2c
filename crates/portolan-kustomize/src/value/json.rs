//! JSON as Go prints it: sorted keys, `<`, `>` and `&` escaped.

use portolan_yaml::{Node, Value, to_json};

/// Compact JSON; `None` for values JSON does not have.
pub(crate) fn to_compact_json(node: &Node) -> Option<String> {
    to_json(node).ok()
}

/// JSON indented by two spaces.
pub(crate) fn to_indented_json(node: &Node) -> Option<String> {
    let mut out = String::new();
    write(&mut out, node, 0)?;
    Some(out)
}

fn write(out: &mut String, node: &Node, depth: usize) -> Option<()> {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    match &node.value {
        Value::List(list) if !list.is_empty() => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                write(out, item, depth + 1)?;
            }
            line(out, depth);
            out.push(']');
        }
        Value::Map(map) if !map.is_empty() => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|a, b| a.key.as_str().cmp(b.key.as_str()));
            out.push('{');
            for (index, entry) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                out.push_str(&to_json(&Node::string(entry.key.as_str())).ok()?);
                out.push_str(": ");
                write(out, &entry.value, depth + 1)?;
            }
            line(out, depth);
            out.push('}');
        }
        _ => out.push_str(&to_json(node).ok()?),
    }
    Some(())
}
