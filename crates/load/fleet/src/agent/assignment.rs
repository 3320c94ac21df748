//! The run to which an agent belongs, as a state machine. Time is an argument, in nanoseconds of the agent's clock.
//!
//! ```text
//! idle --prepare--> prepared --arm--> armed --go--> running --release--> idle
//!                      ^                |
//!                      +---- cancel ----+
//! ```
//!
//! An agent leaves a run by itself if the conductor is silent: after [`UNARMED`] without arming, at the origin without
//! `go`, and after [`PULSELESS`] without a pulse while it is connected. While the server is away, a running agent goes
//! on, because its loops do not need the server. [`AgentLimits::longest_run`] ends every run.

use posthaste_units::Span;
use thiserror::Error;

use crate::protocol::message::RunOrder;
use crate::protocol::names::RunId;

/// Maximum time between preparation and arming.
pub const UNARMED: Span = Span::from_millis(30_000);

/// Maximum time without a pulse while connected. A pulse comes each second.
pub const PULSELESS: Span = Span::from_millis(10_000);

/// Minimum time between arming and the origin.
pub const LEAST_LEAD: Span = Span::from_millis(50);

/// Maximum time between arming and the origin.
pub const MOST_LEAD: Span = Span::from_millis(60_000);

/// Limits that the agent's owner sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// Maximum length of a run.
    pub longest_run: Span,
}

/// State of an agent.
#[derive(Debug)]
pub struct Assignment {
    limits: AgentLimits,
    state: AssignmentState,
    is_leaving: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AssignmentState {
    Idle,
    Prepared {
        run: RunId,
        since_ns: u64,
    },
    Armed {
        run: RunId,
        origin_ns: u64,
    },
    Running {
        run: RunId,
        origin_ns: u64,
        heard_ns: u64,
        is_stopped: bool,
    },
}

/// Effect of an order or of the passage of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignmentAction {
    /// Start at the origin.
    Start {
        /// The run.
        run: RunId,
        /// The origin on the agent's clock.
        origin_ns: u64,
    },
    /// Stop at this time of the run.
    Stop {
        /// Time since the origin.
        at_ns: u64,
    },
    /// Stop at once, if running, and forget the run.
    Forget {
        /// The run.
        run: RunId,
        /// The reason.
        reason: ForgetReason,
    },
}

/// Reason to forget a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ForgetReason {
    /// The conductor needs nothing more.
    #[error("released by the conductor")]
    Released,
    /// Prepared and never armed.
    #[error("not armed within 30 s")]
    Unarmed,
    /// Armed and without `go` at the origin.
    #[error("no go before the origin")]
    NoGo,
    /// The conductor is silent.
    #[error("no pulse of the conductor for 10 s")]
    Pulseless,
    /// The agent ends.
    #[error("the agent ends")]
    Leaving,
}

/// Refusal of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AssignmentError {
    /// In another run.
    #[error("busy with run {0}")]
    Busy(RunId),
    /// About to end.
    #[error("the agent ends")]
    Leaving,
    /// Not prepared for this run.
    #[error("not prepared for run {0}")]
    NotPrepared(RunId),
    /// Not started.
    #[error("run {0} has not been started here")]
    NotRunning(RunId),
    /// The origin is too near.
    #[error("the origin is less than 50 ms away")]
    Late,
    /// The origin is too far.
    #[error("the origin is more than 60 s away")]
    Early,
}

impl Assignment {
    /// An idle agent.
    pub fn new(limits: AgentLimits) -> Self {
        Self {
            limits,
            state: AssignmentState::Idle,
            is_leaving: false,
        }
    }

    /// The present run.
    pub fn run(&self) -> Option<RunId> {
        match self.state {
            AssignmentState::Idle => None,
            AssignmentState::Prepared { run, .. }
            | AssignmentState::Armed { run, .. }
            | AssignmentState::Running { run, .. } => Some(run),
        }
    }

    /// True if this run has been started.
    pub fn is_running(&self, run: RunId) -> bool {
        matches!(self.state, AssignmentState::Running { run: own, .. } if own == run)
    }

    /// Reserves the agent for a run that will be prepared now.
    pub fn prepare(&mut self, now_ns: u64, run: RunId) -> Result<(), AssignmentError> {
        match self.run() {
            Some(other) => Err(AssignmentError::Busy(other)),
            None if self.is_leaving => Err(AssignmentError::Leaving),
            None => {
                self.state = AssignmentState::Prepared {
                    run,
                    since_ns: now_ns,
                };
                Ok(())
            }
        }
    }

    /// Ends the preparation, which may take long. After a failure the agent is idle.
    pub fn prepared(&mut self, now_ns: u64, is_ready: bool) {
        let AssignmentState::Prepared { run, since_ns } = self.state else {
            unreachable!("a preparation ends in the state in which it began");
        };
        debug_assert!(since_ns <= now_ns, "the clock is monotonic");
        self.state = if is_ready {
            AssignmentState::Prepared {
                run,
                since_ns: now_ns,
            }
        } else {
            AssignmentState::Idle
        };
    }

    /// Arms the run, again if it was armed before. Returns the time until the origin.
    pub fn arm(
        &mut self,
        now_ns: u64,
        run: RunId,
        origin_ns: u64,
    ) -> Result<Span, AssignmentError> {
        match self.state {
            AssignmentState::Prepared { run: own, .. }
            | AssignmentState::Armed { run: own, .. }
                if own == run => {}
            _ => return Err(AssignmentError::NotPrepared(run)),
        }
        let left = Span::from_nanos(origin_ns.saturating_sub(now_ns));
        if left < LEAST_LEAD {
            return Err(AssignmentError::Late);
        }
        if left > MOST_LEAD {
            return Err(AssignmentError::Early);
        }
        self.state = AssignmentState::Armed { run, origin_ns };
        Ok(left)
    }

    /// Carries out an order. Orders of other runs, and orders without meaning in this state, have no effect.
    pub fn order(&mut self, now_ns: u64, run: RunId, order: RunOrder) -> Option<AssignmentAction> {
        if self.run() != Some(run) {
            return None;
        }
        match (order, &mut self.state) {
            (RunOrder::Go, AssignmentState::Armed { origin_ns, .. }) if now_ns < *origin_ns => {
                let origin_ns = *origin_ns;
                self.state = AssignmentState::Running {
                    run,
                    origin_ns,
                    heard_ns: origin_ns,
                    is_stopped: false,
                };
                Some(AssignmentAction::Start { run, origin_ns })
            }
            // Too late: the next tick makes the agent stand down.
            (RunOrder::Go, _) => None,
            (RunOrder::Cancel, AssignmentState::Armed { .. }) => {
                self.state = AssignmentState::Prepared {
                    run,
                    since_ns: now_ns,
                };
                None
            }
            (RunOrder::Cancel, _) => None,
            (
                RunOrder::Stop { at_ns },
                AssignmentState::Running {
                    heard_ns,
                    is_stopped,
                    ..
                },
            ) => {
                *heard_ns = now_ns.max(*heard_ns);
                // Repeated by the conductor. The first one counts.
                let is_first = !std::mem::replace(is_stopped, true);
                is_first.then_some(AssignmentAction::Stop { at_ns })
            }
            (RunOrder::Stop { .. }, _) => None,
            (RunOrder::Pulse, AssignmentState::Running { heard_ns, .. }) => {
                *heard_ns = now_ns.max(*heard_ns);
                None
            }
            (RunOrder::Pulse, _) => None,
            (RunOrder::Release, _) => Some(self.forget(run, ForgetReason::Released)),
        }
    }

    /// Applies the passage of time. To be called several times per second.
    pub fn tick(&mut self, now_ns: u64, is_connected: bool) -> Option<AssignmentAction> {
        let since = |then_ns: u64| Span::from_nanos(now_ns.saturating_sub(then_ns));
        match &mut self.state {
            AssignmentState::Idle => None,
            AssignmentState::Prepared { run, since_ns } => {
                let run = *run;
                let is_over = since(*since_ns) > UNARMED;
                is_over.then(|| self.forget(run, ForgetReason::Unarmed))
            }
            AssignmentState::Armed { run, origin_ns } => {
                let run = *run;
                let is_over = now_ns >= *origin_ns;
                is_over.then(|| self.forget(run, ForgetReason::NoGo))
            }
            AssignmentState::Running {
                run,
                origin_ns,
                heard_ns,
                is_stopped,
            } => {
                debug_assert!(
                    *heard_ns >= *origin_ns,
                    "the silence of a run begins at its origin"
                );
                if !is_connected {
                    // Nobody can be heard.
                    *heard_ns = now_ns.max(*heard_ns);
                }
                if since(*heard_ns) > PULSELESS {
                    let run = *run;
                    return Some(self.forget(run, ForgetReason::Pulseless));
                }
                let length = since(*origin_ns);
                if length > self.limits.longest_run && !*is_stopped {
                    *is_stopped = true;
                    return Some(AssignmentAction::Stop {
                        at_ns: length.as_nanos(),
                    });
                }
                None
            }
        }
    }

    /// Begins the end of the agent, such as after SIGTERM: a running run stops now and is reported, a prepared one is
    /// forgotten, and none is accepted.
    pub fn leave(&mut self, now_ns: u64) -> Option<AssignmentAction> {
        self.is_leaving = true;
        match &mut self.state {
            AssignmentState::Idle => None,
            AssignmentState::Prepared { run, .. } | AssignmentState::Armed { run, .. } => {
                let run = *run;
                Some(self.forget(run, ForgetReason::Leaving))
            }
            AssignmentState::Running {
                origin_ns,
                is_stopped,
                ..
            } => {
                let at_ns = now_ns.saturating_sub(*origin_ns);
                let is_first = !std::mem::replace(is_stopped, true);
                is_first.then_some(AssignmentAction::Stop { at_ns })
            }
        }
    }

    fn forget(&mut self, run: RunId, reason: ForgetReason) -> AssignmentAction {
        debug_assert_eq!(self.run(), Some(run), "only the present run is forgotten");
        self.state = AssignmentState::Idle;
        AssignmentAction::Forget { run, reason }
    }
}
