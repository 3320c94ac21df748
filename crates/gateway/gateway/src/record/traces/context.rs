//! The position of a request in a distributed trace: the field `traceparent` (W3C Trace Context, level 1).

use std::fmt;

/// The content of `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(super) trace: u128,
    /// Trace span of the sender.
    pub(super) span: u64,
    pub(super) is_sampled: bool,
}

impl TraceContext {
    /// Parses `VERSION-TRACE-SPAN-FLAGS`. Additions of later versions are ignored.
    pub(super) fn read(field: &str) -> Option<Self> {
        let mut parts = field.split('-');
        let version = hexadecimal(parts.next()?, 2)?;
        let trace = hexadecimal(parts.next()?, 32)?;
        let span = hexadecimal(parts.next()?, 16)?;
        let flags = hexadecimal(parts.next()?, 2)?;
        let is_whole = version != 0 || parts.next().is_none();
        (version != 0xff && trace != 0 && span != 0 && is_whole).then_some(Self {
            trace,
            span: u64::try_from(span).ok()?,
            is_sampled: flags & 1 == 1,
        })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace, self.span)
    }
}

/// Parses exactly `digits` lower-case hexadecimal digits.
fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let is_lower = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let fits = text.len() == digits && text.bytes().all(is_lower);
    fits.then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_contexts_are_written_as_read() {
        for text in [
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0000000000000000000000000000000a-000000000000000b-00",
        ] {
            let context = TraceContext::read(text).unwrap();
            assert_eq!(context.to_string(), text);
        }
        let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-what";
        assert!(TraceContext::read(later).unwrap().is_sampled);
    }

    #[test]
    fn malformed_trace_contexts_are_ignored() {
        for text in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceContext::read(text), None, "{text}");
        }
    }
}
