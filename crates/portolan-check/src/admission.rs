//! Checks objects against the rules of an API server that go beyond types.

use portolan_admission::{Fault, refusals};
use portolan_object::Rule;

use crate::finding::{Found, Subject};
use crate::locate::is_unknown;
use crate::places::Places;
use crate::rule::{
    CONFLICT, DUPLICATE_ITEM, INSIDE_REFERENCE, MISSING_FIELD, REFUSED_NAME, REFUSED_VALUE,
    SELECTOR,
};

pub(crate) fn check(
    subject: &Subject<'_>,
    index: usize,
    places: &Places<'_>,
    findings: &mut Vec<Found>,
) {
    for refusal in refusals(subject.object) {
        if is_unknown(subject, &refusal.path) {
            continue;
        }
        let message = refusal.to_string();
        // Its type may have said the same.
        let is_known = |found: &Found| found.subject == index && found.message == message;
        if findings.iter().rev().any(is_known) {
            continue;
        }
        findings.push(Found {
            rule: rule_of(refusal.fault),
            subject: index,
            place: places.of(subject, &refusal.path),
            message,
        });
    }
}

fn rule_of(fault: Fault) -> &'static Rule {
    match fault {
        Fault::Conflict => &CONFLICT,
        Fault::Duplicate => &DUPLICATE_ITEM,
        Fault::Missing => &MISSING_FIELD,
        Fault::Name => &REFUSED_NAME,
        Fault::Reference => &INSIDE_REFERENCE,
        Fault::Selector => &SELECTOR,
        Fault::Value => &REFUSED_VALUE,
    }
}
