//! Flow control (RFC 9113, section 5.2): windows of the server for our bodies, and ours for its replies.

use super::ErrorCode;
use super::error::{ConnectionError, StreamFault};
use super::frame::StreamId;

/// Our window of a stream: 16 MiB. The remainder makes an exhausted window visible ([`ReceiveWindow`]).
pub(super) const STREAM_WINDOW: u32 = (16 << 20) + 4_093;

/// Our window of the connection: 1 GiB, with the same remainder.
pub(super) const CONNECTION_WINDOW: u32 = (1 << 30) + 4_093;

/// Largest window, in bytes.
const MAX: i64 = StreamId::MAX as i64;

/// More bytes than a window can have, or than it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowOverflow;

impl WindowOverflow {
    /// The violation, if an update of the server caused it.
    const REASON: &str = "a window above 2^31 - 1 bytes";
}

impl From<WindowOverflow> for ConnectionError {
    fn from(_: WindowOverflow) -> Self {
        Self::new(ErrorCode::FLOW_CONTROL_ERROR, WindowOverflow::REASON)
    }
}

impl From<WindowOverflow> for StreamFault {
    fn from(_: WindowOverflow) -> Self {
        Self::new(ErrorCode::FLOW_CONTROL_ERROR, WindowOverflow::REASON)
    }
}

/// Bytes that may be sent. A change of SETTINGS can make it negative (RFC 9113, section 6.9.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct SendWindow(i64);

impl SendWindow {
    pub(super) fn new(size: u32) -> Self {
        Self(size.into())
    }

    /// Bytes that may be sent now.
    pub(super) fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Subtracts sent bytes.
    pub(super) fn spend(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.available(), "the window permits the bytes");
        self.0 -= bytes as i64;
    }

    /// Changes the window by an update or by SETTINGS.
    pub(super) fn change(&mut self, delta: i64) -> Result<(), WindowOverflow> {
        self.0 += delta;
        if self.0 > MAX {
            Err(WindowOverflow)
        } else {
            Ok(())
        }
    }
}

/// Bytes that the server may send. Half of the window is granted again at a time.
///
/// Sizes that are no multiple of usual frame sizes show a sender that the window stops: its frame then ends exactly at
/// a limit, and without the window it would not.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveWindow {
    size: u32,
    received: u64,
    /// Bytes granted in all.
    limit: u64,
    /// The limit before the last grant, which the sender may not know yet.
    before: u64,
}

impl ReceiveWindow {
    pub(super) fn new(size: u32) -> Self {
        Self {
            size,
            received: 0,
            limit: size.into(),
            before: size.into(),
        }
    }

    /// Records a received frame. Returns true if the frame used up the window.
    pub(super) fn receive(&mut self, bytes: u32) -> Result<bool, WindowOverflow> {
        self.received += u64::from(bytes);
        if self.received > self.limit {
            return Err(WindowOverflow);
        }
        let at_limit = self.received == self.limit || self.received == self.before;
        Ok(bytes > 0 && at_limit)
    }

    /// The bytes to grant now, if half of the window is used.
    pub(super) fn grant(&mut self) -> Option<u32> {
        let left = self.limit - self.received;
        let used = u64::from(self.size) - left;
        if used < u64::from(self.size / 2).max(1) {
            return None;
        }
        self.before = self.limit;
        self.limit += used;
        u32::try_from(used).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_window_is_granted_again() {
        let mut window = ReceiveWindow::new(1000);
        assert_eq!(window.receive(499), Ok(false));
        assert_eq!(window.grant(), None);
        assert_eq!(window.receive(1), Ok(false));
        assert_eq!(window.grant(), Some(500));
        // The sender stops at the old limit, then at the new one.
        assert_eq!(window.receive(500), Ok(true));
        assert_eq!(window.receive(500), Ok(true));
        assert_eq!(window.receive(1), Err(WindowOverflow));
    }

    #[test]
    fn a_send_window_can_be_negative() {
        let mut window = SendWindow::new(10);
        window.change(-30).unwrap();
        assert_eq!(window.available(), 0);
        window.change(25).unwrap();
        assert_eq!(window.available(), 5);
        assert_eq!(window.change(MAX), Err(WindowOverflow));
    }
}
