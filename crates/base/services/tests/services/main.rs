//! Tests of the public interface: texts, replies compared with queueing theory, misbehaviours, truths.

mod intervals;
mod laws;
mod misbehaviours;
mod presets;
mod specs;
mod truths;

use posthaste_services::{ServiceModel, ServiceReply, ServiceSpec};
use posthaste_units::{Instant, Seed, Span, Stream};
use rand::RngExt as _;
use rand_distr::Exp1;

fn spec(text: &str) -> ServiceSpec {
    text.parse().expect("a valid service")
}

fn service(text: &str) -> ServiceModel {
    ServiceModel::new(spec(text), Seed(1))
}

fn at(seconds: f64) -> Instant {
    Instant::ORIGIN + Span::from_secs_f64(seconds)
}

/// Times of Poisson arrivals at a rate, in seconds.
fn poisson(rate: f64) -> impl Iterator<Item = f64> {
    let mut random: Stream = Seed(2).stream("arrivals");
    let mut now = 0.0;
    std::iter::repeat_with(move || {
        now += random.sample::<f64, _>(Exp1) / rate;
        now
    })
}

/// Times of constant arrivals at a rate, in seconds.
fn constant(rate: f64) -> impl Iterator<Item = f64> {
    (1..).map(move |number| f64::from(number) / rate)
}

/// The response time in seconds, and the status. `None` without a reply.
fn ask(service: &mut ServiceModel, seconds: f64) -> Option<(f64, u16)> {
    let now = at(seconds);
    match service.arrive(now) {
        ServiceReply::Answered { at, status } => Some((at.since(now).as_secs_f64(), status)),
        ServiceReply::Never => None,
    }
}
