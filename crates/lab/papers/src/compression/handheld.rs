//! A handheld that fetches each reply over each of the paper's networks, compressed and plain.
//!
//! The emulator provides the line between two real kernels, with gateway and shop at its far end. The handheld's
//! processor is this machine's, slowed down by a factor that reproduces the paper's times ([`replies`]), measured just
//! before. Every connection has a line of its own, so that many fetches run side by side. On GPRS, all of them do,
//! because one takes up to forty seconds.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use posthaste_bookshop::Size;
use posthaste_compression::Wish;
use posthaste_emulator::{Emulation, RunningEmulation, SERVER, TcpCounters};
use posthaste_link::Direction;
use posthaste_link::profile::{Profile, named};
use posthaste_load::{Arrivals, Connections, Outcome, Pace, Phases, Plan, Run, RunError, run};
use posthaste_study::{Conditions, Failure, Needs, RecordTable, Records, Study};
use posthaste_units::{Seed, Span};

use super::line_time;
use super::replies::{body_bytes, cost, slowdown};
use crate::testbed::describe_real_time;
use crate::testbed::shop::{STEP, ShopBehindGateway};

pub(super) static STUDY: Study = Study {
    name: "wsqos-handheld",
    needs: Needs::Time,
    core: true,
    run: |conditions| {
        let fetches = if conditions.full { 10 } else { 3 };
        study(conditions, &NETWORKS, &Size::ALL, fetches)
    },
};

/// Profile names of the paper's networks.
pub(super) const WLAN: &str = "wlan-802.11b";
pub(super) const BLUETOOTH: &str = "bluetooth";
pub(super) const GPRS: &str = "gprs";
pub(super) const GPRS_POOR: &str = "gprs-poor";
const NETWORKS: [&str; 4] = [WLAN, BLUETOOTH, GPRS, GPRS_POOR];

/// Budget. The largest plain reply over poor GPRS takes most of it.
pub(super) const BUDGET: Span = Span::from_secs(50);

/// Preferences of the handheld, and the form of the reply with each.
pub(super) const WISHES: [(Wish, &str); 2] = [(Wish::Never, "plain"), (Wish::Always, "compressed")];

/// Forms of a reply: plain and compressed.
pub(super) const PLAIN: &str = WISHES[0].1;
pub(super) const COMPRESSED: &str = WISHES[1].1;

/// Longer than usual: round trips of GPRS take more than a second, and a kilobyte up takes half a second.
pub(super) const CONNECT_TIMEOUT: Span = Span::from_secs(10);
pub(super) const TIMEOUT: Span = Span::from_secs(120);

/// Port of the gateway at the far end of the line.
const PORT: u16 = 80;

/// Interval between the starts of fetches. All at once would wait for each other in the one gateway.
const SPACING: Span = Span::from_millis(30);

/// Interval between checks of the progress. The checking thread is woken late if others hold the processors, and so are
/// the fetching programs. Its lateness is a witness of that.
const GLANCE: Duration = Duration::from_millis(5);

/// One reply over one network.
#[derive(Clone, Copy)]
struct FetchCell {
    network: usize,
    size: Size,
    wish: (Wish, &'static str),
}

/// An open network with shop and gateway at its far end.
struct OpenNetwork {
    profile: &'static Profile,
    shop: ShopBehindGateway,
    running: RunningEmulation,
}

/// Parameters of the fetches of a cell.
struct Fetches {
    count: u64,
    slowdown: u32,
    stop: Arc<AtomicBool>,
}

fn study(
    conditions: &Conditions<'_>,
    networks: &[&str],
    sizes: &[Size],
    count: u64,
) -> Result<Records, Failure> {
    let (bodies, slowdown) = calibrate(conditions)?;
    let fetches = Fetches {
        count,
        slowdown: slowdown.round() as u32,
        stop: Arc::default(),
    };
    let open = |name: &&str| OpenNetwork::new(named(name)?, conditions.seed);
    let open = networks
        .iter()
        .map(open)
        .collect::<Result<Vec<_>, Failure>>()?;
    let mut records = Records::new();
    let mut table = RecordTable::new([
        "network",
        "reply",
        "form",
        "body_bytes",
        "intended",
        "ok",
        "sent",
        "received",
        "service_ms",
        "service_low_ms",
        "service_high_ms",
        "decode_ms",
        "transfer_ms",
        "computed_ms",
        "witness_ms",
    ]);
    let profiles: Vec<&Profile> = open.iter().map(|open| open.profile).collect();
    for batch in batches(&profiles, sizes) {
        let (cells, witness) = match fetches.make(&open, &batch, conditions) {
            Ok(made) => made,
            Err(error) => {
                records.cut_short(&error);
                break;
            }
        };
        for (cell, run) in cells {
            let index = Size::ALL.iter().position(|size| *size == cell.size);
            let profile = open[cell.network].profile;
            let body = bodies[index.expect("every size is in ALL")];
            let row = row(profile, &cell, body, &run);
            table.push(row.into_iter().chain([witness.as_millis_f64().into()]));
        }
    }
    records.set_parameter("step", STEP.name());
    records.set_parameter("fetches of each reply", count);
    records.set_parameter(
        "handheld",
        format!("{slowdown:.0} times slower at decoding"),
    );
    records.set_number("slowdown", slowdown);
    records.set_table("cells", table);
    close(open, &mut records)?;
    Ok(records)
}

/// Returns the bytes of each reply's Body and the handheld's slowdown, compared with this machine.
pub(super) fn calibrate(
    conditions: &Conditions<'_>,
) -> Result<([f64; Size::ALL.len()], f64), Failure> {
    conditions.progress.step(0, 1, "the handheld's slowness");
    let shop = ShopBehindGateway::open(([127, 0, 0, 1], 0).into(), conditions.seed)?;
    let (mut bodies, mut times) = ([f64::NAN; Size::ALL.len()], [f64::NAN; Size::ALL.len()]);
    for (index, size) in Size::ALL.into_iter().enumerate() {
        bodies[index] = body_bytes(&shop.message(size)?)?;
        times[index] = cost(&shop, size, conditions.stop)?.decompression_ms;
    }
    Ok((bodies, slowdown(times)))
}

/// Groups of cells that are fetched side by side. On slow networks this is every cell, otherwise one cell after
/// another, so that no fetch waits for another's CPU time. The longest fetches start first.
fn batches(profiles: &[&Profile], sizes: &[Size]) -> Vec<Vec<FetchCell>> {
    let cells = |network: usize| {
        let cell = move |size: &Size| {
            let size = *size;
            WISHES.map(|wish| FetchCell {
                network,
                size,
                wish,
            })
        };
        sizes.iter().flat_map(cell)
    };
    let is_slow = |network: &usize| profiles[*network].down.delay > Span::from_millis(100);
    let (slow, fast): (Vec<usize>, Vec<usize>) = (0..profiles.len()).partition(is_slow);
    let one_by_one = fast.into_iter().flat_map(cells).map(|cell| vec![cell]);
    one_by_one
        .chain([slow.into_iter().flat_map(cells).rev().collect()])
        .filter(|batch: &Vec<FetchCell>| !batch.is_empty())
        .collect()
}

impl OpenNetwork {
    fn new(profile: &'static Profile, seed: Seed) -> Result<Self, Failure> {
        let [up, down] = Direction::BOTH.map(|way| Arc::new(profile.plan(way)));
        let running = Emulation::new(up, down)
            .seed(seed)
            .real_time(true)
            .start()?;
        let listen = SocketAddr::from((SERVER.v4, PORT));
        let shop = running
            .server
            .run(move || ShopBehindGateway::open(listen, seed))?;
        Ok(Self {
            profile,
            shop,
            running,
        })
    }
}

impl Fetches {
    /// Fetches the replies of these cells side by side. Also returns the maximum lateness of the witness. If stopped,
    /// returns no cell.
    fn make(
        &self,
        open: &[OpenNetwork],
        cells: &[FetchCell],
        conditions: &Conditions<'_>,
    ) -> Result<(Vec<(FetchCell, Run)>, Span), Failure> {
        let begin = |(number, cell): (u64, &FetchCell)| {
            let round = SPACING * cells.len() as u64;
            let times = (0..self.count).map(|fetch| SPACING * number + round * fetch);
            (*cell, self.begin(open, cell, times.collect()))
        };
        let running: Vec<_> = (0..).zip(cells).map(begin).collect();
        let names: Vec<&str> = open.iter().map(|open| open.profile.name).collect();
        let names = match cells {
            [one] => format!(
                "{}, {}, {}",
                names[one.network],
                one.size.name(),
                one.wish.1
            ),
            _ => format!("{} fetches over slow lines", cells.len()),
        };
        let (mut reported, mut witness) = (None, Duration::ZERO);
        loop {
            let over = running
                .iter()
                .filter(|(_, thread)| thread.is_finished())
                .count();
            if reported.replace(over) != Some(over) {
                let progress = conditions.progress;
                progress.step(over as u64, cells.len() as u64, &names);
            }
            if over == cells.len() {
                break;
            }
            if conditions.stopped() {
                self.stop.store(true, Ordering::Relaxed);
            }
            let before = Instant::now();
            std::thread::sleep(GLANCE);
            witness = witness.max(before.elapsed().saturating_sub(GLANCE));
        }
        let joined = running.into_iter().map(|(cell, thread)| {
            let run = thread.join().map_err(|_| "a generator panicked")??;
            Ok((cell, run))
        });
        let joined = joined.collect::<Result<Vec<_>, Failure>>()?;
        let complete = joined.into_iter().filter(|(_, run)| !run.stopped);
        Ok((complete.collect(), witness.into()))
    }

    /// Starts the fetches of one cell at the client's end at these times, each with a connection of its own.
    fn begin(
        &self,
        open: &[OpenNetwork],
        cell: &FetchCell,
        times: Vec<Span>,
    ) -> JoinHandle<Result<Run, RunError>> {
        let OpenNetwork { shop, running, .. } = &open[cell.network];
        let pace = Pace::Open {
            arrivals: Arrivals::Trace(times.into()),
            steps: Vec::new(),
        };
        let plan = Plan {
            connections: Connections::New,
            connect_timeout: CONNECT_TIMEOUT,
            timeout: TIMEOUT,
            decoding: Some(self.slowdown),
            ..Plan::new(vec![shop.request(cell.size, cell.wish.0)], pace)
        };
        let stop = self.stop.clone();
        running.client.spawn(move || run(&plan, &stop, &mut ()))
    }
}

/// Results of a cell's fetches. Times are the median, minimum and maximum.
fn row(
    profile: &Profile,
    cell: &FetchCell,
    body: f64,
    run: &Run,
) -> [posthaste_study::RecordValue; 14] {
    let service = run.service.histogram();
    let each = |bytes: u64| bytes / run.intended.max(1);
    let (sent, received) = (each(run.bytes_sent), each(run.bytes_received));
    let computed = line_time::exchange(profile, sent, received);
    let times = [
        service.quantile(0.5),
        service.min(),
        service.max(),
        run.phases.decode.quantile(0.5),
        transfer(&run.phases),
        computed,
    ];
    let [median, low, high, decode, transfer, computed] =
        times.map(|time| time.as_millis_f64().into());
    [
        profile.name.into(),
        cell.size.name().into(),
        cell.wish.1.into(),
        body.into(),
        run.intended.into(),
        run.outcomes[Outcome::Ok].into(),
        sent.into(),
        received.into(),
        median,
        low,
        high,
        decode,
        transfer,
        computed,
    ]
}

/// Time of an exchange without decoding: the sum of the medians of its phases.
///
/// Decoding times scatter by hundreds of milliseconds on a busy machine. The fetch with the median time and the one
/// with the median decoding may differ then, so that the difference of the two medians is no time of the line.
fn transfer(phases: &Phases) -> Span {
    let Phases {
        connect,
        send,
        wait,
        receive,
        ..
    } = phases;
    let medians = [connect, send, wait, receive].map(|phase| phase.quantile(0.5));
    medians.into_iter().fold(Span::ZERO, |sum, one| sum + one)
}

/// Ends the emulations and records their accuracy.
fn close(open: Vec<OpenNetwork>, records: &mut Records) -> Result<(), Failure> {
    let mut table = RecordTable::new([
        "network",
        "late_p50_ms",
        "late_p99_ms",
        "lost",
        "packets_up",
        "packets_down",
        "syns_again",
        "segments_again",
    ]);
    let mut real_time = true;
    for OpenNetwork {
        profile,
        shop,
        running,
    } in open
    {
        drop(shop);
        let hosts = [&running.client, &running.server];
        let [client, server] = hosts.map(|host| host.run(TcpCounters::read));
        let (client, server) = (client?, server?);
        let outcome = running.finish()?;
        real_time &= outcome.real_time;
        let lost =
            [&outcome.up, &outcome.down].map(|way| way.bypassed.overrun + way.bypassed.unsent);
        let late = |share| outcome.lateness.quantile(share).as_millis_f64();
        table.push([
            profile.name.into(),
            late(0.5).into(),
            late(0.99).into(),
            lost.iter().sum::<u64>().into(),
            outcome.up.link.delivered.packets.into(),
            outcome.down.link.delivered.packets.into(),
            client.syn_retransmits.into(),
            server.retransmitted_segments.into(),
        ]);
    }
    records.set_table("networks", table);
    describe_real_time(records, real_time);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::service_time::{ClientSpeed, NetworkCells};
    use super::*;
    use crate::test_study;

    #[test]
    fn replies_over_bluetooth_take_the_computed_time_or_longer() {
        let sizes = [Size::Lite];
        let Some(records) =
            test_study::on_links(|conditions| study(conditions, &["bluetooth"], &sizes, 2))
        else {
            return;
        };
        let network = NetworkCells {
            records: &records,
            name: "bluetooth",
        };
        let complete = network.complete();
        assert!(complete.holds, "{}", complete.sentence);
        // Pauses of the machine only lengthen it.
        for row in records.table("cells").rows() {
            let [service, decode, computed] =
                ["service_low_ms", "decode_ms", "computed_ms"].map(|column| row.number(column));
            assert!(service > 0.998 * computed, "{service} {computed}");
            assert_eq!(decode > 0.0, row.text("form") == COMPRESSED, "{decode}");
        }
        let ms = |form, client| network.ms(Size::Lite, form, client);
        assert!(ms(COMPRESSED, ClientSpeed::Fast) < ms(COMPRESSED, ClientSpeed::Handheld));
        assert_eq!(
            ms(PLAIN, ClientSpeed::Fast),
            ms(PLAIN, ClientSpeed::Handheld)
        );
    }

    #[test]
    fn slow_lines_are_used_side_by_side_and_fast_ones_in_turn() {
        let sizes = [Size::Hello, Size::Lite];
        let networks = NETWORKS.map(|name| named(name).unwrap());
        let batches = batches(&networks, &sizes);
        let lengths: Vec<usize> = batches.iter().map(Vec::len).collect();
        assert_eq!(lengths, [1, 1, 1, 1, 1, 1, 1, 1, 8]);
    }
}
