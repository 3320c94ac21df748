//! Output for the transport, stream by stream.

use super::Client;
use crate::streams::http3::frame::StreamId;
use crate::streams::http3::output::OutputAction;
use crate::streams::http3::streams::SendProgress;

impl Client {
    /// The next action for the transport.
    ///
    /// A write is returned until [`Client::sent`] or [`Client::blocked`]; other actions are returned once. `None` after
    /// an error.
    pub fn output(&mut self) -> Option<OutputAction<'_>> {
        if self.failed.is_some() {
            return None;
        }
        let control = &self.output.control;
        if !control.unsent().is_empty() && !control.blocked {
            return Some(OutputAction::Write {
                stream: StreamId::CONTROL,
                bytes: self.output.control.unsent(),
                fin: false,
            });
        }
        if let Some(reset) = self.output.resets.pop_front() {
            return Some(reset.action());
        }
        let id = self.first_ready()?;
        let stream = self.streams.get(id).expect("a ready stream is open");
        Some(OutputAction::Write {
            stream: StreamId::new(id),
            bytes: stream.buffers.output.unsent(),
            fin: stream.progress == SendProgress::Ending,
        })
    }

    /// True if [`Client::output`] would return an action.
    pub fn has_output(&mut self) -> bool {
        let control = &self.output.control;
        let has_control = !control.unsent().is_empty() && !control.blocked;
        let has_resets = !self.output.resets.is_empty();
        self.failed.is_none() && (has_control || has_resets || self.first_ready().is_some())
    }

    /// The first stream with output. Forgets those that have ended or are blocked.
    fn first_ready(&mut self) -> Option<u64> {
        while let Some(id) = self.output.ready.front() {
            match self.streams.get_mut(*id) {
                Some(stream) if stream.has_output() => return Some(*id),
                Some(stream) => stream.listed = false,
                None => {}
            }
            self.output.ready.pop_front();
        }
        None
    }

    /// Removes the first `count` bytes of a stream's output, because the transport has accepted them. If these are all
    /// bytes of a write with `fin`, the transport has accepted the end as well.
    ///
    /// Afterwards, [`Client::room`] and [`Client::next_writable`] can have changed. Streams that have ended are ignored.
    pub fn sent(&mut self, stream: StreamId, count: usize) {
        if stream == StreamId::CONTROL {
            let control = &mut self.output.control;
            control.advance(count);
            if !control.blocked {
                self.output.unblocked -= count;
            }
            return;
        }
        let Some(open) = self.streams.get_mut(stream.number()) else {
            return;
        };
        let before = open.unblocked();
        open.buffers.output.advance(count);
        self.output.unblocked -= before - open.unblocked();
        if open.progress == SendProgress::Ending && open.buffers.output.unsent().is_empty() {
            open.progress = SendProgress::Sent;
        }
        self.offer(stream.number());
    }

    /// States that the transport accepts no more bytes of a stream for now.
    pub fn blocked(&mut self, stream: StreamId) {
        if stream == StreamId::CONTROL {
            let control = &mut self.output.control;
            if !control.blocked {
                control.blocked = true;
                self.output.unblocked -= control.unsent().len();
            }
            return;
        }
        let Some(open) = self.streams.get_mut(stream.number()) else {
            return;
        };
        self.output.unblocked -= open.unblocked();
        open.buffers.output.blocked = true;
        if open.has_body && !open.stalled {
            open.stalled = true;
            self.counters.stalled += 1;
        }
    }

    /// States that the transport accepts bytes of a blocked stream again.
    pub fn writable(&mut self, stream: StreamId) {
        if stream == StreamId::CONTROL {
            let control = &mut self.output.control;
            if control.blocked {
                control.blocked = false;
                self.output.unblocked += control.unsent().len();
            }
            return;
        }
        let Some(open) = self.streams.get_mut(stream.number()) else {
            return;
        };
        self.output.unblocked -= open.unblocked();
        open.buffers.output.blocked = false;
        self.output.unblocked += open.unblocked();
        self.list(stream.number());
        self.offer(stream.number());
    }
}
