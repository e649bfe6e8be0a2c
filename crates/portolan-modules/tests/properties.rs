//! Properties of every module for files, with random parameters on random trees: a check changes nothing and predicts
//! what an apply does, a second apply changes nothing, and nothing outside the root directory is touched.

mod bed;

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;

use bed::Bed;
use portolan_modules::{Ahead, Plan, PlannedOutcome, View};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use serde_json::{Value, json};

/// Paths that meet each other, with names that are not plain.
fn path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "link", "up", "out", "a b", "-x", "…"]);
    prop::collection::vec(name, 1..4).prop_map(|names| format!("/{}", names.join("/")))
}

fn text() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "",
        "x",
        "x\n",
        "x\ny\n",
        "x\r\ny\r\n",
        "y",
        "# BEGIN web config\nz\n# END web config\n",
    ])
    .prop_map(str::to_owned)
}

fn mode() -> impl Strategy<Value = Option<&'static str>> {
    prop::sample::select(vec![None, Some("0600"), Some("0755"), Some("0644")])
}

/// A step: a module and its parameters.
fn step() -> impl Strategy<Value = (&'static str, Value)> {
    let file = (path(), text(), mode(), any::<[bool; 4]>()).prop_map(|(path, content, mode, [parents, follow, in_place, keep])| {
        let mut parameters = json!({"path": path, "follow": follow, "inPlace": in_place, "backup": u8::from(keep)});
        parameters["content"] = content.into();
        parameters["mode"] = mode.into();
        if parents {
            parameters["parents"] = json!({"mode": "0700"});
        }
        ("file", parameters)
    });
    let directory = (path(), mode(), any::<[bool; 4]>()).prop_map(
        |(path, mode, [parents, recurse, filled, purge])| {
            let mut parameters = json!({"path": path, "recurse": recurse});
            parameters["mode"] = mode.into();
            if parents {
                parameters["parents"] = json!({});
            }
            if filled {
                parameters["source"] = "conf".into();
                parameters["purge"] = purge.into();
            }
            ("directory", parameters)
        },
    );
    let removal = (path(), any::<bool>()).prop_map(|(path, is_file)| {
        let module = if is_file { "file" } else { "directory" };
        (module, json!({"path": path, "state": "absent"}))
    });
    let link =
        (path(), path(), any::<[bool; 3]>()).prop_map(|(path, to, [hard, force, outside])| {
            let to = if outside && !hard {
                format!("../../../..{to}")
            } else {
                to
            };
            (
                "link",
                json!({"path": path, "to": to, "hard": hard, "force": force}),
            )
        });
    let line = (path(), any::<[bool; 3]>()).prop_map(|(path, [absent, create, matching])| {
        let mut parameters = json!({"path": path, "line": "y", "create": create});
        if absent {
            parameters["state"] = "absent".into();
        }
        if matching {
            parameters["match"] = "^[xy]".into();
        }
        ("line", parameters)
    });
    let block = (path(), text(), any::<bool>()).prop_map(|(path, block, create)| {
        (
            "block",
            json!({"path": path, "block": block, "create": create}),
        )
    });
    prop_oneof![4 => file, 3 => directory, 2 => removal, 3 => link, 2 => line, 2 => block]
}

/// What lies below the root at first: files, directories, and links that would lead out of it.
fn populate(bed: &Bed, steps: &[(u8, String)]) {
    for (kind, path) in steps {
        let place = bed.path(path);
        let parent = place.parent().expect("a directory above");
        // Through our own links the test must not write outside either.
        let is_below = parent
            .canonicalize_utf8()
            .is_ok_and(|real| real.starts_with(bed.path("/")));
        if !is_below || !parent.is_dir() || fs::symlink_metadata(&place).is_ok() {
            continue;
        }
        match kind % 5 {
            0 => fs::write(&place, "x\n").expect("a file"),
            1 | 2 => fs::create_dir(&place).expect("a directory"),
            3 => symlink(bed.outside(), &place).expect("a link"),
            _ => symlink("../../../../../../outside/sentinel", &place).expect("a link"),
        }
    }
}

fn changes(plan: &Plan) -> Vec<(String, String)> {
    let shown =
        |change: &portolan_modules::Change| (change.subject.to_string(), change.diff.clone());
    plan.changes().iter().map(shown).collect()
}

fn cases() -> u32 {
    if std::env::var_os("PORTOLAN_LONG").is_some() {
        5_000
    } else {
        300
    }
}

/// Runs a rule for many inputs; it says how many steps it saw change something. That must be a good part, or the rule
/// would hold because every step was refused.
fn for_all<T: std::fmt::Debug>(
    inputs: &impl Strategy<Value = T>,
    rule: impl Fn(T) -> Result<u32, TestCaseError>,
) {
    let config = ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let changed = Cell::new(0);
    let outcome = TestRunner::new(config).run(inputs, |input| {
        changed.set(changed.get() + rule(input)?);
        Ok(())
    });
    assert!(
        outcome.is_ok(),
        "{}",
        outcome.map_or_else(|error| error.to_string(), |()| String::new())
    );
    assert!(
        changed.get() > cases() / 10,
        "only {} steps changed anything",
        changed.get()
    );
}

fn populated(tree: &[(u8, String)]) -> Bed {
    let bed = Bed::with_files(&[("conf/a", b"1"), ("conf/b/c", b"2")]);
    populate(&bed, tree);
    bed
}

#[test]
fn a_step_converges_and_stays_inside() {
    let tree = prop::collection::vec((any::<u8>(), path()), 0..8);
    for_all(&(tree, step()), |(tree, (module, parameters))| {
        let bed = populated(&tree);
        // An error is as good an answer, if nothing outside is touched.
        let outcome = bed.converge(module, &parameters);
        bed.assert_outside_untouched();
        Ok(outcome.map_or(0, |(_, applied)| u32::from(applied.is_changed)))
    });
}

#[test]
fn a_check_of_several_steps_predicts_what_they_do() {
    let tree = prop::collection::vec((any::<u8>(), path()), 0..6);
    let steps = prop::collection::vec(step(), 1..6);
    for_all(&(tree, steps), |(tree, steps)| {
        let bed = populated(&tree);
        let before = bed.tree();
        let predicted = check(&bed, &steps);
        prop_assert_eq!(bed.tree(), before, "a check changes nothing");
        let mut changed = 0;
        for ((module, parameters), plan) in steps.iter().zip(&predicted) {
            let action = bed::action(module, parameters);
            let real = action.plan(&View::of(&bed.host));
            let real = real
                .map_err(|error| TestCaseError::fail(format!("{module} {parameters}: {error}")))?;
            match plan.outcome {
                PlannedOutcome::Unchanged => {
                    let is_unchanged = matches!(real.outcome, PlannedOutcome::Unchanged);
                    prop_assert!(
                        is_unchanged,
                        "{} {}: {:?}",
                        module,
                        parameters,
                        changes(&real)
                    );
                }
                PlannedOutcome::Change(_) => {
                    prop_assert_eq!(changes(plan), changes(&real), "{} {}", module, parameters);
                }
                _ => {}
            }
            match action.apply(&bed.host, &real) {
                Ok(applied) => changed += u32::from(applied.is_changed),
                Err(_) => break,
            }
        }
        bed.assert_outside_untouched();
        Ok(changed)
    });
}

/// What a check of steps says, up to the first that fails.
fn check(bed: &Bed, steps: &[(&'static str, Value)]) -> Vec<Plan> {
    let mut ahead = Ahead::default();
    let mut plans = Vec::new();
    for (module, parameters) in steps {
        let view = View {
            host: &bed.host,
            ahead,
        };
        let plan = bed::action(module, parameters).plan(&view);
        ahead = view.ahead;
        let Ok(plan) = plan else { break };
        ahead.add(&plan.predictions);
        plans.push(plan);
    }
    plans
}
