//! No template hangs, overflows the stack or exhausts memory. Tests run on threads with a 2 MB stack.

use std::rc::Rc;
use std::sync::Arc;

use portolan_gotmpl::{
    Executor, Limits, Options, Seeded, TemplateSet, TextParser, Value, helm_functions,
};

fn render_with(limits: &Limits, template: &str, dot: Value) -> Result<String, String> {
    let parser = TextParser::new(Arc::new(helm_functions()), limits.parse_depth);
    let mut set = TemplateSet::default();
    set.add(
        &parser
            .parse("t", template)
            .map_err(|error| error.to_string())?,
    );
    let mut host = Seeded::new("seed", 0);
    let options = Options {
        range_over_int: true,
        ..Options::default()
    };
    Executor::new(&set, &parser, options, limits, &mut host)
        .execute("t", dot)
        .map_err(|error| error.to_string())
}

fn render(template: &str) -> Result<String, String> {
    render_with(&Limits::default(), template, Value::Nil)
}

#[track_caller]
fn fails_with(result: Result<String, String>, expected: &str) {
    let error = result.expect_err("the template must be stopped");
    assert!(
        error.contains(expected),
        "{}",
        &error[..error.len().min(400)]
    );
}

#[test]
fn a_template_that_calls_itself_is_stopped() {
    let text = "{{ define \"r\" }}{{ template \"r\" . }}{{ end }}{{ template \"r\" . }}";
    fails_with(render(text), "exceeded maximum template depth (100000)");
}

#[test]
fn a_template_that_includes_itself_is_stopped_as_in_helm() {
    let text = "{{ define \"r\" }}{{ include \"r\" . }}{{ end }}{{ include \"r\" . }}";
    fails_with(
        render(text),
        "rendering template has a nested reference name: r: unable to execute template",
    );
}

#[test]
fn a_text_that_evaluates_itself_is_stopped() {
    let limits = Limits {
        template_depth: 1000,
        ..Limits::default()
    };
    let text = "{{ tpl . . }}";
    fails_with(
        render_with(&limits, text, Value::str(text)),
        "exceeded maximum template depth (1000)",
    );
}

#[test]
fn deep_nesting_of_a_text_is_refused() {
    fails_with(render(&"{{ if 1 }}".repeat(100_000)), "parse_depth");
    fails_with(
        render(&format!("{{{{ {} }}}}", "(".repeat(100_000))),
        "parse_depth",
    );
    fails_with(
        render(&"{{ block \"a\" . }}".repeat(100_000)),
        "parse_depth",
    );
    let chain = format!(
        "{{{{ if 0 }}}}{}{{{{ end }}}}ok",
        "{{ else if 0 }}".repeat(5_000)
    );
    assert_eq!(render(&chain).as_deref(), Ok("ok"));
}

#[test]
fn nesting_up_to_the_limit_fits_a_small_stack() {
    let text = format!("{}x{}", "{{ if 1 }}".repeat(199), "{{ end }}".repeat(199));
    assert_eq!(render(&text).as_deref(), Ok("x"));
    let text = format!(
        "{{{{ {}1{} }}}}",
        "(len (print ".repeat(99),
        "))".repeat(99)
    );
    assert_eq!(render(&text).as_deref(), Ok("1"));
}

#[test]
fn a_map_that_holds_itself_can_be_printed() {
    let map = Value::map([].into());
    if let Value::Map(inner) = &map {
        inner.insert("self", map.clone());
        let output = render_with(&Limits::default(), "{{ . }}", map.clone()).expect("it prints");
        assert!(output.starts_with("map[self:map[self:"));
        inner.borrow_mut().clear();
    }
}

#[test]
fn values_nested_without_end_are_freed_without_recursion() {
    let mut list = Value::Nil;
    for _ in 0..200_000 {
        list = Value::list(vec![list]);
    }
    drop(list);
    let mut map = Value::Nil;
    for _ in 0..200_000 {
        map = Value::map([("a".into(), map)].into());
    }
    drop(map);
}

#[test]
fn an_error_a_thousand_includes_deep_is_told_whole() {
    let text = "{{ define \"r\" }}{{ if eq . 900 }}{{ fail \"deep\" }}{{ end }}{{ include \"r\" (len (print (printf \"%0*d\" . 0) \"x\")) }}{{ end }}{{ include \"r\" 1 }}";
    let error = render(text).expect_err("it fails");
    assert!(error.ends_with("error calling fail: deep"));
    assert!(error.matches("error calling include").count() > 800);
}

#[test]
fn a_parsed_text_is_executed_by_many_threads() {
    let parser = TextParser::new(Arc::new(helm_functions()), 200);
    let mut set = TemplateSet::default();
    let text = "{{ define \"d\" }}<{{ . }}>{{ end }}{{ range . }}{{ include \"d\" . }}{{ end }}";
    set.add(&parser.parse("t", text).expect("it is a template"));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let limits = Limits::default();
                let mut host = Seeded::new("seed", 0);
                let dot = Value::List(Rc::clone(
                    Value::strings(["a", "b"]).as_list().expect("a list"),
                ));
                let output = Executor::new(&set, &parser, Options::default(), &limits, &mut host)
                    .execute("t", dot);
                assert_eq!(output.expect("it renders"), "<a><b>");
            });
        }
    });
}
