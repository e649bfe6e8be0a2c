//! Whether a template may print objects of Flux, decided by its text.
//!
//! Such an object names one of Flux's API groups. A role may name them too, as items of a list, so a line that is
//! only such an item does not count.

use memchr::memmem;

use crate::release::loaded_chart::FLUX_GROUPS;

/// Whether a text names a group of Flux elsewhere than in a list of groups.
pub(crate) fn may_print_flux(text: &[u8]) -> bool {
    memmem::find_iter(text, FLUX_GROUPS).any(|at| !is_item(line_at(text, at)))
}

fn line_at(text: &[u8], at: usize) -> &[u8] {
    let (before, after) = text.split_at(at);
    let begin = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    let end = memchr::memchr(b'\n', after).map_or(text.len(), |newline| at + newline);
    text.get(begin..end).unwrap_or_default()
}

/// `- helm.toolkit.fluxcd.io`, with or without quotes.
fn is_item(line: &[u8]) -> bool {
    let Some(item) = line.trim_ascii().strip_prefix(b"- ") else {
        return false;
    };
    let plain = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'.' | b'"' | b'\'');
    item.trim_ascii().iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_groups_leads_nowhere_and_all_else_may() {
        let may = |text: &str| may_print_flux(text.as_bytes());
        assert!(!may(
            "rules:\n- apiGroups:\n  - helm.toolkit.fluxcd.io\n  - \"source.toolkit.fluxcd.io\"\r\n"
        ));
        assert!(!may("kind: ConfigMap"));
        assert!(may("- apiVersion: source.toolkit.fluxcd.io/v1"));
        assert!(may(
            "apiVersion: {{ printf \"%s/v1\" \"helm.toolkit.fluxcd.io\" }}"
        ));
        assert!(may(
            "- helm.toolkit.fluxcd.io\n---\napiVersion: helm.toolkit.fluxcd.io/v2"
        ));
        assert!(may("- helm.toolkit.fluxcd.io/v2"));
        assert!(may("toolkit.fluxcd.io"));
    }
}
