//! Members on real sockets.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use portolan_clock::{BootClock, Clock};
use portolan_detect::{
    CellKey, CellKeys, GossipCommand, GossipCounters, GossipMember, GossipPorts, GossipStatus,
    NodeUid, PeerIdentity, Roster, run_gossip,
};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Ten times what is needed on an idle machine.
const SOON: Duration = Duration::from_mins(2);

struct RunningMember {
    identity: PeerIdentity,
    commands: mpsc::Sender<GossipCommand>,
    status: watch::Receiver<GossipStatus>,
    is_stopped: Arc<AtomicBool>,
    cancel: CancellationToken,
    task: JoinHandle<GossipCounters>,
}

fn uid(node: u8) -> NodeUid {
    NodeUid([node; 16])
}

/// Polls a future only while it is not stopped, as a process that gets SIGSTOP: what arrives waits in the socket.
async fn stoppable<T>(is_stopped: Arc<AtomicBool>, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut look = tokio::time::interval(Duration::from_millis(20));
    std::future::poll_fn(move |context| {
        while look.poll_tick(context).is_ready() {}
        if is_stopped.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        future.as_mut().poll(context)
    })
    .await
}

async fn start(node: u8, key: &CellKey) -> RunningMember {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let address = socket.local_addr().expect("it is bound");
    let identity = PeerIdentity::new(uid(node), 1, address);
    let keys = CellKeys::one(key.clone());
    let member = GossipMember::new(identity, keys, rand::random(), BootClock.now());
    let (commands, receiver) = mpsc::channel(8);
    let first = GossipStatus {
        report: member.report(),
        counters: member.counters(),
    };
    let (sender, status) = watch::channel(first);
    let (cancel, is_stopped) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
    let ports = GossipPorts {
        commands: receiver,
        status: sender,
        cancel: cancel.clone(),
    };
    let gate = Arc::clone(&is_stopped);
    let task = tokio::spawn(async move {
        stoppable(gate, run_gossip(&socket, &BootClock, member, ports)).await
    });
    RunningMember {
        identity,
        commands,
        status,
        is_stopped,
        cancel,
        task,
    }
}

async fn cell(size: u8) -> Vec<RunningMember> {
    let key = CellKey::new(&CellKey::generate());
    let mut members = Vec::new();
    for node in 0..size {
        members.push(start(node, &key).await);
    }
    let roster = Roster::new(members.iter().map(|member| member.identity).collect());
    for member in &members {
        let command = GossipCommand::Roster(roster.clone());
        member.commands.send(command).await.expect("it runs");
    }
    members
}

impl RunningMember {
    async fn wait(&mut self, what: &str, is_so: impl FnMut(&GossipStatus) -> bool) {
        let waited = tokio::time::timeout(SOON, self.status.wait_for(is_so)).await;
        assert!(waited.is_ok_and(|changed| changed.is_ok()), "{what}");
    }

    fn accuses(&self, node: u8) -> bool {
        self.status.borrow().report.accused.contains(&uid(node))
    }
}

async fn end(members: Vec<RunningMember>) -> Vec<GossipCounters> {
    let mut counters = Vec::new();
    for member in members {
        member.is_stopped.store(false, Ordering::Relaxed);
        member.cancel.cancel();
        counters.push(member.task.await.expect("it ends"));
    }
    counters
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = tokio::time::Instant::now();
    while !is_so() {
        assert!(started.elapsed() < SOON, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_member_is_accused_by_several_and_forgiven_when_it_goes_on() {
    let mut members = cell(30).await;
    members[7].is_stopped.store(true, Ordering::Relaxed);
    until("three accuse it", || {
        members.iter().filter(|member| member.accuses(7)).count() >= 3
    })
    .await;
    members[7].is_stopped.store(false, Ordering::Relaxed);
    members[7]
        .wait("it knows that it was stopped", |status| {
            status.report.is_degraded
        })
        .await;
    until("all withdraw", || {
        !members.iter().any(|member| member.accuses(7))
    })
    .await;
    let counters = end(members).await;
    assert!(counters[7].stalls > 0);
    let bad = counters
        .iter()
        .map(|each| each.forged + each.other_cell + each.malformed + each.strangers);
    assert_eq!(bad.sum::<u64>(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_a_server_finds_one_through_its_peers() {
    let mut members = cell(6).await;
    for member in &members[1..] {
        let command = GossipCommand::Server(Some("fleet.example:8443".to_owned()));
        member.commands.send(command).await.expect("it runs");
    }
    members[0]
        .commands
        .send(GossipCommand::Server(None))
        .await
        .expect("it runs");
    members[0]
        .wait("a peer tells it", |status| {
            status.report.servers == ["fleet.example:8443"]
        })
        .await;
    end(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_and_packets_of_another_cell_are_dropped_and_counted() {
    let members = cell(2).await;
    let target = members[0].identity.address();
    let stranger = start(9, &CellKey::new(&CellKey::generate())).await;
    let roster = Roster::new(vec![members[0].identity]);
    stranger
        .commands
        .send(GossipCommand::Roster(roster))
        .await
        .expect("it runs");
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let packets: [&[u8]; 4] = [b"", b"x", &[1; 64], &[0; 2_000]];
    let mut seen = BTreeSet::new();
    for packet in packets {
        socket.send_to(packet, target).await.expect("it is sent");
        seen.insert(packet.len());
    }
    // It is probed by the stranger, who gets no answer.
    let mut stranger = stranger;
    stranger
        .wait("nobody answers", |status| status.report.accused == [uid(0)])
        .await;
    let counters = end(members).await;
    assert!(counters[0].other_cell >= 2, "{:?}", counters[0]);
    assert!(counters[0].malformed >= 3, "{:?}", counters[0]);
    end(vec![stranger]).await;
    assert_eq!(seen.len(), 4);
}
