//! Whether a node is there: connected, lost, left, copied, revoked.

use portolan_http::Secret;
use portolan_server::{FleetClient, FleetMethod};
use serde_json::json;

use crate::bed::{Bed, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_ready_while_its_agent_is_connected() {
    let mut bed = Bed::new().await;
    let agent = bed.start_agent("web-1", Some(bed.join_token().await));
    bed.wait_for_state("web-1", "ready").await;
    assert!(agent.has_told("Enrolled") && agent.has_told("Connected"));
    let version = bed.status("web-1", "agentVersion").await;
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    wait_until("facts", async || {
        bed.status("web-1", "facts").await["hostname"].is_string()
    })
    .await;
    // A killed agent is a lost link; it comes back without a token.
    agent.kill().await;
    bed.wait_for_state("web-1", "link-lost").await;
    let agent = bed.start_agent("web-1", None);
    bed.wait_for_state("web-1", "ready").await;
    // A server that ends and comes back finds its agent again.
    bed.restart().await;
    wait_until("a second stream", async || agent.count("Connected(") == 2).await;
    bed.wait_for_state("web-1", "ready").await;
    // What others wrote into the status is still there.
    assert!(bed.status("web-1", "certificateExpires").await.is_string());
    agent.stop.cancel();
    agent
        .ended
        .await
        .expect("no panic")
        .expect("it ends in good order");
    bed.wait_for_state("web-1", "left").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_with_one_key_are_cut_and_reported() {
    let bed = Bed::new().await;
    let first = bed.start_agent("web-1", Some(bed.join_token().await));
    bed.wait_for_state("web-1", "ready").await;
    std::fs::create_dir(bed.path("copy")).expect("a directory");
    let identity = ["web-1", "copy"].map(|data| bed.path(data).join("identity.json"));
    std::fs::copy(&identity[0], &identity[1]).expect("copied");
    let second = bed.start_agent("copy", None);
    wait_until("an event", async || {
        let events = bed.admin(FleetMethod::Get, "namespaces/system/events", None);
        events
            .await
            .is_some_and(|events| events.to_string().contains("node.cloned"))
    })
    .await;
    second.kill().await;
    bed.wait_for_state("web-1", "ready").await;
    first.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_node_is_cut_within_seconds() {
    let bed = Bed::new().await;
    let agent = bed.start_agent("web-1", Some(bed.join_token().await));
    bed.wait_for_state("web-1", "ready").await;
    let revoked = bed.admin(FleetMethod::Post, "nodes/web-1/revoke", Some(json!({})));
    assert!(revoked.await.is_some());
    bed.wait_for_state("web-1", "link-lost").await;
    wait_until("a refusal", async || agent.has_told("Disconnected")).await;
    agent.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_certificate_of_a_node_gets_no_stream() {
    let bed = Bed::new().await;
    let path = "/portolan.agent.v1alpha.AgentService/Connect";
    let read = |name: &str| std::fs::read_to_string(bed.path(name)).expect(name);
    let token = Secret::from(read("admin.token").trim().to_owned());
    let client = FleetClient::new(&bed.url(), token, vec![read("ca.pem")]).expect("a client");
    let answer = client
        .request(FleetMethod::Post, path, &[], Some("{}"))
        .await;
    assert!(answer.is_err(), "{answer:?}");
    let status = bed
        .admin(FleetMethod::Get, "nodes", None)
        .await
        .expect("a list");
    assert_eq!(status["items"], json!([]));
}

/// Agents come to the server that looks after runs, whichever they know, and to the next one when it ends.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_sent_to_the_server_that_looks_after_runs() {
    let mut bed = Bed::new().await;
    let name = async |bed: &Bed| {
        let status = bed.admin(FleetMethod::Get, "status", None).await;
        status.unwrap_or_default()["server"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let is_owner = async |bed: &Bed| {
        let status = bed.admin(FleetMethod::Get, "status", None).await;
        status.unwrap_or_default()["controllers"]["isOwner"] == true
    };
    wait_until("the first owns the shard", async || is_owner(&bed).await).await;
    let first_name = name(&bed).await;
    let join = bed.join_token().await;
    let first = bed.add_server().await;
    let second_name = name(&bed).await;
    assert!(first_name != second_name && !is_owner(&bed).await);
    // It knows the second server only.
    let agent = bed.start_agent("web-1", Some(join));
    let connected = |server: &str| format!("Connected({server:?})");
    wait_until("the first server", async || {
        agent.has_told(&connected(&first_name))
    })
    .await;
    bed.wait_for_state("web-1", "ready").await;
    assert!(!agent.has_told(&connected(&second_name)));
    first.end().await;
    wait_until("the second server", async || {
        agent.has_told(&connected(&second_name))
    })
    .await;
    agent.kill().await;
}

/// A node tells what it is at once, and what costs more a little later; the server says how old each part is.
#[tokio::test(flavor = "multi_thread")]
async fn facts_of_a_node_are_kept_with_their_age() {
    let bed = Bed::new().await;
    let root = bed.root("node-1");
    for inside in ["etc/portolan/facts", "var/lib/dpkg"] {
        std::fs::create_dir_all(root.join(inside)).expect("a directory");
    }
    let release = "ID=debian\nNAME=Debian\nVERSION_ID=12\n";
    std::fs::write(root.join("etc/os-release"), release).expect("written");
    let packages = "Package: web\nStatus: install ok installed\nVersion: 1\n";
    std::fs::write(root.join("var/lib/dpkg/status"), packages).expect("written");
    let agent = bed.start_rooted("node-1", Some(bed.join_token().await));
    wait_until("facts", async || {
        bed.status("node-1", "facts").await["os"]["family"] == "debian"
    })
    .await;
    wait_until("all facts", async || {
        bed.status("node-1", "facts").await["packages"]["count"] == 1
    })
    .await;
    let facts = bed.status("node-1", "facts").await;
    assert_eq!(facts["hostname"], "node-1");
    let at = bed.status("node-1", "factsAt").await;
    for part in [
        "os", "kernel", "memory", "network", "disks", "packages", "custom",
    ] {
        let time = at[part].as_str().unwrap_or_default();
        assert!(
            time.ends_with('Z') && facts.get(part).is_some(),
            "{part}: {at} {facts}"
        );
    }
    agent.kill().await;
}
