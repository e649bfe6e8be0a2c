//! Real Flagger, real Argo Rollouts and `portolan operator` on one cluster, with one Prometheus and one generator of requests.
//!
//! ```text
//! scenario ──▶ mesh ◀─scrapes─ Prometheus ◀─asks─ portolan, Flagger, Argo Rollouts
//!               ▲                                          │
//!               └── follows the routes and pods of ── test cluster
//! ```
//!
//! Each scenario has a mesh and three namespaces, one for each tool. All scenarios run at the same time.
//! `bench/rollout.sh` and `bench/demo.sh` start it.

mod objects;
mod scenario;
mod tool;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_rollout::{analysis_crds_yaml, crd_yaml};
use portolan_testbed::cluster::{
    Cluster, ClusterSetup, Follower, Kubelet, KubeletSetup, WORKLOADS, definitions,
};
use portolan_testbed::{Mesh, MeshSetup, Process, Prometheus, PrometheusSetup, free_port};

use objects::{Objects, define};
use scenario::{Right, SCENARIOS, Scenario};
use tool::{End, Plan, Standing, TOOLS, Tool};

const USAGE: &str = "rollout_peers PORTOLAN PEERS RATE STEP LIMIT table|live [SCENARIO…]";

/// How long a tool may take to bring the first revision up.
const START: Duration = Duration::from_mins(5);
const PERIOD: Duration = Duration::from_millis(500);

struct Arguments {
    portolan: PathBuf,
    /// The directory with Flagger, Argo Rollouts, their definitions and versions.
    peers: PathBuf,
    /// Requests a second to each application.
    rate: f64,
    /// Seconds of a step.
    step: u64,
    /// Seconds after which a release that is not decided counts as held.
    limit: u64,
    is_live: bool,
    scenarios: Vec<String>,
}

impl Arguments {
    fn parse() -> Option<Self> {
        let mut args = std::env::args().skip(1);
        Some(Self {
            portolan: args.next()?.into(),
            peers: args.next()?.into(),
            rate: args.next()?.parse().ok()?,
            step: args.next()?.parse().ok()?,
            limit: args.next()?.parse().ok()?,
            is_live: args.next()? == "live",
            scenarios: args.collect(),
        })
    }

    fn scenarios(&self) -> Vec<&'static Scenario> {
        let is_asked = |scenario: &&Scenario| {
            self.scenarios.is_empty() || self.scenarios.iter().any(|name| name == scenario.name)
        };
        SCENARIOS.iter().filter(is_asked).collect()
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments = Arguments::parse().expect(USAGE);
    let scenarios = arguments.scenarios();
    assert!(!scenarios.is_empty(), "no scenario has such a name");
    let setup = ClusterSetup {
        controllers: WORKLOADS,
        rbac: false,
    };
    let cluster = Cluster::start(setup).await.expect("a test cluster");
    let client = cluster.client().await;
    define_all(&client, &arguments.peers).await;
    let kubelet = KubeletSetup {
        nodes: 1,
        ..KubeletSetup::default()
    };
    let _kubelet = Kubelet::start(client.clone(), None, kubelet);
    let meshes: Vec<Arc<Mesh>> = (1..=scenarios.len() as u64)
        .map(|seed| {
            Arc::new(Mesh::start(MeshSetup {
                rate: arguments.rate,
                seed,
                ..MeshSetup::default()
            }))
        })
        .collect();
    let setup = PrometheusSetup {
        targets_urls: meshes.iter().map(|mesh| mesh.targets_url()).collect(),
        ..PrometheusSetup::default()
    };
    let prometheus = Prometheus::start(&setup).expect("Prometheus");
    let directory = tempfile::tempdir().expect("a directory");
    let url = prometheus.url();
    let kubeconfig = cluster.kubeconfig_path();
    Objects::new(&client, "argo-rollouts").await;
    let _tools = start_tools(&arguments, &kubeconfig, &url, directory.path());
    let plan = Arc::new((url, arguments.step));
    let limit = Duration::from_secs(arguments.limit);
    let runs = scenarios.iter().zip(meshes).map(|(scenario, mesh)| {
        let scenario: &'static Scenario = scenario;
        let run = Run {
            scenario,
            mesh,
            rate: arguments.rate,
            limit,
            is_live: arguments.is_live,
        };
        (
            scenario,
            tokio::spawn(run.run(client.clone(), Arc::clone(&plan))),
        )
    });
    let versions = std::fs::read_to_string(arguments.peers.join("versions")).unwrap_or_default();
    let runs: Vec<_> = runs.collect();
    for (scenario, run) in runs {
        let ends = run.await.expect("a scenario that ends");
        print_row(scenario, &ends, &versions, &arguments);
    }
    if let Ok(kept) = std::env::var("KEEP_LOGS") {
        for name in ["flagger.log", "argo-rollouts.log", "portolan.log"] {
            let _ = std::fs::copy(directory.path().join(name), Path::new(&kept).join(name));
        }
    }
}

async fn define_all(client: &kube::Client, peers: &Path) {
    define(client, crd_yaml()).await;
    for text in analysis_crds_yaml() {
        define(client, text).await;
    }
    for name in ["istio", "gateway-api"] {
        define(client, &definitions(name).expect("definitions")).await;
    }
    for name in ["flagger.yaml", "argo-rollouts.yaml"] {
        let text = std::fs::read_to_string(peers.join(name)).expect("definitions");
        define(client, &text).await;
    }
}

/// Starts the three controllers.
fn start_tools(
    arguments: &Arguments,
    kubeconfig: &Path,
    prometheus: &str,
    directory: &Path,
) -> Vec<Process> {
    let kubeconfig = kubeconfig.display();
    let ours = [
        "operator".to_owned(),
        format!("--kubeconfig={kubeconfig}"),
        format!("--prometheus={prometheus}"),
        format!("--listen=127.0.0.1:{}", free_port()),
    ];
    let flagger = [
        format!("-kubeconfig={kubeconfig}"),
        "-mesh-provider=istio".to_owned(),
        format!("-metrics-server={prometheus}"),
        format!("-port={}", free_port()),
    ];
    let argo = [
        format!("--kubeconfig={kubeconfig}"),
        "--leader-elect=false".to_owned(),
        format!("--metricsport={}", free_port()),
        format!("--healthzPort={}", free_port()),
        "--namespace=argo-rollouts".to_owned(),
    ];
    vec![
        Process::start(&arguments.portolan, &ours, directory),
        Process::start(&arguments.peers.join("flagger"), &flagger, directory),
        Process::start(&arguments.peers.join("argo-rollouts"), &argo, directory),
    ]
}

/// One scenario with all three tools.
struct Run {
    scenario: &'static Scenario,
    mesh: Arc<Mesh>,
    rate: f64,
    limit: Duration,
    is_live: bool,
}

/// What one tool did.
#[derive(Debug, Clone, Default)]
struct Outcome {
    end: Option<(End, Duration)>,
    last: Standing,
    /// Bad answers of the new revision until its end.
    bad: u64,
}

impl Run {
    async fn run(self, client: kube::Client, plan: Arc<(String, u64)>) -> Vec<(Tool, Outcome)> {
        let plan = Plan {
            prometheus: &plan.0,
            step: plan.1,
        };
        let mut tools = Vec::new();
        for tool in TOOLS {
            let namespace = format!("{}-{}", self.scenario.name, tool.name());
            let objects = Objects::new(&client, &namespace).await;
            tool.install(&objects, &plan).await;
            tools.push((tool, objects, Outcome::default()));
        }
        let namespaces: Vec<&str> = tools
            .iter()
            .map(|(_, objects, _)| objects.namespace.as_str())
            .collect();
        let _follower = Follower::start(client, &namespaces, Arc::clone(&self.mesh));
        self.wait_until_ready(&tools).await;
        let old_slots: Vec<&str> = TOOLS.iter().map(|tool| tool.slots().0).collect();
        self.scenario.begin(&self.mesh, self.rate, &old_slots);
        for (tool, objects, _) in &tools {
            tool.release(objects).await;
        }
        self.follow(&mut tools, plan.step).await;
        let outcomes = tools.into_iter();
        outcomes.map(|(tool, _, outcome)| (tool, outcome)).collect()
    }

    async fn wait_until_ready(&self, tools: &[(Tool, Objects, Outcome)]) {
        let started = Instant::now();
        for (tool, objects, _) in tools {
            loop {
                let standing = tool.standing(objects).await;
                if standing.is_ready {
                    break;
                }
                assert!(
                    started.elapsed() < START,
                    "{} does not start in {}: {standing:?}",
                    tool.name(),
                    objects.namespace
                );
                tokio::time::sleep(PERIOD).await;
            }
        }
    }

    /// Lets the scenario happen until every tool has decided or the time is over.
    async fn follow(&self, tools: &mut [(Tool, Objects, Outcome)], step: u64) {
        let started = Instant::now();
        let mut events = self.scenario.events.iter().peekable();
        while started.elapsed() < self.limit {
            let steps = started.elapsed().as_secs_f64() / step as f64;
            while let Some((_, event)) = events.next_if(|(at, _)| *at <= steps) {
                self.scenario.happen(&self.mesh, *event);
            }
            for (tool, objects, outcome) in tools.iter_mut() {
                if outcome.end.is_some() {
                    continue;
                }
                let standing = tool.standing(objects).await;
                outcome.end = standing.end.map(|end| (end, started.elapsed()));
                outcome.bad = self.mesh.sent(tool.slots().1).1;
                let is_news = outcome.last != standing;
                outcome.last = standing;
                if self.is_live && is_news {
                    self.print_news(*tool, outcome, started.elapsed());
                }
            }
            if tools.iter().all(|(_, _, outcome)| outcome.end.is_some()) {
                return;
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    #[expect(clippy::print_stdout, reason = "it is a program")]
    fn print_news(&self, tool: Tool, outcome: &Outcome, after: Duration) {
        println!(
            "{:>4} s  {:<11} {:<9} {:>3} %  {}",
            after.as_secs(),
            self.scenario.name,
            tool.name(),
            outcome.last.weight,
            outcome.last.phase,
        );
    }
}

fn words(right: Right, outcome: &Outcome, limit: u64) -> String {
    let (word, is_right) = match &outcome.end {
        Some((End::Promoted, after)) => (
            format!("promoted {} s", after.as_secs()),
            right == Right::Promote,
        ),
        Some((End::RolledBack, after)) => (
            format!("rolled back {} s", after.as_secs()),
            right == Right::RollBack,
        ),
        None if right == Right::Hold => (format!("held for {limit} s"), true),
        None => {
            let last = &outcome.last;
            let word = format!(
                "not decided in {limit} s ({} at {} %)",
                last.phase, last.weight
            );
            (word, false)
        }
    };
    let word = if is_right {
        word
    } else {
        format!("**{word}: wrong**")
    };
    format!("{word}, {} bad", outcome.bad)
}

#[expect(clippy::print_stdout, reason = "it is a program")]
fn print_row(scenario: &Scenario, ends: &[(Tool, Outcome)], versions: &str, arguments: &Arguments) {
    let of = |tool: Tool| {
        let found = ends.iter().find(|(of, _)| *of == tool);
        found.map_or_else(String::new, |(_, outcome)| {
            words(scenario.right, outcome, arguments.limit)
        })
    };
    let version = |name: &str| {
        let line = versions.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or(" of unknown version").trim().to_owned()
    };
    let right = match scenario.right {
        Right::Promote => "promote",
        Right::RollBack => "roll back",
        Right::Hold => "hold",
    };
    println!(
        "| rollout at {} rps, steps of {} s: {} | {} | Flagger {}: {}; Argo Rollouts {}: {} | | {right} |",
        arguments.rate,
        arguments.step,
        scenario.title,
        of(Tool::Portolan),
        version("flagger"),
        of(Tool::Flagger),
        version("argo-rollouts"),
        of(Tool::Argo),
    );
}
