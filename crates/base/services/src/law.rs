//! Laws of service times, with their servers.

use std::fmt;

use posthaste_units::{Span, Stream};
use rand::RngExt as _;
use rand_distr::{Exp1, StandardNormal};

use crate::values::{
    Percent, read_count, read_number, read_percent, read_span, write_percent, write_span,
};

/// The largest number of servers, and the largest K.
pub(crate) const MAX_SERVERS: u32 = 65_536;

/// A law of service times and the number of servers. Times are drawn independently for each request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServiceLaw {
    /// M/D/1: constant service time, one server.
    Md1(Span),
    /// M/M/1: exponential service time with this mean, one server.
    Mm1(Span),
    /// M/M/1/K: exponential service time, and at most `capacity` requests in the system, at least 2. Further requests
    /// are never answered, as if their connection were not accepted.
    Mm1k {
        /// Mean service time.
        mean: Span,
        /// K: one in service, the others waiting.
        capacity: u32,
    },
    /// M/M/c: exponential service time, several servers and one queue.
    Mmc {
        /// Mean service time.
        mean: Span,
        /// Number of servers.
        servers: u32,
    },
    /// Two constant service times, one server.
    Bimodal {
        /// Service time of most requests.
        short: Span,
        /// Service time of the others.
        long: Span,
        /// Share of the others.
        long_share: Percent,
    },
    /// Lognormal service time, one server.
    Lognormal {
        /// Mean service time.
        mean: Span,
        /// Standard deviation divided by the mean, above 0 and at most 10.
        variation: f64,
    },
    /// Constant service time for any number of requests at once: nothing waits.
    Unlimited(Span),
}

/// A law in the text of a service.
#[derive(Clone, Copy, Debug)]
pub struct LawForm {
    /// First word of the text.
    pub name: &'static str,
    /// A valid example.
    pub example: &'static str,
    /// Meaning, units and limits.
    pub effect: &'static str,
}

/// All laws. The parser's errors and the documentation derive from this table.
pub const LAWS: &[LawForm] = &[
    LawForm {
        name: "md1",
        example: "md1:5ms",
        effect: "One server, constant service time.",
    },
    LawForm {
        name: "mm1",
        example: "mm1:5ms",
        effect: "One server, exponential service time with this mean.",
    },
    LawForm {
        name: "mm1k",
        example: "mm1k:5ms:10",
        effect: "As mm1, with at most K requests in the system (2 to 65536). Further requests are never answered.",
    },
    LawForm {
        name: "mmc",
        example: "mmc:20ms:4",
        effect: "Several servers (1 to 65536) with one queue, exponential service time with this mean.",
    },
    LawForm {
        name: "bimodal",
        example: "bimodal:5ms:50ms:10%",
        effect: "One server, constant service time; a share of the requests has the second, longer one.",
    },
    LawForm {
        name: "lognormal",
        example: "lognormal:5ms:1.5",
        effect: "One server, lognormal service time with this mean and coefficient of variation (above 0, at most 10).",
    },
    LawForm {
        name: "inf",
        example: "inf:2ms",
        effect: "Any number of servers, constant service time. Nothing waits.",
    },
];

impl ServiceLaw {
    /// Mean service time.
    pub fn mean(self) -> Span {
        match self {
            Self::Md1(mean)
            | Self::Mm1(mean)
            | Self::Mm1k { mean, .. }
            | Self::Mmc { mean, .. }
            | Self::Lognormal { mean, .. }
            | Self::Unlimited(mean) => mean,
            Self::Bimodal {
                short,
                long,
                long_share,
            } => {
                let (p, q) = (long_share.share(), 1.0 - long_share.share());
                Span::from_secs_f64(q * short.as_secs_f64() + p * long.as_secs_f64())
            }
        }
    }

    /// Number of servers. `None` if unlimited.
    pub const fn servers(self) -> Option<u32> {
        match self {
            Self::Mmc { servers, .. } => Some(servers),
            Self::Unlimited(_) => None,
            _ => Some(1),
        }
    }

    /// The highest rate of completions, per second. `None` if unlimited.
    pub fn capacity(self) -> Option<f64> {
        let servers = self.servers()?;
        Some(f64::from(servers) / self.mean().as_secs_f64())
    }

    /// Draws a service time.
    pub fn draw(self, random: &mut Stream) -> Span {
        let nanos = |times: f64, mean: Span| (times * mean.as_nanos() as f64) as u64;
        Span::from_nanos(match self {
            Self::Md1(time) | Self::Unlimited(time) => time.as_nanos(),
            Self::Mm1(mean) | Self::Mm1k { mean, .. } | Self::Mmc { mean, .. } => {
                nanos(random.sample(Exp1), mean)
            }
            Self::Bimodal {
                short,
                long,
                long_share,
            } => {
                let is_long = random.random::<f64>() < long_share.share();
                if is_long { long } else { short }.as_nanos()
            }
            Self::Lognormal { mean, variation } => {
                let variance = (variation * variation).ln_1p();
                let normal: f64 = random.sample(StandardNormal);
                nanos((variance.sqrt() * normal - variance / 2.0).exp(), mean)
            }
        })
    }

    /// The same law with all times multiplied.
    pub fn scaled(self, factor: f64) -> Self {
        let times = |time: Span| Span::from_secs_f64(time.as_secs_f64() * factor);
        match self {
            Self::Md1(time) => Self::Md1(times(time)),
            Self::Mm1(mean) => Self::Mm1(times(mean)),
            Self::Mm1k { mean, capacity } => Self::Mm1k {
                mean: times(mean),
                capacity,
            },
            Self::Mmc { mean, servers } => Self::Mmc {
                mean: times(mean),
                servers,
            },
            Self::Bimodal {
                short,
                long,
                long_share,
            } => Self::Bimodal {
                short: times(short),
                long: times(long),
                long_share,
            },
            Self::Lognormal { mean, variation } => Self::Lognormal {
                mean: times(mean),
                variation,
            },
            Self::Unlimited(time) => Self::Unlimited(times(time)),
        }
    }

    /// Reads a law. The error is the reason, without the text.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some(form) = LAWS.iter().find(|form| form.name == name) else {
            let nearest = nearest(name, LAWS.iter().map(|form| form.name));
            let hint = nearest.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let names: Vec<_> = LAWS.iter().map(|form| form.name).collect();
            return Err(format!("it starts with {}{hint}", names.join(", ")));
        };
        let parts: Vec<&str> = rest.split(':').collect();
        let wanted = form.example.split(':').count() - 1;
        if rest.is_empty() {
            return Err("no time".to_owned());
        }
        if parts.len() != wanted {
            return Err(format!(
                "{name} has {wanted} values as in {}, not {}",
                form.example,
                parts.len()
            ));
        }
        let time = read_span(parts[0])?;
        match name {
            "md1" => Ok(Self::Md1(time)),
            "mm1" => Ok(Self::Mm1(time)),
            "mm1k" => Ok(Self::Mm1k {
                mean: time,
                capacity: read_count(parts[1], "K", 2..=MAX_SERVERS)?,
            }),
            "mmc" => Ok(Self::Mmc {
                mean: time,
                servers: read_count(parts[1], "the number of servers", 1..=MAX_SERVERS)?,
            }),
            "bimodal" => Ok(Self::Bimodal {
                short: time,
                long: read_span(parts[1])?,
                long_share: read_percent(parts[2])?,
            }),
            "lognormal" => {
                let variation = read_number(parts[1]).filter(|v| *v > 0.0 && *v <= 10.0);
                let wrong = "the coefficient of variation is above 0 and at most 10";
                Ok(Self::Lognormal {
                    mean: time,
                    variation: variation.ok_or(wrong)?,
                })
            }
            "inf" => Ok(Self::Unlimited(time)),
            _ => unreachable!("every name of the table has its arm"),
        }
    }
}

/// The name most like `word`, if one is alike.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(likeness, _)| *likeness > 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

impl fmt::Display for ServiceLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Md1(time) => write!(f, "md1:{}", write_span(*time)),
            Self::Mm1(mean) => write!(f, "mm1:{}", write_span(*mean)),
            Self::Mm1k { mean, capacity } => write!(f, "mm1k:{}:{capacity}", write_span(*mean)),
            Self::Mmc { mean, servers } => write!(f, "mmc:{}:{servers}", write_span(*mean)),
            Self::Bimodal {
                short,
                long,
                long_share,
            } => {
                let share = write_percent(*long_share);
                write!(
                    f,
                    "bimodal:{}:{}:{share}",
                    write_span(*short),
                    write_span(*long)
                )
            }
            Self::Lognormal { mean, variation } => {
                write!(f, "lognormal:{}:{variation}", write_span(*mean))
            }
            Self::Unlimited(time) => write!(f, "inf:{}", write_span(*time)),
        }
    }
}
