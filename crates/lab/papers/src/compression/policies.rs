//! Beyond the paper: the compressed share of each policy by load, and the effect on clients.
//!
//! The gateway's policies are compared with other proxies, each in front of the same origin and on the same core. At
//! each load, one proxy runs after another. Loads are multiples of the gateway's capacity when it compresses
//! everything. Each load is held for a while before the measurement, because a policy that depends on the load must
//! first observe it.

use posthaste_compression::Wish;
use posthaste_load::{Arrivals, Connections, Pace, Plan};
use posthaste_study::{Conditions, Failure, Needs, RecordTable, Records, Study, most};
use posthaste_units::Span;

use super::peers::PeerProxy;
use super::sizes::Sizes;
use crate::testbed::measured::{MeasuredRun, runs};
use crate::testbed::program::Folder;
use crate::testbed::proxy::ProxyUnderTest;
use crate::testbed::{REPLY, Testbed, sweep};

pub(super) static STUDY: Study = Study {
    name: "wsqos-policies",
    needs: Needs::Processor,
    core: false,
    run: |conditions| study(conditions, &PoliciesExtent::new(conditions.full)),
};

/// Length and density of the measurements.
struct PoliciesExtent {
    loads: &'static [f64],
    repetitions: u64,
    settle: Span,
    length: Span,
}

impl PoliciesExtent {
    fn new(full: bool) -> Self {
        if full {
            Self {
                loads: &[0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0],
                repetitions: 3,
                settle: Span::from_secs(4),
                length: Span::from_secs(2),
            }
        } else {
            Self {
                loads: &[0.5, 0.8, 1.25, 2.0],
                repetitions: 1,
                settle: Span::from_millis(1200),
                length: Span::from_secs(1),
            }
        }
    }
}

/// The gateway's policies that depend on the load.
pub(super) const POLICIES: [&str; 3] = ["threshold", "ladder", "link"];

/// Other proxies in the comparison.
const PEERS: [PeerProxy; 3] = [
    PeerProxy::Haproxy,
    PeerProxy::NginxGzip,
    PeerProxy::NginxPlain,
];

/// Steps with codings that other proxies have, too.
const STEPS: &str = "steps = [\"gzip-1\", \"gzip-6\"]";

/// Maximum number of waiting requests. Those due beyond it are dropped and counted, because the testbed has no more
/// connections.
const AT_ONCE: usize = 1000;

/// All compared names, in the order of the pictures: our policies, then other proxies.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    POLICIES.into_iter().chain(PEERS.map(PeerProxy::name))
}

/// A proxy, with the lengths of its replies.
struct Contender {
    name: &'static str,
    proxy: ProxyUnderTest,
    sizes: Sizes,
    /// True if it counts its compressed replies itself.
    counts: bool,
}

fn study(conditions: &Conditions<'_>, extent: &PoliciesExtent) -> Result<Records, Failure> {
    let mut records = Records::new();
    let testbed = Testbed::open(conditions, REPLY, "gzip")?;
    testbed.describe(&mut records, conditions);
    records.set_parameter("reply", format!("{}, made beforehand", REPLY.name()));
    records.set_parameter("connection", "kept");
    records.set_parameter("connections at most", AT_ONCE);
    records.set_parameter("arrivals", "constant");
    records.set_parameter("before a run", extent.settle);
    records.set_parameter("length of a run", extent.length);
    records.set_parameter("runs of each point", extent.repetitions);
    let mut table = runs();
    let policies = Policies {
        conditions,
        testbed: &testbed,
        extent,
    };
    if let Some(capacity) = policies.compress_all()? {
        records.set_number("capacity", capacity);
        let folder = Folder::new();
        let contenders = policies.contenders(&folder)?;
        let absent = PEERS.map(PeerProxy::name).into_iter();
        let absent = absent.filter(|name| contenders.iter().all(|one| one.name != *name));
        records.set_parameter("not installed", absent.collect::<Vec<_>>().join("; "));
        let apart = policies.sweeps(&contenders, capacity, &mut table)?;
        records.set_number("shares apart", apart);
    }
    records.set_table("runs", table);
    Ok(records)
}

struct Policies<'a> {
    conditions: &'a Conditions<'a>,
    testbed: &'a Testbed,
    extent: &'a PoliciesExtent,
}

impl Policies<'_> {
    fn measure(&self, proxy: &ProxyUnderTest, plan: &Plan) -> Result<Option<MeasuredRun>, Failure> {
        proxy.measure(plan, self.conditions.stop)
    }

    fn plan(&self, proxy: &ProxyUnderTest, wish: Wish, pace: Pace) -> Plan {
        let kept = Connections::KeepAlive;
        Plan {
            connection_limit: AT_ONCE,
            ..self.testbed.plan(proxy, &[(wish, 1.0)], kept, pace)
        }
    }

    /// Capacity of the gateway in replies per second when it compresses everything, by a closed loop. `None` if
    /// stopped.
    fn compress_all(&self) -> Result<Option<f64>, Failure> {
        let always = format!("[compression]\npolicy = \"always\"\n{STEPS}");
        let proxy = self.testbed.gateway(1, &always, "")?;
        let pace = Pace::Closed {
            clients: 64,
            length: self.extent.settle,
        };
        let measured = self.measure(&proxy, &self.plan(&proxy, Wish::Always, pace))?;
        Ok(measured.map(|measured| self.conditions.capacity(measured.throughput())))
    }

    fn contenders(&self, folder: &Folder) -> Result<Vec<Contender>, Failure> {
        let mut found = Vec::new();
        for name in POLICIES {
            let text = format!("[compression]\npolicy = \"{name}\"\n{STEPS}");
            found.push((name, Some(self.testbed.gateway(1, &text, "")?)));
        }
        for peer in PEERS {
            found.push((peer.name(), peer.start(self.testbed, &folder.0)?));
        }
        let mut contenders = Vec::new();
        for (name, proxy) in found {
            let Some(proxy) = proxy else { continue };
            let sizes = Sizes::measure(self.testbed, &proxy, self.conditions.stop)?;
            let counts = POLICIES.contains(&name);
            contenders.push(Contender {
                name,
                proxy,
                sizes,
                counts,
            });
        }
        Ok(contenders)
    }

    /// Runs every load for every proxy and omits stopped runs. Returns the maximum difference between the shares by the
    /// gateway's counters and by its bytes, or NaN without a comparison.
    fn sweeps(
        &self,
        contenders: &[Contender],
        capacity: f64,
        table: &mut RecordTable,
    ) -> Result<f64, Failure> {
        let (extent, mut done, mut apart) = (self.extent, 0, Vec::new());
        let total = extent.repetitions * (extent.loads.len() * contenders.len()) as u64;
        for repetition in 1..=extent.repetitions {
            for &load in extent.loads {
                for one in contenders {
                    let message = format!("{}, {load} x {capacity:.0}/s", one.name);
                    self.conditions.progress.step(done, total, &message);
                    done += 1;
                    let run = |length| {
                        let steps = vec![sweep::steady(load * capacity, length)?];
                        let arrivals = Arrivals::Constant;
                        let plan =
                            self.plan(&one.proxy, Wish::Unstated, Pace::Open { arrivals, steps });
                        self.measure(&one.proxy, &plan)
                    };
                    let settled = run(extent.settle)?.is_some();
                    let Some(measured) = run(extent.length)?.filter(|_| settled) else {
                        return Ok(most(apart));
                    };
                    let by_bytes = one.sizes.share(&measured);
                    let mut share = by_bytes;
                    if one.counts {
                        share = measured.packed();
                    }
                    if one.name == POLICIES[0] {
                        apart.push((share - by_bytes).abs());
                    }
                    table.push(measured.row(one.name, load, repetition, share));
                }
            }
        }
        Ok(most(apart))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study;
    use crate::testbed::instrument;

    #[test]
    fn every_policy_and_every_peer_that_is_there_is_measured() {
        let extent = PoliciesExtent {
            loads: &[0.05],
            repetitions: 1,
            settle: Span::from_millis(250),
            length: Span::from_millis(100),
        };
        let records = test_study::run(Some(2000.0), |conditions| study(conditions, &extent));
        let absent = records.parameters()["not installed"].clone();
        let rows: Vec<String> = records
            .table("runs")
            .rows()
            .map(|row| row.text("who").to_owned())
            .collect();
        for name in names() {
            assert_ne!(
                rows.contains(&name.to_owned()),
                absent.contains(name),
                "{name}"
            );
        }
        assert!(instrument::identity(&records).holds);
        // Bytes and the gateway's counters agree.
        assert!(records.number("shares apart") < 0.02);
    }
}
