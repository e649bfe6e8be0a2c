//! Answers of a Prometheus server.

use portolan_prometheus::{Answer, Limits, parse_answer};

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[Target {
    name: "prometheus-answer",
    about: "the body of an answer to a query",
    run: answer,
    seeds: || {
        texts(&[
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"pod":"a"},"value":[1700000000.123,"17"]}]}}"#,
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1"],[2,"NaN"],[2,"+Inf"],[-3,"-Inf"]]}]}}"#,
            r#"{"status":"success","data":{"resultType":"scalar","result":[1700000000,"1e308"]}}"#,
            r#"{"status":"success","data":{"resultType":"string","result":[1,"a"]}}"#,
            r#"{"status":"error","errorType":"timeout","error":"query timed out"}"#,
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1e400,"1"]}]}}"#,
            "<html>503</html>",
        ])
    },
}];

/// Samples come out in order, one for each moment, whatever the server says, and never more than the limits allow.
fn answer(bytes: &[u8]) -> bool {
    let limits = Limits {
        bytes: 1 << 16,
        series: 16,
        samples: 64,
    };
    let answers = [200, 400, 503].map(|status| parse_answer(status, bytes, limits));
    for answer in &answers {
        let Answer::Series(series) = answer else {
            continue;
        };
        assert!(series.len() <= limits.series);
        let samples: usize = series.iter().map(|series| series.samples.len()).sum();
        assert!(samples > 0 && samples <= limits.samples);
        for series in series {
            let mut pairs = series.samples.windows(2);
            assert!(pairs.all(|pair| pair[0].at < pair[1].at));
        }
    }
    matches!(answers[0], Answer::Series(_) | Answer::Nothing)
}
