//! Bytes that members may get: those that others send, and everything near to them.

use std::time::Duration;

use portolan_detect::FuzzedCell;

fn packets() -> [Vec<Vec<u8>>; 2] {
    let time = Duration::from_mins(1);
    [
        FuzzedCell::new().opened_packets(time),
        FuzzedCell::new().sealed_packets(time),
    ]
}

#[test]
fn members_take_what_members_send() {
    let [opened, sealed] = packets();
    assert!(opened.len() > 20 && sealed.len() == opened.len());
    let mut cell = FuzzedCell::new();
    assert!(sealed.iter().all(|packet| cell.takes_sealed(packet)));
    assert!(FuzzedCell::new().takes_opened(&opened[0]));
}

#[test]
fn nothing_that_is_near_to_a_packet_does_harm() {
    let [opened, _] = packets();
    for packet in opened.iter().take(8) {
        for at in 0..packet.len() {
            FuzzedCell::new().takes_opened(&packet[..at]);
            for bit in [0x01, 0x80, 0xff] {
                let mut changed = packet.clone();
                changed[at] ^= bit;
                FuzzedCell::new().takes_opened(&changed);
            }
        }
    }
}

#[test]
fn no_bit_of_a_sealed_packet_can_be_changed() {
    let [_, sealed] = packets();
    for at in 0..sealed[0].len() {
        let mut changed = sealed[0].clone();
        changed[at] ^= 1;
        assert!(!FuzzedCell::new().takes_sealed(&changed), "byte {at}");
    }
}
