//! Reads network priorities and the selected offer from a streamed `WSQoSSoapHeader`.
//!
//! Two elements are read, the first of each:
//!
//! - the priorities in `WSQoSSoapHeader/qosInfo/transportQoSPriorities`
//! - the offer's name in `WSQoSSoapHeader/selectedOffer`, as text or in the attribute `name`; the first valid one
//!   counts
//!
//! The block itself must be in one of the namespaces of WS-QoS, its descendants in one of them or in none. The first
//! value of a priority counts. A value that is not a whole number from 0 to 10 states nothing and is reported.

use posthaste_soap::head::{BLOCK_DEPTH, HeaderBlocks, HeaderElement, ShortText};

use crate::{Custom, NAMESPACES, Priorities, Priority, bounds};

/// Names on the path to the priorities, by depth in the envelope.
const WAY: [(usize, &str); 3] = [
    (BLOCK_DEPTH, "WSQoSSoapHeader"),
    (BLOCK_DEPTH + 1, "qosInfo"),
    (BLOCK_DEPTH + 2, "transportQoSPriorities"),
];

/// Element with the selected offer, by depth.
const SELECTED: (usize, &str) = (BLOCK_DEPTH + 1, "selectedOffer");

/// Depth of the priorities.
const LAST: usize = BLOCK_DEPTH + 3;

/// Reader of the block `WSQoSSoapHeader`.
#[derive(Debug, Default)]
pub struct QosBlock {
    /// Depth of the innermost open element on the path; 0 outside.
    open: usize,
    /// Depth of the outermost element on the path that has ended, or 0. No other is read at that depth.
    over: usize,
    value: Option<(ValueKind, ShortText)>,
    priorities: Priorities,
    selected: Option<String>,
    is_unread: bool,
}

/// Open element with relevant text: a priority or the selected offer.
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
        } else if (depth, local) == SELECTED && self.selected.is_none() {
            let mut name = ShortText::default();
            name.push(element.attribute("name").unwrap_or_default().as_bytes());
            self.value = Some((ValueKind::Selected, name));
            self.open = depth;
        } else if depth == LAST
            && let Some(kind) = ValueKind::of(element)
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
            self.over = depth;
            return;
        };
        if let ValueKind::Selected = kind {
            let name = text.read().filter(|name| !name.is_empty());
            self.selected = name.and_then(|name| String::from_utf8(name.to_owned()).ok());
        } else {
            let priority = text.read().and_then(priority);
            self.is_unread |= priority.is_none();
            if let Some(priority) = priority {
                self.set(kind, priority);
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

    /// Returns true if a priority was invalid.
    pub const fn has_unread_priority(&self) -> bool {
        self.is_unread
    }

    fn set(&mut self, kind: ValueKind, value: Priority) {
        let all = &mut self.priorities;
        let place = match kind {
            ValueKind::Delay => &mut all.delay,
            ValueKind::Jitter => &mut all.jitter,
            ValueKind::Throughput => &mut all.throughput,
            ValueKind::PacketLoss => &mut all.packet_loss,
            ValueKind::Selected => return,
            ValueKind::Custom { name, ontology } => {
                let custom = Custom {
                    name,
                    ontology,
                    value,
                };
                let is_new = !all.custom.iter().any(|other| other.is_of(&custom));
                match is_new && all.custom.len() < bounds::LIST {
                    true => all.custom.push(custom),
                    false => self.is_unread |= is_new,
                }
                return;
            }
        };
        place.get_or_insert(value);
    }
}

impl ValueKind {
    /// The priority with this element's name. A custom priority needs the attributes `name` and `ontology`.
    fn of(element: &HeaderElement<'_>) -> Option<Self> {
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

fn priority(text: &[u8]) -> Option<Priority> {
    let number = std::str::from_utf8(text).ok()?;
    Priority::new(number.parse().ok()?)
}
