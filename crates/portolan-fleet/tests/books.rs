//! Books as people write them: what is read, and what is told about what is wrong, with its line.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use portolan_fleet::{
    Barrier, Book, BookSource, MemoryFiles, NoFleet, RunOn, Share, TagSelection, Unreachable, Work,
    bind_inputs, compile,
};
use serde_json::{Map, Value, json};

const HEAD: &str =
    "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: web, namespace: shop}\nspec:\n";

fn read_with(body: &str, files: MemoryFiles, selection: TagSelection) -> Result<Book, Vec<String>> {
    let text = format!("{HEAD}{body}");
    let mut source = BookSource::new("book.yaml", &text, Arc::new(files));
    source.modules = support::MODULES;
    source.selection = selection;
    compile(&source).map_err(|faults| {
        let shown = faults.iter().map(|fault| match &fault.hint {
            Some(hint) => format!("{fault} ({hint})"),
            None => fault.to_string(),
        });
        shown.collect()
    })
}

fn read(body: &str) -> Result<Book, Vec<String>> {
    read_with(body, MemoryFiles::default(), TagSelection::default())
}

/// What is wrong with a list of steps; the first is in line 6.
fn faults(steps: &str) -> Vec<String> {
    let body = format!("  steps:\n{steps}");
    read(&body).err().unwrap_or_default()
}

#[test]
fn a_book_has_all_defaults() {
    let book = read("  steps:\n  - {name: a, put: {path: /a, content: x}}\n").expect("a book");
    assert_eq!(
        (book.name.as_str(), book.namespace.as_deref()),
        ("web", Some("shop"))
    );
    assert!(book.run.is_lockstep && !book.run.stops_on_failure && !book.run.is_suspended);
    assert_eq!(book.run.max_failures, Share::Count(0));
    assert_eq!(book.run.unreachable, Unreachable::Fail);
    let options = &book.steps[0].options;
    assert_eq!(options.timeout, Duration::from_mins(10));
    assert_eq!(
        (options.retries.limit, options.retries.interval),
        (0, Duration::from_secs(5))
    );
    assert_eq!(
        (options.run_on.clone(), options.barrier),
        (RunOn::All, Barrier::None)
    );
}

#[test]
fn everything_of_the_schema_is_read() {
    let body = "
  inputs:
    version: {type: string, default: '1.4.2', pattern: '^\\d+\\.\\d+\\.\\d+$'}
    admins: {type: list, default: []}
  vars: {port: 8080}
  compute: {url: \"'http://x:' + string(vars.port)\", path: \"vars.url + '/health'\"}
  target: {group: web}
  batches: [1, 50%, 100%]
  maxFailures: 10%
  unreachable: {wait: 5m}
  continue: {probe: {note: {value: 200}}, runOn: first, that: result.value == 200, retries: {limit: 3, interval: 5s}}
  defaults: {timeout: 1m, tags: [base]}
  steps:
  - {name: account, put: {path: /a, content: '{{ inputs.version }}'}, notify: restart}
  - name: each
    forEach: inputs.admins
    put: {path: '/{{ item.name }}', content: '{{ index }}'}
    tags: [users]
  - name: release
    when: facts.os.family == 'debian' && vars.path != ''
    steps:
    - {name: go, command: {path: /log}, retries: {limit: 2, interval: 10s, backoff: 1.5, until: result.changed}}
    - {name: now, flush: handlers}
    rescue:
    - {name: back, put: {path: /b, content: \"{{ error.message }} {{ steps['go'].stdout }}\"}}
    always:
    - {name: last, note: {value: 1}}
  - {name: wait, barrier: run}
  - {name: all, when: \"results('go').size() > 0\", note: {value: 2}, runOn: {group: lb, limit: 1}, throttle: 1}
  handlers:
  - {name: restart, command: {path: /log, run: restart}}
";
    let book = read(body).expect("a book");
    let names: Vec<&str> = book.compute.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["url", "path"], "each after what it needs");
    assert_eq!(
        book.run.batches,
        [Share::Count(1), Share::Percent(50), Share::Percent(100)]
    );
    assert_eq!(book.steps[0].options.notify, [0]);
    assert_eq!(book.steps[0].options.timeout, Duration::from_mins(1));
    assert_eq!(
        book.steps[1].options.tags,
        BTreeSet::from(["users".to_owned()]),
        "options replace defaults"
    );
    let go = book.step("release/go").expect("a step");
    assert_eq!((go.options.retries.backoff, go.place.line), (1_500, 26));
    let Work::Block(block) = &book.steps[2].work else {
        unreachable!("a block")
    };
    assert_eq!(
        (block.steps.len(), block.rescue.len(), block.always.len()),
        (2, 1, 1)
    );
    assert_eq!(book.facts, BTreeSet::from(["os".to_owned()]));
    let gate = book.run.gate.expect("a gate");
    let Value::Object(values) = json!({"result": {"value": 200}}) else {
        unreachable!("a map")
    };
    assert_eq!(
        gate.that.expect("a condition").holds(&values, &NoFleet),
        Ok(true)
    );
}

#[test]
fn a_misspelt_word_is_told_with_the_nearest_one() {
    for (step, expected) in [
        (
            "{name: a, pt: {path: /a}}",
            "book.yaml:6:15: `pt` is neither a module nor an option (did you mean `put`?)",
        ),
        (
            "{name: a, note: {value: 1}, wen: 'true'}",
            "book.yaml:6:33: `wen` is neither a module nor an option (did you mean `when`?)",
        ),
        (
            "{name: a, put: {pth: /a, content: x}}",
            "book.yaml:6:21: `pth` is no parameter of `put` (did you mean `path`?)",
        ),
        (
            "{name: a, note: {value: 1}, barrier: rum}",
            "book.yaml:6:42: `barrier` must be one of none, batch, run (did you mean `run`?)",
        ),
        (
            "{name: a, note: {value: 1}, when: facts.os.famly == 'a'}",
            "book.yaml:6:39: `facts.os.famly == 'a'`: there is no `famly` (did you mean `family`?)",
        ),
        (
            "{name: a, note: {value: '{{ input.x }}'}}",
            "book.yaml:6:22: `input` is not known here (did you mean `inputs`?)",
        ),
        (
            "{name: a, note: {value: 1}, retries: {limt: 2}}",
            "book.yaml:6:43: `limt` is not a field of `retries` (did you mean `limit`?)",
        ),
        (
            "{name: a, note: {value: 1}, notify: restart}",
            "book.yaml:6:41: there is no handler `restart` (the book has no `handlers`)",
        ),
    ] {
        let found = faults(&format!("  - {step}\n"));
        assert!(
            found.iter().any(|fault| fault == expected),
            "{step}: {found:#?}"
        );
    }
}

#[test]
fn what_cannot_work_is_refused() {
    for (steps, expected) in [
        ("  - {note: {value: 1}}\n", "the step has no `name`"),
        (
            "  - {name: a}\n",
            "the step `a` does nothing: it has no action",
        ),
        (
            "  - {name: a, note: {value: 1}, put: {path: /a}}\n",
            "the step `a` has several actions: `note`, `put`",
        ),
        (
            "  - {name: a, note: {value: 1}}\n  - {name: a, note: {value: 2}}\n",
            "there are two steps named `a` in this list",
        ),
        (
            "  - {name: a, module: {name: x}}\n",
            "`module` is not available yet",
        ),
        (
            "  - {name: a, note: {value: 1}, when: inputs.x}\n",
            "there is no `x`",
        ),
        (
            "  - {name: a, note: {value: 1}, when: \"'a'\"}\n",
            "must be true or false, not a text",
        ),
        (
            "  - {name: a, note: {value: 1}, when: '{{ x }}'}\n",
            "decisions are CEL, not templates",
        ),
        (
            "  - {name: a, note: {value: 1}, forEach: '3'}\n",
            "needs a list or map",
        ),
        (
            "  - {name: a, note: {value: '{{ x'}}\n",
            "cannot use the template",
        ),
        (
            "  - {name: a, put: {path: /a, content: 3}}\n",
            "`put.content` must be a text",
        ),
        (
            "  - {name: a, put: {path: relative, content: x}}\n",
            "`put.path` must be a path",
        ),
        ("  - {name: a, put: {content: x}}\n", "`put` needs `path`"),
        (
            "  - {name: a, put: {path: /a, template: t.j2}}\n",
            "there is no file `t.j2`",
        ),
        (
            "  - {name: a, note: {value: 1}, forEach: [1], barrier: run}\n",
            "a barrier cannot be inside a `forEach`",
        ),
        (
            "  - {name: a, note: {value: 1}, runOn: first, barrier: run}\n",
            "a barrier cannot be on a step that does not run on all nodes",
        ),
        (
            "  - {name: a, steps: [{name: b, note: {value: 1}}], rescue: [{name: c, barrier: run}]}\n",
            "a barrier cannot be in `rescue`",
        ),
        (
            "  - {name: a, note: {value: 1}}\n  - {name: b, when: \"results('a').size() > 0\", note: {value: 1}}\n",
            "needs a barrier between that step and this one",
        ),
        (
            "  - {name: a, when: \"steps['b'].changed\", note: {value: 1}}\n  - {name: b, note: {value: 1}}\n",
            "needed before that step is taken",
        ),
        (
            "  - {name: a, note: {value: \"{{ steps['c'].x }}\"}}\n",
            "there is no step `c`",
        ),
        (
            "  - {name: a, rescue: [], note: {value: 1}}\n",
            "`rescue` belongs to a block",
        ),
        (
            "  - {name: a, include: {git: 'https://x/y.git', path: a.yaml}}\n",
            "needs a `ref`",
        ),
        (
            "  - {name: a, include: {path: gone.yaml}}\n",
            "there is no file `gone.yaml`",
        ),
    ] {
        let found = faults(steps);
        assert!(
            found.iter().any(|fault| fault.contains(expected)),
            "{steps}: {found:#?}"
        );
        assert!(
            found.iter().all(|fault| fault.starts_with("book.yaml:")),
            "{found:#?}"
        );
    }
}

#[test]
fn all_faults_are_told_at_once_with_root_causes_first() {
    let found = faults(
        "  - {name: a, pt: {path: /a}}\n  - {name: b, when: \"steps['a'].changed\", note: {value: 1}}\n  - {name: c, note: {valu: 1}}\n",
    );
    let lines: Vec<&str> = found
        .iter()
        .filter_map(|fault| fault.split(':').nth(1))
        .collect();
    assert_eq!(lines, ["6", "8", "8", "7"], "{found:#?}");
}

#[test]
fn computed_values_in_a_circle_are_named() {
    let body = "  compute: {a: vars.b + 1, b: vars.c, c: vars.a}\n  steps: [{name: x, note: {value: 1}}]\n";
    let found = read(body).expect_err("a circle");
    assert!(
        found.iter().any(|fault| fault.contains("a → b → c → a")),
        "{found:#?}"
    );
}

#[test]
fn tags_that_skip_a_needed_result_are_an_error() {
    let body = "  steps:\n  - {name: a, note: {value: 1}, tags: [one]}\n  - {name: b, note: {value: \"{{ steps['a'].value }}\"}, tags: [two]}\n";
    let selection = |tag: &str| TagSelection {
        tags: BTreeSet::from([tag.to_owned()]),
        skip: BTreeSet::new(),
    };
    let only = |tag| read_with(body, MemoryFiles::default(), selection(tag));
    let one = only("one").expect("a book");
    assert_eq!(one.steps.len(), 1);
    let found = only("two").expect_err("a needed result is skipped");
    assert!(
        found[0].contains("the result of `a` is needed, but the tags skip that step"),
        "{found:#?}"
    );
    assert_ne!(
        one.digest,
        read(body).expect("a book").digest,
        "a selection changes the digest"
    );
}

#[test]
fn steps_that_use_a_secret_are_sensitive_and_keep_it_out_of_arguments() {
    let body = "  inputs: {token: {secret: true}, plain: {}}
  compute: {header: \"'Bearer ' + inputs.token\"}
  steps:
  - {name: plain, note: {value: '{{ inputs.plain }}'}}
  - {name: direct, note: {value: '{{ inputs.token }}'}}
  - {name: computed, note: {value: '{{ vars.header }}'}}
  - {name: decided, note: {value: 1}, when: inputs.token != ''}
  - {name: result, note: {value: \"{{ steps['direct'].value }}\"}}
  - {name: file, put: {path: /a, template: t.j2}}
";
    let files = || MemoryFiles::of([("t.j2", "{{ inputs.token }}\n")]);
    let book = read_with(body, files(), TagSelection::default()).expect("a book");
    let sensitive: Vec<&str> = book
        .steps
        .iter()
        .filter(|step| step.options.is_sensitive)
        .map(|step| step.id.as_str())
        .collect();
    assert_eq!(
        sensitive,
        ["direct", "computed", "decided", "result", "file"]
    );
    let leaking =
        format!("{body}  - {{name: leak, command: {{path: /a, run: '{{{{ vars.header }}}}'}}}}\n");
    let found = read_with(&leaking, files(), TagSelection::default()).expect_err("a leak");
    assert!(
        found[0].contains("puts a secret where every user of the node can read it"),
        "{found:#?}"
    );
}

/// What is secret on a node is so whatever the book has for it, and everything that is made from it.
#[test]
fn steps_that_use_a_secret_variable_are_sensitive() {
    let text = format!(
        "{HEAD}  inputs: {{token: {{secret: true}}}}
  vars: {{password: none, port: 80, header: 'Bearer {{{{ inputs.token }}}}'}}
  compute: {{url: \"'http://' + vars.password\"}}
  steps:
  - {{name: plain, note: {{value: '{{{{ vars.port }}}}'}}}}
  - {{name: direct, note: {{value: '{{{{ vars.password }}}}'}}}}
  - {{name: computed, note: {{value: '{{{{ vars.url }}}}'}}}}
  - {{name: text, note: {{value: '{{{{ vars.header }}}}'}}}}
  - {{name: all, note: {{value: '{{{{ vars }}}}'}}}}
"
    );
    let compiled = |secret: &[&str], text: &str| {
        let mut source = BookSource::new("book.yaml", text, Arc::new(MemoryFiles::default()));
        source.modules = support::MODULES;
        source.secret_vars = secret.iter().map(|name| (*name).to_owned()).collect();
        compile(&source)
    };
    let sensitive = |secret: &[&str]| {
        let book = compiled(secret, &text).expect("a book");
        let steps = book.steps.iter().filter(|step| step.options.is_sensitive);
        let ids: Vec<String> = steps.map(|step| step.id.clone()).collect();
        (ids, book.digest.to_string())
    };
    let (plain, digest) = sensitive(&[]);
    assert_eq!(plain, ["text", "all"]);
    let (secret, other) = sensitive(&["password"]);
    assert_eq!(secret, ["direct", "computed", "text", "all"]);
    assert_ne!(digest, other, "an agent that cannot hide it takes no step");
    let leaking =
        format!("{text}  - {{name: leak, command: {{path: /a, run: '{{{{ vars.url }}}}'}}}}\n");
    assert!(compiled(&[], &leaking).is_ok());
    let found = compiled(&["password"], &leaking).expect_err("a leak");
    assert!(
        found[0].message.contains("puts a secret where every user"),
        "{found:#?}"
    );
}

#[test]
fn a_book_includes_others_of_its_repository() {
    let files = || {
        MemoryFiles::of([
            (
                "common/base.yaml",
                "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: base}\nspec:\n  inputs: {port: {type: int}}\n  steps:\n  - {name: file, put: {path: /b, template: t.j2}, notify: inner}\n  - {name: other, note: {value: 1}, notify: outer}\n  handlers:\n  - {name: inner, note: {value: 1}}\n",
            ),
            ("common/t.j2", "{{ inputs.port }}"),
            (
                "loop.yaml",
                "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: loop}\nspec:\n  steps:\n  - {name: again, include: {path: loop.yaml}}\n",
            ),
        ])
    };
    let body = "  vars: {port: 80}\n  steps:\n  - {name: common, include: {path: common/base.yaml, inputs: {port: '{{ vars.port }}'}}}\n  handlers:\n  - {name: outer, note: {value: 2}}\n";
    let book = read_with(body, files(), TagSelection::default()).expect("a book");
    let file = book.step("common/file").expect("an included step");
    assert_eq!(&*file.place.file, "common/base.yaml");
    assert_eq!(file.options.notify, [1]);
    assert_eq!(
        book.step("common/other").expect("a step").options.notify,
        [0]
    );
    let ids: Vec<&str> = book.handlers.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["handlers/outer", "common/handlers/inner"]);

    let circle = "  steps:\n  - {name: x, include: {path: loop.yaml}}\n";
    let found = read_with(circle, files(), TagSelection::default()).expect_err("a circle");
    assert!(found[0].contains("in a circle"), "{found:#?}");
    let missing = "  steps:\n  - {name: x, include: {path: common/base.yaml, inputs: {prt: 1}}}\n";
    let found = read_with(missing, files(), TagSelection::default()).expect_err("inputs are wrong");
    assert!(
        found
            .iter()
            .any(|fault| fault.contains("has no input `prt`")),
        "{found:#?}"
    );
    assert!(
        found
            .iter()
            .any(|fault| fault.contains("needs the input `port`")),
        "{found:#?}"
    );
}

#[test]
fn inputs_of_a_run_are_checked() {
    let body = "  inputs:
    version: {pattern: '^\\d+$'}
    count: {type: int, default: 3, enum: [3, 4]}
    token: {secret: true}
  steps: [{name: a, note: {value: 1}}]
";
    let book = read(body).expect("a book");
    let bind = |value: Value| {
        let Value::Object(given) = value else {
            return Err(Vec::new());
        };
        bind_inputs(&book.inputs, &given).map_err(|faults| {
            faults
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<String>>()
        })
    };
    let bound = bind(json!({"version": "12", "token": "hunter22"})).expect("fits");
    assert_eq!(
        Value::Object(bound),
        json!({"version": "12", "count": 3, "token": "hunter22"})
    );
    assert_eq!(
        bind(json!({"version": "x", "count": 5, "vrsion": 1})).expect_err("wrong"),
        [
            "the input `vrsion` is not one of the book",
            "the input `count` must be one of 3, 4",
            "the input `token` is missing",
            "the input `version` must match `^\\d+$`",
        ]
    );
    let empty: Map<String, Value> = Map::new();
    assert_eq!(
        bind_inputs(&book.inputs, &empty)
            .expect_err("missing")
            .len(),
        2
    );
}
