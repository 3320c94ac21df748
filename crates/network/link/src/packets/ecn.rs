//! The field for explicit congestion notification in the IP header (RFC 3168, section 5).

/// Value of the field: the last two bits of the traffic class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable: the sender learns of congestion by drops.
    #[default]
    NotEct,
    /// ECN-capable, ECT(1): of a sender with frequent marks (RFC 9331).
    Ect1,
    /// ECN-capable, ECT(0).
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// All values, by their bits.
    const ALL: [Self; 4] = [Self::NotEct, Self::Ect1, Self::Ect0, Self::Ce];

    /// The field in a TOS byte of IPv4 or a traffic class of IPv6.
    pub const fn in_traffic_class(byte: u8) -> Self {
        Self::ALL[(byte & 0b11) as usize]
    }

    /// The value with these bits; `None` beyond 3.
    pub fn new(bits: u8) -> Option<Self> {
        Self::ALL.get(usize::from(bits)).copied()
    }

    /// The two bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// True if a router may mark the packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_standard() {
        for (bits, ecn) in [
            (0, Ecn::NotEct),
            (1, Ecn::Ect1),
            (2, Ecn::Ect0),
            (3, Ecn::Ce),
        ] {
            assert_eq!((ecn.bits(), Ecn::new(bits)), (bits, Some(ecn)));
            assert_eq!(Ecn::in_traffic_class(0xb8 | bits), ecn);
        }
        assert_eq!(Ecn::new(4), None);
        assert!(!Ecn::NotEct.is_capable() && Ecn::Ce.is_capable());
    }
}
