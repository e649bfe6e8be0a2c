//! Templates that were written to run for ever or to fill the memory: each ends soon, with an error that names the limit,
//! the place and the option that raises it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use portolan_budget::{Budget, Exceeded, Limits, Stop};
use portolan_gotmpl::{
    ExecError, Executor, Options, Seeded, TemplateSet, TextParser, Value, helm_functions,
};

/// A list and a map that hold the one before them twice, sixty times over.
const DOUBLED: &str = "{{ $l := list 1 }}{{ $d := dict \"a\" 1 }}{{ range until 60 }}{{ $l = list $l $l }}\
    {{ $d = dict \"a\" $d \"b\" $d }}{{ end }}\n";

/// The same again, so that no part of the two is shared.
const TWO_DOUBLED: &str = "{{ $l := list 1 }}{{ $m := list 1 }}{{ $d := dict \"a\" 1 }}{{ $e := dict \"a\" 1 }}\
    {{ range until 60 }}{{ $l = list $l $l }}{{ $m = list $m $m }}{{ $d = dict \"a\" $d \"b\" $d }}\
    {{ $e = dict \"a\" $e \"b\" $e }}{{ end }}\n";

/// Large texts, as large as one value may be under the small limits.
const LARGE: &str = "{{ $t := repeat 1000 \"x\" }}{{ $t = repeat 2000 $t }}\n";

const STEPS: &str = "`--limit steps=N` raises the limit";
const MEMORY: &str = "`--limit memory=BYTES` raises the limit";

fn small() -> Limits {
    Limits {
        steps: 10_000_000,
        bytes: 64 << 20,
        ..Limits::default()
    }
}

fn run(template: &str, budget: Budget) -> Result<String, Box<ExecError>> {
    let limits = portolan_gotmpl::Limits::default();
    let parser = TextParser::new(Arc::new(helm_functions()), limits.parse_depth);
    let mut set = TemplateSet::default();
    set.add(
        &parser
            .parse("hostile.yaml", template)
            .expect("it is a template"),
    );
    let mut host = Seeded::new("seed", 0);
    let options = Options {
        range_over_int: true,
        ..Options::default()
    };
    Executor::new(&set, &parser, options, &limits, &mut host)
        .with_budget(budget)
        .execute("hostile.yaml", Value::Nil)
}

/// Runs a template that must be stopped, and returns the error.
#[track_caller]
fn stopped(template: &str, limits: Limits) -> Box<ExecError> {
    let start = Instant::now();
    let result = run(template, Budget::new(limits, Stop::default()));
    let took = start.elapsed();
    assert!(result.is_err(), "must be stopped: {template}");
    let error = result.expect_err("it was looked at");
    assert!(
        took < Duration::from_secs(10),
        "took {took:?}: {template}\n{error}"
    );
    error
}

#[track_caller]
fn check(head: &str, action: &str, expected: &str) {
    let template = format!("{head}{action}");
    let error = stopped(&template, small());
    let text = error.to_string();
    assert!(
        text.ends_with(expected) && error.exceeded().is_some(),
        "{action}: {}",
        &text[text.len().saturating_sub(400)..]
    );
    assert!(text.contains("hostile.yaml:"), "{action}: {text}");
}

/// For templates that use steps and memory alike: one of the two limits stops them.
#[track_caller]
fn either(head: &str, action: &str) {
    let error = stopped(&format!("{head}{action}"), small());
    let text = error.to_string();
    assert!(
        text.ends_with(STEPS) || text.ends_with(MEMORY),
        "{action}: {}",
        &text[text.len().saturating_sub(400)..]
    );
}

#[test]
fn shared_structure_is_walked_as_often_as_it_is_printed() {
    let actions = [
        "{{ toJson $l }}",
        "{{ mustToJson $l }}",
        "{{ toRawJson $l }}",
        "{{ toPrettyJson $l }}",
        "{{ toYaml $l }}",
        "{{ toYamlPretty $l }}",
        "{{ toYaml $d }}",
        "{{ toToml $d }}",
        "{{ toToml (dict \"l\" $l) }}",
        "{{ printf \"%v\" $l }}",
        "{{ printf \"%d\" $l }}",
        "{{ printf \"%#v\" $d }}",
        "{{ printf \"x\" $d }}",
        "{{ print $l }}",
        "{{ println $d }}",
        "{{ html $l }}",
        "{{ js $l }}",
        "{{ urlquery $l }}",
        "{{ quote $l }}",
        "{{ squote $l }}",
        "{{ cat $l }}",
        "{{ toString $l }}",
        "{{ toStrings $l }}",
        "{{ join \",\" $l }}",
        "{{ sortAlpha $l }}",
        "{{ $l }}",
        "{{ $d }}",
        "{{ eq $l $d }}",
        "{{ eq $l $l }}",
        "{{ dict $l 1 }}",
        "{{ toDecimal $l }}",
        "{{ fromYaml (toYaml $d) }}",
        "{{ tpl \"{{ toYaml . }}\" $d }}",
        "{{ include \"hostile.yaml.none\" . | default (toJson $l) }}",
        "{{ genSelfSignedCert \"x\" (list $l) (list) 1 }}",
    ];
    let define = "{{ define \"hostile.yaml.none\" }}{{ end }}";
    for action in actions {
        check(&format!("{define}{DOUBLED}"), action, MEMORY);
    }
}

#[test]
fn shared_structure_is_compared_copied_and_merged_under_the_budget() {
    let actions = [
        ("{{ deepEqual $l $m }}", STEPS),
        ("{{ deepEqual $d $e }}", STEPS),
        ("{{ has $l (list $m) }}", STEPS),
        ("{{ without (list $l) $m }}", STEPS),
        ("{{ uniq (list $l $m) }}", STEPS),
        ("{{ mustUniq (list $l $m) }}", STEPS),
        ("{{ merge $d $e }}", STEPS),
        ("{{ mergeOverwrite $d $e }}", MEMORY),
        ("{{ mustMergeOverwrite (dict) $d $e }}", MEMORY),
        ("{{ deepCopy $d }}", MEMORY),
        ("{{ mustDeepCopy $l }}", MEMORY),
    ];
    for (action, expected) in actions {
        check(TWO_DOUBLED, action, expected);
    }
}

#[test]
fn memory_is_refused_before_it_is_taken() {
    let actions = [
        "{{ until 60000000 }}",
        "{{ untilStep 0 60000000 1 }}",
        "{{ seq 1 60000000 }}",
        "{{ seq 0 2 9223372036854775806 }}",
        "{{ splitList \"\" $t }}",
        "{{ split \"\" $t }}",
        "{{ splitn \"\" 3000000 $t }}",
        "{{ splitList \"x\" $t }}",
        "{{ repeat 1000000 $t }}",
        "{{ regexSplit \"x\" $t -1 }}",
        "{{ regexFindAll \"x\" $t -1 }}",
        "{{ chunk 1 (until 100000) | chunk 1 | chunk 1 | toJson | repeat 100 }}",
        "{{ $u := until 100000 }}{{ concat $u $u $u }}",
        "{{ indent 100000000 \"x\" }}",
        "{{ nindent 1000 (repeat 10000 \"\\n\") }}",
        "{{ replace \"x\" \"yyyy\" $t }}",
        "{{ replace \"\" \"yyyy\" $t }}",
        "{{ regexReplaceAll \"x\" $t \"yyyy\" }}",
        "{{ regexReplaceAll \".*\" $t \"$0$0$0$0\" }}",
        "{{ regexReplaceAllLiteral \"x\" $t \"yyyy\" }}",
        "{{ wrapWith 1 \"yyyy\" $t }}",
        "{{ b32enc (print $t $t) }}",
        "{{ print $t $t $t $t }}",
        "{{ cat $t $t $t $t }}",
        "{{ join $t (list 1 2 3 4 5) }}",
        "{{ randAlphaNum 60000000 }}",
        "{{ randBytes 60000000 }}",
        "{{ printf \"%1000000d%1000000d%1000000d%1000000d%1000000d\" 1 2 3 4 5 }}",
        "{{ printf \"%1000000d\" (until 1000) }}",
        "{{ printf \"%1000000v\" (dict \"a\" 1 \"b\" 2 \"c\" 3) }}",
        "{{ fromJson (repeat 2 $t) }}",
        "{{ fromYaml $t }}",
        "{{ fromYamlArray (repeat 200000 \"- a: 1\\n\") }}",
        "{{ fromJsonArray (printf \"[%s 1]\" (repeat 200000 \"{\\\"a\\\":1},\")) }}",
        "{{ fromToml (repeat 2 $t) }}",
        "{{ $x := list }}{{ range until 1000 }}{{ $x = append $x $t }}{{ end }}{{ join \"\" $x }}",
        "{{ range until 1000 }}{{ $t }}{{ end }}",
        "{{ $k := dict }}{{ range until 100000 }}{{ range until 100 }}{{ $_ := set $k (print . (len $k)) 1 }}{{ end }}{{ end }}",
        "{{ $x := list }}{{ range until 100000 }}{{ $x = list $x (print .) (until 100) }}{{ end }}",
    ];
    for action in actions {
        either(LARGE, action);
    }
}

#[test]
fn expensive_functions_are_charged() {
    let actions = [
        "{{ range until 100000 }}{{ genPrivateKey \"rsa\" }}{{ end }}",
        "{{ range until 100000 }}{{ genPrivateKey \"ecdsa\" }}{{ end }}",
        "{{ range until 100000 }}{{ genPrivateKey \"ed25519\" }}{{ end }}",
        "{{ range until 100000 }}{{ genPrivateKey \"dsa\" }}{{ end }}",
        "{{ range until 100000 }}{{ genCA \"x\" 1 }}{{ end }}",
        "{{ range until 100000 }}{{ genSelfSignedCert \"x\" nil nil 1 }}{{ end }}",
        "{{ $ca := genCA \"x\" 1 }}{{ range until 100000 }}{{ genSignedCert \"x\" nil nil 1 $ca }}{{ end }}",
        "{{ range until 100000 }}{{ derivePassword 1 \"long\" (print .) \"u\" \"s\" }}{{ end }}",
        "{{ range until 100000 }}{{ bcrypt (print .) }}{{ end }}",
        "{{ range until 100000 }}{{ htpasswd \"u\" (print .) }}{{ end }}",
        "{{ range until 100000 }}{{ sha1sum $t }}{{ end }}",
        "{{ range until 100000 }}{{ sha256sum $t }}{{ end }}",
        "{{ range until 100000 }}{{ sha512sum $t }}{{ end }}",
        "{{ range until 100000 }}{{ adler32sum $t }}{{ end }}",
        "{{ range until 100000 }}{{ contains \"y\" $t }}{{ end }}",
        "{{ range until 100000 }}{{ regexMatch \"y\" $t }}{{ end }}",
        "{{ range $i := until 100000 }}{{ regexMatch (printf \"(a{%d}){300}b\" $i) \"aaa\" }}{{ end }}",
        "{{ regexFindAll \".*[^x]|x\" $t 1000 }}",
        "{{ regexReplaceAll \".*[^x]|x\" $t \"y\" }}",
        "{{ uniq (until 100000) }}",
        "{{ $u := until 100000 }}{{ range $u }}{{ $_ := has -1 $u }}{{ end }}",
        "{{ $u := until 100000 }}{{ range $u }}{{ $_ := reverse $u | len }}{{ end }}",
        "{{ $u := until 100000 }}{{ range $u }}{{ $_ := rest $u | len }}{{ end }}",
        "{{ range 1000000000000 }}{{ if . }}{{ end }}{{ end }}",
        "{{ range until 100000 }}{{ $_ := encryptAES \"k\" $t }}{{ end }}",
        "{{ shuffle $t | shuffle | shuffle | shuffle | shuffle | shuffle }}",
    ];
    for action in actions {
        either(LARGE, action);
    }
}

#[test]
fn looking_for_templates_is_charged() {
    let deep = "{{ define \"i\" }}{{ end }}{{ define \"r\" }}{{ if lt . 20000 }}{{ template \"r\" (add1 . | int) }}{{ else }}\
        {{ range 1000000000 }}{{ include \"i\" . }}{{ end }}{{ end }}{{ end }}{{ template \"r\" 1 }}";
    check("", deep, STEPS);
    let texts = "{{ range $i := until 100000 }}{{ tpl (printf \"{{ define \\\"x\\\" }}{{ end }}%d%s{{ 1 }}\" $i (repeat 10000 \"y\")) . }}{{ end }}";
    check("", texts, MEMORY);
}

/// What a template held is given back when it ends: a chart has hundreds of files.
#[test]
fn memory_of_one_template_is_free_for_the_next() {
    let budget = Budget::new(small(), Stop::default());
    for _ in 0..20 {
        let output = run(
            &format!("{LARGE}{{{{ $t | upper | len }}}}"),
            budget.clone(),
        );
        assert_eq!(output.expect("it fits").trim(), "2000000");
    }
}

#[test]
fn default_limits_stop_templates_within_seconds() {
    let actions = [
        "{{ toYaml $l }}",
        "{{ printf \"%v\" $l }}",
        "{{ until 60000000 }}",
        "{{ splitList \"\" (repeat 60000000 \"x\") }}",
    ];
    for action in actions {
        let template = format!("{TWO_DOUBLED}{action}");
        assert!(stopped(&template, Limits::default()).exceeded().is_some());
    }
}

#[test]
fn a_template_obeys_the_switch_and_the_clock() {
    let stop = Stop::default();
    stop.set();
    let endless = "\n  {{ range 1000000000000 }}{{ end }}";
    let error = run(endless, Budget::new(Limits::default(), stop)).expect_err("it is stopped");
    assert_eq!(error.exceeded(), Some(Exceeded::Stopped));
    assert!(error.to_string().ends_with(": interrupted"), "{error}");

    static LOOKS: AtomicU64 = AtomicU64::new(0);
    let clock = || Duration::from_secs(LOOKS.fetch_add(1, Ordering::Relaxed));
    let limits = Limits {
        time: Duration::from_secs(3),
        ..Limits::default()
    };
    let budget = Budget::timed(limits, Stop::default(), clock);
    let error = run(endless, budget).expect_err("it is stopped");
    let text = error.to_string();
    assert!(
        text.starts_with("template: hostile.yaml:2:"),
        "the place is told: {text}"
    );
    assert!(
        text.ends_with("takes longer than 3s; `--limit time=SECONDS` raises the limit"),
        "{text}"
    );
}
