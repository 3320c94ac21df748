//! The Python wheel: the binary as a script of a virtual environment, for pip and uv.

use super::built::BuildVariant;
use super::root::{OLD, Root};
use super::{Made, Packages};
use crate::error::Outcome;

/// Takes the wheel of the build, installs it on an older distribution without an index, and uses it.
pub(super) fn make(packages: &Packages) -> Outcome<Made> {
    let wheel = &packages.built(BuildVariant::Complete)?.wheel;
    let root = Root::fresh(packages, &OLD)?;
    let inside = root.take(wheel)?;
    let install = format!(
        "chroot \"$ROOT\" python3 -m venv /opt/venv
         chroot \"$ROOT\" /opt/venv/bin/pip install --quiet --no-index {inside}"
    );
    root.script("", &install)?;
    root.using(wheel, "`pip install`", "/opt/venv/bin/posthaste")
}
