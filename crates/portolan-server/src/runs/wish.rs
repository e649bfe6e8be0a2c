//! What people ask of a run that is not over: to end it, or to go on. It stands in the Run, where the owner of the shard sees
//! it.

use serde_json::Value;

use super::controller::is_over;
use crate::error::{ApiError, RefusalReason};
use crate::objects::Author;
use crate::server::{ApiServer, Caller, Target};

/// How often a wish is written again after somebody else changed the Run.
const ATTEMPTS: usize = 8;

/// What somebody asks of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunWish {
    /// Steps at work end, and no more are begun.
    Drain,
    /// Steps at work are ended.
    Now,
    /// A stalled run goes on.
    Resume,
    /// The next batch may begin.
    Approve,
}

impl RunWish {
    fn verb(self) -> &'static str {
        match self {
            Self::Drain | Self::Now => "cancel",
            Self::Resume => "resume",
            Self::Approve => "approve",
        }
    }

    fn put(self, spec: &mut Value, status: &Value, user: &str) {
        match self {
            // The gate that the run has come to, and no later one.
            Self::Approve => {
                spec["approvedGate"] = status["gate"].clone();
                spec["approvedBy"] = user.into();
            }
            // What was ended at once stays so.
            Self::Drain if spec["cancel"] == "now" => {}
            Self::Drain => spec["cancel"] = "drain".into(),
            Self::Now => spec["cancel"] = "now".into(),
            Self::Resume => {
                let resumes = spec
                    .get("resumes")
                    .and_then(Value::as_u64)
                    .unwrap_or_default();
                spec["resumes"] = (resumes + 1).into();
            }
        }
    }
}

impl ApiServer {
    /// Writes a wish into a Run. The caller has the right for it.
    pub(crate) async fn wish_for_run(
        &self,
        caller: &Caller,
        target: &Target,
        wish: RunWish,
    ) -> Result<Value, ApiError> {
        let wished = self.put_wish(caller, target, wish).await;
        let recorded = wished.as_ref().map(|_| None);
        self.record(caller, wish.verb(), target, recorded).await?;
        wished
    }

    async fn put_wish(
        &self,
        caller: &Caller,
        target: &Target,
        wish: RunWish,
    ) -> Result<Value, ApiError> {
        let author = Author {
            name: caller.identity.user.clone(),
            ..Author::default()
        };
        for _ in 0..ATTEMPTS {
            let found = self.objects.get(&target.key()?).await?;
            let found = found.ok_or_else(|| ApiError::not_found(&target.shown()))?;
            if is_over(&found.object) {
                let message = format!("{} has ended", target.shown());
                return Err(ApiError::conflict(RefusalReason::Conflict, message));
            }
            let phase = found.object.status["phase"].as_str();
            if wish == RunWish::Approve && !matches!(phase, Some("gate" | "stalled")) {
                let message = format!("{} is at no gate", target.shown());
                return Err(ApiError::conflict(RefusalReason::Conflict, message)
                    .hint("approve it when its phase is `gate`"));
            }
            let mut run = found.object.clone();
            let status = run.status.clone();
            wish.put(&mut run.spec, &status, &caller.identity.user);
            match self.objects.update(run, &author).await {
                Err(error) if error.reason == RefusalReason::Conflict => {}
                written => return Ok(written?.object.to_json()),
            }
        }
        Err(ApiError::conflict(
            RefusalReason::Conflict,
            format!("{} changes all the time", target.shown()),
        ))
    }
}
