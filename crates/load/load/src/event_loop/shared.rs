//! State shared by all event loops of a run.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use posthaste_units::Span;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::buying::FollowedCatalogue;
use crate::clock::RunClock;
use crate::exchange::attempt_recorder::AttemptRecorder;
use crate::exchange::stream_client::StreamSetUp;
use crate::outcome::Outcome;
use crate::plan::mix::Mix;
use crate::plan::share::Share;
use crate::plan::{MeasuredWindow, Plan};
use crate::reply::Budget;
use crate::stop::StopOrders;
use crate::tally::LoadTally;
use crate::target::TargetOrigin;
use crate::transport::quic::QlogDirectory;
use crate::transport::tls::TlsStream;

/// State shared by all event loops of a run.
pub(crate) struct Shared<'r> {
    pub(crate) plan: &'r Plan,
    /// The loops of this process.
    pub(crate) share: Share,
    pub(crate) mix: Mix,
    pub(crate) origins: Vec<TargetOrigin>,
    /// Duration of the name look-up of each server.
    pub(crate) dns: Vec<Span>,
    pub(crate) names: HashMap<usize, ServerName<'static>>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// The set-up of connections with streams, if the protocol has them.
    pub(crate) streams: Option<StreamSetUp>,
    /// qlog files, if they are wanted.
    pub(crate) qlog: Option<Arc<QlogDirectory>>,
    pub(crate) clock: RunClock,
    /// Offers, if clients choose by price.
    pub(crate) offers: Option<FollowedCatalogue>,
    pub(crate) stop: StopOrders<'r>,
    /// True if a loop of the run could not be started, so that the others do not begin.
    pub(crate) incomplete: AtomicBool,
    /// Memory for coded replies, if the plan decodes.
    pub(crate) budget: Option<Arc<Budget>>,
    /// Maximum number of open connections per loop.
    pub(crate) limit: usize,
    pub(crate) window: MeasuredWindow,
    /// Receives the end of each attempt, in experiments.
    pub(crate) recorder: Option<&'r AttemptRecorder>,
}

impl Shared<'_> {
    /// The local port of the next connection. 0 leaves the choice to the system.
    pub(crate) fn local_port(&self) -> u16 {
        self.recorder.map_or(0, AttemptRecorder::assign_port)
    }

    /// The look-ups of names, which took place before the run.
    pub(crate) fn look_ups(&self) -> LoadTally {
        let mut tally = LoadTally::for_plan(self.plan);
        self.dns
            .iter()
            .for_each(|time| tally.phases.dns.record(*time));
        tally
    }

    /// The TLS of a new connection over TCP to a server. `None` if the server has none.
    pub(crate) fn secure(&self, server: usize) -> Result<Option<TlsStream>, (Outcome, String)> {
        let (Some(config), Some(name)) = (&self.tls, self.names.get(&server)) else {
            return Ok(None);
        };
        let secure = TlsStream::new(config, name);
        let secure = secure.map_err(|error| (Outcome::TlsFailed, error.to_string()))?;
        Ok(Some(secure))
    }
}
