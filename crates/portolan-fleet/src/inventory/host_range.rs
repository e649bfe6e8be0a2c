//! Names of hosts with ranges: `web[01:20].example.com`, `db-[a:c]`.

/// Why a name with ranges names no hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeFault {
    /// It is written wrongly.
    Malformed,
    /// It names too many.
    TooMany,
}

/// All names, at most `limit`.
pub(super) fn expand(pattern: &str, limit: usize) -> Result<Vec<String>, RangeFault> {
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some((before, range)) = rest.split_once('[') {
        let (range, after) = range.split_once(']').ok_or(RangeFault::Malformed)?;
        let items = items(range, limit)?;
        if names.len().saturating_mul(items.len()) > limit {
            return Err(RangeFault::TooMany);
        }
        let longer = names.iter().flat_map(|name| {
            let all = items.iter();
            all.map(move |item| format!("{name}{before}{item}"))
        });
        names = longer.collect();
        rest = after;
    }
    if rest.contains(']') {
        return Err(RangeFault::Malformed);
    }
    for name in &mut names {
        name.push_str(rest);
    }
    Ok(names)
}

/// The items of `first:last` or `first:last:step`.
fn items(range: &str, limit: usize) -> Result<Vec<String>, RangeFault> {
    let parts: Vec<&str> = range.split(':').collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, "1"),
        [first, last, step] => (first, last, step),
        _ => return Err(RangeFault::Malformed),
    };
    let step: usize = step.parse().map_err(|_| RangeFault::Malformed)?;
    if step == 0 {
        return Err(RangeFault::Malformed);
    }
    let letter = |text: &str| {
        let mut chars = text.chars();
        let one = chars.next().filter(char::is_ascii_alphabetic);
        one.filter(|_| chars.next().is_none())
    };
    if let (Some(first), Some(last)) = (letter(first), letter(last)) {
        let all = (first..=last).step_by(step).map(String::from);
        let all: Vec<String> = all.collect();
        return if all.is_empty() {
            Err(RangeFault::Malformed)
        } else {
            Ok(all)
        };
    }
    let number = |text: &str| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<u32>().ok();
        number.filter(|_| is_number).ok_or(RangeFault::Malformed)
    };
    // An empty beginning is zero. Leading zeros say how many digits all numbers have.
    let begin = if first.is_empty() { 0 } else { number(first)? };
    let end = number(last)?;
    let width = if first.starts_with('0') {
        first.len()
    } else {
        0
    };
    if begin > end {
        return Err(RangeFault::Malformed);
    }
    if (end - begin) as usize / step >= limit {
        return Err(RangeFault::TooMany);
    }
    let all = (begin..=end).step_by(step);
    Ok(all.map(|number| format!("{number:0width$}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_expanded_as_ansible_does() {
        let names = |pattern: &str| expand(pattern, 1_000).expect(pattern).join(" ");
        assert_eq!(names("web-1"), "web-1");
        assert_eq!(
            names("web[08:11].lan"),
            "web08.lan web09.lan web10.lan web11.lan"
        );
        assert_eq!(names("web[1:9:4]"), "web1 web5 web9");
        assert_eq!(names("[a:c][1:2]"), "a1 a2 b1 b2 c1 c2");
    }

    #[test]
    fn wrong_and_huge_ranges_are_refused() {
        for wrong in [
            "web[1:",
            "web]",
            "web[3:1]",
            "web[1:2:0]",
            "web[1]",
            "web[a:2]",
            "web[1:2:3:4]",
        ] {
            assert_eq!(expand(wrong, 1_000), Err(RangeFault::Malformed), "{wrong}");
        }
        for huge in ["web[0:4000000000]", "a[0:99][0:99]"] {
            assert_eq!(expand(huge, 1_000), Err(RangeFault::TooMany), "{huge}");
        }
    }
}
