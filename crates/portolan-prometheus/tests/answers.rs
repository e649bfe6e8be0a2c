//! What is made of answers, case by case.

use portolan_prometheus::{Answer, Limits, parse_answer};
use proptest::prelude::*;

fn answer(status: u16, body: &str) -> Answer {
    parse_answer(status, body.as_bytes(), Limits::default())
}

fn success(kind: &str, result: &str) -> Answer {
    let body =
        format!(r#"{{"status":"success","data":{{"resultType":"{kind}","result":{result}}}}}"#);
    answer(200, &body)
}

fn samples(answer: &Answer) -> Vec<(i64, f64)> {
    let Answer::Series(series) = answer else {
        unreachable!("{answer:?}");
    };
    let samples = series.iter().flat_map(|series| &series.samples);
    samples.map(|sample| (sample.at, sample.value)).collect()
}

#[test]
fn vectors_matrices_and_scalars_are_read() {
    let vector = success("vector", r#"[{"metric":{"pod":"a"},"value":[1.5,"7"]}]"#);
    assert_eq!(samples(&vector), [(1_500, 7.0)]);
    let matrix = success(
        "matrix",
        r#"[{"metric":{"pod":"a"},"values":[[2,"8"],[1,"7"],[2,"9"]]}]"#,
    );
    assert_eq!(samples(&matrix), [(1_000, 7.0), (2_000, 9.0)]);
    assert_eq!(samples(&success("scalar", r#"[1,"3"]"#)), [(1_000, 3.0)]);
}

#[test]
fn nothing_found_is_not_a_failure() {
    assert_eq!(success("vector", "[]"), Answer::Nothing);
    assert_eq!(
        success("matrix", r#"[{"metric":{},"values":[]}]"#),
        Answer::Nothing
    );
}

#[test]
fn a_value_that_is_no_number_is_told_as_such() {
    let read = samples(&success("vector", r#"[{"metric":{},"value":[1,"NaN"]}]"#));
    assert!(read[0].1.is_nan());
    let read = samples(&success("vector", r#"[{"metric":{},"value":[1,"+Inf"]}]"#));
    assert_eq!(read[0].1, f64::INFINITY);
}

#[test]
fn patience_mistakes_and_failures_are_told_apart() {
    let error = |kind: &str| format!(r#"{{"status":"error","errorType":"{kind}","error":"text"}}"#);
    assert_eq!(
        answer(400, &error("bad_data")),
        Answer::Refused("bad_data: text".to_owned())
    );
    assert_eq!(
        answer(422, &error("execution")),
        Answer::Refused("execution: text".to_owned())
    );
    assert_eq!(
        answer(503, &error("timeout")),
        Answer::Slow("timeout: text".to_owned())
    );
    assert_eq!(
        answer(500, &error("internal")),
        Answer::Down("internal: text".to_owned())
    );
    assert_eq!(
        answer(504, "<html>"),
        Answer::Slow("HTTP status 504".to_owned())
    );
    assert_eq!(
        answer(401, "no"),
        Answer::Refused("HTTP status 401".to_owned())
    );
    assert_eq!(
        answer(200, "<html>"),
        Answer::Down("the answer is not Prometheus'".to_owned())
    );
    assert!(matches!(
        success("string", r#"[1,"x"]"#),
        Answer::Refused(_)
    ));
    assert!(matches!(
        success("vector", r#"[{"metric":{},"value":[1,"x"]}]"#),
        Answer::Down(_)
    ));
}

#[test]
fn too_much_is_told_and_not_cut() {
    let body = br#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]},{"metric":{"a":"b"},"value":[1,"1"]}]}}"#;
    for limits in [
        Limits {
            bytes: 10,
            ..Limits::default()
        },
        Limits {
            series: 1,
            ..Limits::default()
        },
        Limits {
            samples: 1,
            ..Limits::default()
        },
    ] {
        assert!(matches!(
            parse_answer(200, body, limits),
            Answer::TooMuch(_)
        ));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_body_gives_an_answer(status in any::<u16>(), body in prop::collection::vec(any::<u8>(), 0..200)) {
        parse_answer(status, &body, Limits::default());
    }
}
