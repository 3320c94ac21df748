//! Reads network priorities, server metrics and the selected offer from a streamed `WSQoSSoapHeader`.
//!
//! Three elements are read, the first of each:
//!
//! - the priorities in `WSQoSSoapHeader/qosInfo/transportQoSPriorities`
//! - the required `processingTime` and `reliability` in `WSQoSSoapHeader/qosInfo/serverQoSMetrics`
//! - the offer's name in `WSQoSSoapHeader/selectedOffer`, as text or in the attribute `name`; the first valid one
//!   counts
//!
//! The block itself must be in one of the namespaces of WS-QoS, its descendants in one of them or in none. The first
//! value of a priority or metric counts. A priority that is not a whole number from 0 to 10, and a metric out of its range,
//! states nothing and is reported.

use posthaste_soap::head::{BLOCK_DEPTH, HeaderBlocks, HeaderElement, ShortText};

use posthaste_units::{Ratio, Span};

use crate::definition::span_of_milliseconds;
use crate::{Custom, NAMESPACES, Priorities, Priority, bounds};

/// Names on the path to the sections, by depth in the envelope.
const WAY: [(usize, &str); 2] = [
    (BLOCK_DEPTH, "WSQoSSoapHeader"),
    (BLOCK_DEPTH + 1, "qosInfo"),
];

/// Depth of the sections.
const SECTION: usize = BLOCK_DEPTH + 2;

/// Element with the selected offer, by depth.
const SELECTED: (usize, &str) = (BLOCK_DEPTH + 1, "selectedOffer");

/// Depth of the priorities and metrics.
const LAST: usize = BLOCK_DEPTH + 3;

/// A part of `qosInfo` that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InfoSection {
    Transport,
    Server,
}

/// Reader of the block `WSQoSSoapHeader`.
#[derive(Debug, Default)]
pub struct QosBlock {
    /// Depth of the innermost open element on the path; 0 outside.
    open: usize,
    /// Depth of the outermost element on the path that has ended, or 0. No other is read at that depth.
    over: usize,
    /// The section of the open element, or of the last one.
    section: Option<InfoSection>,
    /// Sections that have ended.
    read: Vec<InfoSection>,
    value: Option<(ValueKind, ShortText)>,
    priorities: Priorities,
    processing_time: Option<Span>,
    reliability: Option<Ratio>,
    selected: Option<String>,
    is_unread: bool,
    has_unread_metric: bool,
}

/// Open element with relevant text: a priority, a metric or the selected offer.
#[derive(Debug)]
enum ValueKind {
    Delay,
    Jitter,
    Throughput,
    PacketLoss,
    Custom {
        name: String,
        ontology: String,
    },
    ProcessingTime,
    Reliability,
    /// The selected offer.
    Selected,
}

impl HeaderBlocks for QosBlock {
    fn enter(&mut self, depth: usize) -> bool {
        if let Some((_, text)) = &mut self.value {
            text.spoil();
        }
        depth == BLOCK_DEPTH || (self.open > 0 && depth == self.open + 1 && depth <= LAST)
    }

    fn start(&mut self, element: &HeaderElement<'_>) {
        let (depth, local) = (element.depth, element.local);
        let is_ours = element.namespace.is_some_and(|namespace| {
            NAMESPACES.contains(&namespace) || (namespace.is_empty() && depth > BLOCK_DEPTH)
        });
        if self.value.is_some() || !is_ours {
            return;
        }
        if WAY.contains(&(depth, local)) && depth > self.over {
            self.open = depth;
        } else if depth == SECTION
            && depth > self.over
            && let Some(section) = InfoSection::from_name(local)
            && !self.read.contains(&section)
        {
            self.section = Some(section);
            self.open = depth;
        } else if (depth, local) == SELECTED && self.selected.is_none() {
            let mut name = ShortText::default();
            name.push(element.attribute("name").unwrap_or_default().as_bytes());
            self.value = Some((ValueKind::Selected, name));
            self.open = depth;
        } else if depth == LAST
            && let Some(kind) = self
                .section
                .and_then(|section| ValueKind::in_section(section, element))
        {
            self.value = Some((kind, ShortText::default()));
            self.open = LAST;
        }
    }

    fn text(&mut self, text: &[u8]) {
        if let Some((_, so_far)) = &mut self.value {
            so_far.push(text);
        }
    }

    fn end(&mut self, depth: usize) {
        if depth != self.open {
            return;
        }
        self.open = if depth == BLOCK_DEPTH { 0 } else { depth - 1 };
        let Some((kind, text)) = self.value.take() else {
            match depth {
                SECTION => self.read.extend(self.section),
                _ => self.over = depth,
            }
            return;
        };
        match kind {
            ValueKind::Selected => {
                let name = text.read().filter(|name| !name.is_empty());
                self.selected = name.and_then(|name| String::from_utf8(name.to_owned()).ok());
            }
            ValueKind::ProcessingTime => {
                let time = text.read().and_then(number).and_then(span_of_milliseconds);
                self.has_unread_metric |= time.is_none();
                self.processing_time = self.processing_time.or(time);
            }
            ValueKind::Reliability => {
                let share = text.read().and_then(number).and_then(Ratio::new);
                self.has_unread_metric |= share.is_none();
                self.reliability = self.reliability.or(share);
            }
            kind => {
                let priority = text.read().and_then(priority);
                self.is_unread |= priority.is_none();
                if let Some(priority) = priority {
                    self.set(kind, priority);
                }
            }
        }
    }
}

impl QosBlock {
    /// The stated priorities; `None` if there are none.
    pub fn priorities(&self) -> Option<&Priorities> {
        (self.priorities != Priorities::default()).then_some(&self.priorities)
    }

    /// Name of the selected offer; `None` without a name of up to 96 bytes.
    pub fn selected(&self) -> Option<&str> {
        self.selected.as_deref()
    }

    /// The maximum processing time that the client requires.
    pub const fn processing_time(&self) -> Option<Span> {
        self.processing_time
    }

    /// The minimum reliability that the client requires.
    pub const fn reliability(&self) -> Option<Ratio> {
        self.reliability
    }

    /// Returns true if a required processing time or reliability was invalid.
    pub const fn has_unread_metric(&self) -> bool {
        self.has_unread_metric
    }

    /// Returns true if a priority was invalid.
    pub const fn has_unread_priority(&self) -> bool {
        self.is_unread
    }

    fn set(&mut self, kind: ValueKind, value: Priority) {
        let all = &mut self.priorities;
        let priority = match kind {
            ValueKind::Delay => &mut all.delay,
            ValueKind::Jitter => &mut all.jitter,
            ValueKind::Throughput => &mut all.throughput,
            ValueKind::PacketLoss => &mut all.packet_loss,
            ValueKind::Selected | ValueKind::ProcessingTime | ValueKind::Reliability => return,
            ValueKind::Custom { name, ontology } => {
                let custom = Custom {
                    name,
                    ontology,
                    value,
                };
                let is_new = !all.custom.iter().any(|other| other.is_of(&custom));
                if is_new && all.custom.len() < bounds::LIST {
                    all.custom.push(custom);
                } else {
                    self.is_unread |= is_new;
                }
                return;
            }
        };
        priority.get_or_insert(value);
    }
}

impl InfoSection {
    fn from_name(local: &str) -> Option<Self> {
        match local {
            "transportQoSPriorities" => Some(Self::Transport),
            "serverQoSMetrics" => Some(Self::Server),
            _ => None,
        }
    }
}

impl ValueKind {
    /// The value of this element in a section.
    fn in_section(section: InfoSection, element: &HeaderElement<'_>) -> Option<Self> {
        match (section, element.local) {
            (InfoSection::Transport, _) => Self::of_transport(element),
            (InfoSection::Server, "processingTime") => Some(Self::ProcessingTime),
            (InfoSection::Server, "reliability") => Some(Self::Reliability),
            (InfoSection::Server, _) => None,
        }
    }

    /// The priority with this element's name. A custom priority needs the attributes `name` and `ontology`.
    fn of_transport(element: &HeaderElement<'_>) -> Option<Self> {
        let text = |name| {
            let value = element.attribute(name)?;
            (value.len() <= bounds::TEXT).then(|| value.trim_ascii().to_owned())
        };
        match element.local {
            "delay" => Some(Self::Delay),
            "jitter" => Some(Self::Jitter),
            "throughput" => Some(Self::Throughput),
            "packetLoss" => Some(Self::PacketLoss),
            "customPriority" => Some(Self::Custom {
                name: text("name")?,
                ontology: text("ontology")?,
            }),
            _ => None,
        }
    }
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn priority(text: &[u8]) -> Option<Priority> {
    let number = std::str::from_utf8(text).ok()?;
    Priority::new(number.parse().ok()?)
}
