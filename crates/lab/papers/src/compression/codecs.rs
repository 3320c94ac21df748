//! Cost and result of each coding in the gateway: CPU time and bytes, by the gateway's own counters.
//!
//! One client repeats its request to a separate gateway for each step and reply, so that all caches are warm. The
//! minimum of a few runs counts, because disturbances only add time. A request without compression is measured in the
//! same way.

use posthaste_bookshop::Size;
use posthaste_compression::{STEPS, Wish};
use posthaste_load::{Connections, Pace};
use posthaste_study::{Conditions, Failure, Needs, RecordTable, Records, Study};
use posthaste_units::Span;

use crate::testbed::Testbed;

pub(super) static STUDY: Study = Study {
    name: "wsqos-codecs",
    needs: Needs::Processor,
    core: true,
    run: |conditions| {
        study(
            conditions,
            if conditions.full { 9 } else { 3 },
            Span::from_millis(60),
        )
    },
};

/// The replies: two of the paper's and the largest.
pub(super) const REPLIES: [Size; 3] = [Size::Lite, Size::Heavy1, Size::Heavy5];

/// Name of uncompressed replies in the records.
pub(super) const NONE: &str = "none";

fn study(conditions: &Conditions<'_>, rounds: u64, length: Span) -> Result<Records, Failure> {
    let mut records = Records::new();
    records.set_parameter("runs of each, of which the least counts", rounds);
    records.set_parameter("length of a run", length);
    let mut table = RecordTable::new(["reply", "step", "bytes", "microseconds"]);
    let all = REPLIES.len() as u64;
    for (done, reply) in REPLIES.into_iter().enumerate() {
        conditions.progress.step(done as u64, all, reply.name());
        let testbed = Testbed::open(conditions, reply, "gzip, zstd, br")?;
        if done == 0 {
            testbed.describe(&mut records, conditions);
        }
        let steps = STEPS.map(|step| (step.name(), Wish::Always));
        for (step, wish) in steps.into_iter().chain([(NONE, Wish::Never)]) {
            let offered = if wish == Wish::Never {
                STEPS[0].name()
            } else {
                step
            };
            let menu = format!("[compression]\nsteps = [\"{offered}\"]");
            let proxy = testbed.gateway(1, &menu, "")?;
            let pace = Pace::Closed { clients: 1, length };
            let plan = testbed.plan(&proxy, &[(wish, 1.0)], Connections::KeepAlive, pace);
            let (mut bytes, mut least) = (f64::NAN, f64::INFINITY);
            for _ in 0..rounds {
                let before = proxy.compression()?;
                let Some(measured) = proxy.measure(&plan, conditions.stop)? else {
                    records.set_table("codecs", table);
                    return Ok(records);
                };
                let after = proxy.compression()?;
                let replies = after.replies - before.replies;
                (bytes, least) = match wish {
                    Wish::Never => (testbed.length as f64, least.min(measured.cost())),
                    _ => (
                        (after.bytes - before.bytes) / replies,
                        least.min((after.seconds - before.seconds) / replies),
                    ),
                };
            }
            table.push([
                reply.name().into(),
                step.into(),
                bytes.into(),
                (least * 1e6).into(),
            ]);
        }
    }
    records.set_table("codecs", table);
    Ok(records)
}

/// Bytes and seconds of CPU time of a step. The time is that of the compression; for [`NONE`], that of the whole
/// request.
pub(super) fn bytes_and_seconds(records: &Records, reply: Size, step: &str) -> (f64, f64) {
    let mut rows = records.table("codecs").rows();
    let row = rows.find(|row| row.text("reply") == reply.name() && row.text("step") == step);
    row.map_or((f64::NAN, f64::NAN), |row| {
        (row.number("bytes"), row.number("microseconds") / 1e6)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study;

    #[test]
    fn every_step_is_measured_for_every_reply() {
        let records = test_study::run(None, |conditions| {
            study(conditions, 1, Span::from_millis(20))
        });
        for reply in REPLIES {
            let (plain, _) = bytes_and_seconds(&records, reply, NONE);
            for step in STEPS {
                let (bytes, seconds) = bytes_and_seconds(&records, reply, step.name());
                assert!(
                    bytes < plain / 1.9 && seconds > 1e-6,
                    "{step} {bytes} {seconds}"
                );
            }
        }
    }
}
