//! A chart ready to be rendered many times: the package, and what was prepared from it.
//!
//! Which subcharts are enabled depends on the values. For every such selection, the plan and the parsed templates are
//! made once, on first use, and kept. A [`Chart`] is shared between threads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use camino::Utf8Path;
use portolan_gotmpl::ReadPaths;
use portolan_vfs::Vfs;

use crate::dependency::{Plan, Selection};
use crate::engine::{TemplateError, Templates};
use crate::head::Heads;
use crate::package::{LoadError, Package};
use crate::profile::Profile;
use crate::render::Error;
use crate::values::Tree;

/// The most selections of subcharts kept; a chart with forty conditions has more than memory could hold.
const MAX_PREPARED: usize = 64;

/// A chart to render.
#[derive(Debug)]
pub struct Chart {
    package: Arc<Package>,
    prepared: Mutex<HashMap<(Selection, Profile), Arc<Prepared>>>,
    pub(crate) heads: Heads,
}

/// A selection of subcharts with everything that does not depend on the values.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) templates: Templates,
    pub(crate) warnings: Vec<String>,
    /// What of the values the templates may read, once somebody asked.
    pub(crate) read_paths: OnceLock<ReadPaths>,
}

/// What [`Chart::prepare`] gives.
pub(crate) struct Preparation<B> {
    pub(crate) prepared: Result<Arc<Prepared>, TemplateError>,
    /// What the caller made meanwhile.
    pub(crate) beside: B,
    /// How much text was parsed for it: nothing where it was found.
    pub(crate) parsed: usize,
}

impl Chart {
    /// A chart of a loaded package.
    pub fn new(package: Package) -> Self {
        Self {
            package: Arc::new(package),
            prepared: Mutex::default(),
            heads: Heads::default(),
        }
    }

    /// Loads a chart from a directory or a packed archive, whichever is at the path.
    pub fn load(vfs: &dyn Vfs, path: &Utf8Path) -> Result<Self, LoadError> {
        Package::load(vfs, path).map(Self::new)
    }

    /// What was loaded.
    pub fn package(&self) -> &Package {
        &self.package
    }

    /// The plan and templates for these values, made now or found from an earlier render, and what the caller makes of
    /// the plan while other threads parse.
    pub(crate) fn prepare<B>(
        &self,
        values: &Tree,
        profile: Profile,
        warnings: &mut Vec<String>,
        beside: impl FnOnce(&Plan) -> B,
    ) -> Result<Preparation<B>, Error> {
        let selection = Selection::of(&self.package, values, profile, warnings)?;
        let key = (selection, profile);
        if let Some(found) = self.lock().get(&key) {
            warnings.extend(found.warnings.iter().cloned());
            let found = Arc::clone(found);
            return Ok(Preparation {
                beside: beside(&found.plan),
                prepared: Ok(found),
                parsed: 0,
            });
        }
        let mut made_warnings = Vec::new();
        let plan = Plan::new(&self.package, &key.0, profile, &mut made_warnings)?;
        let (templates, beside) = Templates::parse_beside(&plan, profile, || beside(&plan));
        let templates = match templates {
            Ok(templates) => templates,
            Err(error) => {
                return Ok(Preparation {
                    prepared: Err(error),
                    beside,
                    parsed: 0,
                });
            }
        };
        warnings.extend(made_warnings.iter().cloned());
        let prepared = Arc::new(Prepared {
            plan,
            templates,
            warnings: made_warnings,
            read_paths: OnceLock::new(),
        });
        let mut kept = self.lock();
        if kept.len() >= MAX_PREPARED {
            kept.clear();
        }
        kept.insert(key, Arc::clone(&prepared));
        Ok(Preparation {
            parsed: prepared.templates.bytes,
            prepared: Ok(prepared),
            beside,
        })
    }

    /// Forgets the parsed templates. The next render parses them again.
    pub fn forget_templates(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(Selection, Profile), Arc<Prepared>>> {
        // A thread that panicked can only have left fewer entries.
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
