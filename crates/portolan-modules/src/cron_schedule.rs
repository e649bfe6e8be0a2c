//! When a cron job runs, as the cron of Linux distributions reads it: five fields, or a word that begins with `@`.

/// The words in place of five fields.
const WORDS: &[&str] = &[
    "@reboot",
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// One of the five fields.
struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    /// Names of the values, from `least` on.
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field {
        name: "minute",
        least: 0,
        most: 59,
        names: &[],
    },
    Field {
        name: "hour",
        least: 0,
        most: 23,
        names: &[],
    },
    Field {
        name: "day of month",
        least: 1,
        most: 31,
        names: &[],
    },
    Field {
        name: "month",
        least: 1,
        most: 12,
        names: MONTHS,
    },
    Field {
        name: "day of week",
        least: 0,
        most: 7,
        names: DAYS,
    },
];

/// Why cron would not read a text as a schedule; `None` if it would.
pub fn fault_of_schedule(text: &str) -> Option<String> {
    if text.starts_with('@') {
        return (!WORDS.contains(&text.trim_end()))
            .then(|| format!("is not one of {}", WORDS.join(", ")));
    }
    let parts: Vec<&str> = text.split_ascii_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Some(format!("must have five fields and has {}", parts.len()));
    }
    FIELDS
        .iter()
        .zip(parts)
        .find(|(field, part)| !part.split(',').all(|item| field.accepts(item)))
        .map(|(field, part)| {
            format!(
                "has `{part}` as its {}, which takes `*`, numbers from {} to {}, ranges and steps",
                field.name, field.least, field.most
            )
        })
}

impl Field {
    /// Whether it takes `*`, `5`, `1-5`, and each of the ranges with a step such as `*/10`.
    fn accepts(&self, item: &str) -> bool {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        let is_step = step.is_none_or(|step| {
            read_number(step).is_some_and(|step| step >= 1 && step <= self.most)
        });
        if range == "*" {
            return is_step;
        }
        match range.split_once('-') {
            Some((first, last)) => {
                let (first, last) = (self.value(first), self.value(last));
                is_step && first.zip(last).is_some_and(|(first, last)| first <= last)
            }
            // A step without a range means nothing.
            None => step.is_none() && self.value(range).is_some(),
        }
    }

    fn value(&self, text: &str) -> Option<u32> {
        let named = self
            .names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(text))
            .map(|position| position as u32 + self.least);
        named
            .or_else(|| read_number(text))
            .filter(|value| (self.least..=self.most).contains(value))
    }
}

/// Digits only: `parse` alone would take a sign.
fn read_number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_that_cron_reads_are_accepted() {
        for good in [
            "* * * * *",
            "*/5 0-6/2 1,15 jan-mar mon",
            "0 0 31 12 7",
            "@daily",
            "59 23 * DEC Sun-Sat",
        ] {
            assert_eq!(fault_of_schedule(good), None, "{good}");
        }
    }

    #[test]
    fn schedules_that_cron_would_ignore_are_refused() {
        for bad in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "5/2 * * * *",
            "*/0 * * * *",
            "5-1 * * * *",
            "a * * * *",
            "+5 * * * *",
            "1,,2 * * * *",
            "@dayly",
            "* * * * *; rm",
            "-1 * * * *",
            "99999999999 * * * *",
        ] {
            assert!(fault_of_schedule(bad).is_some(), "{bad}");
        }
    }
}
