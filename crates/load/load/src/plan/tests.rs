//! A plan with every variant is read as it was written; plans that would break a run are refused.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use posthaste_grpc_schema::Schema;
use posthaste_qos::Definition;
use proptest::prelude::*;

use super::*;
use crate::buying::WithoutOffers;
use crate::grpc::GrpcCall;
use crate::plan::protocol::{Multiplexing, WhenFull, WhenRejected};
use crate::plan::share::Share;
use crate::reply::events::EventFormat;
use crate::retry::Backoff;
use crate::run::preparation;
use crate::stop::{StopOrders, StopTime};
use crate::target::AnyTarget;
use crate::transport::tls::PemFile;

const SHOP: &[(&str, &str)] = &[
    (
        "shop.proto",
        r#"syntax = "proto3"; package shop; import "book.proto"; import "google/protobuf/duration.proto";
        // Sells books.
        service Shop {
          rpc Get(Wanted) returns (book.Book);
          rpc Follow(Wanted) returns (stream book.Book);
          rpc Talk(stream Wanted) returns (stream book.Book);
        }
        message Wanted { string isbn = 1; google.protobuf.Duration within = 2; }"#,
    ),
    (
        "book.proto",
        r#"syntax = "proto3"; package book; message Book { string title = 1; repeated Book series = 2; }"#,
    ),
];

fn written(plan: &Plan) -> String {
    serde_json::to_string(plan).expect("a form")
}

fn read(form: &str) -> Plan {
    serde_json::from_str(form).unwrap_or_else(|error| panic!("{error}: {form}"))
}

fn refused(form: &str) -> String {
    serde_json::from_str::<Plan>(form).unwrap_err().to_string()
}

fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

fn open(arrivals: Arrivals) -> Pace {
    let rate = |per_second| Rate::per_second(per_second).expect("a rate");
    let steps = match arrivals {
        Arrivals::Trace(_) => Vec::new(),
        _ => vec![
            RateStep::steady(rate(1e3 / 7.0), secs(10)),
            RateStep {
                from: rate(0.1 + 0.2),
                to: rate(0.0),
                length: Span::from_nanos(1_234_567_891),
            },
        ],
    };
    Pace::Open { arrivals, steps }
}

fn simple() -> Plan {
    let spec = RequestSpec::get("http://127.0.0.1:9/a");
    Plan::new(vec![spec], open(Arrivals::Constant))
}

fn call(method: &str) -> GrpcCall {
    let schema = Schema::compile(&["shop.proto"], SHOP).expect("a schema");
    GrpcCall::new(schema.find(method).expect("a method")).expect("a call")
}

fn pem(name: &str) -> Option<PemFile> {
    Some(PemFile {
        name: name.to_owned(),
        bytes: (*b"-----BEGIN\n\xff\0").into(),
    })
}

/// A plan with data, files and most other options.
fn shop() -> Plan {
    let mut shop = simple();
    let mut post = RequestSpec::post("http://shop.example/{{isbn}}", "text/xml", "<t>{{t}}</t>\n");
    post.headers
        .push(("X".to_owned(), "\u{e9}\"{{isbn}}".to_owned()));
    post.weight = 0.1 + 0.2;
    post.think = Span::from_nanos(987_654_321);
    shop.requests.push(post);
    shop.data = Data::read("isbn,t\n1,\"a, \"\"b\"\"\"\n2,\n".as_bytes()).expect("rows");
    shop.resolve = ["shop.example:80:127.0.0.9", "shop.example:443:[::1]"]
        .map(|text| text.parse().expect("an address"))
        .to_vec();
    shop.warm_up = secs(2);
    shop.connections = Connections::New;
    shop.threads = 3;
    shop.cpus = vec![0, 2];
    shop.connection_limit = 7;
    shop.seed = Seed(u64::MAX);
    shop.retries = Some(RetryPolicy {
        limit: 3,
        backoff: Backoff::None,
    });
    shop.decoding = Some(10_000);
    shop.tls = TlsOptions {
        insecure: true,
        certificate: pem("a.pem"),
        key: pem("keys/b.pem"),
        resumption: true,
        roots: pem("c"),
    };
    shop
}

/// Plans with every variant of every part.
fn rich() -> Vec<Plan> {
    let mut closed = simple();
    closed.pace = Pace::Closed {
        clients: 12,
        length: secs(3),
    };
    closed.retries = Some(RetryPolicy {
        limit: u32::MAX,
        backoff: Backoff::Exponential {
            base: Span::from_millis(100),
        },
    });
    closed.events = Some(EventPlan {
        format: EventFormat::Sse,
        end_mark: Some("[DONE]".to_owned()),
    });

    let mut traced = simple();
    traced.pace = open(Arrivals::Trace(
        [0, 5, 5, 1 << 40].map(Span::from_nanos).into(),
    ));
    traced.events = Some(EventPlan {
        format: EventFormat::JsonLines,
        end_mark: None,
    });
    traced.buying = Some(buying(None, WithoutOffers::Decline, None));

    let mut random = simple();
    random.pace = open(Arrivals::Poisson);
    random.buying = Some(buying(Some("books"), WithoutOffers::Send, Some(secs(1))));

    let mut called = simple();
    called.requests[0].grpc = Some(call("shop.Shop/Follow"));
    called.events = EventPlan::of_call(&call("shop.Shop/Follow"));
    called.protocol = Protocol::Http2(Multiplexing::default());

    let mut plans = vec![simple(), shop(), closed, traced, random, called];
    for when_full in [WhenFull::Wait, WhenFull::Open, WhenFull::Drop] {
        for rejected in [WhenRejected::Count, WhenRejected::Resend] {
            let mut plan = simple();
            plan.protocol = Protocol::Http2(Multiplexing {
                connections: 4,
                streams: Some(100),
                when_full,
                rejected,
            });
            plans.push(plan);
        }
    }
    plans
}

fn buying(kind: Option<&str>, without: WithoutOffers, ask_every: Option<Span>) -> Buying {
    let wanted =
        r#"{"defaultQoSInfo":{"serverQoSMetrics":{"processingTime":12.5,"reliability":0.99}}}"#;
    Buying {
        broker: "http://127.0.0.1:8090/".to_owned(),
        kind: kind.map(str::to_owned),
        wanted: Definition {
            price: Some("0.40EUR".parse().expect("a price")),
            ..serde_json::from_str(wanted).expect("a definition")
        },
        without,
        ask_every,
    }
}

#[test]
fn every_part_of_a_plan_is_read_as_it_was_written() {
    for plan in rich() {
        let form = written(&plan);
        let back = read(&form);
        assert_eq!(written(&back), form);
        let shown = |plan: &Plan| {
            let mut plan = plan.clone();
            // Its debug form has the addresses of a pool.
            plan.requests.iter_mut().for_each(|spec| spec.grpc = None);
            format!("{plan:?}")
        };
        assert_eq!(shown(&back), shown(&plan));
    }
}

#[test]
fn a_call_is_encoded_alike_on_each_side() {
    let call = call("shop.Shop/Get");
    let form = serde_json::to_string(&call).expect("a form");
    let back: GrpcCall = serde_json::from_str(&form).expect("a call");
    assert_eq!((back.name(), back.kind()), (call.name(), call.kind()));
    let message = r#"{"isbn": "1", "within": "3s"}"#;
    let [mut one, mut other] = [Vec::new(), Vec::new()];
    call.write_messages(message, &mut one).expect("a message");
    back.write_messages(message, &mut other).expect("a message");
    assert_eq!(one, other);
    for (name, reason) in [
        ("shop.Shop/Talk", "both directions"),
        ("shop.Shop/Got", "no method"),
    ] {
        let other = form.replace("shop.Shop/Get", name);
        let error = serde_json::from_str::<GrpcCall>(&other).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

/// Requirements are numbers of JSON. Their reader must not miss the last bit either.
#[test]
fn every_bit_of_a_requirement_arrives() {
    let mut buying = buying(None, WithoutOffers::Decline, None);
    for part in 1..1_000 {
        let share = f64::from(part) / 1_009.0;
        let server = &mut buying.wanted.default.server;
        server.reliability = posthaste_units::Ratio::new(share);
        server.requests_per_second = Rate::per_second(share * 1e3);
        let form = serde_json::to_string(&buying).expect("a form");
        let back: Buying = serde_json::from_str(&form).expect("a buyer");
        assert_eq!(back.wanted, buying.wanted, "{share}");
    }
}

#[test]
fn the_content_of_files_travels_and_is_not_shown() {
    let mut plan = simple();
    plan.tls.key = pem("keys/b.pem");
    assert!(
        written(&plan).contains(r#""key":{"name":"keys/b.pem","bytes":"LS0tLS1CRUdJTgr/AA=="}"#)
    );
    assert!(!format!("{plan:?}").contains("BEGIN"));
}

/// Parts of the form of the simple plan.
const WEIGHT: &str = r#""weight":"1""#;
const STEPS: &str = r#""from":"142.85714285714286","to":"142.85714285714286","length":10000000000"#;

/// A part of that form, another one, and a part of the error.
const BROKEN: &[(&str, &str, &str)] = &[
    (WEIGHT, r#""weight":"0""#, "weights"),
    (WEIGHT, r#""weight":"NaN""#, "finite number"),
    (WEIGHT, r#""weight":1"#, "as a string"),
    (r#""threads":1"#, r#""threads":0"#, "0 is not from 1"),
    (
        r#""threads":1"#,
        r#""threads":65537"#,
        "not from 1 to 65536",
    ),
    (
        r#""threads":1"#,
        r#""threads":1,"thread":1"#,
        "unknown field `thread`",
    ),
    (
        r#""connection_limit":16384"#,
        r#""connection_limit":0"#,
        "connection_limit",
    ),
    (
        r#""protocol":"http1""#,
        r#""protocol":"http3""#,
        "expected struct variant",
    ),
    (
        r#""protocol":"http1""#,
        r#""protocol":"http4""#,
        "unknown variant",
    ),
    (
        r#""protocol":"http1""#,
        r#""protocol":{"http2":{"connections":0,"streams":null,"when_full":"wait","rejected":"count"}}"#,
        "protocol: 0",
    ),
    (r#""decoding":null"#, r#""decoding":0"#, "slowdown"),
    (
        r#""retries":null"#,
        r#""retries":{"limit":1,"backoff":{"exponential":{"base":0}}}"#,
        "retries: exp:T needs a time",
    ),
    (
        r#""events":null"#,
        r#""events":{"format":"grpc-messages","end_mark":null}"#,
        "does not go",
    ),
    (
        r#""events":null"#,
        r#""events":{"format":"sse","end_mark":"a\n"}"#,
        "end mark",
    ),
    (
        r#""warm_up":0"#,
        r#""warm_up":18446744073709551615"#,
        "31 days",
    ),
    (
        STEPS,
        r#""from":"1000000001","to":"1","length":1"#,
        "rate is at most",
    ),
    (
        r#"http://127.0.0.1:9/a","method"#,
        r#"http://127.0.0.1:9/a\r\nX: y","method"#,
        "control",
    ),
    (
        r#""resolve":[]"#,
        r#""resolve":[{"host":"A","port":1,"address":"::1"}]"#,
        "lower case",
    ),
    (
        r#""resolve":[]"#,
        r#""resolve":[{"host":"a:1","port":1,"address":"::1"}]"#,
        "without a port",
    ),
    (r#""data":"""#, r#""data":"a,a\n1,2\n""#, "rename one"),
];

#[test]
fn plans_that_would_break_a_run_are_refused() {
    let form = written(&simple());
    let changed = |from: &str, to: &str| {
        assert!(form.contains(from), "{from} is not in {form}");
        refused(&form.replace(from, to))
    };
    for (from, to, reason) in BROKEN {
        let error = changed(from, to);
        assert!(error.contains(reason), "{to}: {error}");
    }
    let trace = |times: &str| {
        let pace = form.find(r#""pace":"#).expect("a pace");
        let after = form.find(r#","warm_up""#).expect("a warm-up");
        let pace_form =
            format!(r#""pace":{{"open":{{"arrivals":{{"trace":{times}}},"steps":[]}}}}"#);
        format!("{}{pace_form}{}", &form[..pace], &form[after..])
    };
    assert_eq!(read(&trace("[1,0,3]")).expected(), Some(3));
    assert!(refused(&trace("[1,-1]")).contains("invalid value"));
    assert!(refused(&trace("[1,18446744073709551615]")).contains("584 years"));
    let mut none = simple();
    none.requests.clear();
    assert!(refused(&written(&none)).contains("requests: 0"));
    let mut heavy = simple();
    heavy.requests[0].weight = f64::MAX;
    heavy.requests.push(heavy.requests[0].clone());
    assert!(refused(&written(&heavy)).contains("weights"));
}

fn plans() -> impl Strategy<Value = Plan> {
    let spec = (
        "[a-z{}% ]{0,8}",
        1e-300f64..1e300,
        any::<u64>(),
        any::<Option<String>>(),
    );
    let spec = spec.prop_map(|(path, weight, think, body)| RequestSpec {
        weight,
        think: Span::from_nanos(think),
        body: body.unwrap_or_default(),
        ..RequestSpec::get(format!("http://127.0.0.1:9/{path}"))
    });
    let step = (0f64..1e6, 0f64..1e6, 0u64..1 << 40);
    let step = step.prop_map(|(from, to, length)| RateStep {
        from: Rate::per_second(from).expect("a rate"),
        to: Rate::per_second(to).expect("a rate"),
        length: Span::from_nanos(length),
    });
    let pace = prop_oneof![
        (any::<bool>(), prop::collection::vec(step, 0..4)).prop_map(|(poisson, steps)| {
            Pace::Open {
                arrivals: if poisson {
                    Arrivals::Poisson
                } else {
                    Arrivals::Constant
                },
                steps,
            }
        }),
        prop::collection::vec(0u64..1 << 48, 0..20).prop_map(|mut times| {
            times.sort_unstable();
            let times: Arc<[Span]> = times.into_iter().map(Span::from_nanos).collect();
            open(Arrivals::Trace(times))
        }),
        (1u32..1 << 22, 0u64..1 << 50).prop_map(|(clients, length)| Pace::Closed {
            clients,
            length: Span::from_nanos(length),
        }),
    ];
    let specs = prop::collection::vec(spec, 1..4);
    let rest = (
        1usize..9,
        any::<u64>(),
        any::<[u64; 2]>(),
        any::<IpAddr>(),
        0u64..1 << 48,
    );
    (specs, pace, rest).prop_map(
        |(requests, pace, (threads, seed, timeouts, address, warm_up))| {
            let [connect_timeout, timeout] = timeouts.map(Span::from_nanos);
            Plan {
                threads,
                seed: Seed(seed),
                connect_timeout,
                timeout,
                warm_up: Span::from_nanos(warm_up),
                resolve: vec![Resolve {
                    host: "a.example".to_owned(),
                    port: 80,
                    address,
                }],
                ..Plan::new(requests, pace)
            }
        },
    )
}

proptest! {
    #[test]
    fn any_plan_is_read_as_it_was_written_and_can_be_prepared(plan in plans()) {
        let form = written(&plan);
        let back = read(&form);
        prop_assert_eq!(written(&back), form);
        let bits = |plan: &Plan| -> Vec<u64> {
            plan.requests.iter().map(|request| request.weight.to_bits()).collect()
        };
        prop_assert_eq!(bits(&back), bits(&plan));
        // An error is an answer; a panic is not.
        let (now, at) = (AtomicBool::new(false), StopTime::never());
        let orders = StopOrders { now: &now, at: &at };
        let share = Share::whole(&back);
        let _ = preparation::prepare(&back, share, orders, &AnyTarget).map(|_| ());
        back.end();
        back.step_ends();
    }
}
