//! Requirements of the gateway under load, measured in alternation with the systems that it is compared with.
//!
//! Three questions:
//!
//! 1. Beyond its limit, at 1.5 times HAProxy's capacity with everything compressed: the compressed share and the tail
//!    of the response times, for distinct replies and for repeated ones.
//! 2. At saturation: the cost of the decision, compared with a gateway whose clients leave it no choice.
//! 3. At 70 % of the plain capacity: the tail of the plain path, compared with other proxies.
//!
//! At saturation both systems are loaded at the same time on one core, and each one's CPU time is counted separately.
//! The others alternate. Results are medians.

use posthaste_compression::Wish;
use posthaste_load::{Arrivals, Connections, Pace, Plan};
use posthaste_study::{Conditions, Failure, Needs, RecordTable, RecordValue, Records, Study};
use posthaste_units::{Seed, Span};

use super::peers::PeerProxy;
use super::sizes::Sizes;
use crate::testbed::measured::{MeasuredRun, runs};
use crate::testbed::program::Folder;
use crate::testbed::proxy::{ProxyUnderTest, side_by_side};
use crate::testbed::{REPLY, Testbed, sweep};

pub(super) static STUDY: Study = Study {
    name: "wsqos-promises",
    needs: Needs::Processor,
    core: false,
    run: |conditions| study(conditions, &PromisesExtent::new(conditions.full)),
};

/// Length and number of the measurements.
struct PromisesExtent {
    rounds: u64,
    settle: Span,
    length: Span,
    /// Number and length of the runs of two gateways side by side.
    pairs: u64,
    beside: Span,
}

impl PromisesExtent {
    fn new(full: bool) -> Self {
        let seconds = |settle, length| (Span::from_millis(settle), Span::from_millis(length));
        let (rounds, (settle, length)) = if full {
            (9, seconds(2500, 2000))
        } else {
            (3, seconds(1200, 600))
        };
        Self {
            rounds,
            settle,
            length,
            pairs: if full { 100 } else { 16 },
            beside: Span::from_millis(400),
        }
    }
}

/// Clients of a closed loop, enough to keep a core busy.
const CLIENTS: u32 = 64;

/// Maximum number of waiting requests. Those due beyond it are dropped and counted.
const AT_ONCE: usize = 1000;

/// One measured system: its name, its proxy, and the preferences of its clients.
struct TestedSystem<'a> {
    who: &'static str,
    proxy: &'a ProxyUnderTest,
    wishes: &'static [(Wish, f64)],
    /// Sizes of the replies of another proxy, because its compressed replies are not counted otherwise.
    sizes: Option<Sizes>,
}

/// The rate as a multiple of a proxy's throughput in a closed loop just before. The speed of a core changes from one
/// minute to the next.
struct LoadReference<'a> {
    times: f64,
    proxy: &'a ProxyUnderTest,
    wishes: &'static [(Wish, f64)],
}

#[derive(Clone, Copy)]
enum Load {
    /// Open loop with this number of requests a second.
    Open(f64),
    /// Closed loop.
    Closed,
}

/// Rates of the open loops, as multiples of the reference throughput.
const BEYOND: f64 = 1.5;
const AT_EASE: f64 = 0.7;

/// Names of the measured systems, in records and sentences.
pub(super) const GATE: [&str; 2] = ["beyond: threshold", "beyond: HAProxy's gate"];
pub(super) const REPEATED: &str = "beyond: threshold, cache";
pub(super) const PLAIN_BEYOND: &str = "beyond: threshold, all refuse";
pub(super) const SATURATED: [&str; 2] = ["saturated: half leave it open", "saturated: all refuse"];
pub(super) const ASKED: [&str; 2] = ["saturated: a third asks", "saturated: exactly the askers"];
pub(super) const TAILS: [&str; 3] = ["at ease: gateway", "at ease: HAProxy", "at ease: nginx"];

const ASKS: &[(Wish, f64)] = &[(Wish::Always, 1.0)];
const OPEN: &[(Wish, f64)] = &[(Wish::Unstated, 1.0)];
const REFUSE: &[(Wish, f64)] = &[(Wish::Never, 1.0)];
const HALF: &[(Wish, f64)] = &[(Wish::Never, 0.5), (Wish::Unstated, 0.5)];
const THIRDS: &[(Wish, f64)] = &[
    (Wish::Always, 1.0),
    (Wish::Never, 1.0),
    (Wish::Unstated, 1.0),
];

/// The gateway, and one that compresses only for clients that ask: without a preference, a client counts as refusing.
const GATEWAY: &str = "[compression]\npolicy = \"threshold\"\nsteps = [\"gzip-1\"]";
const EXACTLY: &str = "wish = \"never\"";

fn study(conditions: &Conditions<'_>, extent: &PromisesExtent) -> Result<Records, Failure> {
    let mut records = Records::new();
    let testbed = Testbed::open(conditions, REPLY, "gzip")?;
    testbed.describe(&mut records, conditions);
    records.set_parameter("reply", format!("{}, made beforehand", REPLY.name()));
    records.set_parameter("connection", "kept");
    records.set_parameter("before a run", extent.settle);
    records.set_parameter("length of a run", extent.length);
    records.set_parameter("rounds", extent.rounds);
    let mut promises = Promises {
        conditions,
        testbed: &testbed,
        extent,
        table: runs(),
        beside: RecordTable::new(BESIDE),
    };
    let folder = Folder::new();
    let complete = promises.all(&folder)?;
    records.set_number("complete", f64::from(u8::from(complete)));
    records.set_table("runs", promises.table);
    records.set_table("beside", promises.beside);
    Ok(records)
}

const BESIDE: [&str; 5] = ["who", "turn", "reply_us", "packed", "denied"];

struct Promises<'a> {
    conditions: &'a Conditions<'a>,
    testbed: &'a Testbed,
    extent: &'a PromisesExtent,
    table: RecordTable,
    /// One row for each gateway that runs side by side.
    beside: RecordTable,
}

impl Promises<'_> {
    /// Measures all questions one after another. Returns false if stopped.
    fn all(&mut self, folder: &Folder) -> Result<bool, Failure> {
        // One proxy per question, so that its state does not affect the next.
        let open = || self.testbed.gateway(1, GATEWAY, "");
        let [gateway, decides, refuses, plain_path] = [open()?, open()?, open()?, open()?];
        let caching = self.testbed.caching_gateway(GATEWAY)?;
        let exactly = self.testbed.gateway(1, GATEWAY, EXACTLY)?;
        let peer = |peer: PeerProxy| peer.start(self.testbed, &folder.0);
        let [gate, all] = [peer(PeerProxy::Haproxy)?, peer(PeerProxy::HaproxyAll)?];
        let [haproxy, nginx] = [peer(PeerProxy::HaproxyPlain)?, peer(PeerProxy::NginxPlain)?];
        let trial = |who, proxy, wishes| TestedSystem {
            who,
            proxy,
            wishes,
            sizes: None,
        };
        let beyond = all.as_ref().map(|proxy| LoadReference {
            times: BEYOND,
            proxy,
            wishes: ASKS,
        });
        let mut trials = vec![trial(GATE[0], &gateway, OPEN)];
        if let Some(gate) = &gate {
            let sizes = Some(Sizes::measure(self.testbed, gate, self.conditions.stop)?);
            trials.push(TestedSystem {
                sizes,
                ..trial(GATE[1], gate, OPEN)
            });
        }
        trials.push(trial(REPEATED, &caching, OPEN));
        trials.push(trial(PLAIN_BEYOND, &gateway, REFUSE));
        let saturated = [(&decides, HALF), (&refuses, REFUSE)];
        let systems = [(&decides, THIRDS), (&exactly, THIRDS)];
        let at_ease = LoadReference {
            times: AT_EASE,
            proxy: &plain_path,
            wishes: REFUSE,
        };
        let proxies = [Some(&plain_path), haproxy.as_ref(), nginx.as_ref()];
        let tails = TAILS.into_iter().zip(proxies);
        let tails: Vec<TestedSystem<'_>> = tails
            .filter_map(|(who, proxy)| Some(trial(who, proxy?, REFUSE)))
            .collect();
        let beyond = beyond.map_or(Ok(true), |reference| self.turns(0, &reference, &trials));
        Ok(beyond?
            && self.pairs(SATURATED, saturated)?
            && self.pairs(ASKED, systems)?
            && self.turns(1, &at_ease, &tails)?)
    }

    /// Replies per second in a closed loop, or NaN if stopped.
    fn throughput(&self, proxy: &ProxyUnderTest, wishes: &[(Wish, f64)]) -> Result<f64, Failure> {
        let plan = self.plan(proxy, wishes, Load::Closed, self.extent.settle)?;
        let measured = self.measure(proxy, &plan)?;
        Ok(measured.map_or(f64::NAN, |measured| measured.throughput()))
    }

    /// Measures `trials` one after another, in several rounds. Returns false if stopped.
    fn turns(
        &mut self,
        question: u64,
        reference: &LoadReference<'_>,
        trials: &[TestedSystem<'_>],
    ) -> Result<bool, Failure> {
        let rounds = self.extent.rounds;
        for round in 1..=rounds {
            let throughput = self.throughput(reference.proxy, reference.wishes)?;
            if throughput.is_nan() {
                return Ok(false);
            }
            let load = Load::Open(reference.times * self.conditions.capacity(throughput));
            // Another trial comes first in each round, because the speed of a core depends on its previous load.
            let order = trials.iter().cycle().skip(round as usize);
            for trial in order.take(trials.len()) {
                let done = question * rounds + round - 1;
                self.conditions.progress.step(done, 2 * rounds, trial.who);
                let plan = |length| self.plan(trial.proxy, trial.wishes, load, length);
                let settled = self.measure(trial.proxy, &plan(self.extent.settle)?)?;
                let measured = self.measure(trial.proxy, &plan(self.extent.length)?)?;
                let Some(measured) = measured.filter(|_| settled.is_some()) else {
                    return Ok(false);
                };
                let own = || measured.packed();
                let share = trial
                    .sizes
                    .as_ref()
                    .map_or_else(own, |sizes| sizes.share(&measured));
                self.table
                    .push(measured.row(trial.who, f64::NAN, round, share));
            }
        }
        Ok(true)
    }

    /// Measures two saturated gateways side by side, each with clients of its own. Returns false if stopped.
    fn pairs(
        &mut self,
        whos: [&str; 2],
        [(one, ours), (other, theirs)]: [(&ProxyUnderTest, &[(Wish, f64)]); 2],
    ) -> Result<bool, Failure> {
        let stop = self.conditions.stop;
        let both = |length| {
            let mut both = self.plan(one, ours, Load::Closed, length)?;
            let theirs = self.plan(other, theirs, Load::Closed, length)?;
            both.requests.extend(theirs.requests);
            Ok::<_, Failure>(both)
        };
        // The load controller must first observe the load.
        if side_by_side([one, other], &both(self.extent.settle)?, stop)?.is_none() {
            return Ok(false);
        }
        let mut both = both(self.extent.beside)?;
        for number in 0..self.extent.pairs {
            let progress = &self.conditions.progress;
            progress.step(number, self.extent.pairs, whos[0]);
            both.seed = Seed(self.conditions.seed.0.wrapping_add(number));
            let Some(parts) = side_by_side([one, other], &both, stop)? else {
                return Ok(false);
            };
            for (who, part) in whos.iter().zip(parts) {
                let numbers = [number as f64, part.reply_us, part.packed, part.denied];
                let numbers = numbers.map(RecordValue::from);
                let row = [RecordValue::from(*who)].into_iter().chain(numbers);
                self.beside.push(row);
            }
        }
        Ok(true)
    }

    fn measure(&self, proxy: &ProxyUnderTest, plan: &Plan) -> Result<Option<MeasuredRun>, Failure> {
        proxy.measure(plan, self.conditions.stop)
    }

    fn plan(
        &self,
        proxy: &ProxyUnderTest,
        wishes: &[(Wish, f64)],
        load: Load,
        length: Span,
    ) -> Result<Plan, Failure> {
        let pace = match load {
            Load::Closed => Pace::Closed {
                clients: CLIENTS,
                length,
            },
            Load::Open(rate) => Pace::Open {
                arrivals: Arrivals::Constant,
                steps: vec![sweep::steady(rate, length)?],
            },
        };
        Ok(Plan {
            connection_limit: AT_ONCE,
            ..self
                .testbed
                .plan(proxy, wishes, Connections::KeepAlive, pace)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study;
    use crate::testbed::instrument;
    use crate::testbed::program::find;

    #[test]
    fn every_question_is_asked_and_every_request_accounted_for() {
        let extent = PromisesExtent {
            rounds: 1,
            settle: Span::from_millis(60),
            length: Span::from_millis(60),
            pairs: 2,
            beside: Span::from_millis(60),
        };
        let records = test_study::run(Some(500.0), |conditions| study(conditions, &extent));
        assert!(records.number("complete") == 1.0);
        let tables = ["runs", "beside"].map(|name| records.table(name));
        let rows = tables.iter().flat_map(|table| table.rows());
        let rows: Vec<String> = rows.map(|row| row.text("who").to_owned()).collect();
        let there = |who: &&str| rows.contains(&(*who).to_owned());
        let all = [&SATURATED, &ASKED, &TAILS[..1]].concat();
        assert!(all.iter().all(there), "{rows:?}");
        // Rates that are multiples of HAProxy's exist only with HAProxy.
        let beyond = [GATE[0], GATE[1], REPEATED, PLAIN_BEYOND];
        let haproxy = find("haproxy").is_some();
        assert!(beyond.iter().all(|who| there(who) == haproxy), "{rows:?}");
        assert!(instrument::identity(&records).holds);
        let denied: f64 = tables
            .iter()
            .flat_map(|table| table.rows())
            .map(|row| row.number("denied"))
            .sum();
        assert!(denied == 0.0, "{denied} askers were denied");
    }
}
