//! What a spool keeps over crashes, deliveries and overflow.

use camino::Utf8PathBuf;

use super::*;

fn directory() -> (tempfile::TempDir, Utf8PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = Utf8PathBuf::try_from(directory.path().to_owned()).expect("UTF-8");
    (directory, path)
}

fn notice(number: u64, severity: FleetSeverity) -> BeaconNotice {
    BeaconNotice {
        namespace: "default".to_owned(),
        beacon: "conf".to_owned(),
        subject: "file".to_owned(),
        severity,
        time: Timestamp::UNIX_EPOCH,
        summary: format!("event {number}"),
        data: Map::new(),
        run: None,
        during: None,
        id: None,
    }
}

fn numbers(spool: &BeaconSpool) -> Vec<u64> {
    let all = spool.after(0, usize::MAX, usize::MAX);
    all.into_iter().map(|(number, _)| number).collect()
}

#[test]
fn events_and_states_are_there_after_a_restart_until_a_server_has_them() {
    let (_directory, path) = directory();
    let mut spool = BeaconSpool::open(&path).expect("opened");
    let id = spool.id().to_owned();
    let remembered = BeaconState::default();
    spool
        .tell_and_remember(
            &notice(1, FleetSeverity::Info),
            ("a".to_owned(), remembered),
        )
        .expect("told");
    spool
        .tell(&[
            notice(2, FleetSeverity::Info),
            notice(3, FleetSeverity::Error),
        ])
        .expect("told");
    let mut spool = BeaconSpool::open(&path).expect("opened again");
    assert_eq!((spool.id(), numbers(&spool)), (&*id, vec![1, 2, 3]));
    assert!(spool.states.contains_key("a"));
    spool.delivered(2).expect("noted");
    let mut spool = BeaconSpool::open(&path).expect("opened again");
    assert_eq!(numbers(&spool), [3]);
    spool.delivered(3).expect("noted");
    spool.tell(&[notice(4, FleetSeverity::Info)]).expect("told");
    // Numbers are not used again, also when nothing is left.
    assert_eq!(numbers(&spool), [4]);
    spool.retain(|_| false).expect("written anew");
    let spool = BeaconSpool::open(&path).expect("opened again");
    assert!(spool.states.is_empty());
    assert_eq!((spool.id(), numbers(&spool)), (&*id, vec![4]));
}

#[test]
fn what_does_not_fit_is_dropped_by_severity_and_told_once() {
    let (_directory, path) = directory();
    let limits = SpoolLimits {
        events: 10,
        bytes: 1 << 20,
    };
    let mut spool = BeaconSpool::open_within(&path, limits).expect("opened");
    spool
        .tell(&[notice(1, FleetSeverity::Error)])
        .expect("told");
    let many: Vec<BeaconNotice> = (2..=25).map(|n| notice(n, FleetSeverity::Info)).collect();
    spool.tell(&many).expect("told");
    assert_eq!(numbers(&spool), [1, 17, 18, 19, 20, 21, 22, 23, 24, 25]);
    // The count survives a restart, and waits until there is room.
    let mut spool = BeaconSpool::open_within(&path, limits).expect("opened again");
    spool.tell_loss(Timestamp::UNIX_EPOCH).expect("not yet");
    assert_eq!(spool.len(), 10);
    spool.delivered(24).expect("noted");
    spool.tell_loss(Timestamp::UNIX_EPOCH).expect("told");
    spool.tell_loss(Timestamp::UNIX_EPOCH).expect("once");
    let told = spool.after(25, 10, usize::MAX);
    let [(26, content)] = &told[..] else {
        panic!("{told:?}")
    };
    let content: BeaconNotice = serde_json::from_slice(content).expect("JSON");
    assert_eq!(content.data["lost"], 15);
    let spool = BeaconSpool::open_within(&path, limits).expect("opened again");
    assert_eq!(spool.ledger.loss().events(), 0);
}

/// A crash leaves any part of what was being written: what was told before is there, and the numbers go on.
#[test]
fn a_crash_at_any_byte_loses_only_what_was_being_written() {
    let (_directory, path) = directory();
    let mut spool = BeaconSpool::open(&path).expect("opened");
    spool.tell(&[notice(1, FleetSeverity::Info)]).expect("told");
    let before = spool.log.bytes();
    spool.tell(&[notice(2, FleetSeverity::Info)]).expect("told");
    let whole = std::fs::read(path.join("spool.log")).expect("read");
    for length in usize::try_from(before).expect("small")..whole.len() {
        std::fs::write(path.join("spool.log"), &whole[..length]).expect("written");
        let mut spool = BeaconSpool::open(&path).expect("opened again");
        assert_eq!(numbers(&spool), [1]);
        spool.tell(&[notice(3, FleetSeverity::Info)]).expect("told");
        assert_eq!(numbers(&spool), [1, 2]);
    }
}

#[test]
fn the_file_stays_small_however_much_is_told() {
    let (_directory, path) = directory();
    let mut spool = BeaconSpool::open(&path).expect("opened");
    let many: Vec<BeaconNotice> = (0..5_000).map(|n| notice(n, FleetSeverity::Info)).collect();
    for _ in 0..10 {
        spool.tell(&many).expect("told");
        spool.delivered(u64::MAX - 1).expect("noted");
    }
    assert!(spool.log.bytes() < MAX_WASTE + (2 << 20));
    assert!(spool.is_empty());
}
