//! Digest of the results of mathematical functions, to find agents whose schedules would differ.
//!
//! Arrivals and links use `ln`, `exp` and others of libm. The last bit of their results depends on the version of glibc
//! and on the processor (variants with FMA). Square roots and divisions are exact by IEEE 754 and not included.

use std::fmt::Write as _;
use std::hint::black_box;

use ring::digest::{Context, SHA256};

/// Results in the digest.
pub const RESULTS: usize = 4096;

/// A function of two numbers in (0, 1).
type Sampled = fn(f64, f64) -> f64;

/// The functions, with their arguments in the ranges that schedules and links use.
const FUNCTIONS: [Sampled; 8] = [
    |u, _| u.ln(),
    |u, v| (80.0 * u - 40.0 * v).exp(),
    |u, v| (10.0 * u).powf(8.0 * v - 4.0),
    |u, v| (4.0 * u - 2.0 * v).exp_m1(),
    |u, v| (2.0 * u - v).ln_1p(),
    |u, v| (u / v).log10(),
    |u, v| (1e6 * u * v).cbrt(),
    |u, v| (1e3 * u).hypot(1e3 * v),
];

/// SHA-256 of the bits of [`RESULTS`] results, in hexadecimal.
pub fn numerics() -> String {
    digest(&FUNCTIONS)
}

fn digest(functions: &[Sampled]) -> String {
    let mut context = Context::new(&SHA256);
    let mut state = 0;
    for index in 0..RESULTS {
        let (u, v) = (uniform(&mut state), uniform(&mut state));
        // Opaque, because the compiler would calculate with its own functions.
        let result = functions[index % functions.len()](black_box(u), black_box(v));
        context.update(&result.to_bits().to_be_bytes());
    }
    let mut text = String::with_capacity(64);
    for byte in context.finish().as_ref() {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A number in (0, 1) from SplitMix64, with exact operations only.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let first = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let second = (first ^ (first >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let mixed = second ^ (second >> 31);
    ((mixed >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_stable_and_has_64_digits() {
        let first = numerics();
        assert_eq!(first, numerics());
        assert!(first.len() == 64 && first.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn one_bit_of_one_function_changes_the_digest() {
        for index in 0..FUNCTIONS.len() {
            let mut functions = FUNCTIONS;
            functions[index] = match index {
                0 => |u, _| f64::from_bits(u.ln().to_bits() ^ 1),
                _ => |u, _| u,
            };
            assert_ne!(digest(&functions), numerics(), "function {index}");
        }
    }

    #[test]
    fn every_result_is_a_number() {
        let mut state = 0;
        for index in 0..RESULTS {
            let (u, v) = (uniform(&mut state), uniform(&mut state));
            assert!((0.0..1.0).contains(&u) && u > 0.0);
            assert!(
                FUNCTIONS[index % FUNCTIONS.len()](u, v).is_finite(),
                "{index}: {u} {v}"
            );
        }
    }
}
