//! Work of a study on all cores.

use std::num::NonZero;
use std::thread;

use posthaste_study::Failure;

/// Applies `work` to all items, on all cores. Results are in the order of the items.
pub(super) fn on_all_cores<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let work = &work;
        let shares: Vec<_> = (0..cores)
            .map(|core| {
                let share = items.iter().skip(core).step_by(cores);
                scope.spawn(move || share.map(work).collect::<Result<Vec<R>, Failure>>())
            })
            .collect();
        let mut results = Vec::with_capacity(cores);
        for share in shares {
            let share = share.join().map_err(|_| "a simulation panicked")?;
            results.push(share?.into_iter());
        }
        let mut all = Vec::with_capacity(items.len());
        while all.len() < items.len() {
            let count = results.len();
            all.extend(results[all.len() % count].next());
        }
        Ok(all)
    })
}
