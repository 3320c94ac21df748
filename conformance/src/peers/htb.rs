//! Classes of `posthaste net` compared with Linux's HTB: the same floods through both, rates by the receiver's kernel.

use std::process::Command;

use serde_json::Value;

use super::namespace;
use crate::error::{Outcome, TaskError, check};
use crate::site::Site;
use crate::tools;

/// Bandwidth of the link in bytes per second. HTB counts Ethernet's header, and so do we here.
const LINE: u64 = 1_030_000;
const OVERHEAD: f64 = 14.0;
const PACKET: f64 = 1500.0;

/// Maximum deviation of a rate from the configured one, and from HTB's.
const APART: f64 = 0.02;

/// Number of attempts. If a shaper misses the configured rate, other programs used the CPU.
const TRIES: usize = 3;

/// Two classes and the load of each.
struct Case {
    name: &'static str,
    /// Guaranteed rate and ceiling, of AF11 and of the rest.
    classes: [(u64, u64); 2],
    /// Bytes per second of IP packets.
    sent: [u64; 2],
    /// Bytes per second of the link, with its overhead.
    expected: [f64; 2],
}

/// More than the whole link.
const FLOOD: u64 = 1_500_000;
const CLASSES: [(u64, u64); 2] = [(309_000, LINE), (721_000, LINE)];

const CASES: [Case; 4] = [
    Case {
        name: "both flood",
        classes: CLASSES,
        sent: [FLOOD, FLOOD],
        expected: [309_000.0, 721_000.0],
    },
    Case {
        name: "AF11 borrows",
        classes: CLASSES,
        sent: [FLOOD, 0],
        expected: [LINE as f64, 0.0],
    },
    Case {
        name: "the rest borrows",
        classes: CLASSES,
        sent: [0, FLOOD],
        expected: [0.0, LINE as f64],
    },
    Case {
        name: "AF11 at its ceiling",
        classes: [(309_000, 515_000), (721_000, LINE)],
        sent: [FLOOD, 0],
        expected: [515_000.0, 0.0],
    },
];

/// Guaranteed and borrowed rates equal the configured ones, and HTB's.
pub(crate) fn htb(site: &Site) -> Outcome<()> {
    tools::debian(&site.checkout, "tc", "iproute2")?;
    for case in &CASES {
        let ours = rates(case, || ours(site, case))?;
        let theirs = rates(case, || theirs(site, case))?;
        for (index, class) in ["AF11", "the rest"].into_iter().enumerate() {
            let expected = case.expected(index);
            let (ours, theirs) = (ours[index], theirs[index]);
            println!(
                "  {}, {class}: ours {:.1} kB/s, HTB {:.1}, set {:.1}",
                case.name,
                ours / 1e3,
                theirs / 1e3,
                expected / 1e3
            );
            for (other, whose) in [(expected, "what was set"), (theirs, "HTB's")] {
                check(is_near(ours, other), || {
                    format!(
                        "{}, {class}: ours is {ours:.0} B/s, {whose} {other:.0}",
                        case.name
                    )
                })?;
            }
        }
    }
    Ok(())
}

/// Measures until the rates are those that were set, a few times: on a busy machine the floods are too small.
fn rates(case: &Case, measure: impl Fn() -> Outcome<[f64; 2]>) -> Outcome<[f64; 2]> {
    let mut rates = measure()?;
    for _ in 1..TRIES {
        if (0..2).all(|class| is_near(rates[class], case.expected(class))) {
            break;
        }
        rates = measure()?;
    }
    Ok(rates)
}

impl Case {
    /// Expected throughput of a class in bytes per second of IP packets.
    fn expected(&self, class: usize) -> f64 {
        self.expected[class] * PACKET / (PACKET + OVERHEAD)
    }
}

fn is_near(rate: f64, other: f64) -> bool {
    (rate - other).abs() <= APART * other
}

fn ours(site: &Site, case: &Case) -> Outcome<[f64; 2]> {
    let [af, rest] = case.classes;
    let options = [
        format!("--bandwidth={LINE}B/s"),
        format!("--overhead={OVERHEAD}"),
        format!("--class=af11:{}B/s..{}B/s", af.0, af.1),
        format!("--class=rest:{}B/s..{}B/s", rest.0, rest.1),
    ];
    run(site, &options, &[], case)
}

fn theirs(site: &Site, case: &Case) -> Outcome<[f64; 2]> {
    let [af, rest] = case.classes;
    let mut shape = vec![
        "sh".to_owned(),
        "conformance/programs/htb/shape.sh".to_owned(),
    ];
    shape.extend([LINE, af.0, af.1, rest.0, rest.1].map(|rate| rate.to_string()));
    run(site, &[], &shape, case)
}

/// Sends floods from the client, with `before` as wrapper. Returns the rates at the server in bytes per second.
fn run(site: &Site, options: &[String], before: &[String], case: &Case) -> Outcome<[f64; 2]> {
    let [af, rest] = case.sent;
    let mut command = Command::new(namespace::unshare(site)?);
    command
        .current_dir(site.checkout.root())
        .arg("-r")
        .arg(&site.binary)
        .args(["net", "--quiet"])
        .args(options)
        .args([
            "--server",
            "exec python3 conformance/programs/htb/traffic.py count 3 9001 9002",
        ])
        .arg("--")
        .args(before)
        .args([
            "python3",
            "conformance/programs/htb/traffic.py",
            "send",
            "10.0.0.2",
            "5",
        ])
        .args([format!("9001:0x28:{af}"), format!("9002:0:{rest}")]);
    let finished = site.run("htb", &mut command, 60)?;
    let counted = finished.stderr.lines().find(|line| line.starts_with('{'));
    let counted: Value = counted
        .and_then(|line| serde_json::from_str(line).ok())
        .ok_or_else(|| TaskError::Failed(format!("no counts: {}", finished.stderr)))?;
    Ok(["9001", "9002"].map(|port| counted[port].as_f64().unwrap_or(f64::NAN)))
}
