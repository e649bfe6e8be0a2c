//! Tokens of users: made, listed and ended.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ApiServer, Caller};
use crate::access::Action;
use crate::clock::rfc3339;
use crate::error::ApiError;
use crate::token::NewToken;

impl ApiServer {
    /// Makes a token for a user whose rights the caller has.
    pub(crate) async fn create_token(
        &self,
        caller: &Caller,
        new: NewToken,
    ) -> Result<Value, ApiError> {
        let about = json!({"kind": "Token", "name": new.user});
        if let Err(error) =
            self.access
                .check_impersonation(&caller.identity, &new.user, &new.groups)
        {
            self.record_about(caller, "create", about, Err(&error))
                .await?;
            return Err(error);
        }
        let (user, life) = (new.user.clone(), new.life);
        let (id, text) = self.tokens.create(new).await?;
        self.record_about(caller, "create", about, Ok(None)).await?;
        let expires = life.map(|life| rfc3339(self.objects.time.now() + life));
        Ok(json!({
            "apiVersion": portolan_kinds::VERSION, "kind": "Token", "id": id, "user": user, "expires": expires,
            "token": text.as_str(),
        }))
    }

    /// The tokens of the caller; all of them for who may do everything.
    pub(crate) async fn list_tokens(&self, caller: &Caller) -> Result<Value, ApiError> {
        let is_admin = self.is_admin(caller);
        let tokens = self.tokens.list().await?.into_iter();
        let shown = tokens.filter(|(_, token)| is_admin || token.user == caller.identity.user);
        let items: Vec<Value> = shown
            .map(|(id, token)| {
                let expires = (token.expires > 0).then(|| rfc3339(Duration::from_secs(token.expires)));
                json!({
                    "id": id, "user": token.user, "groups": token.groups, "expires": expires,
                    "created": rfc3339(Duration::from_secs(token.created)), "description": token.description,
                })
            })
            .collect();
        Ok(json!({"apiVersion": portolan_kinds::VERSION, "kind": "TokenList", "items": items}))
    }

    /// Ends a token of the caller's own, or of anybody for who may do everything.
    pub(crate) async fn delete_token(&self, caller: &Caller, id: &str) -> Result<(), ApiError> {
        let tokens = self.tokens.list().await?;
        let found = tokens.iter().find(|(one, _)| one == id);
        let is_theirs = found.is_some_and(|(_, token)| token.user == caller.identity.user);
        // Whether a token of somebody else exists is nobody's business.
        if found.is_none() || !(is_theirs || self.is_admin(caller)) {
            return Err(ApiError::not_found(&format!("token {id}")));
        }
        self.tokens.delete(id).await?;
        let about = json!({"kind": "Token", "name": id});
        self.record_about(caller, "delete", about, Ok(None)).await
    }

    fn is_admin(&self, caller: &Caller) -> bool {
        let everything = Action {
            verb: "*",
            kind: "*",
            namespace: None,
            name: None,
        };
        self.access.check(&caller.identity, &everything).is_ok()
    }
}
