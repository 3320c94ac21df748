//! Invalid arguments are refused with the remedy, exit code 2, before anything is sent.

use crate::command::{RunningShop, execute, posthaste};

const URL: &str = "http://127.0.0.1:9/";

/// Arguments, and the text that the refusal must contain.
const CASES: &[(&[&str], &str)] = &[
    (&["load", URL, "--rate", "500"], "500/s"),
    (&["load", URL, "--rate", "5ms"], "500/s"),
    (&["load", URL, "--rat", "5/s"], "--rate"),
    (&["load", URL], "--rate"),
    (
        &["load", URL, "--rate", "5/s", "--clients", "3"],
        "cannot be used with",
    ),
    (
        &["load", URL, "--rate", "5/s", "--timeout", "30"],
        "no unit",
    ),
    (
        &["load", URL, "--rate", "5/s", "--assert", "p98<1ms"],
        "did you mean p9",
    ),
    (
        &["load", URL, "--rate", "5/s", "--header", "nocolon"],
        "Name: value",
    ),
    (
        &["load", URL, "--rate", "5/s", "--steps", "1/s..2/s:2"],
        "cannot be used with",
    ),
    (&["load", URL, "--steps", "1/s..2/s:1000"], "from 2 to 100"),
    (
        &["load", URL, "--rate", "5/s", "--resolve", "a:b"],
        "HOST:PORT:ADDRESS",
    ),
    (&["load", URL, "--rate", "0/s"], "nothing would be sent"),
    (
        &["load", URL, "--rate", "5/s", "--duration", "0s"],
        "nothing would be sent",
    ),
    (
        &["load", URL, "--steps", "10/s..100/s:35/s"],
        "does not divide",
    ),
    (
        &["load", URL, "--rate", "5/s", "--cpus", "1000"],
        "no core 1000",
    ),
    (
        &["load", URL, "--rate", "5/s", "--think", "1s"],
        "--clients",
    ),
    (
        &["load", URL, "--rate", "5/s", "--max-price", "1EUR"],
        "--broker",
    ),
    (
        &[
            "load",
            URL,
            "--rate",
            "5/s",
            "--broker",
            URL,
            "--max-price",
            "1",
        ],
        "write it as 0.40EUR",
    ),
    (
        &["load", URL, "--rate", "5/s", "--broker", "ftp://a"],
        "is not the URL of a server",
    ),
    (
        &["load", URL, "--clients", "2", "--arrivals", "poisson"],
        "cannot be used with",
    ),
    (
        &["load", URL, "--rate", "5/s", "-H", "Content-Length: 3"],
        "Content-Length",
    ),
    (&["load", "ftp://127.0.0.1/", "--rate", "5/s"], "http://"),
    (
        &["load", "http://127.0.0.1/{{isbn}}", "--rate", "5/s"],
        "--data",
    ),
    (
        &["load", URL, "--rate", "5/s", "--body", "/no/such/file"],
        "/no/such/file",
    ),
    (
        &["load", URL, "--arrivals", "/no/such/file"],
        "/no/such/file",
    ),
    (
        &["load", URL, "--find", "p99<1s", "--arrivals", "times"],
        "leave --rate",
    ),
    (
        &["load", URL, "--rate", "5/s", "--arrivals", "poison"],
        "did you mean poisson?",
    ),
    (
        &["load", URL, "--arrivals", "poison"],
        "did you mean poisson?",
    ),
    (&["load", URL, "--find", "errors<1%"], "p99<200ms"),
    (
        &["load", URL, "--find", "p99<1s", "--assert", "p99<1s"],
        "capacity>150/s",
    ),
    (
        &["load", URL, "--rate", "9/s", "--assert", "capacity>9/s"],
        "give --find",
    ),
    (
        &["load", URL, "--find", "p99<1s", "--assert", "capacity<9/s"],
        "the rate that the service holds",
    ),
    (&["load", URL, "--find", "events<9/s"], "events>20/s"),
    (&["load", URL, "--find", "first<1s"], "give --stream"),
    (
        &["load", URL, "--rate", "5/s", "--assert", "errors<1"],
        "write 1%",
    ),
    (
        &["load", "http://ada:secret@127.0.0.1/", "--rate", "5/s"],
        "--user NAME:PASSWORD",
    ),
    (
        &[
            "load", "--rate", "5/s", "--mix", "m.toml", "--action", "urn:x",
        ],
        "cannot be used with",
    ),
    (
        &[
            "load",
            "--rate",
            "5/s",
            "--mix",
            "m.toml",
            "--operation",
            "X",
        ],
        "cannot be used with",
    ),
    (
        &[
            "load",
            URL,
            "--rate",
            "5/s",
            "--user",
            "a:b",
            "-H",
            "authorization: c",
        ],
        "leave out -H",
    ),
    (&["bookshop", "--service", "mm7:5ms"], "mm1:5ms"),
    (
        &["bookshop", "--service", "mm1:5ms", "--threads", "2"],
        "one thread",
    ),
    (
        &[
            "load",
            "https://127.0.0.1:9/",
            "--rate",
            "5/s",
            "--early-data",
        ],
        "QUIC: add --http 3",
    ),
    (
        &[
            "load",
            "https://127.0.0.1:9/",
            "--rate",
            "5/s",
            "--qlog",
            "q",
        ],
        "QUIC: add --http 3",
    ),
    (&["bookshop", "--http3"], "--cert"),
    (&["compare", "/no/such/a", "/no/such/b"], "/no/such/a"),
    (&["compare", "/no/such/a"], "base1 base2 base3 -- new1 new2"),
    (
        &["compare", "a", "b", "c"],
        "base1 base2 base3 -- new1 new2",
    ),
    (&["compare", "a", "a", "--", "b"], "given twice"),
    (&["compare", "a", "b", "--scatter", "lots"], "2%"),
    (
        &["compare", "a", "b", "--margin", "0.1"],
        "write 0.1%, or 10% if that is meant",
    ),
    (
        &["net", "--loss", "0.5", "--", "true"],
        "write 0.5%, or 50% if that is meant",
    ),
    (
        &["simulate", "--loss", "bursts:0.5:4"],
        "write 0.5%, or 50% if that is meant",
    ),
    (
        &["pattern", "make", "--duplicate", "1"],
        "write 1%, or 100% if that is meant",
    ),
    (
        &["compare", "a", "b", "--json", "--junit", "-"],
        "choose one",
    ),
    (&["pattern", "make"], "nothing to make a pattern of"),
    (&["pattern", "make", "--drop", "8"], "down:8"),
    (
        &["pattern", "make", "--drop", "down:0"],
        "the first packet is 1",
    ),
    (
        &["pattern", "make", "--drop", "dwon:8"],
        "up (from the client) or down",
    ),
    (
        &["pattern", "make", "--drop", "up:8", "--drop", "up:7-9"],
        "overlaps packet 8, dropped already",
    ),
    (
        &["pattern", "make", "--add", "down delay 5: 40"],
        "column 15: \"40\" has no unit",
    ),
    (&["pattern", "make", "--loss", "often"], "bursts:2%:4"),
    (
        &["pattern", "make", "--loss", "2%", "--size", "70kB"],
        "65535 bytes",
    ),
    (
        &["pattern", "make", "--bit-errors", "1%", "--duplicate", "1%"],
        "cannot be used with",
    ),
    (&["pattern", "make", "--delay", "5ms"], "--jitter"),
    (
        &["pattern", "make", "--mahimahi", "trace"],
        "write a direction first",
    ),
    (
        &["pattern", "make", "--mahimahi", "down:/no/such/file"],
        "/no/such/file",
    ),
    (
        &["pattern", "make", "--timeline", "down:/dev/null"],
        "time_ms,bandwidth_kbit",
    ),
    (
        &["pattern", "make", "--client-capture", "/no/such/file"],
        "/no/such/file",
    ),
    (
        &["pattern", "make", "--client-capture", "/dev/null"],
        "tcpdump -w FILE",
    ),
    (&["pattern", "show", "/no/such/file"], "/no/such/file"),
    (&["pattern", "show", "/dev/null"], "posthaste pattern 1"),
    (&["simulate", "--bandwidth", "0kbit"], "drop the packets"),
    (&["simulate", "--delay", "-5ms"], "negative"),
    (&["simulate", "--processing", "-5ms"], "negative"),
    (&["simulate", "--delay", "200ms..5ms"], "not below"),
    (&["simulate", "--request", "1kB"], "--response"),
    (
        &["simulate", "--request", "0B", "--response", "1kB"],
        "request 1 is empty",
    ),
    (&["simulate", "--client-tcp", "freebsd-5"], "freebsd-6.0"),
    (&["simulate", "--recovery", "hope"], "early-retransmit"),
    (&["simulate", "--recovery", "all"], "--compare all"),
    (&["simulate", "--queue", "0"], "a queue"),
    (&["simulate", "--picture", "picture.png"], "FILE.svg"),
    (
        &["simulate", "--picture", "picture.svg"],
        "give an option a list",
    ),
    (&["simulate", "--ladder=ladder.png"], "FILE.svg"),
    (
        &["simulate", "--delay", "5ms,10ms", "--ladder"],
        "2 combinations",
    ),
    (&["simulate", "--transactions", "0"], "1.."),
    (&["laod"], "load"),
    (&["load", URL, "-X", "POST"], "--method POST"),
    (&["load", URL, "-d", "@f"], "--body FILE"),
    (&["load", URL, "-d", "1s", "-d", "a=1"], "--body FILE"),
    (&["load", URL, "-k"], "--insecure"),
    (&["load", URL, "-L"], "redirects are not followed"),
    (&["load", URL, "--proxy", URL], "no proxy is used"),
    (&["load", URL, "-n", "10"], "--duration 10s"),
    (&["load", URL, "--requests=10"], "--duration 10s"),
    (&["load", URL, "-q", "500"], "--rate 500/s"),
    (&["load", URL, "--vus", "5"], "--clients 20"),
    (&["load", URL, "--latency"], "response times"),
    (&["load", URL, "--assertion", "p99<1s"], "--assert"),
    (
        &["load", URL, "--rate", "5/s", "--timeout", "0s"],
        "would time out",
    ),
    (
        &["load", URL, "--rate", "5/s", "--max-connections", "0"],
        "a number from 1",
    ),
    (
        &["load", URL, "--rate", "5/s", "--user", "alice"],
        "NAME:PASSWORD",
    ),
    (
        &["load", URL, "--rate", "5/s", "--body", "a=1"],
        "--body names a file",
    ),
    (&["net", "--rate", "1Mbit", "--", "true"], "--bandwidth"),
    (&["net", "curl", URL], "after --"),
    (
        &["load", URL, "--rate", "5/s", "--precision", "5%"],
        "--find",
    ),
    (
        &["pattern", "make", "--drop", "down:8", "--server-port", "80"],
        "--client-capture",
    ),
];

#[test]
fn an_unlike_option_is_no_guess() {
    let output = execute(&mut posthaste(&["load", URL, "--ratenting", "5/s"]));
    assert_eq!(output.code, Some(2), "{}", output.err);
    assert!(!output.err.contains("similar"), "{}", output.err);
    assert!(output.err.contains("--ratenting"), "{}", output.err);
}

#[test]
fn usage_errors_name_the_remedy() {
    for (arguments, remedy) in CASES {
        let output = execute(&mut posthaste(arguments));
        assert_eq!(output.code, Some(2), "{arguments:?}: {}", output.err);
        assert!(
            output.err.contains(remedy),
            "{arguments:?} does not name {remedy:?}: {}",
            output.err
        );
        assert_eq!(output.out, "", "{arguments:?}");
    }
}

#[test]
fn a_template_that_names_a_missing_column_lists_those_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.csv");
    std::fs::write(&data, "isbn,title\n1,a\n").unwrap();
    let data = data.to_str().unwrap();
    let output = execute(&mut posthaste(&[
        "load",
        "http://127.0.0.1:9/{{ibsn}}",
        "--rate",
        "5/s",
        "--data",
        data,
    ]));
    assert_eq!(output.code, Some(2));
    assert!(
        output.err.contains("{{ibsn}}") && output.err.contains("isbn, title"),
        "{}",
        output.err
    );
}

#[test]
fn a_wsdl_without_the_operation_lists_those_there_are() {
    let shop = RunningShop::open(&[]);
    let wsdl = format!("{}/soap?wsdl", shop.url);
    let output = execute(&mut posthaste(&[
        "load",
        "--wsdl",
        &wsdl,
        "--operation",
        "BookLight",
        "--rate",
        "5/s",
    ]));
    assert_eq!(output.code, Some(2));
    assert!(output.err.contains("BookLite"), "{}", output.err);
}

#[test]
fn help_has_examples_everywhere() {
    let commands = "load compare simulate pattern bookshop reproduce doctor";
    let inner = ["pattern make", "pattern show"];
    for command in commands.split(' ').chain(inner) {
        let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let output = execute(&mut posthaste(&arguments));
        assert_eq!(output.code, Some(0));
        assert!(
            output.out.contains(&format!("posthaste {command}")),
            "{}",
            output.out
        );
        assert!(output.out.contains("xample"), "{command} has no example");
    }
}
