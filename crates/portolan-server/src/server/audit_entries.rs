//! What is written to the audit log about requests.

use serde_json::{Value, json};

use super::{ApiServer, Caller, Target};
use crate::clock::rfc3339;
use crate::error::ApiError;

impl ApiServer {
    /// Writes a refusal to the audit log.
    pub(crate) async fn refuse(
        &self,
        caller: &Caller,
        verb: &str,
        target: &Target,
        error: ApiError,
    ) -> ApiError {
        self.record(caller, verb, target, Err(&error))
            .await
            .err()
            .unwrap_or(error)
    }

    /// Writes what was done, or why not, to the audit log.
    pub(crate) async fn record(
        &self,
        caller: &Caller,
        verb: &str,
        target: &Target,
        result: Result<Option<&str>, &ApiError>,
    ) -> Result<(), ApiError> {
        let about =
            json!({"kind": target.kind.name, "namespace": target.namespace, "name": target.name});
        self.record_about(caller, verb, about, result).await
    }

    pub(crate) async fn record_about(
        &self,
        caller: &Caller,
        verb: &str,
        about: Value,
        result: Result<Option<&str>, &ApiError>,
    ) -> Result<(), ApiError> {
        let mut entry = about;
        entry["time"] = rfc3339(self.objects.time.now()).into();
        entry["server"] = self.name.as_str().into();
        entry["user"] = caller.identity.user.as_str().into();
        entry["token"] = caller.identity.token.as_str().into();
        entry["address"] = caller.address.as_str().into();
        entry["verb"] = verb.into();
        match result {
            Ok(version) => {
                entry["status"] = 200.into();
                entry["resourceVersion"] = version.into();
            }
            Err(error) => {
                entry["status"] = error.status.as_u16().into();
                entry["reason"] = format!("{:?}", error.reason).into();
            }
        }
        if self.audit.write(entry).await {
            return Ok(());
        }
        Err(ApiError::internal("the audit log cannot be written"))
    }

    /// Writes a refused login to the audit log.
    pub(crate) async fn record_stranger(&self, address: &str, path: &str, error: &ApiError) {
        let entry = json!({
            "time": rfc3339(self.objects.time.now()), "server": self.name, "address": address, "path": path,
            "status": error.status.as_u16(), "reason": format!("{:?}", error.reason),
        });
        self.audit.write(entry).await;
    }
}
