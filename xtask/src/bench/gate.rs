//! What was asked of the gateway under load, by the study that measures it.
//!
//! The study has a generator and an origin of its own, cheap enough that they do not give way before the
//! proxies do, and starts HAProxy and nginx itself.

use crate::bench::figures::claims;
use crate::bench::{Bench, Figure};
use crate::tools;
use crate::trouble::Outcome;

/// The figures that hold the bars.
const FIGURES: [&str; 2] = ["wsqos/promises-2026", "wsqos/policies-2026"];

/// Beyond HAProxy's limit, at saturation, at ease; and the share compressed against load.
pub(crate) fn gate(bench: &Bench) -> Outcome<Vec<Figure>> {
    for (program, package) in [("haproxy", "haproxy"), ("nginx", "nginx-light")] {
        tools::debian(&bench.site.checkout, program, package)?;
    }
    claims(bench, &FIGURES, &[])
}
