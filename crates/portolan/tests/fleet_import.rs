//! `portolan fleet nodes`: the list, and an inventory of Ansible.

mod fleet_bed;
mod portolan;

use std::fs;

use crate::fleet_bed::Fleet;
use crate::portolan::portolan_with_input;

const INVENTORY: &str = "\
[web]
node-1 port=80
node-9 ansible_host=10.0.0.9 ansible_user=deploy ansible_port=2222 ansible_password=planted-secret

[all:vars]
region = north
";

#[test]
fn an_inventory_is_printed_without_a_server_and_what_has_no_counterpart_is_named() {
    let printed = portolan_with_input(&["fleet", "nodes", "import", "-", "-n", "shop"], INVENTORY);
    assert_eq!(printed.code, 0, "{printed}");
    let documents: Vec<&str> = printed.stdout.split("---\n").collect();
    assert_eq!(documents.len(), 3, "{printed}");
    for (document, parts) in documents.iter().zip([
        ["kind: NodeGroup", "- node-1\n", "- node-9\n"],
        [
            "name: inventory-all\n",
            "namespace: shop\n",
            "region: north\n",
        ],
        [
            "name: inventory-node-node-1\n",
            "node: node-1\n",
            "port: 80\n",
        ],
    ]) {
        for part in parts {
            assert!(document.contains(part), "{part}: {document}");
        }
    }
    let remark = "`ansible_password` of host `node-9` has no counterpart";
    assert!(printed.stderr.contains(remark), "{printed}");
    assert!(!printed.to_string().contains("planted"), "{printed}");
    let wrong = portolan_with_input(&["fleet", "nodes", "import", "-"], "[web:varz]\n");
    assert_eq!(wrong.code, 2, "{wrong}");
    assert!(wrong.stderr.contains("did you mean `vars`?"), "{wrong}");
}

#[test]
fn an_inventory_is_applied_and_hosts_that_are_no_nodes_are_named() {
    let fleet = Fleet::start();
    let listed = fleet.fleet(&["nodes"]);
    assert_eq!(listed.code, 0, "{listed}");
    assert_eq!(listed.stdout.matches("ready").count(), 3, "{listed}");
    let selected = fleet.fleet(&["nodes", "-l", "fleet=other", "-o", "name"]);
    assert_eq!(
        (selected.code, selected.stdout.as_str()),
        (0, ""),
        "{selected}"
    );
    let file = fleet.write("inventory.ini", INVENTORY);
    let applied = fleet.fleet(&["nodes", "import", &file, "--apply"]);
    assert_eq!(applied.code, 0, "{applied}");
    let expected = "nodegroup/web applied\nvariable/inventory-all applied\nvariable/inventory-node-node-1 applied\n";
    assert_eq!(applied.stdout, expected, "{applied}");
    let bootstrap = "portolan fleet bootstrap deploy@10.0.0.9 --name node-9 --port 2222";
    assert!(applied.stderr.contains(bootstrap), "{applied}");
    assert!(!applied.stderr.contains("--name node-1"), "{applied}");
    // A book sees the values, and the group is one that runs can target.
    let grant = "apiVersion: v1alpha\nkind: NodeGrant\nmetadata: {name: web}\nspec: {groups: [web], namespaces: [default]}\n";
    let grant = fleet.write("grant.yaml", grant);
    assert_eq!(fleet.fleet(&["apply", "-f", &grant]).code, 0);
    let book = "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: web}\nspec:\n  target: {group: web}\n  vars: {port: 0, region: ''}\n  steps:\n  - {name: file, file: {path: /srv/values, content: '{{ vars.region }} {{ vars.port }}'}}\n";
    let book = fleet.write("book.yaml", book);
    let run = fleet.fleet(&["run", "-f", &book]);
    assert_eq!(run.code, 0, "{run}");
    let values = fs::read_to_string(fleet.root("node-1").join("srv/values"));
    assert_eq!(values.expect("written"), "north 80");
}

/// A play becomes a book that lint takes; what has no counterpart is told with its line, and one of several plays is chosen.
#[test]
fn a_playbook_becomes_a_book_on_standard_output() {
    let play = "- hosts: web\n  tasks:\n  - name: motd\n    ansible.builtin.copy: {dest: /etc/motd, content: \"hello\\n\"}\n";
    let converted = portolan_with_input(&["fleet", "convert", "-"], play);
    assert_eq!(converted.code, 0, "{converted}");
    assert!(converted.stdout.contains("kind: TaskBook"), "{converted}");
    assert!(converted.stdout.contains("path: /etc/motd"), "{converted}");
    let linted = portolan_with_input(&["fleet", "lint", "-"], &converted.stdout);
    assert_eq!(linted.code, 0, "{linted}");
    let unknown = format!("{play}  - name: other\n    community.other.thing: {{a: 1}}\n");
    let converted = portolan_with_input(&["fleet", "convert", "-"], &unknown);
    assert_eq!(converted.code, 1, "{converted}");
    assert!(
        converted.stderr.contains("-:5: ") && converted.stderr.contains("1 note to look at"),
        "{converted}"
    );
    let two = format!("{play}{}", play.replace("motd", "issue"));
    let answer = portolan_with_input(&["fleet", "convert", "-"], &two);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer.stderr.contains("choose one with `--play`"),
        "{answer}"
    );
    let second = portolan_with_input(&["fleet", "convert", "-", "--play", "2"], &two);
    assert!(second.stdout.contains("path: /etc/issue"), "{second}");
}
