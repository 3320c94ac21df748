//! Messages on the standard error.

use std::io::Write as _;

/// Writes a message for people, with control characters escaped: it may quote other machines. A reader that has gone away
/// is no reason to end.
macro_rules! note {
    ($($part:tt)*) => {
        $crate::note::write(&format!($($part)*))
    };
}

pub(crate) fn write(text: &str) {
    let text = posthaste_units::visible_lines(text);
    let _ = writeln!(std::io::stderr(), "{text}");
}
