//! Load of another protected resource: a process, a cgroup, processors, or upstreams that report it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use posthaste_compression::{LoadEstimate, Work};
use posthaste_gateway_config::{Process, Watch};
use posthaste_serve::Background;
use posthaste_units::{Instant, Span};
use tokio::time::sleep;

use super::{Controller, EVERY, share};
use crate::clock::now;
use crate::context::GatewayContext;

/// Starts sampling the configured resource and publishes the estimates. `None` if workers protect themselves.
pub(crate) fn start(context: Arc<GatewayContext>) -> io::Result<Option<Background>> {
    let watch = context.resolved().config.demand.watch.clone();
    if watch == Watch::Workers {
        return Ok(None);
    }
    let work = move || async move { run(&watch, &context).await };
    Background::start("watch", work).map(Some)
}

/// Samples forever.
async fn run(watch: &Watch, context: &GatewayContext) {
    let threshold = || context.resolved().config.compression.high_demand();
    let mut controller = Controller::new(threshold(), processors(watch), Work::default());
    let mut last = None;
    let (mut known, mut answered) = (true, 0);
    loop {
        let before = std::mem::replace(&mut answered, context.metrics.upstream.nanos.load(Relaxed));
        let seen = sample(watch, context);
        // Upstreams without requests report nothing.
        let is_idle = matches!(watch, Watch::Upstream(_)) && answered == before;
        if known && seen.is_none() && !is_idle {
            tracing::warn!(%watch, "cannot be watched: nothing optional is compressed meanwhile");
        }
        known = seen.is_some() || (known && is_idle);
        let busy = match (&last, &seen) {
            (_, Some(ResourceSample::Share(busy))) => Some(*busy),
            (Some(ResourceSample::Used(before, was)), Some(ResourceSample::Used(at, used))) => {
                let passed = at.since(*before).as_nanos() as f64 * controller.processors;
                Some(share(since(used, was), Span::from_nanos(passed as u64)))
            }
            _ => None,
        };
        context
            .latest
            .store(busy.unwrap_or(f64::NAN).to_bits(), Relaxed);
        let estimate = busy.map_or(LoadEstimate::UNKNOWN, |busy| {
            let mut work = context.metrics.work();
            if !matches!(watch, Watch::Cores(_)) {
                // These samples do not include the cost of compression.
                work.spent = Span::ZERO;
            }
            controller.push(threshold(), busy, work)
        });
        context.estimate.send_replace(estimate);
        last = seen;
        sleep(EVERY).await;
    }
}

/// CPU time by process number, or in one entry for all.
type Used = BTreeMap<u32, Span>;

/// Returns the CPU time used beyond `before`. A process that has ended does not reduce the sum.
fn since(used: &Used, before: &Used) -> Span {
    let more = |(number, used): (&u32, &Span)| {
        let before = before.get(number).copied().unwrap_or_default();
        used.saturating_sub(before)
    };
    used.iter().map(more).sum()
}

/// One sample.
enum ResourceSample {
    /// CPU time used until then, by process.
    Used(Instant, Used),
    /// A busy share.
    Share(f64),
}

/// Takes a sample. `None` if the resource cannot be read.
fn sample(watch: &Watch, context: &GatewayContext) -> Option<ResourceSample> {
    let used = match watch {
        Watch::Process(process) => used_by_process(process)?,
        Watch::Cgroup(path) => Used::from([(0, used_by_cgroup(path)?)]),
        Watch::Cores(cores) => Used::from([(0, used_by_cores(cores)?)]),
        Watch::Upstream(_) => {
            return context
                .resolved()
                .reported_busy(now())
                .map(ResourceSample::Share);
        }
        // Each worker samples itself.
        Watch::Workers => return None,
    };
    Some(ResourceSample::Used(now(), used))
}

/// Number of processors of the resource.
fn processors(watch: &Watch) -> f64 {
    // Those of the machine: the gateway's own affinity does not apply to other processes.
    let all = machine_processors().unwrap_or(1.0);
    match watch {
        Watch::Cores(cores) => cores.len() as f64,
        Watch::Cgroup(path) => quota(path).unwrap_or(all),
        Watch::Workers | Watch::Process(_) | Watch::Upstream(_) => all,
    }
}

/// CPU time of all threads of each process with that name or number (proc_pid_stat(5), in clock ticks).
fn used_by_process(process: &Process) -> Option<Used> {
    let mut used = Used::new();
    let mut add = |number: u32| {
        let folder = PathBuf::from(format!("/proc/{number}"));
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        // The name is in parentheses and may contain any character.
        let (name, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let wanted = match process {
            Process::Number(_) => true,
            Process::Name(wanted) => name.split_once('(')?.1 == wanted,
        };
        if wanted {
            let ticks =
                fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
            let second = rustix::param::clock_ticks_per_second().max(1);
            used.insert(number, Span::from_nanos(ticks * (1_000_000_000 / second)));
        }
        Some(())
    };
    match process {
        Process::Number(number) => {
            add(*number);
        }
        Process::Name(_) => {
            for entry in fs::read_dir("/proc").ok()?.flatten() {
                if let Ok(number) = entry.file_name().to_string_lossy().parse() {
                    add(number);
                }
            }
        }
    }
    (!used.is_empty()).then_some(used)
}

/// CPU time from `cpu.stat` (cgroup v2, in µs) or `cpuacct.usage` (cgroup v1, in ns).
fn used_by_cgroup(path: &str) -> Option<Span> {
    if let Ok(stat) = fs::read_to_string(format!("/sys/fs/cgroup/{path}/cpu.stat")) {
        let used = stat
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "));
        if let Some(micros) = used.and_then(|n| n.parse().ok()) {
            return Some(Span::from_micros(micros));
        }
    }
    let file = format!("/sys/fs/cgroup/cpuacct/{path}/cpuacct.usage");
    let nanos = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    Some(Span::from_nanos(nanos))
}

/// Processors that a cgroup may use, if it has a limit (cgroup v2: `cpu.max`).
fn quota(path: &str) -> Option<f64> {
    let limit = fs::read_to_string(format!("/sys/fs/cgroup/{path}/cpu.max")).ok()?;
    let (quota, period) = limit.trim().split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

/// Processors online, from proc_stat(5).
fn machine_processors() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let is_one = |line: &&str| {
        let number = line.strip_prefix("cpu");
        number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    Some(stat.lines().filter(is_one).count() as f64).filter(|count| *count > 0.0)
}

/// Busy time of the processors, from proc_stat(5), in clock ticks.
fn used_by_cores(cores: &[usize]) -> Option<Span> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let second = rustix::param::clock_ticks_per_second().max(1);
    let mut sum = Span::ZERO;
    for core in cores {
        let start = format!("cpu{core} ");
        let line = stat.lines().find_map(|line| line.strip_prefix(&start))?;
        let columns = line.split(' ').filter_map(|n| n.parse::<u64>().ok());
        // user, nice, system, idle, iowait, irq, softirq, steal
        let busy = columns
            .take(8)
            .enumerate()
            .filter(|(column, _)| !matches!(column, 3 | 4));
        let ticks: u64 = busy.map(|(_, ticks)| ticks).sum();
        sum += Span::from_nanos(ticks * (1_000_000_000 / second));
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use rustix::time::{ClockId, clock_gettime};

    use super::*;

    /// Uses `time` of CPU time, independent of the load of the machine.
    fn work_for(time: std::time::Duration) {
        let used = || {
            let used = clock_gettime(ClockId::ThreadCPUTime);
            std::time::Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
        };
        let start = used();
        while used() - start < time {
            std::hint::black_box(0);
        }
    }

    #[test]
    fn a_process_that_works_is_seen_to_work() {
        let this = Process::Number(std::process::id());
        let before = used_by_process(&this).unwrap();
        work_for(std::time::Duration::from_millis(200));
        let used = since(&used_by_process(&this).unwrap(), &before);
        assert!(used >= Span::from_millis(50), "{used}");
        let name = fs::read_to_string("/proc/self/comm").unwrap();
        let named = used_by_process(&Process::Name(name.trim().to_owned())).unwrap();
        assert!(
            since(&named, &before) >= Span::from_millis(50),
            "{named:?} {before:?}"
        );
        assert_eq!(
            used_by_process(&Process::Name("no such process".to_owned())),
            None
        );
        assert_eq!(used_by_process(&Process::Number(u32::MAX)), None);
    }

    #[test]
    fn ended_processes_do_not_reduce_the_usage_of_others() {
        let ms = |list: &[(u32, u64)]| -> Used {
            let spans = list.iter().map(|(who, ms)| (*who, Span::from_millis(*ms)));
            spans.collect()
        };
        let before = ms(&[(1, 9_000), (2, 100)]);
        assert_eq!(
            since(&ms(&[(2, 250), (3, 50)]), &before),
            Span::from_millis(200)
        );
    }

    #[test]
    fn processors_count_and_ones_that_are_not_there_do_not() {
        let first = posthaste_serve::available_cpus()[0];
        let before = used_by_cores(&[first]).unwrap();
        assert!(before > Span::ZERO);
        assert!(used_by_cores(&[first]).unwrap() >= before);
        assert_eq!(used_by_cores(&[99_999]), None);
        assert_eq!(used_by_cgroup("no/such/group"), None);
    }
}
