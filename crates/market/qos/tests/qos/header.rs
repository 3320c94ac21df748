//! Priorities of a `WSQoSSoapHeader`: valid ones, similar elements, and messages cut into pieces.

use posthaste_qos::{Custom, NAMESPACES, Priorities, Priority, QosBlock, bounds};
use posthaste_soap::head::HeadScan;
use posthaste_soap::{Limits, Version};
use posthaste_units::{Ratio, Span};

/// An envelope with this header.
fn envelope(header: &str) -> String {
    let (soap, wsqos) = (Version::Soap11.namespace(), NAMESPACES[0]);
    format!(
        "<s:Envelope xmlns:s=\"{soap}\" xmlns:q=\"{wsqos}\"><s:Header>{header}</s:Header>\
         <s:Body><q:WSQoSSoapHeader/></s:Body></s:Envelope>"
    )
}

/// A block with `info` in its `qosInfo`.
fn block(info: &str) -> String {
    format!(
        "<q:WSQoSSoapHeader><qosInfo>{info}</qosInfo><selectedOffer>Gold</selectedOffer></q:WSQoSSoapHeader>"
    )
}

fn transport(priorities: &str) -> String {
    block(&format!(
        "<transportQoSPriorities>{priorities}</transportQoSPriorities>"
    ))
}

/// The stated priorities, and true if one was invalid.
fn read(header: &str) -> (Option<Priorities>, bool) {
    let mut scan = HeadScan::new(&Limits::default(), QosBlock::default());
    scan.feed(envelope(header).as_bytes());
    assert!(!scan.wants_more(), "{header}");
    (
        scan.blocks().priorities().cloned(),
        scan.blocks().has_unread_priority(),
    )
}

fn delay(value: u8) -> (Option<Priorities>, bool) {
    let delay = Priority::new(value);
    let stated = Priorities {
        delay,
        ..Priorities::default()
    };
    (Some(stated), false)
}

#[test]
fn every_priority_is_found_however_it_is_written() {
    let all = "<delay>0</delay><jitter> 3\n</jitter><throughput><![CDATA[10]]></throughput>\
         <!-- > --><packetLoss>0<!-- 5 -->7</packetLoss>\
         <customPriority name='colour' ontology=\"urn:o\">4</customPriority>";
    let priority = Priority::new;
    let expected = Priorities {
        delay: priority(0),
        jitter: priority(3),
        throughput: priority(10),
        packet_loss: priority(7),
        custom: vec![Custom {
            name: "colour".to_owned(),
            ontology: "urn:o".to_owned(),
            value: priority(4).unwrap(),
        }],
    };
    let server = "<serverQoSMetrics><processingTime>5</processingTime></serverQoSMetrics>";
    let info = format!("{server}<transportQoSPriorities>{all}</transportQoSPriorities>");
    assert_eq!(read(&block(&info)), (Some(expected), false));
    for header in [
        &transport("<delay>2</delay>"),
        &transport("<q:delay>2</q:delay>"),
        &transport("<delay>2</delay><delay>5</delay>"),
        &transport("<x/><delay unit='>'>2</delay><y><jitter>1</jitter></y>"),
        &block("<q:transportQoSPriorities><delay>2</delay></q:transportQoSPriorities>"),
        "<WSQoSSoapHeader xmlns='http://www.wsqos.net/schemas/'><qosInfo><transportQoSPriorities>\
         <delay>2</delay></transportQoSPriorities></qosInfo></WSQoSSoapHeader>",
        &format!(
            "<x:y xmlns:x='urn:x'><delay>1</delay></x:y>{}",
            transport("<delay>2</delay>")
        ),
        &format!(
            "{}{}",
            transport("<delay>2</delay>"),
            transport("<jitter>2</jitter>")
        ),
    ] {
        assert_eq!(read(header), delay(2), "{header}");
    }
}

#[test]
fn misplaced_priorities_are_ignored() {
    for header in [
        "<q:WSQoSSoapHeader/>",
        &transport(""),
        &block("<delay>2</delay>"),
        &block(
            "<transportQoSPriorities/><transportQoSPriorities><delay>2</delay></transportQoSPriorities>",
        ),
        &block(
            "</qosInfo><qosInfo><transportQoSPriorities><delay>2</delay></transportQoSPriorities>",
        ),
        &transport("<x><delay>2</delay></x>"),
        &transport("<o:delay xmlns:o='urn:o'>2</o:delay>"),
        &transport("<unbound:delay>2</unbound:delay>"),
        &transport("<customPriority name='colour'>2</customPriority>"),
        &transport("<delay>2</delay>").replace("q:WS", "WS"),
        &transport("<delay>2</delay>").replace("q:WSQoSSoapHeader", "q:WSQoSHeader"),
        "<x><q:WSQoSSoapHeader><qosInfo><transportQoSPriorities><delay>2</delay>\
         </transportQoSPriorities></qosInfo></q:WSQoSSoapHeader></x>",
    ] {
        assert_eq!(read(header), (None, false), "{header}");
    }
    for value in [
        "",
        "11",
        "-1",
        "1.5",
        "two",
        "1<x/>",
        "00000000000000001 2",
        "&#49;",
    ] {
        let header = transport(&format!("<delay>{value}</delay>"));
        assert_eq!(read(&header), (None, true), "{header}");
    }
    let none = read("<x/>");
    assert_eq!(none, (None, false), "and nothing in the Body");
}

#[test]
fn custom_priorities_are_bounded() {
    let custom = |n: usize| format!("<customPriority name='n{n}' ontology='o'>1</customPriority>");
    let many = |count: usize| (0..count).map(custom).collect::<String>();
    let count =
        |(stated, unread): (Option<Priorities>, bool)| (stated.unwrap().custom.len(), unread);
    let twice = transport(&many(bounds::LIST).repeat(2));
    assert_eq!(count(read(&twice)), (bounds::LIST, false));
    let more = transport(&many(bounds::LIST + 1));
    assert_eq!(count(read(&more)), (bounds::LIST, true));
    let long = "n".repeat(bounds::TEXT + 1);
    let header = transport(&custom(1).replace("n1", &long));
    assert_eq!(read(&header), (None, false));
}

#[test]
fn cuts_change_nothing() {
    let text = envelope(&transport(
        "<jitter x='/>'>4</jitter><q:delay>\n10 </q:delay><customPriority ontology='o' name='n'>2</customPriority>",
    ));
    let whole = read(&transport(
        "<jitter>4</jitter><delay>10</delay><customPriority name='n' ontology='o'>2</customPriority>",
    ));
    assert!(whole.0.is_some());
    for length in 1..=text.len() {
        let mut scan = HeadScan::new(&Limits::default(), QosBlock::default());
        text.as_bytes().chunks(length).all(|piece| scan.feed(piece));
        let found = (
            scan.blocks().priorities().cloned(),
            scan.blocks().has_unread_priority(),
        );
        assert_eq!(found, whole, "pieces of {length}");
    }
}

/// The selected offer.
fn selected(header: &str) -> Option<String> {
    let mut scan = HeadScan::new(&Limits::default(), QosBlock::default());
    // Pieces of one byte must give the same result.
    for byte in envelope(header).bytes() {
        scan.feed(&[byte]);
    }
    scan.blocks().selected().map(str::to_owned)
}

#[test]
fn the_offer_that_is_selected_is_found_by_its_name() {
    let block =
        |inside: &str| selected(&format!("<q:WSQoSSoapHeader>{inside}</q:WSQoSSoapHeader>"));
    let gold = Some("Gold".to_owned());
    for inside in [
        "<selectedOffer> Gold\n</selectedOffer>",
        "<q:selectedOffer>Gold</q:selectedOffer><selectedOffer>Silver</selectedOffer>",
        "<selectedOffer name='Gold'/>",
        "<selectedOffer name='Gold'></selectedOffer><qosInfo/>",
        "<qosInfo><selectedOffer>Tin</selectedOffer></qosInfo><selectedOffer>Gold</selectedOffer>",
    ] {
        assert_eq!(block(inside), gold, "{inside}");
    }
    let long = "x".repeat(97);
    for inside in [
        "",
        "<selectedOffer/>",
        "<selectedOffer>Go<b/>ld</selectedOffer>",
        "<selectedOffer><transportQoSPriorities><delay>1</delay></transportQoSPriorities></selectedOffer>",
        "<qosInfo><selectedOffer>Gold</selectedOffer></qosInfo>",
        "<s:selectedOffer>Gold</s:selectedOffer>",
        &format!("<selectedOffer>{long}</selectedOffer>"),
    ] {
        assert_eq!(block(inside), None, "{inside}");
    }
    assert_eq!(
        block(&format!("<selectedOffer>{}</selectedOffer>", &long[1..]))
            .unwrap()
            .len(),
        96
    );
    assert_eq!(selected("<selectedOffer>Gold</selectedOffer>"), None);
}

#[test]
fn priorities_after_a_selected_offer_are_read_not_within_it() {
    let first = "<q:WSQoSSoapHeader><selectedOffer>Gold</selectedOffer><qosInfo><transportQoSPriorities><delay>3</delay></transportQoSPriorities></qosInfo></q:WSQoSSoapHeader>";
    assert_eq!(read(first), delay(3));
    let within = "<q:WSQoSSoapHeader><selectedOffer><transportQoSPriorities><delay>3</delay></transportQoSPriorities></selectedOffer></q:WSQoSSoapHeader>";
    assert_eq!(read(within), (None, false));
}

/// The required processing time and reliability, and true if one was invalid.
fn metrics(header: &str) -> (Option<Span>, Option<Ratio>, bool) {
    let mut scan = HeadScan::new(&Limits::default(), QosBlock::default());
    scan.feed(envelope(header).as_bytes());
    let block = scan.blocks();
    let unread = block.has_unread_metric();
    (block.processing_time(), block.reliability(), unread)
}

#[test]
fn server_metrics_are_read_next_to_priorities() {
    let server = "<serverQoSMetrics><processingTime> 20.5 </processingTime>\
         <reliability>0.99</reliability></serverQoSMetrics>";
    let transport = "<transportQoSPriorities><delay>2</delay></transportQoSPriorities>";
    let expected = (Some(Span::from_micros(20_500)), Ratio::new(0.99), false);
    for info in [
        format!("{server}{transport}"),
        format!("{transport}{server}"),
    ] {
        assert_eq!(metrics(&block(&info)), expected, "{info}");
        assert_eq!(read(&block(&info)), delay(2), "{info}");
    }
    // The first section and the first value count.
    let late = "<serverQoSMetrics><processingTime>1</processingTime></serverQoSMetrics>";
    assert_eq!(metrics(&block(&format!("{server}{late}"))), expected);
    // A metric among the priorities is none, and a priority among the metrics is none.
    let swapped = "<transportQoSPriorities><processingTime>1</processingTime></transportQoSPriorities>\
         <serverQoSMetrics><delay>1</delay></serverQoSMetrics>";
    assert_eq!(metrics(&block(swapped)), (None, None, false));
    assert_eq!(read(&block(swapped)), (None, false));
}

#[test]
fn a_metric_out_of_its_range_is_reported() {
    for value in ["-1", "x", "", "1e300", "NaN"] {
        let server = |name: &str| {
            let metric = format!("<{name}>{value}</{name}>");
            metrics(&block(&format!(
                "<serverQoSMetrics>{metric}</serverQoSMetrics>"
            )))
        };
        assert_eq!(server("processingTime"), (None, None, true), "{value:?}");
        assert_eq!(server("reliability"), (None, None, true), "{value:?}");
    }
}
