//! Our side of the YAML comparison with Go, run by `bench/yaml.sh`.
//!
//! ```text
//! yaml_bench generate BYTES           prints manifests of about that size
//! yaml_bench bench WHAT FILE [COUNT]  times helm, json, kustomize or write; prints the best seconds and the peak memory
//! ```

#![expect(
    clippy::print_stdout,
    reason = "a program that prints its measurements"
)]

use std::fmt::Write;
use std::fs;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use portolan_yaml::{Dialect, Node, Text, parse, parse_one, to_json, write_v2};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["generate", bytes] => print!("{}", manifests(bytes.parse()?)),
        ["bench", what, file] => bench(what, file, 1)?,
        ["bench", what, file, count] => bench(what, file, count.parse()?)?,
        _ => return Err("usage: generate BYTES | bench WHAT FILE [COUNT]".into()),
    }
    Ok(())
}

fn bench(what: &str, file: &str, count: usize) -> Result<(), Box<dyn std::error::Error>> {
    let (parts, whole) = match what {
        "kustomize" => (Vec::new(), Text::from(fs::read_to_string(file)?)),
        _ => (documents(file)?, Text::default()),
    };
    let read = || -> Result<Vec<Node>, portolan_yaml::Errors> {
        parts
            .iter()
            .map(|part| parse_one(part.clone(), Dialect::Helm))
            .collect()
    };
    let nodes = if what == "write" { read()? } else { Vec::new() };
    let mut best = Duration::MAX;
    for _ in 0..count {
        let start = Instant::now();
        let made = match what {
            "helm" => read()?,
            "json" => convert(&parts)?,
            "kustomize" => parse(whole.clone(), Dialect::Kustomize)?,
            "write" => write(&nodes)?,
            _ => return Err("WHAT is helm, json, kustomize or write".into()),
        };
        best = best.min(start.elapsed());
        // What was made is given back after the clock stopped, as Go does it.
        drop(black_box(made));
    }
    println!("{:.4} {}", best.as_secs_f64(), peak_memory_kib());
    Ok(())
}

/// The documents of a file, split at lines that are exactly `---`.
fn documents(file: &str) -> std::io::Result<Vec<Text>> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut lines = BufReader::new(fs::File::open(file)?);
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        if line == "---\n" {
            parts.push(Text::from(part.as_str()));
            part.clear();
        } else {
            part.push_str(&line);
        }
        line.clear();
    }
    parts.push(Text::from(part));
    Ok(parts)
}

fn convert(parts: &[Text]) -> Result<Vec<Node>, Box<dyn std::error::Error>> {
    for part in parts {
        black_box(to_json(&parse_one(part.clone(), Dialect::Helm)?)?);
    }
    Ok(Vec::new())
}

fn write(nodes: &[Node]) -> Result<Vec<Node>, portolan_yaml::WriteError> {
    for node in nodes {
        black_box(write_v2(node)?);
    }
    Ok(Vec::new())
}

/// The most memory the process had, as the kernel counts it.
fn peak_memory_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    words.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Deployments and config maps, one after the other.
fn manifests(bytes: usize) -> String {
    let mut out = String::new();
    let mut number = 0;
    while out.len() < bytes {
        if number > 0 {
            out.push_str("---\n");
        }
        let _ = if number % 4 == 3 {
            write!(
                out,
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-{number}\n  namespace: team-{}\ndata:\n  \
                 enabled: \"true\"\n  level: 'info'\n  script.sh: |\n    #!/bin/sh\n    set -eu\n    echo \"starting \
                 {number}\"\n    exec /app --port=8080 --verbose\n  motd: >-\n    a longer text that is\n    folded \
                 over two lines\n",
                number % 7
            )
        } else {
            write!(
                out,
                "# Source: chart/templates/deployment-{number}.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  \
                 name: app-{number}\n  namespace: team-{}\n  labels:\n    app.kubernetes.io/name: app-{number}\n    \
                 app.kubernetes.io/instance: \"release-{number}\"\n  annotations:\n    checksum/config: \
                 8f4e1d2c3b4a59687f6e5d4c3b2a1908\n    description: 'A service that answers, slowly, to everybody'\nspec:\n  \
                 replicas: {}\n  selector:\n    matchLabels: {{app.kubernetes.io/name: app-{number}}}\n  template:\n    \
                 metadata:\n      labels:\n        app.kubernetes.io/name: app-{number}\n    spec:\n      containers:\n      \
                 - name: main\n        image: registry.example.com/team/app:{}.{}.0\n        args: [\"--port\", \"8080\", \
                 --verbose]\n        env:\n        - name: LEVEL\n          value: info\n        - name: RATE\n          \
                 value: \"0.5\"\n        resources:\n          limits: {{cpu: 500m, memory: 256Mi}}\n          \
                 requests:\n            cpu: 100m\n            memory: 128Mi\n        ports:\n        - containerPort: \
                 8080\n          name: http\n        readinessProbe:\n          httpGet:\n            path: /healthz\n            \
                 port: http\n          periodSeconds: 10\n",
                number % 7,
                number % 3 + 1,
                number % 5,
                number % 11
            )
        };
        number += 1;
    }
    out
}
