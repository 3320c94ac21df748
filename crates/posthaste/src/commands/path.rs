//! Options of a link, for both directions or, in quotes, for one. Used by `net` and `simulate`.

use std::fmt;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Parser, ValueEnum};
use posthaste_link::pattern::{Pattern, Script};
use posthaste_link::profile::{PROFILES, Profile, named};
use posthaste_link::{BackgroundTraffic, Direction, Jitter, Loss, Order, Plan, Queue, Reordering};
use posthaste_units::{BitRate, Ratio, Span};

/// Options of one direction.
#[derive(clap::Args)]
#[command(next_help_heading = "Directions")]
pub(super) struct Directions {
    /// Options of the link for packets from the client, over the common ones:
    /// '--bandwidth 64kbit --delay 100ms'
    #[arg(long, value_name = "OPTIONS", value_parser = nested, allow_hyphen_values = true)]
    up: Option<PathArgs>,
    /// The same for packets to the client
    #[arg(long, value_name = "OPTIONS", value_parser = nested, allow_hyphen_values = true)]
    down: Option<PathArgs>,
}

impl Directions {
    /// The plans of the links, up and down: the common options, those of the direction, the pattern.
    pub(super) fn plans(&self, common: &PathArgs, pattern: &Pattern) -> [Plan; 2] {
        [
            (Direction::Up, self.up.as_ref()),
            (Direction::Down, self.down.as_ref()),
        ]
        .map(|(direction, own)| {
            let script = pattern.script(direction);
            Plan {
                script: (**script != Script::default()).then(|| script.clone()),
                ..plan(direction, common, own)
            }
        })
    }
}

/// Properties of a link. Those not given are those of the profile, or absent.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "The link")]
pub(super) struct PathArgs {
    /// A network by name; other options replace its values
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(PROFILES.iter().map(|profile| profile.name)).try_map(|name| named(&name)))]
    profile: Option<&'static Profile>,
    /// Bits per second, of IP packets, for example 300kbit
    #[arg(long, value_name = "R")]
    bandwidth: Option<BitRate>,
    /// Delay one way, in each direction
    #[arg(long, value_name = "T")]
    delay: Option<Span>,
    /// Variation of the delay: 5ms, 50% (of the delay), uniform:5ms, pareto:5ms, variance:50%. Packets
    /// keep their order: one waits for the one before it, so that the mean rises with the packet rate.
    /// --overtake keeps the mean
    #[arg(long, value_name = "D")]
    jitter: Option<Jitter>,
    /// Let packets with a shorter delay go first, so that jitter reorders
    #[arg(long)]
    overtake: bool,
    /// Loss by chance: 2%, bursts:2%:4 (mean length 4) or gilbert-elliott:P:R[:BAD[:GOOD]]
    #[arg(long, value_name = "P")]
    loss: Option<Loss>,
    /// Probability of each bit to flip, for example 0.001%
    #[arg(long, value_name = "P")]
    bit_errors: Option<Ratio>,
    /// Share of packets that pass twice
    #[arg(long, value_name = "P")]
    duplicate: Option<Ratio>,
    /// Share of packets that go at once, without the delay (25%, 25%:5), or are held back (hold:1%:3)
    #[arg(long, value_name = "P")]
    reorder: Option<Reordering>,
    /// Limit of the queue before the bandwidth: 50 (packets), 64kB, 50:64kB; with a discipline:
    /// :drop-head, :codel[:5ms:100ms][:ecn] or, for ECN marks from a length or a wait on, :step:20,
    /// :step:1ms [default: the profile's, 50, or 1000 with --order netem]
    #[arg(long, value_name = "N")]
    queue: Option<Queue>,
    /// Traffic of others through the link: a rate (800kB/s), a code point before it (le:800kB/s),
    /// bytes of a packet behind it (800kB/s:576) [default: default, 1500]
    #[arg(long, value_name = "R")]
    background: Option<BackgroundTraffic>,
    /// Bytes that each packet takes on the line beyond its own, 14 for Ethernet's header
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(..=65_535))]
    overhead: Option<u32>,
    /// Order of the effects: queue before delay, or delay before queue [default: dummynet]
    #[arg(long, value_enum)]
    order: Option<OrderArg>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OrderArg {
    Dummynet,
    Netem,
}

/// Seed and version, for a picture whose numbers depend on them.
pub(super) fn seed_and_version(seed: impl fmt::Display) -> String {
    format!("seed {seed}, posthaste {}", env!("CARGO_PKG_VERSION"))
}

#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Nested {
    #[command(flatten)]
    path: PathArgs,
}

/// Parses the value of --up and --down: options as on the command line.
pub(super) fn nested(text: &str) -> Result<PathArgs, String> {
    typed(text.split_whitespace())
}

/// Parses options as on a command line, word by word.
pub(super) fn typed<'a>(options: impl IntoIterator<Item = &'a str>) -> Result<PathArgs, String> {
    let nested = Nested::try_parse_from(options);
    nested.map(|nested| nested.path).map_err(|error| {
        let text = error.to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        // The usage message would be that of a command that was not typed.
        let end = text.find("\n\nUsage").or(text.find("\n\nFor more"));
        text[..end.unwrap_or(text.len())].trim().to_owned()
    })
}

/// The plan of a direction: a profile, overridden by the common options, overridden by its own.
fn plan(direction: Direction, both: &PathArgs, own: Option<&PathArgs>) -> Plan {
    let profile = own.and_then(|own| own.profile).or(both.profile);
    let mut plan = profile.map_or_else(Plan::default, |profile| profile.plan(direction));
    both.apply(&mut plan);
    if let Some(own) = own {
        own.apply(&mut plan);
    }
    let queued = both.queue.is_some() || own.is_some_and(|own| own.queue.is_some());
    if plan.order == Order::Netem && !queued {
        // netem's limit counts all packets in the link, unlike the queue of a profile.
        plan.queue = plan.order.queue();
    }
    plan
}

impl PathArgs {
    /// The profile that the other options change.
    #[cfg(feature = "net")]
    pub(super) fn profile(&self) -> Option<&'static Profile> {
        self.profile
    }

    fn apply(&self, plan: &mut Plan) {
        let Self {
            profile: _,
            bandwidth,
            delay,
            jitter,
            overtake,
            loss,
            bit_errors,
            duplicate,
            reorder,
            queue,
            background,
            overhead,
            order,
        } = self;
        plan.bandwidth = bandwidth.or(plan.bandwidth);
        plan.delay = delay.unwrap_or(plan.delay);
        plan.jitter = jitter.or(plan.jitter);
        plan.keeps_order &= !overtake;
        plan.loss = loss.or(plan.loss);
        plan.bit_error_rate = bit_errors.unwrap_or(plan.bit_error_rate);
        plan.duplication = duplicate.unwrap_or(plan.duplication);
        plan.reordering = reorder.or(plan.reordering);
        plan.queue = queue.unwrap_or(plan.queue);
        plan.background = background.or(plan.background);
        plan.overhead = overhead.unwrap_or(plan.overhead);
        plan.order = order.map_or(plan.order, Order::from);
    }
}

impl From<OrderArg> for Order {
    fn from(order: OrderArg) -> Self {
        match order {
            OrderArg::Dummynet => Self::Dummynet,
            OrderArg::Netem => Self::Netem,
        }
    }
}
