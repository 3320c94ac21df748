//! A DiffServ router: its classes in the report, as JSON and as text.

use serde_json::Value;

use super::links::{bookshop, load};
use super::{own, reported, users};

#[test]
fn the_report_says_what_each_class_did() {
    for user in users() {
        let posthaste = own(*user);
        let server = bookshop(&posthaste);
        let load = load(&posthaste, "--rate 20/s --duration 500ms");
        let options = [
            "--bandwidth",
            "1MB/s",
            "--class",
            "down:af11:300kB/s..1MB/s",
            "--class",
            "down:rest:700kB/s..1MB/s",
            "--mark",
            "server:8080=af11",
            "--down",
            "--background 2MB/s",
            "--server",
            &server,
            "--",
            "sh",
            "-c",
            &load,
        ];
        let (run, report) = reported(*user, &options);
        assert_eq!(report["status"], 0, "{}", run.err);
        let (up, down) = (&report["up"], &report["down"]);
        assert_eq!((up.get("classes"), up.get("background")), (None, None));
        let [af, rest] = &down["classes"].as_array().unwrap()[..] else {
            panic!("{report}");
        };
        assert_eq!(af["class"], "af11:2.4Mbit..8Mbit");
        let packets = |class: &Value, event: &str| class[event]["packets"].as_u64().unwrap();
        let sent = |class| packets(class, "guaranteed") + packets(class, "borrowed");
        // All packets of the service and no others.
        assert_eq!(sent(af), down["packets"].as_u64().unwrap(), "{report}");
        assert_eq!(sent(rest), packets(&down["background"], "sent"), "{report}");
        assert_eq!(
            packets(rest, "dropped"),
            packets(&down["background"], "dropped")
        );
        assert!(packets(rest, "dropped") > 0, "{report}");
        let line = "rest:5.6Mbit..8Mbit: ";
        assert!(
            run.err.contains(line) && run.err.contains("background: "),
            "{}",
            run.err
        );
    }
}
