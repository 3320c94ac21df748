//! Format of a request: its first bytes describe the transaction.

use posthaste_units::Span;

use super::Transaction;

/// Minimum length of a request in bytes.
pub const SHORTEST: u32 = LENGTH as u32;

/// Bytes of an `Order`.
pub(super) const LENGTH: usize = 24;

/// Instructions for the server in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// Bytes of the whole request.
    pub(super) request: u32,
    /// Bytes of the reply.
    pub(super) reply: u32,
    pub(super) processing: Span,
    pub(super) fin_on_data: bool,
}

impl Order {
    pub(super) fn read(bytes: [u8; LENGTH]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(word)
        };
        let [sizes, processing, flags] = [word(0), word(8), word(16)];
        Self {
            request: (sizes >> 32) as u32,
            reply: sizes as u32,
            processing: Span::from_nanos(processing),
            fin_on_data: flags & 1 == 1,
        }
    }
}

/// A whole request.
pub(super) fn request(transaction: &Transaction) -> Vec<u8> {
    let sizes = u64::from(transaction.request) << 32 | u64::from(transaction.reply);
    let numbers = [
        sizes,
        transaction.processing.as_nanos(),
        u64::from(transaction.fin_on_data),
    ];
    let mut bytes: Vec<u8> = numbers.into_iter().flat_map(u64::to_be_bytes).collect();
    bytes.resize(LENGTH.max(transaction.request as usize), b'.');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let transaction = Transaction {
            port: 1,
            request: 1438,
            reply: 12_974,
            processing: Span::from_millis(200),
            fin_on_data: true,
        };
        let bytes = request(&transaction);
        assert_eq!(bytes.len(), 1438);
        let order = Order::read(bytes[..LENGTH].try_into().unwrap());
        assert_eq!((order.request, order.reply), (1438, 12_974));
        assert_eq!(order.processing, Span::from_millis(200));
        assert!(order.fin_on_data);
    }
}
