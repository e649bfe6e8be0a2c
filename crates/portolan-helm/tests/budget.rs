//! Charts that were written to run for ever, and what somebody who waits can do about it.

use portolan_budget::{Budget, Exceeded, Limits, Stop};
use portolan_helm::{
    Chart, ChartFile, Error, OutputOptions, Package, Profile, Release, TemplateInput, template,
};

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";

fn chart(files: &[(&str, &str)]) -> Chart {
    let file = |(name, text): &(&str, &str)| ChartFile::new((*name).to_owned(), text.as_bytes());
    let mut all = vec![file(&("Chart.yaml", CHART))];
    all.retain(|_| files.iter().all(|(name, _)| *name != "Chart.yaml"));
    all.extend(files.iter().map(file));
    Chart::new(Package::from_files(all).expect("it is a chart"))
}

fn render(chart: &Chart, profile: Profile, budget: Budget) -> Result<String, Error> {
    let input = TemplateInput {
        profile,
        budget,
        ..TemplateInput::new(Release::new("x", "default"))
    };
    let rendered = template(chart, &input)?;
    Ok(rendered
        .to_text(&OutputOptions::default())
        .expect("all templates are shown"))
}

/// Alternatives that lead to each other double with every step.
#[test]
fn a_schema_that_doubles_is_stopped() {
    let schemas = [
        r##"{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}}}"##.to_owned(),
        // Without a circle, so that nobody can refuse it for one.
        {
            let level = |n: usize| {
                let below = n + 1;
                format!(r##""d{n}":{{"allOf":[{{"$ref":"#/definitions/d{below}"}},{{"$ref":"#/definitions/d{below}"}}]}}"##)
            };
            let levels: Vec<_> = (0..60).map(level).collect();
            format!(r##"{{"$schema":"http://json-schema.org/draft-07/schema#","allOf":[{{"$ref":"#/definitions/d0"}}],"definitions":{{{},"d60":{{}}}}}}"##, levels.join(","))
        },
    ];
    let limits = Limits {
        steps: 20_000_000,
        ..Limits::default()
    };
    for profile in [Profile::Helm3, Profile::Helm4] {
        for (index, schema) in schemas.iter().enumerate() {
            let chart = chart(&[("values.schema.json", schema)]);
            let result = render(&chart, profile, Budget::new(limits, Stop::default()));
            let error = result.expect_err("the schema never ends");
            // Helm 4's validator sees a circle by itself.
            if index == 0 && profile == Profile::Helm4 {
                continue;
            }
            assert_eq!(
                error.exceeded(),
                Some(Exceeded::Steps(20_000_000)),
                "{error}"
            );
            assert_eq!(
                error.to_string(),
                "cannot check the values against `web/values.schema.json`: needs more than 20000000 steps; \
                 `--limit steps=N` raises the limit"
            );
        }
    }
}

#[test]
fn a_busy_chart_can_be_stopped() {
    let loops = "{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}";
    let chart = chart(&[("templates/a.yaml", loops)]);
    let stop = Stop::default();
    let budget = Budget::new(Limits::default(), stop.clone());
    let result = std::thread::scope(|scope| {
        let busy = scope.spawn(|| render(&chart, Profile::Helm3, budget).map_err(|e| e.exceeded()));
        stop.set();
        busy.join().expect("the render ends")
    });
    assert_eq!(result, Err(Some(Exceeded::Stopped)));
}

#[test]
fn the_place_and_the_option_are_told() {
    let text = "a: 1\nb: {{ until 60000000 }}\n";
    let chart = chart(&[("templates/a.yaml", text)]);
    let error = render(&chart, Profile::Helm3, Budget::default()).expect_err("it is too large");
    assert_eq!(
        error.to_string(),
        "template: web/templates/a.yaml:2:6: executing \"web/templates/a.yaml\" at <until 60000000>: \
         error calling until: makes a value of more than 67108864 bytes; `--limit memory=BYTES` raises the limit"
    );
}

/// What `Chart.yaml` does not have was never made in Go. Compared with Helm 3.17.3.
#[test]
fn lists_that_a_chart_does_not_have_are_null() {
    let text = "a: {{ toYaml .Chart.Keywords }} {{ toYaml .Chart.Sources }} {{ toYaml .Chart.Maintainers }} \
        {{ toYaml .Chart.Annotations }} {{ toYaml .Chart.Dependencies }}\n\
        b: '{{ .Chart.Keywords }} {{ .Chart.Annotations }} {{ kindOf .Chart.Annotations }} \
        {{ printf \"%#v\" .Chart.Annotations }} {{ toJson .Chart }}'\n\
        c: '{{ fromJson `null` | toJson }} {{ fromJson `null` | kindOf }} {{ fromJson `null` | len }} {{ fromJson `null` }} \
        {{ printf \"%#v\" (fromJson `null`) }} {{ fromJson `null` | deepCopy | toJson }} \
        {{ deepEqual (fromJson `null`) (dict) }} {{ fromJson `null` | default \"d\" }} \
        {{ merge (fromJson `null`) (dict \"a\" 1) | toJson }} {{ pick (fromJson `null`) \"a\" | toJson }} \
        {{ unset (fromJson `null`) \"a\" | toJson }} {{ eq (fromJson `null`) nil }} {{ fromYaml `null` | toJson }}'\n\
        d: {{ unixEpoch (toDate \"2006-01-02 15:04:05 -0700 MST\" \"1999-12-31 23:59:58 +0200 EET\") }}\n\
        e: {{ toDate \"2006-01-02 15:04:05 -0700 MST\" \"1999-12-31 23:59:58 +0200 EET\" }}\n\
        f: {{ toDate \"2006-01-02 15:04:05 -0700 MST\" \"1999-12-31 23:59:58 +0200 UTC\" }}\n";
    let chart = chart(&[("templates/a.yaml", text)]);
    let output = render(&chart, Profile::Helm3, Budget::default()).expect("it renders");
    assert_eq!(
        output,
        "---\n# Source: web/templates/a.yaml\n\
         a: null null null null null\n\
         b: '[] map[] map map[string]string(nil) {\"name\":\"web\",\"version\":\"1.0.0\",\"apiVersion\":\"v2\",\"IsRoot\":true}'\n\
         c: 'null map 0 map[] map[string]interface {}(nil) null false d {\"a\":1} {} null true {}'\n\
         d: 946677598\n\
         e: 1999-12-31 23:59:58 +0200 EET\n\
         f: 1999-12-31 23:59:58 +0000 UTC\n"
    );
}

/// Helm handles the list of imports once, for whichever alias comes first. Compared with Helm 3.17.3.
#[test]
fn only_the_first_of_two_aliases_imports_values() {
    let chart = chart(&[
        (
            "Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n\
             - {name: sub, version: 0.1.0, alias: one}\n- {name: sub, version: 0.1.0, alias: two}\n",
        ),
        (
            "charts/sub/Chart.yaml",
            "apiVersion: v2\nname: sub\nversion: 0.1.0\ndependencies:\n- name: leaf\n  version: 0.1.0\n  \
             import-values: [{child: data, parent: got}]\n",
        ),
        (
            "charts/sub/templates/a.yaml",
            "v: {{ .Values.got | toJson }}\nd: {{ .Chart.Dependencies | toJson }}\n",
        ),
        (
            "charts/sub/charts/leaf/Chart.yaml",
            "apiVersion: v2\nname: leaf\nversion: 0.1.0\n",
        ),
        ("charts/sub/charts/leaf/values.yaml", "data: {a: 42}\n"),
    ]);
    let output = render(&chart, Profile::Helm3, Budget::default()).expect("it renders");
    let listed = r#"d: [{"name":"leaf","version":"0.1.0","repository":"","enabled":true}]"#;
    assert_eq!(
        output,
        format!(
            "---\n# Source: web/charts/one/templates/a.yaml\nv: {{\"a\":42}}\n{listed}\n\
             ---\n# Source: web/charts/two/templates/a.yaml\nv: null\n{listed}\n"
        )
    );
}
