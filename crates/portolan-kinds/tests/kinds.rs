//! Objects of all kinds as users write them: what is read, what is refused and where, and what never changes.

use portolan_kinds::{
    KINDS, KindObject, decode, definition_schema, encode, explain, find_kind, message,
};
use serde_json::json;

fn read(text: &str) -> KindObject {
    KindObject::read_text(text).unwrap_or_else(|faults| unreachable!("{faults:#?}\n{text}"))
}

/// Each fault as `line:column path message (hint)`.
fn faults(text: &str) -> Vec<String> {
    let faults = KindObject::read_text(text).expect_err("it is wrong");
    let shown = faults.iter().map(|fault| {
        let hint = fault.hint.as_ref().map(|hint| format!(" ({hint})"));
        format!("{fault}{}", hint.unwrap_or_default())
    });
    shown.collect()
}

const EXAMPLES: &[&str] = &[
    "{kind: Namespace, apiVersion: v1alpha, metadata: {name: web}, spec: {description: the shop}}",
    "{kind: Node, apiVersion: v1alpha, metadata: {name: db-1.example.com, labels: {role: db}},
      spec: {network: {fqdn: db-1.example.com, addresses: [10.0.0.1], daemonPorts: [{name: ssh, port: 22}]}}}",
    "{kind: NodeGroup, apiVersion: v1alpha, metadata: {name: web}, spec: {selector: 'role=web,zone in (a,b)'}}",
    "{kind: Config, apiVersion: v1alpha, metadata: {name: server}, spec: {events: {retention: 48h}}}",
    "{kind: ClusterVariable, apiVersion: v1alpha, metadata: {name: dns}, spec: {values: {servers: [10.0.0.2], n: 3}}}",
    "{kind: ClusterVariablesBinding, apiVersion: v1alpha, metadata: {name: dns},
      spec: {variables: [dns], namespaces: [web]}}",
    "{kind: NodeGrant, apiVersion: v1alpha, metadata: {name: web}, spec: {namespaces: [web], groups: [web]}}",
    "{kind: Repository, apiVersion: v1alpha, metadata: {name: main},
      spec: {url: 'https://git.example.com/fleet', serviceAccount: git}}",
    "{kind: ClusterRole, apiVersion: v1alpha, metadata: {name: view}, spec: {rules: [{verbs: [get], kinds: ['*']}]}}",
    "{kind: ClusterRoleBinding, apiVersion: v1alpha, metadata: {name: view},
      spec: {role: {kind: ClusterRole, name: view}, subjects: [{kind: user, name: ann}]}}",
    "{kind: Role, apiVersion: v1alpha, metadata: {name: edit, namespace: web},
      spec: {rules: [{verbs: [get, update], kinds: [Variable], names: [region]}]}}",
    "{kind: RoleBinding, apiVersion: v1alpha, metadata: {name: edit, namespace: web},
      spec: {role: {kind: Role, name: edit}, subjects: [{kind: group, name: team}]}}",
    "{kind: Variable, apiVersion: v1alpha, metadata: {name: region, namespace: web},
      spec: {for: {groups: [web]}, values: {region: north, replicas: 3, ratio: 0.5, on: true, none: null}}}",
    "{kind: Secret, apiVersion: v1alpha, metadata: {name: db, namespace: web}, spec: {values: {password: abc}}}",
    "{kind: Event, apiVersion: v1alpha, metadata: {name: e1, namespace: web},
      spec: {type: run.completed, summary: done, data: {big: 9223372036854775807}}}",
    "{kind: TaskBook, apiVersion: v1alpha, metadata: {name: web, namespace: shop},
      spec: {inputs: {version: {default: '1.0', pattern: '^1'}}, batches: [1, 50%], unreachable: {wait: 5m},
             steps: [{name: note, print: {text: hello}}]}}",
    "{kind: Run, apiVersion: v1alpha, metadata: {name: web-1, namespace: shop},
      spec: {book: web, nodes: [{name: a, uuid: u}], inputs: {version: '1.0'}}}",
    "{kind: CronJob, apiVersion: v1alpha, metadata: {name: nightly, namespace: shop},
      spec: {schedule: '30 2 * * *', timeZone: Europe/Berlin, books: [{name: web, inputs: {version: '1.0'}}], missed: once}}",
    "{kind: Trigger, apiVersion: v1alpha, metadata: {name: restore, namespace: shop},
      spec: {match: {types: [beacon.drift], when: \"event.severity == 'error'\"}, groupBy: [node], count: 3, within: 5m,
             windows: [{days: [mon, sat], from: '22:00', to: '06:00'}],
             run: {book: web, eventNode: true, inputs: {path: '{{ event.data.path }}'}}}}",
    "{kind: Webhook, apiVersion: v1alpha, metadata: {name: ci, namespace: shop},
      spec: {keys: {secret: ci}, mapping: {type: \"'ci.' + body.status\", labels: {branch: body.branch}}}}",
    "{kind: Beacon, apiVersion: v1alpha, metadata: {name: web-conf, namespace: web},
      spec: {target: {groups: [web]}, file: {path: /etc/web.conf, state: present}, seen: 2, of: 3, labels: {team: web}}}",
    "{kind: Share, apiVersion: v1alpha, metadata: {name: token, namespace: web}, spec: {consumers: {groups: [web]}}}",
];

#[test]
fn every_kind_has_an_example_that_survives_storage() {
    assert_eq!(EXAMPLES.len(), KINDS.len());
    for text in EXAMPLES {
        let object = read(text);
        let mut stored = object.clone();
        stored
            .set_spec_bytes(&object.spec_bytes())
            .expect("the bytes of a spec");
        assert_eq!(stored, object);
        let again = KindObject::read_text(&object.to_json().to_string()).expect("its own JSON");
        assert_eq!(again, object, "what is printed can be read");
    }
}

#[test]
fn a_variable_reads_as_it_is_written() {
    let object = read(EXAMPLES[12]);
    assert_eq!(
        object.to_json(),
        json!({
            "apiVersion": "v1alpha", "kind": "Variable", "metadata": {"name": "region", "namespace": "web"},
            "spec": {
                "for": {"groups": ["web"]},
                "values": {"none": null, "on": true, "ratio": 0.5, "region": "north", "replicas": 3},
            },
        })
    );
}

/// Stored data depends on these bytes: they must never change.
#[test]
fn the_bytes_of_a_spec_do_not_change() {
    let object = read(EXAMPLES[12]);
    let hex = portolan_digest::hex(&object.spec_bytes());
    let golden = [
        "0a051203776562",                           // for: {groups: [web]}
        "120a0a046e6f6e6512020801",                 // none: null
        "12080a026f6e12021001",                     // on: true
        "12120a05726174696f120921000000000000e03f", // ratio: 0.5
        "12110a06726567696f6e12072a056e6f727468",   // region: north
        "120e0a087265706c6963617312021806",         // replicas: 3
    ];
    assert_eq!(hex, golden.concat());
}

#[test]
fn defaults_are_part_of_the_object() {
    let spec = read(EXAMPLES[7]).spec;
    assert_eq!(
        spec,
        json!({
            "url": "https://git.example.com/fleet", "serviceAccount": "git", "path": ".", "prune": true,
            "interval": "5m", "suspend": false,
        })
    );
    let node = read(EXAMPLES[1]);
    assert_eq!(node.spec["network"]["daemonPorts"][0]["protocol"], "tcp");
}

#[test]
fn every_fault_is_told_with_its_line_and_the_nearest_name() {
    let found = faults(
        "apiVersion: v1alpha\nkind: Repository\nmetadata:\n  name: Main\n  lables: {a: b}\nspec:\n  ulr: x\n  prune: maybe\n  interval: soon\n",
    );
    assert_eq!(
        found,
        [
            "4:9: `metadata.name` must be lower-case letters, digits, `-` or `.`, each part beginning and ending with a letter or digit, at most 253 characters",
            "5:3: `metadata.lables` is not a field (did you mean `labels`?)",
            "6:1: `spec.serviceAccount` must be there and not be empty",
            "6:1: `spec` must have either `url` or `dir`",
            "7:3: `spec.ulr` is not a field (did you mean `url`?)",
            "8:10: `spec.prune` must be true or false, not a text",
            "9:13: `spec.interval` must be a span of time such as `90s`, `10m` or `1h30m`",
        ]
    );
}

#[test]
fn the_type_may_stand_in_metadata_as_in_the_first_design() {
    let text = "metadata: {apiVersion: v1alpha, kind: Namespace, name: web}\n";
    assert_eq!(read(text).to_json()["kind"], "Namespace");
    let both = "kind: Node\nmetadata: {apiVersion: v1alpha, kind: Namespace, name: web}\n";
    assert_eq!(
        faults(both),
        ["2:39: `metadata.kind` is `Namespace`, but the one at the top is `Node`"]
    );
}

#[test]
fn a_number_is_no_text_and_a_large_one_is_never_rounded() {
    let secret = "{apiVersion: v1alpha, kind: Secret, metadata: {name: a, namespace: b}, spec: {values: {pin: 0123}}}";
    let found = faults(secret);
    assert!(
        found[0].contains("must be a text, not a number (quote it: \"0123\")"),
        "{found:?}"
    );
    let large = "{apiVersion: v1alpha, kind: ClusterVariable, metadata: {name: a}, spec: {values: {n: 9223372036854775808}}}";
    assert!(
        faults(large)[0].contains("must fit in 64 bits"),
        "{:?}",
        faults(large)
    );
}

#[test]
fn a_fault_never_repeats_the_value_of_a_secret() {
    let text = "apiVersion: v1alpha\nkind: Secret\nmetadata: {name: a, namespace: b}\nspec:\n  values: {p: hunter2!, 'x y': hunter2!}\n  vault: {path: ../hunter2!}\n";
    for fault in faults(text) {
        assert!(!fault.contains("hunter2!"), "{fault}");
    }
}

#[test]
fn an_unknown_kind_is_told_the_nearest_one() {
    let found = faults("{apiVersion: v1alpha, kind: nodegroups, metadata: {name: a}}");
    assert_eq!(
        found,
        ["1:29: `kind` `nodegroups` is not known (did you mean `NodeGroup`?)"]
    );
    let found = faults(
        "{apiVersion: v1alpha, kind: Role, metadata: {name: a, namespace: b}, spec: {rules: [{verbs: [gett], kinds: [Varable]}]}}",
    );
    assert!(found[0].contains("did you mean `get`?"), "{found:?}");
    assert!(found[1].contains("did you mean `Variable`?"), "{found:?}");
}

#[test]
fn kinds_are_found_by_every_name() {
    for name in ["NodeGroup", "nodegroup", "nodegroups", "ng", "NG"] {
        assert_eq!(
            find_kind(name).map(|kind| kind.name),
            Some("NodeGroup"),
            "{name}"
        );
    }
    assert!(find_kind("pods").is_none());
}

#[test]
fn names_of_kinds_are_unique_and_their_messages_exist() {
    let mut names: Vec<&str> = Vec::new();
    for kind in KINDS {
        names.extend([kind.plural]);
        names.extend(kind.short_names);
        assert!(message(kind.spec).is_some(), "{}", kind.name);
        assert!(
            kind.status.is_none_or(|status| message(status).is_some()),
            "{}",
            kind.name
        );
        for path in kind
            .selectable
            .iter()
            .chain(kind.columns.iter().map(|column| &column.path))
        {
            let above = path
                .split(".0")
                .next()
                .unwrap_or(path)
                .split(".*")
                .next()
                .unwrap_or(path);
            assert!(
                explain(&format!("{}.{above}", kind.name)).is_ok(),
                "{} {path}",
                kind.name
            );
        }
        for rule in kind.rules {
            let path = rule.path.trim_end_matches("[]").replace(".*", "");
            assert!(
                explain(&format!("{}.spec.{path}", kind.name)).is_ok(),
                "{} {path}",
                kind.name
            );
        }
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn fields_explain_themselves() {
    let interval = explain("repo.spec.interval").expect("a field");
    assert_eq!(interval.doc, "How often the repository is looked at.");
    assert_eq!(
        interval.demands,
        [
            "default: 5m",
            "a span of time such as `90s`, `10m` or `1h30m`"
        ]
    );
    let wrong = explain("repo.spec.intervall").expect_err("no field");
    assert_eq!(wrong.1, "did you mean `interval`?");
}

#[test]
fn schemas_say_what_validation_says() {
    let schema = definition_schema(find_kind("Role").expect("a kind"));
    let rule = &schema["properties"]["spec"]["properties"]["rules"]["items"];
    assert_eq!(rule["required"], json!(["verbs", "kinds"]));
    assert_eq!(rule["properties"]["verbs"]["items"]["enum"][1], "get");
    assert_eq!(rule["additionalProperties"], json!(false));
}

proptest::proptest! {
    /// Whatever bytes the store or a client has: no panic, and what decodes gives the same bytes again.
    #[test]
    fn any_bytes_decode_or_are_refused(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        for kind in KINDS {
            let schema = message(kind.spec).expect("a message");
            if let Ok(value) = decode(schema, &bytes) {
                let canonical = encode(schema, &value);
                proptest::prop_assert_eq!(decode(schema, &canonical), Ok(value));
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = KindObject::read_text(&text);
        let wrapped = format!("apiVersion: v1alpha\nkind: Variable\nmetadata: {{name: a}}\nspec:\n  values:\n    x: {text}\n");
        let _ = KindObject::read_text(&wrapped);
    }
}

#[test]
fn free_values_keep_their_shape() {
    let value =
        json!({"a": [1, -1, 0.25, "x", null, true, {"b": []}], "max": i64::MAX, "min": i64::MIN});
    let schema = message("ClusterVariableSpec").expect("a message");
    let spec = json!({ "values": value });
    let bytes = encode(schema, &spec);
    assert_eq!(decode(schema, &bytes), Ok(spec));
}

#[test]
fn the_options_of_a_book_are_checked() {
    let found = faults(
        "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: web, namespace: shop}\nspec:\n  inputs:\n    a-b: {type: text}\n  batches: [0, 120%]\n  maxFailures: some\n  unreachable: wait\n  strategy: serial\n  reconcile: {every: 5m}\n  steps: []\n",
    );
    for expected in [
        "6:5: `spec.inputs.a-b` must be a name of letters, digits and `_` that begins with a letter",
        "6:17: `spec.inputs.a-b.type` must be one of `string`, `int`, `bool`, `duration`, `list`, `map`, not `text` (there are string, int, bool, duration, list, map)",
        "7:13: `spec.batches[0]` must be a count from 1 on, or a percent such as `50%`",
        "7:16: `spec.batches[1]` must be a count from 1 on, or a percent such as `50%`",
        "8:16: `spec.maxFailures` must be a count, or a percent such as `10%`",
        "9:16: `spec.unreachable` must be `fail`, `skip` or a wait such as `{wait: 10m}`",
        "10:13: `spec.strategy` must be one of `lockstep`, `free`, not `serial` (there are lockstep, free)",
        "11:3: `spec.reconcile.on` must have at least one of `commit`, `join` and `drift`",
        "11:22: `spec.reconcile.every` has no meaning unless `on` has `drift`",
        "12:3: `spec.steps` must be there and not be empty",
    ] {
        assert!(
            found.iter().any(|fault| fault == expected),
            "{expected}: {found:#?}"
        );
    }
}

/// What portolan-trigger refuses is told at the line of the field, before an object is stored.
#[test]
fn schedules_triggers_and_webhooks_are_checked_before_they_are_stored() {
    let cron = "apiVersion: v1alpha\nkind: CronJob\nmetadata: {name: a, namespace: b}\nspec:\n  schedule: '61 * * * *'\n  on: agent\n  target: {group: web}\n  books: [{name: web}]\n";
    let found = faults(cron);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(
        found[0].starts_with("5:13: `spec.schedule` cannot be used:"),
        "{found:#?}"
    );
    assert!(found[1].starts_with("7:19: `spec.target.group` cannot be used with `books`"));
    let zone = "{apiVersion: v1alpha, kind: CronJob, metadata: {name: a, namespace: b}, spec: {schedule: '@daily', timeZone: Europe/Berlim}}";
    let found = faults(zone);
    assert!(
        found
            .iter()
            .any(|one| one.contains("`Europe/Berlim` is not a time zone")),
        "{found:#?}"
    );
    assert!(
        found
            .iter()
            .any(|one| one.contains("either `books` or `steps`")),
        "{found:#?}"
    );
    let trigger = "apiVersion: v1alpha\nkind: Trigger\nmetadata: {name: a, namespace: b}\nspec:\n  match:\n    types: [beacon.drift, r*n]\n    when: event.sevrity == 'error'\n  count: 3\n  windows: [{from: '25:00', to: '06:00'}]\n  run: {book: web, eventNode: true, selector: a=b}\n";
    let found = faults(trigger);
    let has = |text: &str| found.iter().any(|one| one.contains(text));
    assert!(
        has("6:27: `spec.match.types[1]` must be a type"),
        "{found:#?}"
    );
    assert!(has("7:11: `spec.match.when`"), "{found:#?}");
    assert!(
        has("`spec.within` is needed when `count` is more than 1"),
        "{found:#?}"
    );
    assert!(has("`25:00` is not a time of day"), "{found:#?}");
    assert!(
        has("`spec.run.selector` cannot be used with `eventNode`"),
        "{found:#?}"
    );
    let spans = trigger.replace(
        "  count: 3\n",
        "  count: 3\n  within: 5x\n  waitForMore: {quiet: soon, max: 5m}\n",
    );
    let found = faults(&spans);
    let has = |text: &str| found.iter().any(|one| one.contains(text));
    assert!(has("9:11: `spec.within` must be a span"), "{found:#?}");
    assert!(has("10:24: `spec.waitForMore.quiet`"), "{found:#?}");
    let hook = "{apiVersion: v1alpha, kind: Webhook, metadata: {name: a, namespace: b}, spec: {keys: {secret: s}, mapping: {type: 'body.x +'}}}";
    assert!(
        faults(hook)[0].contains("`spec.mapping.type`"),
        "{:#?}",
        faults(hook)
    );
    let hook = "{apiVersion: v1alpha, kind: Webhook, metadata: {name: a, namespace: b}, spec: {format: alertmanager, keys: {secret: s}, mapping: {type: \"'x'\"}}}";
    assert!(faults(hook)[0].contains("is for the format `json` only"));
    let config = "{apiVersion: v1alpha, kind: Config, metadata: {name: server}, spec: {events: {deny: [run.*, 'a b']}}}";
    assert!(faults(config)[0].contains("`spec.events.deny[1]` cannot be used"));
}

#[test]
fn a_beacon_watches_one_thing_on_nodes_that_it_names() {
    let beacon = |spec: &str| {
        format!(
            "{{kind: Beacon, apiVersion: v1alpha, metadata: {{name: b, namespace: web}}, spec: {spec}}}"
        )
    };
    let check = |spec: &str, expected: &str| {
        let found = faults(&beacon(spec));
        assert!(
            found.iter().any(|fault| fault.contains(expected)),
            "{found:#?}"
        );
    };
    check(
        "{target: {all: true}}",
        "must have one of `file`, `service`, `disk`, `port`, `command` and `drift`",
    );
    check(
        "{target: {all: true}, disk: {path: /}, port: {port: 80}}",
        "must have one of",
    );
    check(
        "{target: {all: false}, disk: {path: /}}",
        "`spec.target` must have `groups`",
    );
    check("{disk: {path: /}}", "`spec.target` must be there");
    check(
        "{target: {all: true}, file: {path: etc/web.conf}}",
        "must be an absolute path",
    );
    check(
        "{target: {all: true}, file: {path: /srv/../etc/shadow}}",
        "must be an absolute path",
    );
    check(
        "{target: {all: true}, port: {port: 0}}",
        "must be from 1 to 65535",
    );
    check(
        "{target: {all: true}, disk: {path: /}, seen: 2, of: 4}",
        "`spec.seen` must be more than half",
    );
    check(
        "{target: {all: true}, disk: {path: /}, interval: 100ms}",
        "must be from 1s",
    );
    check(
        "{target: {all: true}, command: {run: [\"true\"], timeout: 2h}}",
        "must be from 1s to 60s",
    );
    let object = read(&beacon("{target: {all: true}, command: {run: [\"true\"]}}"));
    assert_eq!(object.spec["command"]["timeout"], json!("10s"));
    assert_eq!(object.spec["interval"], json!("30s"));
}
