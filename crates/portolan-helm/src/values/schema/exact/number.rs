//! Numbers as the validator compares and prints them: exact decimals, printed in English format.

/// A decimal number: digits and the power of ten they are multiplied with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: i128,
    exponent: i32,
}

impl Decimal {
    /// The shortest decimal that reads as this number.
    fn of(number: f64) -> Option<Self> {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e')?;
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let exponent: i32 = exponent.parse().ok()?;
        Some(Self {
            digits: format!("{whole}{fraction}").parse().ok()?,
            exponent: exponent - fraction.len() as i32,
        })
    }

    /// The digits at a smaller power of ten, where they can be held.
    fn digits_at(self, exponent: i32) -> Option<i128> {
        let more = u32::try_from(self.exponent - exponent).ok()?;
        self.digits.checked_mul(10_i128.checked_pow(more)?)
    }
}

/// Whether a number is a whole multiple of another, as decimals: 19.99 is one of 0.01.
pub(super) fn is_multiple(number: f64, of: f64) -> bool {
    let exact = || {
        let (number, of) = (Decimal::of(number)?, Decimal::of(of)?);
        let exponent = number.exponent.min(of.exponent);
        let (number, of) = (number.digits_at(exponent)?, of.digits_at(exponent)?);
        number.checked_rem(of).map(|rest| rest == 0)
    };
    // Numbers of so different sizes that no exact form holds both.
    exact().unwrap_or(number % of == 0.0)
}

/// A count with its thousands set apart.
pub(super) fn count(number: usize) -> String {
    grouped(&number.to_string())
}

/// A number with its thousands set apart, large and small ones as powers of ten.
pub(super) fn display(number: f64) -> String {
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        let plain = number.to_string();
        return match plain.split_once('.') {
            Some((whole, fraction)) => format!("{}.{fraction}", grouped(whole)),
            None => grouped(&plain),
        };
    }
    let sign = if exponent < 0 { "⁻" } else { "" };
    let raised = format!("{:02}", exponent.unsigned_abs());
    let raised: String = raised.bytes().map(raised_digit).collect();
    // Narrow spaces, which do not break.
    format!("{digits}\u{202f}×\u{202f}10{sign}{raised}")
}

/// A digit above the line.
fn raised_digit(digit: u8) -> char {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let value = usize::from(digit.wrapping_sub(b'0'));
    RAISED.get(value).copied().unwrap_or_default()
}

fn grouped(whole: &str) -> String {
    let (sign, digits) = match whole.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", whole),
    };
    let mut out = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_in_english() {
        for (number, shown) in [
            (0.5, "0.5"),
            (1234.5678, "1,234.5678"),
            (70000.0, "70,000"),
            (-5000.0, "-5,000"),
            (1e6, "1\u{202f}×\u{202f}10⁰⁶"),
            (123_456_789.123, "1.23456789123\u{202f}×\u{202f}10⁰⁸"),
            (1e-7, "1\u{202f}×\u{202f}10⁻⁰⁷"),
            (1e21, "1\u{202f}×\u{202f}10²¹"),
        ] {
            assert_eq!(display(number), shown);
        }
        assert_eq!(count(2000), "2,000");
    }

    #[test]
    fn multiples_are_exact() {
        assert!(is_multiple(19.99, 0.01));
        assert!(!is_multiple(19.999, 0.01));
        assert!(is_multiple(1e308, 0.5));
        assert!(is_multiple(0.0, 3.0));
    }
}
