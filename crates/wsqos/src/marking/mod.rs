//! How a reply's packets are marked: what a client asks of the network, as a DiffServ code point.
//!
//! [`Marks::decide`] goes through the places where somebody may have said it, and the first that says
//! something counts: the request's SOAP header, `Prefer: mark=...`, the offer on which it was let in, the
//! route's own mark, the HTTP field `Priority`. Priorities become a mark by a [`Table`], an urgency by
//! another. Who asks from outside gets no mark but those that are allowed; what an offer promises and a route
//! says is the provider's own word.
//!
//! What a request says of itself comes before what was bought for all requests alike: a client whose offer
//! promises little delay can still send work that may wait.
//!
//! `Priority` comes last because browsers send it with every request; a route that has a mark means it.

mod table;
mod urgency;

use std::fmt;

use posthaste_units::Dscp;

pub use table::{Range, Rule, Table, UnknownRange};
pub use urgency::{Urgencies, Urgency};

use crate::qos::Priorities;

/// By what replies are marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    table: Table,
    urgencies: Urgencies,
    /// A bit for each code point.
    allowed: u64,
}

/// What was said about the mark of a reply.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// What the request's SOAP header states; none where it states no priority.
    pub soap: Option<&'a Priorities>,
    /// `Prefer: mark=...`.
    pub prefer: Option<Dscp>,
    /// What the offer promises on which the request was let in.
    pub offer: Option<&'a Priorities>,
    /// The route's own mark.
    pub route: Option<Dscp>,
    /// `Priority`.
    pub urgency: Option<Urgency>,
}

/// Where a mark comes from, in the order in which the places count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkOrigin {
    /// `transportQoSPriorities` in the request's SOAP header.
    SoapHeader,
    /// `Prefer: mark=...`.
    Prefer,
    /// The offer on which the request was let in.
    Offer,
    /// The route.
    Route,
    /// `Priority` (RFC 9218).
    Priority,
    /// Nobody said anything, or nothing that is allowed.
    Unasked,
}

/// A reply's mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The code point.
    pub dscp: Dscp,
    /// Who asked for it.
    pub origin: MarkOrigin,
    /// Somebody asked for a mark that is not allowed and was passed over.
    pub denied: bool,
}

impl Marks {
    /// `allowed` holds the marks that may be asked for; none stands for every mark that `table` and
    /// `urgencies` can give. The default mark always may.
    pub fn new(table: Table, urgencies: Urgencies, allowed: Option<&[Dscp]>) -> Self {
        let bits = |marks: &[Dscp]| marks.iter().fold(1, |bits, mark| bits | bit(*mark));
        let allowed = match allowed {
            Some(marks) => bits(marks),
            None => table
                .rules()
                .fold(bits(urgencies.marks()), |bits, rule| bits | bit(rule.mark)),
        };
        Self {
            table,
            urgencies,
            allowed,
        }
    }

    /// The mark of a reply.
    pub fn decide(&self, asked: &Asked<'_>) -> Mark {
        use MarkOrigin::{Offer, Prefer, Priority, Route, SoapHeader};
        let by_table = |stated: Option<&Priorities>| stated.map(|stated| self.table.mark(stated));
        let sources = [
            (by_table(asked.soap), SoapHeader),
            (asked.prefer, Prefer),
            (by_table(asked.offer), Offer),
            (asked.route, Route),
            (
                asked.urgency.map(|urgency| self.urgencies.mark(urgency)),
                Priority,
            ),
        ];
        let mut denied = false;
        for (mark, origin) in sources {
            let Some(dscp) = mark else { continue };
            if matches!(origin, Offer | Route) || self.allowed & bit(dscp) != 0 {
                return Mark {
                    dscp,
                    origin,
                    denied,
                };
            }
            denied = true;
        }
        Mark {
            dscp: Dscp::DEFAULT,
            origin: MarkOrigin::Unasked,
            denied,
        }
    }
}

impl Default for Marks {
    fn default() -> Self {
        Self::new(Table::default(), Urgencies::default(), None)
    }
}

fn bit(mark: Dscp) -> u64 {
    1 << mark.get()
}

impl MarkOrigin {
    /// Every origin, in the order in which they count.
    pub const ALL: [Self; 6] = [
        Self::SoapHeader,
        Self::Prefer,
        Self::Offer,
        Self::Route,
        Self::Priority,
        Self::Unasked,
    ];

    /// Its name in metrics and in `Mark-Decision`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SoapHeader => "soap-header",
            Self::Offer => "offer",
            Self::Prefer => "prefer",
            Self::Route => "route",
            Self::Priority => "priority",
            Self::Unasked => "unasked",
        }
    }
}

impl fmt::Display for MarkOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::Priority;

    #[test]
    fn the_first_place_that_says_something_counts() {
        let delay = |value| Priorities {
            delay: Priority::new(value),
            ..Priorities::default()
        };
        let (soap, offer) = (delay(0), delay(10));
        let mut asked = Asked {
            soap: Some(&soap),
            offer: Some(&offer),
            prefer: Some(Dscp::AF11),
            route: Some(Dscp::CS6),
            urgency: Some(Urgency::new(7).unwrap()),
        };
        let marks = Marks::default();
        let mut expect = |dscp, origin, next: fn(&mut Asked<'_>)| {
            let mark = Mark {
                dscp,
                origin,
                denied: false,
            };
            assert_eq!(marks.decide(&asked), mark);
            next(&mut asked);
        };
        expect(Dscp::AF21, MarkOrigin::SoapHeader, |asked| {
            asked.soap = None
        });
        expect(Dscp::AF11, MarkOrigin::Prefer, |asked| asked.prefer = None);
        // Stated, and nothing that a rule is about.
        expect(Dscp::DEFAULT, MarkOrigin::Offer, |asked| asked.offer = None);
        expect(Dscp::CS6, MarkOrigin::Route, |asked| asked.route = None);
        expect(Dscp::LE, MarkOrigin::Priority, |asked| asked.urgency = None);
        expect(Dscp::DEFAULT, MarkOrigin::Unasked, |_| {});
    }

    #[test]
    fn what_is_not_allowed_is_passed_over() {
        let asked = Asked {
            prefer: Some(Dscp::CS6),
            route: Some(Dscp::AF12),
            ..Asked::default()
        };
        let decide = |allowed: Option<&[Dscp]>, asked| {
            let marks = Marks::new(Table::default(), Urgencies::default(), allowed);
            let mark = marks.decide(asked);
            (mark.dscp, mark.denied)
        };
        assert_eq!(decide(None, &asked), (Dscp::AF12, true));
        assert_eq!(decide(Some(&[Dscp::CS6]), &asked), (Dscp::CS6, false));
        let unmarked = Asked {
            prefer: Some(Dscp::DEFAULT),
            ..asked
        };
        assert_eq!(decide(Some(&[]), &unmarked), (Dscp::DEFAULT, false));
        let quick = Priorities {
            delay: Priority::new(0),
            ..Priorities::default()
        };
        let bought = Asked {
            offer: Some(&quick),
            ..asked
        };
        assert_eq!(decide(Some(&[]), &bought), (Dscp::AF21, true));
        let urgent = Asked {
            urgency: Urgency::new(0),
            ..Asked::default()
        };
        assert_eq!(decide(Some(&[Dscp::AF11]), &urgent), (Dscp::DEFAULT, true));
    }
}
