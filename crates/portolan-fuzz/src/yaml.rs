//! YAML in both dialects.

use portolan_yaml::{
    Dialect, outline, parse_bytes, parse_one, to_json, write_kustomize, write_v2, write_v3_pretty,
};

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "yaml-helm",
        about: "YAML as Helm reads it: what is printed reads and prints the same",
        run: helm,
        seeds,
    },
    Target {
        name: "yaml-kustomize",
        about: "YAML as kustomize reads it: what is printed reads and prints the same",
        run: kustomize,
        seeds,
    },
];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "a: 1\nb: [x, 'y', \"z\\u2028\"]\nc: {d: ~, e: 0o17, f: 1e400}\n",
        "a: |+\n  one\n\n  two\n\nb: >-\n  folded\n   more\n  text\n",
        "a: &a [1, 2]\nb: *a\nc: &m {x: 1}\nd: {<<: *m, y: 2}\n",
        "# head\na: # line\n  - b # item\n  # foot\n\n---\n%YAML 1.2\n---\n!!binary aGk=: !!str 1\n...\n",
        "? [complex, key]\n: ? a\n  : b\n- \"\\x41\\\n  wrapped\"\n",
        "a: &a [*b]\nb: &b [&c {<<: [*a, *c]}]\n",
        "\u{feff}on: yes\nt: 2001-12-14t21:59:43.10-05:00\nn: -0x1F\nf: .inf\ng: 1_000\n",
        "x: &x [&y [&z [1,1,1],*z,*z],*y,*y]\n[*x,*x,*x]: \"\"\n",
    ])
}

fn helm(bytes: &[u8]) -> bool {
    let Ok(nodes) = parse_bytes(bytes, Dialect::Helm) else {
        return false;
    };
    for node in &nodes {
        let _ = (to_json(node), write_v3_pretty(node));
        // Go prints a key `<<` without quotes, which makes a merge of it when it is read again.
        if let Ok(printed) = write_v2(node)
            && !printed.contains("<<")
        {
            let read = parse_one(printed.as_str(), Dialect::Helm).expect("reads its own text");
            assert_eq!(write_v2(&read).expect("prints again"), printed);
        }
    }
    true
}

fn kustomize(bytes: &[u8]) -> bool {
    let _ = outline(bytes);
    let Ok(nodes) = parse_bytes(bytes, Dialect::Kustomize) else {
        return false;
    };
    for node in &nodes {
        let Ok(printed) = write_kustomize(node) else {
            continue;
        };
        // Go prints a key `<<` without quotes, which makes a merge of it when it is read again.
        if printed.contains("<<") {
            continue;
        }
        // The printed text is for Helm's half of the world: it is read with the old rules.
        let read = parse_one(printed.as_str(), Dialect::Helm).expect("reads its own text");
        assert_eq!(write_kustomize(&read).expect("prints again"), printed);
    }
    true
}
