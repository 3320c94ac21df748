//! Work of a study on several threads.

use std::num::NonZero;
use std::thread;

use posthaste_study::Failure;

/// Applies `work` to all items, on all cores. Results are in the order of the items.
pub(super) fn on_all_cores<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    on_threads(all_cores(), items, work)
}

/// Number of cores that this process may use.
pub(super) fn all_cores() -> NonZero<usize> {
    thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

/// Applies `work` to all items, on this number of threads. Results are in the order of the items.
pub(super) fn on_threads<T: Sync, R: Send>(
    threads: NonZero<usize>,
    items: &[T],
    work: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let threads = threads.get();
    thread::scope(|scope| {
        let work = &work;
        let shares: Vec<_> = (0..threads)
            .map(|thread| {
                let share = items.iter().skip(thread).step_by(threads);
                scope.spawn(move || share.map(work).collect::<Result<Vec<R>, Failure>>())
            })
            .collect();
        let mut results = Vec::with_capacity(threads);
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
