//! The end of a connection: FIN, RST, and the states in which it waits.

use posthaste_units::Instant;

use super::Connection;
use super::open::Opening;
use crate::{ConnectionEnd, TcpState};

impl Connection {
    /// Ends the application's writing: a FIN follows the last byte.
    pub(crate) fn close(&mut self) {
        debug_assert!(
            !self.state.is_closed(),
            "the endpoint closes a connection once"
        );
        match self.state {
            TcpState::Listen | TcpState::SynSent => self.finish(ConnectionEnd::Finished),
            TcpState::CloseWait => {
                self.sender.close();
                self.state = TcpState::LastAck;
            }
            TcpState::SynReceived => self.sender.close(),
            _ => {
                self.sender.close();
                self.state = TcpState::FinWait1;
            }
        }
    }

    /// Detaches the application. From FIN-WAIT-2 on the profile's time limit applies.
    pub(crate) fn leave(&mut self, now: Instant) {
        self.left = true;
        self.limit_patience(now);
    }

    /// Aborts the connection: sends a RST if the peer knows of the connection, and nothing after it.
    pub(crate) fn abort(&mut self) {
        debug_assert!(!self.state.is_closed(), "a closed connection needs no RST");
        if !matches!(
            self.state,
            TcpState::Listen | TcpState::SynSent | TcpState::TimeWait
        ) {
            self.reset = Some(self.bare_reset());
        }
        self.finish(ConnectionEnd::Aborted);
    }

    pub(super) fn finish(&mut self, end: ConnectionEnd) {
        self.state = TcpState::Closed(end);
        self.opening = Opening::default();
        self.linger = Instant::FAR_FUTURE;
        self.repeats = 0;
    }

    /// Advances the connection state from the states of both halves.
    pub(super) fn follow(&mut self, now: Instant) {
        let sequence = self.sender.sequence();
        let acknowledged = sequence.closing && sequence.fin_acknowledged();
        let closed = self.receiver.has_closed();
        if !(acknowledged || closed) {
            return;
        }
        let next = match self.state {
            TcpState::Established if closed => TcpState::CloseWait,
            TcpState::FinWait1 if acknowledged && closed => TcpState::TimeWait,
            TcpState::FinWait1 if acknowledged => TcpState::FinWait2,
            TcpState::FinWait1 if closed => TcpState::Closing,
            TcpState::FinWait2 if closed => TcpState::TimeWait,
            TcpState::Closing if acknowledged => TcpState::TimeWait,
            TcpState::LastAck if acknowledged => return self.finish(ConnectionEnd::Finished),
            TcpState::TimeWait if self.receiver.owed_now => TcpState::TimeWait,
            _ => return,
        };
        self.state = next;
        self.linger = match next {
            TcpState::TimeWait => now + self.profile.handshake.time_wait,
            _ => Instant::FAR_FUTURE,
        };
        self.limit_patience(now);
    }

    /// Starts the time limit of FIN-WAIT-2 once the application is gone.
    fn limit_patience(&mut self, now: Instant) {
        if self.left
            && self.state == TcpState::FinWait2
            && self.linger == Instant::FAR_FUTURE
            && let Some(patience) = self.profile.handshake.fin_wait_2
        {
            self.linger = now + patience;
        }
    }
}
