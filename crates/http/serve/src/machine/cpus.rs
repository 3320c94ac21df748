//! CPU affinity of threads.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Pins the calling thread to `cpus`. An empty list leaves it unchanged.
pub fn pin_thread(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(no_such(cpu));
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|_| {
        let allowed = available_cpus();
        let wrong = cpus.iter().find(|cpu| !allowed.contains(cpu));
        no_such(wrong.copied().unwrap_or(cpus[0]))
    })
}

/// Returns the processors that the calling thread may use.
pub fn available_cpus() -> Vec<usize> {
    sched_getaffinity(None)
        .map(|set| {
            (0..CpuSet::MAX_CPU)
                .filter(|&cpu| set.is_set(cpu))
                .collect()
        })
        .unwrap_or_default()
}

fn no_such(cpu: usize) -> io::Error {
    let allowed = available_cpus();
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("there is no processor {cpu} to run on: this process may use {allowed:?}"),
    )
}
