//! The faults: what is broken, for how long, and how it is mended.

use std::time::Duration;

use portolan_store::etcd::Etcd;
use portolan_testbed::{EtcdCluster, Place};
use tokio::time::Instant;

use crate::clients::Clients;

/// A fault. The leader is the one when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    KillLeader,
    KillFollower,
    KillAll,
    PauseFollower,
    PauseLeader,
    /// The leader and the other two do not reach each other.
    CutLeaderOff,
    CutFollowerOff,
    /// What the leader sends to the others is lost; it hears them.
    LeaderIsNotHeard,
    /// What the others send to the leader is lost; they hear it.
    LeaderHearsNothing,
    /// Clients reach the members, whose answers are lost.
    AnswersAreLost,
    /// Clients do not reach the leader; its other connections work.
    RequestsAreLost,
    /// The disk of one member is full, then those of all.
    DiskIsFull,
}

/// All kinds.
pub(crate) const FAULTS: [Fault; 12] = [
    Fault::KillLeader,
    Fault::KillFollower,
    Fault::KillAll,
    Fault::PauseFollower,
    Fault::PauseLeader,
    Fault::CutLeaderOff,
    Fault::CutFollowerOff,
    Fault::LeaderIsNotHeard,
    Fault::LeaderHearsNothing,
    Fault::AnswersAreLost,
    Fault::RequestsAreLost,
    Fault::DiskIsFull,
];

/// How long a fault lasts: longer than an election and than a call.
const LASTS: Duration = Duration::from_millis(3_500);
/// For a cluster to elect a leader on a machine that is busy with other things.
const SOON: Duration = Duration::from_mins(1);

impl Fault {
    pub(crate) fn inject(self, cluster: &mut EtcdCluster, leader: usize) {
        let others: Vec<usize> = (0..cluster.len())
            .filter(|number| *number != leader)
            .collect();
        let follower = others[0];
        match self {
            Self::KillLeader => cluster.kill(leader),
            Self::KillFollower => cluster.kill(follower),
            Self::KillAll => (0..cluster.len()).for_each(|number| cluster.kill(number)),
            Self::PauseLeader => cluster.pause(leader),
            Self::PauseFollower => cluster.pause(follower),
            Self::CutLeaderOff => both_ways(cluster, leader),
            Self::CutFollowerOff => both_ways(cluster, follower),
            Self::LeaderIsNotHeard => {
                for other in others {
                    cluster.block(Place::Member(leader), Place::Member(other));
                }
            }
            Self::LeaderHearsNothing => {
                for other in others {
                    cluster.block(Place::Member(other), Place::Member(leader));
                }
            }
            Self::AnswersAreLost => {
                for number in 0..cluster.len() {
                    cluster.block(Place::Member(number), Place::Clients);
                }
            }
            Self::RequestsAreLost => cluster.block(Place::Clients, Place::Member(leader)),
            Self::DiskIsFull => (0..cluster.len()).for_each(|number| cluster.fill_disk(number)),
        }
    }

    /// Waits until the fault has lasted long enough to be noticed.
    pub(crate) async fn last(self, clients: &Clients) {
        if self == Self::DiskIsFull {
            clients.write_until_refused().await;
            return;
        }
        tokio::time::sleep_until(Instant::now() + LASTS).await;
    }

    pub(crate) fn heal(self, cluster: &mut EtcdCluster) {
        for number in 0..cluster.len() {
            cluster.resume(number);
            let member = Place::Member(number);
            let others = (0..number).map(Place::Member).chain([Place::Clients]);
            match self {
                Self::DiskIsFull => cluster.free_disk(number),
                Self::KillLeader
                | Self::KillFollower
                | Self::KillAll
                | Self::PauseLeader
                | Self::PauseFollower => {}
                _ => others.for_each(|other| cluster.unblock(member, other)),
            }
        }
        cluster.restart_ended();
    }
}

fn both_ways(cluster: &EtcdCluster, number: usize) {
    for other in (0..cluster.len()).filter(|other| *other != number) {
        cluster.block(Place::Member(number), Place::Member(other));
        cluster.block(Place::Member(other), Place::Member(number));
    }
}

/// The number of the member that leads.
pub(crate) async fn leader(etcd: &Etcd) -> usize {
    let start = Instant::now();
    loop {
        let members = etcd.members().await;
        if let Some(leader) = members.iter().position(|member| member.is_leader) {
            return leader;
        }
        assert!(start.elapsed() < SOON, "no leader: {members:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
