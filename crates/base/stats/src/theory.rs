//! Exact results of queueing theory, as references for an instrument.
//!
//! First come first served, Poisson arrivals, one server except in M/M/c. Sojourn is waiting plus service, which a
//! client calls response time. Parameters are floats, because theory is a formula and not a record.

use posthaste_units::Span;

/// Poisson arrivals, exponential service times (Kleinrock, Queueing Systems I, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mm1 {
    load: f64,
    service: f64,
}

/// Poisson arrivals, constant service time.
#[derive(Clone, Debug, PartialEq)]
pub struct Md1 {
    load: f64,
    service: f64,
    /// P(at most n in the system) for n = 0, 1, ...
    occupancy: Vec<f64>,
}

/// Poisson arrivals, exponential service times, several servers with one queue (Kleinrock, section 3.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mmc {
    load: f64,
    service: f64,
    servers: u32,
    /// P(a request waits).
    waits: f64,
}

/// Poisson arrivals, exponential service times, capacity for K requests including the one in service (Kleinrock,
/// section 3.6). Further requests are rejected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mm1k {
    load: f64,
    service: f64,
    room: u32,
}

impl Mm1 {
    /// At `load` (arrival rate times mean service time), above 0 and below 1; otherwise `None`.
    pub fn new(load: f64, mean_service: Span) -> Option<Self> {
        stable(load).then(|| Self {
            load,
            service: mean_service.as_secs_f64(),
        })
    }

    /// Mean time from arrival to completion.
    pub fn mean_sojourn(&self) -> Span {
        Span::from_secs_f64(self.service / (1.0 - self.load))
    }

    /// The sojourn that a share `quantile` (below 1) of requests do not exceed. The sojourn is exponential.
    pub fn sojourn_quantile(&self, quantile: f64) -> Span {
        Span::from_secs_f64(-(-quantile).ln_1p() * self.service / (1.0 - self.load))
    }
}

impl Md1 {
    /// At `load` (arrival rate times service time), above 0 and at most 0.99; otherwise `None`.
    ///
    /// Computes the distribution of the number in the system once. Upward and downward crossings of level n balance,
    /// which gives P(n+1) as a sum of positive terms only. The textbook recursion subtracts, and loses all digits in
    /// the tail.
    pub fn new(load: f64, service: Span) -> Option<Self> {
        if !stable(load) || load > 0.99 {
            return None;
        }
        // P(more than k arrivals during a service), summed from the small end.
        let mut poisson = vec![(-load).exp()];
        while *poisson.last()? > 1e-40 {
            poisson.push(poisson.last()? * load / poisson.len() as f64);
        }
        let mut more = vec![0.0; poisson.len()];
        for k in (1..poisson.len()).rev() {
            more[k - 1] = more[k] + poisson[k];
        }
        let more = |k: usize| more.get(k).copied().unwrap_or(0.0);
        let mut exactly = vec![1.0 - load];
        while *exactly.last()? > 1e-16 * (1.0 - load) {
            let n = exactly.len() - 1;
            let crossing: f64 = (1..=n).map(|i| exactly[i] * more(n + 1 - i)).sum();
            exactly.push((exactly[0] * more(n) + crossing) / poisson[0]);
        }
        let occupancy = exactly
            .iter()
            .scan(0.0, |sum, p| {
                *sum += p;
                Some(*sum)
            })
            .collect();
        Some(Self {
            load,
            service: service.as_secs_f64(),
            occupancy,
        })
    }

    /// Mean time from arrival to completion (Pollaczek and Khinchine).
    pub fn mean_sojourn(&self) -> Span {
        Span::from_secs_f64(self.service * (1.0 + self.load / (2.0 * (1.0 - self.load))))
    }

    /// The share of requests that wait no longer than `wait` before their service begins.
    ///
    /// G. J. Franx, "A simple solution for the M/D/c waiting time distribution", Operations Research Letters 29 (2001),
    /// for c = 1: a sum over the number of waiting requests with positive terms only. Erlang's older formula alternates
    /// in sign and fails beyond some twenty service times. Both agree to 1e-10 where both work. Used up to load 0.95
    /// and the 0.999 quantile.
    pub fn waiting_cdf(&self, wait: Span) -> f64 {
        self.waiting_share(wait.as_secs_f64() / self.service)
    }

    /// The sojourn that a share `quantile` (below 1) of requests do not exceed.
    pub fn sojourn_quantile(&self, quantile: f64) -> Span {
        let (mut low, mut high) = (0.0, self.occupancy.len() as f64);
        if self.waiting_share(0.0) >= quantile {
            high = 0.0;
        }
        while high - low > 1e-12 * high {
            let middle = 0.5 * (low + high);
            if self.waiting_share(middle) < quantile {
                low = middle;
            } else {
                high = middle;
            }
        }
        Span::from_secs_f64((1.0 + high) * self.service)
    }

    /// P(waiting at most `services` service times).
    fn waiting_share(&self, services: f64) -> f64 {
        let whole = services.floor();
        let rest = self.load * (whole + 1.0 - services);
        let mut weight = (-rest).exp();
        let mut share = 0.0;
        // `rest` is the mean number of arrivals until the next whole service time, `step` their actual number. The
        // formula counts waiting requests; one more, the one in service, is in the system.
        for step in 0..=whole as usize {
            share += weight * self.at_most(whole as usize - step + 1);
            weight *= rest / (step + 1) as f64;
            if weight < 1e-18 {
                break;
            }
        }
        share.min(1.0)
    }

    fn at_most(&self, number: usize) -> f64 {
        self.occupancy.get(number).copied().unwrap_or(1.0)
    }
}

impl Mmc {
    /// At `load` (arrival rate times mean service time, divided by the number of servers), above 0 and below 1, with at
    /// least one server; otherwise `None`.
    pub fn new(load: f64, mean_service: Span, servers: u32) -> Option<Self> {
        if !stable(load) || servers == 0 {
            return None;
        }
        // Erlang's loss formula by its recursion over the number of servers, then the formula for delay.
        let offered = load * f64::from(servers);
        let loss = (1..=servers).fold(1.0, |loss, number| {
            offered * loss / (f64::from(number) + offered * loss)
        });
        Some(Self {
            load,
            service: mean_service.as_secs_f64(),
            servers,
            waits: loss / (1.0 - load * (1.0 - loss)),
        })
    }

    /// The share of requests that wait (Erlang's formula C).
    pub fn waiting(&self) -> f64 {
        self.waits
    }

    /// Mean time from arrival to completion.
    pub fn mean_sojourn(&self) -> Span {
        Span::from_secs_f64(self.service * (1.0 + self.waits / self.spare()))
    }

    /// The sojourn that a share `quantile` (below 1) of requests do not exceed.
    pub fn sojourn_quantile(&self, quantile: f64) -> Span {
        let beyond = 1.0 - quantile;
        let (mut low, mut high) = (0.0, 1.0);
        while self.beyond(high) > beyond {
            high *= 2.0;
        }
        while high - low > 1e-12 * high {
            let middle = 0.5 * (low + high);
            if self.beyond(middle) > beyond {
                low = middle;
            } else {
                high = middle;
            }
        }
        Span::from_secs_f64(high * self.service)
    }

    /// P(sojourn above `services` mean service times). The wait of those who wait is exponential with rate `spare`, the
    /// service with rate 1.
    fn beyond(&self, services: f64) -> f64 {
        let difference = self.spare() - 1.0;
        // (1 - exp(-difference * services)) / difference, also where the rates are equal.
        let ratio = if difference.abs() < 1e-9 {
            services
        } else {
            -(-difference * services).exp_m1() / difference
        };
        (-services).exp() * (1.0 + self.waits * ratio)
    }

    /// Unused capacity in servers: the rate of the exponential wait, per mean service time.
    fn spare(&self) -> f64 {
        f64::from(self.servers) * (1.0 - self.load)
    }
}

impl Mm1k {
    /// At `load` above 0 (it may exceed 1), with capacity for `room` >= 1 requests; otherwise `None`.
    pub fn new(load: f64, mean_service: Span, room: u32) -> Option<Self> {
        (load.is_finite() && load > 0.0 && room > 0).then(|| Self {
            load,
            service: mean_service.as_secs_f64(),
            room,
        })
    }

    /// The share of rejected requests.
    pub fn blocking(&self) -> f64 {
        // In this form neither a small load to a high power nor load 1 loses digits.
        let (log, states) = (self.load.ln(), f64::from(self.room) + 1.0);
        if log == 0.0 {
            return 1.0 / states;
        }
        (-log).exp_m1() / (-states * log).exp_m1()
    }

    /// Mean time from arrival to completion of the admitted requests, by Little's law.
    pub fn mean_sojourn(&self) -> Span {
        let accepted = self.load * (1.0 - self.blocking());
        Span::from_secs_f64(self.mean_number() * self.service / accepted)
    }

    /// Mean number in the system.
    fn mean_number(&self) -> f64 {
        let (log, room) = (self.load.ln(), f64::from(self.room));
        if (log * (room + 1.0)).abs() < 1e-3 {
            // The formula below is a difference of two poles at load 1. This is its expansion there.
            return room / 2.0 + room * (room + 2.0) / 12.0 * log;
        }
        1.0 / (-log).exp_m1() - (room + 1.0) / (-(room + 1.0) * log).exp_m1()
    }
}

fn stable(load: f64) -> bool {
    load > 0.0 && load < 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: Span = Span::from_millis(10);

    /// Erlang's alternating sum (1909), accurate while few terms are large.
    fn erlang(load: f64, services: f64) -> f64 {
        let sum: f64 = (0..=services.floor() as usize)
            .map(|k| {
                let x = load * (k as f64 - services);
                let factorial: f64 = (1..=k).map(|i| i as f64).product();
                x.powi(k as i32) / factorial * (-x).exp()
            })
            .sum();
        (1.0 - load) * sum
    }

    #[test]
    fn waiting_agrees_with_the_alternating_sum_where_that_is_stable() {
        for load in [0.1, 0.5, 0.7, 0.9] {
            let queue = Md1::new(load, SERVICE).unwrap();
            for tenths in 0..80 {
                let (wait, services) = (Span::from_millis(tenths), tenths as f64 / 10.0);
                let (found, truth) = (queue.waiting_cdf(wait), erlang(load, services));
                assert!(
                    (found - truth).abs() < 1e-10,
                    "{load} {services}: {found} {truth}"
                );
            }
        }
    }

    #[test]
    fn deterministic_tail_is_stable_at_high_load() {
        // Far out the tail is geometric: its rate solves load * (e^d - 1) = d.
        let load = 0.95;
        let queue = Md1::new(load, SERVICE).unwrap();
        let tail = |services: u64| 1.0 - queue.waiting_cdf(SERVICE * services);
        let per_service = (tail(60) / tail(80)).ln() / 20.0;
        let residual = load * (per_service.exp() - 1.0) - per_service;
        assert!(residual.abs() < 1e-6, "decay {per_service}: {residual}");
        let p999 = queue.sojourn_quantile(0.999);
        assert!((1.0 - queue.waiting_cdf(p999.saturating_sub(SERVICE)) - 1e-3).abs() < 1e-8);
    }

    #[test]
    fn means_agree_with_distributions() {
        for load in [0.3, 0.7, 0.95] {
            let queue = Md1::new(load, SERVICE).unwrap();
            // The mean is the integral of the quantile over all shares (midpoint rule).
            let steps = 20_000;
            let quantile = |i| (f64::from(i) + 0.5) / f64::from(steps);
            let sum: f64 = (0..steps)
                .map(|i| queue.sojourn_quantile(quantile(i)).as_secs_f64())
                .sum();
            let error = sum / f64::from(steps) / queue.mean_sojourn().as_secs_f64() - 1.0;
            assert!(error.abs() < 1e-3, "load {load}: {error}");
        }
    }

    #[test]
    fn exponential_sojourn_has_known_quantiles() {
        let queue = Mm1::new(0.5, SERVICE).unwrap();
        assert_eq!(queue.mean_sojourn(), Span::from_millis(20));
        let p99 = queue.sojourn_quantile(0.99).as_millis_f64();
        assert!((p99 - 20.0 * 100f64.ln()).abs() < 1e-5, "{p99}");
    }

    #[test]
    fn several_servers_agree_with_one_and_with_tables() {
        for load in [0.1, 0.5, 0.9] {
            let (one, other) = (
                Mmc::new(load, SERVICE, 1).unwrap(),
                Mm1::new(load, SERVICE).unwrap(),
            );
            assert_eq!(one.mean_sojourn(), other.mean_sojourn());
            for quantile in [0.5, 0.99, 0.999] {
                let ratio = one.sojourn_quantile(quantile).as_secs_f64()
                    / other.sojourn_quantile(quantile).as_secs_f64();
                assert!((ratio - 1.0).abs() < 1e-6, "{load} {quantile}: {ratio}");
            }
        }
        // Two servers: 2 load^2 / (1 + load) of the requests wait.
        let two = Mmc::new(0.5, SERVICE, 2).unwrap();
        assert!((two.waiting() - 1.0 / 3.0).abs() < 1e-12);
        // Both rates of the sojourn are equal: P(T > t) = (1 + waits t) exp(-t).
        let t = two.sojourn_quantile(0.99).as_secs_f64() / SERVICE.as_secs_f64();
        assert!(((1.0 + t / 3.0) * (-t).exp() - 0.01).abs() < 1e-6, "{t}");
    }

    #[test]
    fn room_decides_who_is_turned_away() {
        let one = Mm1k::new(0.5, SERVICE, 1).unwrap();
        assert!(
            (one.blocking() - 0.5 / 1.5).abs() < 1e-12,
            "Erlang's loss formula"
        );
        assert_eq!(one.mean_sojourn(), SERVICE);
        let full = Mm1k::new(1.0, SERVICE, 4).unwrap();
        assert!((full.blocking() - 0.2).abs() < 1e-12);
        assert_eq!(full.mean_sojourn(), Span::from_millis(25));
        let near = Mm1k::new(1.0 + 1e-4, SERVICE, 30).unwrap();
        let exact = Mm1k::new(1.0, SERVICE, 30).unwrap();
        assert!(
            (near.mean_sojourn().as_secs_f64() / exact.mean_sojourn().as_secs_f64() - 1.0).abs()
                < 1e-3
        );
        let wide = Mm1k::new(0.7, SERVICE, 10_000).unwrap();
        assert!(wide.blocking() < 1e-300);
        assert_eq!(
            wide.mean_sojourn(),
            Mm1::new(0.7, SERVICE).unwrap().mean_sojourn()
        );
        let flooded = Mm1k::new(50.0, SERVICE, 1_000_000).unwrap();
        assert!((flooded.blocking() - 0.98).abs() < 1e-12);
    }

    #[test]
    fn impossible_queues_are_refused() {
        for load in [0.0, -1.0, 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Mm1::new(load, SERVICE), None);
            assert_eq!(Md1::new(load, SERVICE), None);
            assert_eq!(Mmc::new(load, SERVICE, 2), None);
        }
        assert_eq!(Mmc::new(0.5, SERVICE, 0), None);
        assert_eq!(Mm1k::new(f64::NAN, SERVICE, 3), None);
        assert_eq!(Mm1k::new(0.5, SERVICE, 0), None);
    }
}
