//! Loops over lists, maps and numbers.

use std::rc::Rc;

use portolan_yaml::Text;

use super::member::is_boxed;
use super::{Failure, Machine, Slot};
use crate::meter::Meter;
use crate::object::Kind;
use crate::options::Options;
use crate::program::Targets;
use crate::value::{IntKind, List, MapType, UintKind, Value};

/// Copying so many bytes of a map's entries, each with two counted references, costs one step.
const ENTRY_BYTES_PER_STEP: u64 = 64;

/// A loop that is running.
pub(super) struct Loop {
    items: Items,
    next: usize,
    outer_dot: Slot,
    dots: usize,
}

enum Items {
    List(Rc<List>),
    /// The entries as they were when the loop began.
    Entries(Vec<(Text, Value)>, MapType),
    Bytes(Rc<[u8]>),
    /// Counts up to a number.
    Count(IntKind, i64),
}

impl Items {
    /// The memory that the loop itself takes while it runs.
    fn bytes(&self) -> usize {
        match self {
            Self::Entries(entries, _) => entries.len() * size_of::<(Text, Value)>(),
            _ => 0,
        }
    }

    fn of(value: Value, options: &Options, pair: bool) -> Result<Self, Failure> {
        match value {
            Value::List(list) => Ok(Self::List(list)),
            Value::Map(map) => Ok(Self::Entries(map.snapshot(), map.map_type())),
            Value::Bytes(bytes) => Ok(Self::Bytes(bytes)),
            Value::Nil => Ok(Self::Entries(Vec::new(), MapType::Any)),
            Value::Int(kind, count) if options.range_over_int => {
                if pair {
                    let message =
                        format!("can't use {count} to iterate over more than one variable");
                    return Err(message.into());
                }
                Ok(Self::Count(kind, count))
            }
            Value::Object(ref object) => match object.data() {
                Some(data @ (Value::List(_) | Value::Map(_)))
                    if matches!(object.kind(), Kind::Slice | Kind::Map) =>
                {
                    Self::of(data, options, pair)
                }
                _ => Err(not_iterable(&value)),
            },
            other => Err(not_iterable(&other)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Entries(entries, _) => entries.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Count(_, count) => usize::try_from(*count).unwrap_or(0),
        }
    }

    /// The key and the element of a round.
    fn get(&self, index: usize) -> Option<(Value, Slot)> {
        let number = Value::int(index as i64);
        let unboxed = |value| Slot {
            value,
            boxed: false,
        };
        match self {
            Self::List(list) => {
                let value = list.get(index)?.clone();
                Some((
                    number,
                    Slot {
                        value,
                        boxed: is_boxed(list.element()),
                    },
                ))
            }
            Self::Entries(entries, map_type) => {
                let (key, value) = entries.get(index)?;
                let boxed = map_type.is_boxed();
                Some((
                    Value::Str(key.clone()),
                    Slot {
                        value: value.clone(),
                        boxed,
                    },
                ))
            }
            Self::Bytes(bytes) => {
                let byte = u64::from(*bytes.get(index)?);
                Some((number, unboxed(Value::Uint(UintKind::Uint8, byte))))
            }
            Self::Count(kind, _) if index < self.len() => {
                Some((Value::Nil, unboxed(Value::Int(*kind, index as i64))))
            }
            Self::Count(..) => None,
        }
    }
}

fn not_iterable(value: &Value) -> Failure {
    format!("range can't iterate over {}", crate::fmt::display(value)).into()
}

impl Machine {
    /// Begins a loop over a value; false when there is nothing in it.
    pub(super) fn start_loop(
        &mut self,
        value: Value,
        options: &Options,
        pair: bool,
        meter: &Meter,
    ) -> Result<bool, Failure> {
        let items = Items::of(value, options, pair)?;
        meter.step(items.bytes() as u64 / ENTRY_BYTES_PER_STEP)?;
        meter.allocate(items.bytes())?;
        if items.len() == 0 {
            return Ok(false);
        }
        let outer_dot = self.dot.clone();
        self.loops.push(Loop {
            items,
            next: 0,
            outer_dot,
            dots: self.dots.len(),
        });
        Ok(true)
    }

    /// Sets dot and the variables for the next round; false when there is none, and the loop is over.
    pub(super) fn next_round(&mut self, targets: Targets, meter: &Meter) -> bool {
        let Some(current) = self.loops.last_mut() else {
            return false;
        };
        let Some((key, element)) = current.items.get(current.next) else {
            self.end_loop(meter);
            return false;
        };
        current.next += 1;
        let dots = current.dots;
        self.dots.truncate(dots);
        if let Some(slot) = targets.key {
            self.set_variable(
                slot,
                Slot {
                    value: key,
                    boxed: false,
                },
            );
        }
        if let Some(slot) = targets.element {
            self.set_variable(slot, element.clone());
        }
        self.dot = element;
        true
    }

    pub(super) fn end_loop(&mut self, meter: &Meter) {
        if let Some(over) = self.loops.pop() {
            meter.release(over.items.bytes());
            self.dots.truncate(over.dots);
            self.dot = over.outer_dot;
        }
    }

    pub(super) fn set_variable(&mut self, slot: u32, value: Slot) {
        let base = self.frames.last().map_or(0, |frame| frame.variables);
        if let Some(variable) = self.variables.get_mut(base + slot as usize) {
            *variable = value;
        }
    }
}
