//! `Printf`'s format strings: directives with flags, widths, precisions and argument indexes.

use super::pad::Flags;
use super::verb::Verb;
use super::{Operand, OperandValue};

/// The largest width or precision, as in Go.
const MAX_NUMBER: usize = 1_000_000;

/// What `fmt.Sprintf` gives; mistakes in the format show in the text, as in Go.
///
/// `None` when the text grows beyond `limit` bytes: a short format can ask for any number of blanks.
pub fn sprintf<O: Operand>(format: &str, args: &[O], limit: usize) -> Option<String> {
    let mut printer = Printer {
        format,
        args,
        next: 0,
        reordered: false,
        bad_index: false,
        out: String::new(),
        limit,
    };
    printer.run();
    (printer.out.len() <= limit).then_some(printer.out)
}

struct Printer<'a, O> {
    /// What is left of the format.
    format: &'a str,
    args: &'a [O],
    next: usize,
    /// An explicit index was used, so unused arguments are not reported.
    reordered: bool,
    bad_index: bool,
    out: String,
    /// Nothing more is printed once the text is longer.
    limit: usize,
}

impl<O: Operand> Printer<'_, O> {
    fn run(&mut self) {
        while let Some(percent) = self.format.find('%') {
            self.out.push_str(&self.format[..percent]);
            self.format = &self.format[percent + 1..];
            self.directive();
            if self.out.len() > self.limit {
                return;
            }
        }
        self.out.push_str(self.format);
        if !self.reordered && self.next < self.args.len() {
            self.report_extra();
        }
    }

    fn directive(&mut self) {
        self.bad_index = false;
        let mut flags = self.flags();
        let mut indexed = self.index();
        (flags.width, indexed) = self.width(&mut flags, indexed);
        if self.eat('.') {
            if indexed {
                self.bad_index = true;
            }
            indexed = self.index();
            (flags.precision, indexed) = self.precision(indexed);
        }
        if !indexed {
            self.index();
        }
        self.verb(flags);
    }

    fn verb(&mut self, flags: Flags) {
        let Some(letter) = self.format.chars().next() else {
            self.out.push_str("%!(NOVERB)");
            return;
        };
        self.format = &self.format[letter.len_utf8()..];
        if letter == '%' {
            self.out.push('%');
        } else if self.bad_index {
            self.complain(letter, "(BADINDEX)");
        } else if let Some(arg) = self.args.get(self.next) {
            self.next += 1;
            Verb::new(letter, flags.for_verb(letter))
                .within(self.limit)
                .write_operand(&mut self.out, arg);
        } else {
            self.complain(letter, "(MISSING)");
        }
    }

    fn complain(&mut self, letter: char, what: &str) {
        self.out.push_str("%!");
        self.out.push(letter);
        self.out.push_str(what);
    }

    fn flags(&mut self) -> Flags {
        let mut flags = Flags::NONE;
        loop {
            match self.format.as_bytes().first() {
                Some(b'#') => flags.sharp = true,
                Some(b'0') => flags.zero = true,
                Some(b'+') => flags.plus = true,
                Some(b'-') => flags.minus = true,
                Some(b' ') => flags.space = true,
                _ => return flags,
            }
            self.format = &self.format[1..];
        }
    }

    fn width(&mut self, flags: &mut Flags, indexed: bool) -> (Option<usize>, bool) {
        if !self.eat('*') {
            let number = self.number();
            if number.is_some() && indexed {
                self.bad_index = true;
            }
            return (number, indexed);
        }
        let Some(width) = self.number_argument() else {
            self.out.push_str("%!(BADWIDTH)");
            return (None, false);
        };
        if width < 0 {
            flags.minus = true;
            flags.zero = false;
        }
        (Some(width.unsigned_abs() as usize), false)
    }

    fn precision(&mut self, indexed: bool) -> (Option<usize>, bool) {
        if !self.eat('*') {
            return (Some(self.number().unwrap_or(0)), indexed);
        }
        if let Some(precision) = self.number_argument() {
            return (usize::try_from(precision).ok(), false);
        }
        self.out.push_str("%!(BADPREC)");
        (None, false)
    }

    fn number_argument(&mut self) -> Option<i64> {
        let arg = self.args.get(self.next);
        if arg.is_some() {
            self.next += 1;
        }
        let number = match arg?.scalar() {
            OperandValue::Int(number) => number,
            OperandValue::Uint(number) => i64::try_from(number).ok()?,
            _ => return None,
        };
        (number.unsigned_abs() <= MAX_NUMBER as u64).then_some(number)
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.format.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.format.split_at(digits);
        let number: usize = number.parse().ok().filter(|number| *number <= MAX_NUMBER)?;
        self.format = rest;
        Some(number)
    }

    /// An explicit argument index, `[3]`; whether there was one.
    fn index(&mut self) -> bool {
        if !self.format.starts_with('[') {
            return false;
        }
        self.reordered = true;
        let Some(close) = self.format.find(']') else {
            self.bad_index = true;
            self.format = &self.format[1..];
            return false;
        };
        let number = self.format[1..close].parse::<usize>().ok();
        self.format = &self.format[close + 1..];
        match number {
            Some(number) if (1..=self.args.len()).contains(&number) => self.next = number - 1,
            _ => self.bad_index = true,
        }
        true
    }

    fn eat(&mut self, expected: char) -> bool {
        let rest = self.format.strip_prefix(expected);
        self.format = rest.unwrap_or(self.format);
        rest.is_some()
    }

    fn report_extra(&mut self) {
        self.out.push_str("%!(EXTRA ");
        for (index, arg) in self.args[self.next..].iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            if arg.scalar() == OperandValue::Nil {
                self.out.push_str("<nil>");
                continue;
            }
            self.out.push_str(&arg.type_name());
            self.out.push('=');
            super::write_value(&mut self.out, arg);
        }
        self.out.push(')');
    }
}
