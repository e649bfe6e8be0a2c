//! Streams of pods through a real API server: logs, commands and port forwards, also when connections break.

mod proxy;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portolan_cluster::{
    Access, ApplyOptions, Cluster, ClusterError, ForwardEvent, ForwardOptions, LogEvent,
    PodCommand, PodLog, PodLogOptions, PodOutput, PodTarget, Resource, TargetPod,
};
use portolan_testbed::cluster::{
    Cluster as TestCluster, Kubelet, KubeletSetup, NodeEndpoint, PORT_ANNOTATION, PodDirectory,
    eventually,
};
use proxy::Proxy;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const OURS: ApplyOptions<'_> = ApplyOptions {
    manager: "ours",
    force: false,
    dry_run: false,
};

/// How long a stream may take to bring what it is waited for.
const DEADLINE: Duration = Duration::from_secs(45);

/// A namespace whose pods have streams.
struct Bed {
    cluster: Cluster,
    test_cluster: &'static TestCluster,
    namespace: &'static str,
    endpoint: NodeEndpoint,
    _kubelet: Kubelet,
}

impl Bed {
    async fn start(namespace: &'static str) -> Option<Self> {
        let test_cluster = TestCluster::shared().await?;
        let endpoint = test_cluster.node_endpoint()?;
        let cluster = connect(test_cluster.kubeconfig_path()).await;
        let namespaces = Resource::without_namespace("v1", "Namespace", "namespaces");
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let made = cluster.apply(&namespaces, &object, OURS).await;
        made.expect("a namespace");
        let setup = KubeletSetup {
            nodes: 1,
            endpoint: Some(endpoint.clone()),
            ..KubeletSetup::default()
        };
        let client = test_cluster.client().await;
        Some(Self {
            cluster,
            test_cluster,
            namespace,
            endpoint,
            _kubelet: Kubelet::start(client, Some(namespace), setup),
        })
    }

    async fn apply(&self, resource: &Resource, mut object: Value) {
        object["metadata"]["namespace"] = json!(self.namespace);
        let applied = self.cluster.apply(resource, &object, OURS).await;
        applied.expect("applied");
    }

    async fn run_pod(&self, name: &str) -> (TargetPod, PodDirectory) {
        let pods = Resource::in_namespaces("v1", "Pod", "pods");
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        });
        self.apply(&pods, pod).await;
        let target = self.target(&format!("pod/{name}"));
        eventually("the pod", || async {
            self.cluster.ready_pod(&target).await.is_ok()
        })
        .await;
        let pod = self.cluster.ready_pod(&target).await.expect("a pod");
        (pod, self.endpoint.pod(self.namespace, name))
    }

    async fn delete_pod(&self, pod: &TargetPod) {
        let pods = Resource::in_namespaces("v1", "Pod", "pods");
        let place = (self.namespace, pod.name.as_str());
        let deleted = self.cluster.delete(&pods, place, &pod.uid).await;
        assert!(deleted.expect("deleted"));
    }

    fn target(&self, text: &str) -> PodTarget {
        PodTarget::parse(self.namespace, text).expect("a target")
    }

    /// The same cluster through a connection that can be cut.
    async fn through_proxy(&self) -> (Cluster, Proxy) {
        let proxy = Proxy::start(self.test_cluster.url()).await;
        let kubeconfig = self.test_cluster.kubeconfig();
        let kubeconfig = kubeconfig.replace(self.test_cluster.url(), &proxy.url());
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("kubeconfig");
        std::fs::write(&path, kubeconfig).expect("a file");
        (connect(path).await, proxy)
    }
}

async fn connect(kubeconfig: std::path::PathBuf) -> Cluster {
    let access = Access {
        kubeconfig: Some(kubeconfig),
        ..Access::default()
    };
    Cluster::connect(&access).await.expect("a cluster")
}

async fn next(log: &mut PodLog) -> Option<String> {
    let next = tokio::time::timeout(DEADLINE, log.next()).await;
    let event = next.expect("the log says nothing").expect("a log");
    event.map(|event| match event {
        LogEvent::Line(line) => String::from_utf8_lossy(&line).into_owned(),
        LogEvent::Gap(_) => "GAP".to_owned(),
    })
}

async fn all(mut log: PodLog) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(line) = next(&mut log).await {
        lines.push(line);
    }
    lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_read_whole_in_part_and_before_the_last_restart() {
    let Some(bed) = Bed::start("logs").await else {
        return;
    };
    let (pod, directory) = bed.run_pod("web").await;
    for line in ["one", "two", "three"] {
        directory.print("web", line);
    }
    let log = |options: PodLogOptions| all(bed.cluster.pod_log(&pod, options));
    let everything = PodLogOptions::default();
    assert_eq!(log(everything.clone()).await, ["one", "two", "three"]);
    let tail = PodLogOptions {
        tail: Some(1),
        ..everything.clone()
    };
    assert_eq!(log(tail).await, ["three"]);
    directory.restart("web");
    directory.print("web", "again");
    assert_eq!(log(everything.clone()).await, ["again"]);
    let previous = PodLogOptions {
        previous: true,
        ..everything.clone()
    };
    assert_eq!(log(previous).await, ["one", "two", "three"]);
    let recent = PodLogOptions {
        since: Some(Duration::from_mins(10)),
        ..everything.clone()
    };
    assert_eq!(log(recent).await, ["again"]);
    let other = PodLogOptions {
        container: Some("other".to_owned()),
        ..everything
    };
    let mut log = bed.cluster.pod_log(&pod, other);
    let error = log.next().await.expect_err("no such container");
    assert!(error.to_string().contains("other"), "{error}");
}

/// Connections are cut while lines are printed: each line comes once, in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_followed_log_goes_on_where_its_connection_broke_and_ends_with_the_pod() {
    let Some(bed) = Bed::start("followed").await else {
        return;
    };
    let (pod, directory) = bed.run_pod("web").await;
    let (cluster, proxy) = bed.through_proxy().await;
    let options = PodLogOptions {
        follow: true,
        ..PodLogOptions::default()
    };
    let mut log = cluster.pod_log(&pod, options);
    for round in 0..4 {
        directory.print("web", &format!("a{round}"));
        assert_eq!(next(&mut log).await, Some(format!("a{round}")));
        proxy.refuse();
        directory.print("web", &format!("b{round}"));
        directory.print("web", &format!("c{round}"));
        proxy.admit();
        assert_eq!(next(&mut log).await, Some(format!("b{round}")));
        assert_eq!(next(&mut log).await, Some(format!("c{round}")));
    }
    proxy.refuse();
    directory.print("web", "lost");
    directory.restart("web");
    directory.print("web", "fresh");
    proxy.admit();
    assert_eq!(next(&mut log).await.as_deref(), Some("GAP"));
    assert_eq!(next(&mut log).await.as_deref(), Some("fresh"));
    bed.delete_pod(&pod).await;
    assert_eq!(next(&mut log).await, None);
}

/// Everything that a command printed.
#[derive(Default, Debug, PartialEq)]
struct Printed {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

async fn run(
    cluster: &Cluster,
    pod: &TargetPod,
    command: &[&str],
    input: Option<&[u8]>,
) -> (Result<i32, ClusterError>, Printed) {
    let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
    let command = PodCommand {
        container: None,
        command: &command,
    };
    let mut printed = Printed::default();
    let mut input = input;
    let reader = input.as_mut().map(|input| input as _);
    let ran = cluster.run_in_pod(pod, command, reader, |output| match output {
        PodOutput::Stdout(bytes) => printed.stdout.extend_from_slice(bytes),
        PodOutput::Stderr(bytes) => printed.stderr.extend_from_slice(bytes),
    });
    let ran = tokio::time::timeout(DEADLINE, ran).await;
    (ran.expect("the command does not end"), printed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_gets_its_input_and_gives_its_output_and_exit_code() {
    let Some(bed) = Bed::start("commands").await else {
        return;
    };
    let (pod, directory) = bed.run_pod("web").await;
    let script = "cat; echo problem >&2; echo file > /written; exit 7";
    let (code, printed) = run(&bed.cluster, &pod, &["sh", "-c", script], Some(b"hello")).await;
    assert_eq!(code.expect("an exit code"), 7);
    assert_eq!(printed.stdout, b"hello");
    assert_eq!(printed.stderr, b"problem\n");
    let written = std::fs::read_to_string(directory.root().join("written"));
    assert_eq!(written.expect("a file of the pod"), "file\n");
    let (code, _) = run(&bed.cluster, &pod, &["true"], None).await;
    assert_eq!(code.expect("an exit code"), 0);
    // More than all buffers on the way hold, in both directions at once.
    let large: Vec<u8> = (0..8 * 1024 * 1024_u32)
        .map(|number| number as u8)
        .collect();
    let (code, printed) = run(&bed.cluster, &pod, &["cat"], Some(&large)).await;
    assert_eq!(code.expect("an exit code"), 0);
    assert!(printed.stdout == large, "{} bytes", printed.stdout.len());
    // A command that does not read its input.
    let (code, _) = run(&bed.cluster, &pod, &["true"], Some(&large)).await;
    assert_eq!(code.expect("an exit code"), 0);
    let (code, printed) = run(&bed.cluster, &pod, &["no-such-program"], None).await;
    assert_eq!(code.expect("an exit code"), 127);
    assert!(!printed.stderr.is_empty());
    let mut nobody = pod.clone();
    nobody.name = "nobody".to_owned();
    let (error, _) = run(&bed.cluster, &nobody, &["true"], None).await;
    let error = error.expect_err("no such pod");
    assert!(error.is_missing(), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_connection_breaks_is_told_as_perhaps_still_running() {
    let Some(bed) = Bed::start("interrupted").await else {
        return;
    };
    let (pod, directory) = bed.run_pod("web").await;
    let (cluster, proxy) = bed.through_proxy().await;
    let script = ["sh", "-c", "touch /begun; exec sleep 60"];
    let running = run(&cluster, &pod, &script, None);
    let cut = async {
        eventually("the command", || async {
            directory.root().join("begun").exists()
        })
        .await;
        proxy.refuse();
    };
    let ((ended, _), ()) = tokio::join!(running, cut);
    let error = ended.expect_err("no exit code");
    assert!(matches!(error, ClusterError::Interrupted { .. }), "{error}");
}

/// A server that answers each line with its own name before it.
fn echo_server(name: &'static str) -> (SocketAddr, JoinHandle<()>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let listener = TcpListener::from_std(listener).expect("a listener");
    let task = tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = socket.read(&mut buffer).await {
                    let answer = [name.as_bytes(), b":", &buffer[..count]].concat();
                    if socket.write_all(&answer).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, task)
}

async fn ask(address: SocketAddr, question: &str) -> io::Result<String> {
    let mut socket = TcpStream::connect(address).await?;
    answer(&mut socket, question).await
}

async fn answer(socket: &mut TcpStream, question: &str) -> io::Result<String> {
    socket.write_all(question.as_bytes()).await?;
    let mut buffer = [0; 4096];
    let read = tokio::time::timeout(DEADLINE, socket.read(&mut buffer)).await;
    let count = read.expect("an answer or an end")?;
    Ok(String::from_utf8_lossy(&buffer[..count]).into_owned())
}

fn deployment(name: &str, port: SocketAddr) -> Value {
    let labels = json!({"app": name});
    let annotation = format!("{PORT_ANNOTATION}8080");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {annotation: port.to_string()}},
                "spec": {"containers": [
                    {"name": "web", "image": "web:1", "ports": [{"name": "http", "containerPort": 8080}]},
                ]},
            },
        },
    })
}

/// A roll-out replaces the pod: what is open ends, and new connections lead to the new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forward_follows_its_service_from_pod_to_pod() {
    let Some(bed) = Bed::start("forwards").await else {
        return;
    };
    let (old, _old_server) = echo_server("old");
    let (new, _new_server) = echo_server("new");
    let deployments = Resource::in_namespaces("apps/v1", "Deployment", "deployments");
    let services = Resource::in_namespaces("v1", "Service", "services");
    bed.apply(&deployments, deployment("web", old)).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]},
    });
    bed.apply(&services, service).await;
    let options = ForwardOptions {
        target: bed.target("service/web"),
        port: 80,
        local: 0,
        max_connections: 8,
    };
    let forward = bed.cluster.port_forward(options).await.expect("a port");
    let address = forward.address();
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    let serving = tokio::spawn(forward.serve(move |event| {
        told.lock().expect("no panic").push(event);
    }));
    // Waits for the pod, and then many at once.
    assert_eq!(ask(address, "hello").await.expect("an answer"), "old:hello");
    let mut sockets = Vec::new();
    for number in 0..8 {
        let mut socket = TcpStream::connect(address).await.expect("a connection");
        let expected = format!("old:{number}");
        let said = answer(&mut socket, &number.to_string()).await;
        assert_eq!(said.expect("an answer"), expected);
        sockets.push(socket);
    }
    let mut held = sockets.pop().expect("a connection");
    assert_eq!(
        answer(&mut held, "still").await.expect("an answer"),
        "old:still"
    );
    // One connection more than there are places waits for an end.
    sockets.push(held);
    let waiting = tokio::spawn(ask(address, "late"));
    assert!(!waiting.is_finished());
    drop(sockets.pop());
    assert_eq!(
        waiting.await.expect("no panic").expect("an answer"),
        "old:late"
    );

    bed.apply(&deployments, deployment("web", new)).await;
    let mut open = sockets.pop().expect("a connection");
    let ended = tokio::time::timeout(DEADLINE, open.read(&mut [0; 16])).await;
    assert!(matches!(ended.expect("an end"), Ok(0) | Err(_)));
    drop(sockets);
    eventually("the new pod", || async {
        ask(address, "hello")
            .await
            .is_ok_and(|said| said == "new:hello")
    })
    .await;
    let pods = events.lock().expect("no panic").clone();
    let pods = pods
        .iter()
        .filter(|event| matches!(event, ForwardEvent::Pod(_)));
    assert_eq!(pods.count(), 2);
    serving.abort();
    let _ = serving.await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_nothing_listens_on_is_told_and_the_forward_goes_on() {
    let Some(bed) = Bed::start("refused").await else {
        return;
    };
    let (pod, directory) = bed.run_pod("web").await;
    let options = ForwardOptions {
        target: bed.target(&format!("pod/{}", pod.name)),
        port: 8080,
        local: 0,
        max_connections: 2,
    };
    let forward = bed.cluster.port_forward(options).await.expect("a port");
    let address = forward.address();
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    let serving = tokio::spawn(forward.serve(move |event| {
        told.lock().expect("no panic").push(event);
    }));
    let refused = ask(address, "hello").await;
    assert!(refused.is_err() || refused.is_ok_and(|said| said.is_empty()));
    eventually("the cause", || async {
        let events = events.lock().expect("no panic");
        events.iter().any(|event| {
            matches!(event, ForwardEvent::Failed(why) if why.contains("nothing listens on port 8080"))
        })
    })
    .await;
    let (server, _task) = echo_server("here");
    directory.listen(8080, &server.to_string());
    assert_eq!(
        ask(address, "hello").await.expect("an answer"),
        "here:hello"
    );
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_without_a_pod_that_is_ready_says_so() {
    let Some(bed) = Bed::start("targets").await else {
        return;
    };
    let services = Resource::in_namespaces("v1", "Service", "services");
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "empty"},
        "spec": {"selector": {"app": "empty"}, "ports": [{"port": 80}]},
    });
    bed.apply(&services, service).await;
    let error = bed.cluster.ready_pod(&bed.target("svc/empty")).await;
    let error = error.expect_err("no pod").to_string();
    assert_eq!(
        error,
        "no pod of `service/empty` in the namespace `targets` is ready: there is none"
    );
    let error = bed.cluster.ready_pod(&bed.target("deploy/none")).await;
    assert!(error.expect_err("no deployment").is_missing());
}
