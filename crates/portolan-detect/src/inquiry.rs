//! What a member finds out by itself about peers that did not answer a probe.
//!
//! Gossip spreads what one member says until all say it, so it is no evidence. A member accuses a peer only after its own
//! questions were not answered, and takes the accusation back at the first answer: accusers are independent of one another.
//!
//! ```text
//! probe failed, ─▶ asked every second ─3 unanswered─▶ accused, ─answer─▶ withdrawn
//! rumour of its end        │                          asked ever less often
//!                          └─answer─▶ dropped
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use crate::uid::NodeUid;

/// Peers that are asked at the same time.
const MAX_INQUIRIES: usize = 64;

/// Questions without an answer that make an accusation; twice as many if either side is degraded.
const UNANSWERED: u32 = 3;

const ASK_EVERY: Duration = Duration::from_secs(1);

/// How often the accused is asked: ever less often, until this.
const ASK_ACCUSED_EVERY: Duration = Duration::from_secs(30);

/// The peers that a member inquires about.
#[derive(Debug, Default)]
pub(crate) struct Inquiries(BTreeMap<NodeUid, Inquiry>);

#[derive(Debug)]
struct Inquiry {
    question: u64,
    asked: u32,
    next: Duration,
    pause: Duration,
    is_accused: bool,
}

/// What is to be done about a peer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) node: NodeUid,
    /// The number that the answer must repeat.
    pub(crate) number: u64,
    /// Whether it is accused from now on.
    pub(crate) is_newly_accused: bool,
}

impl Inquiries {
    /// Begins to ask a peer, unless it is asked already or too many are.
    pub(crate) fn begin(&mut self, node: NodeUid, question: u64, now: Duration) {
        if self.0.len() >= MAX_INQUIRIES {
            return;
        }
        self.0.entry(node).or_insert(Inquiry {
            question,
            asked: 0,
            next: now,
            pause: ASK_EVERY,
            is_accused: false,
        });
    }

    /// Asks a peer at once that is said to be back.
    pub(crate) fn hasten(&mut self, node: NodeUid, now: Duration) {
        if let Some(inquiry) = self.0.get_mut(&node) {
            inquiry.next = inquiry.next.min(now);
            inquiry.pause = ASK_EVERY;
        }
    }

    /// Takes an answer; returns whether an accusation is withdrawn by it.
    pub(crate) fn answered(&mut self, node: NodeUid, question: u64) -> bool {
        let is_ours = |inquiry: &Inquiry| inquiry.question == question;
        self.0.get(&node).is_some_and(is_ours) && self.drop(node)
    }

    /// Ends an inquiry; returns whether an accusation is withdrawn by it.
    pub(crate) fn drop(&mut self, node: NodeUid) -> bool {
        self.0
            .remove(&node)
            .is_some_and(|inquiry| inquiry.is_accused)
    }

    /// Ends the inquiries about peers that are no longer of interest; returns whether an accusation is withdrawn.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(NodeUid) -> bool) -> bool {
        let ended = self.0.extract_if(.., |node, _| !keep(*node));
        ended.filter(|(_, inquiry)| inquiry.is_accused).count() > 0
    }

    pub(crate) fn has(&self, node: NodeUid) -> bool {
        self.0.contains_key(&node)
    }

    pub(crate) fn accused(&self) -> impl Iterator<Item = NodeUid> {
        let accused = self.0.iter().filter(|(_, inquiry)| inquiry.is_accused);
        accused.map(|(node, _)| *node)
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.0.values().map(|inquiry| inquiry.next).min()
    }

    /// The next question that is due. `is_degraded` says of whom more patience is asked.
    pub(crate) fn poll(
        &mut self,
        now: Duration,
        is_degraded: impl Fn(NodeUid) -> bool,
    ) -> Option<Question> {
        let mut due = self.0.iter_mut().filter(|(_, inquiry)| inquiry.next <= now);
        let (node, inquiry) = due.next()?;
        let patience = if is_degraded(*node) { 2 } else { 1 };
        let is_enough = inquiry.asked >= UNANSWERED * patience;
        let is_newly_accused = is_enough && !inquiry.is_accused;
        inquiry.is_accused |= is_enough;
        inquiry.asked += 1;
        inquiry.next = now + inquiry.pause;
        if inquiry.is_accused {
            inquiry.pause = (inquiry.pause * 2).min(ASK_ACCUSED_EVERY);
        }
        Some(Question {
            node: *node,
            number: inquiry.question,
            is_newly_accused,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeUid = NodeUid([1; 16]);

    /// Asks for a while, and returns at which second the peer is accused.
    fn accused_after(is_degraded: bool, seconds: u64) -> Option<u64> {
        let mut inquiries = Inquiries::default();
        inquiries.begin(NODE, 7, Duration::ZERO);
        (0..seconds).find(|second| {
            let now = Duration::from_secs(*second);
            let asked = inquiries.poll(now, |_| is_degraded);
            asked.is_some_and(|asked| asked.is_newly_accused)
        })
    }

    #[test]
    fn a_peer_is_accused_after_three_questions_without_an_answer() {
        assert_eq!(accused_after(false, 60), Some(3));
    }

    #[test]
    fn a_degraded_peer_gets_twice_the_time() {
        assert_eq!(accused_after(true, 60), Some(6));
    }

    #[test]
    fn only_the_answer_to_the_question_withdraws() {
        let mut inquiries = Inquiries::default();
        inquiries.begin(NODE, 7, Duration::ZERO);
        for second in 0..5 {
            inquiries.poll(Duration::from_secs(second), |_| false);
        }
        assert_eq!(inquiries.accused().collect::<Vec<_>>(), [NODE]);
        assert!(!inquiries.answered(NODE, 8), "guessed");
        assert!(inquiries.has(NODE));
        assert!(inquiries.answered(NODE, 7));
        assert_eq!(inquiries.accused().count(), 0);
    }

    #[test]
    fn the_accused_is_asked_ever_less_often() {
        let mut inquiries = Inquiries::default();
        inquiries.begin(NODE, 7, Duration::ZERO);
        let hour = (0..3_600).map(Duration::from_secs);
        let asked = hour
            .filter_map(|now| inquiries.poll(now, |_| false))
            .count();
        assert!((120..=130).contains(&asked), "{asked}");
    }

    #[test]
    fn there_is_a_limit_to_what_a_member_asks() {
        let mut inquiries = Inquiries::default();
        for number in 0..=255 {
            inquiries.begin(NodeUid([number; 16]), 7, Duration::ZERO);
        }
        assert_eq!(inquiries.0.len(), MAX_INQUIRIES);
    }
}
