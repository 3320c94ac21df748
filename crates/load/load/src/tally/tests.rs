//! Tests of the counts of a tally, and of sums of tallies.

use super::*;
use crate::tally::received::TallyError;
use proptest::prelude::*;

/// Returns the instant `millis` milliseconds from the origin.
fn at(millis: u64) -> Instant {
    Instant::ORIGIN + Span::from_millis(millis)
}

/// Records the end of a request, for a window from 100 to 200 ms.
fn end(tally: &mut LoadTally, intended: u64, sent: u64, done: u64) {
    let moments = Moments {
        intended: at(intended),
        begun: at(sent),
        sent: at(sent),
        written: at(sent),
        ..Moments::default()
    };
    let window = MeasuredWindow {
        start: at(100),
        end: at(200),
    };
    tally.attempt_ended(Outcome::Ok, &moments, at(done), window.start);
    tally.ended(&Ending {
        outcome: Outcome::Ok,
        attempts: 1,
        step: 0,
        request: 0,
        intended: at(intended),
        done: at(done),
        window,
    });
}

#[test]
fn response_time_counts_from_when_a_request_was_due() {
    let mut tally = LoadTally::new(vec![at(200)], 1);
    end(&mut tally, 110, 140, 160);
    let means = [&tally.ok, &tally.service].map(|times| times.histogram().mean());
    let millis = means.map(|mean| mean.as_millis_f64().round());
    assert_eq!(millis, [50.0, 20.0]);
}

#[test]
fn the_rate_counts_replies_within_the_measured_time() {
    let mut tally = LoadTally::new(vec![at(200)], 1);
    for (intended, done, recorded, completed) in [
        (50, 99, 0, 0),
        // A reply to a request of the warm-up counts as a reply in the measured time.
        (50, 150, 0, 1),
        (150, 160, 1, 2),
        (190, 201, 2, 2),
    ] {
        end(&mut tally, intended, intended, done);
        assert_eq!(
            (tally.outcomes.total(), tally.completed),
            (recorded, completed)
        );
    }
}

/// Records a request that ended.
fn record_any(tally: &mut LoadTally, number: u64, at: u64, took: u64, outcome: usize, part: usize) {
    let outcome = Outcome::ALL[outcome];
    let intended = Instant::ORIGIN + Span::from_micros(at);
    let done = intended + Span::from_micros(took);
    let moments = Moments {
        intended,
        begun: intended,
        sent: intended,
        written: intended,
        ..Moments::default()
    };
    let window = MeasuredWindow {
        start: self::at(100),
        end: self::at(100_000),
    };
    tally.intended += 1;
    tally.sent_late(Span::from_nanos(took));
    tally.attempt_ended(outcome, &moments, done, window.start);
    tally.ended(&Ending {
        outcome,
        attempts: 1,
        step: part,
        request: part % 2,
        intended,
        done,
        window,
    });
    let reason = || format!("{number} ended after {took}");
    tally.explain(outcome, (number, 1), reason);
    *tally.statuses.entry(200 + part as u16).or_default() += 1;
    tally.bytes_sent += took;
    tally.over = tally.over.max(done);
}

#[test]
fn explanations_are_one_line_without_controls() {
    let mut tally = LoadTally::new(vec![at(1_000)], 1);
    let reason = || "\x1b[2Jok\nrequests 5".to_owned();
    tally.explain(Outcome::GrpcError, (0, 1), reason);
    let text = &tally.reasons[&Outcome::GrpcError].text;
    assert_eq!(text, "\\u001b[2Jok\\nrequests 5");
}

proptest! {
    #[test]
    fn any_division_in_any_order_has_one_sum(
        ends in prop::collection::vec(
            ((0u64..100_000_000, 0u64..5_000_000, 0..Outcome::ALL.len(), 0usize..3), 0usize..5),
            0..60,
        ),
        stretch in 0u32..12,
        order in any::<prop::sample::Index>(),
    ) {
        let empty = || LoadTally::new(vec![at(1_000), at(50_000), at(100_000)], 2);
        let (mut whole, mut parts) = (empty(), vec![empty(); 5]);
        // What a cleared tally has recorded before leaves no trace.
        record_any(&mut parts[0], 0, 99_000_000, 1, 0, 0);
        parts[0].clear();
        for (number, ((at, took, outcome, part), tally)) in (0..).zip(ends) {
            for tally in [&mut whole, &mut parts[tally]] {
                record_any(tally, number, at >> stretch, took >> stretch, outcome, part);
            }
        }
        parts.rotate_left(order.index(5));
        let mut sum = empty();
        parts.iter().for_each(|part| sum.merge(part));
        prop_assert!(sum == whole);
        // The way through messages changes nothing, in any order of arrival.
        let plan = Plan::new(Vec::new(), crate::testing::plan().pace);
        let mut received = empty();
        for part in &parts {
            let sent = serde_json::to_vec(part).unwrap();
            let part: LoadTally = serde_json::from_slice(&sent).unwrap();
            prop_assert!(!matches!(
                part.check(&plan),
                Err(TallyError::Count(_) | TallyError::Contradiction(_))
            ));
            prop_assert_eq!(serde_json::to_vec(&part).unwrap(), sent);
            received.merge(&part);
        }
        prop_assert_eq!(serde_json::to_vec(&received).unwrap(), serde_json::to_vec(&whole).unwrap());
        prop_assert!(received == whole);
    }
}
