//! Slash-separated paths, split as Go's `path` does; on Linux `filepath` does the same.

use crate::function::{Args, Ctx, FuncError};
use crate::value::Value;

type Answer = Result<Value, FuncError>;

pub(super) fn base(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let path = args.str(0);
    let trimmed = path.trim_end_matches('/');
    Ok(match (path.as_ref(), trimmed.rsplit('/').next()) {
        ("", _) => ".",
        (_, None | Some("")) => "/",
        (_, Some(last)) => last,
    }
    .into())
}

pub(super) fn dir(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let path = args.str(0);
    let end = path.rfind('/').map_or(0, |slash| slash + 1);
    Ok(cleaned(&path[..end]).into())
}

pub(super) fn clean(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(cleaned(&args.str(0)).into())
}

/// The shortest path of the same meaning, by its text alone.
fn cleaned(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            _ => parts.push(part),
        }
    }
    match (rooted, parts.join("/")) {
        (true, path) => format!("/{path}"),
        (false, path) if path.is_empty() => ".".to_owned(),
        (false, path) => path,
    }
}

pub(super) fn ext(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let path = args.str(0);
    let last = path.rsplit('/').next().unwrap_or_default();
    Ok(last.rfind('.').map_or("", |dot| &last[dot..]).into())
}

pub(super) fn is_abs(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(args.str(0).starts_with('/').into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_by_their_text() {
        let cases = [
            ("", "."),
            ("a//b", "a/b"),
            ("/../a", "/a"),
            ("../../a", "../../a"),
            ("a/../..", ".."),
        ];
        for (path, expected) in cases {
            assert_eq!(cleaned(path), expected, "{path}");
        }
    }
}
