//! Decisions: properties of every question, and the choice of each policy.

use posthaste_compression::{
    Accept, ClientPath, Coding, CostModel, CpuTokenBucket, Decision, Form, LoadEstimate, Media,
    Menu, Origin, POLICIES, Policy, Preference, Question, Reason, Reply, Rules, STEPS, Step, Steps,
    Wish,
};
use posthaste_units::{BitRate, Instant, Size, Span};
use proptest::prelude::*;

/// Enough CPU time for all replies.
const IDLE: LoadEstimate = LoadEstimate {
    allowance: 0.79,
    plenty: 1e6,
    busy: 0.0,
    is_high: false,
    is_known: true,
};

pub(crate) const BOOK: Reply = Reply {
    to_head: false,
    status: 200,
    length: Some(Size::from_bytes(16_169)),
    media: Media::Text,
    is_coded: false,
    no_transform: false,
    is_range: false,
    is_sealed: false,
};

/// A question that depends only on its policy. Each test changes one aspect.
#[derive(Debug)]
pub(crate) struct PolicyCase {
    pub(crate) wish: Wish,
    pub(crate) origin: Origin,
    pub(crate) form: Form,
    pub(crate) accept: Option<&'static str>,
    pub(crate) reply: Reply,
    pub(crate) estimate: LoadEstimate,
    pub(crate) line: Option<ClientPath>,
    pub(crate) menu: Menu,
    pub(crate) at_hand: Steps,
    pub(crate) backlog: Span,
}

impl Default for PolicyCase {
    fn default() -> Self {
        Self {
            wish: Wish::Unstated,
            origin: Origin::Route,
            form: Form::Content,
            accept: Some("gzip, br, zstd"),
            reply: BOOK,
            estimate: IDLE,
            line: None,
            menu: Menu::default(),
            at_hand: Steps::default(),
            backlog: Span::ZERO,
        }
    }
}

impl PolicyCase {
    fn decide(&self, policy: Policy) -> Decision {
        self.decide_at(Instant::default(), policy, &mut CpuTokenBucket::new(1))
    }

    pub(crate) fn decide_at(
        &self,
        now: Instant,
        policy: Policy,
        bucket: &mut CpuTokenBucket,
    ) -> Decision {
        let question = Question {
            now,
            preference: Preference {
                wish: self.wish,
                origin: self.origin,
            },
            form: self.form,
            accept: Accept::read(self.accept.iter().map(|line| line.as_bytes())),
            reply: self.reply,
            rules: &Rules::default(),
            menu: &self.menu,
            at_hand: self.at_hand,
            estimate: self.estimate,
            backlog: self.backlog,
            line: self.line,
            costs: &CostModel::default(),
        };
        policy.decide(&question, bucket)
    }

    /// The decision as a step and a reason.
    fn decision(&self, policy: Policy) -> (Option<Step>, Reason) {
        let decision = self.decide(policy);
        (decision.step, decision.reason)
    }
}

#[test]
fn each_policy_has_its_answer() {
    let case = PolicyCase::default();
    assert_eq!(case.decision(Policy::Never), (None, Reason::PolicyNever));
    let always = (Some(Step::Zstd1), Reason::PolicyAlways);
    assert_eq!(case.decision(Policy::Always), always);
    let affordable = (Some(Step::Zstd1), Reason::Affordable);
    assert_eq!(case.decision(Policy::Threshold), affordable);
    assert_eq!(case.decision(Policy::Link), affordable, "an unknown line");
    let best = (Some(Step::Brotli5), Reason::Affordable);
    assert_eq!(case.decision(Policy::Ladder), best);
}

#[test]
fn high_demand_leaves_the_askers() {
    let spent = LoadEstimate {
        allowance: 0.0,
        plenty: 0.0,
        busy: 0.9,
        is_high: true,
        is_known: true,
    };
    for policy in [Policy::Threshold, Policy::Ladder, Policy::Link] {
        let mut case = PolicyCase {
            estimate: spent,
            ..PolicyCase::default()
        };
        assert_eq!(
            case.decision(policy),
            (None, Reason::DemandHigh),
            "{policy}"
        );
        case.wish = Wish::IfPossible;
        assert_eq!(
            case.decision(policy),
            (None, Reason::DemandHigh),
            "{policy}"
        );
        case.estimate = LoadEstimate::UNKNOWN;
        assert_eq!(
            case.decision(policy),
            (None, Reason::DemandUnknown),
            "{policy}"
        );
        case.wish = Wish::Always;
        let (step, reason) = case.decision(policy);
        assert_eq!(reason, Reason::Asked, "{policy}");
        // The cheapest of this length for a policy that looks at costs.
        let expected = if policy == Policy::Ladder {
            Step::Gzip1
        } else {
            Step::Zstd1
        };
        assert_eq!(step, Some(expected), "{policy}");
    }
    let held_up = PolicyCase {
        backlog: Span::from_millis(21),
        ..PolicyCase::default()
    };
    assert_eq!(held_up.decision(Policy::Threshold), (None, Reason::Backlog));
}

/// The set of wanted steps.
fn steps(wanted: impl Fn(Step) -> bool) -> Steps {
    let steps = STEPS.into_iter().filter(|step| wanted(*step));
    steps.fold(Steps::default(), Steps::with)
}

#[test]
fn cached_replies_cost_no_cpu_time() {
    let spent = LoadEstimate {
        allowance: 0.0,
        busy: 0.9,
        is_high: true,
        is_known: true,
        ..LoadEstimate::UNKNOWN
    };
    let at_hand = |step: Step, estimate| PolicyCase {
        at_hand: steps(|other| other == step),
        estimate,
        ..PolicyCase::default()
    };
    for policy in [Policy::Threshold, Policy::Ladder] {
        // The cached step is used at any load, also if the policy would prefer another one.
        for step in [Step::Zstd1, Step::Brotli5] {
            let cached = (Some(step), Reason::Cached);
            assert_eq!(at_hand(step, spent).decision(policy), cached, "{policy}");
        }
    }
    // With enough CPU time, a better step is computed although a worse one is cached.
    let better = (Some(Step::Brotli5), Reason::Affordable);
    assert_eq!(at_hand(Step::Zstd1, IDLE).decision(Policy::Ladder), better);
    // A cached result is not used if the client does not accept or want it.
    let gzip_only = PolicyCase {
        accept: Some("gzip"),
        ..at_hand(Step::Zstd1, spent)
    };
    assert_eq!(
        gzip_only.decision(Policy::Threshold),
        (None, Reason::DemandHigh)
    );
    let unwanted = PolicyCase {
        wish: Wish::Never,
        ..at_hand(Step::Zstd1, IDLE)
    };
    assert_eq!(
        unwanted.decision(Policy::Threshold),
        (None, Reason::Refused)
    );
    assert_eq!(at_hand(Step::Zstd1, IDLE).decision(Policy::Never).0, None);
    // A Body alone is not cached.
    let mut body_alone = PolicyCase {
        form: Form::Body,
        ..at_hand(Step::Gzip1, spent)
    };
    body_alone.reply.media = Media::Soap;
    assert_eq!(
        body_alone.decision(Policy::Threshold),
        (None, Reason::DemandHigh)
    );
}

#[test]
fn a_client_without_accept_encoding_gets_gzip_when_it_asks() {
    let mut case = PolicyCase {
        accept: None,
        ..PolicyCase::default()
    };
    assert_eq!(case.decision(Policy::Always), (None, Reason::NotAcceptable));
    case.wish = Wish::Always;
    assert_eq!(
        case.decision(Policy::Always),
        (None, Reason::NotAcceptable),
        "the route asks, not the client"
    );
    case.origin = Origin::SoapHeader;
    assert_eq!(
        case.decision(Policy::Threshold),
        (Some(Step::Gzip1), Reason::Asked)
    );
    case.accept = Some("identity");
    assert_eq!(
        case.decision(Policy::Threshold),
        (None, Reason::NotAcceptable)
    );
}

#[test]
fn a_body_is_gzipped_for_clients_that_cannot_decode_content() {
    let mut case = PolicyCase {
        wish: Wish::Always,
        origin: Origin::SoapHeader,
        form: Form::Body,
        accept: Some("identity"),
        reply: Reply {
            media: Media::Soap,
            ..BOOK
        },
        ..PolicyCase::default()
    };
    let packed = case.decide(Policy::Ladder);
    assert_eq!(packed.form, Form::Body);
    assert_eq!(packed.step.map(Step::coding), Some(Coding::Gzip));
    // A fault stays readable for the toolkit, and a page has no Body.
    case.reply.status = 500;
    assert_eq!(case.decision(Policy::Ladder), (None, Reason::NotAcceptable));
    case.reply = BOOK;
    case.accept = Some("zstd");
    let content = case.decide(Policy::Threshold);
    assert_eq!(
        (content.step, content.form),
        (Some(Step::Zstd1), Form::Content)
    );
    case.reply.media = Media::Soap;
    case.wish = Wish::Never;
    assert_eq!(case.decide(Policy::Always).form, Form::Content);
}

#[test]
fn a_line_decides_what_arrives_earlier() {
    let line = |bits: u64, rtt: u64| {
        Some(ClientPath {
            rate: BitRate::per_second(bits).unwrap(),
            rtt: Span::from_millis(rtt),
            window: ClientPath::FIRST_WINDOW,
        })
    };
    let by_line = |line, busy| {
        let estimate = LoadEstimate { busy, ..IDLE };
        PolicyCase {
            line,
            estimate,
            ..PolicyCase::default()
        }
        .decision(Policy::Link)
    };
    // 10 kB less take 2 s on GPRS: the best step is worth its time at any load.
    assert_eq!(
        by_line(line(40_200, 1300), 0.0),
        (Some(Step::Brotli5), Reason::SavesTime)
    );
    assert_eq!(by_line(line(40_200, 1300), 0.79).1, Reason::SavesTime);
    // 10 kB less take 8 µs at 10 Gbit/s, and 80 µs at 1 Gbit/s: worth 35 µs, but not five times that.
    assert_eq!(
        by_line(line(10_000_000_000, 0), 0.0),
        (None, Reason::SavesNoTime)
    );
    assert_eq!(
        by_line(line(1_000_000_000, 0), 0.0),
        (Some(Step::Gzip1), Reason::SavesTime)
    );
    assert_eq!(
        by_line(line(1_000_000_000, 0), 0.79),
        (None, Reason::SavesNoTime)
    );
    // A cached result costs nothing at any load.
    let busy = PolicyCase {
        line: line(1_000_000_000, 0),
        estimate: LoadEstimate { busy: 0.79, ..IDLE },
        at_hand: Steps::default().with(Step::Gzip1),
        ..PolicyCase::default()
    };
    assert_eq!(
        busy.decision(Policy::Link),
        (Some(Step::Gzip1), Reason::Cached)
    );
    // High rate and long round trip: one window instead of two saves a round trip.
    assert_eq!(by_line(line(10_000_000_000, 50), 0.79).1, Reason::SavesTime);
}

#[test]
fn names_of_policies_are_read_back() {
    for policy in POLICIES {
        assert_eq!(policy.name().parse(), Ok(policy));
    }
    let unknown = "thresholds".parse::<Policy>().unwrap_err().to_string();
    assert!(
        unknown.ends_with("write one of never, always, threshold, ladder, link"),
        "{unknown}"
    );
}

const FIELDS: &[Option<&str>] = &[
    None,
    Some(""),
    Some("gzip"),
    Some("br;q=0.5, gzip;q=0.1"),
    Some("identity"),
    Some("gzip;q=0, *"),
    Some("zstd, gzip;q=x"),
    Some("*;q=0"),
];

fn question() -> impl Strategy<Value = PolicyCase> {
    let reply = (
        any::<[bool; 5]>(),
        prop::sample::select(vec![200u16, 204, 206, 304, 500]),
        any::<Option<u32>>(),
    )
        .prop_map(|(flags, status, length)| Reply {
            to_head: flags[0] && flags[1],
            status,
            length: length.map(|length| Size::from_bytes(u64::from(length))),
            media: if flags[2] || flags[0] {
                Media::Text
            } else {
                Media::Other
            },
            is_coded: flags[1] && flags[3],
            no_transform: flags[3] && flags[4],
            is_range: status == 206,
            is_sealed: flags[1] && flags[4],
        });
    let estimate = (0.0f32..4.0, 0.0f32..100.0, 0.0f32..=1.0, any::<bool>()).prop_map(
        |(allowance, plenty, busy, is_high)| LoadEstimate {
            allowance,
            plenty,
            busy,
            is_high,
            is_known: true,
        },
    );
    let line =
        proptest::option::of((1u64..1 << 40, 0u64..1 << 33, 0u64..1 << 30)).prop_map(|line| {
            line.map(|(bits, rtt, window)| ClientPath {
                rate: BitRate::per_second(bits).unwrap(),
                rtt: Span::from_nanos(rtt),
                window: Size::from_bytes(window),
            })
        });
    let menu = prop::collection::vec(prop::sample::select(STEPS.to_vec()), 0..7);
    (
        prop::sample::select(Wish::ALL.to_vec()),
        prop::sample::select(Origin::ALL.to_vec()),
        prop::sample::select(FIELDS.to_vec()),
        reply,
        estimate,
        line,
        menu,
        0usize..1 << STEPS.len(),
    )
        .prop_map(
            |(wish, origin, accept, reply, estimate, line, menu, at_hand)| PolicyCase {
                at_hand: steps(|step| at_hand & 1 << step.index() != 0),
                form: Form::Content,
                wish,
                origin,
                accept,
                reply,
                estimate,
                line,
                menu: Menu::new(&menu),
                backlog: Span::ZERO,
            },
        )
}

proptest! {
    #[test]
    fn every_policy_respects_wishes_menus_and_obstacles(case in question()) {
        for policy in POLICIES {
            let decision = case.decide(policy);
            let reason = decision.reason;
            prop_assert_eq!(decision.step.is_some(), reason.compresses());
            let Some(step) = decision.step else {
                prop_assert_eq!(decision.reservation, None);
                continue;
            };
            prop_assert!(case.menu.steps().contains(&step));
            prop_assert_ne!(case.wish, Wish::Never);
            prop_assert_ne!(policy, Policy::Never);
            prop_assert_eq!(case.reply.obstacle(&Rules::default()), None);
            let accept = Accept::read(case.accept.iter().map(|line| line.as_bytes()));
            if accept.is_present() {
                prop_assert!(accept.best(case.menu.codings()).has(step.coding()));
            }
            prop_assert_eq!(reason == Reason::Asked, case.wish == Wish::Always);
            let watches = policy != Policy::Always && case.wish != Wish::Always;
            if reason == Reason::Cached {
                prop_assert!(watches && case.at_hand.has(step));
            }
            let pays = watches && reason != Reason::Cached;
            prop_assert_eq!(decision.reservation.is_some(), pays);
        }
    }

    /// A client that asks gets compression whenever it is possible, by every policy but `never`.
    #[test]
    fn an_asker_is_never_left_out(mut case in question()) {
        case.wish = Wish::Always;
        case.backlog = Span::from_secs(10);
        let always = case.decide(Policy::Always).step.is_some();
        for policy in [Policy::Threshold, Policy::Ladder, Policy::Link] {
            prop_assert_eq!(case.decide(policy).step.is_some(), always);
        }
    }

    /// More CPU time gives smaller replies.
    #[test]
    fn the_ladder_is_climbed_upwards(plenty in 0.0f32..50.0, more in 1.0f32..5.0, bytes in 512u64..200_000) {
        let out = |plenty: f32| {
            let estimate = LoadEstimate { plenty, ..IDLE };
            let reply = Reply { length: Some(Size::from_bytes(bytes)), ..BOOK };
            let step = PolicyCase { estimate, reply, ..PolicyCase::default() }.decide(Policy::Ladder).step.unwrap();
            CostModel::default().estimate(step, Size::from_bytes(bytes)).out.as_bytes()
        };
        prop_assert!(out(plenty * more) as f64 <= out(plenty) as f64 * 1.031);
    }
}
