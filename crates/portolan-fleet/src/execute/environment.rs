//! Variables of a step, given to every program that its module starts.

use std::collections::BTreeMap;
use std::sync::Arc;

use portolan_modules::{Command, Exit, ModuleError, Processes};
use tokio_util::sync::CancellationToken;

/// Starts programs with more variables.
pub(super) struct WithEnvironment {
    pub(super) inner: Arc<dyn Processes>,
    pub(super) environment: BTreeMap<String, String>,
}

impl Processes for WithEnvironment {
    fn run(&self, command: &Command, stop: &CancellationToken) -> Result<Exit, ModuleError> {
        let mut command = command.clone();
        for (name, value) in &self.environment {
            command.environment.insert(name.clone(), value.clone());
        }
        self.inner.run(&command, stop)
    }
}
