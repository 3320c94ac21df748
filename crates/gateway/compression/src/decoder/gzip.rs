//! Decoder for gzip with several members (RFC 1952, section 2.2), with bounded work per byte.

use std::io::{self, Write};

use flate2::write::GzDecoder;

/// Number of members accepted at any length. Each needs a new decoder, some 40 µs, however short it is.
const MEMBERS: u64 = 64;

/// Bytes of input that permit one more member. Writers of many members use longer ones: bgzip's have up to 64 KiB.
const BYTES_PER_MEMBER: u64 = 1024;

/// A decoder for gzip with several members.
pub(crate) struct Members<W: Write> {
    member: GzDecoder<Lent<W>>,
    /// Members started.
    count: u64,
    /// Bytes consumed.
    taken: u64,
}

/// The caller's writer. Each member passes it to the next.
struct Lent<W>(Option<W>);

impl<W> Lent<W> {
    fn writer(&mut self) -> &mut W {
        self.0.as_mut().expect("lent to the member that is decoded")
    }
}

impl<W: Write> Write for Lent<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

impl<W: Write> Members<W> {
    pub(crate) fn new(into: W) -> Self {
        Self {
            member: GzDecoder::new(Lent(Some(into))),
            count: 1,
            taken: 0,
        }
    }

    pub(crate) fn push(&mut self, mut piece: &[u8]) -> io::Result<()> {
        while !piece.is_empty() {
            match self.member.write(piece)? {
                0 => self.next_member()?,
                taken => {
                    self.taken += taken as u64;
                    piece = &piece[taken..];
                }
            }
        }
        Ok(())
    }

    /// Starts another member, because bytes follow the end of the last one.
    fn next_member(&mut self) -> io::Result<()> {
        self.member.try_finish()?;
        self.count += 1;
        if self.count > MEMBERS + self.taken / BYTES_PER_MEMBER {
            let message = format!(
                "more than {MEMBERS} members of gzip that are shorter than {BYTES_PER_MEMBER} bytes on average"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let into = self.member.get_mut().0.take();
        self.member = GzDecoder::new(Lent(into));
        Ok(())
    }

    /// Writes the output of the bytes so far.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.member.flush()
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.member.try_finish()
    }

    pub(crate) fn writer(&mut self) -> &mut W {
        self.member.get_mut().writer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn decoded(coded: &[u8]) -> io::Result<Vec<u8>> {
        let mut members = Members::new(Vec::new());
        members.push(coded)?;
        members.finish()?;
        Ok(std::mem::take(members.writer()))
    }

    #[test]
    fn members_follow_one_another_and_the_last_is_whole() {
        let both = [member(b"one "), member(b""), member(b"two")].concat();
        assert_eq!(decoded(&both).unwrap(), b"one two");
        for cut in [1, 20, both.len() - 1] {
            assert!(decoded(&both[..cut]).is_err(), "{cut}");
        }
        assert!(decoded(&[&both[..], b"surplus"].concat()).is_err());
    }

    /// bgzip writes such members: any number of them, each of some size.
    #[test]
    fn many_members_are_decoded_and_many_short_ones_are_refused() {
        // Hardly compressible, so that the members have similar lengths.
        let mut state = 1_u32;
        let noise: Vec<u8> = (0..4 * BYTES_PER_MEMBER)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        assert_eq!(
            decoded(&member(&noise).repeat(500)).unwrap().len(),
            500 * noise.len()
        );
        let error = decoded(&member(b"").repeat(20_000)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("members"), "{error}");
        assert!(decoded(&member(b"").repeat(60)).is_ok());
    }
}
