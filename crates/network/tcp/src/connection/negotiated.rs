//! Sequence numbers and options of both ends, as their SYNs stated them, and the timestamps exchanged since.

use posthaste_units::{Instant, Span};

use crate::send::Agreed;
use crate::{Offset, Profile, Segment, Timestamps};

/// Largest payload if a SYN has no MSS option (RFC 9293, section 3.7.1).
const UNSAID_MSS: u16 = 536;
/// Lower bound of the peer's MSS: Linux's `TCP_MIN_MSS`.
const SMALLEST_MSS: u16 = 88;
/// Bytes of the timestamps option, padded.
const TIMESTAMPS: u32 = 12;
/// Bytes of the parity option. Segments are shorter by this length, so that their parity fits in a packet.
const PARITY: u32 = 8;
/// Timestamps older than this prove nothing (RFC 7323, section 5.5).
const STALE: Span = Span::from_secs(24 * 24 * 3600);
/// SACK blocks in 40 bytes of options, next to timestamps.
const BLOCKS_WITH_TIMESTAMPS: usize = 3;
/// SACK blocks in 40 bytes of options without timestamps.
const BLOCKS_ALONE: usize = 4;

#[derive(Clone, Debug)]
pub(crate) struct Negotiated {
    pub(crate) isn: u32,
    pub(crate) peer_isn: Option<u32>,
    /// Shift of the windows that the peer advertises.
    peer_scale: u8,
    /// Both ends scale their windows.
    pub(super) scaled: bool,
    pub(super) agreed: Agreed,
    pub(super) timestamps: bool,
    /// The timestamp to echo, and its time of arrival (`ts_recent`).
    recent: Option<(u32, Instant)>,
    /// Tick of this end's timestamp clock.
    tick: Span,
}

impl Negotiated {
    pub(super) fn new(profile: &Profile, isn: u32) -> Self {
        Self {
            isn,
            peer_isn: None,
            peer_scale: 0,
            scaled: false,
            agreed: Agreed::default(),
            timestamps: false,
            recent: None,
            tick: profile.offer.timestamp_tick,
        }
    }

    /// Negotiates the options from the peer's SYN. Returns the shift of this end's windows.
    pub(super) fn learn(&mut self, now: Instant, syn: &Segment, profile: &Profile) -> u8 {
        let offer = profile.offer;
        self.peer_isn = Some(syn.seq);
        self.timestamps = offer.timestamps && syn.options.timestamps.is_some();
        self.recent = syn
            .options
            .timestamps
            .filter(|_| self.timestamps)
            .map(|stamps| (stamps.value, now));
        let scales = offer.window_scale.zip(syn.options.window_scale);
        self.scaled = scales.is_some();
        let (ours, theirs) = scales.unwrap_or((0, 0));
        self.peer_scale = theirs.min(14);
        let mss = syn.options.mss.unwrap_or(UNSAID_MSS).max(SMALLEST_MSS);
        let parity = profile.recovery.tail_parity > 0 && syn.options.parity.is_some();
        let parity_len = if parity { PARITY } else { 0 };
        self.agreed = Agreed {
            mss: u32::from(mss.min(offer.mss)) - self.timestamps_len() - parity_len,
            sack: offer.sack && syn.options.sack_permitted,
            parity,
        };
        ours
    }

    /// Bytes of the timestamps in each segment.
    pub(super) const fn timestamps_len(&self) -> u32 {
        if self.timestamps { TIMESTAMPS } else { 0 }
    }

    /// Largest number of SACK blocks in a segment without data.
    pub(super) const fn most_blocks(&self) -> usize {
        if self.timestamps {
            BLOCKS_WITH_TIMESTAMPS
        } else {
            BLOCKS_ALONE
        }
    }

    /// Window of a segment in bytes. That of a SYN is not scaled.
    pub(super) fn window(&self, segment: &Segment) -> u64 {
        let scale = if segment.syn { 0 } else { self.peer_scale };
        u64::from(segment.window) << scale
    }

    /// PAWS (RFC 7323, section 5.3).
    pub(super) fn is_old(&self, now: Instant, segment: &Segment) -> bool {
        let (Some(stamps), Some((recent, since))) = (segment.options.timestamps, self.recent)
        else {
            return false;
        };
        let older = (stamps.value.wrapping_sub(recent) as i32) < 0;
        self.timestamps && older && !segment.rst && now.saturating_since(since) < STALE
    }

    /// Stores the timestamp of the segment that the last acknowledgement, up to `acknowledged`, asked for (RFC 7323,
    /// section 4.3).
    pub(super) fn remember_timestamp(
        &mut self,
        now: Instant,
        segment: &Segment,
        start: Offset,
        acknowledged: Offset,
    ) {
        if let Some(stamps) = segment.options.timestamps
            && self.timestamps
            && start <= acknowledged
        {
            self.recent = Some((stamps.value, now));
        }
    }

    /// Returns this end's timestamp that the segment echoes, and its age.
    pub(super) fn echo_of(&self, now: Instant, segment: &Segment) -> Option<(u32, Span)> {
        let stamps = segment.options.timestamps.filter(|_| self.timestamps)?;
        let ago = self.stamp(now).wrapping_sub(stamps.echo);
        let sane = stamps.echo != 0 && (ago as i32) >= 0;
        sane.then(|| (stamps.echo, self.tick * u64::from(ago)))
    }

    /// This end's timestamp clock. Never 0, because 0 means that there is no timestamp.
    fn stamp(&self, now: Instant) -> u32 {
        crate::clock::stamp(now, self.tick)
    }

    pub(super) fn timestamps_option(&self, now: Instant) -> Timestamps {
        Timestamps {
            value: self.stamp(now),
            echo: self.recent.map_or(0, |recent| recent.0),
        }
    }
}
