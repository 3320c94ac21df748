//! Properties of every pattern: its text reads back as the same pattern, and a cursor decides the same as a plain
//! search through the entries.

use posthaste_units::{BitRate, Span};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const EXAMPLE: &str = "\
posthaste pattern 1
# one of everything
up   flip 3: 17, 33          # bits 17 and 33 of the third packet
down drop 8
down drop 12-14, 20
down delay 5: 40ms
down delay from 10: 80ms
down delay from 15: default
down bandwidth from 200ms: 160kbit
down drop 1000ms-1200ms
down hold 4: 2
down copy 9: 1
down repeat 60s
end
";

const CANONICAL: &str = "\
posthaste pattern 1
up flip 3: 17, 33
down drop 8, 12-14, 20
down delay 5: 40ms
down delay from 10: 80ms
down delay from 15: default
down hold 4: 2
down copy 9: 1
down repeat 60000ms
down drop 1000ms-1200ms
down bandwidth from 200ms: 160kbit
end
";

fn step(pattern: &Pattern, direction: Direction, position: u64, elapsed: Span) -> PacketEffects {
    pattern.script(direction).cursor().step(position, elapsed)
}

#[test]
fn the_example_says_what_its_comments_say() {
    let pattern = Pattern::parse(EXAMPLE).unwrap();
    assert_eq!(pattern.to_string(), CANONICAL);
    let at = |position, ms| step(&pattern, Direction::Down, position, Span::from_millis(ms));
    let dropped = |position| at(position, 0).drop;
    let drops: Vec<u64> = (1..30).filter(|position| dropped(*position)).collect();
    assert_eq!(drops, [8, 12, 13, 14, 20]);
    assert!(!at(1, 999).drop && at(1, 1000).drop && at(1, 1199).drop && !at(1, 1200).drop);
    assert!(at(1, 61_000).drop, "the second minute is like the first");
    assert_eq!(at(5, 0).extra_delay, Span::from_millis(40));
    assert_eq!(at(4, 0).hold, 2);
    assert_eq!(at(9, 0).copies, 1);
    assert_eq!(at(9, 0).delay, None);
    assert_eq!(at(10, 0).delay, Some(Span::from_millis(80)));
    assert_eq!(at(15, 0).delay, None, "the link's own again");
    assert_eq!(at(1, 199).bandwidth, None);
    assert_eq!(at(1, 200).bandwidth, BitRate::per_second(160_000));
    let again = at(1, 60_000).bandwidth;
    assert_eq!(again, BitRate::per_second(160_000), "what was in force");
    let flips = step(&pattern, Direction::Up, 3, Span::ZERO).flips;
    assert_eq!(flips, [17, 33]);
}

/// The example of the reference is a valid pattern.
#[test]
fn the_example_of_the_reference_is_read() {
    let reference = include_str!("../../../../../docs/reference/patterns.md");
    let example = reference.split("```text\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let pattern = Pattern::parse(example).unwrap();
    assert_eq!(pattern.entries().count(), 11);
}

#[test]
fn a_billion_packets_in_a_range_are_one_entry() {
    let text = "posthaste pattern 1\ndown drop 2-1000000001\nend\n";
    let pattern = Pattern::parse(text).unwrap();
    assert_eq!(pattern.entries().count(), 1);
    let mut cursor = pattern.script(Direction::Down).cursor();
    let mut drop = |position| cursor.step(position, Span::ZERO).drop;
    assert!(!drop(1) && drop(2) && drop(1_000_000_001) && !drop(1_000_000_002) && drop(2));
}

/// An endless source: lists of single packets, two apart, so that none can be joined.
struct Endless {
    line: Vec<u8>,
    at: usize,
    next: u64,
    given: usize,
}

impl std::io::Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.line.len() {
            let first = self.next;
            let list: Vec<String> = (0..1000).map(|i| (first + 2 * i).to_string()).collect();
            self.next += 2000;
            self.line = format!("down drop {}\n", list.join(",")).into_bytes();
            self.at = 0;
        }
        let length = out.len().min(self.line.len() - self.at);
        out[..length].copy_from_slice(&self.line[self.at..self.at + length]);
        self.at += length;
        self.given += length;
        Ok(length)
    }
}

#[test]
fn endless_entries_are_refused_at_the_limit() {
    let mut source = Endless {
        line: b"posthaste pattern 1\n".to_vec(),
        at: 0,
        next: 1,
        given: 0,
    };
    let error = Pattern::read(std::io::BufReader::new(&mut source)).unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("line 1002, column 11: more than 1000000 entries: join neighbours"),
        "{error}"
    );
    assert!(
        source.given < 10_000_000,
        "{} bytes were read",
        source.given
    );
}

#[test]
fn an_endless_line_is_refused_at_its_limit() {
    let source = std::io::BufReader::new(std::io::repeat(b' '));
    let error = Pattern::read(source).unwrap_err().to_string();
    assert!(error.contains("longer than 65536 bytes"), "{error}");
}

/// A line of a pattern, and a part of its error message.
const REFUSED: &[(&str, &str)] = &[
    (
        "donw drop 8",
        "2, column 1: \"donw\" is no direction: write up (from",
    ),
    ("drop 8", "column 1: \"drop\" is no direction"),
    (
        "down",
        "column 5: the line ends where it should say what happens: write drop",
    ),
    ("down lose 8", "column 6: \"lose\" is nothing that happens"),
    (
        "down drop",
        "column 10: a packet or a time should stand here",
    ),
    (
        "down drop 0",
        "column 11: there is no packet 0: the first packet is 1",
    ),
    ("down drop 3, 0-2", "column 14: there is no packet 0"),
    (
        "down drop 12-",
        "column 14: a packet or a time should stand here",
    ),
    ("down drop 14-12", "column 11: the range runs backwards"),
    ("down drop 8,", "column 13: a packet or a time"),
    ("down drop eight", "column 11: \"eight\" is not a time"),
    ("down drop 8 9", "column 13: \"9\" was not expected here"),
    ("down drop 8: 2", "column 12: \":\" was not expected"),
    (
        "down drop 5kbit",
        "\"5kbit\" is not a time such as 40ms, 250us or 1.5s: write packets without unit",
    ),
    ("down drop 2.5ms", "no whole number of milliseconds"),
    ("down drop 2.5", "\"2.5\" has more decimals"),
    (
        "down drop 10-20ms",
        "from a packet to a time: give both ends a unit",
    ),
    ("down drop 20ms-20ms", "runs backwards or is empty"),
    ("down drop 99999999999999999999", "is too large"),
    ("down drop 10000000000001", "out of reach: the last packet"),
    (
        "down drop 3-5, 5",
        "column 16: it overlaps packets 3-5, dropped already: take it out",
    ),
    (
        "down drop 3 # 4\ndown drop 3",
        "line 3, column 11: it overlaps packet 3, dropped already",
    ),
    (
        "down drop 3\ndown delay 2-9: 4ms",
        "line 3, column 12: it overlaps packet 3, dropped already",
    ),
    (
        "down copy 3: 1\ndown drop 3",
        "overlaps packet 3, copied already",
    ),
    (
        "down delay 5",
        "column 13: a delay should follow: write a colon",
    ),
    (
        "down delay 5:",
        "column 14: the line ends where a value should stand",
    ),
    (
        "down delay 5: 40",
        "column 15: \"40\" has no unit: write a time such as 40ms",
    ),
    (
        "down delay 5: 40kbit",
        "column 15: \"40kbit\" is not a time",
    ),
    ("down delay 5: 2h", "more than an hour"),
    (
        "down delay from 5: 40ms\ndown delay from 5: 4ms",
        "line 3, column 17: it changes here already",
    ),
    (
        "down delay from 5: 1ms\ndown delay from 5ms: 4ms",
        "both by packet and by time",
    ),
    (
        "down delay from 5-9: 1ms",
        "column 18: a value should follow",
    ),
    (
        "down bandwidth 5: 1kbit",
        "column 16: a bandwidth holds from a packet or a time on",
    ),
    (
        "down bandwidth from 5: 10ms",
        "\"10ms\" is not a bandwidth such as",
    ),
    (
        "down bandwidth from 5: 0kbit",
        "is no bandwidth: drop the packets",
    ),
    (
        "down loss 5: 2%",
        "column 11: a probability of loss holds from a packet or a time on",
    ),
    (
        "down loss from 5: 101%",
        "is more than all packets: write at most 100%",
    ),
    (
        "down loss from 5: 2",
        "has no unit: write a share such as 2%",
    ),
    (
        "down loss from 5: 1%\ndown loss from 5ms: 1%",
        "both by packet and by time",
    ),
    (
        "down opportunities 5: 1",
        "delivery opportunities come at times: write milliseconds",
    ),
    ("down opportunities 5ms: 0", "write 1 to 1000000"),
    (
        "down opportunities 5ms-9ms: 1\ndown opportunities 8ms: 2",
        "overlaps 5ms-9ms, with opportunities already",
    ),
    (
        "down opportunities 5ms: 1\ndown bandwidth from 8: 1kbit",
        "both a bandwidth and delivery opportunities",
    ),
    (
        "down bandwidth from 8ms: 1kbit\ndown opportunities 5ms: 1",
        "both a bandwidth and delivery opportunities",
    ),
    ("down hold 4: 0", "1 to 65535"),
    ("down hold 4: 2ms", "\"2ms\" is not a whole number"),
    ("down copy 4: 256", "1 to 255"),
    ("down flip 3", "the bits that flip should follow"),
    ("down flip 3: 17, 17", "column 14: a bit is named twice"),
    ("down flip 3: 524280", "from 0 to 524279"),
    (
        "down repeat 100\ndown drop 90-101",
        "packets 90-101 cannot be reached",
    ),
    (
        "down drop 101\ndown repeat 100",
        "line 3, column 13: packet 101 cannot be reached",
    ),
    ("down repeat 0", "no packet 0"),
    ("down repeat 0ms", "nothing can repeat after no time"),
    (
        "down repeat 5\ndown repeat 6",
        "the repetition is stated already",
    ),
    ("end\ndown drop 3", "line 3, column 1: text after `end`"),
];

#[test]
fn errors_name_the_place_and_the_remedy() {
    for (lines, expected) in REFUSED {
        let text = format!("posthaste pattern 1\n{lines}\nend\n");
        let message = Pattern::parse(&text).unwrap_err().to_string();
        assert!(message.contains(expected), "{lines:?}: {message}");
    }
    for (text, expected) in [
        ("", "line 1, column 1: this is no pattern: begin it with"),
        ("down drop 8\nend\n", "line 1, column 1: this is no pattern"),
        ("posthaste pattern\nend", "column 18: the version is absent"),
        (
            "posthaste pattern 2\nend",
            "column 19: the version \"2\" is not known",
        ),
        (
            "posthaste pattern 1 2\nend",
            "column 21: \"2\" was not expected",
        ),
        (
            "posthaste pattern 1\ndown drop 8\n",
            "line 3, column 1: the pattern is cut off",
        ),
        (
            "posthaste pattern 1\ndown drop 8\ne",
            "line 3, column 1: \"e\" is no direction",
        ),
    ] {
        let message = Pattern::parse(text).unwrap_err().to_string();
        assert!(message.contains(expected), "{text:?}: {message}");
    }
    let bytes = b"posthaste pattern 1\n\xc3\xa4 \xff\nend";
    let message = Pattern::read(&bytes[..]).unwrap_err().to_string();
    assert!(
        message.starts_with("line 2, column 3: this is not text"),
        "{message}"
    );
}

/// Editors of other systems begin a file with a byte-order mark and end lines with CR and LF.
#[test]
fn a_file_of_another_system_is_the_same_pattern() {
    let other = format!("\u{feff}{}", CANONICAL.replace('\n', "\r\n"));
    assert_eq!(Pattern::parse(&other), Pattern::parse(CANONICAL));
}

/// A truncation at any byte is noticed.
#[test]
fn no_half_of_a_pattern_is_a_pattern() {
    let whole = Pattern::parse(CANONICAL).unwrap();
    for length in 0..CANONICAL.len() - 1 {
        assert!(Pattern::parse(&CANONICAL[..length]).is_err(), "{length}");
    }
    assert_eq!(Pattern::parse(CANONICAL.trim_end()), Ok(whole));
}

fn places() -> impl Strategy<Value = PatternRange> {
    let packets =
        (1u64..60, 0u64..6).prop_map(|(first, more)| PatternRange::packets(first, first + more));
    let millis =
        (0u64..60, 0u64..6).prop_map(|(first, more)| PatternRange::millis(first, first + more));
    prop_oneof![packets, millis]
}

fn effects() -> impl Strategy<Value = Effect> {
    let span = || (0u64..4_000_000_000).prop_map(Span::from_nanos);
    let bits = vec((0u32..50, 0u32..4), 1..4)
        .prop_map(|ranges| {
            ranges
                .into_iter()
                .map(|(first, more)| (first, first + more))
        })
        .prop_filter_map("bits overlap", Bits::new);
    prop_oneof![
        4 => Just(Effect::Drop),
        2 => bits.prop_map(Effect::Flip),
        2 => span().prop_map(Effect::Delay),
        1 => (1u32..=65_535).prop_map(Effect::Hold),
        1 => (1u32..=255).prop_map(Effect::Copy),
        2 => proptest::option::of(span()).prop_map(Effect::DelayFrom),
        2 => proptest::option::of((1u64..u64::MAX).prop_map(|bits| BitRate::per_second(bits).unwrap()))
            .prop_map(Effect::BandwidthFrom),
        2 => proptest::option::of((0u32..=1_000_000_000).prop_map(|part| LossShare::from_billionths(part).unwrap()))
            .prop_map(Effect::LossFrom),
        1 => (1u32..=1_000_000).prop_map(Effect::Opportunities),
        1 => Just(Effect::Repeat),
    ]
}

prop_compose! {
    fn entries()(up: bool, range in places(), effect in effects()) -> PatternEntry {
        let direction = if up { Direction::Up } else { Direction::Down };
        // A period that most places do not exceed.
        let first = range.first + if effect == Effect::Repeat { 40 } else { 0 };
        let last = match effect {
            Effect::Repeat
            | Effect::DelayFrom(_)
            | Effect::BandwidthFrom(_)
            | Effect::LossFrom(_) => first,
            _ => range.last,
        };
        PatternEntry { direction, range: PatternRange { first, last, ..range }, effect }
    }
}

/// The entries that are compatible, and their pattern.
fn drafted(entries: Vec<PatternEntry>) -> (Vec<PatternEntry>, Pattern) {
    let mut draft = Draft::default();
    let added = entries
        .into_iter()
        .filter(|entry| draft.add(entry.clone()).is_ok())
        .collect();
    (added, draft.finish())
}

/// Decision of a plain search through all entries.
fn naive(entries: &[PatternEntry], position: u64, millis: u64) -> PacketEffects {
    let mut step = PacketEffects::default();
    let (mut delay, mut bandwidth, mut loss) = (None, None, None);
    for axis in [Axis::Millis, Axis::Packets] {
        let of_axis = || entries.iter().filter(|entry| entry.range.axis == axis);
        let number = [position, millis][usize::from(axis == Axis::Millis)];
        let offset = number - axis.base();
        let period = of_axis().find(|entry| entry.effect == Effect::Repeat);
        let period = period.map_or(u64::MAX, |entry| entry.range.first);
        let at = offset % period + axis.base();
        for entry in of_axis() {
            if !(entry.range.first..=entry.range.last).contains(&at) {
                continue;
            }
            match &entry.effect {
                Effect::Drop => step.drop = true,
                Effect::Flip(bits) => step.flips = bits.iter().collect(),
                Effect::Delay(delay) => step.extra_delay = *delay,
                Effect::Hold(later) => step.hold = *later,
                Effect::Copy(copies) => step.copies = *copies,
                _ => {}
            }
        }
        // The latest change in the order of the traffic: of this period, or of the last.
        let age = |from: u64| {
            if at >= from {
                Some(at - from)
            } else {
                (offset >= period).then(|| at + period - from)
            }
        };
        let latest = of_axis()
            .filter_map(|entry| Some((age(entry.range.first)?, &entry.effect)))
            .collect::<Vec<_>>();
        let delays = latest.iter().filter_map(|(age, effect)| match effect {
            Effect::DelayFrom(value) => Some((*age, *value)),
            _ => None,
        });
        delay = delays.min_by_key(|(age, _)| *age).map_or(delay, |(_, v)| v);
        let bandwidths = latest.iter().filter_map(|(age, effect)| match effect {
            Effect::BandwidthFrom(value) => Some((*age, *value)),
            _ => None,
        });
        bandwidth = bandwidths
            .min_by_key(|(age, _)| *age)
            .map_or(bandwidth, |(_, v)| v);
        let losses = latest.iter().filter_map(|(age, effect)| match effect {
            Effect::LossFrom(value) => Some((*age, *value)),
            _ => None,
        });
        loss = losses.min_by_key(|(age, _)| *age).map_or(loss, |(_, v)| v);
    }
    if step.drop {
        step = PacketEffects {
            drop: true,
            ..PacketEffects::default()
        };
    }
    PacketEffects {
        delay,
        bandwidth,
        loss,
        ..step
    }
}

proptest! {
    #[test]
    fn patterns_are_read_back_as_written(all in vec(entries(), 0..40)) {
        let (_, pattern) = drafted(all);
        let text = pattern.to_string();
        prop_assert_eq!(Pattern::parse(&text), Ok(pattern.clone()), "{}", text);
        let (_, again) = drafted(pattern.entries().collect());
        prop_assert_eq!(again, pattern);
    }

    #[test]
    fn a_cursor_decides_as_a_plain_search_does(
        all in vec(entries(), 0..40),
        steps in vec((1u64..150, 0u64..150), 1..80),
        in_order: bool,
    ) {
        let (added, pattern) = drafted(all);
        let mut steps = steps;
        if in_order {
            steps.sort_unstable();
        }
        for direction in [Direction::Up, Direction::Down] {
            let of_direction: Vec<PatternEntry> = added
                .iter()
                .filter(|entry| entry.direction == direction)
                .cloned()
                .collect();
            let mut cursor = pattern.script(direction).cursor();
            for &(position, millis) in &steps {
                let elapsed = Span::from_nanos(millis * 1_000_000 + millis * 7919 % 1_000_000);
                let decided = cursor.step(position, elapsed);
                prop_assert_eq!(decided, naive(&of_direction, position, millis), "{}", pattern);
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(posthaste pattern 1\n)?[a-z0-9 ,:\\-#\n.µ]{0,80}(end)?") {
        if let Ok(pattern) = Pattern::parse(&text) {
            prop_assert_eq!(Pattern::parse(&pattern.to_string()), Ok(pattern));
        }
    }
}
