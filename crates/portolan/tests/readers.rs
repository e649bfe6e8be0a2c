//! What CI systems read – `JUnit` and SARIF – read by programs that others wrote.

mod portolan;

use std::io::Write;
use std::process::{Command, Stdio};

use portolan::portolan_in;
use portolan::repository::{kustomization, repository};

/// Reads a report with Python's `junitparser`: suites and cases with their results.
const JUNIT: &str = "
import sys, junitparser
report = junitparser.JUnitXml.fromstring(sys.stdin.buffer.read())
for suite in report:
    print(suite.name, suite.tests, suite.failures, len(list(suite)))
    for case in suite:
        for result in case.result:
            print(type(result).__name__, case.classname, '|', case.name, '|', result.type)
";

/// Reads a log with Microsoft's `sarif-tools`: one line a result.
const SARIF: &str = "
import sys, tempfile
for drawn in ('matplotlib', 'docx'):
    sys.modules[drawn] = None
import sarif.loader
with tempfile.NamedTemporaryFile(suffix='.sarif') as file:
    file.write(sys.stdin.buffer.read())
    file.flush()
    log = sarif.loader.load_sarif_file(file.name)
    print(log.get_distinct_tool_names())
    for result in log.get_records():
        print(result['Severity'], result['Code'], result['Location'], result['Line'], '|', result['Description'])
";

/// Checks a report against the schema that Jenkins and pytest go by.
const JUNIT_SCHEMA: &str = "
import os, sys
from lxml import etree
schema = etree.XMLSchema(etree.parse(os.path.join(os.environ['PORTOLAN_SCHEMAS'], 'junit.xsd')))
schema.assertValid(etree.fromstring(sys.stdin.buffer.read()))
";

/// Checks a log against the schema of the standard, formats included.
const SARIF_SCHEMA: &str = "
import json, os, sys, jsonschema
schema = json.load(open(os.path.join(os.environ['PORTOLAN_SCHEMAS'], 'sarif.json')))
checks = jsonschema.Draft7Validator(schema, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)
found = [f'{error.json_path}: {error.message}' for error in checks.iter_errors(json.load(sys.stdin))]
sys.exit('\\n'.join(found) or None)
";

/// Fails unless a text is as its schema wants it; where the schema is not installed, CI fails.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn check(module: &str, program: &str, text: &str) {
    if std::env::var_os("PORTOLAN_SCHEMAS").is_some() {
        read_by(module, program, text);
    } else {
        let must = std::env::var_os("CI").is_some();
        assert!(!must, "`PORTOLAN_SCHEMAS` is not set");
        eprintln!("skipped: `PORTOLAN_SCHEMAS` does not say where the schemas are");
    }
}

/// What a Python program prints about a text; nothing where its module is not installed, which CI does not allow.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn read_by(module: &str, program: &str, text: &str) -> Option<String> {
    let python = |program: &str| {
        let mut command = Command::new("python3");
        command
            .args(["-c", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let probe = python(&format!("import {module}")).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        let must = std::env::var_os("CI").is_some();
        assert!(!must, "the Python module `{module}` is not installed");
        eprintln!("skipped: the Python module `{module}` is not installed");
        return None;
    }
    let mut child = python(program).spawn().expect("it was there a moment ago");
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(text.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it was started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{text}");
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

/// A report on a repository with a mistake, and with names that try the formats.
fn report(form: &str) -> String {
    let service = "\
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: apps
  annotations: {note: \"<b> & 'quotes' ]]> \\u0007\"}
spec:
  ports:
  - port: \"<eighty> & more\"
";
    let apps = kustomization("apps", "./apps & more").replace("spec: {", "spec: {interval: 10m, ");
    let directory = repository(&[
        ("clusters/test/apps.yaml", &apps),
        ("apps & more/app.yaml", service),
    ]);
    let directory = directory.path().to_str().expect("a path in UTF-8");
    let args = ["test", "--path", "clusters/test", "-o", form];
    let answer = portolan_in(directory, &args);
    assert_eq!(answer.code, 1, "{answer}");
    answer.stdout
}

#[test]
fn junit_is_read_with_every_case_and_its_failure() {
    let Some(read) = read_by("junitparser", JUNIT, &report("junit")) else {
        return;
    };
    insta::assert_snapshot!(read);
}

#[test]
fn junit_is_as_its_schema_wants_it() {
    check("lxml.etree", JUNIT_SCHEMA, &report("junit"));
}

#[test]
fn sarif_is_as_its_schema_wants_it() {
    check("jsonschema", SARIF_SCHEMA, &report("sarif"));
    let removed = repository(&[(
        "job.yaml",
        "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: nightly}\n",
    )]);
    let directory = removed.path().to_str().expect("a path in UTF-8");
    let audited = portolan_in(directory, &["audit", "files", ".", "-o", "sarif"]);
    assert!(audited.stdout.contains("CronJob"), "{audited}");
    check("jsonschema", SARIF_SCHEMA, &audited.stdout);
}

#[test]
fn sarif_is_read_with_every_result_at_its_line() {
    let Some(read) = read_by("sarif.loader", SARIF, &report("sarif")) else {
        return;
    };
    insta::assert_snapshot!(read);
}
