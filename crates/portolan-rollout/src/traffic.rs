//! Which slot gets which requests.

use serde::{Deserialize, Serialize};

use crate::slot::{Slot, Slots};

/// What the routes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Traffic {
    /// The share of each slot in percent; together they are 100.
    pub shares: Slots<u8>,
    /// The slot that gets copies of requests, and of how many percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<Mirror>,
    /// The slot that gets every request that matches, whatever its share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<Slot>,
    /// The slot that keeps its clients by a cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sticky: Option<Slot>,
}

/// Copies of requests whose answers nobody sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mirror {
    /// The slot that gets them.
    pub slot: Slot,
    /// Of how many percent of the requests.
    pub percent: u8,
}

impl Traffic {
    /// All requests to one slot.
    pub fn only(slot: Slot) -> Self {
        Self::split(slot.other(), 0)
    }

    /// A share in percent to one slot, the rest to the other.
    pub fn split(slot: Slot, share: u8) -> Self {
        let share = share.min(100);
        let mut shares = Slots::default();
        *shares.get_mut(slot) = share;
        *shares.get_mut(slot.other()) = 100 - share;
        Self {
            shares,
            mirror: None,
            matched: None,
            sticky: None,
        }
    }

    /// Returns the share of a slot in percent.
    pub fn share(&self, slot: Slot) -> u8 {
        *self.shares.get(slot)
    }

    /// Returns whether any request can reach a slot.
    pub fn reaches(&self, slot: Slot) -> bool {
        self.share(slot) > 0
            || self.mirror.is_some_and(|mirror| mirror.slot == slot)
            || self.matched == Some(slot)
            || self.sticky == Some(slot)
    }

    /// Returns whether a slot gets requests here that it does not get there.
    pub fn adds_to(&self, slot: Slot, there: &Self) -> bool {
        self.share(slot) > there.share(slot) || (self.reaches(slot) && !there.reaches(slot))
    }

    /// Returns what may be written into the routes: no request goes to a slot without ready endpoints.
    ///
    /// `intended` is what the rollout asks for and `now` what the routes say, if there are any. A slot that is not ready
    /// loses its requests to the other one if that is ready, and gets some already or is `trusted`. If neither is, the routes are left
    /// as they are: any change would send requests to where nobody answers.
    pub fn protected(
        intended: Self,
        now: Option<Self>,
        ready: Slots<bool>,
        trusted: Slots<bool>,
    ) -> Option<Self> {
        let mut traffic = intended;
        traffic.mirror = traffic.mirror.filter(|mirror| *ready.get(mirror.slot));
        traffic.matched = traffic.matched.filter(|slot| *ready.get(*slot));
        traffic.sticky = traffic.sticky.filter(|slot| *ready.get(*slot));
        for slot in Slot::BOTH {
            if traffic.share(slot) == 0 || *ready.get(slot) {
                continue;
            }
            let other = slot.other();
            let has_share = |traffic: &Self| traffic.share(other) > 0;
            let may_take_all =
                has_share(&traffic) || now.as_ref().is_some_and(has_share) || *trusted.get(other);
            let takes_all = *ready.get(other) && may_take_all;
            if !takes_all {
                return now;
            }
            traffic.shares = Self::only(other).shares;
        }
        Some(traffic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protected(share_of_b: u8, ready: (bool, bool), trusted_b: bool) -> Option<u8> {
        let ready = Slots {
            a: ready.0,
            b: ready.1,
        };
        let trusted = Slots {
            a: true,
            b: trusted_b,
        };
        let intended = Traffic::split(Slot::B, share_of_b);
        Traffic::protected(intended, None, ready, trusted).map(|traffic| traffic.share(Slot::B))
    }

    #[test]
    fn ready_slots_get_what_is_intended() {
        assert_eq!(protected(20, (true, true), true), Some(20));
    }

    #[test]
    fn a_slot_without_endpoints_loses_its_share() {
        assert_eq!(protected(20, (true, false), true), Some(0));
        assert_eq!(protected(20, (false, true), true), Some(100));
    }

    /// A canary that was never routed to must not get everything because the stable pods are away for a moment.
    #[test]
    fn a_slot_that_is_not_trusted_gets_nothing_it_was_not_meant_to_get() {
        assert_eq!(protected(0, (false, true), false), None);
        assert_eq!(protected(0, (false, true), true), Some(100));
    }

    #[test]
    fn nothing_is_written_when_nobody_is_ready() {
        assert_eq!(protected(20, (false, false), true), None);
    }

    #[test]
    fn mirrors_and_matches_go_to_ready_slots_only() {
        let mut intended = Traffic::only(Slot::A);
        intended.mirror = Some(Mirror {
            slot: Slot::B,
            percent: 10,
        });
        intended.matched = Some(Slot::B);
        intended.sticky = Some(Slot::B);
        assert!(intended.reaches(Slot::B));
        let (a_ready, trusted) = (Slots { a: true, b: false }, Slots { a: true, b: true });
        let written = Traffic::protected(intended, None, a_ready, trusted);
        assert_eq!(written, Some(Traffic::only(Slot::A)));
    }
}
