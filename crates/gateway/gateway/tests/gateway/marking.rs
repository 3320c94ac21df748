//! The origin of a reply's mark, as reported by the gateway. `crates/lab/papers/tests/marks` checks the packets
//! themselves on a network.

use std::net::SocketAddr;
use std::thread;

use posthaste_gateway::{GatewayConfig, RunningGateway, start};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use crate::priced::{Priced, promise};
use crate::support::{ReceivedReply, TestClient, TestOrigin, field, get};
use crate::watching::fetch_admin;

const REPLY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbooks";

/// A gateway that marks, with `more` in its section and a route `/marked` with a mark.
fn marking(origin: SocketAddr, more: &str) -> RunningGateway {
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[marking]\npolicy = \"asked\"\n{more}\n\
         [[route]]\npath = \"/\"\nupstream = [\"{origin}\"]\n\
         [[route]]\npath = \"/marked\"\nupstream = [\"{origin}\"]\nmark = \"cs2\"\n"
    );
    start(GatewayConfig::read(&text).unwrap()).unwrap()
}

fn decision(reply: &ReceivedReply) -> Option<&str> {
    field(&reply.head, "mark-decision")
}

/// The mark decision for a GET with these fields.
fn decided(gateway: &RunningGateway, path: &str, fields: &str) -> String {
    let reply = get(gateway, path, &format!("Prefer: mark-reason\r\n{fields}"));
    decision(&reply).unwrap().to_owned()
}

fn call(priorities: &str) -> String {
    let body = format!(
        "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Header>\
         <w:WSQoSSoapHeader xmlns:w=\"http://wsqos.org/\"><qosInfo><transportQoSPriorities>{priorities}\
         </transportQoSPriorities></qosInfo></w:WSQoSSoapHeader></s:Header><s:Body/></s:Envelope>"
    );
    let length = body.len();
    format!(
        "POST /marked HTTP/1.1\r\nHost: s\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n\
         Prefer: mark-reason, mark=af12\r\nPriority: u=7\r\n\r\n{body}"
    )
}

#[test]
fn whoever_is_first_to_ask_decides() {
    let origin = TestOrigin::answering(REPLY);
    let gateway = marking(origin.address, "");
    assert_eq!(decided(&gateway, "/", ""), "default; unasked");
    assert_eq!(
        decided(&gateway, "/", "Priority: u=0, i\r\n"),
        "af21; priority"
    );
    assert_eq!(
        decided(&gateway, "/marked", "Priority: u=0\r\n"),
        "cs2; route"
    );
    let prefer = "Prefer: mark=0x0a\r\n";
    assert_eq!(decided(&gateway, "/marked", prefer), "af11; prefer");
    let decision_for = |priorities: &str| {
        let reply = TestClient::new(&gateway)
            .send(call(priorities))
            .reply(false);
        decision(&reply.unwrap()).unwrap().to_owned()
    };
    assert_eq!(
        decision_for("<throughput>0</throughput>"),
        "af11; soap-header"
    );
    assert_eq!(
        decision_for("<throughput>10</throughput>"),
        "default; soap-header"
    );
    assert_eq!(decision_for("<throughput>11</throughput>"), "af12; prefer");
    assert!(
        origin.last_request().contains("<throughput>11<"),
        "the message goes on as it came"
    );

    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    for line in [
        "marks_total{mark=\"cs2\",origin=\"route\"} 1.0",
        "marks_total{mark=\"af11\",origin=\"soap-header\"} 1.0",
        "mark_events_total{event=\"denied\"} 0.0",
        "fields_unread_total{field=\"transport-priorities\"} 1.0",
        // Each reply had its own connection. The default mark needs no change.
        "mark_events_total{event=\"set\"} 5.0",
        "mark_events_total{event=\"refused\"} 0.0",
    ] {
        assert!(
            text.contains(&format!("posthaste_gateway_{line}")),
            "{line}: {text}"
        );
    }
}

#[test]
fn nobody_gets_more_than_is_allowed() {
    let origin = TestOrigin::answering(REPLY);
    let gateway = marking(origin.address, "allow = [\"af11\"]");
    assert_eq!(
        decided(&gateway, "/", "Prefer: mark=ef\r\n"),
        "default; unasked"
    );
    assert_eq!(
        decided(&gateway, "/marked", "Prefer: mark=ef\r\n"),
        "cs2; route"
    );
    assert_eq!(
        decided(&gateway, "/", "Prefer: mark=af11\r\n"),
        "af11; prefer"
    );
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    assert!(
        text.contains("mark_events_total{event=\"denied\"} 2.0"),
        "{text}"
    );
}

#[test]
fn a_gateway_that_does_not_mark_says_nothing() {
    let origin = TestOrigin::answering(REPLY);
    let gateway = crate::support::gateway(&origin);
    let reply = get(&gateway, "/", "Prefer: mark=ef, mark-reason\r\n");
    assert_eq!((reply.status, decision(&reply)), (200, None));
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    assert!(
        text.contains("mark_events_total{event=\"set\"} 0.0"),
        "{text}"
    );
}

#[test]
fn a_table_of_ones_own_is_read_and_refused_by_its_place() {
    let origin = TestOrigin::answering(REPLY);
    let own = "table = [{ jitter = \"4\", mark = \"va\" }]\n\
               urgency = [\"ef\", \"0\", \"0\", \"0\", \"0\", \"0\", \"0\", \"0\"]";
    let gateway = marking(origin.address, own);
    assert_eq!(decided(&gateway, "/", "Priority: u=0\r\n"), "ef; priority");
    let mut client = TestClient::new(&gateway);
    let reply = client
        .send(call("<jitter>4</jitter>"))
        .reply(false)
        .unwrap();
    assert_eq!(decision(&reply), Some("va; soap-header"));
    for (wrong, message) in [
        (
            "table = [{ delay = \"0..11\", mark = \"ef\" }]",
            "from 0 to 10",
        ),
        (
            "table = [{ dellay = \"0..2\", mark = \"ef\" }]",
            "did you mean `delay`?",
        ),
        ("urgency = [\"ef\"]", "array of length 8"),
        ("allow = [\"af44\"]", "af11 to af43"),
        ("policy = \"always\"", "`asked`"),
    ] {
        let text = format!("listen = \"127.0.0.1:0\"\n[marking]\n{wrong}");
        let error = GatewayConfig::read(&text).unwrap_err().to_string();
        assert!(
            error.starts_with("line 3, ") && error.contains(message),
            "{error}"
        );
    }
}

/// Makes the kernel refuse changes of IPv4's TOS byte to this thread and its children.
fn refuse_marks() {
    let is = |argument, value: libc::c_int| {
        let value = u64::try_from(value).unwrap();
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value).unwrap()
    };
    let marks = vec![is(1, libc::IPPROTO_IP), is(2, libc::IP_TOS)];
    let rules = [(libc::SYS_setsockopt, vec![SeccompRule::new(marks).unwrap()])];
    let machine = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules.into(), SeccompAction::Allow, denied, machine).unwrap();
    let program = BpfProgram::try_from(filter).unwrap();
    apply_filter(&program).unwrap();
}

#[test]
fn replies_are_sent_unmarked_if_the_kernel_refuses_marks() {
    let origin = TestOrigin::answering(REPLY);
    thread::spawn(move || {
        refuse_marks();
        let gateway = marking(origin.address, "upstream = true");
        for _ in 0..3 {
            let reply = get(&gateway, "/", "Prefer: mark=ef\r\n");
            assert_eq!((reply.status, &reply.body[..]), (200, &b"books"[..]));
        }
        let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
        // Each reply had its own connection; all requests shared one connection to the upstream.
        for line in ["set\"} 0.0", "refused\"} 3.0", "upstream-refused\"} 1.0"] {
            let line = format!("posthaste_gateway_mark_events_total{{event=\"{line}");
            assert!(text.contains(&line), "{line}: {text}");
        }
    })
    .join()
    .unwrap();
}

#[test]
fn an_offer_marks_the_replies_of_those_whom_it_lets_in() {
    let file = promise(
        "<transportQoSPriorities><delay>1</delay><jitter>1</jitter></transportQoSPriorities>",
    );
    // EF comes only with an offer and cannot be requested.
    let more = format!(
        "promise = {:?}\nlife = \"60s\"\n[marking]\npolicy = \"asked\"\nallow = [\"af11\"]\n",
        file.path()
    );
    let shop = Priced::new("0.1", &more);
    let decided = |fields: &str| {
        let reply = shop.get(&format!("Prefer: mark-reason\r\n{fields}"));
        assert_eq!(reply.status, 200, "{fields}");
        decision(&reply).unwrap().to_owned()
    };
    let selects = "Selected-Offer: standard@0.00\r\n";
    for (fields, mark) in [
        (selects.to_owned(), "ef; offer"),
        ("Max-Price: 0.10 EUR\r\n".to_owned(), "ef; offer"),
        (
            format!("X-Client: ann\r\nQuote: {}\r\n", shop.quote("ann")),
            "ef; offer",
        ),
        // The request's own allowed wish takes precedence; a wish that is not allowed is ignored.
        (format!("{selects}Prefer: mark=af11\r\n"), "af11; prefer"),
        (format!("{selects}Prefer: mark=af41\r\n"), "ef; offer"),
        (format!("{selects}Priority: u=7\r\n"), "ef; offer"),
        // Admitted because the price is zero: an invalid offer name grants no mark.
        (
            "Selected-Offer: standard@0.01\r\n".to_owned(),
            "default; unasked",
        ),
        (String::new(), "default; unasked"),
    ] {
        assert_eq!(decided(&fields), mark, "{fields}");
    }

    let call = |qos: &str| {
        let header = format!(
            "<w:WSQoSSoapHeader xmlns:w='http://wsqos.org/'>{qos}<selectedOffer>standard@0.00\
             </selectedOffer></w:WSQoSSoapHeader>"
        );
        let reply = shop.call("Prefer: mark-reason\r\n", &header);
        decision(&reply).unwrap().to_owned()
    };
    assert_eq!(call(""), "ef; offer");
    let throughput = "<qosInfo><transportQoSPriorities><throughput>0</throughput></transportQoSPriorities></qosInfo>";
    assert_eq!(call(throughput), "af11; soap-header");

    let origin = TestOrigin::answering(REPLY);
    let unpriced = marking(origin.address, "");
    assert_eq!(
        crate::marking::decided(&unpriced, "/", selects),
        "default; unasked"
    );
}
