//! Three years: certificates are renewed, two authorities follow the first, servers stand still for weeks, and nobody
//! is ever refused.

use std::time::Duration;

use portolan_identity::NodeKey;
use portolan_server::TimeSource as _;

use super::bed::{ask, bed};

const DAY: Duration = Duration::from_hours(24);

#[tokio::test(flavor = "multi_thread")]
async fn in_three_years_certificates_never_end_the_service() {
    let bed = bed().await;
    let (mut node, mut key) = bed.node("web-1").await;
    let begin = bed.time.now();
    let first_bundle = std::fs::read_to_string(bed.first.directory.path().join("ca.pem"));
    let first_bundle = first_bundle.expect("an authority");
    let first_authority = node.authorities.clone();
    let (mut renewals, mut bundles) = (0, vec![node.authorities.clone()]);
    // A second server that sleeps for weeks: nobody looks after its certificates between its starts.
    let mut second = bed.another().await;
    let mut day = 0_u64;
    while bed.time.now() < begin + 3 * 365 * DAY {
        bed.time.advance(DAY);
        day += 1;
        bed.first.upkeep.round().await.expect("upkeep");
        if day.is_multiple_of(45) {
            second = bed.restart(second).await;
        }
        if bed.time.now() >= node.renew_at {
            let new_key = NodeKey::generate().expect("a key");
            // Every other renewal goes to the server that may have slept.
            let server = if renewals % 2 == 0 {
                &bed.first
            } else {
                &second
            };
            let renewed = bed.client(server).renew(&node, &key, &new_key).await;
            (node, key) = (
                renewed.unwrap_or_else(|error| unreachable!("day {day}: {error:?}")),
                new_key,
            );
            renewals += 1;
            if bundles.last() != Some(&node.authorities) {
                bundles.push(node.authorities.clone());
            }
        }
        if day.is_multiple_of(15) {
            let config = bed.mutual(&node, &key);
            for port in [bed.first.port, second.port] {
                let own = ask(&config, port, "GET", "/api/v1alpha/nodes/web-1", None, None).await;
                assert_eq!(own.status, 200, "day {day}: {}", own.body);
            }
        }
        // Who only has the first authority is served as long as it is valid: two years.
        if day.is_multiple_of(60) && day < 725 {
            let config = bed.trusting(&first_bundle);
            let openapi = ask(
                &config,
                bed.first.port,
                "GET",
                "/api/v1alpha/authorities",
                None,
                None,
            );
            assert_eq!(openapi.await.status, 200, "day {day}");
        }
    }
    assert!(renewals > 200, "{renewals} renewals");
    // One, one and two, two, two and three, …: at least two authorities came after the first.
    assert!(bundles.len() >= 4, "{} bundles", bundles.len());
    assert!(
        !node.authorities.contains(first_authority.trim()),
        "the first one is gone"
    );
}
