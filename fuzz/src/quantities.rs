//! What people type and prepare: quantities, bounds, lists of times, addresses, tables.

use std::fmt::Write as _;

use posthaste_evaluation::Assertion;
use posthaste_load::{Data, Resolve, TraceError, read_trace};
use posthaste_units::{Rate, Ratio, Size, Span};

use crate::within;

/// Three decimals of a number that is at least one, or four digits: half of the last place.
const ROUNDED: f64 = 5.1e-4;

/// The same of a number that is at least a tenth.
const SMALL: f64 = 10.0 * ROUNDED;

/// Whole numbers up to here are exact as floating point.
const EXACT: u64 = 1 << 53;

/// Within a thousandth of the largest, rounding up may leave the range.
const LARGEST: u64 = u64::MAX - u64::MAX / 1000;

/// Any bytes as each of them.
pub fn quantities(bytes: &[u8]) {
    table(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    span(text);
    rate(text);
    size(text);
    ratio(text);
    assertion(text);
    trace(text);
    resolve(text);
}

/// What `value` is read as when written out.
fn again<T: std::fmt::Display + std::str::FromStr<Err: std::fmt::Debug>>(value: T) -> T {
    let text = value.to_string();
    text.parse()
        .unwrap_or_else(|error| panic!("{text:?}: {error:?}"))
}

fn near(read: f64, before: f64, share: f64, text: &str) {
    let allowed = before * share;
    assert!(
        (read - before).abs() <= allowed,
        "{text:?}: {before} became {read}"
    );
}

fn span(text: &str) {
    match text.parse::<Span>() {
        Ok(span) if span.as_nanos() < LARGEST => {
            near(again(span).as_secs_f64(), span.as_secs_f64(), ROUNDED, text);
        }
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn rate(text: &str) {
    match text.parse::<Rate>() {
        Ok(rate) => {
            assert!(rate.as_per_second() >= 0.0 && rate.as_per_second().is_finite());
            assert!(rate.as_per_second() == 0.0 || rate.interval() <= Span::MAX);
            if rate.as_per_second() == 0.0 || (1e-300..1e300).contains(&rate.as_per_second()) {
                near(
                    again(rate).as_per_second(),
                    rate.as_per_second(),
                    SMALL,
                    text,
                );
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn size(text: &str) {
    match text.parse::<Size>() {
        Ok(size) if size.as_bytes() < LARGEST => {
            near(
                again(size).as_bytes() as f64,
                size.as_bytes() as f64,
                ROUNDED,
                text,
            );
        }
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn ratio(text: &str) {
    match text.parse::<Ratio>() {
        Ok(ratio) => {
            assert!((0.0..=1.0).contains(&ratio.get()));
            if ratio.get() == 0.0 || ratio.get() > 1e-300 {
                near(again(ratio).get(), ratio.get(), SMALL, text);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn assertion(text: &str) {
    match text.parse::<Assertion>() {
        Ok(assertion) => {
            assert_eq!(assertion.to_string(), text);
            assert_eq!(again(assertion.clone()), assertion);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn trace(text: &str) {
    let read = within("read_trace", text.len(), 64, 4096, || read_trace(text));
    let lines = text.lines().count();
    match read {
        Ok(times) => {
            assert!(!times.is_empty() && times.len() <= lines);
            assert!(times.is_sorted(), "times run forward");
            let mut written = String::from("# written again\n");
            for time in times.iter() {
                let _ = writeln!(written, "{}ns", time.as_nanos());
            }
            if times.iter().all(|time| time.as_nanos() < EXACT) {
                assert_eq!(read_trace(&written), Ok(times));
            }
        }
        Err(
            TraceError::NotATime { line, text }
            | TraceError::Backwards { line, text }
            | TraceError::Late { line, text },
        ) => {
            assert!((1..=lines).contains(&line) && !text.is_empty());
        }
        Err(TraceError::Empty) => {}
    }
}

fn resolve(text: &str) {
    match text.parse::<Resolve>() {
        Ok(resolve) => {
            assert!(!resolve.host.is_empty() && !resolve.host.contains(':'));
            for address in [
                format!("{}", resolve.address),
                format!("[{}]", resolve.address),
            ] {
                let written = format!("{}:{}:{address}", resolve.host, resolve.port);
                assert_eq!(written.parse().as_ref(), Ok(&resolve));
            }
        }
        Err(remedy) => assert!(remedy.contains("HOST:PORT:ADDRESS")),
    }
}

fn table(bytes: &[u8]) {
    match within("Data::read", bytes.len(), 1024, 256 << 10, || {
        Data::read(bytes)
    }) {
        Ok(data) => {
            assert!(!data.columns().is_empty());
            let trimmed = |column: &String| column.trim() == column;
            assert!(data.columns().iter().all(trimmed), "{:?}", data.columns());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
