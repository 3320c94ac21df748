//! Reads network priorities and the selected offer from a streamed `WSQoSSoapHeader`.
//!
//! Two elements are read, the first of each:
//!
//! - the priorities in `WSQoSSoapHeader/qosInfo/transportQoSPriorities`
//! - the offer's name in `WSQoSSoapHeader/selectedOffer`, as text or in the attribute `name`
//!
//! The block itself must be in one of the namespaces of WS-QoS, its descendants in one of them or in none. The first
//! value of a priority counts. A value that is not a whole number from 0 to 10 states nothing and is reported.

use crate::scope::{Meaning, attribute};
use crate::word::Word;
use posthaste_qos::{Custom, Priorities, Priority, bounds};

/// Names on the path to the priorities, by depth in the envelope.
const WAY: [(usize, &[u8]); 3] = [
    (3, b"WSQoSSoapHeader"),
    (4, b"qosInfo"),
    (5, b"transportQoSPriorities"),
];

/// Element with the selected offer, by depth.
const SELECTED: (usize, &[u8]) = (4, b"selectedOffer");

/// Depth of the priorities.
const LAST: usize = 6;

/// Reader of the first block of a header.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Depth of the innermost open element on the path; 0 outside.
    open: usize,
    /// Depth of the outermost element on the path that has ended, or 0. No other is read at that depth.
    over: usize,
    value: Option<(Place, Word)>,
    priorities: Priorities,
    selected: Option<String>,
    is_unread: bool,
}

/// Open element with relevant text: a priority or the selected offer.
#[derive(Debug)]
enum Place {
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

impl Block {
    /// Returns true if an element that starts at `depth` may be on the path.
    pub(crate) fn wants(&self, depth: usize) -> bool {
        self.open > 0 && depth == self.open + 1 && depth <= LAST
    }

    /// Handles the start of an element.
    pub(crate) fn start(&mut self, depth: usize, meaning: Meaning, local: &[u8], inner: &[u8]) {
        let ours = match meaning {
            Meaning::WsQos => true,
            Meaning::Nothing => depth > WAY[0].0,
            _ => false,
        };
        if self.value.is_some() {
            return;
        }
        if ours && WAY.contains(&(depth, local)) && depth > self.over {
            self.open = depth;
        } else if ours && (depth, local) == SELECTED && self.selected.is_none() {
            let mut name = Word::default();
            name.push(attribute(inner, b"name").unwrap_or_default());
            self.value = Some((Place::Selected, name));
            self.open = depth;
        } else if ours && depth == LAST {
            self.value = Place::of(local, inner).map(|place| (place, Word::default()));
            self.open = if self.value.is_some() {
                LAST
            } else {
                self.open
            };
        }
    }

    /// Text of the open element, if it is relevant.
    pub(crate) fn word(&mut self) -> Option<&mut Word> {
        self.value.as_mut().map(|(_, word)| word)
    }

    /// Handles the end of an element.
    pub(crate) fn end(&mut self, depth: usize) {
        if depth == 0 || depth != self.open {
            return;
        }
        self.open = if depth == WAY[0].0 { 0 } else { depth - 1 };
        let Some((place, word)) = self.value.take() else {
            self.over = depth;
            return;
        };
        if let Place::Selected = place {
            let name = word.read().filter(|name| !name.is_empty());
            self.selected = name.and_then(|name| String::from_utf8(name.to_owned()).ok());
        } else {
            let priority = word.read().and_then(priority);
            self.is_unread |= priority.is_none();
            if let Some(priority) = priority {
                self.set(place, priority);
            }
        }
    }

    fn set(&mut self, place: Place, value: Priority) {
        let all = &mut self.priorities;
        let place = match place {
            Place::Delay => &mut all.delay,
            Place::Jitter => &mut all.jitter,
            Place::Throughput => &mut all.throughput,
            Place::PacketLoss => &mut all.packet_loss,
            Place::Selected => return,
            Place::Custom { name, ontology } => {
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

    /// The stated priorities.
    pub(crate) fn priorities(&self) -> &Priorities {
        &self.priorities
    }

    /// Name of the selected offer.
    pub(crate) fn selected(&self) -> Option<&str> {
        self.selected.as_deref()
    }

    /// Returns true if a priority could not be read.
    pub(crate) fn is_unread(&self) -> bool {
        self.is_unread
    }
}

impl Place {
    /// The priority with this element name. A custom priority needs the attributes `name` and `ontology`.
    fn of(local: &[u8], inner: &[u8]) -> Option<Self> {
        let text = |name: &[u8]| {
            let value = attribute(inner, name).filter(|value| value.len() <= bounds::TEXT)?;
            String::from_utf8(value.trim_ascii().to_owned()).ok()
        };
        match local {
            b"delay" => Some(Self::Delay),
            b"jitter" => Some(Self::Jitter),
            b"throughput" => Some(Self::Throughput),
            b"packetLoss" => Some(Self::PacketLoss),
            b"customPriority" => Some(Self::Custom {
                name: text(b"name")?,
                ontology: text(b"ontology")?,
            }),
            _ => None,
        }
    }
}

fn priority(word: &[u8]) -> Option<Priority> {
    let number = std::str::from_utf8(word).ok()?;
    Priority::new(number.parse().ok()?)
}
