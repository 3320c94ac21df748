//! Buckets of histograms whose width grows with the values.

/// Number of a log-linear bucket: each power of two is divided into [`LogBucket::PARTS`] buckets of the same width.
///
/// Numbers below `PARTS` have a bucket each. A number is known to within 1/16 by its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogBucket(pub usize);

impl LogBucket {
    /// Buckets per power of two.
    pub const PARTS: usize = 1 << Self::BITS;
    const BITS: u32 = 4;

    /// Returns the bucket of a number.
    #[inline]
    pub const fn containing(number: u64) -> Self {
        let power = (number | 1).ilog2();
        if power < Self::BITS {
            return Self(number as usize);
        }
        let above = power - Self::BITS;
        let part = (number >> above) as usize - Self::PARTS;
        Self((above as usize + 1) * Self::PARTS + part)
    }

    /// The bucket of [`u64::MAX`].
    const LAST: usize = (65 - Self::BITS as usize) * Self::PARTS - 1;

    /// Returns the least number above all numbers of the bucket. The last one has none.
    #[inline]
    pub const fn end(self) -> u64 {
        debug_assert!(self.0 < Self::LAST, "the last bucket has no end");
        let (power, part) = (self.0 / Self::PARTS, self.0 % Self::PARTS);
        if power == 0 {
            return part as u64 + 1;
        }
        ((part + Self::PARTS) as u64 + 1) << (power - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_bucket_ends_where_the_next_begins() {
        let mut start = 0;
        for bucket in 0..LogBucket::LAST {
            let end = LogBucket(bucket).end();
            assert_eq!(LogBucket::containing(start), LogBucket(bucket));
            assert_eq!(LogBucket::containing(end - 1), LogBucket(bucket));
            start = end;
        }
        assert_eq!(LogBucket::containing(start), LogBucket(LogBucket::LAST));
        assert_eq!(LogBucket::containing(u64::MAX), LogBucket(LogBucket::LAST));
    }

    proptest! {
        #[test]
        fn a_bucket_is_narrow(number in 0..1_u64 << 62) {
            let end = LogBucket::containing(number).end();
            prop_assert!(number < end && end - number <= (number / 16).max(1));
        }
    }
}
