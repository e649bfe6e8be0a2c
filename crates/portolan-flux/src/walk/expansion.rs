//! `ResourceSet`s and `FluxInstance`s on a walk: they are not Kustomizations, but the walk follows what they make in
//! the same way.

use std::sync::Arc;

use portolan_engine::{Failure, Key, Unit, WaitError};
use portolan_object::Object;
use portolan_yaml::Text;

use crate::api::{FieldError, FluxInstance, NamespacedName, ResourceSet};
use crate::cluster::unit_key;
use crate::session::fingerprint::Fingerprint;
use crate::walk::flux_instance;
use crate::walk::index::{Emitter, name_of};
use crate::walk::resource_set::{self, Inputs, OPERATOR_GROUP};
use crate::walk::{MAX_REBUILDS, Walker};

/// A ResourceSet or FluxInstance and what became of it.
#[derive(Debug)]
pub struct Expansion {
    /// The object that defines it.
    pub definition: Object,
    /// Who emitted that object.
    pub emitter: Emitter,
    /// What is wrong with what it says.
    pub errors: Vec<FieldError>,
    /// The unit that expanded it, if any did.
    pub unit: Option<Key>,
    /// What it gave; nothing when its unit failed.
    pub objects: Option<Arc<Vec<Object>>>,
    /// Input providers that are named and that nothing emits.
    pub missing: Vec<Text>,
    /// Input providers whose inputs only a running operator knows.
    pub outside: Vec<NamespacedName>,
    /// Whether its inputs were still others after the last expansion that was tried.
    pub is_unsettled: bool,
    /// How often it was expanded.
    attempts: u32,
}

/// What is to be expanded.
struct Task {
    emitter: Emitter,
    expansion: Expansion,
    unit: Option<KeyedUnit>,
}

/// A unit that expands something, with its key.
type KeyedUnit = (Key<Vec<Object>>, Unit<Vec<Object>>);

impl Walker<'_> {
    /// Expands what is new or has other inputs than before; says how many.
    pub(crate) async fn expand(&mut self) -> Result<usize, Failure> {
        let mut count = 0;
        for task in self.tasks() {
            let key = task.unit.as_ref().map(|(key, _)| key.untyped());
            let mut expansion = task.expansion;
            if let Some(before) = self.walk.expansions.get_mut(&task.emitter) {
                if before.unit == key {
                    before.is_unsettled = false;
                    continue;
                }
                if before.attempts > MAX_REBUILDS {
                    before.is_unsettled = true;
                    continue;
                }
                expansion.attempts = before.attempts;
            }
            count += 1;
            expansion.attempts += 1;
            expansion.unit.clone_from(&key);
            if let Some((key, unit)) = task.unit {
                self.cx.add(key.clone(), &[], unit);
                expansion.objects = match self.cx.output(&key).await {
                    Ok(objects) => Some(objects),
                    Err(cancelled @ WaitError::Cancelled { .. }) => return Err(cancelled.into()),
                    // The unit's own outcome says why.
                    Err(_) => None,
                };
            }
            let objects = expansion.objects.clone().unwrap_or_default();
            self.walk.expansions.insert(task.emitter.clone(), expansion);
            self.emitted(&task.emitter, &objects);
        }
        Ok(count)
    }

    /// Of several objects with one name, the first emitter's counts.
    fn tasks(&self) -> Vec<Task> {
        let of = |kind| self.walk.index.first_of_kind(OPERATOR_GROUP, kind);
        let sets = of("ResourceSet").map(|(emitter, object)| self.set_task(object, emitter));
        let instances = of("FluxInstance").map(|(emitter, object)| instance_task(object, emitter));
        sets.chain(instances).collect()
    }

    fn set_task(&self, object: &Object, emitter: &Emitter) -> Task {
        let own = Emitter::ResourceSet(name_of(object));
        let set = match ResourceSet::read(object.node()) {
            Ok(set) => set,
            Err(errors) => return Task::refused(own, object, emitter, errors),
        };
        let inputs = resource_set::inputs(&set, &self.walk.index);
        let mut expansion = Expansion::new(object, emitter);
        let found = inputs.as_ref().ok();
        expansion.missing = found
            .map(|inputs| inputs.missing.clone())
            .unwrap_or_default();
        expansion.outside = found
            .map(|inputs| inputs.outside.clone())
            .unwrap_or_default();
        let none = Inputs::default();
        let digest = resource_set::fingerprint(&set, found.unwrap_or(&none));
        let key = unit_key("ResourceSet", &set.id, &digest);
        let written = object.origin();
        let unit = Unit::cpu(move |_| Ok(resource_set::expand(&set, &inputs?, &written)?));
        Task {
            emitter: own,
            expansion,
            unit: Some((key, unit)),
        }
    }
}

fn instance_task(object: &Object, emitter: &Emitter) -> Task {
    let own = Emitter::Instance(name_of(object));
    let instance = match FluxInstance::read(object.node()) {
        Ok(instance) => instance,
        Err(errors) => return Task::refused(own, object, emitter, errors),
    };
    let mut inputs = Fingerprint::of("FluxInstance");
    inputs.node(object.node().get("spec"));
    let key = unit_key("FluxInstance", &instance.id, &inputs.finish());
    let written = object.origin();
    let unit = Unit::cpu(move |_| Ok(flux_instance::expand(&instance, &written)?));
    Task {
        emitter: own,
        expansion: Expansion::new(object, emitter),
        unit: Some((key, unit)),
    }
}

impl Task {
    fn refused(own: Emitter, object: &Object, emitter: &Emitter, errors: Vec<FieldError>) -> Self {
        let mut expansion = Expansion::new(object, emitter);
        expansion.errors = errors;
        Self {
            emitter: own,
            expansion,
            unit: None,
        }
    }
}

impl Expansion {
    fn new(object: &Object, emitter: &Emitter) -> Self {
        Self {
            definition: object.clone(),
            emitter: emitter.clone(),
            errors: Vec::new(),
            unit: None,
            objects: None,
            missing: Vec::new(),
            outside: Vec::new(),
            is_unsettled: false,
            attempts: 0,
        }
    }
}
