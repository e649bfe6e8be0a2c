//! Rollouts on a real API server: what the operator makes of releases, people, accidents and its own death.
//!
//! Each case has a namespace and an operator of its own. An observer reads every version of every object and checks the
//! rules about traffic, whatever the case is about. Rollouts mostly wait, so all cases run at the same time on one cluster:
//! far more than there are cores, which the usual runner of tests does not do. Names given on the command line select cases.

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;

mod accidents;
mod bed;
mod death;
mod deletion;
mod hostile;
mod measured;
mod mesh;
mod observer;
mod people;
mod pods;
mod quiet;
mod refusals;
mod releases;
mod rights;
mod scaling;
mod strategies;

/// One test.
pub(crate) struct Case {
    name: &'static str,
    run: fn() -> BoxFuture<'static, ()>,
}

/// Lists the cases of a module.
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        pub(crate) const CASES: &[$crate::Case] =
            &[$($crate::Case { name: stringify!($case), run: || Box::pin($case()) }),+];
    };
}
pub(crate) use cases;

/// So many cases run at a time: more would keep one another from being in time.
const AT_ONCE: usize = 16;

fn all() -> impl Iterator<Item = &'static Case> {
    let modules = [
        death::CASES,
        measured::CASES,
        scaling::CASES,
        strategies::CASES,
        people::CASES,
        pods::CASES,
        releases::CASES,
        accidents::CASES,
        deletion::CASES,
        hostile::CASES,
        quiet::CASES,
        refusals::CASES,
        rights::CASES,
    ];
    modules.into_iter().flatten()
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "it is the runner")]
async fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let is_exact = words.iter().any(|word| word == "--exact");
    let is_asked = |case: &&Case| {
        let mut filters = filters.iter();
        filters.len() == 0
            || filters.any(|filter| {
                case.name == filter.as_str() || (!is_exact && case.name.contains(filter.as_str()))
            })
    };
    let cases: Vec<&Case> = all().filter(is_asked).collect();
    if words.iter().any(|word| word == "--list") {
        for case in cases {
            println!("{}: test", case.name);
        }
        return std::process::ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", cases.len());
    let (total, left_out) = (cases.len(), all().count() - cases.len());
    let run = |case: &'static Case| async move {
        let started = std::time::Instant::now();
        let is_good = tokio::spawn((case.run)()).await.is_ok();
        let word = if is_good { "ok" } else { "FAILED" };
        println!("test {} ... {word}", case.name);
        if std::env::var_os("CASE_TIMES").is_some() {
            println!(
                "  {} took {:.1} s",
                case.name,
                started.elapsed().as_secs_f64()
            );
        }
        is_good
    };
    let ends: Vec<bool> = futures_util::stream::iter(cases)
        .map(run)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let passed = ends.into_iter().filter(|is_good| *is_good).count();
    let (word, failed) = if passed == total {
        ("ok", 0)
    } else {
        ("FAILED", total - passed)
    };
    println!(
        "\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {left_out} filtered out\n"
    );
    std::process::ExitCode::from(u8::from(failed > 0))
}
