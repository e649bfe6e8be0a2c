//! When a `CronJob` runs: five fields, or a word like `@daily`.

/// Least and greatest value of each field, and the names it may be written with.
const FIELDS: [(&str, u32, u32, &[&str]); 5] = [
    ("minute", 0, 59, &[]),
    ("hour", 0, 23, &[]),
    ("day of the month", 1, 31, &[]),
    (
        "month",
        1,
        12,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    ),
    (
        "day of the week",
        0,
        6,
        &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    ),
];

const WORDS: &[&str] = &[
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// What is wrong with a schedule.
pub(crate) fn check(schedule: &str) -> Result<(), String> {
    if schedule.contains("TZ=") {
        return Err("must not name a time zone: that is what `timeZone` is for".to_owned());
    }
    if schedule.starts_with('@') {
        let known = WORDS.contains(&schedule) || schedule.starts_with("@every ");
        let must = || format!("must be one of {} or five fields", WORDS.join(", "));
        return known.then_some(()).ok_or_else(must);
    }
    let parts: Vec<&str> = schedule.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Err(format!("must have five fields, has {}", parts.len()));
    }
    for (part, (name, least, most, names)) in parts.iter().zip(FIELDS) {
        let mut items = part.split(',');
        if !items.all(|item| is_range(item, least, most, names)) {
            return Err(format!("the {name} must be from {least} to {most}"));
        }
    }
    Ok(())
}

/// `*`, `5`, `1-5`, each with a step like `/2`.
fn is_range(item: &str, least: u32, most: u32, names: &[&str]) -> bool {
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (item, None),
    };
    if step.is_some_and(|step| !step.parse::<u32>().is_ok_and(|step| step > 0)) {
        return false;
    }
    if matches!(range, "*" | "?") {
        return true;
    }
    let value = |text: &str| {
        let named = names
            .iter()
            .position(|name| text.eq_ignore_ascii_case(name));
        let number = named.map(|index| index as u32 + least);
        let number = number.or_else(|| text.parse().ok())?;
        (least..=most).contains(&number).then_some(number)
    };
    match range.split_once('-') {
        Some((from, to)) => {
            matches!((value(from), value(to)), (Some(from), Some(to)) if from <= to)
        }
        None => value(range).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_the_controller_reads_them() {
        for good in [
            "0 3 * * *",
            "*/5 0-6,12 1 JAN-mar sun",
            "@daily",
            "@every 1h30m",
            "0 0 ? * 1/2",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "0 3 * *",
            "60 * * * *",
            "0 0 * * 7",
            "*/0 * * * *",
            "5-1 * * * *",
            "@never",
            "TZ=UTC 0 0 * * *",
            "a * * * *",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
