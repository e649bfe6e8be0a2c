//! What a dev loop can be told from outside: to do a stage now, and whether it does the stage by itself when a file is saved.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The stages of a dev loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DevStages {
    /// Artifacts are built and tested.
    pub build: bool,
    /// Files are copied into pods.
    pub sync: bool,
    /// Steps are deployed and verified.
    pub deploy: bool,
}

/// Told by clients, heard by the loop.
#[derive(Debug)]
pub struct DevControl {
    told: Mutex<Told>,
    news: Notify,
}

#[derive(Debug)]
struct Told {
    /// What is done when a file is saved.
    auto: DevStages,
    /// What is to be done now.
    asked: DevStages,
}

impl DevStages {
    /// All of them.
    pub const ALL: Self = Self {
        build: true,
        sync: true,
        deploy: true,
    };

    /// Those of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            build: self.build || other.build,
            sync: self.sync || other.sync,
            deploy: self.deploy || other.deploy,
        }
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Default for DevControl {
    fn default() -> Self {
        let told = Told {
            auto: DevStages::ALL,
            asked: DevStages::default(),
        };
        Self {
            told: Mutex::new(told),
            news: Notify::new(),
        }
    }
}

impl DevControl {
    /// What is done when a file is saved.
    pub fn auto(&self) -> DevStages {
        self.told().auto
    }

    /// Asks for stages, beside those that were asked for before.
    pub fn ask(&self, stages: DevStages) {
        let mut told = self.told();
        told.asked = told.asked.or(stages);
        drop(told);
        self.news.notify_one();
    }

    /// Says whether a stage is done when a file is saved; returns whether that is new. What was saved meanwhile is done
    /// when it is switched on.
    pub fn set_auto(&self, stage: DevStages, enabled: bool) -> bool {
        let mut told = self.told();
        let before = told.auto;
        let pick = |auto: bool, named: bool| if named { enabled } else { auto };
        told.auto = DevStages {
            build: pick(before.build, stage.build),
            sync: pick(before.sync, stage.sync),
            deploy: pick(before.deploy, stage.deploy),
        };
        let is_new = told.auto != before;
        drop(told);
        if is_new && enabled {
            self.ask(stage);
        }
        is_new
    }

    /// Waits until stages are asked for, and takes the order. The future can be dropped without losing one.
    pub async fn asked(&self) -> DevStages {
        loop {
            let asked = std::mem::take(&mut self.told().asked);
            if !asked.is_empty() {
                return asked;
            }
            self.news.notified().await;
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILD: DevStages = DevStages {
        build: true,
        sync: false,
        deploy: false,
    };

    #[tokio::test]
    async fn orders_add_up_until_they_are_taken() {
        let control = DevControl::default();
        let deploy = DevStages {
            deploy: true,
            ..DevStages::default()
        };
        control.ask(BUILD);
        control.ask(deploy);
        assert_eq!(control.asked().await, BUILD.or(deploy));
        assert!(control.told().asked.is_empty());
    }

    #[tokio::test]
    async fn what_is_switched_on_again_is_done_at_once() {
        let control = DevControl::default();
        assert!(!control.set_auto(BUILD, true), "it is on already");
        assert!(control.set_auto(BUILD, false));
        assert_eq!((control.auto().build, control.auto().sync), (false, true));
        assert!(control.set_auto(BUILD, true));
        assert_eq!(control.asked().await, BUILD);
    }
}
