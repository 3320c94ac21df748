//! DSCP marks of replies: the treatment that a client requests from the network.
//!
//! [`Marks::decide`] uses the first source with a permitted mark:
//!
//! 1. the request's SOAP header
//! 2. `Prefer: mark=...`
//! 3. the offer at which the request was admitted
//! 4. the route's own mark
//! 5. the HTTP field `Priority`
//!
//! A [`Table`] maps priorities to a mark, [`Urgencies`] map an urgency. Clients get only permitted marks. Offers and
//! routes are the provider's own statement and get any.
//!
//! The request comes before the offer, because a client with a low-delay offer can still send work that may wait.
//! `Priority` comes last, because browsers send it with every request, while a route's mark is deliberate.

mod table;
mod urgency;

use std::fmt;

use posthaste_units::Dscp;

pub use table::{Range, Rule, Table, UnknownRange};
pub use urgency::{Urgencies, Urgency};

use crate::Priorities;

/// Rules for the marks of replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    table: Table,
    urgencies: Urgencies,
    /// Permitted marks, one bit for each code point.
    allowed: u64,
}

/// The statements about the mark of a reply.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatedMarks<'a> {
    /// Priorities in the request's SOAP header; `None` if it states none.
    pub soap: Option<&'a Priorities>,
    /// `Prefer: mark=...`.
    pub prefer: Option<Dscp>,
    /// Priorities promised by the offer at which the request was admitted.
    pub offer: Option<&'a Priorities>,
    /// The route's own mark.
    pub route: Option<Dscp>,
    /// `Priority`.
    pub urgency: Option<Urgency>,
}

/// Source of a mark, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkOrigin {
    /// `transportQoSPriorities` in the request's SOAP header.
    SoapHeader,
    /// `Prefer: mark=...`.
    Prefer,
    /// The offer at which the request was admitted.
    Offer,
    /// The route.
    Route,
    /// `Priority` (RFC 9218).
    Priority,
    /// No source states a permitted mark.
    Unasked,
}

/// Mark of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The code point.
    pub dscp: Dscp,
    /// Source of the mark.
    pub origin: MarkOrigin,
    /// A requested mark was not permitted and was ignored.
    pub denied: bool,
}

impl Marks {
    /// Creates the rules. `allowed` lists the marks that clients may request; `None` permits every mark of `table` and
    /// `urgencies`. The default mark is always permitted.
    pub fn new(table: Table, urgencies: Urgencies, allowed: Option<&[Dscp]>) -> Self {
        // Begins with the bit of the default mark.
        let bits = |marks: &[Dscp]| {
            marks
                .iter()
                .fold(bit(Dscp::DEFAULT), |bits, mark| bits | bit(*mark))
        };
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
    pub fn decide(&self, stated: &StatedMarks<'_>) -> Mark {
        use MarkOrigin::{Offer, Prefer, Priority, Route, SoapHeader};
        let by_table = |stated: Option<&Priorities>| stated.map(|stated| self.table.mark(stated));
        let sources = [
            (by_table(stated.soap), SoapHeader),
            (stated.prefer, Prefer),
            (by_table(stated.offer), Offer),
            (stated.route, Route),
            (
                stated.urgency.map(|urgency| self.urgencies.mark(urgency)),
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
    /// Every origin, in order of precedence.
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
    use crate::Priority;

    #[test]
    fn the_first_place_that_says_something_counts() {
        let delay = |value| Priorities {
            delay: Priority::new(value),
            ..Priorities::default()
        };
        let (soap, offer) = (delay(0), delay(10));
        let mut stated = StatedMarks {
            soap: Some(&soap),
            offer: Some(&offer),
            prefer: Some(Dscp::AF11),
            route: Some(Dscp::CS6),
            urgency: Some(Urgency::new(7).unwrap()),
        };
        let marks = Marks::default();
        let mut expect = |dscp, origin, next: fn(&mut StatedMarks<'_>)| {
            let mark = Mark {
                dscp,
                origin,
                denied: false,
            };
            assert_eq!(marks.decide(&stated), mark);
            next(&mut stated);
        };
        expect(Dscp::AF21, MarkOrigin::SoapHeader, |stated| {
            stated.soap = None
        });
        expect(Dscp::AF11, MarkOrigin::Prefer, |stated| {
            stated.prefer = None
        });
        // The offer states priorities, but no rule matches them.
        expect(Dscp::DEFAULT, MarkOrigin::Offer, |stated| {
            stated.offer = None
        });
        expect(Dscp::CS6, MarkOrigin::Route, |stated| stated.route = None);
        expect(Dscp::LE, MarkOrigin::Priority, |stated| {
            stated.urgency = None
        });
        expect(Dscp::DEFAULT, MarkOrigin::Unasked, |_| {});
    }

    #[test]
    fn marks_that_are_not_allowed_are_passed_over() {
        let stated = StatedMarks {
            prefer: Some(Dscp::CS6),
            route: Some(Dscp::AF12),
            ..StatedMarks::default()
        };
        let decide = |allowed: Option<&[Dscp]>, stated| {
            let marks = Marks::new(Table::default(), Urgencies::default(), allowed);
            let mark = marks.decide(stated);
            (mark.dscp, mark.denied)
        };
        assert_eq!(decide(None, &stated), (Dscp::AF12, true));
        assert_eq!(decide(Some(&[Dscp::CS6]), &stated), (Dscp::CS6, false));
        let unmarked = StatedMarks {
            prefer: Some(Dscp::DEFAULT),
            ..stated
        };
        assert_eq!(decide(Some(&[]), &unmarked), (Dscp::DEFAULT, false));
        let quick = Priorities {
            delay: Priority::new(0),
            ..Priorities::default()
        };
        let bought = StatedMarks {
            offer: Some(&quick),
            ..stated
        };
        assert_eq!(decide(Some(&[]), &bought), (Dscp::AF21, true));
        let urgent = StatedMarks {
            urgency: Urgency::new(0),
            ..StatedMarks::default()
        };
        assert_eq!(decide(Some(&[Dscp::AF11]), &urgent), (Dscp::DEFAULT, true));
    }
}
