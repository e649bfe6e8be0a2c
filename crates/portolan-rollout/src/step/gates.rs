//! Webhooks that must agree before the rollout goes on.

use super::Pass;
use crate::effect::Effect;
use crate::observed::GateAnswer;
use crate::spec::GateMoment;

impl Pass<'_> {
    /// Returns whether every gate of this moment agrees, or what is waited for. Gates that have not agreed are asked. One
    /// that agreed is not asked again in this step, also after a restart.
    pub(super) fn ask_gates(&mut self, moment: GateMoment) -> Result<(), String> {
        let Some(canary) = self.status.canary.as_deref_mut() else {
            return Ok(());
        };
        let mut waiting = Vec::new();
        let gates = canary.plan.gates.iter().enumerate();
        for (index, gate) in gates.filter(|(_, gate)| gate.before == moment) {
            let (revision, attempt, step) = (&canary.revision, canary.attempt, canary.step);
            let key = format!("{revision}/{attempt}/{step}/{moment:?}/{index}");
            if canary.agreed.contains(&key) {
                continue;
            }
            match self.observed.gates.get(&key) {
                Some(GateAnswer::Open) => {
                    canary.agreed.push(key);
                    continue;
                }
                Some(GateAnswer::Closed(answer)) => {
                    waiting.push(format!("{} does not agree: {answer}", gate.webhook.url));
                }
                None => waiting.push(format!("{} has not answered", gate.webhook.url)),
            }
            self.questions.push(Effect::AskGate {
                key,
                webhook: gate.webhook.clone(),
                question: format!("may {revision} go on, before {moment:?}"),
            });
        }
        if waiting.is_empty() {
            Ok(())
        } else {
            Err(waiting.join("; "))
        }
    }
}
