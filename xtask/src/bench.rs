//! Benchmarks: what is promised, measured side by side with peers in one run.
//!
//! A shared machine drifts, so that what is compared runs in turns (A B A B) and medians are
//! taken. CPU time is a process's own, which holds even where rates do not.

mod compare;
mod cost;
mod durability;
mod emulator;
mod figures;
mod find;
mod gate;
mod lookups;
mod marking;
mod oracle;
mod past_limit;
pub(crate) mod pinned;
mod proxies;
mod reply;
mod schedule;
mod simulate;
mod tails;
mod visible;
mod witness;

use std::process::ExitCode;

use crate::checkout::{Build, Checkout};
use crate::site::Site;
use crate::trouble::{Outcome, Trouble};

/// One benchmark.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    run: fn(&Bench) -> Outcome<Vec<Row>>,
}

const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "overload",
        about: "3 to 25 times a server's capacity, a connection per request: nothing left unsent",
        run: past_limit::overload,
    },
    Benchmark {
        name: "frozen",
        about: "a server asleep 1 s in every 10 s: the percentiles are the computed ones",
        run: past_limit::frozen,
    },
    Benchmark {
        name: "arrivals",
        about: "how even 1,000/s leaves on an idle core, and how late; whether Poisson arrivals are",
        run: schedule::arrivals,
    },
    Benchmark {
        name: "cpu",
        about: "the generator's CPU time per request against wrk's",
        run: cost::cpu,
    },
    Benchmark {
        name: "memory",
        about: "the generator's memory after one and after five million requests",
        run: cost::memory,
    },
    Benchmark {
        name: "oracle",
        about: "what load reports of a server with a known law, against queueing theory (two hours)",
        run: oracle::coverage,
    },
    Benchmark {
        name: "limit",
        about: "the same near the limit, where little errors show (half an hour)",
        run: oracle::limit,
    },
    Benchmark {
        name: "find",
        about: "the capacity --find reports of a server with a known law (12 minutes)",
        run: find::wire,
    },
    Benchmark {
        name: "find-virtual",
        about: "the same in virtual time, 1,000 searches a law: bias, coverage and width of the intervals",
        run: find::in_virtual_time,
    },
    Benchmark {
        name: "compare",
        about: "verdicts of compare beside busy processes: false alarms and slowdowns found (a quarter of an hour)",
        run: compare::wire,
    },
    Benchmark {
        name: "compare-virtual",
        about: "the same in virtual time, a thousand pairs of each kind",
        run: compare::in_virtual_time,
    },
    Benchmark {
        name: "gsoap",
        about: "the bookshop's CPU time per SOAP reply against a gSOAP server's",
        run: reply::gsoap,
    },
    Benchmark {
        name: "page",
        about: "the bookshop's capacity as a Web service against as a page",
        run: reply::page,
    },
    Benchmark {
        name: "delay",
        about: "how exactly emulated packets arrive: every core busy, and without privilege (wants an idle machine)",
        run: emulator::delay,
    },
    Benchmark {
        name: "flows",
        about: "the same for 256 and 1,024 flows on lines of their own",
        run: emulator::flows,
    },
    Benchmark {
        name: "rate",
        about: "an emulated bandwidth over each second, beside the kernel's token bucket filter",
        run: emulator::rate,
    },
    Benchmark {
        name: "capacity",
        about: "how many of the largest packets a second one emulator passes on, none lost",
        run: emulator::capacity,
    },
    Benchmark {
        name: "positions",
        about: "a million packets: exactly the planned ones are missing, and the trace says so",
        run: emulator::positions,
    },
    Benchmark {
        name: "toxiproxy",
        about: "delay and throughput through an emulated network and through toxiproxy",
        run: emulator::toxiproxy,
    },
    Benchmark {
        name: "simulate",
        about: "simulated transactions a second on one core, and beside ns-3",
        run: simulate::simulate,
    },
    Benchmark {
        name: "proxies",
        about: "the gateway's CPU time per request beside HAProxy's, nginx's and Envoy's, plain and gzip",
        run: proxies::proxies,
    },
    Benchmark {
        name: "tails",
        about: "how soon replies come through the gateway, HAProxy and nginx where it is 70 % busy, at work and just begun",
        run: tails::tails,
    },
    Benchmark {
        name: "gate",
        about: "the gateway under load beside HAProxy and nginx: who compresses how much, at which tail (half an hour)",
        run: gate::gate,
    },
    Benchmark {
        name: "marking",
        about: "what it costs the gateway to mark replies",
        run: marking::marking,
    },
    Benchmark {
        name: "lookups",
        about: "the broker's lookups beside SQLite and PostgreSQL asked for each request, 27 to a million offers, in turns",
        run: lookups::lookups,
    },
    Benchmark {
        name: "durability",
        about: "a broker killed at 1,000 random moments while it publishes, over SQLite and PostgreSQL (six minutes)",
        run: durability::durability,
    },
    Benchmark {
        name: "visible",
        about: "from publishing at one broker to the stream of changes of another, both on one PostgreSQL",
        run: visible::visible,
    },
    Benchmark {
        name: "newcomer",
        about: "from a fresh clone to the report: build and run",
        run: cost::newcomer,
    },
];

/// A site with a release build, plain or profiled, and how thorough to be.
pub(crate) struct Bench {
    pub(crate) site: Site,
    pub(crate) quick: bool,
}

impl Bench {
    /// The first when thorough, the second when quick.
    pub(crate) fn or_quick<T>(&self, thorough: T, quick: T) -> T {
        if self.quick { quick } else { thorough }
    }
}

/// One line of a table.
pub(crate) struct Row {
    what: String,
    measured: String,
    bar: String,
    holds: Option<bool>,
}

impl Row {
    /// A measurement with a bar that it meets or does not.
    pub(crate) fn judged(
        what: impl Into<String>,
        measured: impl Into<String>,
        bar: impl Into<String>,
        holds: bool,
    ) -> Self {
        Self {
            what: what.into(),
            measured: measured.into(),
            bar: bar.into(),
            holds: Some(holds),
        }
    }

    /// A measurement without a bar of its own.
    pub(crate) fn told(what: impl Into<String>, measured: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            measured: measured.into(),
            bar: String::new(),
            holds: None,
        }
    }
}

/// Prints the benchmarks.
pub(crate) fn list() {
    for Benchmark { name, about, .. } in BENCHMARKS {
        println!("{name:12} {about}");
    }
}

/// Runs all benchmarks or one; fails when a bar is missed.
pub(crate) fn run(
    checkout: Checkout,
    build: Build,
    name: Option<&str>,
    quick: bool,
) -> Outcome<ExitCode> {
    let chosen: Vec<&Benchmark> = BENCHMARKS
        .iter()
        .filter(|benchmark| name.is_none_or(|name| name == benchmark.name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
        return Err(Trouble::Failed(format!(
            "no such benchmark; there are {}",
            names.join(", ")
        )));
    }
    let bench = Bench {
        site: Site::new(checkout, build)?,
        quick,
    };
    let mut all_hold = true;
    for benchmark in chosen {
        println!("\n### {}\n\n{}.\n", benchmark.name, benchmark.about);
        match (benchmark.run)(&bench) {
            Ok(rows) => {
                all_hold &= rows.iter().all(|row| row.holds != Some(false));
                print(&rows);
            }
            Err(error) => {
                all_hold = false;
                println!("not measured: {error}");
            }
        }
    }
    Ok(if all_hold {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The rows as a Markdown table.
fn print(rows: &[Row]) {
    println!("| what | measured | bar | holds |\n|---|---|---|---|");
    for Row {
        what,
        measured,
        bar,
        holds,
    } in rows
    {
        let holds = holds.map_or("", |holds| if holds { "yes" } else { "**no**" });
        println!("| {what} | {measured} | {bar} | {holds} |");
    }
}

/// The middle value; of two middle ones, their mean. Not a number for no values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.len() % 2, sorted.get(middle)) {
        (_, None) => f64::NAN,
        (1, Some(value)) => *value,
        (_, Some(value)) => f64::midpoint(sorted[middle - 1], *value),
    }
}

/// Runs the measurements in turns, `rounds` times, and returns the values of each.
pub(crate) fn in_turns<const N: usize>(
    rounds: usize,
    mut measure: [&mut dyn FnMut() -> Outcome<f64>; N],
) -> Outcome<[Vec<f64>; N]> {
    let mut values = [const { Vec::new() }; N];
    for _ in 0..rounds {
        for (measure, values) in measure.iter_mut().zip(&mut values) {
            values.push(measure()?);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::{in_turns, median};

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn turns_alternate() {
        let order = std::cell::RefCell::new(Vec::new());
        let mut one = || {
            order.borrow_mut().push('A');
            Ok(1.0)
        };
        let mut two = || {
            order.borrow_mut().push('B');
            Ok(2.0)
        };
        let values = in_turns(2, [&mut one, &mut two]).expect("nothing fails");
        assert_eq!(values, [vec![1.0, 1.0], vec![2.0, 2.0]]);
        assert_eq!(order.into_inner(), ['A', 'B', 'A', 'B']);
    }
}
