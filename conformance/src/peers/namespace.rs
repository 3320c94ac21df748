//! The kernel's counters: overload in a network namespace with no other traffic.
//!
//! The test starts this program again inside `unshare`. The inner one enables the loopback, starts server and
//! generator, and compares the report with /proc/net/netstat.

use std::path::PathBuf;
use std::process::Command;

use crate::cores::{generator, server};
use crate::error::{Outcome, TaskError, check};
use crate::load::LoadReport;
use crate::site::Site;
use crate::tools;

/// Effects of one overload, by the generator and by the kernel.
pub(crate) struct Overload {
    pub(crate) report: LoadReport,
    pub(crate) listen_drops: u64,
    pub(crate) syn_retransmissions: u64,
}

/// About seven times the capacity of the slow server, with a connection each.
pub(crate) fn overload(site: &Site) -> Outcome<()> {
    let output = in_namespace(
        site,
        &["overload", "--rate", "6000/s", "--duration", "3s"],
        240,
    )?;
    print!("{output}");
    Ok(())
}

/// The program that creates network namespaces. An error if the kernel does not permit it.
pub(crate) fn unshare(site: &Site) -> Outcome<PathBuf> {
    let unshare = tools::debian(&site.checkout, "unshare", "util-linux")?;
    let allowed = Command::new(&unshare).args(["-rn", "true"]).output();
    if !allowed.is_ok_and(|tried| tried.status.success()) {
        return Err(TaskError::Missing(
            "no network namespace to be had: run as root, or allow user namespaces \
             (sysctl kernel.unprivileged_userns_clone=1)"
                .into(),
        ));
    }
    Ok(unshare)
}

/// Runs a task of this program in a network namespace of its own.
pub(crate) fn in_namespace(site: &Site, chore: &[&str], seconds: u64) -> Outcome<String> {
    let unshare = unshare(site)?;
    tools::debian(&site.checkout, "ip", "iproute2")?;
    // A copy, because testing the workspace may rebuild this program while it runs.
    let this = site.logs.join("xtask");
    std::fs::copy("/proc/self/exe", &this).map_err(|error| TaskError::at(&this, error))?;
    let mut command = Command::new(unshare);
    command
        .arg("-rn")
        .arg(this)
        .arg("inside")
        .arg(&site.binary)
        .args(chore);
    Ok(site.run("namespace", &mut command, seconds)?.stdout)
}

/// Inside the namespace: overloads the slow server and prints the result as JSON.
pub(crate) fn overload_told(site: &Site, rate: &str, duration: &str) -> Outcome<()> {
    let Overload {
        report,
        listen_drops,
        syn_retransmissions,
    } = overload_once(site, rate, duration)?;
    let (aborted, unanswered) = (
        report.outcome("connect-aborted"),
        report.outcome("unanswered"),
    );
    let intended = report.intended()?;
    let unsent = report.outcome("dropped") + report.outcome("client-failed");
    println!(
        "{}",
        serde_json::json!({
            "intended": intended,
            "attempted": intended - unsent,
            "connect_aborted": aborted,
            "unanswered": unanswered,
            "listen_drops": listen_drops,
            "syn_retransmissions": syn_retransmissions,
            "lateness_p99_ms": report.number("send_lateness_ms/p99")?,
        })
    );
    Ok(())
}

/// Lateness of the generator, in milliseconds, if other programs used its CPU time.
const DISTURBED: f64 = 20.0;

/// Inside the namespace: compares the generator's counts with the kernel's.
///
/// They agree to the last connection, unless the machine was so busy that the last packet of a handshake waited while
/// others filled the queue. A run in which the generator itself was late by [`DISTURBED`] is repeated, at most twice.
pub(crate) fn overload_counted(site: &Site, rate: &str, duration: &str) -> Outcome<()> {
    for _ in 0..2 {
        let overload = overload_once(site, rate, duration)?;
        let late = overload.report.number("send_lateness_ms/max")?;
        match agree(&overload) {
            Err(error) if late > DISTURBED => println!("  {error}; disturbed, {late:.0} ms late"),
            outcome => return outcome,
        }
    }
    agree(&overload_once(site, rate, duration)?)
}

fn agree(overload: &Overload) -> Outcome<()> {
    let Overload {
        report,
        listen_drops,
        syn_retransmissions,
    } = overload;
    let (aborted, unanswered) = (
        report.outcome("connect-aborted"),
        report.outcome("unanswered"),
    );
    let outcomes = report.outcomes();
    println!("  {outcomes}; ListenDrops {listen_drops}, SYNs sent again {syn_retransmissions}");
    check(aborted > 0, || "the server was not overloaded".into())?;
    check(aborted + unanswered == *listen_drops, || {
        format!(
            "{aborted} connect-aborted + {unanswered} unanswered, but {listen_drops} ListenDrops"
        )
    })?;
    check(*syn_retransmissions == 0, || {
        format!("{syn_retransmissions} SYNs were sent twice")
    })
}

/// One run against the slow server, with the kernel's counters of that time.
pub(crate) fn overload_once(site: &Site, rate: &str, duration: &str) -> Outcome<Overload> {
    let mut up = Command::new("ip");
    site.run("ip", up.args(["link", "set", "lo", "up"]), 10)?;
    let server = site.script_on(server(), "slow", "conformance/programs/slow/server.py")?;
    let counters = || Ok::<_, TaskError>((netstat("ListenDrops")?, netstat("TCPSynRetrans")?));
    let before = counters()?;
    let arguments = [
        "--rate",
        rate,
        "--duration",
        duration,
        "--connection",
        "new",
        "--timeout",
        "5s",
    ];
    let url = server.url("/");
    let arguments = [[url.as_str()].as_slice(), &arguments].concat();
    let report = site.start_load(generator(), &arguments)?.finish(80)?;
    let after = counters()?;
    Ok(Overload {
        report,
        listen_drops: after.0 - before.0,
        syn_retransmissions: after.1 - before.1,
    })
}

/// A TcpExt counter of this namespace (proc_net(5): a line of names, a line of values).
fn netstat(name: &str) -> Outcome<u64> {
    let text = std::fs::read_to_string("/proc/net/netstat")
        .map_err(|error| TaskError::Failed(format!("/proc/net/netstat: {error}")))?;
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    names
        .split(' ')
        .zip(values.split(' '))
        .find(|(key, _)| *key == name)
        .and_then(|(_, value)| value.parse().ok())
        .ok_or_else(|| TaskError::Failed(format!("/proc/net/netstat has no {name}")))
}
