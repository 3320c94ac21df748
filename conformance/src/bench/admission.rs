//! Targets of admission under overload, from the figure that compares the gateway with other proxies.
//!
//! The study starts HAProxy, nginx and Envoy itself, from the path of programs.

use crate::bench::figures::claims;
use crate::bench::{Bench, Figure};
use crate::error::{Outcome, TaskError};
use crate::tools;

/// Goodput in time, of all and of the important half, fairness and recovery, behind each proxy.
pub(crate) fn admission(bench: &Bench) -> Outcome<Vec<Figure>> {
    let checkout = &bench.site.checkout;
    for (program, package) in [("haproxy", "haproxy"), ("nginx", "nginx-light")] {
        tools::debian(checkout, program, package)?;
    }
    let python = tools::python(
        checkout,
        "envoy",
        "conformance/programs/proxies/requirements.txt",
    )?;
    let envoy = python.parent().map(std::path::Path::to_path_buf);
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let folders = envoy.into_iter().chain(std::env::split_paths(&inherited));
    let path =
        std::env::join_paths(folders).map_err(|error| TaskError::Failed(error.to_string()))?;
    let path = path.to_string_lossy();
    claims(bench, &["wsqos/admission-2026"], &[("PATH", &path)])
}
