//! The states of an agent.

use posthaste_fleet::agent::assignment::{
    AgentLimits, Assignment, AssignmentAction, AssignmentError, ForgetReason,
};
use posthaste_fleet::message::RunOrder;
use posthaste_fleet::names::RunId;
use posthaste_units::Span;

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

fn run(number: u64) -> RunId {
    RunId::from_bits(number)
}

fn idle() -> Assignment {
    Assignment::new(AgentLimits {
        longest_run: Span::from_millis(60_000),
    })
}

/// Prepared at 0, armed for 2 s.
fn armed() -> Assignment {
    let mut agent = idle();
    agent.prepare(0, run(1)).unwrap();
    agent.prepared(0, true);
    assert_eq!(agent.arm(S, run(1), 2 * S), Ok(Span::from_millis(1000)));
    agent
}

fn running() -> Assignment {
    let mut agent = armed();
    let start = AssignmentAction::Start {
        run: run(1),
        origin_ns: 2 * S,
    };
    assert_eq!(agent.order(S, run(1), RunOrder::Go), Some(start));
    agent
}

fn forget(reason: ForgetReason) -> Option<AssignmentAction> {
    Some(AssignmentAction::Forget {
        run: run(1),
        reason,
    })
}

#[test]
fn an_agent_belongs_to_one_run() {
    let mut agent = armed();
    assert_eq!(agent.prepare(S, run(2)), Err(AssignmentError::Busy(run(1))));
    assert_eq!(
        agent.arm(S, run(2), 2 * S),
        Err(AssignmentError::NotPrepared(run(2)))
    );
    for order in [RunOrder::Go, RunOrder::Release, RunOrder::Stop { at_ns: 0 }] {
        assert_eq!(agent.order(S, run(2), order), None);
    }
    assert_eq!(agent.run(), Some(run(1)));
    assert_eq!(
        agent.order(S, run(1), RunOrder::Release),
        forget(ForgetReason::Released)
    );
    assert_eq!(agent.prepare(S, run(2)), Ok(()));
}

#[test]
fn a_failed_preparation_leaves_the_agent_idle() {
    let mut agent = idle();
    agent.prepare(0, run(1)).unwrap();
    agent.prepared(0, false);
    assert_eq!(agent.run(), None);
    assert_eq!(
        agent.arm(0, run(1), S),
        Err(AssignmentError::NotPrepared(run(1)))
    );
}

#[test]
fn the_origin_must_be_near_and_not_too_near() {
    let mut agent = armed();
    assert_eq!(
        agent.arm(S, run(1), S + 49 * MS),
        Err(AssignmentError::Late)
    );
    assert_eq!(agent.arm(S, run(1), 0), Err(AssignmentError::Late));
    assert_eq!(agent.arm(S, run(1), 62 * S), Err(AssignmentError::Early));
    assert_eq!(agent.arm(S, run(1), S + 50 * MS), Ok(Span::from_millis(50)));
}

#[test]
fn without_go_nobody_begins() {
    let mut agent = armed();
    assert_eq!(agent.tick(2 * S - 1, true), None);
    assert_eq!(agent.order(2 * S, run(1), RunOrder::Go), None);
    assert_eq!(agent.tick(2 * S, true), forget(ForgetReason::NoGo));
    assert_eq!(agent.run(), None);
}

#[test]
fn a_cancelled_agent_can_be_armed_again() {
    let mut agent = armed();
    assert_eq!(agent.order(S, run(1), RunOrder::Cancel), None);
    assert_eq!(agent.tick(3 * S, true), None);
    assert_eq!(agent.order(3 * S, run(1), RunOrder::Go), None);
    assert!(agent.arm(3 * S, run(1), 4 * S).is_ok());
    assert!(agent.order(3 * S, run(1), RunOrder::Go).is_some());
}

#[test]
fn an_agent_that_is_never_armed_leaves() {
    let mut agent = idle();
    agent.prepare(0, run(1)).unwrap();
    // A preparation may take long.
    agent.prepared(100 * S, true);
    assert_eq!(agent.tick(130 * S, true), None);
    assert_eq!(agent.tick(130 * S + 1, true), forget(ForgetReason::Unarmed));
}

#[test]
fn an_agent_without_pulse_leaves_only_while_connected() {
    let mut agent = running();
    assert_eq!(agent.tick(11 * S, true), None);
    agent.order(11 * S, run(1), RunOrder::Pulse);
    assert_eq!(agent.tick(20 * S, true), None);
    // The server is away for 20 s.
    assert_eq!(agent.tick(25 * S, false), None);
    assert_eq!(agent.tick(40 * S, false), None);
    assert_eq!(agent.tick(50 * S, true), None);
    assert_eq!(
        agent.tick(50 * S + 1, true),
        forget(ForgetReason::Pulseless)
    );
}

#[test]
fn a_stop_is_carried_out_once() {
    let mut agent = running();
    let stop = RunOrder::Stop { at_ns: 5 * S };
    assert_eq!(
        agent.order(3 * S, run(1), stop),
        Some(AssignmentAction::Stop { at_ns: 5 * S })
    );
    assert_eq!(agent.order(4 * S, run(1), stop), None);
    assert_eq!(agent.run(), Some(run(1)));
}

#[test]
fn the_longest_run_ends_without_a_conductor() {
    let mut agent = running();
    for second in 3..62 {
        assert_eq!(agent.tick(second * S, false), None);
    }
    let stop = AssignmentAction::Stop { at_ns: 61 * S };
    assert_eq!(agent.tick(63 * S, false), Some(stop));
    assert_eq!(agent.tick(64 * S, false), None);
}

#[test]
fn an_agent_that_leaves_stops_its_run_and_accepts_none() {
    let mut agent = running();
    let stop = AssignmentAction::Stop { at_ns: S };
    assert_eq!(agent.leave(3 * S), Some(stop));
    assert_eq!(agent.leave(3 * S), None);
    assert_eq!(
        agent.order(4 * S, run(1), RunOrder::Stop { at_ns: 0 }),
        None
    );
    assert_eq!(
        agent.order(4 * S, run(1), RunOrder::Release),
        forget(ForgetReason::Released)
    );
    assert_eq!(agent.prepare(4 * S, run(2)), Err(AssignmentError::Leaving));
    let mut agent = armed();
    assert_eq!(agent.leave(S), forget(ForgetReason::Leaving));
    assert_eq!(agent.order(S, run(1), RunOrder::Go), None);
    assert_eq!(idle().leave(0), None);
}
