//! `posthaste doctor`: the capabilities of this machine, and a remedy for each one that is missing.

use std::io::IsTerminal as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use posthaste_emulator::machine::{self, Capability, CapabilityState};

use super::{Failure, print};

/// Report the limits of this machine: namespaces, devices, descriptors, timers, cores.
///
/// Nothing is changed. Exit code 0 whatever is found: most limits only matter to some commands.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  posthaste doctor --json\n  posthaste doctor --nats nats://127.0.0.1:4222"
)]
pub(crate) struct Args {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[cfg(feature = "agents")]
    #[command(flatten)]
    nats: super::fleet::NatsArgs,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        #[cfg(feature = "agents")]
        if self.nats.is_given() {
            return super::doctor_fleet::show(&self.nats, self.json);
        }
        let mut capabilities = machine::settings();
        capabilities.push(user_namespaces());
        capabilities.push(machine::real_time());
        // Last, because it may move this process into a user namespace.
        capabilities.push(machine::emulated_delays());
        if self.json {
            let json = serde_json::to_string_pretty(&capabilities).map_err(Failure::run)?;
            return print(&(json + "\n"));
        }
        let colour = std::io::stdout().is_terminal();
        print(
            &capabilities
                .iter()
                .map(|capability| text(capability, colour))
                .collect::<String>(),
        )
    }
}

/// A line for people, and a second one with the remedy.
fn text(capability: &Capability, colour: bool) -> String {
    let (word, code) = match capability.state {
        CapabilityState::Good => ("good", "32"),
        CapabilityState::Limited => ("limited", "33"),
        CapabilityState::Missing => ("missing", "31"),
    };
    let word = if colour {
        format!("\x1b[{code}m{word:<8}\x1b[0m")
    } else {
        format!("{word:<8}")
    };
    let mut text = format!("{word} {:<20} {}\n", capability.subject, capability.found);
    if let Some(remedy) = capability.remedy {
        text.push_str(&format!(
            "{:30}needed for {}; {remedy}\n",
            "", capability.needed_for
        ));
    }
    text
}

/// Permission for private networks.
fn user_namespaces() -> Capability {
    use rustix::thread::UnshareFlags;
    let mut probe = Command::new("/proc/self/exe");
    probe
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let unshare = || {
        let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNET;
        // SAFETY: the child has one thread and shares no descriptor table.
        unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(std::io::Error::from)
    };
    // SAFETY: between fork and exec only one system call is made; nothing is allocated.
    let status = unsafe { probe.pre_exec(unshare) }.status();
    let (state, found) = match status {
        Ok(status) if status.success() => (CapabilityState::Good, "allowed".to_owned()),
        Ok(status) => (CapabilityState::Missing, status.to_string()),
        Err(error) => (CapabilityState::Missing, error.to_string()),
    };
    Capability::new(
        "user namespaces",
        state,
        found,
        "private networks without root",
        "sysctl kernel.unprivileged_userns_clone=1 (Debian) or \
         kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), or run as root",
    )
}
