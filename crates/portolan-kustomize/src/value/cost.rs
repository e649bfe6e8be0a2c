//! The cost of values, charged to the budget of the build before they are inserted.
//!
//! A tree shares its parts, so a copy costs nothing until it is walked. So the cost is the size of a tree with every
//! shared part counted each time: copying a map into itself forty times takes forty steps, but printing the result
//! means 10¹² nodes.

use std::mem::size_of;

use portolan_budget::Budget;
use portolan_yaml::{Entry, Node, Value};

use crate::error::{Error, Result};
use crate::load::read::MAX_DEPTH;

/// What looking at one resource costs beside its nodes: identities are made and compared.
pub(crate) const RESOURCE_STEPS: u64 = 16;

/// What opening a directory costs beside its files.
pub(crate) const DIRECTORY_STEPS: u64 = 2_000;

/// What preparing a regular expression costs.
pub(crate) const PATTERN_STEPS: u64 = 10_000;

/// Nodes that are counted before they are charged.
const NODES_PER_CHARGE: u64 = 512;

/// The size of a tree with every shared part written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cost {
    pub(crate) nodes: u64,
    pub(crate) bytes: usize,
    /// Levels of lists and maps.
    pub(crate) height: usize,
}

impl Cost {
    /// Charges another copy of a value that was measured.
    pub(crate) fn charge(self, budget: &Budget) -> Result<()> {
        budget.step(self.nodes)?;
        budget.allocate(self.bytes)?;
        Ok(())
    }

    /// Fails where the value would stand too deep below so many levels.
    pub(crate) fn check_depth(self, levels: usize, place: &str) -> Result<()> {
        if levels.saturating_add(self.height) > MAX_DEPTH {
            return Err(Error::TooDeep(place.to_owned()));
        }
        Ok(())
    }
}

/// Charges a value and returns its size; `place` is what the error names when it is nested too deeply.
pub(crate) fn charge_value(node: &Node, budget: &Budget, place: &str) -> Result<Cost> {
    let mut meter = Meter {
        budget,
        place,
        cost: Cost::default(),
        uncharged: Cost::default(),
    };
    meter.visit(node, 1)?;
    meter.settle()?;
    Ok(meter.cost)
}

/// Charges steps for as many nodes as a walk will see.
pub(crate) fn charge_walk(node: &Node, budget: &Budget) -> Result<()> {
    let mut nodes = 0;
    count(node, budget, &mut nodes)?;
    budget.step(nodes)?;
    Ok(())
}

fn count(node: &Node, budget: &Budget, nodes: &mut u64) -> Result<()> {
    *nodes += 1;
    if *nodes >= NODES_PER_CHARGE {
        budget.step(std::mem::take(nodes))?;
    }
    match &node.value {
        Value::Scalar(_) => Ok(()),
        Value::List(list) => list.iter().try_for_each(|item| count(item, budget, nodes)),
        Value::Map(map) => map
            .iter()
            .try_for_each(|entry| count(&entry.value, budget, nodes)),
    }
}

/// A measurement that goes on.
struct Meter<'a> {
    budget: &'a Budget,
    place: &'a str,
    cost: Cost,
    uncharged: Cost,
}

impl Meter<'_> {
    fn visit(&mut self, node: &Node, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep(self.place.to_owned()));
        }
        self.uncharged.nodes += 1;
        if self.uncharged.nodes >= NODES_PER_CHARGE {
            self.settle()?;
        }
        match &node.value {
            Value::Scalar(scalar) => self.add(size_of::<Node>() + scalar.text.len())?,
            Value::List(list) => {
                self.cost.height = self.cost.height.max(depth);
                self.add(size_of::<Node>())?;
                for item in list {
                    self.visit(item, depth + 1)?;
                }
            }
            Value::Map(map) => {
                self.cost.height = self.cost.height.max(depth);
                self.add(size_of::<Node>())?;
                for entry in map {
                    self.add(size_of::<Entry>() - size_of::<Node>() + entry.key.as_str().len())?;
                    self.visit(&entry.value, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, bytes: usize) -> Result<()> {
        self.uncharged.bytes += bytes;
        if self.uncharged.bytes > BYTES_PER_CHARGE {
            self.settle()?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.uncharged);
        self.cost.nodes += waiting.nodes;
        self.cost.bytes += waiting.bytes;
        waiting.charge(self.budget)
    }
}

/// Bytes that are counted before they are charged.
const BYTES_PER_CHARGE: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_budget::{Exceeded, Limits, Stop};

    fn doubled(times: usize) -> Node {
        let mut node = Node::string("x");
        for _ in 0..times {
            let mut list = Node::list();
            if let Some(items) = list.as_list_mut() {
                items.items_mut().extend([node.clone(), node]);
            }
            node = list;
        }
        node
    }

    #[test]
    fn shared_parts_count_as_often_as_they_stand_there() {
        let cost = charge_value(&doubled(4), &Budget::default(), "x").unwrap();
        assert_eq!((cost.nodes, cost.height), (31, 4));
    }

    #[test]
    fn a_tree_that_doubles_is_left_at_the_limit() {
        let limits = Limits {
            steps: 100_000,
            ..Limits::default()
        };
        let budget = Budget::new(limits, Stop::default());
        let error = charge_value(&doubled(60), &budget, "x").unwrap_err();
        assert!(matches!(error, Error::Exceeded(Exceeded::Steps(100_000))));
        assert!(charge_walk(&doubled(60), &budget).is_err());
    }

    #[test]
    fn depth_is_refused_with_its_place() {
        let mut deep = Node::null();
        for _ in 0..=MAX_DEPTH {
            let mut list = Node::list();
            if let Some(items) = list.as_list_mut() {
                items.items_mut().push(deep);
            }
            deep = list;
        }
        let error = charge_value(&deep, &Budget::default(), "file.yaml").unwrap_err();
        assert_eq!(error.to_string(), "`file.yaml` is nested too deeply");
    }
}
