//! The table of misbehaviours, from which parser, printer, errors and documentation derive.

use crate::law::MAX_SERVERS;
use crate::misbehaviour::{Autoscale, Cold, ErrorShare, Hysteresis, Stall, TokenBucket, Warm};
use crate::spec::ServiceSpec;
use crate::values::{
    read_count, read_factor, read_percent, read_rate, read_span, split, write_percent, write_rate,
    write_span,
};

/// A misbehaviour in the text of a service.
pub struct Misbehaviour {
    /// Word before the equals sign.
    pub name: &'static str,
    /// A valid example.
    pub example: &'static str,
    /// Effect, units and limits.
    pub effect: &'static str,
    /// Sets the value. The error is the reason, without the text.
    pub(crate) read: fn(&mut ServiceSpec, &str) -> Result<(), String>,
    /// Prints the value, if it is set and this is its canonical name.
    pub(crate) write: fn(&ServiceSpec) -> Option<String>,
}

/// All misbehaviours, in the order in which a spec prints them.
pub const MISBEHAVIOURS: &[Misbehaviour] = &[
    Misbehaviour {
        name: "stall",
        example: "stall=300ms/30s",
        effect: "The whole service pauses for a time, once per period, first one period after its start. \
                 Refusals wait as well.",
        read: read_stall,
        write: |spec| {
            let stall = spec.stall?;
            Some(format!(
                "{}/{}",
                write_span(stall.lasting),
                write_span(stall.period)
            ))
        },
    },
    Misbehaviour {
        name: "queue",
        example: "queue=50",
        effect: "At most this many requests in the system (1 to 65536). Further ones get 503 at once.",
        read: |spec, text| {
            let limit = read_count(text, "the limit", 1..=MAX_SERVERS)?;
            put(&mut spec.queue, limit)
        },
        write: |spec| spec.queue.map(|limit| limit.to_string()),
    },
    Misbehaviour {
        name: "limit",
        example: "limit=100/s:5",
        effect: "A token bucket with this rate and burst (1 to 1000000), full at the start. Requests without a token \
                 get 429 at once.",
        read: read_limit,
        write: |spec| {
            let limit = spec.limit?;
            Some(format!("{}:{}", write_rate(limit.rate), limit.burst))
        },
    },
    Misbehaviour {
        name: "bucket",
        example: "bucket=100/s:50",
        effect: "Another name of limit.",
        read: read_limit,
        write: |_| None,
    },
    Misbehaviour {
        name: "collapse",
        example: "collapse=100/s",
        effect: "Congestion collapse. While more than this many requests arrived in the last second, the service times \
                 of arriving requests grow: at x times this rate, it completes 1/x of it.",
        read: |spec, text| {
            let rate = read_rate(text)?;
            put(&mut spec.collapse, rate)
        },
        write: |spec| spec.collapse.map(write_rate),
    },
    Misbehaviour {
        name: "hysteresis",
        example: "hysteresis=150/s:60/s:2x",
        effect: "Service times are longer by the factor from the moment when more than the first rate arrived in the \
                 last second, until fewer than the second rate did.",
        read: read_hysteresis,
        write: |spec| {
            let h = spec.hysteresis?;
            let (above, below) = (write_rate(h.above), write_rate(h.below));
            Some(format!("{above}:{below}:{}x", h.factor))
        },
    },
    Misbehaviour {
        name: "cold",
        example: "cold=5x/3s",
        effect: "Service times are longer by the factor in the first active time.",
        read: |spec, text| {
            let [factor, lasting] = split(text, '/', "FACTORx/TIME")?;
            let (factor, lasting) = (read_factor(&factor)?, read_span(&lasting)?);
            put(&mut spec.cold, Cold { factor, lasting })
        },
        write: |spec| {
            let cold = spec.cold?;
            Some(format!("{}x/{}", cold.factor, write_span(cold.lasting)))
        },
    },
    Misbehaviour {
        name: "warm",
        example: "warm=2x/8s",
        effect: "Service times are shorter by the factor after this active time.",
        read: |spec, text| {
            let [factor, after] = split(text, '/', "FACTORx/TIME")?;
            let (factor, after) = (read_factor(&factor)?, read_span(&after)?);
            put(&mut spec.warm, Warm { factor, after })
        },
        write: |spec| {
            let warm = spec.warm?;
            Some(format!("{}x/{}", warm.factor, write_span(warm.after)))
        },
    },
    Misbehaviour {
        name: "drift",
        example: "drift=10%/min",
        effect: "Service times grow by this share of the initial ones with each active minute.",
        read: |spec, text| {
            let per_minute = text.strip_suffix("/min").ok_or("it ends with /min")?;
            let share = read_percent(per_minute)?;
            put(&mut spec.drift, share)
        },
        write: |spec| Some(format!("{}/min", write_percent(spec.drift?))),
    },
    Misbehaviour {
        name: "autoscale",
        example: "autoscale=4/10s",
        effect: "Up to this many servers. After each interval one is added if the work that arrived is above 80 % of \
                 what the servers can do, and one is removed if the others have less than 60 %. Waiting requests stay \
                 with their server.",
        read: |spec, text| {
            let [most, every] = split(text, '/', "SERVERS/TIME")?;
            let most = read_count(&most, "the number of servers", 2..=MAX_SERVERS)?;
            let every = read_span(&every)?;
            put(&mut spec.autoscale, Autoscale { most, every })
        },
        write: |spec| {
            let scale = spec.autoscale?;
            Some(format!("{}/{}", scale.most, write_span(scale.every)))
        },
    },
    Misbehaviour {
        name: "hang",
        example: "hang=2%",
        effect: "This share of the requests is never answered. They use no service time.",
        read: |spec, text| {
            let share = read_percent(text)?;
            put(&mut spec.hang, share)
        },
        write: |spec| spec.hang.map(write_percent),
    },
    Misbehaviour {
        name: "error",
        example: "error=1%:500",
        effect: "This share of the requests gets the status (400 to 599) after its service time.",
        read: |spec, text| {
            let [share, status] = split(text, ':', "SHARE%:STATUS")?;
            let share = read_percent(&share)?;
            let status = read_count(&status, "the status", 400..=599)? as u16;
            put(&mut spec.error, ErrorShare { share, status })
        },
        write: |spec| {
            let error = spec.error?;
            Some(format!("{}:{}", write_percent(error.share), error.status))
        },
    },
];

fn put<T>(slot: &mut Option<T>, value: T) -> Result<(), String> {
    if slot.replace(value).is_some() {
        return Err("it is given twice: leave one out".to_owned());
    }
    Ok(())
}

fn read_stall(spec: &mut ServiceSpec, text: &str) -> Result<(), String> {
    let [lasting, period] = split(text, '/', "TIME/PERIOD")?;
    let (lasting, period) = (read_span(&lasting)?, read_span(&period)?);
    if lasting >= period {
        return Err("the pause is as long as its period: write a longer period".to_owned());
    }
    put(&mut spec.stall, Stall { lasting, period })
}

fn read_limit(spec: &mut ServiceSpec, text: &str) -> Result<(), String> {
    let [rate, burst] = split(text, ':', "RATE:BURST")?;
    let rate = read_rate(&rate)?;
    let burst = read_count(&burst, "the burst", 1..=1_000_000)?;
    put(&mut spec.limit, TokenBucket { rate, burst })
}

fn read_hysteresis(spec: &mut ServiceSpec, text: &str) -> Result<(), String> {
    let [above, below, factor] = split(text, ':', "RATE:LOWER_RATE:FACTORx")?;
    let (above, below, factor) = (
        read_rate(&above)?,
        read_rate(&below)?,
        read_factor(&factor)?,
    );
    if below >= above {
        return Err(
            "the second rate is not below the first: write the lower one second".to_owned(),
        );
    }
    put(
        &mut spec.hysteresis,
        Hysteresis {
            above,
            below,
            factor,
        },
    )
}
