//! What nodes do by themselves: they compare a book with themselves, beacons do not take the changes of runs for somebody
//! else's, and schedules are kept without a server.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portolan_agent::ManualClock;
use portolan_fleet::NodeLock;
use portolan_modules::Root;
use portolan_server::FleetMethod;
use serde_json::{Value, json};

use crate::bed::{Bed, RunningAgent, wait_until};

const NODE: &str = "node-1";

impl Bed {
    /// A node that namespace `default` may target.
    async fn one_node(&self) -> RunningAgent {
        self.grant_all().await;
        let agent = self.start_rooted(NODE, Some(self.join_token().await));
        self.wait_for_state(NODE, "ready").await;
        agent
    }

    /// The specs of all events of a type.
    async fn events(&self, kind: &str) -> Vec<Value> {
        let path = "namespaces/default/events";
        let list = self.admin(FleetMethod::Get, path, None).await;
        let list = list.unwrap_or_default();
        let items = list["items"].as_array().into_iter().flatten();
        let specs = items.map(|event| event["spec"].clone());
        specs.filter(|spec| spec["type"] == kind).collect()
    }

    async fn beacon_condition(&self, name: &str) -> Value {
        let states = self.status(NODE, "beacons").await;
        let states = states.as_array().into_iter().flatten();
        let mut states = states.filter(|state| state["name"] == name);
        states
            .next()
            .map_or(Value::Null, |state| state["condition"].clone())
    }

    async fn cron_job(&self) -> Value {
        let jobs = self.status(NODE, "cronJobs").await;
        jobs[0].clone()
    }

    fn node_file(&self, name: &str) -> String {
        std::fs::read_to_string(self.root(NODE).join(name)).unwrap_or_default()
    }
}

/// The drift of a file that was edited by hand is told with its diff, and the trigger puts it back; also when it was edited
/// while no server was there. A book that cannot be compared is told as unknown.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_edited_by_hand_is_told_with_its_diff_and_put_back() {
    let mut bed = Bed::new().await;
    let agent = bed.one_node().await;
    let steps =
        json!([{"name": "motd", "file": {"path": "/etc/motd", "content": "looked after\n"}}]);
    bed.book(json!({"target": {"all": true}, "steps": steps}))
        .await;
    let needy = json!({
        "target": {"all": true}, "inputs": {"version": {"type": "string"}}, "steps": steps,
    });
    assert!(bed.post("taskbooks", "TaskBook", "needy", &needy).await);
    let trigger = json!({
        "match": {"types": ["beacon.drift"], "when": "event.data.condition == 'drifted'"},
        "run": {"book": "web", "eventNode": true},
    });
    assert!(bed.post("triggers", "Trigger", "restore", &trigger).await);
    for (name, book) in [("web", "web"), ("needy", "needy")] {
        let beacon = json!({"target": {"all": true}, "drift": {"book": book}, "interval": "1s"});
        assert!(bed.post("beacons", "Beacon", name, &beacon).await);
    }
    // The node did not have the file at all.
    wait_until("the file", async || {
        bed.node_file("etc/motd") == "looked after\n"
    })
    .await;
    wait_until("in sync", async || {
        bed.beacon_condition("web").await == "in-sync"
    })
    .await;
    wait_until("unknown", async || {
        bed.beacon_condition("needy").await == "unknown"
    })
    .await;

    let motd = bed.root(NODE).join("etc/motd");
    std::fs::write(&motd, "edited by hand\n").expect("written");
    wait_until("put back", async || {
        bed.node_file("etc/motd") == "looked after\n"
    })
    .await;
    wait_until("in sync", async || {
        bed.beacon_condition("web").await == "in-sync"
    })
    .await;
    bed.pause().await;
    std::fs::write(&motd, "edited offline\n").expect("written");
    // It is seen before a server is there again.
    let spool = bed.path(NODE).join("beacons/spool.log");
    wait_until("seen", async || {
        let text = std::fs::read(&spool).unwrap_or_default();
        String::from_utf8_lossy(&text).contains("edited offline")
    })
    .await;
    bed.resume().await;
    wait_until("put back", async || {
        bed.node_file("etc/motd") == "looked after\n"
    })
    .await;
    wait_until("told", async || bed.events("beacon.drift").await.len() >= 7).await;

    let events = bed.events("beacon.drift").await;
    let told = |name: &str| {
        let events = events.iter();
        let events = events.filter(|event| event["source"]["name"] == name);
        events.map(|event| &event["data"]).collect::<Vec<_>>()
    };
    let web = told("web");
    let conditions: Vec<&Value> = web.iter().map(|data| &data["condition"]).collect();
    assert_eq!(conditions, ["drifted", "in-sync"].repeat(3), "{web:#?}");
    let diff = web[2]["steps"][0]["diff"].as_str().expect("a diff");
    assert!(
        diff.contains("+looked after") && diff.contains("-edited by hand"),
        "{diff}"
    );
    // What the run put right is told with the run.
    assert!(web[1]["run"].as_str().expect("a run").starts_with("web-"));
    assert!(web[0].get("run").is_none());
    let needy = told("needy");
    let reason = needy[0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("version"), "{reason}");
    assert_eq!(bed.runs().await.len(), 3);
    agent.kill().await;
}

/// A trigger whose run changes what its beacon watches: the change is told with the run, and starts no second one.
#[tokio::test(flavor = "multi_thread")]
async fn a_beacon_whose_own_run_would_fire_it_again_is_stopped_and_reported() {
    let bed = Bed::new().await;
    let agent = bed.one_node().await;
    // Another content in each run.
    let steps =
        json!([{"name": "stamp", "file": {"path": "/etc/stamp", "content": "{{ run.id }}\n"}}]);
    bed.book(json!({"target": {"all": true}, "steps": steps}))
        .await;
    let beacon = json!({"target": {"all": true}, "file": {"path": "/etc/stamp"}, "interval": "1s"});
    assert!(bed.post("beacons", "Beacon", "stamp", &beacon).await);
    let trigger =
        json!({"match": {"types": ["beacon.file"]}, "run": {"book": "web", "eventNode": true}});
    assert!(bed.post("triggers", "Trigger", "again", &trigger).await);
    wait_until("watched", async || {
        bed.beacon_condition("stamp").await == "absent"
    })
    .await;

    std::fs::write(bed.root(NODE).join("etc/stamp"), "by hand\n").expect("written");
    wait_until("refused", async || {
        !bed.events("trigger.suppressed").await.is_empty()
    })
    .await;
    let events = bed.events("beacon.file").await;
    assert_eq!(events.len(), 2, "{events:#?}");
    assert!(events[0].get("causes").is_none(), "{events:#?}");
    let runs = bed.runs().await;
    assert_eq!(runs.len(), 1, "{runs:#?}");
    assert_eq!(events[1]["data"]["run"], runs[0]["metadata"]["name"]);
    assert_eq!(events[1]["causes"], runs[0]["spec"]["causes"]);
    assert_eq!(
        bed.node_file("etc/stamp"),
        format!(
            "{}\n",
            runs[0]["metadata"]["name"].as_str().expect("a name")
        )
    );

    // A run of somebody has no trigger behind it, so what it changes is news.
    let run = bed.run(json!({})).await.expect("a run");
    wait_until("a third run", async || bed.runs().await.len() == 3).await;
    let events = bed.events("beacon.file").await;
    assert!(
        events
            .iter()
            .any(|event| event["data"]["run"] == run.as_str()),
        "{events:#?}"
    );
    agent.kill().await;
}

/// A schedule of a node: slots start without a server and are told later, and only the last of those that passed while the
/// agent was away.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_keeps_a_schedule_without_a_server_and_reports_later() {
    let mut bed = Bed::new().await;
    // The date stands still until it is moved, a few seconds after a full minute.
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a date");
    let minute = Duration::from_secs(now.as_secs() / 60 * 60 + 5);
    let date = Arc::new(ManualClock::default());
    date.advance(minute);
    bed.date = Arc::clone(&date) as _;
    let agent = bed.one_node().await;
    let job = json!({
        "schedule": "* * * * *", "on": "agent", "missed": "once", "target": {"all": true},
        "steps": [{"name": "tick", "line": {"path": "/etc/ticks", "line": "{{ run.id }}", "create": true}}],
    });
    assert!(bed.post("cronjobs", "CronJob", "tick", &job).await);
    let broken = json!({
        "schedule": "@daily", "on": "agent", "target": {"all": true},
        "steps": [{"name": "first", "runOn": "first", "print": {"message": "x"}}],
    });
    wait_until("kept", async || {
        bed.cron_job().await["nextSlot"].is_string()
    })
    .await;
    let ticks = || bed.node_file("etc/ticks").lines().count();
    assert_eq!(ticks(), 0);

    // With a server, too, it is the node that fires.
    date.advance(Duration::from_mins(1));
    wait_until("a slot", async || ticks() == 1).await;
    wait_until("told", async || bed.events("cron.ended").await.len() == 1).await;
    assert!(bed.runs().await.is_empty());

    let offline = bed.path(NODE).join("beacons/spool.log");
    bed.pause().await;
    date.advance(Duration::from_mins(1));
    let ticks = |count: usize| {
        let file = bed.root(NODE).join("etc/ticks");
        async move {
            wait_until("a slot", async || {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                text.lines().count() == count
            })
            .await;
        }
    };
    ticks(2).await;
    assert!(offline.exists());
    // Killed when the slot is on the disk and its run has not begun, because another run has the node.
    let root = Root::other(&bed.root(NODE)).expect("a root");
    let take = || NodeLock::take(&root).expect("a lock");
    wait_until("the end of the last run", async || take().is_some()).await;
    let lock = take().expect("it is free");
    date.advance(Duration::from_mins(1));
    let memory = bed.path(NODE).join("cron/memory.json");
    wait_until("fired", async || {
        let text = std::fs::read_to_string(&memory).unwrap_or_default();
        text.contains("\"id\":\"cron-")
    })
    .await;
    agent.kill().await;
    drop(lock);
    let agent = bed.start_rooted(NODE, None);
    ticks(3).await;
    // The agent is away for five days; the last slot starts for all of them, once.
    agent.kill().await;
    date.advance(Duration::from_hours(5 * 24));
    let agent = bed.start_rooted(NODE, None);
    ticks(4).await;

    bed.resume().await;
    wait_until("told", async || bed.events("cron.ended").await.len() == 4).await;
    let skipped = bed.events("cron.skipped").await;
    assert_eq!(skipped.len(), 1, "{skipped:#?}");
    assert_eq!(skipped[0]["data"]["count"], 1_000);
    let ended = bed.events("cron.ended").await;
    let source = json!({"kind": "CronJob", "name": "tick", "node": NODE});
    assert!(
        ended.iter().all(|event| event["source"] == source),
        "{ended:#?}"
    );
    assert!(
        ended
            .iter()
            .all(|event| event["data"]["state"] == "changed")
    );
    assert!(bed.runs().await.is_empty(), "the server fires nothing");
    let status = async || {
        let path = "namespaces/default/cronjobs/tick";
        let found = bed.admin(FleetMethod::Get, path, None).await;
        found.unwrap_or_default()["status"].clone()
    };
    wait_until("a status", async || {
        let (job, status) = (bed.cron_job().await, status().await);
        job["state"] == "changed" && status["nodes"] == 1 && status["lastSlot"] == job["lastSlot"]
    })
    .await;
    assert!(bed.post("cronjobs", "CronJob", "broken", &broken).await);
    wait_until("a reason", async || {
        let jobs = bed.status(NODE, "cronJobs").await;
        jobs.to_string().contains("runs on one of all nodes")
    })
    .await;
    agent.kill().await;
}
