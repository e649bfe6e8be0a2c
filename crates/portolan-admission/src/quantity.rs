//! Amounts of resources such as `500m` and `1Gi`, as far as comparing them needs.

use portolan_yaml::Node;

/// What a suffix multiplies by.
const SUFFIXES: &[(&str, f64)] = &[
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
];

/// The amount a value stands for; `None` when it is no quantity, which its type already says.
pub(crate) fn amount(node: &Node) -> Option<f64> {
    if let Some(number) = node.as_f64() {
        return Some(number);
    }
    let text = node.as_str()?;
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let (number, factor) = SUFFIXES
        .iter()
        .find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)))?;
    Some(number.parse::<f64>().ok()? * factor)
}

/// Whether one amount is greater than another, whatever they are written with.
pub(crate) fn exceeds(one: &Node, other: &Node) -> bool {
    match (amount(one), amount(other)) {
        // Binary fractions: a tenth in millis and as a decimal may differ in the last bit.
        (Some(one), Some(other)) => one > other * (1.0 + 1e-12),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_compared_across_their_spellings() {
        let exceeds = |one: &str, other: &str| exceeds(&Node::string(one), &Node::string(other));
        assert!(exceeds("1Gi", "1G"));
        assert!(exceeds("1", "999m"));
        assert!(exceeds("2e3", "1k"));
        assert!(!exceeds("100m", "0.1"));
        assert!(!exceeds("0.1", "100m"));
        assert!(!exceeds("lots", "1"));
    }
}
