//! Allowances: the share of replies that a bucket pays for, over time and over clients.

use posthaste_compression::{
    ClientPath, CostModel, CpuTokenBucket, LoadController, LoadEstimate, Origin, Policy, Sample,
    Step, Threshold, Wish, Work,
};
use posthaste_units::{BitRate, Instant, Span};

use crate::decisions::{BOOK, PolicyCase};

/// Results of many replies.
#[derive(Default)]
struct DecisionCounts {
    replies: u64,
    compressed: u64,
    /// The longest run of compressed replies after the first second.
    row: u64,
    now_in_row: u64,
}

impl DecisionCounts {
    fn share(&self) -> f64 {
        self.compressed as f64 / self.replies as f64
    }

    fn note(&mut self, compressed: bool, counts: bool) {
        self.replies += 1;
        self.compressed += u64::from(compressed);
        self.now_in_row = if compressed { self.now_in_row + 1 } else { 0 };
        if counts {
            self.row = self.row.max(self.now_in_row);
        }
    }
}

/// Sends a reply every 100 µs for ten seconds to the clients in turn, all from one bucket. Returns the bucket, too.
fn in_turn(policy: Policy, clients: &[PolicyCase]) -> (Vec<DecisionCounts>, CpuTokenBucket) {
    let mut bucket = CpuTokenBucket::new(1);
    let mut tallies: Vec<DecisionCounts> =
        clients.iter().map(|_| DecisionCounts::default()).collect();
    let costs = CostModel::default();
    for tick in 0..100_000u64 {
        let index = tick as usize % clients.len();
        let now = Instant::from_nanos(tick * 100_000);
        let decision = clients[index].decide_at(now, policy, &mut bucket);
        tallies[index].note(decision.step.is_some(), tick > 10_000);
        if let (Some(mut reservation), Some(step)) = (decision.reservation, decision.step) {
            let price = costs
                .estimate(step, clients[index].reply.length.unwrap())
                .cpu;
            bucket.spend(&mut reservation, price);
            bucket.settle(reservation);
        }
    }
    (tallies, bucket)
}

/// 20 % of the processor for optional replies.
const SCARCE: LoadEstimate = LoadEstimate {
    allowance: 0.2,
    plenty: 0.5,
    busy: 0.79,
    is_high: true,
    is_known: true,
};

/// The share of [`BOOK`]s that [`SCARCE`] pays for, one every 100 µs.
fn fits(step: Step) -> f64 {
    let price = CostModel::default()
        .estimate(step, BOOK.length.unwrap())
        .cpu;
    0.2 * 100_000.0 / price.as_nanos() as f64
}

#[test]
fn the_bucket_pays_its_allowance_evenly() {
    let case = PolicyCase {
        estimate: SCARCE,
        ..PolicyCase::default()
    };
    let (tallies, bucket) = in_turn(Policy::Threshold, &[case]);
    let (share, fits) = (tallies[0].share(), fits(Step::Zstd1));
    assert!((share - fits).abs() < 0.01, "{share} of {fits}");
    assert!(tallies[0].row <= 2, "{} in a row", tallies[0].row);
    let price = CostModel::default()
        .estimate(Step::Zstd1, BOOK.length.unwrap())
        .cpu;
    let times = |n: u64| Span::from_nanos(price.as_nanos() * n);
    assert_eq!(bucket.work().wanted, times(100_000));
    assert_eq!(bucket.work().spent, times(tallies[0].compressed));
}

/// Four threads on four processors under one controller. Each is half busy with plain replies and has enough optional
/// replies to compress all the time.
#[test]
fn threads_share_an_allowance() {
    let mut sharers: Vec<CpuTokenBucket> = (0..4).map(|_| CpuTokenBucket::new(4)).collect();
    let mut controller = LoadController::new(Threshold::default(), 4.0);
    let price = CostModel::default()
        .estimate(Step::Zstd1, BOOK.length.unwrap())
        .cpu;
    let mut case = PolicyCase::default();
    let (mut now, mut before, mut busy) = (Instant::default(), Span::ZERO, 0.0);
    for _ in 0..60 {
        let end = now + Span::from_millis(150);
        while now < end {
            for bucket in &mut sharers {
                let decision = case.decide_at(now, Policy::Threshold, bucket);
                if let Some(mut reservation) = decision.reservation {
                    bucket.spend(&mut reservation, price);
                    bucket.settle(reservation);
                }
            }
            now += price;
        }
        let sum = |part: fn(Work) -> Span| {
            sharers
                .iter()
                .map(|bucket| part(bucket.work()))
                .sum::<Span>()
        };
        let (wanted, spent) = (sum(|work| work.wanted), sum(|work| work.spent));
        busy = 0.5 + spent.saturating_sub(before).as_secs_f64() / (4.0 * 0.15);
        before = spent;
        case.estimate = controller.push(Sample {
            at: now,
            busy,
            work: Work { wanted, spent },
        });
    }
    assert!((0.78..0.80).contains(&busy), "{busy}");
    let allowance = case.estimate.allowance;
    assert!(
        (1.1..1.2).contains(&allowance),
        "{allowance} of 4 processors"
    );
    assert!((0.28..0.30).contains(&case.estimate.plenty) && case.estimate.is_high);
}

#[test]
fn clients_with_if_possible_come_before_silent_ones() {
    let client = |wish| PolicyCase {
        wish,
        origin: Origin::Prefer,
        estimate: SCARCE,
        ..PolicyCase::default()
    };
    let [says, silent] = [Wish::IfPossible, Wish::Unstated];
    let (tallies, _) = in_turn(Policy::Threshold, &[client(says), client(silent)]);
    assert!(tallies[0].share() > 0.99, "{}", tallies[0].share());
    let left = 2.0 * fits(Step::Zstd1) - 1.0;
    assert!(
        (tallies[1].share() - left).abs() < 0.02,
        "{} of {left}",
        tallies[1].share()
    );
}

#[test]
fn scarce_cpu_time_goes_where_it_saves_the_most_time() {
    let client = |bits, rtt| PolicyCase {
        line: Some(ClientPath {
            rate: BitRate::per_second(bits).unwrap(),
            rtt: Span::from_millis(rtt),
            window: ClientPath::FIRST_WINDOW,
        }),
        estimate: SCARCE,
        ..PolicyCase::default()
    };
    // Three in ten are slow enough to gain milliseconds; a reply to the others arrives 0.4 ms earlier.
    let mut clients: Vec<PolicyCase> = (0..7).map(|_| client(200_000_000, 1)).collect();
    clients.extend((0..3).map(|_| client(10_000_000, 20)));
    let (tallies, bucket) = in_turn(Policy::Link, &clients);
    let slow = tallies[7..].iter().map(DecisionCounts::share).sum::<f64>() / 3.0;
    let fast = tallies[..7].iter().map(DecisionCounts::share).sum::<f64>() / 7.0;
    assert!(slow > 0.99, "{slow} of the slow, {fast} of the fast");
    let spent = bucket.work().spent.as_secs_f64() / 10.0;
    assert!(
        (0.19..=0.21).contains(&spent),
        "{spent} of 0.2 spent, {fast} of the fast"
    );
}
