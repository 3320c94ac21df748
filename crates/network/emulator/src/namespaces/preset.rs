//! Named kernel settings that make today's Linux behave like another kernel, as data with sources.
//!
//! A preset consists of sysctls and route options. An ordinary user may set them in a network namespace. The
//! description of a preset names the properties that no setting restores.

use thiserror::Error;

use crate::namespaces::host::Setup;

/// A named way to set a host's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name on command lines.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Source of the values.
    pub source: &'static str,
    sysctls: &'static [(&'static str, &'static str)],
    route: &'static str,
}

/// All presets, the default first.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "default",
        about: "this kernel with cubic, whatever the machine's own congestion control is",
        source: "Linux, net/ipv4/Kconfig: DEFAULT_TCP_CONG is cubic",
        sysctls: &[],
        route: "congctl cubic",
    },
    Preset {
        name: "linux-2005",
        about: "Reno without SACK, an initial window of 3 segments: fast retransmit after three \
                duplicate ACKs, then only the timeout. Not brought back: its timers and delayed ACKs",
        source: "the senders of the packet-loss study as its sensitive positions identify them; \
                 initial window 3 at 1,448 bytes by RFC 3390; RACK (Linux 4.4) and TLP (3.10) need SACK \
                 and do not act without it; F-RTO was off by default until Linux 2.6.24",
        sysctls: &[("net.ipv4.tcp_sack", "0"), ("net.ipv4.tcp_frto", "0")],
        route: "congctl reno initcwnd 3",
    },
];

/// The name is not that of a preset.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no kernel {name:?}: write one of {}", names())]
pub struct UnknownPreset {
    name: String,
}

fn names() -> String {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    names.join(", ")
}

/// Returns the preset of that name.
pub fn named(name: &str) -> Result<&'static Preset, UnknownPreset> {
    PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .ok_or_else(|| UnknownPreset {
            name: name.to_owned(),
        })
}

impl Preset {
    /// Settings for a host's kernel, to which more can be added.
    pub fn setup(&self) -> Setup {
        Setup {
            sysctls: self
                .sysctls
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            route: self
                .route
                .parse()
                .expect("the words are constants, and tested"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_read_and_the_first_is_the_default() {
        for preset in PRESETS {
            assert_eq!(preset.setup().sysctls.len(), preset.sysctls.len());
            assert_eq!(preset.setup().route.to_string(), preset.route);
            assert!(!preset.source.is_empty());
        }
        let default = named("default").unwrap().setup();
        assert_eq!(default.route, Setup::default().route);
        assert!(
            named("linux-2006")
                .unwrap_err()
                .to_string()
                .contains("linux-2005")
        );
    }
}
