//! The order of a map's keys in Go's printers: letters by code, numbers by value, `a2` before `a10`.
//!
//! The comparison can be circular (`v2` < `v10` < `v1beta1` < `v2`), so Go prints such maps in any order. Here keys
//! are first sorted by their bytes and then merge-sorted, which gives one order for every set of keys.

use std::cmp::Ordering;

type Comparison = fn(&str, &str) -> Ordering;

/// Compares two keys as go-yaml v2 does.
pub fn natural(a: &str, b: &str) -> Ordering {
    compare(a, b, false)
}

/// Compares two keys as go-yaml v3 does: right after a digit, letters come before other characters.
pub fn natural_v3(a: &str, b: &str) -> Ordering {
    compare(a, b, true)
}

/// Sorts items by their keys in v2's order; the same set of keys always gives the same order.
pub fn sort_keys<T>(items: &mut [T], key: impl Fn(&T) -> &str) {
    sort_by(items, &key, natural);
}

/// Sorts items by their keys in v3's order; the same set of keys always gives the same order.
pub fn sort_keys_v3<T>(items: &mut [T], key: impl Fn(&T) -> &str) {
    sort_by(items, &key, natural_v3);
}

fn sort_by<T>(items: &mut [T], key: &impl Fn(&T) -> &str, compare: Comparison) {
    items.sort_by(|a, b| key(a).cmp(key(b)));
    let in_order = |pair: &[T]| compare(key(&pair[0]), key(&pair[1])) == Ordering::Less;
    if items.windows(2).all(in_order) {
        return;
    }
    // The library's sort may panic on an order with circles; merging cannot.
    let mut order: Vec<usize> = (0..items.len()).collect();
    merge_sort(&mut order, &|a, b| {
        compare(key(&items[a]), key(&items[b])) != Ordering::Greater
    });
    permute(items, order);
}

fn merge_sort(order: &mut [usize], in_order: &impl Fn(usize, usize) -> bool) {
    let mut width = 1;
    while width < order.len() {
        for run in order.chunks_mut(2 * width) {
            if run.len() > width {
                merge(run, width, in_order);
            }
        }
        width *= 2;
    }
}

/// Merges the two sorted parts of a run.
fn merge(run: &mut [usize], middle: usize, in_order: &impl Fn(usize, usize) -> bool) {
    let left: Vec<usize> = run[..middle].to_vec();
    let (mut from_left, mut from_right) = (0, middle);
    for place in 0..run.len() {
        let take_left = match (left.get(from_left), run.get(from_right)) {
            (Some(&a), Some(&b)) => in_order(a, b),
            (Some(_), None) => true,
            (None, _) => return,
        };
        if take_left {
            run[place] = left[from_left];
            from_left += 1;
        } else {
            run[place] = run[from_right];
            from_right += 1;
        }
    }
}

/// Puts at each place the item whose index stands there.
fn permute<T>(items: &mut [T], mut order: Vec<usize>) {
    for place in 0..items.len() {
        let mut from = order[place];
        while from < place {
            from = order[from];
        }
        items.swap(place, from);
        order[place] = from;
    }
}

fn compare(a: &str, b: &str, v3: bool) -> Ordering {
    let common = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    if common == a.len() || common == b.len() {
        return a.len().cmp(&b.len());
    }
    let (left, right) = (a.as_bytes()[common], b.as_bytes()[common]);
    if left.is_ascii_alphabetic() && right.is_ascii_alphabetic() {
        return left.cmp(&right);
    }
    compare_at_difference(a, b, common, v3)
}

/// Compares from the first different character on.
fn compare_at_difference(a: &str, b: &str, common: usize, v3: bool) -> Ordering {
    let mut at = common;
    while !a.is_char_boundary(at) {
        at -= 1;
    }
    let before = &a[..at];
    let (a, b) = (&a[at..], &b[at..]);
    let (Some(left), Some(right)) = (a.chars().next(), b.chars().next()) else {
        return a.len().cmp(&b.len());
    };
    match (left.is_alphabetic(), right.is_alphabetic()) {
        (true, true) => return left.cmp(&right),
        (false, false) => {}
        (left_letter, _) => {
            let after_digit = v3 && before.chars().next_back().is_some_and(is_digit);
            return if left_letter == after_digit {
                Ordering::Less
            } else {
                Ordering::Greater
            };
        }
    }
    let zero = left == '0' || right == '0';
    let start = i64::from(zero && ends_in_nonzero_number(before));
    let (left_number, left_length) = leading_number(a, start);
    let (right_number, right_length) = leading_number(b, start);
    left_number
        .cmp(&right_number)
        .then(left_length.cmp(&right_length))
        .then(left.cmp(&right))
}

fn ends_in_nonzero_number(text: &str) -> bool {
    let mut digits = text.chars().rev().take_while(|c| is_digit(*c));
    digits.any(|digit| digit != '0')
}

/// The number a text begins with and its length in digits; it overflows as Go's does.
fn leading_number(text: &str, start: i64) -> (i64, usize) {
    let digits = text.chars().take_while(|c| is_digit(*c));
    digits.fold((start, 0), |(value, length), digit| {
        let digit = i64::from(digit as u32) - i64::from(b'0');
        (value.wrapping_mul(10).wrapping_add(digit), length + 1)
    })
}

/// A decimal digit of any script; the scripts' digits stand in runs of ten.
fn is_digit(c: char) -> bool {
    const ZEROS: [u32; 36] = [
        0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6,
        0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
        0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0,
        0xff10,
    ];
    let code = u32::from(c);
    c.is_ascii_digit() || code >= 0x660 && ZEROS.iter().any(|zero| code.wrapping_sub(*zero) < 10)
}
