//! TaskBooks, their templates, and the step journal.

use std::sync::Arc;

use camino::Utf8Path;
use portolan_fleet::{
    AnsibleInventory, BookSource, JournalEntry, MemoryFiles, StepJournal, StepKey, StepState,
    TextRenderer, compile, convert_playbook, read_journal, read_variable_file, scope_of,
};
use serde_json::{Map, json};

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "fleet-book",
        about: "a TaskBook, compiled",
        run: book,
        seeds: || {
            texts(&[
                "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: a}\nspec:\n  inputs: {v: {type: int, default: 1}}\n  vars: {p: 80}\n  compute: {q: vars.p + inputs.v}\n  steps:\n  - {name: x, command: {run: [echo, '{{ vars.q }}']}, when: \"facts.os.family == 'debian'\", notify: h}\n  - name: b\n    forEach: [1, 2]\n    steps: [{name: y, wait: {path: '/{{ item }}'}}]\n    rescue: [{name: z, command: {shell: 'echo {{ error.message }}'}}]\n  - {name: f, flush: handlers}\n  - {name: w, barrier: run}\n  handlers: [{name: h, command: {shell: 'true'}}]\n",
                "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: a}\nspec:\n  compute: {a: vars.b, b: vars.a}\n  steps: [{name: x, include: {path: self.yaml}}]\n",
                "kind: TaskBook\nspec: {steps: [{steps: [{steps: [{}]}]}], handlers: [1], defaults: {when: '((((('}}\n",
            ])
        },
    },
    Target {
        name: "fleet-inventory",
        about: "an inventory of Ansible, and what it becomes",
        run: inventory,
        seeds: || {
            texts(&[
                "a ansible_host=10.0.0.1 x='1 2'\n[web]\nw[01:03:1].lan:22 l=[1,(2,)]\n[top:children]\nweb\n[top:vars]\nd = {'a': None} # c\nt={{ a }}\n[web:vars]\nd=1\n",
                "[a:children]\nb\n[b:children]\na\n",
                "h[1:9][a:z][0:9][0:9]\n[x:vars]\ny=[[[[[[[[[[[[[[[[[[[[1]\n",
            ])
        },
    },
    Target {
        name: "fleet-journal",
        about: "the step journal of a node",
        run: journal,
        seeds: || vec![written_journal(), vec![b'P'; 64]],
    },
    Target {
        name: "fleet-playbook",
        about: "a playbook of Ansible, converted",
        run: |bytes| {
            let text = std::str::from_utf8(bytes);
            text.is_ok_and(|text| convert_playbook(text, "fuzz").is_ok())
        },
        seeds: || {
            texts(&[
                "- hosts: web\n  vars: {a: '{{ b }}', b: 1}\n  tasks:\n  - {name: x, apt: 'name=a state=latest', when: a is changed or not b.c, loop: [1], register: a}\n  - block: [{command: 'a \"b c\" {{ d }}'}]\n    rescue: [{debug: {var: a}}]\n  handlers: [{service: {name: a, state: started}}]\n",
                "- hosts: 'a:!b'\n  serial: [1, '5%']\n  tasks: [{block: [{block: [{block: []}]}]}, {copy: {content: '{{'}}, 1]\n",
                "- tasks: [{cron: {name: '', job: '%'}}, {assert: {that: ['a in [1, \\']}}, {when: '| x', meta: ''}]\n",
            ])
        },
    },
    Target {
        name: "fleet-variable-file",
        about: "a file of variables",
        run: |bytes| match read_variable_file("fuzz.yaml", bytes) {
            Ok(variables) => {
                assert!(
                    variables.iter().all(|one| one.line > 0),
                    "a line is missing"
                );
                true
            }
            Err(why) => {
                assert!(why.starts_with("fuzz.yaml"), "{why}");
                false
            }
        },
        seeds: || {
            texts(&[
                "# all\nport: 8080\nlimits: {files: 10, more: [1, null, ~]}\n",
                "a: &x [1]\nb: *x\n---\nc: 2\n",
                "apiVersion: v1alpha\nkind: Variable\n? [a]\n: 1\n",
            ])
        },
    },
    Target {
        name: "fleet-template",
        about: "a text of a TaskBook, rendered",
        run: template,
        seeds: || {
            texts(&[
                "{{ inputs.n }}",
                "a {% for n in range(inputs.n) %}{{ n * 2 }}{% endfor %}\n",
                "{% macro m(a) %}{{ m(a) }}{% endmacro %}{{ m(1) }}",
                "{{ 'x' * 999999999 }}",
                "{% set a = [1] %}{{ a + a | join(',') | upper }}",
            ])
        },
    },
];

/// Whatever a book says, it compiles or every fault has a place in a file.
fn book(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let source = BookSource::new(
        "book.yaml",
        text,
        Arc::new(MemoryFiles::of([("self.yaml", text)])),
    );
    match compile(&source) {
        Ok(_) => true,
        Err(faults) => {
            assert!(!faults.is_empty(), "refused without a reason");
            assert!(faults.iter().all(|fault| !fault.message.is_empty()));
            false
        }
    }
}

/// An inventory is refused with reasons, or every group and variable that it becomes is one that a server takes.
fn inventory(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    match AnsibleInventory::read("inventory.ini", text) {
        Err(faults) => {
            assert!(!faults.is_empty(), "refused without a reason");
            false
        }
        Ok(inventory) => inventory.import("default").is_ok(),
    }
}

/// The journal of a run that began a step and ended it.
fn written_journal() -> Vec<u8> {
    let key = StepKey {
        step: "config".to_owned(),
        item: String::new(),
        attempt: 0,
    };
    let entries = [
        JournalEntry::Started {
            key: key.clone(),
            boot: None,
        },
        JournalEntry::Finished {
            key,
            state: StepState::Changed,
            result: json!({"changed": true}),
            notified: vec!["restart".to_owned()],
        },
    ];
    let began = JournalEntry::Received {
        run: "r1".to_owned(),
        book: "web".to_owned(),
        digest: "d".to_owned(),
        owed: Vec::new(),
    };
    let directory = tempfile::tempdir().expect("a directory");
    let path = Utf8Path::from_path(directory.path()).expect("a plain name");
    let path = path.join("journal");
    let (mut journal, _) = StepJournal::open(&path).expect("a journal");
    journal.begin(began).expect("begun");
    for entry in &entries {
        journal.append(entry).expect("written");
    }
    std::fs::read(path).expect("a journal")
}

/// A prefix of a journal says nothing that the whole does not say.
fn journal(bytes: &[u8]) -> bool {
    match read_journal(bytes) {
        Ok(read) => {
            assert!(read.state.torn_bytes <= bytes.len());
            read.state.run.is_some()
        }
        Err(offset) => {
            assert!(offset < bytes.len());
            false
        }
    }
}

fn template(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let renderer = TextRenderer::new(Arc::new(MemoryFiles::default()));
    let mut values = Map::new();
    values.insert("inputs".to_owned(), json!({"n": 3, "list": [1, 2]}));
    renderer.text(text, &scope_of(&values)).is_ok()
}
