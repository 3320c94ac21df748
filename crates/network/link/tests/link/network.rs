//! Many connections: separate links, numbers, memory, and records that replay.

use std::sync::Arc;

use posthaste_link::change::Change;
use posthaste_link::record::{self, BlankPacket, Input, PacketInput};
use posthaste_link::{Arrived, Direction, DropReason, Fate, IDLE, Link, Network, Plan, Sharing};
use posthaste_units::{Instant, Seed, Span};
use proptest::prelude::*;

use crate::support::{Parcel, at, drain, parcel, patterned, plans};

type Net = Network<u8, Parcel>;

fn network(plan: &Plan, sharing: Sharing) -> Net {
    let plan = Arc::new(plan.clone());
    Network::new(&plan, &plan, sharing, Seed(3))
}

/// A decision: direction, connection, position, copy, arrival, departure and fate.
type Decision = (Direction, u64, u64, u32, Instant, Instant, Fate);

fn decision<K, P>(packet: Arrived<K, P>) -> Decision {
    let (direction, number, _, departure) = packet;
    let (position, copy) = (departure.position, departure.copy);
    let (arrived, left, fate) = (departure.arrived, departure.left, departure.fate);
    (direction, number, position, copy, arrived, left, fate)
}

/// An input: ns since the last, direction, key and bytes; and the time ahead for `pop`.
type Push = (u64, bool, u8, u32, u64);

/// Changes of runs: one after every tenth packet.
const CHANGES: [&str; 6] = [
    "bandwidth=300kbit",
    "up:loss=20% down:delay=70ms jitter=uniform:30ms",
    "outage=200ms",
    "bandwidth=3Mbit queue=3 duplicate=10%",
    "loss=bursts:10%:3 reorder=hold:5%:2",
    "down:outage=1s jitter=none duplicate=0% loss=none reorder=none",
];

fn pushes() -> impl Strategy<Value = Vec<Push>> {
    let gap = prop_oneof![8 => 0u64..30_000_000, 1 => 0..100_000_000_000u64, 1 => IDLE.as_nanos()..IDLE.as_nanos() * 3];
    let ahead = prop_oneof![Just(0u64), 0..100_000_000u64];
    proptest::collection::vec((gap, any::<bool>(), 0u8..6, 20u32..1500, ahead), 1..150)
}

/// Runs a network. Returns its record and its decisions, in order of departure.
fn run(network: &mut Net, pushes: &[Push]) -> (Vec<PacketInput>, Vec<Decision>) {
    let (inputs, out) = run_with(network, pushes, None);
    let packet = |input| match input {
        Input::Packet(packet) => packet,
        Input::Change(_) => unreachable!("nothing was changed"),
    };
    (inputs.into_iter().map(packet).collect(), out)
}

/// Runs a network whose links change, in the manner of their plan.
fn run_with(
    network: &mut Net,
    pushes: &[Push],
    changing: Option<&Plan>,
) -> (Vec<Input>, Vec<Decision>) {
    let (mut now, mut inputs, mut out) = (0, Vec::new(), Vec::new());
    for (id, (gap, up, key, bytes, ahead)) in pushes.iter().enumerate() {
        now += gap;
        out.extend(std::iter::from_fn(|| network.pop(at(now + ahead))).map(decision));
        if let Some(change) = changing.filter(|_| id % 10 == 9).and_then(|plan| {
            let change: Change = CHANGES[id / 10 % CHANGES.len()].parse().unwrap();
            change.check([plan, plan]).is_ok().then_some(change)
        }) {
            inputs.push(Input::Change(network.change(at(now), change)));
        }
        let direction = if *up { Direction::Up } else { Direction::Down };
        // One of the two directions is stamped slightly earlier.
        let stamp = at(if *up { now } else { now.saturating_sub(40_000) });
        let input = network.push(stamp, direction, *key, parcel(id, *bytes));
        inputs.push(Input::Packet(input));
    }
    while let Some(wake) = network.wake() {
        out.extend(std::iter::from_fn(|| network.pop(wake)).map(decision));
    }
    (inputs, out)
}

fn replay(plan: &Plan, sharing: Sharing, inputs: &[Input]) -> Vec<Decision> {
    let plan = Arc::new(plan.clone());
    let mut network: Network<u64, BlankPacket> = Network::new(&plan, &plan, sharing, Seed(3));
    let mut out = Vec::new();
    network.replay(inputs, |arrived| {
        assert_eq!(arrived.1, arrived.2, "the same numbers");
        out.push(decision(arrived));
    });
    out
}

fn by_packet(mut decisions: Vec<Decision>) -> Vec<Decision> {
    decisions.sort_by_key(|(direction, number, position, copy, ..)| {
        (*number, *direction, *position, *copy)
    });
    decisions
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_record_replays_to_the_same_decisions(plan in plans(), pushes in pushes(), whole: bool, changing: bool) {
        let sharing = if whole { Sharing::Whole } else { Sharing::PerConnection };
        let plan = Plan { changeable: plan.changeable || changing, ..plan };
        let mut network = network(&plan, sharing);
        let (inputs, decisions) = run_with(&mut network, &pushes, changing.then_some(&plan));
        let pushed: u64 = Direction::BOTH.iter().map(|direction| network.counters(*direction).pushed.packets).sum();
        prop_assert_eq!(pushed, pushes.len() as u64);
        prop_assert!(Direction::BOTH.iter().all(|direction| network.counters(*direction).inside() == 0));
        // Written as text and read back.
        let mut text = format!("# any words\n{}\n", record::HEADER);
        inputs.iter().for_each(|input| text.push_str(&format!("{input}\n")));
        let read = record::parse(&text).unwrap();
        prop_assert_eq!(&read, &inputs);
        let replayed = replay(&plan, sharing, &read);
        prop_assert!(replayed.is_sorted_by_key(|decision| decision.5), "in the order of leaving");
        prop_assert_eq!(by_packet(replayed), by_packet(decisions));
    }

    /// A connection's link decides as it would alone.
    #[test]
    fn links_are_apart(plan in plans(), pushes in pushes()) {
        let pushes: Vec<Push> = pushes.into_iter().map(|(gap, _, key, bytes, _)| (gap % 1_000_000_000, true, key, bytes, 0)).collect();
        let (inputs, decisions) = run(&mut network(&plan, Sharing::PerConnection), &pushes);
        let number = inputs[0].connection;
        let seed = Seed(3).child("connection 1").child("up");
        let mut alone: Link<Parcel> = Link::new(&Arc::new(plan), seed);
        for (id, input) in inputs.iter().enumerate().filter(|(_, input)| input.connection == number) {
            alone.push(input.at, parcel(id, input.bytes));
        }
        let expected: Vec<(Instant, Fate)> = drain(&mut alone).iter().map(|departure| (departure.left, departure.fate)).collect();
        let found: Vec<(Instant, Fate)> = decisions.iter().filter(|decision| decision.1 == number).map(|decision| (decision.5, decision.6)).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn the_eighth_packet_of_each_connection_is_dropped() {
    let mut network = network(&patterned("up drop 8"), Sharing::PerConnection);
    let pushes: Vec<Push> = (0..60)
        .map(|n| (1_000, true, n as u8 % 5, 100, 0))
        .collect();
    let (_, decisions) = run(&mut network, &pushes);
    let dropped: Vec<(u64, u64)> = decisions
        .iter()
        .filter(|decision| decision.6 == Fate::Dropped(DropReason::Pattern))
        .map(|decision| (decision.1, decision.2))
        .collect();
    assert_eq!(dropped, [(1, 8), (2, 8), (3, 8), (4, 8), (5, 8)]);
}

#[test]
fn one_link_for_all_counts_all() {
    let mut network = network(&patterned("up drop 8"), Sharing::Whole);
    let pushes: Vec<Push> = (0..60)
        .map(|n| (1_000, true, n as u8 % 5, 100, 0))
        .collect();
    let (_, decisions) = run(&mut network, &pushes);
    let dropped: Vec<u64> = decisions
        .iter()
        .filter(|decision| matches!(decision.6, Fate::Dropped(_)))
        .map(|decision| decision.1)
        .collect();
    assert_eq!(dropped, [3]);
    assert_eq!(network.connections(), 5);
}

/// After two idle minutes, the same addresses are a new connection, with positions from 1.
#[test]
fn a_connection_ends_after_two_minutes() {
    let plan = Plan {
        delay: Span::from_secs(1),
        ..Plan::default()
    };
    let mut network = network(&plan, Sharing::PerConnection);
    let mut numbers = Vec::new();
    let mut now = Instant::ORIGIN;
    for gap in [
        Span::ZERO,
        IDLE.saturating_sub(Span::from_nanos(1)),
        IDLE,
        Span::from_secs(1),
        IDLE,
    ] {
        now += gap;
        numbers.push(
            network
                .push(now, Direction::Up, 9, parcel(0, 100))
                .connection,
        );
    }
    assert_eq!(numbers, [1, 1, 2, 2, 3]);
}

/// The same addresses are a new connection at the next different SYN, and only then.
#[test]
fn an_opened_connection_lasts_until_another_is_opened() {
    let mut network = network(&Plan::default(), Sharing::PerConnection);
    let (syn, data) = (Some, None);
    let mut now = Instant::ORIGIN;
    let mut numbers = Vec::new();
    for (gap, direction, number) in [
        (Span::ZERO, Direction::Up, syn(7)),
        // A retransmission; the SYN of the other end does not count.
        (Span::from_secs(1), Direction::Up, syn(7)),
        (Span::from_millis(1), Direction::Down, syn(1)),
        (IDLE * 3, Direction::Down, data),
        (Span::from_millis(1), Direction::Up, syn(8)),
        (Span::from_millis(1), Direction::Up, data),
    ] {
        now += gap;
        let input = match number {
            Some(number) => network.open(now, direction, 9, parcel(0, 100), number),
            None => network.push(now, direction, 9, parcel(0, 100)),
        };
        numbers.push(input.connection);
    }
    assert_eq!(numbers, [1, 1, 1, 1, 2, 2]);
    // A connection whose beginning was not seen ends when a new one opens.
    let met = network.push(now, Direction::Up, 5, parcel(0, 100));
    let opened = network.open(now, Direction::Up, 5, parcel(0, 100), 1);
    assert_eq!([met.connection, opened.connection], [3, 4]);
    assert_eq!(network.connections(), 4);
}

/// Packets that leave late are not forgotten, and neither are packets not popped yet.
#[test]
fn nothing_is_forgotten_on_its_way() {
    let plan = Plan {
        delay: IDLE * 3,
        ..Plan::default()
    };
    let mut network = network(&plan, Sharing::PerConnection);
    for key in 0..50 {
        network.push(Instant::ORIGIN, Direction::Up, key, parcel(0, 100));
    }
    let late = Instant::ORIGIN + IDLE * 2;
    assert_eq!(
        network
            .push(late, Direction::Up, 0, parcel(0, 100))
            .connection,
        1
    );
    for key in 100..250 {
        network.push(late + IDLE * 5, Direction::Down, key, parcel(0, 100));
    }
    let mut out = 0;
    while let Some(wake) = network.wake() {
        out += std::iter::from_fn(|| network.pop(wake)).count();
    }
    assert_eq!(out, 50 + 1 + 150);
    assert_eq!(network.counters(Direction::Up).delivered.packets, 51);
}

#[test]
fn records_are_refused_by_line() {
    let refused = |text: &str| record::parse(text).unwrap_err().to_string();
    assert!(refused("").contains("line 1") && refused("1,up,1,60,0").contains(record::HEADER));
    let after_header = |line: &str| {
        refused(&format!(
            "# note\n{}\n0,up,1,60,0,0,1\n{line}",
            record::HEADER
        ))
    };
    for line in [
        "1",
        "1,up,1,60",
        "1,up,1,60,0,0",
        "1,left,1,60,0,0,0",
        "1,up,0,60,0,0,0",
        "1,up,1,60,64,0,0",
        "1,up,1,60,0,4,0",
        "1,up,1,60,0,0,2",
        "1,up,1,60,0,0,0,0",
        "-1,up,1,60,0,0,0",
        "+1,up,1,60,0,0,0",
        "1,up,1,99999999999,0,0,0",
        "1,up,1,6",
        "1,change",
        "1,change,",
        "1,change,speed=1Mbit",
        "-1,change,delay=5ms",
    ] {
        let error = after_header(line);
        assert!(
            error.starts_with("line 4") && error.contains("cut off"),
            "{error}"
        );
    }
}

#[test]
fn a_record_of_the_first_version_has_no_congestion_notification() {
    let text = format!("{}\n7,down,2,1500,10\n", record::HEADER_1);
    let [Input::Packet(packet)] = record::parse(&text).unwrap()[..] else {
        panic!("one packet");
    };
    assert_eq!(packet.to_string(), "7,down,2,1500,10,0,0");
    let later = format!("{}\n7,down,2,1500,10,0,0\n", record::HEADER_1);
    assert!(record::parse(&later).is_err());
}

#[test]
fn profiles_are_plans_with_a_source() {
    use posthaste_link::profile::{PROFILES, named};
    for profile in PROFILES {
        assert_eq!(named(profile.name), Ok(profile));
        assert!(profile.source.len() > 30 && !profile.about.is_empty());
        for direction in Direction::BOTH {
            let plan = profile.plan(direction);
            assert_eq!(plan.check(), Ok(()));
            assert!(plan.delay > Span::ZERO);
        }
    }
    let poor = named("gprs-poor").unwrap();
    assert_eq!(
        poor.plan(Direction::Down).bandwidth.unwrap().to_string(),
        "12.8kbit"
    );
    assert_eq!(poor.plan(Direction::Up).delay, Span::from_millis(500));
    // The formula of its source at 1,500 bytes: 1,090.9 + 890.7 us.
    let air = named("wlan-802.11b").unwrap().plan(Direction::Down);
    let left = crate::support::pass(&air, 1, &[(0, 1500)])[0]
        .left
        .since(Instant::ORIGIN + air.delay);
    assert!((left.as_micros_f64() - 1981.6).abs() < 0.5, "{left}");
    let error = named("6g").unwrap_err().to_string();
    assert!(error.contains("lte, 5g, dsl"), "{error}");
}

/// Bytes a second that four connections get through a profile together, if each of them sends at its rate.
fn carried_by_four(sharing: Sharing) -> f64 {
    let lte = posthaste_link::profile::named("lte").unwrap();
    let mut network = network(&lte.plan(Direction::Down), sharing);
    // A packet of each connection every millisecond is 12 Mbit/s for each.
    for ms in 0..10_000 {
        for key in 0..4 {
            network.push(
                at(ms * 1_000_000),
                Direction::Down,
                key,
                parcel(usize::from(key), 1500),
            );
        }
    }
    let mut bytes = 0;
    while let Some((.., departure)) = network.pop(at(10_000_000_000)) {
        let delivered = matches!(departure.fate, Fate::Delivered(_));
        bytes += if delivered { departure.packet.bytes } else { 0 };
    }
    f64::from(bytes) / 10.0
}

#[test]
fn four_connections_over_a_profile_share_its_rate() {
    let rate = 12_000_000.0 / 8.0;
    let together = carried_by_four(Sharing::Whole) / rate;
    assert!((0.95..1.05).contains(&together), "{together}");
    let apart = carried_by_four(Sharing::PerConnection) / rate;
    assert!((3.8..4.2).contains(&apart), "{apart}");
}

#[test]
fn each_connection_follows_the_plan_that_was_chosen_for_it() {
    let choose = |key: &u8| {
        let delayed = |ms| {
            Arc::new(Plan {
                delay: Span::from_millis(ms),
                ..Plan::default()
            })
        };
        [delayed(u64::from(*key)), delayed(100)]
    };
    let mut network: Net = Network::choosing(choose, Seed(3));
    for key in [30, 10, 20] {
        network.push(at(0), Direction::Up, key, parcel(usize::from(key), 100));
        network.push(at(0), Direction::Down, key, parcel(usize::from(key), 100));
    }
    let mut out = Vec::new();
    while let Some((direction, number, key, departure)) = network.pop(Instant::FAR_FUTURE) {
        out.push((
            direction,
            number,
            key,
            departure.left.as_nanos() / 1_000_000,
        ));
    }
    let down = |number, key| (Direction::Down, number, key, 100);
    let expected = [
        (Direction::Up, 2, 10, 10),
        (Direction::Up, 3, 20, 20),
        (Direction::Up, 1, 30, 30),
        down(1, 30),
        down(2, 10),
        down(3, 20),
    ];
    assert_eq!(out, expected);
}
