//! The users that the machine's own files name.

use serde_json::{Map, Value, json};

use super::FactSource;
use crate::accounts::Accounts;

pub(super) fn users(source: &FactSource<'_>) -> Result<Value, String> {
    let accounts = Accounts::read(&source.host.root).map_err(|error| error.to_string())?;
    let users = accounts.users.into_iter().map(|user| {
        let about = json!({
            "uid": user.uid, "gid": user.gid, "home": user.home, "shell": user.shell,
        });
        (user.name, about)
    });
    Ok(Value::Object(users.collect::<Map<_, _>>()))
}
