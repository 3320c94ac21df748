//! A worker that protects itself: a task of its own thread looks at the thread.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use posthaste_units::Span;

use super::{Controller, EVERY, idle, share};
use crate::workshop::{Workshop, now};

/// Looks after the calling thread for as long as it serves.
///
/// Busy is what was not waited, and what was waited for a processor after there was something to do:
/// on a processor that is shared with others a worker that is behind runs only a part of the time.
pub(crate) async fn look_after(workshop: Rc<Workshop>) {
    let house = workshop.house.clone();
    let mut controller = Controller::new(house.plan().config.compression.when(), 1.0);
    let schedule = File::open("/proc/thread-self/schedstat").ok();
    let look = || (now(), idle::sum(), delay(schedule.as_ref()));
    let mut last = look();
    loop {
        tokio::time::sleep(EVERY).await;
        let seen = look();
        let passed = seen.0.since(last.0);
        let idle = seen.1.saturating_sub(last.1);
        let delayed = seen.2.saturating_sub(last.2);
        let busy = share(passed.saturating_sub(idle) + delayed, passed);
        last = seen;
        let threshold = house.plan().config.compression.when();
        let work = workshop.purse.borrow().work();
        workshop.look_ahead(controller.push(threshold, busy, work));
    }
}

/// Time in which the thread could have run and had no processor: the second of the file's numbers,
/// in nanoseconds. Zero where the kernel does not tell.
fn delay(schedule: Option<&File>) -> Span {
    let mut line = [0; 64];
    let length = schedule.and_then(|file| file.read_at(&mut line, 0).ok());
    let line = std::str::from_utf8(&line[..length.unwrap_or(0)]).unwrap_or_default();
    let nanos = line.split(' ').nth(1).and_then(|n| n.trim().parse().ok());
    Span::from_nanos(nanos.unwrap_or(0))
}
