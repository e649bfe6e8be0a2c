//! Which reports of an agent are new: an agent numbers them in order, and sends again what nobody acknowledged.

use serde::{Deserialize, Serialize};

/// The reports of one agent that were taken so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportWindow {
    /// Tells the starts of the agent apart.
    pub session: u64,
    /// The last report of that session.
    pub number: u64,
}

/// What a report is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The next one.
    New,
    /// One that was taken before.
    Again,
    /// One before it got lost; the agent sends everything again.
    Gap,
}

impl ReportWindow {
    /// Says what a report is, and takes it if it is the next one. A new session begins with report 1.
    pub fn take(&mut self, session: u64, number: u64) -> Arrival {
        let expected = if session == self.session {
            self.number + 1
        } else {
            1
        };
        if session == self.session && number < expected {
            return Arrival::Again;
        }
        if number != expected {
            return Arrival::Gap;
        }
        *self = Self { session, number };
        Arrival::New
    }

    /// Whether a report was taken.
    pub fn has(self, session: u64, number: u64) -> bool {
        session == self.session && number <= self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_taken_in_order_and_once() {
        let mut window = ReportWindow::default();
        assert_eq!(window.take(7, 2), Arrival::Gap);
        assert_eq!(window.take(7, 1), Arrival::New);
        assert_eq!(window.take(7, 1), Arrival::Again);
        assert_eq!(window.take(7, 3), Arrival::Gap);
        assert_eq!(window.take(7, 2), Arrival::New);
        assert!(window.has(7, 2) && !window.has(7, 3) && !window.has(8, 1));
        // An agent that was started again begins anew.
        assert_eq!(window.take(8, 1), Arrival::New);
        assert_eq!(window.take(7, 3), Arrival::Gap);
    }
}
