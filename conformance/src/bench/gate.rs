//! Targets of the gateway under load, from the study that measures it.
//!
//! The study has a generator and an origin of its own. They cost too little to be the limit before the proxies are. It
//! starts HAProxy and nginx itself.

use crate::bench::figures::claims;
use crate::bench::{Bench, Figure};
use crate::error::Outcome;
use crate::tools;

/// The figures with targets.
const FIGURES: [&str; 2] = ["wsqos/promises-2026", "wsqos/policies-2026"];

/// Beyond HAProxy's limit, at saturation, at low load; and the compressed share against load.
pub(crate) fn gate(bench: &Bench) -> Outcome<Vec<Figure>> {
    for (program, package) in [("haproxy", "haproxy"), ("nginx", "nginx-light")] {
        tools::debian(&bench.site.checkout, program, package)?;
    }
    claims(bench, &FIGURES, &[])
}
