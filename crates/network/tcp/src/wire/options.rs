//! TCP options as bytes (RFC 9293, section 3.2; RFC 2018; RFC 7323).
//!
//! Reading follows Linux and the BSDs: unknown options are skipped by their length, and an impossible length ends the
//! reading and keeps the options before it. SYN options count in a SYN only, and options with the wrong length for
//! their kind are ignored. Options are written in words of four bytes, as in these stacks.

use etherparse::tcp_option::{
    KIND_END, KIND_MAXIMUM_SEGMENT_SIZE, KIND_NOOP, KIND_SELECTIVE_ACK,
    KIND_SELECTIVE_ACK_PERMITTED, KIND_TIMESTAMP, KIND_WINDOW_SCALE,
};
use etherparse::{TcpOptionElement, TcpOptions};

use crate::{Options, SackBlocks, Timestamps};

/// Largest shift of a window (RFC 7323, section 2.3).
const LARGEST_SCALE: u8 = 14;
/// Maximum number of elements: each option once, and padding.
const ELEMENTS: usize = 12;

/// Reads all options of a header, at most 40 bytes.
pub(super) fn read(mut bytes: &[u8], syn: bool) -> Options {
    let mut options = Options::default();
    while let [kind, rest @ ..] = bytes {
        match *kind {
            KIND_END => break,
            KIND_NOOP => bytes = rest,
            kind => {
                let length = rest.first().copied().unwrap_or_default();
                let Some((option, behind)) = bytes.split_at_checked(length.into()) else {
                    break;
                };
                let Some(data) = option.get(2..) else { break };
                note(&mut options, kind, data, syn);
                bytes = behind;
            }
        }
    }
    options
}

fn note(options: &mut Options, kind: u8, data: &[u8], syn: bool) {
    match (kind, data) {
        (KIND_MAXIMUM_SEGMENT_SIZE, &[high, low]) if syn => {
            options.mss = Some(u16::from_be_bytes([high, low])).filter(|mss| *mss > 0);
        }
        (KIND_WINDOW_SCALE, &[shift]) if syn => {
            options.window_scale = Some(shift.min(LARGEST_SCALE));
        }
        (KIND_SELECTIVE_ACK_PERMITTED, []) if syn => options.sack_permitted = true,
        (KIND_TIMESTAMP, data) => {
            if let Some([value, echo]) = pair(data) {
                options.timestamps = Some(Timestamps { value, echo });
            }
        }
        (KIND_SELECTIVE_ACK, data) if !syn => options.sack = blocks(data),
        _ => {}
    }
}

/// Reads SACK blocks. None if the length is not that of whole blocks.
fn blocks(data: &[u8]) -> SackBlocks {
    let mut blocks = SackBlocks::default();
    if data.len().is_multiple_of(8) {
        for [start, end] in data.chunks_exact(8).filter_map(pair) {
            // A header has no space for a fifth block.
            blocks.push(start, end);
        }
    }
    blocks
}

fn pair(data: &[u8]) -> Option<[u32; 2]> {
    let data: [u8; 8] = data.try_into().ok()?;
    let [a, b, c, d, e, f, g, h] = data;
    Some([
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([e, f, g, h]),
    ])
}

/// Options of a header. None if they take more than 40 bytes.
pub(super) fn write(options: &Options) -> Option<TcpOptions> {
    use TcpOptionElement::{
        MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted,
        Timestamp, WindowScale,
    };
    let mut elements = [const { Noop }; ELEMENTS];
    let mut count = 0;
    // Unused slots remain Noops.
    let mut put = |added: &[TcpOptionElement]| {
        for element in added {
            elements[count] = element.clone();
            count += 1;
        }
    };
    if let Some(mss) = options.mss {
        put(&[MaximumSegmentSize(mss)]);
    }
    if options.sack_permitted && options.timestamps.is_some() {
        put(&[SelectiveAcknowledgementPermitted]);
    } else if options.sack_permitted {
        put(&[Noop, Noop, SelectiveAcknowledgementPermitted]);
    }
    if let Some(Timestamps { value, echo }) = options.timestamps {
        if !options.sack_permitted {
            put(&[Noop, Noop]);
        }
        put(&[Timestamp(value, echo)]);
    }
    if let Some(shift) = options.window_scale {
        put(&[Noop, WindowScale(shift)]);
    }
    if let [first, rest @ ..] = options.sack.as_slice() {
        let block = |[start, end]: [u32; 2]| (start, end);
        let rest = [0, 1, 2].map(|index| rest.get(index).copied().map(block));
        put(&[Noop, Noop, SelectiveAcknowledgement(block(*first), rest)]);
    }
    TcpOptions::try_from_elements(&elements[..count]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks_of(count: u32) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for number in 0..count {
            assert!(blocks.push(10 * number, 10 * number + 5));
        }
        blocks
    }

    #[test]
    fn unknown_options_are_skipped() {
        let unknown = [30, 4, 9, 9];
        let fast_open = [34, 2];
        let mss = [2, 4, 5, 0xb4];
        let bytes = [&unknown[..], &[1], &fast_open, &mss, &[0], &[3, 3, 7]].concat();
        let options = read(&bytes, true);
        assert_eq!((options.mss, options.window_scale), (Some(1460), None));
    }

    #[test]
    fn an_impossible_length_ends_the_reading() {
        let scale = [3, 3, 15];
        for wrong in [&[2, 0][..], &[2, 1], &[30, 1], &[2, 9, 1], &[8], &[5, 200]] {
            let options = read(&[&scale[..], wrong, &[4, 2]].concat(), true);
            assert_eq!(options.window_scale, Some(14), "{wrong:?}");
            assert!(!options.sack_permitted, "{wrong:?}");
        }
    }

    #[test]
    fn a_wrong_length_for_its_kind_is_no_option() {
        let bytes = [
            2, 3, 9, 3, 2, 4, 3, 0, 8, 9, 1, 2, 3, 4, 5, 6, 7, 5, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9,
        ];
        assert_eq!(read(&bytes, true), Options::default());
        assert_eq!(read(&bytes, false), Options::default());
        assert_eq!(
            read(&[2, 4, 0, 0], true).mss,
            None,
            "no segment has no bytes"
        );
    }

    #[test]
    fn each_counts_where_it_belongs() {
        let bytes = [2, 4, 5, 0xb4, 3, 3, 7, 4, 2, 5, 10, 0, 0, 0, 1, 0, 0, 0, 9];
        let syn = read(&bytes, true);
        assert!(syn.sack_permitted && syn.sack.is_empty());
        let data = read(&bytes, false);
        assert_eq!(
            (data.mss, data.window_scale, data.sack_permitted),
            (None, None, false)
        );
        assert_eq!(data.sack.as_slice(), &[[1, 9]]);
    }

    #[test]
    fn a_header_has_room_for_40_bytes() {
        let timestamps = Some(Timestamps { value: 1, echo: 2 });
        let options = |timestamps, count| Options {
            timestamps,
            sack: blocks_of(count),
            ..Options::default()
        };
        let length = |options| write(&options).map(|written| written.len());
        assert_eq!(length(options(None, 4)), Some(36));
        assert_eq!(length(options(timestamps, 3)), Some(40));
        assert_eq!(length(options(timestamps, 4)), None);
    }

    #[test]
    fn a_syn_looks_like_that_of_linux() {
        let options = Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 1, echo: 0 }),
            sack: SackBlocks::default(),
            parity: None,
        };
        let written = write(&options).expect("20 bytes");
        assert_eq!(
            written.as_slice(),
            [
                2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7
            ]
        );
    }
}
