//! One download in every form of file and link.

use std::io::{Read, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use posthaste_units::{Instant, Span};

use super::writer::{
    ETHERNET, FileForm, PacketBlock, Timed, download, ether_type, ethernet, framed,
};
use super::*;

/// Asserts that the capture shows the loss of the eighth packet from the server and nothing else.
fn assert_eighth_is_lost(name: &str, file: &[u8]) -> Remarks {
    let (down, up, remarks) = findings(file, Direction::Down);
    assert_eq!((down.lost, down.packets), (vec![8], 15), "{name}");
    assert!(down.overtaken.is_empty() && down.jumps == 0, "{name}");
    assert_eq!((up.lost, up.packets), (vec![], 14), "{name}");
    remarks
}

fn plain(frame: &[u8]) -> Vec<u8> {
    ethernet(&ether_type(frame), frame)
}

fn on_interface_0(frames: &[Timed]) -> Vec<(u32, Timed)> {
    frames.iter().map(|frame| (0, frame.clone())).collect()
}

/// Number of the protocol at the end of a header.
#[derive(Clone, Copy)]
enum ProtocolNumber {
    Absent,
    EtherType,
    /// Of one byte. A second one before it is zero.
    Ppp,
}

/// Name, link type, header up to the number of the protocol (in Ethernet, behind the addresses), and that number.
const LINKS: [(&str, u32, &[u8], ProtocolNumber); 21] = {
    use ProtocolNumber::{Absent, EtherType, Ppp};
    [
        ("Ethernet", 1, &[], EtherType),
        ("FCS in the link type", 1 | 0x2400_0000, &[], EtherType),
        ("VLAN", 1, &[0x81, 0, 0, 100], EtherType),
        ("QinQ", 1, &[0x88, 0xa8, 0, 10, 0x81, 0, 0, 100], EtherType),
        ("SNAP", 1, &[0, 200, 0xaa, 0xaa, 3, 0, 0, 0], EtherType),
        (
            "MPLS",
            1,
            &[0x88, 0x47, 0, 6, 0x40, 64, 0, 6, 0x41, 64],
            Absent,
        ),
        ("PPPoE", 1, &[0x88, 0x64, 0x11, 0, 0, 1, 0, 0, 0], Ppp),
        ("raw", 101, &[], Absent),
        ("raw of BSD", 12, &[], Absent),
        ("raw of OpenBSD", 14, &[], Absent),
        ("IPv4 and others", 228, &[], Absent),
        ("null", 0, &[2, 0, 0, 0], Absent),
        ("loop", 108, &[0, 0, 0, 2], Absent),
        ("enc", 109, &[0; 12], Absent),
        ("PPP", 9, &[0xff, 3, 0], Ppp),
        ("PPP with a short protocol", 50, &[], Ppp),
        ("PPP in PPPoE", 51, &[0x11, 0, 0, 1, 0, 0, 0], Ppp),
        ("pppd", 166, &[1, 3, 0], Ppp),
        ("PPP with direction", 204, &[0, 0xff, 3, 0], Ppp),
        ("Cisco HDLC", 104, &[0x0f, 0], EtherType),
        (
            "SLL",
            113,
            &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0],
            EtherType,
        ),
    ]
};

#[test]
fn the_download_is_read_from_every_link() {
    for (name, link, header, number) in LINKS {
        let frame = |packet: &[u8]| {
            let number = match (number, packet[0] >> 4) {
                (ProtocolNumber::Absent, _) => vec![],
                (ProtocolNumber::EtherType, _) => ether_type(packet).to_vec(),
                (ProtocolNumber::Ppp, 6) => vec![0x57],
                (ProtocolNumber::Ppp, _) => vec![0x21],
            };
            let header = [header, &number].concat();
            match link & 0xffff {
                1 => [ethernet(&header, packet), vec![1; 4]].concat(),
                _ => [&*header, packet].concat(),
            }
        };
        for is_v6 in [false, true] {
            let form = FileForm { link, ..ETHERNET };
            let remarks = assert_eighth_is_lost(name, &form.pcap(&framed(&download(is_v6), frame)));
            let expected = Remarks {
                packets: 28,
                ..Remarks::default()
            };
            assert_eq!(remarks, expected, "{name}");
        }
    }
}

#[test]
fn the_download_is_read_from_every_kind_of_block() {
    let frames = framed(&download(false), plain);
    for big_endian in [false, true] {
        for nanoseconds in [false, true] {
            let form = FileForm {
                big_endian,
                nanoseconds,
                ..ETHERNET
            };
            assert_eighth_is_lost("pcap", &form.pcap(&frames));
        }
        for offset in [0, 1_600_000_000] {
            for block in [PacketBlock::Enhanced, PacketBlock::Obsolete] {
                let form = FileForm {
                    big_endian,
                    offset,
                    block,
                    ..ETHERNET
                };
                let file = form.pcapng(1, &on_interface_0(&frames));
                assert_eighth_is_lost("pcapng", &file);
                let mut first = None;
                read(&*file, &mut Connections::default(), |packet| {
                    first.get_or_insert(packet.seen.at);
                })
                .unwrap();
                assert_eq!(first, Some(Some(Instant::from_nanos(frames[0].0))));
            }
        }
        let form = FileForm {
            big_endian,
            block: PacketBlock::Simple,
            ..ETHERNET
        };
        let remarks = assert_eighth_is_lost("no times", &form.pcapng(1, &on_interface_0(&frames)));
        assert_eq!(remarks.untimed, 28);
    }
}

/// Sequence numbers come from the header, lengths from that of the IP packet.
#[test]
fn a_cut_frame_has_its_numbers_or_is_counted() {
    let frames = framed(&download(false), plain);
    for (snap, short) in [(54, 28), (64, 28), (94, 0), (130, 0)] {
        let form = FileForm { snap, ..ETHERNET };
        let remarks = assert_eighth_is_lost("cut", &form.pcap(&frames));
        assert_eq!(
            (remarks.short > 0, remarks.numberless),
            (short > 0, 0),
            "{snap}"
        );
    }
    let form = FileForm {
        snap: 40,
        ..ETHERNET
    };
    let (down, _, remarks) = findings(&form.pcap(&frames), Direction::Down);
    assert_eq!((down.lost, down.packets), (vec![], 14));
    assert_eq!((remarks.packets, remarks.numberless), (28, 28));
    let form = FileForm {
        snap: 20,
        ..ETHERNET
    };
    let (.., remarks) = findings(&form.pcap(&frames), Direction::Down);
    assert_eq!((remarks.packets, remarks.headless), (0, 28));
}

fn packed(file: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(file).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_compressed_capture_is_read_as_far_as_it_goes() {
    let file = packed(&ETHERNET.pcap(&framed(&download(false), plain)));
    assert!(!assert_eighth_is_lost("gzip", &file).cut_off);
    // Two files one after the other are one.
    let (one, two) = (ETHERNET.pcap(&framed(&download(false), plain)), packed(&[]));
    assert_eighth_is_lost("gzip", &[packed(&one), two].concat());
    let (.., remarks) = findings(&file[..file.len() - 100], Direction::Down);
    assert!(remarks.cut_off && remarks.packets < 28);
    let mut damaged = file;
    damaged[40..60].fill(0xff);
    let refused = read(&*damaged, &mut Connections::default(), |_| {});
    assert_eq!(refused, Err(CaptureError::Damaged));
}

#[test]
fn other_files_are_refused_by_name() {
    let refusal = |file: &[u8]| read(file, &mut Connections::default(), |_| {}).unwrap_err();
    assert_eq!(refusal(b""), CaptureError::Empty);
    assert_eq!(refusal(&packed(b"")), CaptureError::Empty);
    assert_eq!(refusal(&b"hello\n".repeat(9)), CaptureError::NotACapture);
    let file = ETHERNET.pcap(&[]);
    assert_eq!(refusal(&file[..20]), CaptureError::Header);
    assert_eq!(
        refusal(&[0x28, 0xb5, 0x2f, 0xfd, 0]),
        CaptureError::Compressed("unzstd")
    );
    let wireless = FileForm {
        link: 105,
        ..ETHERNET
    };
    assert_eq!(
        refusal(&wireless.pcap(&download(false))),
        CaptureError::Link(105)
    );
    let (.., remarks) = findings(&file, Direction::Down);
    assert_eq!(remarks, Remarks::default());
}

/// Nothing is left out without a count.
#[test]
fn frames_that_are_not_read_are_counted() {
    let mut frames = framed(&download(false), plain);
    frames.push((frames[0].0, ethernet(&[8, 6], &[0; 28])));
    let (.., remarks) = findings(&ETHERNET.pcap(&frames), Direction::Down);
    assert_eq!((remarks.packets, remarks.other), (28, 1));
    let mut frames = on_interface_0(&frames);
    frames[3].0 = 7;
    let (.., remarks) = findings(&ETHERNET.pcapng(1, &frames), Direction::Down);
    assert_eq!((remarks.packets, remarks.unknown_interface), (27, 1));
}

/// Delivers a few bytes at a time, as a pipe does.
struct TricklingReader<'a>(&'a [u8]);

impl Read for TricklingReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = into.len().min(100).min(self.0.len());
        let (now, later) = self.0.split_at(length);
        into[..length].copy_from_slice(now);
        self.0 = later;
        Ok(length)
    }
}

#[test]
fn a_capture_from_a_pipe_is_read_to_its_end() {
    let packets: Vec<Timed> = (0..500)
        .map(|second| {
            let (from, to) = (writer::client(false).0, writer::server(false).0);
            (
                second * 1_000_000_000,
                writer::ip(from, to, 253, 0, &[0; 980]),
            )
        })
        .collect();
    let file = FileForm {
        link: 101,
        ..ETHERNET
    }
    .pcap(&packets);
    for (length, expected) in [(file.len(), (500, false)), (file.len() - 7, (499, true))] {
        let mut times = Vec::new();
        let mut connections = Connections::default();
        let source = TricklingReader(&file[..length]);
        let remarks = read(source, &mut connections, |packet| {
            times.push(packet.seen.at)
        })
        .unwrap();
        assert_eq!((times.len(), remarks.cut_off), expected);
        assert_eq!(times[3], Some(Instant::ORIGIN + Span::from_secs(3)));
    }
}
