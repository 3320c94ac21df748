//! Differential tests: the gateway's readers of outside data next to those of other programs.
//!
//! [`differ`] compares the framing of messages. [`parsers`] compares the families listed here: each has a table of cases,
//! an observation for each program, and the rule of [`comparison`]. One nginx, one HAProxy and one gateway serve all
//! families, in front of one recording origin.

mod certificate_files;
mod certificates;
mod comparison;
mod deadline;
mod forwarded;
mod framing;
mod origin;
mod programs;
mod proxy_header;
mod upgrade;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use self::comparison::{ComparedCase, FamilyRule, violations};
use self::programs::ComparedPrograms;
use crate::error::{Outcome, TaskError, check};
use crate::site::Site;
use crate::tools;

pub(crate) use framing::differ;

/// Cases of a family that are compared at the same time. Most of their time is spent waiting for a proxy to give up.
const AT_ONCE: usize = 64;

/// A subject that the gateway and other programs read.
struct ReaderFamily {
    name: &'static str,
    rule: FamilyRule,
    observe: fn(&ComparedPrograms<'_>) -> Outcome<Vec<ComparedCase>>,
}

const FAMILIES: &[ReaderFamily] = &[
    ReaderFamily {
        name: "proxy-header",
        rule: proxy_header::RULE,
        observe: proxy_header::observe,
    },
    ReaderFamily {
        name: "forwarded-for",
        rule: forwarded::FORWARDED_FOR,
        observe: forwarded::observe_forwarded_for,
    },
    ReaderFamily {
        name: "forwarded",
        rule: forwarded::FORWARDED,
        observe: forwarded::observe_forwarded,
    },
    ReaderFamily {
        name: "upgrade",
        rule: upgrade::RULE,
        observe: upgrade::observe,
    },
    ReaderFamily {
        name: "grpc-timeout",
        rule: deadline::RULE,
        observe: deadline::observe,
    },
    ReaderFamily {
        name: "certificates",
        rule: certificates::RULE,
        observe: certificates::observe,
    },
];

/// Compares all families. A missing program is a failure.
pub(crate) fn parsers(site: &Site) -> Outcome<()> {
    compare(site).map_err(|error| TaskError::Failed(error.to_string()))
}

fn compare(site: &Site) -> Outcome<()> {
    let programs = ComparedPrograms::start(site)?;
    let mut wrong = Vec::new();
    for family in FAMILIES {
        let compared = (family.observe)(&programs)?;
        let lines: Vec<_> = compared.iter().map(ComparedCase::line).collect();
        let file = programs.folder.join(format!("{}.txt", family.name));
        tools::write(&file, lines.join("\n") + "\n")?;
        let found = violations(&family.rule, &compared);
        let (cases, exceptions) = (compared.len(), family.rule.exceptions.len());
        println!("  {}: {cases} cases, {exceptions} exceptions", family.name);
        let found = found.iter().map(|line| format!("{}: {line}", family.name));
        wrong.extend(found);
    }
    check(wrong.is_empty(), || wrong.join("\n"))
}

/// Runs `job` for every item with its number, some at once. Results are in the order of the items.
fn each<T: Sync, R: Send>(
    items: &[T],
    job: impl Fn(usize, &T) -> Outcome<R> + Sync,
) -> Outcome<Vec<R>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(number) else {
                        return;
                    };
                    let result = job(number, item);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.push((number, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}
