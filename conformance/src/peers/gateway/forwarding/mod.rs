//! Requests through the gateway and through HAProxy, compared with what was sent, byte for byte.
//!
//! The [`forms`] are valid requests of both protocols. A raw [`origin`] records what arrives, over HTTP/1.1 and over
//! HTTP/2. What arrives from the gateway must be what was sent, changed by the documented [`rules`] and by nothing else.
//! Differences from HAProxy are counted and printed without judgement.
//!
//! Nothing is normalised: no form contains a port of the origin, so none has to be replaced.

mod client;
mod differences;
mod forms;
mod frames;
mod message;
mod origin;
mod proxies;
mod rules;
mod tables;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use self::differences::differences;
use self::forms::{SentForm, forms};
use self::message::{Message, Protocol};
use self::origin::RawOrigin;
use self::proxies::{Proxy, gateway, haproxy};
use self::rules::{FormExchange, RULES, predict};
use crate::error::{Outcome, TaskError, check};
use crate::site::Site;
use crate::tools;

/// Fewest forms that are a comparison.
const FEWEST: usize = 200;

/// Kinds of differences from HAProxy that are printed. The file has all of them, by form.
const PRINTED: usize = 12;

/// Fields that the gateway adds to every request, as differences from HAProxy with its defaults.
const ALWAYS: [&str; 4] = [
    "field via: added",
    "field x-forwarded-for: added",
    "field x-forwarded-host: added",
    "field x-forwarded-proto: added",
];

/// Results of all forms.
#[derive(Default)]
struct ForwardingComparison {
    /// Forms that arrive as sent, except for what the gateway adds to every request ([`ALWAYS`]).
    equal: usize,
    /// Forms that rules changed.
    documented: usize,
    wrong: Vec<String>,
    /// Forms by rule.
    rules: BTreeMap<&'static str, usize>,
    /// Forms that differ from HAProxy's in nothing but [`ALWAYS`].
    like_haproxy: usize,
    /// Forms by kind of difference from HAProxy.
    kinds: BTreeMap<String, usize>,
    /// A line for each form.
    lines: String,
}

/// Compares all forms over both protocols of the upstream. A missing HAProxy is a failure.
pub(crate) fn forwarding(site: &Site) -> Outcome<()> {
    compare(site).map_err(|error| TaskError::Failed(error.to_string()))
}

fn compare(site: &Site) -> Outcome<()> {
    let mut comparison = ForwardingComparison::default();
    let forms = forms();
    for upstream in Protocol::BOTH {
        let origin = RawOrigin::start(upstream)?;
        let ours = gateway(site, &origin, upstream)?;
        let other = haproxy(site, &origin, upstream)?;
        for form in &forms {
            let name = format!("{} -> {upstream}", form.about);
            let received = exchange(form, &ours, &origin);
            let by_haproxy = exchange(form, &other, &origin);
            comparison.add(&name, form, received, by_haproxy);
        }
    }
    let folder = site.checkout.peer_folder("gateway-forwarding")?;
    let rules = RULES.iter();
    let rules = rules.map(|rule| format!("{}: {}\n", rule.name, rule.documented));
    let text = rules.collect::<String>() + &comparison.lines;
    tools::write(&folder.join("forms.txt"), text)?;
    comparison.print();
    comparison.check()
}

/// Sends a form through a proxy. Returns what arrives at the origin.
fn exchange(form: &SentForm, proxy: &Proxy, origin: &RawOrigin) -> Result<Message, String> {
    origin.clear();
    let address = proxy.address(form.message.protocol);
    match client::send(form, address) {
        Ok(status) if status == "204" => origin.take(),
        Ok(status) => Err(format!("status {status}")),
        Err(error) => Err(format!("no answer: {error}")),
    }
}

impl ForwardingComparison {
    fn add(
        &mut self,
        name: &str,
        form: &SentForm,
        received: Result<Message, String>,
        by_haproxy: Result<Message, String>,
    ) {
        let (received, by_haproxy) = match (received, by_haproxy) {
            (Ok(received), Ok(by_haproxy)) => (received, by_haproxy),
            (received, by_haproxy) => {
                for (proxy, result) in [("posthaste", received), ("haproxy", by_haproxy)] {
                    let error = result
                        .err()
                        .map(|error| format!("{name}: {proxy}: {error}"));
                    self.wrong.extend(error);
                }
                return;
            }
        };
        let (wanted, changes) = predict(&FormExchange {
            form,
            received: &received,
        });
        let undocumented = differences(&received, &wanted);
        if !undocumented.is_empty() {
            let kinds = undocumented.join(", ");
            self.wrong.push(format!(
                "{name}: {kinds}\n    wanted {wanted:?}\n    got {received:?}"
            ));
            return;
        }
        let own: Vec<_> = changes.iter().filter(|rule| !rule.is_for_all).collect();
        if own.is_empty() {
            self.equal += 1;
        } else {
            self.documented += 1;
        }
        for rule in &changes {
            *self.rules.entry(rule.name).or_default() += 1;
        }
        let mut kinds = differences(&received, &by_haproxy);
        kinds.retain(|kind| !ALWAYS.contains(&kind.as_str()));
        self.like_haproxy += usize::from(kinds.is_empty());
        let names: Vec<_> = changes.iter().map(|rule| rule.name).collect();
        let line = format!(
            "{name}: changed by {}; unlike HAProxy in {}",
            names.join(", "),
            kinds.join(", ")
        );
        let _ = writeln!(self.lines, "{line}");
        for kind in kinds {
            *self.kinds.entry(kind).or_default() += 1;
        }
    }

    fn compared(&self) -> usize {
        self.equal + self.documented
    }

    fn print(&self) {
        println!(
            "  {} forms, {} equal to what was sent, {} differ as documented",
            self.compared() + self.wrong.len(),
            self.equal,
            self.documented
        );
        println!("  equal: except for Via and X-Forwarded-*, which every request gets");
        for (rule, count) in &self.rules {
            println!("  {count} changed by: {rule}");
        }
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        println!(
            "  {} as from HAProxy, except for added Via and X-Forwarded-*",
            self.like_haproxy
        );
        for (kind, count) in kinds.iter().take(PRINTED) {
            println!("  {count} unlike HAProxy: {kind}");
        }
        if let Some(rest) = kinds.get(PRINTED..) {
            let count: usize = rest.iter().map(|(_, count)| **count).sum();
            println!("  {count} unlike HAProxy in {} other ways", rest.len());
        }
    }

    fn check(&self) -> Outcome<()> {
        check(self.wrong.is_empty(), || self.wrong.join("\n"))?;
        let mut unused = RULES.iter().map(|rule| rule.name);
        let unused = unused.find(|name| !self.rules.contains_key(name));
        check(unused.is_none(), || {
            format!("no form needs the rule: {unused:?}")
        })?;
        check(self.compared() >= FEWEST, || {
            format!("{} forms, fewer than {FEWEST}", self.compared())
        })
    }
}
