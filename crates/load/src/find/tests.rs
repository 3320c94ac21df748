//! The search against simulated services.

use posthaste_stats::theory::{Md1, Mm1};
use posthaste_units::{Seed, Span};

use super::*;

const SERVICE: Span = Span::from_millis(5);

fn p99(bound: Span) -> Objective {
    Objective {
        figure: BoundedFigure::Response,
        quantile: Some(0.99),
        bound,
        tolerance: 0.01,
    }
}

/// The answer of a search of 50 s, and the search.
fn search(mut server: Simulated, objective: Objective) -> (Capacity, Search) {
    let mut search = Search::new(objective, Effort::default());
    let mut spent = Span::ZERO;
    while let Some(proposal) = search.propose() {
        let evidence = server.trial(&proposal, &objective);
        spent += evidence.elapsed;
        search.record(proposal, evidence);
        assert!(spent < Span::from_secs(60), "the search takes {spent}");
    }
    (search.answer("p99".to_owned()), search)
}

/// The rate of M/D/1 and of M/M/1 at which p99 is ten services.
fn truth(service: SimulatedLaw, mean: Span) -> f64 {
    let (mut low, mut high) = (0.1, 0.98);
    while high - low > 1e-6 {
        let middle = f64::midpoint(low, high);
        let p99 = match service {
            SimulatedLaw::Exponential => Mm1::new(middle, mean).unwrap().sojourn_quantile(0.99),
            _ => Md1::new(middle, mean).unwrap().sojourn_quantile(0.99),
        };
        if p99 < mean * 10 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low / mean.as_secs_f64()
}

/// Searches with `seeds` seeds. Bias and coverage must lie within three standard errors of their limits.
fn agrees_with_theory(service: SimulatedLaw, mean: Span, seeds: u64) {
    let objective = p99(mean * 10);
    let truth = truth(service, mean);
    let (mut errors, mut covered) = (Vec::new(), 0.0);
    for seed in 0..seeds {
        let server =
            Simulated::new(service, mean, Seed(200_000 + seed)).with_timeout(objective.bound * 20);
        let (answer, _) = search(server, objective);
        if let (Some(rate), Some([low, high])) = (answer.capacity_per_s, answer.capacity_interval) {
            errors.push(rate / truth - 1.0);
            covered += f64::from(u8::from(low <= truth && truth <= high));
        }
    }
    let count = errors.len() as f64;
    assert!(count >= 0.7 * seeds as f64, "{count} figures of {seeds}");
    let bias = errors.iter().sum::<f64>() / count;
    let variance = errors
        .iter()
        .map(|error| (error - bias).powi(2))
        .sum::<f64>()
        / count;
    let error = (variance / count).sqrt();
    assert!(
        bias.abs() < 0.01 + 3.0 * error,
        "bias {bias}, standard error {error}"
    );
    let least = 0.93 - 3.0 * (0.93 * 0.07 / count).sqrt();
    let coverage = covered / count;
    assert!(coverage >= least, "coverage {coverage}, at least {least}");
}

#[test]
fn constant_services_have_the_capacity_of_theory() {
    agrees_with_theory(SimulatedLaw::Constant, SERVICE, 100);
    agrees_with_theory(SimulatedLaw::Constant, Span::from_millis(1), 40);
}

#[test]
fn exponential_services_have_the_capacity_of_theory() {
    agrees_with_theory(SimulatedLaw::Exponential, SERVICE, 100);
    agrees_with_theory(SimulatedLaw::Exponential, Span::from_millis(1), 40);
}

#[test]
fn a_mean_is_searched_too() {
    // The mean of M/M/1 is 4 ms, four services, at 750/s.
    let objective = Objective {
        figure: BoundedFigure::Response,
        quantile: None,
        bound: Span::from_millis(4),
        tolerance: 0.01,
    };
    for seed in 0..5 {
        let server = Simulated::new(SimulatedLaw::Exponential, Span::from_millis(1), Seed(seed));
        let (answer, _) = search(server, objective);
        let rate = answer.capacity_per_s.unwrap();
        assert!((650.0..850.0).contains(&rate), "{answer}");
    }
}

#[test]
fn short_trials_are_no_evidence() {
    let objective = p99(SERVICE * 10);
    let (answer, _) = search(
        Simulated::new(SimulatedLaw::Constant, SERVICE, Seed(1)),
        objective,
    );
    let short = |trial: &&TrialReport| ["recover", "locate"].contains(&trial.purpose);
    assert!(answer.trials.iter().filter(short).count() > 5);
    let confirming = answer.trials.last().unwrap();
    assert_eq!(confirming.purpose, "confirm");
    assert!(confirming.seconds > 5.0, "{answer:?}");
    let json = serde_json::to_value(&answer).unwrap();
    assert!(json["trials"][0].get("held").is_none());
}

#[test]
fn every_trial_of_evidence_settles_first() {
    let objective = p99(SERVICE * 10);
    let mut server = Simulated::new(SimulatedLaw::Constant, SERVICE, Seed(1));
    let mut search = Search::new(objective, Effort::default());
    while let Some(proposal) = search.propose() {
        if matches!(proposal.purpose, Purpose::Measure | Purpose::Confirm) {
            assert!(proposal.settle >= objective.bound * 19, "{proposal:?}");
        }
        let evidence = server.trial(&proposal, &objective);
        search.record(proposal, evidence);
    }
}

#[test]
fn the_time_that_would_suffice_is_said() {
    let objective = p99(SERVICE * 10);
    let (answer, _) = search(
        Simulated::new(SimulatedLaw::Exponential, SERVICE, Seed(2)),
        objective,
    );
    assert!(
        !answer.precise,
        "5,000 requests do not know this to 5 %: {answer}"
    );
    let text = answer.to_string();
    assert!(
        text.contains("between") || text.contains("at least"),
        "{text}"
    );
    assert!(!text.contains("95 % sure: "), "{text}");
}

#[test]
fn a_generator_at_its_limit_gives_a_lower_bound() {
    let objective = p99(Span::from_millis(20));
    let server = Simulated::new(SimulatedLaw::Unlimited, Span::from_millis(2), Seed(1));
    let (answer, _) = search(server.with_generator_limit(3_000.0), objective);
    assert_eq!(answer.limited_by, LimitedBy::Generator);
    let held = answer.held_at_per_s.unwrap();
    assert!((1_300.0..=3_000.0).contains(&held), "{held}");
    assert_eq!(answer.capacity_per_s, None);
    assert!(
        answer.to_string().contains("the generator is the limit"),
        "{answer}"
    );
}

#[test]
fn an_old_backlog_is_waited_out() {
    let objective = p99(SERVICE * 10);
    let busy =
        Simulated::new(SimulatedLaw::Constant, SERVICE, Seed(3)).with_backlog(Span::from_secs(4));
    let (answer, _) = search(busy, objective);
    let first = answer
        .trials
        .iter()
        .position(|trial| trial.purpose != "recover")
        .unwrap();
    assert!(
        first > 2,
        "light load until the backlog is gone: {:?}",
        answer.trials
    );
    assert_eq!(answer.trials[first].beyond, 0);
    let [low, high] = answer.capacity_interval.unwrap();
    assert!(low < 154.7 && 154.7 < high, "{answer}");
}

#[test]
fn a_service_that_does_not_recover_is_not_waited_for_without_end() {
    let objective = p99(SERVICE * 10);
    let stuck = Simulated::new(SimulatedLaw::Constant, SERVICE, Seed(3))
        .with_backlog(Span::from_secs(1_000))
        .with_timeout(Span::from_secs(1));
    let (_, search) = search(stuck, objective);
    assert!(search.is_unrecovered());
    assert!(search.hopeless().is_some());
}

#[test]
fn a_service_that_sheds_is_bounded_by_its_errors() {
    // Limit of five: one in a hundred is refused where load^5 (1 - load) / (1 - load^6) is 0.01, at 0.43 of 200/s.
    // There p99 of the others is far below the bound.
    let objective = p99(SERVICE * 20);
    let server = Simulated::new(SimulatedLaw::Exponential, SERVICE, Seed(4)).with_system_limit(5);
    let (answer, _) = search(server, objective);
    assert_eq!(answer.capacity_interval, None, "{answer}");
    let failed = answer.failed_at_per_s.unwrap();
    assert!(failed > 85.0, "{answer}");
    assert!(
        answer
            .held_at_per_s
            .is_none_or(|held| held < 92.0 && held < failed),
        "{answer}"
    );
}

#[test]
fn an_objective_that_fails_at_the_lowest_rate_has_no_capacity() {
    let objective = p99(Span::from_millis(1));
    let (_, search) = search(
        Simulated::new(SimulatedLaw::Constant, SERVICE, Seed(5)),
        objective,
    );
    assert_eq!(search.hopeless().unwrap().proposal.rate, 20.0);
}

#[test]
fn no_request_at_all_may_exceed_a_maximum() {
    let objective = Objective {
        figure: BoundedFigure::Response,
        quantile: Some(1.0),
        bound: SERVICE * 10,
        tolerance: f64::MIN_POSITIVE,
    };
    let (answer, _) = search(
        Simulated::new(SimulatedLaw::Constant, SERVICE, Seed(6)),
        objective,
    );
    assert_eq!(answer.capacity_per_s, None, "no curve describes it");
    assert!(answer.failed_at_per_s.is_some(), "{answer}");
}

/// Evidence of a trial of streams of half a second, all in time, without any gap if `unknown`.
fn streams(proposal: &Proposal, unknown: bool) -> Evidence {
    let time = proposal.settle + proposal.length;
    let requests = (proposal.rate * proposal.length.as_secs_f64()).round() as u64;
    let times = if unknown { requests } else { 3 * requests };
    Evidence {
        requests,
        times,
        beyond: if unknown { times } else { 0 },
        excess: if unknown { f64::INFINITY } else { 0.5 },
        unknown,
        median: 0.01,
        stream: 0.5,
        throughput: proposal.rate,
        elapsed: time + Span::from_millis(500),
        ..Evidence::default()
    }
}

#[test]
fn a_figure_of_events_that_is_unknown_has_failed() {
    // Half of the gaps may be beyond the bound, and of 20 requests so may all, by chance.
    let objective = Objective {
        figure: BoundedFigure::Gap,
        quantile: Some(0.5),
        bound: Span::from_millis(20),
        tolerance: 0.01,
    };
    let mut search = Search::new(objective, Effort::default());
    while let Some(proposal) = search.propose() {
        let evidence = streams(&proposal, true);
        search.record(proposal, evidence);
    }
    assert_eq!(search.hopeless().unwrap().proposal.rate, 20.0);
    let answer = search.answer(String::new());
    assert_eq!((answer.held_at_per_s, answer.capacity_per_s), (None, None));
}

#[test]
fn a_trial_of_streams_settles_for_a_stream() {
    let objective = Objective {
        figure: BoundedFigure::Gap,
        ..p99(Span::from_millis(20))
    };
    let mut search = Search::new(objective, Effort::default());
    let mut spent = Span::ZERO;
    while let Some(proposal) = search.propose() {
        let long_enough = proposal.settle > Span::from_millis(500);
        assert_eq!(long_enough, proposal.purpose != Purpose::Recover);
        let evidence = streams(&proposal, false);
        spent += evidence.elapsed;
        search.record(proposal, evidence);
        assert!(spent < Span::from_secs(60), "the search takes {spent}");
    }
    let answer = search.answer(String::new());
    assert!(answer.held_at_per_s.is_some(), "{answer}");
}
