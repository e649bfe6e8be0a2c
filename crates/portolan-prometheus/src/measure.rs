//! A metric of an analysis, measured.
//!
//! ```text
//! builtin      raw samples of Istio's counters of both arms, in one query for each reporter
//! bad, total   raw samples of the user's counters, once for each arm
//! query        one number
//! http         counts from any address
//! ```

use portolan_judge::{Arm, Counts};
use portolan_rollout::{
    Builtin, CounterQueries, HttpSource, Measurement, Metric, MetricSource, Time,
};

use crate::answer::Answer;
use crate::arm::add_up;
use crate::arms::{ArmLabels, Arms};
use crate::compare::{Compared, Found, NotCompared, compare, same_revision, without_cold_start};
use crate::http_counts::read_counts;
use crate::latency::{Edge, count_slow, edge_of, next_edge};
use crate::requests::{Reporter, count_requests};
use crate::scrape::{Scrapes, scrape_interval, stale_after, unknown_targets};
use crate::selector::{Selector, fill_in, range};
use crate::series::Series;
use crate::server::Prometheus;
use crate::window::Window;

/// What is to be measured, and when.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The two revisions.
    pub arms: &'a Arms,
    /// The end of what was counted before.
    pub from: Time,
    /// The end of what is counted now. It should lie a second back, so that the last scrapes have arrived.
    pub to: Time,
    /// How long requests of a fresh pod say nothing.
    pub warm_up_seconds: u64,
}

/// What a metric answered, and how that was found out.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The answer; `None` if fewer than two scrapes lie between the two moments, so that one has to wait.
    pub measurement: Option<Measurement>,
    /// Where the next question begins: after what was counted or can no longer be counted, else where this one began.
    pub next_from: Time,
    /// What a person should know about it: who counted, which edge, what was left out.
    pub notes: Vec<String>,
}

/// Samples are asked for from this long before a window, in milliseconds: the window begins with the last sample before
/// it, and targets are scraped once a minute at least.
const LOOKBACK: i64 = 150_000;

/// A server that did not answer for longer than this, in seconds, is not asked for what was before.
const LONGEST_WINDOW: u64 = 600;

/// So many targets are looked up in `up`; more at once are new only after a restart of everything.
const MOST_INSTANCES: usize = 200;

/// Asks for one metric of an analysis.
pub async fn measure(prometheus: &Prometheus, metric: &Metric, question: Question<'_>) -> Measured {
    let outcome = match &metric.source {
        MetricSource::Builtin(builtin) => question.builtin(prometheus, builtin).await,
        MetricSource::Counters(queries) => question.counters(prometheus, queries).await,
        MetricSource::Query(query) => question.value(prometheus, &query.query).await,
        MetricSource::Http(metric) => question.http(prometheus, &metric.http).await,
    };
    outcome.unwrap_or_else(|answer| question.unanswered(failure(answer)))
}

/// What an answer without numbers means for a rollout.
fn failure(answer: Answer) -> Measurement {
    match answer {
        Answer::Nothing => Measurement::Nothing,
        Answer::Slow(_) => Measurement::Slow,
        Answer::Refused(message) => Measurement::Down(format!("refused: {message}")),
        Answer::Down(message) => Measurement::Down(message),
        Answer::TooMuch(message) => Measurement::Down(format!("too much was found: {message}")),
        Answer::Series(_) => Measurement::NotANumber,
    }
}

impl Question<'_> {
    /// An answer without counts.
    fn unanswered(&self, measurement: Measurement) -> Measured {
        let is_over = match measurement {
            Measurement::Slow | Measurement::Down(_) => self.to.since(self.from) > LONGEST_WINDOW,
            _ => true,
        };
        Measured {
            measurement: Some(measurement),
            next_from: if is_over { self.to } else { self.from },
            notes: Vec::new(),
        }
    }

    fn not_compared(&self, why: NotCompared) -> Measured {
        match why {
            NotCompared::Nothing => self.unanswered(Measurement::Nothing),
            NotCompared::Gap(message) => Measured {
                measurement: Some(Measurement::Down(message)),
                next_from: self.to,
                notes: Vec::new(),
            },
            NotCompared::TooSoon => Measured {
                measurement: None,
                next_from: self.from,
                notes: vec!["fewer than two scrapes so far".to_owned()],
            },
        }
    }

    async fn builtin(
        &self,
        prometheus: &Prometheus,
        builtin: &Builtin,
    ) -> Result<Measured, Answer> {
        let Some(over) = builtin.over.filter(|_| builtin.is_latency()) else {
            return self.requests(prometheus).await;
        };
        self.latency(prometheus, over.milliseconds() as f64).await
    }

    /// Counts failed requests.
    async fn requests(&self, prometheus: &Prometheus) -> Result<Measured, Answer> {
        let metric = || Selector::new("istio_requests_total");
        let found = self.found(prometheus, &metric).await?;
        let compared = self.compared(prometheus, found, |series, scrapes, reporter, window| {
            count_requests(series, scrapes, reporter, window)
        });
        Ok(self.measured(compared.await?, None))
    }

    /// Counts requests that took longer than an edge of the histogram.
    async fn latency(&self, prometheus: &Prometheus, limit: f64) -> Result<Measured, Answer> {
        const BUCKETS: &str = "istio_request_duration_milliseconds_bucket";
        // A histogram has twenty buckets and two are needed: first it is asked which there are.
        let edges = self.callers(Selector::new(BUCKETS)).text();
        let called = self.called(Selector::new(BUCKETS)).text();
        let query = format!("group by (le) ({edges} or {called})");
        let edges = series(prometheus.query(&query, Some(self.end())).await)?;
        let wanted = next_edge(&edges, limit);
        let labels = edges.iter().filter(|bucket| {
            let edge = edge_of(bucket);
            edge == Some(f64::INFINITY) || (edge.is_some() && edge == wanted)
        });
        let labels: Vec<String> = labels.map(|bucket| bucket.label("le").to_owned()).collect();
        let Some(at) = wanted else {
            let known = if edges.is_empty() {
                Answer::Nothing
            } else {
                Answer::Refused(format!(
                    "no bucket of `{BUCKETS}` ends at or above {limit} ms"
                ))
            };
            return Err(known);
        };
        let metric = || Selector::new(BUCKETS).one_of("le", labels.iter().map(String::as_str));
        let found = self.found(prometheus, &metric).await?;
        let compared = self.compared(prometheus, found, |series, scrapes, reporter, window| {
            let (mut arm, _) = count_slow(series, scrapes, limit, window)?;
            if reporter != Reporter::Destination {
                arm.pods.clear();
            }
            Some(arm)
        });
        let edge = Edge {
            at,
            is_exact: at == limit,
        };
        Ok(self.measured(compared.await?, Some(edge)))
    }

    /// Counts by two counters of the user.
    async fn counters(
        &self,
        prometheus: &Prometheus,
        queries: &CounterQueries,
    ) -> Result<Measured, Answer> {
        if [&queries.bad, &queries.total]
            .into_iter()
            .any(|query| !names_an_arm(query))
        {
            return Err(Answer::Refused(
                "`bad` and `total` must each hold `$(slot)`, `$(revision)` or `$(arm)`, by which the two revisions are told apart".to_owned(),
            ));
        }
        let mut arms = Vec::new();
        for (arm, role) in [(&self.arms.canary, "canary"), (&self.arms.stable, "stable")] {
            match self.counter_arm(prometheus, queries, arm, role).await? {
                Ok(counted) => arms.push(counted),
                Err(why) => return Ok(self.not_compared(why)),
            }
        }
        let (Some(stable), Some(canary)) = (arms.pop(), arms.pop()) else {
            return Err(Answer::Nothing);
        };
        if canary.is_none() && stable.is_none() {
            return Err(Answer::Nothing);
        }
        let (canary, stable) = (canary.unwrap_or_default(), stable.unwrap_or_default());
        Ok(self.counts(canary, stable, None, Vec::new()))
    }

    /// Counts one arm by two counters; `None` inside if there is no such counter.
    async fn counter_arm(
        &self,
        prometheus: &Prometheus,
        queries: &CounterQueries,
        arm: &ArmLabels,
        role: &str,
    ) -> Result<Result<Option<Arm>, NotCompared>, Answer> {
        let values = self.arms.placeholders(arm, role);
        let ask = async |query: &str| {
            let query = fill_in(query, &values).map_err(Answer::Refused)?;
            let query = range(&query, self.reach());
            series(prometheus.query(&query, Some(self.end())).await)
        };
        let (bad, total) = (ask(&queries.bad).await?, ask(&queries.total).await?);
        if total.is_empty() {
            return Ok(Ok(None));
        }
        let both = || bad.iter().chain(&total);
        let (from, to) = (self.begin(), self.end());
        let window = match scrape_interval(both()) {
            Some(interval) if to - from >= interval.saturating_mul(2) => Window {
                from,
                to,
                stale_after: stale_after(interval),
            },
            _ => return Ok(Err(NotCompared::TooSoon)),
        };
        let scrapes = Scrapes::of(both());
        let unknown = unknown_targets(both(), &scrapes, &window);
        let is_known = |series: &&Series| !unknown.contains(&series.target());
        let count = |all: &[Series]| {
            let known = all.iter().filter(is_known);
            add_up(known, &scrapes, &window, |_| false).map(|arm| arm.counts.total)
        };
        let Some(requests) = count(&total) else {
            return Ok(Err(NotCompared::Gap(
                "scrapes of the counters were missed, or they are new".to_owned(),
            )));
        };
        let bad = count(&bad).unwrap_or(0).min(requests);
        let counts = Counts {
            total: requests,
            bad,
        };
        Ok(Ok(Some(Arm {
            counts,
            pods: Vec::new(),
        })))
    }

    /// Asks for one number.
    async fn value(&self, prometheus: &Prometheus, query: &str) -> Result<Measured, Answer> {
        let values = self.arms.placeholders(&self.arms.canary, "canary");
        let query = fill_in(query, &values).map_err(Answer::Refused)?;
        let found = series(prometheus.query(&query, Some(self.end())).await)?;
        let [one] = found.as_slice() else {
            return Err(match found.len() {
                0 => Answer::Nothing,
                many => Answer::Refused(format!(
                    "the query gives {many} series; one number is needed"
                )),
            });
        };
        let last = one.samples.last().map(|sample| sample.value);
        Ok(self.unanswered(match last {
            None => Measurement::Nothing,
            Some(value) if value.is_nan() => Measurement::NotANumber,
            Some(value) => Measurement::Value { at: self.to, value },
        }))
    }

    /// Asks an address for counts.
    async fn http(&self, prometheus: &Prometheus, source: &HttpSource) -> Result<Measured, Answer> {
        let (from, to) = (self.from.unix().to_string(), self.to.unix().to_string());
        let ask = async |arm: &ArmLabels, role: &str| {
            let mut values = self.arms.placeholders(arm, role);
            values.extend([("from", from.as_str()), ("to", to.as_str())]);
            let url = fill_in(&source.url, &values).map_err(Answer::Refused)?;
            let (status, body) = prometheus.get(&url).await?;
            read_counts(status, &body)
        };
        let first = ask(&self.arms.canary, "canary").await?;
        let (canary, stable) = if names_an_arm(&source.url) {
            (first.one()?, ask(&self.arms.stable, "stable").await?.one()?)
        } else {
            first.both()?
        };
        let arm = |counts| Arm {
            counts,
            pods: Vec::new(),
        };
        Ok(self.counts(arm(canary), arm(stable), None, Vec::new()))
    }

    /// Asks for the series of both arms, of callers and called.
    async fn found(
        &self,
        prometheus: &Prometheus,
        metric: &(dyn Fn() -> Selector + Sync),
    ) -> Result<Found, Answer> {
        let callers = range(&self.callers(metric()).text(), self.reach());
        let called = range(&self.called(metric()).text(), self.reach());
        let at = Some(self.end());
        Ok(Found {
            callers: series(prometheus.query(&callers, at).await)?,
            called: series(prometheus.query(&called, at).await)?,
        })
    }

    fn callers(&self, metric: Selector) -> Selector {
        metric
            .one_of(
                "reporter",
                [Reporter::Source.label(), Reporter::Waypoint.label()],
            )
            .one_of("destination_service_name", self.arms.slots())
            .equal("destination_service_namespace", &self.arms.namespace)
            .all(&self.arms.labels)
    }

    fn called(&self, metric: Selector) -> Selector {
        metric
            .equal("reporter", Reporter::Destination.label())
            .one_of("destination_workload", self.arms.slots())
            .equal("destination_workload_namespace", &self.arms.namespace)
            .all(&self.arms.labels)
    }

    async fn compared(
        &self,
        prometheus: &Prometheus,
        found: Found,
        count: impl Fn(&[Series], &Scrapes, Reporter, &Window) -> Option<Arm>,
    ) -> Result<Result<Compared, NotCompared>, Answer> {
        let window = match found.window(self.begin(), self.end()) {
            Ok(window) => window,
            Err(why) => return Ok(Err(why)),
        };
        let mut scrapes = found.scrapes();
        let doubtful = found.doubtful_instances(&scrapes, &window);
        if (1..=MOST_INSTANCES).contains(&doubtful.len()) {
            let up = Selector::new("up").one_of("instance", doubtful.iter().map(String::as_str));
            let up = range(&up.text(), self.reach());
            scrapes.add_up(&series(prometheus.query(&up, Some(self.end())).await)?);
        }
        let count = |series: &[Series], reporter| count(series, &scrapes, reporter, &window);
        Ok(compare(found, &scrapes, self.arms, &window, count))
    }

    fn measured(&self, compared: Result<Compared, NotCompared>, edge: Option<Edge>) -> Measured {
        let compared = match compared {
            Ok(compared) => compared,
            Err(why) => return self.not_compared(why),
        };
        let mut notes = vec![format!(
            "counted by reporter `{}`",
            compared.reporter.label()
        )];
        if let Some(edge) = edge.filter(|edge| !edge.is_exact) {
            notes.push(format!(
                "counted by the bucket that ends at {} ms, the next one above the limit",
                edge.at
            ));
        }
        if compared.left_out > 0 {
            notes.push(format!(
                "{} targets left out: new, or scrapes of them were missed",
                compared.left_out
            ));
        }
        self.counts(
            compared.canary,
            compared.stable,
            Some(compared.reporter),
            notes,
        )
    }

    fn counts(
        &self,
        canary: Arm,
        stable: Arm,
        reporter: Option<Reporter>,
        notes: Vec<String>,
    ) -> Measured {
        let same_revision = same_revision(&stable, canary.pods.len(), self.warm_up_seconds);
        let warm =
            |arm: Arm, of: &ArmLabels| without_cold_start(arm, &of.pod_ages, self.warm_up_seconds);
        let (canary, stable) = (
            warm(canary, &self.arms.canary),
            warm(stable, &self.arms.stable),
        );
        Measured {
            measurement: Some(Measurement::Counts {
                from: self.from,
                to: self.to,
                canary,
                stable,
                same_revision,
                counted_by: reporter.map(|reporter| reporter.label().to_owned()),
            }),
            next_from: self.to,
            notes,
        }
    }

    fn begin(&self) -> i64 {
        self.from.unix().saturating_mul(1_000)
    }

    fn end(&self) -> i64 {
        self.to.unix().saturating_mul(1_000)
    }

    /// How far back samples are needed, in milliseconds.
    fn reach(&self) -> i64 {
        (self.end() - self.begin()).max(0).saturating_add(LOOKBACK)
    }
}

/// Returns whether a text differs between the two arms.
fn names_an_arm(text: &str) -> bool {
    ["$(slot)", "$(revision)", "$(arm)"]
        .into_iter()
        .any(|name| text.contains(name))
}

/// Returns the series of an answer, none if nothing was found.
fn series(answer: Answer) -> Result<Vec<Series>, Answer> {
    match answer {
        Answer::Series(series) => Ok(series),
        Answer::Nothing => Ok(Vec::new()),
        other => Err(other),
    }
}
