//! Which context of a kubeconfig is deployed to. One that nobody named is refused unless its cluster is on this machine.

use crate::document::Ship;

/// How the names of contexts begin whose clusters are on this machine.
const LOCAL: [&str; 4] = ["kind-", "k3d-", "minikube", "docker-desktop"];

/// Why nothing is deployed to a context.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// A step is meant for another context than the one that the user names.
    #[error("the step `{step}` is meant for the context `{meant}`, not `{named}`")]
    Other {
        /// The step.
        step: String,
        /// The context in the document.
        meant: String,
        /// The context that the user names.
        named: String,
    },
    /// Nobody names the context, and its cluster may be anybody's.
    #[error("the current context `{0}` is named by nobody, and no cluster of this machine")]
    Unnamed(String),
}

impl ContextError {
    /// What to do about it, where there is something besides naming another context.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Other { .. } => None,
            Self::Unnamed(context) => Some(format!(
                "`--context {context}` deploys there; `context` of a step in the document allows it for good"
            )),
        }
    }
}

/// The context to deploy to: the one that the user names, else the one that all steps name, else the current one if its
/// cluster is on this machine. `None` leaves the choice to the kubeconfig, which names none.
pub fn choose_context(
    ship: &Ship,
    named: Option<&str>,
    current: Option<&str>,
) -> Result<Option<String>, ContextError> {
    let meant: Vec<&str> = ship
        .deploy
        .iter()
        .filter_map(|step| step.context.as_deref())
        .collect();
    if let Some(named) = named {
        let other = ship
            .deploy
            .iter()
            .find(|step| step.context.as_deref().is_some_and(|meant| meant != named));
        return match other {
            Some(step) => Err(ContextError::Other {
                step: step.name.clone(),
                meant: step.context.clone().unwrap_or_default(),
                named: named.to_owned(),
            }),
            None => Ok(Some(named.to_owned())),
        };
    }
    if let [first, rest @ ..] = meant.as_slice()
        && meant.len() == ship.deploy.len()
        && rest.iter().all(|other| other == first)
    {
        return Ok(Some((*first).to_owned()));
    }
    match current {
        Some(current) if !LOCAL.iter().any(|local| current.starts_with(local)) => {
            Err(ContextError::Unnamed(current.to_owned()))
        }
        current => Ok(current.map(str::to_owned)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ship(contexts: &[&str]) -> Ship {
        let steps: Vec<String> = contexts
            .iter()
            .enumerate()
            .map(|(number, context)| {
                let context = match *context {
                    "" => String::new(),
                    context => format!(", context: {context}"),
                };
                format!("  - {{name: s{number}, manifests: {{paths: [deploy]}}{context}}}\n")
            })
            .collect();
        let text = format!(
            "apiVersion: portolan.dev/v1alpha1\nkind: Ship\nmetadata: {{name: shop}}\nspec:\n  artifacts: []\n  deploy:\n{}",
            steps.concat()
        );
        Ship::read(&text, &|_| None).unwrap()
    }

    #[test]
    fn a_context_is_named_by_somebody_or_of_this_machine() {
        let unnamed = Err(ContextError::Unnamed("prod".to_owned()));
        let cases = [
            (&[""][..], None, Some("prod"), unnamed.clone()),
            (
                &[""],
                None,
                Some("kind-dev"),
                Ok(Some("kind-dev".to_owned())),
            ),
            (&[""], None, None, Ok(None)),
            (
                &[""],
                Some("prod"),
                Some("kind-dev"),
                Ok(Some("prod".to_owned())),
            ),
            (
                &["prod", "prod"],
                None,
                Some("dev"),
                Ok(Some("prod".to_owned())),
            ),
            // One step says nothing, so the document does not speak for all.
            (&["prod", ""], None, Some("prod"), unnamed),
        ];
        for (contexts, named, current, expected) in cases {
            let chosen = choose_context(&ship(contexts), named, current);
            assert_eq!(chosen, expected, "{contexts:?} {named:?} {current:?}");
        }
    }

    #[test]
    fn a_step_for_another_context_is_refused() {
        let error = choose_context(&ship(&["", "staging"]), Some("prod"), None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the step `s1` is meant for the context `staging`, not `prod`"
        );
    }
}
