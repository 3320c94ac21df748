//! When a sweep has waited long enough for an agent that does no jobs.

use std::time::Duration;

use tokio::time::Instant;

use crate::conductor::AgentError;
use crate::traffic::TrafficError;

/// Jobs in a row that an agent refuses, or for which its reply is missing or invalid, after which it gets no more.
const REFUSALS: u32 = 5;

/// Time without the agent after which it gets no more jobs. After a restart of the server an agent may need 21 s to come
/// back: 15 s until missing replies to its pings tell it that the connection is gone, a pause, and 5 s for a connection.
const ABSENCE: Duration = Duration::from_secs(30);

/// Failures of an agent since its last job that was done.
#[derive(Debug, Default)]
pub(super) struct SlotFailures {
    refusals: u32,
    absent_since: Option<Instant>,
}

impl SlotFailures {
    /// Records a failure. True if the agent must not get further jobs.
    pub(super) fn record(&mut self, error: &AgentError, now: Instant) -> bool {
        if is_absence(error) {
            let since = *self.absent_since.get_or_insert(now);
            return now.duration_since(since) >= ABSENCE;
        }
        self.absent_since = None;
        self.refusals += 1;
        self.refusals >= REFUSALS
    }

    /// Forgets how long the agent has been absent: while the conductor itself is not connected, it cannot know.
    pub(super) fn disconnected(&mut self) {
        self.absent_since = None;
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

    fn absent() -> AgentError {
        AgentError::Traffic {
            agent: "a".parse().expect("a valid name"),
            source: TrafficError::NoResponder,
        }
    }

    fn refused() -> AgentError {
        AgentError::Refused {
            agent: "a".parse().expect("a valid name"),
            reason: "no sweep is prepared".to_owned(),
        }
    }

    #[test]
    fn absent_agents_have_time_to_come_back() {
        let begin = Instant::now();
        let mut failures = SlotFailures::default();
        let mut records =
            |seconds| failures.record(&absent(), begin + Duration::from_secs(seconds));
        assert!((0..30).all(|second| !records(second)));
        assert!(records(30));
    }

    #[test]
    fn absence_begins_again_with_the_connection_of_the_conductor() {
        let begin = Instant::now();
        let mut failures = SlotFailures::default();
        assert!(!failures.record(&absent(), begin));
        failures.disconnected();
        let later = begin + ABSENCE;
        assert!(!failures.record(&absent(), later));
        assert!(failures.record(&absent(), later + ABSENCE));
    }

    #[test]
    fn an_agent_that_refuses_five_jobs_gets_no_more() {
        let now = Instant::now();
        let mut failures = SlotFailures::default();
        for _ in 1..REFUSALS {
            assert!(!failures.record(&refused(), now));
            // An agent that is away for a moment between its refusals.
            assert!(!failures.record(&absent(), now));
        }
        assert!(failures.record(&refused(), now));
    }
}
