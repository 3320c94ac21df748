//! Bodies with a content coding: where they are cut into pieces changes nothing, and what comes of them
//! never goes beyond what the writer takes.

use std::io::{self, Write};

use posthaste_compression::Coding;
use posthaste_compression::Decoder;

use crate::cuts::Cut;
use crate::within;

/// As much is taken of anything.
const MOST: usize = 1 << 20;

/// Windows and tables; Brotli's may be 16 MiB, which a decoder asks for when the header says so.
const DECODER: usize = 40 << 20;

/// Keeps what is written, up to [`MOST`] bytes.
#[derive(Default)]
struct Limited(Vec<u8>);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The first byte of the stream says which coding, the rest is a body, cut anywhere.
pub fn decoding(input: &[u8]) {
    let Some(cut) = Cut::from_input(input) else {
        return;
    };
    let Some((first, body)) = cut.stream.split_first() else {
        return;
    };
    let coding = Coding::ALL[usize::from(*first) % Coding::ALL.len()];
    let whole = within("Decoder", body.len(), 64, DECODER, || {
        decoded(coding, &mut std::iter::once(body))
    });
    // The first piece has the byte that says which coding.
    let mut skipped = false;
    let mut pieces = cut.pieces().map(|piece| match piece {
        [_, rest @ ..] if !std::mem::replace(&mut skipped, true) => rest,
        piece => piece,
    });
    let pieces = decoded(coding, &mut pieces);
    assert_eq!(whole.is_ok(), pieces.is_ok(), "{coding:?}");
    if let (Ok(whole), Ok(pieces)) = (whole, pieces) {
        assert!(whole == pieces, "{coding:?}: cuts change what comes of it");
    }
}

fn decoded(coding: Coding, pieces: &mut dyn Iterator<Item = &[u8]>) -> io::Result<Vec<u8>> {
    let mut decoder = Decoder::new(coding, Limited::default())?;
    for piece in pieces {
        decoder.push(piece)?;
    }
    decoder.finish()?;
    Ok(std::mem::take(&mut decoder.writer().0))
}
