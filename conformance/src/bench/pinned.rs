//! Measurements of programs on the cores of [`crate::cores`].

use std::time::Duration;

use crate::bench::Bench;
use crate::cores::{generator, real_time, server};
use crate::error::{Outcome, check};
use crate::load::LoadReport;
use crate::site::Server;

impl Bench {
    /// Starts a bookshop with one thread on the server's core.
    pub(crate) fn bookshop(&self, options: &[&str]) -> Outcome<Server> {
        let options = [&["--threads", "1"], options].concat();
        self.site.bookshop_on(server(), &options)
    }

    /// The same with real-time priority, if permitted.
    pub(crate) fn undisturbed_bookshop(&self, options: &[&str]) -> Outcome<Server> {
        let options = [&["--threads", "1"], options].concat();
        let before = [server(), real_time()].concat();
        self.site.bookshop_on(&before, &options)
    }

    /// Runs `posthaste load` with one thread on the generator's core.
    pub(crate) fn load(&self, url: &str, options: &[&str], seconds: u64) -> Outcome<LoadReport> {
        let arguments = [[url].as_slice(), &["--threads", "1"], options].concat();
        self.site
            .start_load(generator(), &arguments)?
            .finish(seconds)
    }

    /// The same with `--find` and real-time priority, if permitted.
    pub(crate) fn search(&self, url: &str, options: &[&str], seconds: u64) -> Outcome<LoadReport> {
        let before = [generator(), real_time()].concat();
        self.site
            .start_load(&before, &[[url].as_slice(), options].concat())?
            .finish_search(seconds)
    }

    /// Runs a load. Returns its report, and the server's CPU time for it.
    pub(crate) fn served(
        &self,
        server: &Server,
        options: &[&str],
        url: &str,
    ) -> Outcome<(LoadReport, Duration)> {
        let before = server.running.cpu()?;
        let report = self.load(url, options, 120)?;
        Ok((report, server.running.cpu()? - before))
    }

    /// A server's CPU time per `ok` reply in µs under this load, and the replies per second.
    pub(crate) fn server_cost(
        &self,
        server: &Server,
        options: &[&str],
        url: &str,
    ) -> Outcome<(f64, f64)> {
        let (report, used) = self.served(server, options, url)?;
        let (ok, all) = (report.outcome("ok"), report.intended()?);
        // At the end of a closed loop, each client may be in the middle of a request.
        check(ok > 0 && ok + report.outcome("in-flight") == all, || {
            format!("{url}: not only ok: {}", report.outcomes())
        })?;
        Ok((micros(used) / number(ok), report.number("achieved_rate")?))
    }
}

/// A time in µs.
pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// A count as a floating-point number. Exact for all counts that occur here.
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}
