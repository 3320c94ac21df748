//! Failures of an agent, and the decision to give it no more jobs.

use posthaste_units::Span;

use crate::conductor::AgentError;
use crate::nats::traffic::TrafficError;

/// Jobs in a row that an agent refuses, or for which its reply is missing or invalid, after which it gets no more.
const REFUSALS: u32 = 5;

/// Time without the agent after which it gets no more jobs. After a restart of the server an agent may need 21 s to come
/// back: 15 s until missing replies to its pings tell it that the connection is gone, a pause, and 5 s for a connection.
pub(super) const ABSENCE: Span = Span::from_millis(30_000);

/// Failures of an agent since its last job that was done.
#[derive(Debug, Default)]
pub(super) struct SlotFailures {
    refusals: u32,
    absent_since_ns: Option<u64>,
}

impl SlotFailures {
    /// Records a failure at this time of any clock. True if the agent must not get further jobs.
    pub(super) fn record(&mut self, error: &AgentError, now_ns: u64) -> bool {
        if is_absence(error) {
            let since_ns = *self.absent_since_ns.get_or_insert(now_ns);
            return Span::from_nanos(now_ns.saturating_sub(since_ns)) >= ABSENCE;
        }
        self.absent_since_ns = None;
        self.refusals += 1;
        self.refusals >= REFUSALS
    }

    /// Forgets how long the agent has been absent: while the conductor itself is not connected, it cannot know.
    pub(super) fn disconnected(&mut self) {
        self.absent_since_ns = None;
    }
}

const fn is_absence(error: &AgentError) -> bool {
    let AgentError::Traffic { source, .. } = error else {
        return false;
    };
    matches!(source, TrafficError::NoResponder)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn absent() -> AgentError {
        AgentError::Traffic {
            agent: "a".parse().expect("a valid name"),
            source: TrafficError::NoResponder,
        }
    }

    fn refused() -> AgentError {
        AgentError::Refused {
            agent: "a".parse().expect("a valid name"),
            reason: "the sweep has ended".to_owned(),
        }
    }

    #[test]
    fn absent_agents_have_time_to_come_back() {
        let mut failures = SlotFailures::default();
        let mut records = |second: u64| failures.record(&absent(), (7 + second) * SECOND);
        assert!((0..30).all(|second| !records(second)));
        assert!(records(30));
    }

    #[test]
    fn absence_begins_again_with_the_connection_of_the_conductor() {
        let mut failures = SlotFailures::default();
        assert!(!failures.record(&absent(), 0));
        failures.disconnected();
        assert!(!failures.record(&absent(), 30 * SECOND));
        assert!(failures.record(&absent(), 60 * SECOND));
    }

    #[test]
    fn an_agent_that_refuses_five_jobs_gets_no_more() {
        let mut failures = SlotFailures::default();
        for _ in 1..REFUSALS {
            assert!(!failures.record(&refused(), 0));
            // An agent that is away for a moment between its refusals.
            assert!(!failures.record(&absent(), 0));
        }
        assert!(failures.record(&refused(), 0));
    }
}
