//! Captures of one known download in every form, and files built byte by byte.

mod connections;
mod copies;
mod files;
mod packets;
mod writer;

use posthaste_link::Direction;
use posthaste_link::pattern::infer::{Findings, ReceiverCapture, SenderCapture};

use super::*;

/// The findings of a capture at the end towards which `towards` leads, in both directions, and remarks.
fn findings(file: &[u8], towards: Direction) -> (Findings, Findings, Remarks) {
    let mut receiver = ReceiverCapture::new(towards);
    let mut sender = SenderCapture::new(towards.reverse());
    let remarks = read(file, &mut Connections::default(), |packet| {
        receiver.push(&packet.seen);
        sender.push(&packet.seen);
    });
    (receiver.finish(), sender.finish(), remarks.unwrap())
}
