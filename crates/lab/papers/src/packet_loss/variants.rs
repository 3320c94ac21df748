//! Configurations of both ends that the figure of 2026 compares: Linux of 2005 and of today, each with one change at a
//! time.
//!
//! Remedies need a problem. With today's default, the FIN is a packet of its own behind the last data and reveals the
//! loss. The trials therefore use the FIN on the last data, as with a server that closes before the window allows the
//! last data.

use posthaste_emulator::agent;
use posthaste_study::Failure;

use super::kernel::{KernelSetup, OF_2005, TODAY};
use super::service::SEGMENT;
use super::testbed::Ends;

/// Base of a change.
pub(super) struct Base {
    pub(super) name: &'static str,
    kernel: &'static KernelSetup,
    fin_on_data: bool,
}

pub(super) static OLD: Base = Base {
    name: "linux-2005",
    kernel: &OF_2005,
    fin_on_data: false,
};

pub(super) static DEFAULT: Base = Base {
    name: "today's default",
    kernel: &TODAY,
    fin_on_data: false,
};

pub(super) static FIN: Base = Base {
    name: "today, FIN on the data",
    kernel: &TODAY,
    fin_on_data: true,
};

/// A change of a base.
#[derive(Clone, Copy)]
pub(super) struct SetupChange {
    pub(super) name: &'static str,
    /// Settings of both kernels.
    sysctls: &'static [(&'static str, &'static str)],
    /// Options of the routes of client and server, in addition to those of the kernel's preset.
    routes: [&'static str; 2],
    /// Bytes of data in a full segment of the server.
    pub(super) segment: u32,
    /// True with a duplicate-ACK agent in front of the client.
    agent: bool,
}

const SACK_OFF: (&str, &str) = ("net.ipv4.tcp_sack", "0");
const PROBE_OFF: (&str, &str) = ("net.ipv4.tcp_early_retrans", "0");
const RACK_OFF: (&str, &str) = ("net.ipv4.tcp_recovery", "0");

pub(super) const NOTHING: SetupChange = SetupChange {
    name: "as it is",
    sysctls: &[],
    routes: [""; 2],
    segment: SEGMENT,
    agent: false,
};

pub(super) const TIMER: SetupChange = SetupChange {
    name: "timeout of 50 ms at least",
    routes: ["", "rto_min 50ms"],
    ..NOTHING
};

pub(super) const REORDERING: SetupChange = SetupChange {
    name: "reordering threshold 1",
    sysctls: &[("net.ipv4.tcp_reordering", "1")],
    ..NOTHING
};

/// Segment size that the client requests. The time stamp takes 12 of the 536 bytes.
pub(super) const SMALL: SetupChange = SetupChange {
    name: "segments of 524 bytes",
    routes: ["advmss 536", ""],
    segment: 524,
    ..NOTHING
};

pub(super) const AGENT: SetupChange = SetupChange {
    name: "duplicate-ACK agent",
    agent: true,
    ..NOTHING
};

pub(super) const NO_PROBE: SetupChange = SetupChange {
    name: "no tail loss probe",
    sysctls: &[PROBE_OFF],
    ..NOTHING
};

pub(super) const NO_RACK: SetupChange = SetupChange {
    name: "tcp_recovery = 0",
    sysctls: &[RACK_OFF],
    ..NOTHING
};

pub(super) const NEITHER: SetupChange = SetupChange {
    name: "neither of them",
    sysctls: &[PROBE_OFF, RACK_OFF],
    ..NOTHING
};

pub(super) const NO_SACK: SetupChange = SetupChange {
    name: "no SACK",
    sysctls: &[SACK_OFF],
    ..NOTHING
};

pub(super) const NO_SACK_AGENT: SetupChange = SetupChange {
    name: "no SACK, agent",
    agent: true,
    ..NO_SACK
};

/// One configuration of both ends.
pub(super) struct Variant {
    /// Its name in records.
    pub(super) key: &'static str,
    pub(super) base: &'static Base,
    pub(super) change: SetupChange,
}

const fn variant(key: &'static str, base: &'static Base, change: SetupChange) -> Variant {
    Variant { key, base, change }
}

/// All variants, in the order of the run.
pub(super) static VARIANTS: [Variant; 16] = [
    variant("2005", &OLD, NOTHING),
    variant("2005 timer", &OLD, TIMER),
    variant("2005 reordering", &OLD, REORDERING),
    variant("2005 small", &OLD, SMALL),
    variant("2005 agent", &OLD, AGENT),
    variant("today", &DEFAULT, NOTHING),
    variant("fin", &FIN, NOTHING),
    variant("fin timer", &FIN, TIMER),
    variant("fin reordering", &FIN, REORDERING),
    variant("fin small", &FIN, SMALL),
    variant("fin agent", &FIN, AGENT),
    variant("fin no probe", &FIN, NO_PROBE),
    variant("fin no rack", &FIN, NO_RACK),
    variant("fin neither", &FIN, NEITHER),
    variant("fin no sack", &FIN, NO_SACK),
    variant("fin no sack agent", &FIN, NO_SACK_AGENT),
];

/// Returns the variant of a base and a change. The table contains all pairs that pictures use.
pub(super) fn variant_of(base: &Base, change: &SetupChange) -> &'static Variant {
    let is =
        |variant: &&Variant| variant.base.name == base.name && variant.change.name == change.name;
    VARIANTS.iter().find(is).expect("a pair of the table")
}

impl Variant {
    /// Describes the variant in words: the base and the change, if any.
    pub(super) fn name(&self) -> String {
        match self.change.name {
            change if change == NOTHING.name => self.base.name.to_owned(),
            change => format!("{}, {change}", self.base.name),
        }
    }

    /// Configuration of the ends.
    pub(super) fn ends(&self) -> Result<Ends, Failure> {
        let SetupChange {
            sysctls,
            routes,
            segment,
            agent,
            ..
        } = self.change;
        let mut ends = self.base.kernel.ends()?;
        for (setup, route) in [&mut ends.client, &mut ends.server].into_iter().zip(routes) {
            let sysctls = sysctls.iter();
            setup
                .sysctls
                .extend(sysctls.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
            setup.route = std::mem::take(&mut setup.route).with(&route.parse()?);
        }
        Ok(Ends {
            segment,
            fin_on_data: self.base.fin_on_data,
            agent: agent.then(agent::Settings::default),
            ..ends
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_can_be_set_up_and_has_a_name_of_its_own() {
        for (index, variant) in VARIANTS.iter().enumerate() {
            variant.ends().unwrap();
            let found = variant_of(variant.base, &variant.change);
            assert_eq!(found.key, variant.key, "{index}");
        }
        let small = variant_of(&FIN, &SMALL).ends().unwrap();
        assert_eq!(small.client.route.to_string(), "congctl cubic advmss 536");
        assert_eq!(small.server.route.to_string(), "congctl cubic");
        assert!(small.fin_on_data && small.agent.is_none());
    }
}
