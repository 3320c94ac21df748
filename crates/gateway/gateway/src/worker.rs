//! The gateway of one thread, with its background tasks.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use posthaste_compression::LoadEstimate;
use posthaste_gateway_config::Watch;
use posthaste_serve::spawn_task;
use tokio::sync::watch;

use crate::context::GatewayContext;
use crate::load::thread::sample_load;
use crate::proxy::Gateway;
use crate::record::metrics::GatewayMetrics;
use crate::response::worker::CompressionWorker;
use crate::routing::resolved::ResolvedConfig;
use crate::routing::router::Router;
use crate::upstream::concurrency_limit::ConcurrencyLimit;
use crate::upstream::health_check::HealthChecks;

/// Interval between searches for unused connections to upstreams.
const SWEEP: Duration = Duration::from_secs(1);

/// Creates the gateway of one thread and spawns its background tasks.
pub(crate) fn gateway(context: &Arc<GatewayContext>, thread: usize) -> Gateway {
    let mut configs = context.resolved.subscribe();
    let first = configs.borrow_and_update().clone();
    let metrics = context.metrics.clone();
    let worker = Rc::new(CompressionWorker::new(thread, metrics, &first.config));
    match first.config.demand.watch {
        Watch::Workers => {
            spawn_task(sample_load(context.clone(), worker.clone()));
        }
        _ => {
            let estimates = context.estimate.subscribe();
            spawn_task(watch_load(estimates, worker.clone()));
        }
    }
    // One thread runs the health checks of all upstreams.
    let checks = (thread == 0).then(|| health_checks(&first));
    let router = Router::new(&context.metrics, first, None);
    let router = Rc::new(RefCell::new(Rc::new(router)));
    let watching = watch_config(context.metrics.clone(), configs, router.clone(), checks);
    spawn_task(watching);
    spawn_task(sweep(router.clone()));
    let limit = Rc::new(ConcurrencyLimit::new());
    spawn_task(limit.clone().grow_while_idle());
    Gateway {
        context: context.clone(),
        router,
        worker,
        limit,
    }
}

/// Starts the health checks of a configuration.
fn health_checks(config: &ResolvedConfig) -> HealthChecks {
    let mut running = HealthChecks::default();
    for route in config.routes() {
        running.add(&route.config.health, route.targets);
    }
    running
}

/// Applies each new configuration to the thread. Its `checks` replace those before, although requests of the earlier
/// configuration may continue.
async fn watch_config(
    metrics: Arc<GatewayMetrics>,
    mut configs: watch::Receiver<Arc<ResolvedConfig>>,
    router: Rc<RefCell<Rc<Router>>>,
    mut checks: Option<HealthChecks>,
) {
    while configs.changed().await.is_ok() {
        let config = configs.borrow_and_update().clone();
        if let Some(running) = &mut checks {
            *running = health_checks(&config);
        }
        let before = router.borrow().clone();
        let next = Router::new(&metrics, config, Some(&before));
        router.replace(Rc::new(next));
        before.retire();
    }
}

/// Passes each new load estimate to the thread's `CompressionWorker`.
async fn watch_load(mut estimates: watch::Receiver<LoadEstimate>, worker: Rc<CompressionWorker>) {
    while estimates.changed().await.is_ok() {
        let estimate = *estimates.borrow_and_update();
        worker.estimate.set(estimate);
    }
}

async fn sweep(router: Rc<RefCell<Rc<Router>>>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let router = router.borrow().clone();
        router.close_unused();
    }
}
