//! What people ask for by tokens. When several come at once, going back wins.

use super::Pass;
use crate::history::Actor;
use crate::phase::{Outcome, Phase};
use crate::status::Decision;
use crate::tokens::Command;

const NO_PODS: &str = "zero replicas are asked for";

impl Pass<'_> {
    /// Returns the commands that are new. Those that an object has when it is first seen are recorded and not obeyed: they
    /// were given to another object of that name, or long ago.
    pub(super) fn new_commands(&mut self) -> Vec<Command> {
        let commands = self
            .status
            .tokens
            .take(&self.spec.tokens, &self.observed.tokens);
        if self.is_first { Vec::new() } else { commands }
    }

    /// Obeys the commands that go back or stand still.
    pub(super) fn go_back_by(&mut self, commands: &[Command]) {
        for command in commands {
            match command {
                Command::Abort => self.abort(),
                Command::Undo => self.undo(),
                Command::Pause => self.pause(),
                _ => {}
            }
        }
    }

    /// Obeys the commands that go forward, unless one that goes back came with them or `spec.paused` forbids it.
    pub(super) fn go_forward_by(&mut self, commands: &[Command]) {
        let goes_back = commands
            .iter()
            .any(|command| matches!(command, Command::Abort | Command::Undo));
        for command in commands.iter().filter(|command| command.goes_forward()) {
            if goes_back {
                self.ignore(*command, "going back was asked for at the same time");
            } else if self.spec.paused {
                let message = format!("`{command}` was refused because spec.paused is true");
                self.refused = Some(message.clone());
                self.note("TokenRefused", message, Actor::Token);
            } else {
                self.obey(*command);
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Resume => self.resume(),
            Command::Retry => self.retry(),
            Command::Promote => self.promote_now("Promote"),
            Command::Force => self.force(),
            Command::Abort | Command::Undo | Command::Pause => {}
        }
    }

    fn abort(&mut self) {
        match self.status.phase {
            Phase::Preparing
            | Phase::Shifting
            | Phase::Holding
            | Phase::Promoting
            | Phase::Soaking => {
                self.begin_roll_back(Decision {
                    outcome: Outcome::Aborted,
                    reason: "Aborted".to_owned(),
                    message: "a person aborted it".to_owned(),
                    actor: Actor::Token,
                });
            }
            _ => self.ignore(Command::Abort, "no new revision is on its way"),
        }
    }

    fn undo(&mut self) {
        let by_person = Decision {
            outcome: Outcome::Undone,
            reason: "Undone".to_owned(),
            message: "a person went back to the revision before".to_owned(),
            actor: Actor::Token,
        };
        let previous = self.status.previous.clone();
        match (self.status.phase, previous) {
            (Phase::Soaking, Some(_)) => self.begin_roll_back(by_person),
            _ if self.wanted_replicas() == 0 => self.ignore(Command::Undo, NO_PODS),
            (Phase::Stable, Some(previous)) => {
                if let Some(target) = self.status.target.clone() {
                    self.refuse(&target, &by_person.message);
                }
                self.start(previous.revision, Some(by_person));
            }
            (Phase::Stable, None) => self.ignore(Command::Undo, "no revision before is known"),
            _ => self.ignore(Command::Undo, "abort the new revision instead"),
        }
    }

    fn pause(&mut self) {
        let is_running = self.status.phase.is_running() && self.status.phase != Phase::RollingBack;
        match self.status.canary.as_deref_mut().filter(|_| is_running) {
            Some(canary) => canary.is_paused = true,
            None => self.ignore(Command::Pause, "no new revision is on its way"),
        }
    }

    fn resume(&mut self) {
        match self.status.canary.as_deref_mut() {
            Some(canary) => {
                canary.is_paused = false;
                canary.is_resumed = true;
            }
            None => self.ignore(Command::Resume, "no new revision is on its way"),
        }
    }

    fn retry(&mut self) {
        match (self.status.phase, self.status.target.clone()) {
            _ if self.wanted_replicas() == 0 => self.ignore(Command::Retry, NO_PODS),
            (Phase::RolledBack, Some(target)) => self.start(target, None),
            _ => self.ignore(Command::Retry, "no revision was rolled back"),
        }
    }

    fn force(&mut self) {
        match (self.status.phase, self.status.target.clone()) {
            _ if self.wanted_replicas() == 0 => self.ignore(Command::Force, NO_PODS),
            (Phase::RolledBack, Some(target)) => {
                self.start(target, None);
                self.promote_now("Forced");
            }
            _ => self.promote_now("Forced"),
        }
    }

    /// Ends the judging: the canary is promoted as soon as its pods are ready.
    fn promote_now(&mut self, reason: &'static str) {
        let may_be_promoted = matches!(
            self.status.phase,
            Phase::Preparing | Phase::Shifting | Phase::Holding | Phase::Promoting | Phase::Soaking
        );
        match self
            .status
            .canary
            .as_deref_mut()
            .filter(|_| may_be_promoted)
        {
            Some(canary) => {
                canary.is_paused = false;
                canary.decision = Some(Decision {
                    outcome: Outcome::Promoted,
                    reason: reason.to_owned(),
                    message: "a person promoted it".to_owned(),
                    actor: Actor::Token,
                });
            }
            None => self.note(
                "TokenIgnored",
                "nothing to promote: no new revision is on its way".to_owned(),
                Actor::Token,
            ),
        }
    }

    fn ignore(&mut self, command: Command, why: &str) {
        let message = format!("`{command}` was ignored: {why}");
        self.note("TokenIgnored", message, Actor::Token);
    }
}
