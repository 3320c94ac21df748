//! Size of each reply, and its costs of compression and decompression.
//!
//! The gateway reports the time of compression and the generator that of decoding. Both are CPU time, so that other
//! programs have little effect. The handheld is this machine slowed down by one factor. With it, the paper's six
//! replies together take as long as on the paper's handheld.

use std::sync::atomic::AtomicBool;

use posthaste_bookshop::Size;
use posthaste_compression::Wish;
use posthaste_load::{Arrivals, Outcome, Pace, Plan, RateStep, run};
use posthaste_soap::Limits;
use posthaste_soap::head::EnvelopeParts;
use posthaste_study::{
    Conditions, Failure, MedianEstimate, Needs, RecordTable, Records, Study, estimate,
};
use posthaste_units::{Rate, Span};

use super::paper;
use crate::testbed::shop::{STEP, ShopBehindGateway};

pub(super) static STUDY: Study = Study {
    name: "wsqos-replies",
    needs: Needs::Processor,
    core: true,
    run: |conditions| study(conditions, if conditions.full { 15 } else { 3 }),
};

/// Rate and length of the fetches of a reply in one run.
const RATE: f64 = 200.0;
const LENGTH: Span = Span::from_millis(250);

/// Slowdown of the decoding. With a slowdown, each reply is decoded three times and the minimum counts. The factor adds
/// three digits to the result.
const MAGNIFIED: u32 = 1000;

fn study(conditions: &Conditions<'_>, rounds: u64) -> Result<Records, Failure> {
    let shop = ShopBehindGateway::open(([127, 0, 0, 1], 0).into(), conditions.seed)?;
    let mut records = Records::new();
    records.set_parameter("step", STEP.name());
    records.set_parameter("runs of each reply", rounds);
    records.set_parameter("requests a run", RATE * LENGTH.as_secs_f64());
    let mut table = RecordTable::new([
        "reply",
        "run",
        "intended",
        "ok",
        "message_bytes",
        "body_bytes",
        "decoded_bytes",
        "compressed_bytes",
        "compression_ms",
        "decompression_ms",
    ]);
    for round in 0..rounds {
        for size in Size::ALL {
            if conditions.stopped() {
                break;
            }
            let message = format!("{}, run {}", size.name(), round + 1);
            let done = table.len() as u64;
            let all = rounds * Size::ALL.len() as u64;
            conditions.progress.step(done, all, &message);
            let message = shop.message(size)?;
            let cost = cost(&shop, size, conditions.stop)?;
            table.push([
                size.name().into(),
                round.into(),
                cost.intended.into(),
                cost.ok.into(),
                (message.len() as u64).into(),
                body_bytes(&message)?.into(),
                cost.decoded_bytes.into(),
                cost.compressed_bytes.into(),
                cost.compression_ms.into(),
                cost.decompression_ms.into(),
            ]);
        }
    }
    records.set_table("replies", table);
    let times = Size::ALL.map(|size| estimate_of(&records, size, "decompression_ms").median);
    records.set_number("slowdown", slowdown(times));
    Ok(records)
}

/// Result of some fetches of one reply. Bytes and times are per fetch.
pub(super) struct Cost {
    intended: u64,
    ok: u64,
    decoded_bytes: f64,
    compressed_bytes: f64,
    compression_ms: f64,
    pub(super) decompression_ms: f64,
}

/// Fetches a reply about fifty times, compressed.
pub(super) fn cost(
    shop: &ShopBehindGateway,
    size: Size,
    stop: &AtomicBool,
) -> Result<Cost, Failure> {
    let pace = Pace::Open {
        arrivals: Arrivals::Constant,
        steps: vec![RateStep::steady(
            Rate::per_second(RATE).expect("a constant above zero"),
            LENGTH,
        )],
    };
    let request = shop.request(size, Wish::Always);
    let plan = Plan {
        decoding: Some(MAGNIFIED),
        ..Plan::new(vec![request], pace)
    };
    let before = shop.packed()?;
    let run = run(&plan, stop, &mut ())?;
    let after = shop.packed()?;
    let each = |bytes: u64| bytes as f64 / run.decoded.replies as f64;
    let decoding = run.phases.decode.quantile(0.5).as_millis_f64();
    Ok(Cost {
        intended: run.intended,
        ok: run.outcomes[Outcome::Ok],
        decoded_bytes: each(run.decoded.bytes),
        compressed_bytes: each(run.decoded.bytes_coded),
        compression_ms: 1e3 * (after.1 - before.1) / (after.0 - before.0),
        decompression_ms: decoding / f64::from(MAGNIFIED),
    })
}

/// Slowdown of the paper's handheld, compared with this machine, which takes these times for the replies of Table 4, in
/// their order and in ms.
pub(super) fn slowdown(times: [f64; Size::ALL.len()]) -> f64 {
    let theirs = Size::ALL.map(|size| paper::reply(size).decompression);
    theirs.iter().sum::<f64>() / times.iter().sum::<f64>()
}

/// Median of a column over the runs of a reply.
pub(super) fn estimate_of(records: &Records, size: Size, column: &str) -> MedianEstimate {
    let rows = records.table("replies").rows();
    let rows = rows.filter(|row| row.text("reply") == size.name());
    estimate(&rows.map(|row| row.number(column)).collect::<Vec<f64>>())
}

/// Bytes of a message's Body with its tags, as the paper counts.
pub(super) fn body_bytes(message: &[u8]) -> Result<f64, Failure> {
    let parts =
        EnvelopeParts::split(message, &Limits::default()).ok_or("a reply that is no SOAP")?;
    Ok((parts.content.len() + "<soap:Body></soap:Body>".len()) as f64)
}

#[cfg(test)]
mod tests {
    use posthaste_units::Seed;

    use super::*;

    #[test]
    fn a_reply_is_decoded_to_what_the_shop_sends() {
        let shop = ShopBehindGateway::open(([127, 0, 0, 1], 0).into(), Seed(1)).unwrap();
        let message = shop.message(Size::Lite).unwrap();
        let paper = paper::reply(Size::Lite);
        let body = body_bytes(&message).unwrap();
        assert!((body / paper.bytes - 1.0).abs() < 0.05, "{body}");
        let cost = cost(&shop, Size::Lite, &AtomicBool::new(false)).unwrap();
        assert_eq!((cost.intended, cost.ok), (50, 50));
        assert_eq!(cost.decoded_bytes, message.len() as f64);
        assert!(cost.compressed_bytes < 0.5 * cost.decoded_bytes);
        assert!(cost.compression_ms > 0.0 && cost.decompression_ms > 0.0);
    }

    #[test]
    fn a_machine_1000_times_faster_is_slowed_down_1000_times() {
        let times = Size::ALL.map(|size| paper::reply(size).decompression / 1000.0);
        assert!((slowdown(times) - 1000.0).abs() < 1e-9);
    }
}
