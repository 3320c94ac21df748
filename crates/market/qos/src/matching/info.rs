//! Comparison of one operation, or of the default: metrics, priorities, security.

use std::ops::ControlFlow;

use super::effective::Effective;
use super::groups::Groups;
use super::mismatch::Amount;
use super::{Mismatch, Objector, World};
use crate::definition::{Definition, Info};
use crate::ontology::Direction;

/// The same operation on both sides.
pub(super) struct OperationPair<'d> {
    operation: Option<&'d str>,
    offered: Effective<'d>,
    wanted: Effective<'d>,
}

/// Direction of a bound.
#[derive(Clone, Copy)]
enum Bound {
    Most,
    Least,
}

impl<'d> OperationPair<'d> {
    pub(super) fn new(
        operation: Option<&'d String>,
        offered: &'d Definition,
        wanted: &'d Definition,
    ) -> Self {
        let operation = operation.map(String::as_str);
        Self {
            operation,
            offered: Effective::new(operation, offered),
            wanted: Effective::new(operation, wanted),
        }
    }

    pub(super) fn compare(&self, world: &World<'_>, object: Objector<'_, 'd>) -> ControlFlow<()> {
        let per_second = |info: &Info| info.server.requests_per_second;
        self.number(
            "processing time",
            Bound::Most,
            |info| info.server.processing_time,
            object,
        )?;
        self.number("requests per second", Bound::Least, per_second, object)?;
        self.number(
            "reliability",
            Bound::Least,
            |info| info.server.reliability,
            object,
        )?;
        self.number(
            "availability",
            Bound::Least,
            |info| info.server.availability,
            object,
        )?;
        self.number(
            "priority of delay",
            Bound::Most,
            |info| info.transport.delay,
            object,
        )?;
        self.number(
            "priority of jitter",
            Bound::Most,
            |info| info.transport.jitter,
            object,
        )?;
        self.number(
            "priority of throughput",
            Bound::Most,
            |info| info.transport.throughput,
            object,
        )?;
        self.number(
            "priority of packet loss",
            Bound::Most,
            |info| info.transport.packet_loss,
            object,
        )?;
        self.custom_priorities(object)?;
        self.custom_metrics(world, object)?;
        Groups::of_security(self.operation, self.offered, self.wanted).compare(object)
    }

    fn number<T: PartialOrd + Into<Amount>>(
        &self,
        name: &'d str,
        bound: Bound,
        get: impl Fn(&'d Info) -> Option<T>,
        object: Objector<'_, 'd>,
    ) -> ControlFlow<()> {
        match self.wanted.stated(&get) {
            None => ControlFlow::Continue(()),
            Some(wanted) => self.judge(name, bound, self.offered.stated(&get), wanted, object),
        }
    }

    fn custom_priorities(&self, object: Objector<'_, 'd>) -> ControlFlow<()> {
        for wanted in self.wanted.customs(|info| &info.transport.custom) {
            let offered = self.offered.custom(|info| &info.transport.custom, wanted);
            let offered = offered.map(|custom| custom.value);
            self.judge(&wanted.name, Bound::Most, offered, wanted.value, object)?;
        }
        ControlFlow::Continue(())
    }

    fn custom_metrics(&self, world: &World<'_>, object: Objector<'_, 'd>) -> ControlFlow<()> {
        for wanted in self.wanted.customs(|info| &info.server.custom) {
            let ontology = world.ontologies.get(&wanted.ontology);
            let Some(metric) = ontology.and_then(|ontology| ontology.metrics.get(&wanted.name))
            else {
                object(Mismatch::Undefined {
                    operation: self.operation,
                    name: &wanted.name,
                    ontology: &wanted.ontology,
                })?;
                continue;
            };
            let bound = match metric.direction {
                Direction::Increasing => Bound::Least,
                Direction::Decreasing => Bound::Most,
            };
            let offered = self.offered.custom(|info| &info.server.custom, wanted);
            let offered = offered.map(|custom| custom.value);
            self.judge(&wanted.name, bound, offered, wanted.value, object)?;
        }
        ControlFlow::Continue(())
    }

    fn judge<T: PartialOrd + Into<Amount>>(
        &self,
        name: &'d str,
        bound: Bound,
        offered: Option<T>,
        wanted: T,
        object: Objector<'_, 'd>,
    ) -> ControlFlow<()> {
        let (is_enough, bound) = match bound {
            Bound::Most => (offered.as_ref().is_some_and(|o| *o <= wanted), "most"),
            Bound::Least => (offered.as_ref().is_some_and(|o| *o >= wanted), "least"),
        };
        if is_enough {
            return ControlFlow::Continue(());
        }
        object(Mismatch::Amount {
            operation: self.operation,
            name,
            offered: offered.map(T::into),
            bound,
            wanted: wanted.into(),
        })
    }
}
