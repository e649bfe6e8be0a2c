//! Objects against their types.

use portolan_schema::{Catalogue, Verdict, Violation};
use portolan_vfs::Vfs;

use crate::finding::{Finding, Subject};
use crate::locate::locate;
use crate::rule::rule;

pub(crate) fn check(
    subject: &Subject<'_>,
    index: usize,
    catalogue: &Catalogue,
    files: &dyn Vfs,
    findings: &mut Vec<Finding>,
) {
    let object = subject.object;
    match catalogue.check(object) {
        Verdict::Unknown => {}
        Verdict::NotServed => findings.extend(rule("schema/not-served").map(|rule| Finding {
            rule,
            subject: index,
            message: format!(
                "Kubernetes {} does not serve {} {}",
                catalogue.release(),
                object.gvk().api_version(),
                object.kind()
            ),
            place: object.origin.place().cloned(),
        })),
        Verdict::Checked(violations) => {
            findings.extend(
                violations
                    .iter()
                    .filter_map(|violation| finding(violation, subject, index, files)),
            );
        }
    }
}

fn finding(
    violation: &Violation,
    subject: &Subject<'_>,
    index: usize,
    files: &dyn Vfs,
) -> Option<Finding> {
    Some(Finding {
        rule: rule(violation.problem.id())?,
        subject: index,
        message: violation.to_string(),
        place: locate(files, subject.object, &violation.path),
    })
}
