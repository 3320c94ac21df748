//! Capabilities of this machine, and a remedy for each one that is missing.

use std::fs;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use posthaste_link::Plan;
use posthaste_units::Span;
use rustix::process::Resource;
use serde::Serialize;

use crate::{CLIENT, Emulation, EmulationOutcome, EmulationVerdict, SERVER, namespaces::namespace};

/// State of a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CapabilityState {
    /// Sufficient.
    Good,
    /// Sufficient for some uses.
    Limited,
    /// Absent.
    Missing,
}

/// A capability as found.
#[derive(Clone, Debug, Serialize)]
pub struct Capability {
    /// Name.
    #[serde(rename = "what")]
    pub subject: &'static str,
    /// State.
    pub state: CapabilityState,
    /// Value that was found.
    pub found: String,
    /// Uses that need it.
    pub needed_for: &'static str,
    /// Remedy, unless it is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<&'static str>,
}

impl Capability {
    /// Creates a finding. The remedy counts unless the state is good.
    pub fn new(
        subject: &'static str,
        state: CapabilityState,
        found: impl Into<String>,
        needed_for: &'static str,
        remedy: &'static str,
    ) -> Self {
        Self {
            subject,
            state,
            found: found.into(),
            needed_for,
            remedy: (state != CapabilityState::Good).then_some(remedy),
        }
    }
}

/// Settings of the kernel and of its limits, as far as they matter for the commands.
pub fn settings() -> Vec<Capability> {
    vec![
        kernel(),
        cores(),
        timers(),
        descriptors(),
        ports(),
        time_wait(),
        backlog(),
        congestion_control(),
    ]
}

fn setting(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn kernel() -> Capability {
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let state = if version >= (5, 11) {
        CapabilityState::Good
    } else {
        CapabilityState::Missing
    };
    Capability::new(
        "kernel",
        state,
        release,
        "exact waiting (epoll_pwait2)",
        "use Linux 5.11 or later",
    )
}

fn cores() -> Capability {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let state = if cores > 1 {
        CapabilityState::Good
    } else {
        CapabilityState::Limited
    };
    Capability::new(
        "cores",
        state,
        cores.to_string(),
        "a generator that does not take the server's core",
        "run server and generator on different machines",
    )
}

/// Lateness of a short sleep, with the generator's timer settings: the 90th percentile.
fn timers() -> Capability {
    const SLEEP: Duration = Duration::from_micros(500);
    // Without it the timers are only coarser, and the coarser timers are measured.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let mut late: Vec<Duration> = (0..100)
        .map(|_| {
            let start = Instant::now();
            std::thread::sleep(SLEEP);
            start.elapsed().saturating_sub(SLEEP)
        })
        .collect();
    late.sort_unstable();
    let p90 = late[89].as_micros();
    let state = if p90 <= 200 {
        CapabilityState::Good
    } else {
        CapabilityState::Limited
    };
    Capability::new(
        "timers",
        state,
        format!("{p90} us late at p90"),
        "sending at the intended time",
        "end other work, or use a machine with high-resolution timers",
    )
}

fn descriptors() -> Capability {
    let limit = rustix::process::getrlimit(Resource::Nofile)
        .maximum
        .unwrap_or(u64::MAX);
    let state = if limit >= 16_384 {
        CapabilityState::Good
    } else {
        CapabilityState::Limited
    };
    Capability::new(
        "descriptors",
        state,
        format!("at most {limit} per process"),
        "many connections at once (rate times timeout)",
        "raise the hard limit: ulimit -Hn 65536 as root, or LimitNOFILE= of the service",
    )
}

fn ports() -> Capability {
    let range = setting("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let ends: Vec<u32> = range
        .split_whitespace()
        .filter_map(|end| end.parse().ok())
        .collect();
    let count = match ends.as_slice() {
        [low, high] if high >= low => high - low + 1,
        _ => 0,
    };
    let state = if count >= 28_000 {
        CapabilityState::Good
    } else {
        CapabilityState::Limited
    };
    Capability::new(
        "local ports",
        state,
        count.to_string(),
        "a new connection per request at high rates",
        "sysctl net.ipv4.ip_local_port_range='1024 65535'",
    )
}

fn time_wait() -> Capability {
    let reuse = setting("/proc/sys/net/ipv4/tcp_tw_reuse").unwrap_or_default();
    let state = if matches!(reuse.as_str(), "1" | "2") {
        CapabilityState::Good
    } else {
        CapabilityState::Limited
    };
    let found = match reuse.as_str() {
        "1" => "ports in TIME_WAIT are used again".to_owned(),
        "2" => "ports in TIME_WAIT are used again on loopback".to_owned(),
        other => format!("tcp_tw_reuse = {other}"),
    };
    Capability::new(
        "TIME_WAIT",
        state,
        found,
        "new connections beyond 470 per second",
        "sysctl net.ipv4.tcp_tw_reuse=1",
    )
}

fn backlog() -> Capability {
    let most: u32 = setting("/proc/sys/net/core/somaxconn")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let state = if most >= 4096 {
        CapabilityState::Good
    } else {
        CapabilityState::Limited
    };
    Capability::new(
        "listen backlog",
        state,
        format!("at most {most}"),
        "bookshop --backlog",
        "sysctl net.core.somaxconn=4096",
    )
}

fn congestion_control() -> Capability {
    let path = |name: &str| setting(&format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
    let available = path("tcp_available_congestion_control");
    let both = ["cubic", "reno"]
        .iter()
        .all(|name| available.split_whitespace().any(|other| other == *name));
    let state = if both {
        CapabilityState::Good
    } else {
        CapabilityState::Limited
    };
    Capability::new(
        "congestion control",
        state,
        format!(
            "{} by default; has {available}",
            path("tcp_congestion_control")
        ),
        "emulating the kernel's default and old stacks",
        "modprobe tcp_cubic",
    )
}

/// Permission for real-time priority in `net`: by limit, or as root, which needs no user namespace. A capability of the
/// file alone is lost in a user namespace.
pub fn real_time() -> Capability {
    use rustix::thread::CapabilitySet;
    let needed = CapabilitySet::SYS_NICE
        | CapabilitySet::SYS_ADMIN
        | CapabilitySet::NET_ADMIN
        | CapabilitySet::NET_RAW;
    let capable = rustix::thread::capabilities(None)
        .is_ok_and(|capabilities| capabilities.effective.contains(needed));
    let limit = rustix::process::getrlimit(Resource::Rtprio)
        .maximum
        .unwrap_or(u64::MAX);
    let allowed = capable || limit > 0;
    let (state, found) = if allowed {
        (CapabilityState::Good, "allowed")
    } else {
        (CapabilityState::Limited, "not allowed")
    };
    Capability::new(
        "real-time priority",
        state,
        found,
        "exact emulated delays on a busy machine",
        "an rtprio limit of 1 or more (/etc/security/limits.conf, LimitRTPRIO= of a service), or run as root",
    )
}

/// Lateness of an emulator on this machine. May move this process into a user namespace.
///
/// Measured with a delay of 10 ms, one packet per millisecond, for a quarter of a second.
pub fn emulated_delays() -> Capability {
    let (state, found) = match try_emulator() {
        Ok(outcome) => {
            let state = match outcome.verdict() {
                EmulationVerdict::OnTime => CapabilityState::Good,
                EmulationVerdict::Late { .. } | EmulationVerdict::Lost { .. } => {
                    CapabilityState::Limited
                }
            };
            let late = |share| outcome.lateness.quantile(share);
            (
                state,
                format!("{} late at p50, {} at p99", late(0.5), late(0.99)),
            )
        }
        Err(error) => (CapabilityState::Missing, error.to_string()),
    };
    Capability::new(
        "emulated delays",
        state,
        found,
        "posthaste net, reproduce packet-loss",
        "end other work, or allow user namespaces and real-time priority (above)",
    )
}

fn try_emulator() -> Result<EmulationOutcome, Box<dyn std::error::Error>> {
    namespace::enter()?;
    let plan = Arc::new(Plan {
        delay: Span::from_millis(10),
        ..Plan::default()
    });
    let emulation = Emulation::new(plan.clone(), plan).real_time(true);
    let running = emulation.start()?;
    let receiver = running.server.run(|| UdpSocket::bind((SERVER.v4, 0)))?;
    let to = receiver.local_addr()?;
    running.client.run(move || -> std::io::Result<()> {
        let sender = UdpSocket::bind((CLIENT.v4, 0))?;
        for _ in 0..250 {
            sender.send_to(&[0; 100], to)?;
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(15));
        Ok(())
    })?;
    Ok(running.finish()?)
}
