//! End of a client's connection: GOAWAY of either end, or an error.

use crate::streams::request::OpenError;

/// The end of a connection: announced by GOAWAY of either end, or caused by the error `E`.
#[derive(Debug)]
pub(crate) struct ShutdownState<E> {
    /// First stream that the server does not process.
    first_rejected: u64,
    /// GOAWAY was received or sent.
    going_away: bool,
    failed: Option<E>,
}

impl<E: Copy> ShutdownState<E> {
    /// The state of a new connection.
    pub(crate) const fn new() -> Self {
        Self {
            first_rejected: u64::MAX,
            going_away: false,
            failed: None,
        }
    }

    /// Returns the error that ended the connection.
    pub(crate) const fn check(&self) -> Result<(), E> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Rejects new streams after GOAWAY or an error.
    pub(crate) const fn check_open(&self) -> Result<(), OpenError> {
        if self.going_away || self.failed.is_some() {
            return Err(OpenError::GoingAway);
        }
        Ok(())
    }

    /// True after an error.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Ends the connection with an error.
    pub(crate) const fn fail(&mut self, error: E) {
        self.failed = Some(error);
    }

    /// Takes GOAWAY of the server. Returns false if it names a later stream than the one before.
    pub(crate) const fn receive_goaway(&mut self, first_rejected: u64) -> bool {
        if first_rejected > self.first_rejected {
            return false;
        }
        self.first_rejected = first_rejected;
        self.going_away = true;
        true
    }

    /// Records that the connection closes. Returns true if GOAWAY must be sent.
    pub(crate) const fn close(&mut self) -> bool {
        let is_needed = !self.going_away && self.failed.is_none();
        self.going_away = true;
        is_needed
    }
}
