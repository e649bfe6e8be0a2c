//! Streams deliver in order, and lose what is under way when they break.

use std::cmp::Reverse;
use std::time::Duration;

use crate::{Happening, ToAgent, ToServer, World};

impl World {
    pub(crate) fn send_to_server(&mut self, node: usize, message: ToServer) {
        if let Some(link) = self.agents[node].link {
            let at = self.delivery(link);
            self.order += 1;
            let happening = Happening::ToServer {
                node,
                link,
                message,
            };
            self.queue.push(Reverse((at, self.order, happening)));
        }
    }

    pub(crate) fn send_to_agent(&mut self, node: usize, message: ToAgent) {
        if let Some(link) = self.agents[node].link {
            let at = self.delivery(link);
            self.order += 1;
            let happening = Happening::ToAgent {
                node,
                link,
                message,
            };
            self.queue.push(Reverse((at, self.order, happening)));
        }
    }

    fn delivery(&mut self, link: u64) -> Duration {
        let delay = self.random.time(Duration::from_millis(200));
        let last = self.last_delivery.entry(link).or_default();
        *last = (*last).max(self.now + delay);
        *last
    }
}
