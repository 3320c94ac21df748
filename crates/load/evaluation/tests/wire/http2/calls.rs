//! gRPC calls: one outcome for each end of a reply, messages as events, and errors before the run.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use posthaste_http::grpc::Code;
use posthaste_load::{
    Backoff, Data, EventPlan, GrpcCall, Multiplexing, Outcome, Plan, ReflectedServer, RetryPolicy,
    Run, RunError, SchemaSource, TlsOptions, grpc_request, run,
};
use posthaste_units::{Seed, Span};
use rand::RngExt as _;

use super::server::{
    DATA, END_HEADERS, END_STREAM, HEADERS, STATUS_200, STATUS_500, ServerAct, StreamServer, frame,
    goaway, reset,
};
use super::with_connections;
use crate::server::{IN_VAIN, carried_out, plan as http1_plan};

const PROTO: &str = "syntax = \"proto3\";
package shop.v1;
service Shop {
  rpc Get(Question) returns (Answer);
  rpc List(Question) returns (stream Answer);
  rpc Order(stream Question) returns (Answer);
  rpc Talk(stream Question) returns (stream Answer);
}
message Question { string text = 1; int32 number = 2; }
message Answer { string text = 1; }
";

/// A message with the text `hi`, with its prefix.
const MESSAGE: &[u8] = &[0, 0, 0, 0, 4, 0x0a, 2, b'h', b'i'];

/// Writes a schema to a folder of its own.
fn proto(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.proto");
    fs::write(&file, text).unwrap();
    (folder, file)
}

fn find(method: &str) -> Result<GrpcCall, posthaste_load::GrpcCallError> {
    let (_folder, file) = proto(PROTO);
    let files = [file];
    let source = SchemaSource::Proto {
        files: &files,
        folders: &[],
    };
    source.find(method)
}

/// A plan of ten calls in 100 ms.
fn plan(server: &StreamServer, method: &str, message: &str) -> Plan {
    let call = find(&format!("shop.v1.Shop/{method}")).unwrap();
    let mut plan = http1_plan(server.address, 100.0, 100);
    plan.connect_timeout = Span::from_secs(10);
    plan.protocol = posthaste_load::Protocol::Http2(Multiplexing::default());
    let url = format!("http://{}", server.address);
    plan.requests = vec![grpc_request(&call, &url, message, plan.timeout).unwrap()];
    plan.events = EventPlan::of_call(&call);
    plan
}

/// A field of a head or of trailers, without compression.
fn field(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).unwrap();
    let mut field = vec![0, length(name)];
    field.extend(name.as_bytes());
    field.push(length(value));
    field.extend(value.as_bytes());
    field
}

/// HEADERS of a reply with status 200.
fn head(stream: u32, flags: u8, status: Option<&str>) -> Vec<u8> {
    let mut block = STATUS_200.to_vec();
    block.extend(field("content-type", "application/grpc"));
    block.extend(status.map_or_else(Vec::new, |status| field("grpc-status", status)));
    frame(HEADERS, END_HEADERS | flags, stream, &block)
}

fn trailers(stream: u32, status: &str) -> Vec<u8> {
    let block = field("grpc-status", status);
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)
}

fn message(stream: u32) -> Vec<u8> {
    frame(DATA, 0, stream, MESSAGE)
}

/// A reply with these messages and a status.
fn reply(stream: u32, messages: usize, status: &str) -> Vec<u8> {
    let mut bytes = head(stream, 0, None);
    (0..messages).for_each(|_| bytes.extend(message(stream)));
    bytes.extend(trailers(stream, status));
    bytes
}

fn answering(act: impl Fn(u32) -> Vec<u8> + Send + Sync + Clone + 'static) -> StreamServer {
    StreamServer::start(Vec::new(), move |arrival| {
        ServerAct::Send(act(arrival.stream), Duration::ZERO)
    })
}

fn all_end_as(run: &Run, outcome: Outcome) {
    assert_eq!(
        run.outcomes[outcome], 10,
        "{outcome}: {:?} {:?}",
        run.outcomes, run.reasons
    );
}

/// A reply to a stream.
type Reply = fn(u32) -> Vec<u8>;

#[test]
fn each_end_of_a_reply_has_one_outcome() {
    let ends: [(Reply, Outcome); 12] = [
        (|s| reply(s, 1, "0"), Outcome::Ok),
        (|s| reply(s, 0, "0"), Outcome::ProtocolError),
        (|s| reply(s, 2, "0"), Outcome::ProtocolError),
        (|s| reply(s, 1, "5"), Outcome::GrpcError),
        (|s| head(s, END_STREAM, Some("4")), Outcome::GrpcError),
        (|s| head(s, END_STREAM, Some("0")), Outcome::ProtocolError),
        (|s| head(s, END_STREAM, None), Outcome::ProtocolError),
        (
            |s| [head(s, 0, None), frame(DATA, END_STREAM, s, MESSAGE)].concat(),
            Outcome::ProtocolError,
        ),
        (
            |s| {
                let cut = frame(DATA, 0, s, &MESSAGE[..7]);
                [head(s, 0, None), cut, trailers(s, "0")].concat()
            },
            Outcome::ProtocolError,
        ),
        (
            |s| {
                let compressed = [&[1], &MESSAGE[1..]].concat();
                [
                    head(s, 0, None),
                    frame(DATA, 0, s, &compressed),
                    trailers(s, "0"),
                ]
                .concat()
            },
            Outcome::Undecodable,
        ),
        (
            |s| [head(s, 0, None), message(s), reset(s, 2)].concat(),
            Outcome::Reset,
        ),
        (
            |s| frame(HEADERS, END_HEADERS | END_STREAM, s, STATUS_500),
            Outcome::StatusError,
        ),
    ];
    for (number, (bytes, outcome)) in ends.into_iter().enumerate() {
        let server = answering(bytes);
        let run = carried_out(&plan(&server, "Get", "{}"));
        println!("end {number}");
        all_end_as(&run, outcome);
        let stated = u64::from(matches!(outcome, Outcome::Ok | Outcome::GrpcError)) * 10;
        assert_eq!(run.grpc.total(), stated, "end {number}");
    }
}

/// As servers of grpcio state each exception of a handler.
#[test]
fn a_text_that_ends_with_a_blank_is_a_status_once() {
    let text = field("grpc-message", "Exception calling application: ");
    let block = [field("grpc-status", "2"), text].concat();
    let server = answering(move |stream| {
        let trailers = frame(HEADERS, END_HEADERS | END_STREAM, stream, &block);
        [head(stream, 0, None), trailers].concat()
    });
    let mut plan = plan(&server, "Get", "{}");
    plan.retries = Some(RetryPolicy {
        limit: 2,
        backoff: Backoff::None,
    });
    let run = carried_out(&plan);
    all_end_as(&run, Outcome::GrpcError);
    assert_eq!(run.grpc.calls_with(Code::Unknown), 10);
    let reason = "UNKNOWN: Exception calling application:";
    assert_eq!(run.reasons[&Outcome::GrpcError], reason);
    // A status is final; a violation of the protocol would be sent again.
    assert_eq!(server.log().requests.len(), 10);
}

#[test]
fn statuses_are_counted_by_name() {
    let server = StreamServer::start(Vec::new(), |arrival| {
        let status = ["0", "5", "8", "99"][arrival.number % 4];
        ServerAct::Send(reply(arrival.stream, 1, status), Duration::ZERO)
    });
    let run = carried_out(&plan(&server, "Get", "{}"));
    let counts = [
        Code::Ok,
        Code::NotFound,
        Code::ResourceExhausted,
        Code::Unknown,
    ];
    assert_eq!(counts.map(|code| run.grpc.calls_with(code)), [3, 3, 2, 2]);
    assert_eq!(run.outcomes[Outcome::GrpcError], 7);
    assert_eq!(run.reasons[&Outcome::GrpcError], "NOT_FOUND");
}

#[test]
fn deadlines_of_both_ends_are_told_apart() {
    let late = |_: &_| ServerAct::Ignore;
    let mut ours = plan(&StreamServer::start(Vec::new(), late), "Get", "{}");
    ours.timeout = IN_VAIN;
    all_end_as(&carried_out(&ours), Outcome::TimedOut);
    let server = answering(|stream| head(stream, END_STREAM, Some("4")));
    let run = carried_out(&plan(&server, "Get", "{}"));
    all_end_as(&run, Outcome::GrpcError);
    assert_eq!(run.grpc.calls_with(Code::DeadlineExceeded), 10);
}

#[test]
fn messages_of_a_stream_are_events() {
    let server = answering(|stream| reply(stream, 3, "0"));
    let run = carried_out(&plan(&server, "List", "{}"));
    all_end_as(&run, Outcome::Ok);
    assert_eq!(run.events.events, 30);
    assert_eq!(run.events.first.distribution().count(), 10);
    // They arrive in one piece, so their gaps are unknown.
    assert_eq!(run.events.at_once, 10);
    assert_eq!(run.events.gaps.distribution().count(), 0);
}

#[test]
fn a_stream_without_messages_is_ok_and_has_no_first_event() {
    let server = answering(|stream| reply(stream, 0, "0"));
    let run = carried_out(&plan(&server, "List", "{}"));
    all_end_as(&run, Outcome::Ok);
    assert_eq!(run.events.first.distribution().censored(), 10);
}

#[test]
fn a_message_that_is_cut_is_no_event() {
    let server = answering(|s| {
        let cut = frame(DATA, END_STREAM, s, &MESSAGE[..8]);
        [head(s, 0, None), message(s), cut].concat()
    });
    let run = carried_out(&plan(&server, "List", "{}"));
    all_end_as(&run, Outcome::ProtocolError);
    assert_eq!(run.events.events, 10);
}

#[test]
fn a_stream_of_requests_is_a_list_or_one_after_the_other() {
    for (messages, bytes) in [
        ("[]", 0),
        ("[{\"text\": \"abc\"}, {}]", 15),
        ("{\"text\": \"abc\"}\n{}\n", 15),
        ("{}", 5),
    ] {
        let server = answering(|stream| reply(stream, 1, "0"));
        let run = carried_out(&plan(&server, "Order", messages));
        all_end_as(&run, Outcome::Ok);
        let log = server.log();
        assert!(
            log.requests.iter().all(|arrival| arrival.body == bytes),
            "{messages}"
        );
    }
}

#[test]
fn messages_are_filled_from_rows_and_checked_before_the_run() {
    let server = answering(|stream| reply(stream, 1, "0"));
    let mut calls = plan(
        &server,
        "Get",
        "{\"text\": {{text|tojson}}, \"number\": {{n}}}",
    );
    calls.data = Data::read("text,n\na,1\n\"b\"\"\",2\nccc,0\n".as_bytes()).unwrap();
    all_end_as(&carried_out(&calls), Outcome::Ok);
    let bodies: Vec<usize> = server
        .log()
        .requests
        .iter()
        .map(|arrival| arrival.body)
        .collect();
    // The prefix, the text with two bytes before it, and the number unless it is 0.
    assert_eq!(bodies, [10, 11, 10, 10, 11, 10, 10, 11, 10, 10]);
    calls.data = Data::read("text,n\na,1\nb,x\n".as_bytes()).unwrap();
    let error = refused(&calls);
    for part in ["row 2 of the data", "line 1, column", "shop.v1.Question"] {
        assert!(error.contains(part), "{error}");
    }
}

/// The error of a plan that is not carried out.
fn refused(plan: &Plan) -> String {
    match run(plan, &AtomicBool::new(false), &mut ()) {
        Err(error @ (RunError::Request(_) | RunError::Plan(_))) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the plan was carried out"),
    }
}

#[test]
fn mistakes_are_named_before_the_run() {
    let server = answering(|stream| reply(stream, 1, "0"));
    for (message, part) in [
        ("{\"txt\": \"a\"}", "txt"),
        ("{\"number\":\n \"x\"}", "line 2"),
        ("[{}]", "line 1"),
        ("{} {}", "trailing"),
        ("", "EOF"),
    ] {
        let error = refused(&plan(&server, "Get", message));
        assert!(
            error.contains(part) && error.contains("shop.v1.Question"),
            "{error}"
        );
    }
    let mut mixed = plan(&server, "Get", "{}");
    mixed
        .requests
        .push(posthaste_load::RequestSpec::get(format!(
            "http://{}/",
            server.address
        )));
    assert!(refused(&mixed).contains("a run each"));
    let mut http1 = plan(&server, "Get", "{}");
    http1.protocol = posthaste_load::Protocol::Http1;
    assert!(refused(&http1).contains("HTTP/2"));
    assert!(server.log().requests.is_empty());
    for (method, part) in [
        ("shop.v1.Shop/Gett", "the nearest is Get"),
        ("shop.v1.Shp/Get", "the nearest is shop.v1.Shop"),
        ("shop.v1.Shop.Get", "write package.Service/Method"),
        ("shop.v1.Shop/Talk", "streams in both directions"),
    ] {
        let error = find(method).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_schema_that_is_none_is_named_with_its_place() {
    for (correct, wrong, part) in [
        ("(Question)", "(Querstion)", "shop.proto:4:"),
        ("rpc List", "rcp List", "shop.proto:5:"),
        ("package", "import \"other.proto\";\npackage", "other.proto"),
    ] {
        let (_folder, file) = proto(&PROTO.replace(correct, wrong));
        let files = [file];
        let source = SchemaSource::Proto {
            files: &files,
            folders: &[],
        };
        let error = source.find("shop.v1.Shop/Get").unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let absent = [PathBuf::from("/no/such/file.proto")];
    let source = SchemaSource::Proto {
        files: &absent,
        folders: &[],
    };
    let error = source.find("a.B/C").unwrap_err().to_string();
    assert!(error.contains("/no/such/file.proto"), "{error}");
    let (_folder, file) = proto("no descriptor set");
    let error = SchemaSource::DescriptorSet(&file)
        .find("a.B/C")
        .unwrap_err();
    assert!(error.to_string().contains("shop.proto"), "{error}");
}

#[test]
fn imports_are_found_in_the_folders_of_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("shop/v1");
    fs::create_dir_all(&inner).unwrap();
    let (service, messages) = PROTO.split_once("message Question").unwrap();
    let imports = "package shop.v1;\nimport \"shop/v1/messages.proto\";";
    fs::write(
        inner.join("shop.proto"),
        service.replace("package shop.v1;", imports),
    )
    .unwrap();
    let messages = format!("syntax = \"proto3\";\npackage shop.v1;\nmessage Question{messages}");
    fs::write(inner.join("messages.proto"), messages).unwrap();
    let files = [inner.join("shop.proto")];
    let folders = [folder.path().to_path_buf()];
    let find = |folders: &[PathBuf]| {
        let source = SchemaSource::Proto {
            files: &files,
            folders,
        };
        source.find("shop.v1.Shop/Get")
    };
    find(&folders).unwrap();
    let error = find(&[]).unwrap_err().to_string();
    assert!(error.contains("shop/v1/messages.proto"), "{error}");
}

#[test]
fn a_server_without_reflection_names_the_other_ways() {
    let error_of = |server: &StreamServer| {
        let source = SchemaSource::Reflection(ReflectedServer {
            url: &format!("http://{}", server.address),
            resolve: &[],
            tls: &TlsOptions::default(),
            headers: &[],
        });
        source.find("shop.v1.Shop/Get").unwrap_err().to_string()
    };
    // The question is a stream that does not end, so the server answers its beginning.
    for bytes in [
        head(1, END_STREAM, Some("12")),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, STATUS_500),
        reset(1, 2),
        goaway(0, 0),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
    ] {
        let server = StreamServer::greeting(bytes);
        let error = error_of(&server);
        assert!(error.contains("--proto FILE or --protoset FILE"), "{error}");
    }
}

/// Chooses the act of a random server for a call.
fn act(seed: Seed, number: usize, stream: u32) -> ServerAct {
    let mut random = seed.numbered("act", number as u64).stream("choice");
    let delay = Duration::from_millis(random.random_range(0..20));
    let status = random.random_range(0..18).to_string();
    let bytes = match random.random_range(0..14) {
        0 => return ServerAct::Ignore,
        1 => return ServerAct::Close(head(stream, 0, None)),
        2 => reset(stream, 7),
        3 => goaway(stream, 0),
        4 => head(stream, END_STREAM, Some(&status)),
        5 => [
            head(stream, 0, Some("0")),
            message(stream),
            trailers(stream, "0"),
        ]
        .concat(),
        6 => [
            head(stream, 0, None),
            frame(DATA, END_STREAM, stream, b"junk"),
        ]
        .concat(),
        7 => frame(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_500),
        8 => [reply(stream, 1, &status), reply(stream, 1, "0")].concat(),
        9 => {
            let cut = &MESSAGE[..random.random_range(0..MESSAGE.len())];
            [
                head(stream, 0, None),
                frame(DATA, 0, stream, cut),
                trailers(stream, &status),
            ]
            .concat()
        }
        _ => reply(stream, random.random_range(0..4), &status),
    };
    ServerAct::Send(bytes, delay)
}

#[test]
fn every_call_has_one_outcome_whatever_the_server_does() {
    for number in 0..24 {
        let seed = Seed(number);
        let mut random = seed.stream("plan");
        let server = StreamServer::start(Vec::new(), move |arrival| {
            act(
                seed,
                arrival.connection * 1_000 + arrival.number,
                arrival.stream,
            )
        });
        let method = ["Get", "List", "Order"][random.random_range(0..3)];
        let mut plan = plan(&server, method, "{\"text\": \"x\"}");
        let options = with_connections(random.random_range(1..4));
        plan.protocol = posthaste_load::Protocol::Http2(options);
        plan.timeout = Span::from_millis(random.random_range(100..400));
        // Each identity is asserted in the run itself.
        let run = carried_out(&plan);
        assert_eq!(run.intended, 10, "seed {number}");
        let stated = run.outcomes[Outcome::Ok] + run.outcomes[Outcome::GrpcError];
        assert_eq!(run.grpc.total(), stated, "seed {number}");
        assert_eq!(
            run.grpc.calls_with(Code::Ok),
            run.outcomes[Outcome::Ok],
            "seed {number}"
        );
    }
}
