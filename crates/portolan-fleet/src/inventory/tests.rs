//! Inventories as people write them, and hostile ones.

use std::fmt::Write as _;

use serde_json::json;

use super::*;

const INVENTORY: &str = "\
mail ansible_host=10.0.0.9   # ungrouped

[web]
web[01:03].lan http_port=80
web03.lan:2222 ansible_user=deploy

[db_servers]
db-a
db-b role='primary one'

[prod:children]
web
db_servers

[prod:vars]
env = prod
http_port = 8080
retries=[1, 2]

[db_servers:vars]
ansible_become_password = hidden
path = {{ base }}/data

[all:vars]
dns = 10.0.0.53
";

fn read(text: &str) -> AnsibleInventory {
    AnsibleInventory::read("inventory.ini", text).expect("an inventory")
}

fn object<'a>(imported: &'a ImportedInventory, kind: &str, name: &str) -> &'a Value {
    let found = imported
        .objects
        .iter()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("{kind} {name}: {:#?}", imported.objects))
}

#[test]
fn groups_become_node_groups_with_the_hosts_of_their_children() {
    let imported = read(INVENTORY).import("shop").expect("imported");
    let nodes = |group: &str| object(&imported, "NodeGroup", group)["spec"]["nodes"].clone();
    assert_eq!(nodes("web"), json!(["web01.lan", "web02.lan", "web03.lan"]));
    assert_eq!(nodes("db-servers"), json!(["db-a", "db-b"]));
    assert_eq!(
        nodes("prod"),
        json!(["db-a", "db-b", "web01.lan", "web02.lan", "web03.lan"])
    );
    assert_eq!(imported.nodes.len(), 6);
}

#[test]
fn variables_keep_their_scope_and_their_type() {
    let imported = read(INVENTORY).import("shop").expect("imported");
    let all = object(&imported, "Variable", "inventory-all");
    assert_eq!(all["spec"], json!({"values": {"dns": "10.0.0.53"}}));
    assert_eq!(all["metadata"]["namespace"], "shop");
    let prod = object(&imported, "Variable", "inventory-group-prod");
    let values = json!({"env": "prod", "http_port": 8080, "retries": [1, 2]});
    assert_eq!(
        prod["spec"],
        json!({"for": {"groups": ["prod"]}, "values": values})
    );
    let host = object(&imported, "Variable", "inventory-node-web01.lan");
    assert_eq!(
        host["spec"],
        json!({"for": {"node": "web01.lan"}, "values": {"http_port": 80}})
    );
}

#[test]
fn what_has_no_counterpart_is_named_and_secrets_are_not_shown() {
    let imported = read(INVENTORY).import("shop").expect("imported");
    let remarks = imported.remarks.join("\n");
    for part in [
        "group `db_servers` is called `db-servers` here",
        "`ansible_become_password` of group `db_servers` has no counterpart",
        "`path` of group `db_servers` is a template",
    ] {
        assert!(remarks.contains(part), "{part}: {remarks}");
    }
    let everything = format!("{imported:?}");
    assert!(!everything.contains("hidden"), "{everything}");
}

#[test]
fn hosts_are_expected_as_nodes_and_told_how_they_are_reached() {
    let imported = read(INVENTORY).import("shop").expect("imported");
    let node = |name: &str| {
        imported
            .nodes
            .iter()
            .find(|node| node.name == name)
            .expect("a node")
    };
    assert_eq!(node("mail").destination, "10.0.0.9");
    let third = node("web03.lan");
    assert_eq!(
        (third.destination.as_str(), third.port),
        ("deploy@web03.lan", Some(2222))
    );
}

/// A child stands above its parent in Ansible; here groups must agree, so the hosts get the values.
#[test]
fn groups_that_do_not_agree_give_each_host_its_own_value() {
    let text = "[a]\nx\ny\n[b]\ny\nz\n[top:children]\na\n[top:vars]\nport=1\nzone=t\n[a:vars]\nport=2\n[b:vars]\nport=3\n";
    let imported = read(text).import("default").expect("imported");
    let values = |name: &str| object(&imported, "Variable", name)["spec"]["values"].clone();
    assert_eq!(values("inventory-node-x"), json!({"port": 2}));
    // `a` is below `top`, so it is deeper than `b`.
    assert_eq!(values("inventory-node-y"), json!({"port": 2}));
    assert_eq!(values("inventory-node-z"), json!({"port": 3}));
    assert_eq!(values("inventory-group-top"), json!({"zone": "t"}));
    assert!(
        imported.remarks[0].contains("`port` is set by groups"),
        "{:?}",
        imported.remarks
    );
}

#[test]
fn faults_are_told_all_at_once_with_their_lines() {
    let text = "[web\n[web:childen]\n[web]\nhost port\nweb[1:\n'a\n[x:children]\nweb\nwab\n[y:vars]\na=1\nnothing\n";
    let faults = AnsibleInventory::read("hosts", text).expect_err("faults");
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let expected = [
        "hosts:1:1: `[web` names no host",
        "hosts:2:1: `childen` is no kind of section",
        "hosts:4:1: `port` is not a variable such as port=80",
        "hosts:5:1: `web[1:` names no host",
        "hosts:6:1: a quotation mark is not closed",
        "hosts:9:1: there is no group `wab`",
        "hosts:10:1: there is no group `y`",
        "hosts:12:1: `nothing` is not a variable such as port = 80",
    ];
    assert_eq!(told, expected);
    assert_eq!(faults[1].hint.as_deref(), Some("did you mean `children`?"));
    assert_eq!(faults[5].hint.as_deref(), Some("did you mean `web`?"));
}

#[test]
fn a_group_below_itself_is_refused() {
    let text = "[top:children]\na\n[a:children]\nb\n[b:children]\na\n";
    let faults = AnsibleInventory::read("hosts", text).expect_err("a cycle");
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].message.contains("is a child of itself"),
        "{faults:?}"
    );
}

#[test]
fn two_names_that_become_one_are_refused() {
    let refused = read("web_1\nweb-1\n")
        .import("default")
        .expect_err("the same name");
    assert_eq!(
        refused.to_string(),
        "hosts `web-1` and `web_1` would both be called `web-1`"
    );
}

#[test]
fn an_inventory_is_bounded() {
    let mut many = String::new();
    for number in 0..100_000 {
        let _ = writeln!(many, "[g{number}]\nh[1:5000]");
    }
    let faults = AnsibleInventory::read("hosts", &many).expect_err("too large");
    assert!(
        faults.iter().any(|fault| fault.message.contains("at most")),
        "{faults:?}"
    );
    assert!(AnsibleInventory::read("hosts", "h[1:5001]\n").is_err());
}

/// Files beside an inventory stand above it, as for Ansible; what is encrypted or for nobody is named.
#[test]
fn files_of_variables_beside_an_inventory_are_taken() {
    let mut inventory = read(INVENTORY);
    for (path, text) in [
        ("group_vars/all.yml", "dns: 10.0.0.54\n"),
        (
            "group_vars/prod/ports.yaml",
            "http_port: 9090\nlimits: {files: 10}\n",
        ),
        (
            "group_vars/prod/vault.yml",
            "$ANSIBLE_VAULT;1.1;AES256\n6162\n",
        ),
        (
            "group_vars/web.yml",
            "key: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\n",
        ),
        ("group_vars/gone.yml", "x: 1\n"),
        ("group_vars/db_servers", "- no\n- map\n"),
        ("host_vars/web01.lan", "http_port: 81\n"),
        ("host_vars/web02.lan.yml", "{broken"),
    ] {
        let file = VariableFile::of(path).expect("a file of variables");
        inventory.add_variables(&file, path, text.as_bytes());
    }
    let imported = inventory.import("shop").expect("imported");
    let values = |name: &str| &object(&imported, "Variable", name)["spec"]["values"];
    assert_eq!(values("inventory-all")["dns"], "10.0.0.54");
    assert_eq!(
        values("inventory-group-prod")["limits"],
        json!({"files": 10})
    );
    assert_eq!(values("inventory-node-web01.lan")["http_port"], 81);
    for remark in [
        "`group_vars/prod/vault.yml` is not imported: it is encrypted by Ansible Vault; make a Secret of what it has",
        "`key` of `group_vars/web.yml` is not imported: it is encrypted by Ansible Vault; make a Secret of it",
        "`group_vars/gone.yml` is not imported: the inventory has no such group",
        "`group_vars/db_servers` is not imported: it is not a map of variables",
    ] {
        assert!(
            imported.remarks.iter().any(|known| known == remark),
            "{remark}: {:#?}",
            imported.remarks
        );
    }
    let broken = "`host_vars/web02.lan.yml` is not imported: ";
    assert!(
        imported
            .remarks
            .iter()
            .any(|known| known.starts_with(broken))
    );
    assert!(!format!("{imported:?}").contains("6162"));
    for path in [
        "group_vars/.hidden.yml",
        "group_vars/web.txt",
        "other/web.yml",
        "group_vars",
    ] {
        assert_eq!(VariableFile::of(path), None, "{path}");
    }
}
