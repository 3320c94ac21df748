//! For any plan: each pushed packet comes out once, in order of time, and the result does not depend on the time of
//! calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use posthaste_link::{Departure, Discipline, DropReason, Fate, HOLD_LIMIT, Link, Order, Plan};
use posthaste_units::{Instant, Ratio, Seed, Span};
use proptest::prelude::*;

use crate::support::{Arrival, Parcel, arrivals, at, drain, parcel, pass, plans};

/// Pops before each push, up to a time that precedes its arrival by a value from `pops`; with `late`, follows it.
fn pass_popping(
    plan: &Plan,
    arrivals: &[Arrival],
    pops: &[u64],
    late: bool,
) -> Vec<Departure<Parcel>> {
    let mut link = Link::new(&Arc::new(plan.clone()), Seed(7));
    let mut out = Vec::new();
    for (id, (ns, bytes)) in arrivals.iter().enumerate() {
        let pop = pops[id % pops.len()];
        let until = if late {
            ns + pop
        } else {
            ns.saturating_sub(pop)
        };
        out.extend(std::iter::from_fn(|| link.pop(at(until))));
        link.push(at(*ns), parcel(id, *bytes));
    }
    out.extend(drain(&mut link));
    out
}

fn by_position(mut out: Vec<Departure<Parcel>>) -> Vec<Departure<Parcel>> {
    out.sort_by_key(|departure| (departure.position, departure.copy));
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Bit errors that can occur but never do disable the fast path. The result is the same.
    #[test]
    fn the_straight_way_is_the_way_of_all(plan in plans(), arrivals in arrivals()) {
        let with_errors = |rate| Plan {
            bit_error_rate: Ratio::new(rate).expect("a probability"),
            ..plan.clone()
        };
        let (none, never) = (with_errors(0.0), with_errors(f64::MIN_POSITIVE));
        prop_assert_eq!(pass(&none, 5, &arrivals), pass(&never, 5, &arrivals));
    }

    /// A restarted link equals a new one, for any packets that were inside.
    #[test]
    fn begun_anew_it_is_as_new(plan in plans(), before in arrivals(), after in arrivals(), popped in 0usize..200) {
        let plan = Arc::new(plan);
        let passed = |mut link: Link<Parcel>| {
            for (id, (ns, bytes)) in after.iter().enumerate() {
                link.push(at(*ns), parcel(id, *bytes));
            }
            (drain(&mut link), *link.counters(), link.class_counters())
        };
        let mut used = Link::new(&plan, Seed(6));
        for (id, (ns, bytes)) in before.iter().enumerate() {
            used.push(at(*ns), parcel(id, *bytes));
        }
        for _ in 0..popped {
            used.pop(Instant::FAR_FUTURE);
        }
        used.restart(Seed(7));
        prop_assert_eq!(passed(used), passed(Link::new(&plan, Seed(7))));
    }

    #[test]
    fn everything_comes_out_once_in_order(plan in plans(), arrivals in arrivals()) {
        let mut link = Link::new(&Arc::new(plan.clone()), Seed(7));
        for (id, (ns, bytes)) in arrivals.iter().enumerate() {
            prop_assert_eq!(link.push(at(*ns), parcel(id, *bytes)), at(*ns));
        }
        let mut out = Vec::new();
        while let Some(wake) = link.wake() {
            while let Some(departure) = link.pop(wake) {
                prop_assert_eq!(departure.left, wake, "woken for it exactly");
                out.push(departure);
            }
        }
        prop_assert!(out.windows(2).all(|two| two[0].left <= two[1].left));
        let mut seen = BTreeSet::new();
        for departure in &out {
            prop_assert!(seen.insert((departure.position, departure.copy)), "twice: {:?}", departure);
            let (ns, bytes) = arrivals[departure.packet.id];
            prop_assert_eq!((departure.position, departure.arrived), (departure.packet.id as u64 + 1, at(ns)));
            prop_assert_eq!(departure.packet.bytes, bytes);
            prop_assert!(departure.left >= departure.arrived);
            let flipped = match departure.fate {
                Fate::Delivered(marks) => marks.flipped,
                Fate::Dropped(_) => 0,
            };
            prop_assert_eq!(departure.packet.flips, flipped);
        }
        let originals = out.iter().filter(|departure| departure.copy == 0).count();
        prop_assert_eq!(originals, arrivals.len());
        let counters = link.counters();
        let bytes = |of: &dyn Fn(&&Departure<Parcel>) -> bool| -> u64 {
            out.iter().filter(of).map(|departure| u64::from(departure.packet.bytes)).sum()
        };
        prop_assert_eq!(counters.inside(), 0);
        prop_assert_eq!(counters.pushed.bytes + counters.copied.bytes, bytes(&|_| true));
        prop_assert_eq!(counters.delivered.bytes + counters.dropped_in_all().bytes, bytes(&|_| true));
        for reason in DropReason::ALL {
            let fate = Fate::Dropped(reason);
            prop_assert_eq!(counters.dropped(reason).bytes, bytes(&|departure| departure.fate == fate));
        }
    }

    /// Calls of `pop` for times up to the last arrival do not change the result.
    #[test]
    fn asking_changes_nothing(plan in plans(), arrivals in arrivals(), pops in proptest::collection::vec(0u64..3_000_000_000, 1..9)) {
        prop_assert_eq!(pass_popping(&plan, &arrivals, &pops, false), pass(&plan, 7, &arrivals));
    }

    /// If arrivals decide everything, calls for later times do not change it either.
    #[test]
    fn asking_too_early_changes_nothing(plan in plans(), arrivals in arrivals(), pops in proptest::collection::vec(0u64..HOLD_LIMIT.as_nanos() / 2, 1..9)) {
        let ahead = plan.queue.discipline == Discipline::DropTail && plan.classes.is_none() && !plan.changeable;
        prop_assume!(plan.order == Order::Netem || ahead);
        let early = by_position(pass_popping(&plan, &arrivals, &pops, true));
        let later = by_position(pass(&plan, 7, &arrivals));
        // A packet that was held back for the maximum time has been released, and that is final.
        prop_assume!(later.iter().all(|departure| departure.left.since(departure.arrived) < HOLD_LIMIT / 2));
        prop_assert_eq!(early, later);
    }

    /// Otherwise decisions are final, and later arrivals count from there: time never decreases.
    #[test]
    fn decided_arrivals_are_final(plan in plans(), arrivals in arrivals(), ahead in 0u64..500_000_000) {
        let mut link = Link::new(&Arc::new(plan), Seed(7));
        let mut counted = Instant::ORIGIN;
        for (id, (ns, bytes)) in arrivals.iter().enumerate() {
            while link.pop(at(ns + ahead)).is_some() {}
            let arrived = link.push(at(*ns), parcel(id, *bytes));
            prop_assert!(arrived >= at(*ns).max(counted) && arrived <= at(ns + ahead).max(counted));
            counted = arrived;
        }
        drain(&mut link);
        prop_assert_eq!(link.counters().inside(), 0);
    }

    /// Random decisions are independent: with the same draws, one more drop changes nothing else.
    #[test]
    fn decisions_are_apart(mut plan in plans(), arrivals in arrivals()) {
        plan.bandwidth = None;
        plan.keeps_order = false;
        plan.duplication = Default::default();
        plan.bit_error_rate = Default::default();
        plan.reordering = None;
        plan.classes = None;
        plan.order = Order::Dummynet;
        plan.script = None;
        let without = by_position(pass(&plan, 7, &arrivals));
        plan.script = crate::support::patterned("up drop 2, 5-9").script;
        for (one, other) in without.iter().zip(by_position(pass(&plan, 7, &arrivals))) {
            if other.fate != Fate::Dropped(DropReason::Pattern) {
                prop_assert_eq!((one.left, one.position, one.copy), (other.left, other.position, other.copy));
            }
        }
    }
}

#[test]
fn nothing_panics_at_the_ends_of_time_and_size() {
    let plan = Plan {
        bandwidth: crate::support::rate(1),
        delay: Span::MAX,
        jitter: Some("pareto:100%".parse().unwrap()),
        bit_error_rate: crate::support::share(1e-9),
        ..Plan::default()
    };
    let arrivals = [(0, u32::MAX / 8), (0, 0), (u64::MAX, 1)];
    assert_eq!(pass(&plan, 1, &arrivals).len(), 3);
}
