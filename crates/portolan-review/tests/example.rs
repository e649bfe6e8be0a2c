//! The program in `examples/review.rs` works as its text says.

include!("../../../examples/review.rs");

#[test]
fn the_example_reviews_the_repository_beside_it() {
    let examples = Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    let answer = review(&examples.join("harbor")).expect("it can be rendered");
    let first = answer.lines().next().unwrap_or_default();
    assert!(first.ends_with(" objects, 0 errors"), "{answer}");
    assert!(!first.starts_with("0 "), "{answer}");
}
