//! Who is told about a record of the history, and in which words.

use serde_json::{Value, json};

use crate::history::Record;
use crate::spec::{Notification, NotificationForm, Spec};

/// Returns who is to be told about a record: those who named its phase, or none in particular.
pub fn recipients<'a>(spec: &'a Spec, record: &Record) -> Vec<&'a Notification> {
    let is_meant = |notification: &&Notification| {
        notification.phases.is_empty() || notification.phases.contains(&record.to)
    };
    spec.notifications.iter().filter(is_meant).collect()
}

/// Returns the body of the message about a record of an application.
pub fn notification_body(
    form: NotificationForm,
    namespace: &str,
    name: &str,
    record: &Record,
) -> Value {
    let text = sentence(namespace, name, record);
    match form {
        NotificationForm::Slack => json!({"text": text}),
        NotificationForm::Teams => json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "content": {
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": [{"type": "TextBlock", "text": text, "wrap": true}],
                },
            }],
        }),
        NotificationForm::Webhook => {
            json!({"namespace": namespace, "name": name, "text": text, "record": record})
        }
    }
}

/// `shop/web is RolledBack (RolledBack): errors: 28 of 3120 requests were bad, …`
fn sentence(namespace: &str, name: &str, record: &Record) -> String {
    let (phase, reason) = (record.to, &record.reason);
    let outcome = record.outcome.map(|outcome| outcome.to_string());
    let outcome = outcome.filter(|outcome| outcome != reason);
    let outcome = outcome.map_or(String::new(), |outcome| format!(", {outcome}"));
    format!(
        "{namespace}/{name} is {phase} ({reason}{outcome}): {}",
        record.message
    )
}
