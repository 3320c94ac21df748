//! News for visitors: changes of controls, and state changes of the system.

use crate::controls::{AdmissionPolicy, CAPACITY, Controls, KINDS, euros};
use crate::sample::Sample;

/// Minimum seconds between two reports of one alert. A price near a budget would otherwise cause one every second.
const REST: f64 = 5.0;

/// An alert: a condition with hysteresis, so that it does not flap.
#[derive(Clone, Copy, Debug)]
struct Alert {
    holds: bool,
    reported_at: f64,
}

/// State of all alerts.
#[derive(Debug)]
pub(crate) struct Alerts {
    above_maximum: [Alert; KINDS.len()],
    failing: Alert,
}

impl Alert {
    const NOT: Self = Self {
        holds: false,
        reported_at: f64::NEG_INFINITY,
    };

    /// Updates the alert: on above `high`, off below `low`. Returns true if it changed.
    fn changes_at(&mut self, at: f64, value: f64, low: f64, high: f64) -> bool {
        let holds = if self.holds {
            value >= low
        } else {
            value > high
        };
        let turns = holds != self.holds && at - self.reported_at >= REST;
        if turns {
            *self = Self {
                holds,
                reported_at: at,
            };
        }
        turns
    }
}

impl Alerts {
    pub(crate) const fn new() -> Self {
        Self {
            above_maximum: [Alert::NOT; KINDS.len()],
            failing: Alert::NOT,
        }
    }

    /// News of this second.
    pub(crate) fn observe(&mut self, sample: &Sample, controls: &Controls) -> Vec<String> {
        let mut news = Vec::new();
        for (index, name) in KINDS.iter().enumerate() {
            let ends = &sample.kinds[index];
            let pays = match controls.clients[index].budget {
                Some(cents) => format!("{} EUR", euros(cents)),
                None => "any price".to_owned(),
            };
            let share = ends.dear / ends.all().max(1e-9);
            let alert = &mut self.above_maximum[index];
            if sample.price.is_none() {
                // Without a price nothing exceeds a maximum. The change of protection has been reported already.
                alert.holds = false;
            } else if ends.all() > 0.0 && alert.changes_at(sample.at, share, 0.2, 0.8) {
                news.push(if alert.holds {
                    format!("{name}s stay away: it costs more than {pays}.")
                } else {
                    format!("{name}s are back: they pay {pays}.")
                });
            }
        }
        let all: f64 = sample.kinds.iter().map(|ends| ends.all()).sum();
        let failed: f64 = sample.kinds.iter().map(|ends| ends.failed).sum();
        let share = failed / all.max(1e-9);
        if all > 0.0 && self.failing.changes_at(sample.at, share, 0.02, 0.2) {
            news.push(if self.failing.holds {
                format!(
                    "{:.0} % of the requests have no reply in time.",
                    share * 100.0
                )
            } else {
                "Replies come in time again.".to_owned()
            });
        }
        news
    }
}

/// News about controls that a visitor changed.
pub(crate) fn changes(before: &Controls, now: &Controls) -> Vec<String> {
    let mut news = Vec::new();
    if now.demand != before.demand {
        let share = now.demand * 100 / CAPACITY;
        let demand = now.demand;
        news.push(format!(
            "Demand: {demand} requests/s, {share} % of what the shop can do."
        ));
    }
    if now.protection != before.protection {
        let new = match now.protection {
            AdmissionPolicy::None => "none, so that every request is admitted",
            other => other.label(),
        };
        news.push(format!("Protection: {new}. A new gateway took over."));
    }
    if now.compression != before.compression {
        news.push(format!("Compression: {}.", now.compression));
    }
    for ((name, was), is) in KINDS.iter().zip(before.clients).zip(now.clients) {
        if is.budget != was.budget {
            let pays = match is.budget {
                Some(cents) => format!("up to {} EUR", euros(cents)),
                None => "any price".to_owned(),
            };
            news.push(format!("{name}s pay {pays}."));
        }
        if is.network != was.network {
            news.push(format!("{name}s come by {}.", is.network.label()));
        }
        if is.wish != was.wish {
            news.push(format!("{name}s wish compression: {}.", is.wish));
        }
        if is.mark != was.mark {
            news.push(format!("{name}s ask for packets marked {}.", is.mark));
        }
    }
    news
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use crate::sample::{CounterValues, KindOutcomes};

    fn second(at: f64, dear: f64) -> Sample {
        let metrics = Metrics::read("posthaste_gateway_price 0.2\n");
        let mut sample = Sample::from_metrics(
            &metrics,
            &mut CounterValues::default(),
            &Controls::default(),
        );
        sample.at = at;
        sample.kinds[0] = KindOutcomes {
            served: 10.0 - dear,
            dear,
            ..KindOutcomes::default()
        };
        sample
    }

    #[test]
    fn a_turn_is_told_once_and_not_before_a_rest() {
        let mut alerts = Alerts::new();
        let mut news_at = |at, dear| {
            alerts
                .observe(&second(at, dear), &Controls::default())
                .join(" ")
        };
        assert_eq!(news_at(1.0, 5.0), "");
        assert_eq!(
            news_at(2.0, 9.0),
            "Phones stay away: it costs more than 0.10 EUR."
        );
        assert_eq!(news_at(3.0, 9.0), "");
        assert_eq!(news_at(4.0, 0.0), "", "too soon");
        assert_eq!(news_at(7.0, 3.0), "", "between the bounds");
        assert_eq!(news_at(8.0, 0.0), "Phones are back: they pay 0.10 EUR.");
    }

    #[test]
    fn without_a_price_nobody_comes_back() {
        let mut alerts = Alerts::new();
        let controls = Controls::default();
        assert_eq!(alerts.observe(&second(1.0, 9.0), &controls).len(), 1);
        let mut free = second(9.0, 0.0);
        free.price = None;
        assert_eq!(alerts.observe(&free, &controls), Vec::<String>::new());
        assert_eq!(
            alerts.observe(&second(20.0, 0.0), &controls),
            Vec::<String>::new()
        );
    }

    #[test]
    fn each_change_has_its_words() {
        let before = Controls::default();
        let mut now = before;
        assert_eq!(changes(&before, &now), Vec::<String>::new());
        now.demand = 200;
        now.protection = AdmissionPolicy::None;
        now.clients[0].budget = None;
        let news = changes(&before, &now);
        assert_eq!(news.len(), 3);
        assert!(news[0].contains("200 %"), "{}", news[0]);
        assert_eq!(news[2], "Phones pay any price.");
    }
}
