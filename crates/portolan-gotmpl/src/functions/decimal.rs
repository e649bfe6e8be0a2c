//! Decimal numbers of any length, for the functions that end in `f`: `addf 0.1 0.2` is exactly 0.3.

use std::cmp::Ordering;

use crate::fmt::display;
use crate::function::FuncError;
use crate::value::Value;

/// How many digits a quotient has after the point.
const DIVISION_DIGITS: i32 = 16;

/// `digits × 10^exponent`, with a sign; the digits run from the highest to the lowest, without zeros in front.
#[derive(Debug, Clone)]
pub(super) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i32,
}

impl Decimal {
    /// The shortest decimal that reads as a float.
    pub(super) fn from_float(value: f64) -> Result<Self, FuncError> {
        if !value.is_finite() {
            let printed = display(&Value::float(value));
            return Err(FuncError::new(format!(
                "Cannot create a Decimal from {printed}"
            )));
        }
        let text = format!("{:e}", value.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let fraction = mantissa
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len());
        let digits = mantissa
            .bytes()
            .filter(u8::is_ascii_digit)
            .map(|byte| byte - b'0')
            .collect();
        let exponent = exponent.parse::<i32>().unwrap_or(0) - fraction as i32;
        Ok(Self::new(value < 0.0, digits, exponent))
    }

    fn new(negative: bool, mut digits: Vec<u8>, exponent: i32) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        let negative = negative && !digits.is_empty();
        Self {
            negative,
            digits,
            exponent,
        }
    }

    /// How many digits it has.
    pub(super) fn len(&self) -> usize {
        self.digits.len()
    }

    /// The nearest float.
    pub(super) fn to_float(&self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        let digits: String = self
            .digits
            .iter()
            .map(|digit| char::from(b'0' + digit))
            .collect();
        format!("{sign}0{digits}e{}", self.exponent)
            .parse()
            .unwrap_or(0.0)
    }

    /// The sum.
    pub(super) fn add(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let (left, right) = (self.scaled(exponent), other.scaled(exponent));
        if self.negative == other.negative {
            return Self::new(self.negative, sum(&left, &right), exponent);
        }
        match compare(&left, &right) {
            Ordering::Less => Self::new(other.negative, difference(&right, &left), exponent),
            _ => Self::new(self.negative, difference(&left, &right), exponent),
        }
    }

    /// The difference.
    pub(super) fn sub(&self, other: &Self) -> Self {
        let negated = Self {
            negative: !other.negative,
            ..other.clone()
        };
        self.add(&negated)
    }

    /// The product.
    pub(super) fn mul(&self, other: &Self) -> Self {
        let mut digits = vec![0_u8; self.len() + other.len()];
        for (i, left) in self.digits.iter().enumerate().rev() {
            let mut carry = 0;
            for (j, right) in other.digits.iter().enumerate().rev() {
                let place = &mut digits[i + j + 1];
                let total = *place + left * right + carry;
                *place = total % 10;
                carry = total / 10;
            }
            digits[i] = carry;
        }
        let negative = self.negative != other.negative;
        Self::new(negative, digits, self.exponent + other.exponent)
    }

    /// The quotient, rounded half away from zero; none by zero.
    pub(super) fn div(&self, other: &Self) -> Option<Self> {
        if other.digits.is_empty() {
            return None;
        }
        // The dividend gets as many zeros as make the quotient's last digit the last one wanted.
        let shift = self.exponent - other.exponent + DIVISION_DIGITS;
        let mut dividend = self.digits.clone();
        let mut divisor = other.digits.clone();
        let zeros = shift.unsigned_abs() as usize;
        let longer = if shift >= 0 {
            &mut dividend
        } else {
            &mut divisor
        };
        longer.resize(longer.len() + zeros, 0);

        let mut quotient = Vec::with_capacity(dividend.len() + 1);
        let mut remainder: Vec<u8> = Vec::new();
        for digit in dividend {
            remainder.push(digit);
            let mut times = 0;
            while compare(&remainder, &divisor).is_ge() {
                remainder = difference(&remainder, &divisor);
                times += 1;
            }
            quotient.push(times);
        }
        let twice = sum(&remainder, &remainder);
        if compare(&twice, &divisor).is_ge() {
            quotient = sum(&quotient, &[1]);
        }
        let negative = self.negative != other.negative;
        Some(Self::new(negative, quotient, -DIVISION_DIGITS))
    }

    /// The digits when the lowest stands for a smaller power of ten.
    fn scaled(&self, exponent: i32) -> Vec<u8> {
        let mut digits = self.digits.clone();
        digits.resize(digits.len() + (self.exponent - exponent).max(0) as usize, 0);
        digits
    }
}

fn significant(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    &digits[zeros..]
}

fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let (left, right) = (significant(left), significant(right));
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

fn sum(left: &[u8], right: &[u8]) -> Vec<u8> {
    let length = left.len().max(right.len()) + 1;
    let mut carry = 0;
    let mut digits: Vec<u8> = (0..length)
        .map(|place| {
            let total = at(left, place) + at(right, place) + carry;
            carry = total / 10;
            total % 10
        })
        .collect();
    digits.reverse();
    digits
}

/// `left - right`, where `left` is not smaller.
fn difference(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut borrow = 0;
    let mut digits: Vec<u8> = (0..left.len())
        .map(|place| {
            let total = 10 + at(left, place) - at(right, place) - borrow;
            borrow = u8::from(total < 10);
            total % 10
        })
        .collect();
    digits.reverse();
    significant(&digits).to_vec()
}

/// The digit at a place counted from the lowest.
fn at(digits: &[u8], place: usize) -> u8 {
    let index = digits.len().checked_sub(place + 1);
    index
        .and_then(|index| digits.get(index))
        .copied()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(value: f64) -> Decimal {
        Decimal::from_float(value).unwrap()
    }

    #[test]
    fn sums_and_products_are_exact() {
        assert_eq!(decimal(0.1).add(&decimal(0.2)).to_float(), 0.3);
        assert_eq!(decimal(1.0).sub(&decimal(1.1)).to_float(), -0.1);
        assert_eq!(decimal(1.1).mul(&decimal(-1.1)).to_float(), -1.21);
        assert_eq!(decimal(1e308).add(&decimal(1e-308)).to_float(), 1e308);
        assert_eq!(decimal(5.0).sub(&decimal(5.0)).to_float(), 0.0);
    }

    #[test]
    fn quotients_have_sixteen_digits() {
        assert_eq!(
            decimal(10.0).div(&decimal(3.0)).unwrap().to_float(),
            3.333_333_333_333_333_3
        );
        assert_eq!(
            decimal(-2.0).div(&decimal(3.0)).unwrap().to_float(),
            -0.666_666_666_666_666_7
        );
        assert_eq!(decimal(1e-20).div(&decimal(1.0)).unwrap().to_float(), 0.0);
        assert_eq!(
            decimal(1.5e300).div(&decimal(5.0)).unwrap().to_float(),
            3e299
        );
        assert!(decimal(1.0).div(&decimal(0.0)).is_none());
    }
}
