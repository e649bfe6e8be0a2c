//! Selectors and image references beside the answers of the Go libraries that define them.

use portolan_object::{ImageRef, Selector};

/// Compares every line `INPUT => ANSWER` or `INPUT =! ERROR` with what `answer` says.
fn check(cases: &str, answer: impl Fn(&str) -> Result<String, String>) {
    let mut wrong = Vec::new();
    for line in cases.lines().filter(|line| !line.starts_with('#')) {
        let refused = line
            .split_once(" =! ")
            .map(|(input, error)| (input, Err(error.to_owned())));
        let accepted = || {
            line.split_once(" => ")
                .map(|(input, text)| (input, Ok(text.to_owned())))
        };
        let (input, expected) = refused.or_else(accepted).expect("a case");
        let got = answer(input);
        if got != expected {
            wrong.push(format!(
                "{input}\n  expected {expected:?}\n  got      {got:?}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn selectors_are_read_and_refused_as_in_kubernetes() {
    check(include_str!("cases/selectors.txt"), |text| {
        let selector: Selector = text.parse().map_err(|error| format!("{error}"))?;
        Ok(selector.to_string())
    });
}

#[test]
fn image_references_are_read_and_refused_as_by_docker() {
    check(include_str!("cases/images.txt"), |text| {
        let image: ImageRef = text.parse().map_err(|error| format!("{error}"))?;
        Ok(format!(
            "{} | {} | {} | {} | {image} | {}",
            image.registry(),
            image.repository(),
            image.tag().unwrap_or("-"),
            image.digest().unwrap_or("-"),
            image.canonical()
        ))
    });
}
