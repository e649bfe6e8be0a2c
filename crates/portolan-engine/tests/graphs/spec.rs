//! What a random graph looks like.

use proptest::collection::vec;
use proptest::prelude::*;

use portolan_engine::{Class, Key, Limits};

/// A random run.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) units: Vec<Spec>,
    pub(crate) limits: Limits,
    pub(crate) cancel: Option<Cancel>,
}

/// A random unit.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) class: Class,
    pub(crate) is_lazy: bool,
    /// Whether its output is let go after its last reader.
    pub(crate) is_transient: bool,
    pub(crate) deed: Deed,
    pub(crate) needs: Vec<usize>,
    /// Outputs an asynchronous unit asks for, one after another.
    pub(crate) waits: Vec<usize>,
    /// Units this one adds, before or after its waits.
    pub(crate) adds: Vec<usize>,
    pub(crate) adds_late: bool,
}

/// What a unit does after its waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Succeed,
    Dawdle,
    Fail,
    Panic,
    /// Fails in the first attempts, of three.
    Flake(u32),
}

/// Who is called off, and which unit does it when it starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cancel {
    pub(crate) by: usize,
    pub(crate) whom: Option<usize>,
}

pub(crate) fn key<T>(unit: usize) -> Key<T> {
    format!("unit/{unit:02}").into()
}

/// A graph of up to forty units; with `any_order`, needs may point anywhere and close cycles.
pub(crate) fn shape(any_order: bool) -> impl Strategy<Value = Shape> {
    let limits = (1usize..3, 1usize..4, 1usize..3).prop_map(|(cpu, io, process)| Limits {
        cpu,
        io,
        process,
    });
    let cancel = prop::option::weighted(0.3, (0usize..40, prop::option::of(0usize..40)));
    (vec(raw_unit(), 1..40), limits, cancel).prop_map(move |(raw, limits, cancel)| {
        let count = raw.len();
        let cancel = cancel.map(|(by, whom)| Cancel {
            by: by % count,
            whom: whom.map(|whom| whom % count),
        });
        Shape {
            units: link(&raw, any_order),
            limits,
            cancel,
        }
    })
}

type Raw = (Spec, Option<usize>);

fn raw_unit() -> impl Strategy<Value = Raw> {
    let class = prop_oneof![Just(Class::Cpu), Just(Class::Io), Just(Class::Process)];
    let deed = prop_oneof![
        8 => Just(Deed::Succeed),
        2 => Just(Deed::Dawdle),
        1 => Just(Deed::Fail),
        1 => Just(Deed::Panic),
        1 => (1u32..4).prop_map(Deed::Flake),
    ];
    let links = (vec(0usize..40, 0..3), vec(0usize..40, 0..3));
    let parent = prop::option::weighted(0.4, 0usize..40);
    (
        class,
        deed,
        links,
        parent,
        (prop::bool::weighted(0.2), prop::bool::weighted(0.3)),
        any::<bool>(),
    )
        .prop_map(
            |(class, deed, (needs, waits), parent, (is_lazy, is_transient), adds_late)| {
                (
                    Spec {
                        class,
                        is_lazy,
                        is_transient,
                        deed,
                        needs,
                        waits,
                        adds: vec![],
                        adds_late,
                    },
                    parent,
                )
            },
        )
}

/// Bends the random links into range and gives every unit to its parent.
fn link(raw: &[Raw], any_order: bool) -> Vec<Spec> {
    let count = raw.len();
    let bend = |links: &[usize], own: usize| -> Vec<usize> {
        let range = if any_order { count } else { own };
        links
            .iter()
            .filter(|_| range > 0)
            .map(|link| link % range)
            .collect()
    };
    let mut units: Vec<Spec> = Vec::new();
    for (own, (spec, _)) in raw.iter().enumerate() {
        let waits = if spec.class == Class::Cpu {
            vec![]
        } else {
            bend(&spec.waits, own)
        };
        units.push(Spec {
            needs: bend(&spec.needs, own),
            waits,
            ..spec.clone()
        });
    }
    for (own, (_, parent)) in raw.iter().enumerate() {
        if let Some(parent) = parent
            && own > 0
        {
            units[parent % own].adds.push(own);
        }
    }
    units
}

impl Shape {
    /// The units that are there from the beginning.
    pub(crate) fn first_units(&self) -> impl Iterator<Item = usize> {
        let added: Vec<_> = self
            .units
            .iter()
            .flat_map(|spec| spec.adds.clone())
            .collect();
        (0..self.units.len()).filter(move |unit| !added.contains(unit))
    }
}
