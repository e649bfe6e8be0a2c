//! What a member that lies, and somebody who repeats packets, can bring about: with the key of the cell, by hand.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::BufMut;
use foca::{Codec, Member, State};
use rand::SeedableRng;
use rand::rngs::StdRng;
use zeroize::Zeroizing;

use super::*;
use crate::packet::{Envelope, mark_of, mark_of_node};
use crate::seal::CellKey;

const TICK: Duration = Duration::from_millis(100);

/// Members in one process, whose packets arrive at the next tick.
struct Table {
    members: Vec<GossipMember>,
    now: Duration,
    packets: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Everything that was ever sent, with its sender's number.
    recorded: Vec<(usize, SocketAddr, Vec<u8>)>,
    dead: Option<usize>,
}

fn keys() -> CellKeys {
    CellKeys::one(CellKey::new(&Zeroizing::new([5; 32])))
}

fn uid(node: usize) -> NodeUid {
    NodeUid([node as u8 + 1; 16])
}

fn identity(node: usize, generation: u32) -> PeerIdentity {
    let address = SocketAddr::from(([10, 0, 0, node as u8], 7946));
    PeerIdentity::new(uid(node), generation, address)
}

impl Table {
    fn new(size: usize) -> Self {
        let roster = Roster::new((0..size).map(|node| identity(node, 1)).collect());
        let mut table = Self {
            members: Vec::new(),
            now: Duration::ZERO,
            packets: VecDeque::new(),
            recorded: Vec::new(),
            dead: None,
        };
        for node in 0..size {
            let seed = [node as u8; 32];
            let mut member = GossipMember::new(identity(node, 1), keys(), seed, table.now);
            member.set_roster(table.now, &roster, &mut |_, _| {});
            table.members.push(member);
        }
        table
    }

    fn tick(&mut self) {
        self.now += TICK;
        let arriving = std::mem::take(&mut self.packets);
        for (to, packet) in arriving {
            let SocketAddr::V4(to) = to else { continue };
            let node = usize::from(to.ip().octets()[3]);
            self.act(node, |member, now, send| {
                member.handle_packet(now, &packet, send);
            });
        }
        for node in 0..self.members.len() {
            self.act(node, |member, now, send| member.poll(now, send));
        }
    }

    fn act(
        &mut self,
        node: usize,
        work: impl FnOnce(&mut GossipMember, Duration, &mut dyn FnMut(SocketAddr, &[u8])),
    ) {
        if self.dead == Some(node) || node >= self.members.len() {
            return;
        }
        let (packets, recorded) = (&mut self.packets, &mut self.recorded);
        work(&mut self.members[node], self.now, &mut |to, packet| {
            packets.push_back((to, packet.to_vec()));
            recorded.push((node, to, packet.to_vec()));
        });
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.tick();
        }
    }

    fn accusers_of(&self, node: usize) -> usize {
        let reports = self.members.iter().map(GossipMember::report);
        reports
            .filter(|report| report.accused.contains(&uid(node)))
            .count()
    }

    /// A packet that says whatever its author likes, sealed with the key of the cell.
    fn forge(&mut self, number: u32, sender: PeerIdentity, to: usize, body: &Body<'_>) {
        let envelope = Envelope {
            is_degraded: false,
            number,
            receiver: mark_of(&self.members[to].side.own),
            sender,
        };
        let (mut plain, mut packet) = (Vec::new(), Vec::new());
        packet::write(&envelope, body, &mut plain);
        let mut rng = StdRng::seed_from_u64(u64::from(number));
        keys().seal(&mut rng, &plain, &mut packet);
        self.packets.push_back((identity(to, 1).address(), packet));
    }
}

/// Gossip that says something of one member.
fn rumour(about: PeerIdentity, incarnation: u16, state: State) -> Vec<u8> {
    let mut rest = vec![0, 0, 9, 0, 1];
    let update = Member::new(about, incarnation, state);
    PeerCodec
        .encode_member(&update, &mut rest)
        .expect("there is room");
    rest
}

#[test]
fn a_liar_makes_no_honest_member_accuse() {
    let (liar, victim) = (0, 1);
    let mut table = Table::new(12);
    table.run(Duration::from_secs(5));
    let generation = |table: &Table| table.members[victim].report().identity.generation;
    let mut number = 1_000_000;
    for round in 0..900_u32 {
        let current = generation(&table);
        let elsewhere = SocketAddr::from(([10, 0, 0, 99], 1));
        let lies = [
            rumour(identity(victim, current), round as u16, State::Down),
            rumour(identity(victim, current), round as u16, State::Suspect),
            rumour(identity(victim, current + 7), 0, State::Alive),
            rumour(
                PeerIdentity::new(uid(victim), current + 9, elsewhere),
                0,
                State::Alive,
            ),
            rumour(identity(victim, u32::MAX), 0, State::Alive),
        ];
        let lie = &lies[round as usize % lies.len()];
        for to in 2..12 {
            number += 1;
            table.forge(number, identity(liar, 1), to, &Body::Swim(lie));
            // Uses up the numbers of the victim's own packets.
            table.forge(u32::MAX, identity(victim, current), to, &Body::Swim(lie));
        }
        table.tick();
        let honest = table.members[2..].iter();
        let fooled = honest.filter(|member| !member.report().accused.is_empty());
        assert_eq!(fooled.count(), 0, "round {round}");
    }
    assert!(
        generation(&table) > 1,
        "the victim has outdone its false selves"
    );
    table.run(Duration::from_mins(10));
    let seen_by = table
        .members
        .iter()
        .filter(|member| member.sees(uid(victim)));
    assert_eq!(seen_by.count(), 11, "and is seen by all when the lies end");
}

#[test]
fn a_liar_cannot_keep_a_dead_node_from_being_accused() {
    let (liar, victim) = (0, 1);
    let mut table = Table::new(12);
    table.run(Duration::from_secs(5));
    table.dead = Some(victim);
    let mut number = 1_000_000;
    for round in 0..300_u32 {
        let alive = rumour(identity(victim, 1), round as u16, State::Alive);
        let down = rumour(identity(victim, 1 + round), 0, State::Down);
        for to in 2..12 {
            number += 2;
            let lie = if round % 2 == 0 { &alive } else { &down };
            table.forge(number, identity(liar, 1), to, &Body::Swim(lie));
            // As if the dead node spoke, and answered questions that it was never asked.
            table.forge(
                number,
                identity(victim, 1 + round),
                to,
                &Body::CheckAnswer(7),
            );
        }
        table.tick();
    }
    let accusers = table.accusers_of(victim);
    assert!(accusers >= 3, "{accusers}");
}

#[test]
fn packets_that_are_sent_again_are_refused_and_raise_nobody_from_the_dead() {
    let victim = 1;
    let mut table = Table::new(10);
    table.run(Duration::from_mins(1));
    table.dead = Some(victim);
    let old: Vec<_> = table
        .recorded
        .iter()
        .filter(|(from, _, _)| *from == victim)
        .cloned()
        .collect();
    assert!(old.len() > 50, "{}", old.len());
    for _ in 0..30 {
        for (_, to, packet) in &old {
            table.packets.push_back((*to, packet.clone()));
        }
        table.run(Duration::from_secs(1));
    }
    assert!(table.accusers_of(victim) >= 3);
    let counters = table.members.iter().map(GossipMember::counters);
    let replayed: u64 = counters.map(|counters| counters.replayed).sum();
    assert!(replayed as usize >= old.len() * 25, "{replayed}");
}

#[test]
fn a_member_that_was_restarted_ignores_what_was_sent_to_it_before() {
    let mut table = Table::new(6);
    table.run(Duration::from_secs(30));
    let old = table.recorded.clone();
    let roster = Roster::new((0..6).map(|node| identity(node, 1)).collect());
    let mut restarted = GossipMember::new(identity(2, 2), keys(), [99; 32], table.now);
    restarted.set_roster(table.now, &roster, &mut |_, _| {});
    let before = restarted.report();
    let to_it = old
        .iter()
        .filter(|(_, to, _)| *to == identity(2, 1).address());
    for (_, _, packet) in to_it {
        restarted.handle_packet(table.now, packet, &mut |_, _| {});
    }
    let counters = restarted.counters();
    assert!(counters.misdirected > 20, "{counters:?}");
    assert_eq!(restarted.report(), before, "{counters:?}");
}

#[test]
fn what_is_cut_short_or_too_long_or_for_others_is_dropped_and_counted() {
    let mut table = Table::new(4);
    table.run(Duration::from_secs(3));
    let (_, to, packet) = table.recorded[0].clone();
    let SocketAddr::V4(to) = to else {
        panic!("addresses of version 4")
    };
    let receiver = usize::from(to.ip().octets()[3]);
    let member = &mut table.members[receiver];
    let before = member.counters();
    member.handle_packet(table.now, &packet[..20], &mut |_, _| {});
    member.handle_packet(table.now, &vec![1; 9_000], &mut |_, _| {});
    let mut forged = packet.clone();
    forged[30] ^= 1;
    member.handle_packet(table.now, &forged, &mut |_, _| {});
    member.handle_packet(table.now, &packet, &mut |_, _| {});
    let after = member.counters();
    assert_eq!(after.malformed - before.malformed, 2);
    assert_eq!(after.forged - before.forged, 1);
    assert_eq!(after.replayed - before.replayed, 1);
    let other = (receiver + 1) % 4;
    let before = table.members[other].counters();
    table.members[other].handle_packet(table.now, &packet, &mut |_, _| {});
    let after = table.members[other].counters();
    // Its own packet may come back to the one who sent it.
    assert_eq!(after.misdirected - before.misdirected, 1);
}

#[test]
fn a_member_that_was_held_up_says_so_and_takes_it_from_nobody() {
    let mut table = Table::new(8);
    table.run(Duration::from_secs(10));
    // Member 3 gets neither packets nor time for 4 s.
    table.dead = Some(3);
    table.run(Duration::from_secs(4));
    table.dead = None;
    table.run(Duration::from_secs(2));
    let report = table.members[3].report();
    assert!(report.is_degraded);
    assert!(
        report.accused.is_empty(),
        "its own silence is not that of others"
    );
    let told = table
        .members
        .iter()
        .filter(|member| member.side.is_degraded_peer(uid(3)));
    assert!(told.count() >= 2);
    table.run(Duration::from_secs(40));
    assert!(!table.members[3].report().is_degraded);
    assert_eq!(table.accusers_of(3), 0);
}

#[test]
fn every_packet_fits_into_what_every_network_carries() {
    let mut table = Table::new(200);
    table.run(Duration::from_secs(3));
    // Somebody joins, and is told of as many as fit.
    let mut rest = vec![0, 0];
    rest.put_u8(7);
    let mark = mark_of_node(uid(0));
    let envelope = Envelope {
        is_degraded: false,
        number: 1,
        receiver: mark,
        sender: identity(201, 1),
    };
    let (mut plain, mut packet) = (Vec::new(), Vec::new());
    packet::write(&envelope, &Body::Swim(&rest), &mut plain);
    keys().seal(&mut StdRng::seed_from_u64(1), &plain, &mut packet);
    let mut largest = 0;
    table.members[0].handle_packet(table.now, &packet, &mut |_, sent| {
        largest = sent.len().max(largest);
    });
    assert!(
        (1_000..=crate::seal::MAX_PACKET_BYTES).contains(&largest),
        "{largest}"
    );
}
