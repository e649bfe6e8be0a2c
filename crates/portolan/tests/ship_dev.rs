//! `portolan dev` on a real API server: from a saved file to a new `ReplicaSet`, copied files, logs and forwarded ports.

mod portolan;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use portolan::project::Project;
use portolan::wait_until;
use portolan_testbed::cluster::{
    Cluster as TestCluster, Kubelet, KubeletSetup, NodeEndpoint, PORT_ANNOTATION, PodDirectory,
};
use portolan_testbed::free_port;
use serde_json::Value;
use tokio::runtime::Runtime;

/// A cluster whose pods have logs, commands and ports.
struct Bed {
    runtime: Runtime,
    cluster: &'static TestCluster,
    endpoint: NodeEndpoint,
    client: kube::Client,
    _kubelet: Kubelet,
}

impl Bed {
    fn start(namespace: &str) -> Option<Self> {
        let runtime = Runtime::new().expect("a runtime");
        let cluster = runtime.block_on(TestCluster::shared())?;
        let endpoint = cluster.node_endpoint()?;
        let client = runtime.block_on(cluster.client());
        let setup = KubeletSetup {
            nodes: 1,
            endpoint: Some(endpoint.clone()),
            ..KubeletSetup::default()
        };
        let inside = runtime.enter();
        let kubelet = Kubelet::start(client.clone(), Some(namespace), setup);
        drop(inside);
        Some(Self {
            runtime,
            cluster,
            endpoint,
            client,
            _kubelet: kubelet,
        })
    }

    fn replica_sets(&self, namespace: &str) -> usize {
        let api: Api<ReplicaSet> = Api::namespaced(self.client.clone(), namespace);
        let list = self.runtime.block_on(api.list(&ListParams::default()));
        list.map_or(0, |list| list.items.len())
    }

    fn has_deployment(&self, namespace: &str) -> bool {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), namespace);
        let found = self.runtime.block_on(api.get_opt("web"));
        found.expect("an answer").is_some()
    }

    /// The pods that are not about to go.
    fn pods(&self, namespace: &str) -> Vec<String> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let list = self.runtime.block_on(api.list(&ListParams::default()));
        let pods = list.expect("pods").items.into_iter();
        let pods = pods.filter(|pod| pod.metadata.deletion_timestamp.is_none());
        pods.filter_map(|pod| pod.metadata.name).collect()
    }

    /// The one pod, other than another one, once it is alone and ready.
    fn only_pod(&self, namespace: &str, other: &str) -> (String, PodDirectory) {
        let one = || match self.pods(namespace).as_slice() {
            [one] if one != other && self.endpoint.pod(namespace, one).exists() => {
                Some(one.clone())
            }
            _ => None,
        };
        wait_until(|| one().is_some());
        let name = one().expect("a pod");
        let directory = self.endpoint.pod(namespace, &name);
        (name, directory)
    }
}

/// A running `portolan dev`.
struct Dev {
    child: Child,
    events: Arc<Mutex<Vec<Value>>>,
    stderr: Arc<Mutex<String>>,
}

impl Dev {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        let (events, stderr) = (Arc::new(Mutex::default()), Arc::new(Mutex::default()));
        let heard = Arc::clone(&events);
        listen(
            child.stdout.take().expect("it was asked for"),
            move |line| {
                let event = serde_json::from_str(line).unwrap_or_else(|_| line.into());
                let heard: &Mutex<Vec<Value>> = &heard;
                heard.lock().expect("no panic").push(event);
            },
        );
        let heard = Arc::clone(&stderr);
        listen(
            child.stderr.take().expect("it was asked for"),
            move |line| {
                let heard: &Mutex<String> = &heard;
                let mut heard = heard.lock().expect("no panic");
                heard.push_str(line);
                heard.push('\n');
            },
        );
        Self {
            child,
            events,
            stderr,
        }
    }

    /// Waits for an event, and takes it and those before it away.
    fn wait_for(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let find = || {
            let events = self.events.lock().expect("no panic");
            events.iter().position(&is_it)
        };
        let began = std::time::Instant::now();
        while find().is_none() {
            assert!(
                began.elapsed() < Duration::from_secs(90),
                "no {what}: {:#?}\n{}",
                self.events.lock().expect("no panic"),
                self.stderr.lock().expect("no panic")
            );
            std::thread::park_timeout(Duration::from_millis(20));
        }
        let mut events = self.events.lock().expect("no panic");
        let at = events.iter().position(&is_it).expect("an event");
        events.drain(..=at).next_back().expect("an event")
    }

    fn wait_for_deployment(&self) -> Value {
        self.wait_for("deployment", |event| {
            event["type"] == "deployed" && event["steps"][0]["status"] == "deployed"
        })
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("kill").success());
    }

    fn end(mut self) -> Option<i32> {
        self.signal("-INT");
        wait_until_ended(&mut self.child)
    }
}

fn wait_until_ended(child: &mut Child) -> Option<i32> {
    let child = Mutex::new(child);
    wait_until(|| {
        let mut child = child.lock().expect("no panic");
        child.try_wait().expect("a child").is_some()
    });
    let mut child = child.lock().expect("no panic");
    child.wait().expect("a child").code()
}

impl Drop for Dev {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(stream: impl Read + Send + 'static, take: impl Fn(&str) + Send + 'static) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            take(&line);
        }
    });
}

/// A server that answers with its name.
fn server(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut buffer = [0; 64];
            if matches!(socket.read(&mut buffer), Ok(1..)) {
                let _ = socket.write_all(name.as_bytes());
            }
        }
    });
    address
}

fn ask(port: u16) -> String {
    let Ok(mut socket) = TcpStream::connect(("127.0.0.1", port)) else {
        return String::new();
    };
    let _ = socket.set_read_timeout(Some(Duration::from_secs(20)));
    let _ = socket.write_all(b"hello");
    let mut answer = String::new();
    let _ = socket.read_to_string(&mut answer);
    answer
}

fn project(namespace: &str, server: SocketAddr, dev: &str) -> Project {
    let artifacts = "  - {name: web, image: registry.example/shop/web, oci: {context: web}}\n";
    let deploy = format!(
        "  deploy:\n  - {{name: app, namespace: {namespace}, manifests: {{paths: [deploy]}}, wait: {{timeout: 60s}}}}\n"
    );
    let project = Project::new(&format!("{artifacts}{deploy}{dev}"));
    project.write(
        "deploy/namespace.yaml",
        &format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n"),
    );
    project.write("deploy/web.yaml", &format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 1\n  selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata:\n      labels: {{app: web}}\n      annotations: {{{PORT_ANNOTATION}8080: '{server}'}}\n    spec:\n      containers: [{{name: app, image: registry.example/shop/web, ports: [{{containerPort: 8080}}]}}]\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: web}}\nspec: {{selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080}}]}}\n"
    ));
    project.write("web/static/a.css", "a {}");
    project
}

fn command(project: &Project, bed: &Bed, args: &[&str]) -> Command {
    let kubeconfig = bed.cluster.kubeconfig_path();
    let kubeconfig = kubeconfig.to_str().expect("UTF-8");
    let base = [
        "dev",
        "-o",
        "json",
        "--context",
        "test",
        "--kubeconfig",
        kubeconfig,
    ];
    project.command(&[&base, args].concat())
}

#[test]
fn a_saved_file_becomes_a_new_replica_set_while_logs_and_ports_are_followed() {
    let namespace = "dev-loop";
    let Some(bed) = Bed::start(namespace) else {
        return;
    };
    let port = free_port();
    let dev = format!(
        "  dev:\n    sync:\n    - {{artifact: web, from: 'static/**', to: /srv, after: [sh, -c, 'echo reloaded >> /reloads']}}\n    - {{artifact: web, from: 'conf/**', to: /etc, after: ['false']}}\n    forward: [{{resource: service/web, port: 80, local: {port}}}]\n    cleanup: true\n"
    );
    let project = project(namespace, server("from the pod"), &dev);
    let dev = Dev::start(command(&project, &bed, &[]));
    dev.wait_for_deployment();
    let (first, directory) = bed.only_pod(namespace, "");

    directory.print("app", "hello from the first pod");
    let line = dev.wait_for("log line", |event| {
        event["line"] == "hello from the first pod"
    });
    assert_eq!(
        (&line["pod"], &line["container"]),
        (&first.as_str().into(), &"app".into())
    );
    assert_eq!(ask(port), "from the pod");

    // Copied, and nothing is built.
    project.write("web/static/css/b.css", "b {}");
    let synced = dev.wait_for("copy", |event| event["copied"] == 1);
    assert_eq!(synced["pod"], first.as_str());
    let copied = directory.root().join("srv/css/b.css");
    assert_eq!(
        fs::read_to_string(&copied).expect("a file in the pod"),
        "b {}"
    );
    fs::remove_file(project.path("web/static/css/b.css")).expect("removed");
    dev.wait_for("removal", |event| event["removed"] == 1);
    assert!(!copied.exists());
    let reloads = fs::read_to_string(directory.root().join("reloads"));
    let reloads = reloads.expect("a file in the pod");
    assert!(reloads.lines().count() >= 2, "{reloads}");
    assert_eq!(bed.replica_sets(namespace), 1);

    // Built, deployed and followed.
    project.write("web/index.html", "another page");
    dev.wait_for_deployment();
    assert_eq!(bed.replica_sets(namespace), 2);
    let (second, directory) = bed.only_pod(namespace, &first);
    directory.print("app", "hello from the second pod");
    dev.wait_for("log line", |event| {
        event["line"] == "hello from the second pod"
    });
    wait_until(|| ask(port) == "from the pod");
    dev.wait_for("pod", |event| {
        event["type"] == "forwardedTo" && event["pod"] == second.as_str()
    });

    // What cannot be copied is built.
    project.write("web/conf/app.conf", "a = b");
    dev.wait_for("failed copy", |event| event["type"] == "syncTrouble");
    dev.wait_for_deployment();
    assert_eq!(bed.replica_sets(namespace), 3);

    // A mistake is told and waited out.
    let document = fs::read_to_string(project.path("portolan.yaml")).expect("a document");
    project.write(
        "portolan.yaml",
        &document.replace("kind: Ship", "kind: Ship\nspecs: 1"),
    );
    wait_until(|| {
        dev.stderr
            .lock()
            .expect("no panic")
            .contains("has no field `specs`")
    });
    let fixed = document.replace("wait: {timeout: 60s}", "wait: {timeout: 61s}");
    project.write("portolan.yaml", &fixed);
    dev.wait_for_deployment();
    project.write(
        "deploy/more.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n",
    );
    dev.wait_for_deployment();
    assert_eq!(bed.replica_sets(namespace), 3);

    assert!(bed.has_deployment(namespace));
    assert_eq!(dev.end(), Some(130));
    assert!(!bed.has_deployment(namespace));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    let scratch: Vec<_> = walk(&project.path(".portolan"))
        .into_iter()
        .filter(|path| path.contains("scratch/") || path.contains(".part"))
        .collect();
    assert_eq!(scratch, Vec::<String>::new());
    assert_session_is_kept(&project, &second);
}

/// The first run of a session has what happened beside its runs: copied files and forwarded ports.
fn assert_session_is_kept(project: &Project, pod: &str) {
    let runs = fs::read_dir(project.path(".portolan/portolan/runs")).expect("runs");
    let names = runs.flatten().map(|run| run.file_name().into_string());
    let session = names.map(|name| name.expect("UTF-8")).min();
    let answer = project.run(&["events", "--run", &session.expect("a run")]);
    assert_eq!(answer.code, 0, "{answer}");
    let lines = answer.stdout.lines();
    let events: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for (key, kind) in [
        ("forward/service/web", "forwarding"),
        ("forward/service/web", "forwardedTo"),
        ("sync/web", "synced"),
        ("sync/web", "syncTrouble"),
    ] {
        let is_it = |event: &&Value| event["key"] == key && event["data"]["type"] == kind;
        assert!(
            events.iter().any(|event| is_it(&event)),
            "{key} {kind}: {answer}"
        );
    }
    let is_pod = |event: &Value| event["data"]["pod"] == pod;
    assert!(events.iter().any(is_pod), "{answer}");
}

fn walk(directory: &std::path::Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path.display().to_string());
        }
    }
    files
}

/// The limits of a user namespace are its own, so the machine's are not touched.
#[test]
fn files_are_compared_when_the_system_cannot_watch_so_many_directories() {
    let namespace = "dev-polling";
    let Some(bed) = Bed::start(namespace) else {
        return;
    };
    let project = project(namespace, server("nobody"), "");
    let dev = command(&project, &bed, &["--cleanup", "--no-cleanup"]);
    let mut limited = Command::new("unshare");
    limited
        .args([
            "-Ur",
            "sh",
            "-c",
            "echo 1 > /proc/sys/user/max_inotify_watches && exec \"$@\"",
            "sh",
        ])
        .arg(dev.get_program())
        .args(dev.get_args())
        .current_dir(project.directory.path());
    let mut dev = Dev::start(limited);
    dev.wait_for_deployment();
    let polling = dev.wait_for("event", |event| event["type"] == "polling");
    assert!(polling["why"].is_string(), "{polling}");
    project.write("web/index.html", "another page");
    dev.wait_for_deployment();
    assert_eq!(bed.replica_sets(namespace), 2);
    // A request to end is as good as Ctrl-C.
    dev.signal("-TERM");
    assert_eq!(wait_until_ended(&mut dev.child), Some(130));
    assert!(bed.has_deployment(namespace));
}

#[test]
fn a_cluster_that_does_not_answer_ends_the_command_before_anything_is_built() {
    let project = project("shop", server("nobody"), "");
    project.write("kubeconfig", "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: \"http://127.0.0.1:1\"}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n");
    let answer = project.run(&["dev", "--kubeconfig", "kubeconfig", "--context", "a"]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(
        answer.stderr.contains("cannot reach the API server"),
        "{answer}"
    );
    assert!(!project.path(".portolan").exists());
}

/// A Kustomization that manages the Deployment of a namespace, as Flux marks it.
fn manage_by_flux(bed: &Bed, namespace: &str) -> Api<kube::api::DynamicObject> {
    use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
    use serde_json::json;
    let dynamic = |group: &str, version: &str, kind: &str| {
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
    };
    let apply = |api: Api<DynamicObject>, object: Value| {
        let name = object["metadata"]["name"]
            .as_str()
            .expect("a name")
            .to_owned();
        let params = PatchParams::apply("kustomize-controller").force();
        wait_until(|| {
            let patch = Patch::Apply(&object);
            bed.runtime
                .block_on(api.patch(&name, &params, &patch))
                .is_ok()
        });
    };
    let client = || bed.client.clone();
    let definitions = dynamic("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    apply(
        Api::all_with(client(), &definitions),
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "kustomizations.kustomize.toolkit.fluxcd.io"},
            "spec": {
                "group": "kustomize.toolkit.fluxcd.io", "scope": "Namespaced",
                "names": {"kind": "Kustomization", "plural": "kustomizations"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }}}],
            },
        }),
    );
    apply(
        Api::all_with(client(), &dynamic("", "v1", "Namespace")),
        json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
        }),
    );
    let kustomizations = dynamic("kustomize.toolkit.fluxcd.io", "v1", "Kustomization");
    let kustomizations = Api::namespaced_with(client(), namespace, &kustomizations);
    apply(
        kustomizations.clone(),
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "apps"}, "spec": {"path": "./apps"},
        }),
    );
    let services = Api::namespaced_with(client(), namespace, &dynamic("", "v1", "Service"));
    apply(
        services,
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "labels": {
                "kustomize.toolkit.fluxcd.io/name": "apps",
                "kustomize.toolkit.fluxcd.io/namespace": namespace,
            }},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        }),
    );
    kustomizations
}

/// Whether the session ends by itself or is killed, what it suspended runs again.
#[test]
fn what_flux_manages_is_suspended_only_when_asked_and_resumed_even_after_a_kill() {
    let namespace = "dev-flux";
    let Some(bed) = Bed::start(namespace) else {
        return;
    };
    let kustomizations = manage_by_flux(&bed, namespace);
    let is_suspended = || {
        let found = bed.runtime.block_on(kustomizations.get("apps"));
        found.expect("a Kustomization").data["spec"]["suspend"] == true
    };
    let project = project(namespace, server("nobody"), "");
    let document = fs::read_to_string(project.path("portolan.yaml")).expect("a document");
    let adopting = document.replace("{name: app,", "{name: app, adopt: true,");
    project.write("portolan.yaml", &adopting);
    let refused = command(&project, &bed, &[]).output().expect("a program");
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("the Kustomization dev-flux/apps manages objects of this project"),
        "{stderr}"
    );
    assert!(stderr.contains("hint: `--suspend-flux`"), "{stderr}");
    assert!(!is_suspended());

    let dev = Dev::start(command(&project, &bed, &["--suspend-flux"]));
    dev.wait_for_deployment();
    assert!(is_suspended());
    assert_eq!(dev.end(), Some(130));
    assert!(!is_suspended());

    let mut dev = Dev::start(command(&project, &bed, &["--suspend-flux"]));
    dev.wait_for("deployment", |event| event["type"] == "deployed");
    assert!(is_suspended());
    dev.signal("-KILL");
    assert_eq!(wait_until_ended(&mut dev.child), None);
    wait_until(|| !is_suspended());
    wait_until(|| {
        let files = fs::read_dir(project.path(".portolan")).expect("a store");
        let mut names = files.flatten().map(|entry| entry.file_name());
        !names.any(|name| name.to_string_lossy().starts_with("dev-suspended-"))
    });
}

/// Sends a request to Skaffold's API, and returns the status and the body.
fn skaffold(port: u16, line: &str, body: &str) -> (u16, String) {
    let Ok(mut socket) = TcpStream::connect(("127.0.0.1", port)) else {
        return (0, String::new());
    };
    let _ = socket.set_read_timeout(Some(Duration::from_secs(20)));
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let _ = socket.write_all(request.as_bytes());
    let mut answer = String::new();
    let _ = socket.read_to_string(&mut answer);
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.unwrap_or(0), body.to_owned())
}

/// A client of Skaffold's switches automatic builds off: saved files wait until it asks for a build. Tests run after each
/// build and verifications after each deployment; a test that fails keeps its artifact out of the cluster.
#[test]
fn clients_of_skaffold_say_when_a_dev_loop_builds_and_deploys() {
    let namespace = "dev-skaffold";
    let Some(bed) = Bed::start(namespace) else {
        return;
    };
    let local = free_port();
    let checks = "  tests:\n  - {name: page, artifacts: [web], command: {run: [sh, -c, '! grep -q broken web/index.html']}}\n  verify:\n  - {name: there, command: {run: ['true']}}\n";
    let forward = format!(
        "  dev: {{sync: [{{artifact: web, from: 'static/**', to: /srv}}], forward: [{{resource: service/web, port: 80, local: {local}}}]}}\n"
    );
    let project = project(
        namespace,
        server("from the pod"),
        &format!("{checks}{forward}"),
    );
    let port = free_port();
    let dev = Dev::start(command(
        &project,
        &bed,
        &["--rpc-http-port", &port.to_string()],
    ));
    dev.wait_for("test", |event| {
        event["type"] == "tested" && event["results"][0]["status"] == "passed"
    });
    dev.wait_for_deployment();
    dev.wait_for("verification", |event| {
        event["type"] == "verified" && event["results"][0]["status"] == "passed"
    });
    let state = || -> Value {
        serde_json::from_str(&skaffold(port, "GET /v2/state", "").1).unwrap_or_default()
    };
    let image = "registry.example/shop/web";
    assert_eq!(state()["buildState"]["autoTrigger"], true);
    assert_eq!(state()["buildState"]["artifacts"][image], "Complete");
    assert_eq!(state()["deployState"]["status"], "Complete");
    wait_until(|| state()["verifyState"]["status"] == "Complete");
    // What happens beside builds is in the state as well.
    let forwarded = || state()["forwardedPorts"][local.to_string()].clone();
    wait_until(|| forwarded()["resourceName"] == "web");
    assert_eq!(forwarded()["targetPort"]["intVal"], 80);
    assert_eq!(state()["fileSyncState"]["status"], "NotStarted");
    project.write("web/static/a.css", "a {}");
    wait_until(|| state()["fileSyncState"]["status"] == "Complete");

    let put =
        |stage: &str, body: &str| skaffold(port, &format!("PUT /v2/{stage}/auto_execute"), body);
    let off = r#"{"enabled":false}"#;
    assert_eq!(put("build", off).0, 200);
    assert_eq!(put("build", off).0, 409, "it is off already");
    assert_eq!(state()["buildState"]["autoTrigger"], false);
    assert_eq!(put("build", "{}").0, 400);
    assert_eq!(skaffold(port, "POST /v2/execute", "{}").0, 400);

    // Saved and not built, while a step that changes is still deployed.
    project.write("web/index.html", "another page");
    project.write(
        "deploy/more.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n",
    );
    dev.wait_for_deployment();
    assert_eq!(bed.replica_sets(namespace), 1, "the page was not built");
    let (status, body) = skaffold(port, "POST /v2/execute", r#"{"build":true}"#);
    assert_eq!(status, 200, "{body}");
    dev.wait_for_deployment();
    assert_eq!(bed.replica_sets(namespace), 2);

    // A test that fails: built, and not deployed.
    assert_eq!(put("build", r#"{"enabled":true}"#).0, 200);
    project.write("web/index.html", "broken");
    dev.wait_for("failed test", |event| {
        event["type"] == "tested" && event["results"][0]["status"] == "failed"
    });
    project.write("web/index.html", "whole again");
    dev.wait_for_deployment();
    assert_eq!(bed.replica_sets(namespace), 3);
    assert_eq!(dev.end(), Some(130));
}
