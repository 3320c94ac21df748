//! The handheld on good GPRS, requesting compression, while sclient loads the same gateway.
//!
//! Origin, gateway and sclient are in one emulated host, and sclient connects over its loopback. The handheld is the
//! other host. The gateway is that of [`sclient`](super::sclient). Rates are the paper's, divided by its server's 135
//! plain replies a second and multiplied by the gateway's capacity without compression.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use posthaste_compression::Wish;
use posthaste_emulator::{Emulation, RunningEmulation, SERVER, TcpCounters};
use posthaste_link::Direction;
use posthaste_link::profile::{Profile, named};
use posthaste_load::{Arrivals, Connections, Outcome, Pace, Plan, RateStep, Run, RunError, run};
use posthaste_study::{
    Conditions, Failure, Needs, RecordTable, RecordValue, Records, Silent, Study, lab::Lab,
};
use posthaste_units::{Rate, Seed, Span};

use super::handheld::{CONNECT_TIMEOUT, GPRS, TIMEOUT, calibrate};
use super::line_time;
use super::paper;
use super::sclient::GATEWAY;
use crate::testbed::proxy::ProxyUnderTest;
use crate::testbed::sweep::FILL;
use crate::testbed::{REPLY, SLOWDOWN, Testbed, describe_real_time, describe_slowdown};

pub(super) static STUDY: Study = Study {
    name: "wsqos-loaded-handheld",
    needs: Needs::Processor,
    core: false,
    run: |conditions| study(conditions, if conditions.full { &FULL } else { &QUICK }),
};

/// Preferences of the other clients of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherClients {
    /// All ask for compression.
    All,
    /// Half of them ask for it, half state nothing.
    Dynamic,
}

/// Extent of the measurements.
struct LoadedExtent {
    rates: &'static [f64],
    /// Fetches of the handheld during each load.
    fetches: u64,
    /// Length of a load within the gateway's capacity. The last fetch is answered within it.
    length: Span,
}

impl LoadedExtent {
    /// Length of a load beyond the capacity: until the last fetch has a connection or has given up.
    fn length_beyond(&self) -> Span {
        SETTLE + SPACING * self.fetches + CONNECT_TIMEOUT + LOOK
    }
}

const QUICK: LoadedExtent = LoadedExtent {
    rates: &[80.0, 120.0, 160.0],
    fetches: 25,
    length: Span::from_millis(5500),
};

const FULL: LoadedExtent = LoadedExtent {
    rates: &paper::RATES,
    fetches: 100,
    length: Span::from_secs(12),
};

/// Time until the gateway's queue is full, if it fills, and the load controller knows the load.
const SETTLE: Span = Span::from_secs(1);

/// Interval between the starts of the handheld's fetches.
const SPACING: Span = Span::from_millis(40);

/// Length of a measurement of the capacity.
const LOOK: Span = Span::from_secs(1);

/// Interval between checks of the stop flag.
const GLANCE: Duration = Duration::from_millis(20);

impl OtherClients {
    pub(super) const BOTH: [Self; 2] = [Self::All, Self::Dynamic];

    /// Name in pictures, sentences and records.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::All => "all compressed",
            Self::Dynamic => "dynamic",
        }
    }

    const fn wishes(self) -> &'static [(Wish, f64)] {
        match self {
            Self::All => &[(Wish::Always, 1.0)],
            Self::Dynamic => &[(Wish::Always, 0.5), (Wish::Unstated, 0.5)],
        }
    }

    /// Replies a second at high load, for a gateway with capacity `all` if it compresses all replies and `none` if it
    /// compresses none.
    fn capacity(self, all: f64, none: f64) -> f64 {
        match self {
            Self::All => all,
            Self::Dynamic => 2.0 / (1.0 / all + 1.0 / none),
        }
    }
}

fn study(conditions: &Conditions<'_>, extent: &'static LoadedExtent) -> Result<Records, Failure> {
    let (_, handheld) = calibrate(conditions)?;
    let profile = named(GPRS)?;
    let [up, down] = Direction::BOTH.map(|way| Arc::new(profile.plan(way)));
    let emulation = Emulation::new(up, down).seed(conditions.seed);
    let running = emulation.real_time(true).start()?;
    let (say, reports) = channel();
    let stop = Arc::<AtomicBool>::default();
    let (give, given) = channel();
    let (seed, inner) = (conditions.seed, stop.clone());
    let thread = running.server.spawn(move || {
        let inside = Inside {
            running: given.recv()?,
            profile,
            extent,
            seed,
            handheld: handheld.round() as u32,
            stop: inner,
            say,
        };
        inside.study()
    });
    give.send(running).map_err(|_| "the study ended early")?;
    loop {
        match reports.recv_timeout(GLANCE) {
            Ok((done, message)) => {
                let all = extent.rates.len() * OtherClients::BOTH.len();
                conditions.progress.step(done, all as u64, &message);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        stop.fetch_or(conditions.stopped(), Ordering::Relaxed);
    }
    let mut records = thread.join().map_err(|_| "the study panicked")??;
    records.set_parameter("fetches beside each load", extent.fetches);
    records.set_parameter("length of a load", extent.length);
    records.set_parameter("of one beyond what is served", extent.length_beyond());
    let message = format!("{handheld:.0} times slower at decoding");
    records.set_parameter("handheld", message);
    Ok(records)
}

/// The part of the study inside the network of the far end.
struct Inside {
    running: RunningEmulation,
    profile: &'static Profile,
    extent: &'static LoadedExtent,
    seed: Seed,
    /// Slowdown of the handheld's decoding.
    handheld: u32,
    stop: Arc<AtomicBool>,
    say: Sender<(u64, String)>,
}

impl Inside {
    fn study(self) -> Result<Records, Failure> {
        let mut records = Records::new();
        let conditions = Conditions {
            full: false,
            seed: self.seed,
            threads: NonZero::<usize>::MIN,
            lab: &Lab::Own,
            stop: &self.stop,
            progress: &Silent,
            assumed_capacity: None,
        };
        let mut testbed = Testbed::open(&conditions, REPLY, "gzip")?;
        testbed.listen = SERVER.v4;
        testbed.describe(&mut records, &conditions);
        records.set_parameter("network", "two hosts of an emulation, GPRS between them");
        let proxy = testbed.gateway(SLOWDOWN, GATEWAY, "")?;
        records.set_parameter("gateway", GATEWAY.replace('\n', "; "));
        describe_slowdown(&mut records, SLOWDOWN);
        self.say(0, "what the gateway can do");
        let capacities = self.capacities(&testbed, &proxy)?;
        for (name, capacity) in ["all", "none"].into_iter().zip(capacities) {
            records.set_number(&format!("capacity {name}"), capacity);
        }
        let mut table = RecordTable::new([
            "others",
            "rate_per_s",
            "fetches",
            "ok",
            "unconnected",
            "otherwise",
            "otherwise_as",
            "service_ms",
            "service_low_ms",
            "service_high_ms",
            "decode_ms",
            "computed_ms",
            "syns_again",
            "load_intended",
            "load_ended",
            "throughput_per_s",
            "lateness_p99_ms",
        ]);
        let rates = self.extent.rates.iter();
        for (rate, others) in
            rates.flat_map(|rate| OtherClients::BOTH.map(|others| (*rate, others)))
        {
            if conditions.stopped() {
                break;
            }
            self.say(table.len() as u64, &format!("{}, {rate}/s", others.name()));
            if let Some(row) = self.cell(&testbed, &proxy, others, rate, capacities)? {
                table.push(row);
            }
        }
        records.set_table("cells", table);
        drop(proxy);
        let outcome = self.running.finish()?;
        let ways = [&outcome.up, &outcome.down];
        describe_real_time(&mut records, outcome.real_time);
        let lost = ways.map(|way| way.bypassed.overrun + way.bypassed.unsent);
        let late = outcome.lateness.quantile(0.99).as_millis_f64();
        records.set_number("late p99 ms", late);
        records.set_number("lost", lost.iter().sum::<u64>() as f64);
        Ok(records)
    }

    fn say(&self, done: u64, message: &str) {
        // A closed receiver is ignored.
        let _ = self.say.send((done, message.to_owned()));
    }

    /// Replies a second in a closed loop, with all replies compressed and with none.
    fn capacities(&self, testbed: &Testbed, proxy: &ProxyUnderTest) -> Result<[f64; 2], Failure> {
        let capacity = |wish| {
            let pace = Pace::Closed {
                clients: 64,
                length: LOOK,
            };
            let plan = testbed.plan(proxy, &[(wish, 1.0)], Connections::New, pace);
            let measured = proxy.measure(&plan, &self.stop)?;
            Ok::<_, Failure>(measured.map_or(f64::NAN, |measured| measured.throughput()))
        };
        Ok([capacity(Wish::Always)?, capacity(Wish::Never)?])
    }

    /// Runs the handheld's fetches during one load. `None` if stopped.
    fn cell(
        &self,
        testbed: &Testbed,
        proxy: &ProxyUnderTest,
        others: OtherClients,
        rate: f64,
        capacities: [f64; 2],
    ) -> Result<Option<Vec<RecordValue>>, Failure> {
        let syns = || self.running.client.run(TcpCounters::read);
        let before = syns()?.syn_retransmits;
        let handheld = self.handheld(testbed, proxy);
        let plan = load(testbed, proxy, others, rate, capacities, self.extent)?;
        let measured = proxy.measure(&plan, &self.stop)?;
        let fetched = handheld.join().map_err(|_| "a generator panicked")??;
        let again = syns()?.syn_retransmits - before;
        let Some(measured) = measured.filter(|_| !fetched.stopped) else {
            return Ok(None);
        };
        let (service, load) = (fetched.service.histogram(), &measured.run);
        let ok = fetched.outcomes[Outcome::Ok];
        let each = |bytes: u64| bytes / ok.max(1);
        let (sent, received) = (each(fetched.bytes_sent), each(fetched.bytes_received));
        let times = [
            service.mean(),
            service.min(),
            service.max(),
            fetched.phases.decode.mean(),
            line_time::exchange(self.profile, sent, received),
        ];
        let mut row: Vec<RecordValue> = vec![
            others.name().into(),
            rate.into(),
            fetched.intended.into(),
            ok.into(),
            fetched.outcomes[Outcome::ConnectAborted].into(),
        ];
        row.extend(otherwise(&fetched));
        row.extend(times.map(|time| RecordValue::from(time.as_millis_f64())));
        row.extend([
            RecordValue::from(again),
            load.intended.into(),
            load.outcomes.total().into(),
            measured.throughput().into(),
            load.lateness.quantile(0.99).as_millis_f64().into(),
        ]);
        Ok(Some(row))
    }

    /// Starts the handheld's fetches. They begin after the load has settled.
    fn handheld(
        &self,
        testbed: &Testbed,
        proxy: &ProxyUnderTest,
    ) -> JoinHandle<Result<Run, RunError>> {
        let times = (0..self.extent.fetches).map(|fetch| SETTLE + SPACING * fetch);
        let pace = Pace::Open {
            arrivals: Arrivals::Trace(times.collect()),
            steps: Vec::new(),
        };
        let plan = Plan {
            connect_timeout: CONNECT_TIMEOUT,
            timeout: TIMEOUT,
            decoding: Some(self.handheld),
            cpus: Vec::new(),
            ..testbed.plan(proxy, &[(Wish::Always, 1.0)], Connections::New, pace)
        };
        let stop = self.stop.clone();
        self.running
            .client
            .spawn(move || run(&plan, &stop, &mut ()))
    }
}

/// Fetches with a connection and without a complete reply: their number, and the names of their outcomes.
fn otherwise(run: &Run) -> [RecordValue; 2] {
    let expected = [Outcome::Ok, Outcome::ConnectAborted];
    let others = Outcome::ALL
        .into_iter()
        .filter(|outcome| !expected.contains(outcome));
    let others: Vec<Outcome> = others
        .filter(|outcome| run.outcomes[*outcome] > 0)
        .collect();
    let count: u64 = others.iter().map(|outcome| run.outcomes[*outcome]).sum();
    let names: Vec<&str> = others.iter().map(|outcome| outcome.name()).collect();
    [count.into(), names.join(", ").into()]
}

/// One of the paper's rates, scaled by the capacity without compression. Beyond the gateway's capacity, a burst that
/// fills the gateway and its queue comes first.
fn load(
    testbed: &Testbed,
    proxy: &ProxyUnderTest,
    others: OtherClients,
    rate: f64,
    [all, none]: [f64; 2],
    extent: &LoadedExtent,
) -> Result<Plan, Failure> {
    let steady = |rate, length| {
        let rate = Rate::per_second(rate).ok_or("the gateway answered nothing")?;
        Ok::<_, Failure>(RateStep::steady(rate, length))
    };
    let (rate, own) = (
        rate / paper::NONE_CAPACITY * none,
        others.capacity(all, none),
    );
    let steps = if rate > own {
        let burst = Span::from_secs_f64(FILL / (3.0 * own));
        vec![
            steady(4.0 * own, burst)?,
            steady(rate, extent.length_beyond())?,
        ]
    } else {
        vec![steady(rate, extent.length)?]
    };
    let arrivals = Arrivals::Constant;
    let pace = Pace::Open { arrivals, steps };
    Ok(testbed.plan(proxy, others.wishes(), Connections::New, pace))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the paper's own capacities.
    #[test]
    fn half_compressed_is_as_many_as_the_mean_time_allows() {
        let capacity = |others: OtherClients| others.capacity(90.0, 135.0);
        assert!((capacity(OtherClients::Dynamic) - 108.0).abs() < 1e-9);
        assert!((capacity(OtherClients::All) - 90.0).abs() < 1e-9);
    }
}
