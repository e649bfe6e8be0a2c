//! The verbs over a small value model; the templates' own tests go through many more cases.

use std::borrow::Cow;

use super::*;

enum Plain {
    Nil,
    Bool(bool),
    Int(i64),
    Byte(u8),
    Float(f64),
    Str(&'static [u8]),
    List(Option<Vec<Self>>),
    Map(Vec<(&'static str, Self)>),
    Pointer(Vec<(&'static str, Self)>),
}

use Plain::{Bool, Byte, Float, Int, List, Map, Nil, Pointer, Str};

impl Operand for Plain {
    fn scalar(&self) -> OperandValue<'_> {
        match self {
            Nil => OperandValue::Nil,
            Bool(flag) => OperandValue::Bool(*flag),
            Int(number) => OperandValue::Int(*number),
            Byte(number) => OperandValue::Uint(u64::from(*number)),
            Float(number) => OperandValue::Float(FloatKind::Float64, *number),
            Str(bytes) => OperandValue::Str(bytes),
            List(_) | Map(_) | Pointer(_) => OperandValue::Composite,
        }
    }

    fn type_name(&self) -> Cow<'_, str> {
        let name = match self {
            Nil => "<nil>",
            Bool(_) => "bool",
            Int(_) => "int",
            Byte(_) => "uint8",
            Float(_) => "float64",
            Str(_) => "string",
            List(_) => "[]interface {}",
            Map(_) => "map[string]interface {}",
            Pointer(_) => "*main.Point",
        };
        name.into()
    }

    fn write_parts(&self, out: &mut String, verb: Verb, depth: usize) {
        let type_name = self.type_name();
        match self {
            List(items) => {
                verb.write_list(
                    out,
                    &type_name,
                    items.as_ref().map(|items| items.iter()),
                    depth,
                );
            }
            Map(entries) => {
                let entries = entries.iter().map(|(key, item)| (key.as_bytes(), item));
                verb.write_map(out, &type_name, Some(entries), depth);
            }
            Pointer(fields) => {
                let fields = fields.iter().map(|(name, value)| (*name, value));
                verb.write_struct(out, &type_name, fields, depth);
            }
            _ => {}
        }
    }
}

fn check(format: &str, args: &[Plain], expected: &str) {
    let text = sprintf(format, args, 10_000);
    assert_eq!(text.as_deref(), Some(expected), "{format}");
}

#[test]
fn each_verb_writes_what_suits_it() {
    check(
        "%d|%5d|%-5d|%05d|%+d",
        &[1, 2, 3, 4, 5].map(Int),
        "1|    2|3    |00004|+5",
    );
    check(
        "%x %X %#x %o %#o %b",
        &[255, 255, 255, 8, 8, 5].map(Int),
        "ff FF 0xff 10 010 101",
    );
    check(
        "%c %q %U %#U",
        &[65, 65, 65, 65].map(Int),
        "A 'A' U+0041 U+0041 'A'",
    );
    check(
        "%v %.2f %e %g",
        &[0.5, 0.5, 0.5, 1e21].map(Float),
        "0.5 0.50 5.000000e-01 1e+21",
    );
    check(
        "%s %q %x %5.1s|",
        &[Str(b"ab"), Str(b"ab"), Str(b"ab"), Str(b"ab")],
        "ab \"ab\" 6162     a|",
    );
    check("%t %v %%", &[Bool(true), Bool(false)], "true false %");
}

#[test]
fn a_verb_that_does_not_suit_a_value_says_so() {
    check("%d", &[Str(b"a")], "%!d(string=a)");
    check("%s %t", &[Int(1), Nil], "%!s(int=1) %!t(<nil>)");
    check(
        "%d",
        &[List(Some(vec![Int(1), Str(b"a")]))],
        "[1 %!d(string=a)]",
    );
    check("%d", &[Map(vec![("k", Int(1))])], "map[%!d(string=k):1]");
    check("%d %d", &[Int(1)], "1 %!d(MISSING)");
    check("%d", &[Int(1), Int(2)], "1%!(EXTRA int=2)");
    check("%[3]d %", &[Int(1)], "%!d(BADINDEX) %!(NOVERB)");
}

#[test]
fn parts_are_written_under_the_verb_of_the_whole() {
    let list = || List(Some(vec![Int(1), Str(b"a"), Nil, Byte(7)]));
    check("%v", &[list()], "[1 a <nil> 7]");
    check(
        "%#v",
        &[list()],
        "[]interface {}{1, \"a\", interface {}(nil), 0x7}",
    );
    check(
        "%v %#v",
        &[List(None), List(None)],
        "[] []interface {}(nil)",
    );
    check("%03d", &[List(Some(vec![Int(1), Int(2)]))], "[001 002]");
    let point = || Pointer(vec![("X", Int(1)), ("Y", Str(b"b"))]);
    check("%v", &[point()], "&{1 b}");
    check("%+v", &[point()], "&{X:1 Y:b}");
    check("%#v", &[point()], "&main.Point{X:1, Y:\"b\"}");
    check("%T %T", &[point(), Nil], "*main.Point <nil>");
}

#[test]
fn spaces_stand_where_go_puts_them() {
    let values = [Int(1), Int(2), Str(b"a"), Str(b"b"), Int(3), Bool(true)];
    assert_eq!(sprint(&values), "1 2ab3 true");
    assert_eq!(sprintln(&values), "1 2 a b 3 true\n");
}

#[test]
fn a_text_beyond_the_limit_is_not_made() {
    assert_eq!(sprintf("%9999d", &[Int(1)], 100), None);
    let padded = List(Some((0..1000).map(Int).collect()));
    assert_eq!(sprintf("%1000d", &[padded], 5_000), None);
}

#[test]
fn a_value_that_nests_too_deep_ends_in_an_ellipsis() {
    let deep = (0..MAX_DEPTH + 5).fold(Int(1), |inner, _| List(Some(vec![inner])));
    let text = sprintf("%v", &[deep], 10_000).unwrap();
    assert_eq!(text.matches('[').count(), MAX_DEPTH + 1);
    assert!(text.contains('…') && !text.contains('1'));
}

#[test]
fn bytes_that_are_not_utf8_are_kept() {
    let text = sprintf("%s|%q|%x", &[Str(b"\xff"), Str(b"\xff"), Str(b"\xff")], 100).unwrap();
    assert_eq!(crate::marked::bytes(&text).as_ref(), b"\xff|\"\\xff\"|ff");
}
