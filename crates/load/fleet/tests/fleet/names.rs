//! Names and subjects.

use posthaste_fleet::names::{AgentName, FleetName, RunId};
use posthaste_fleet::subjects::Subjects;

#[test]
fn names_have_the_permitted_characters_and_length() {
    let longest = "a".repeat(32);
    for name in ["a", "0", "-", "web-7", &longest] {
        assert_eq!(name.parse::<AgentName>().unwrap().as_str(), name);
        assert_eq!(name.parse::<FleetName>().unwrap().to_string(), name);
    }
    let too_long = "a".repeat(33);
    for name in [
        "", "A", "a.b", "a*", ">", "a b", "a_b", "ä", "a\n", &too_long,
    ] {
        let error = name.parse::<AgentName>().unwrap_err().to_string();
        assert!(error.contains("is not a name"), "{error}");
        assert!(name.parse::<FleetName>().is_err(), "{name}");
    }
}

#[test]
fn invalid_names_are_refused_inside_json() {
    assert!(serde_json::from_str::<AgentName>("\"a\"").is_ok());
    assert!(serde_json::from_str::<AgentName>("\"a.>\"").is_err());
    assert!(serde_json::from_str::<RunId>("\"0123456789abcdef\"").is_ok());
    assert!(serde_json::from_str::<RunId>("\"0123456789ABCDEF\"").is_err());
}

#[test]
fn names_of_hosts_become_names() {
    for (host, name) in [
        ("Web-7.example.org", "web-7"),
        ("my_host", "my-host"),
        (&"x".repeat(40), &"x".repeat(32)),
    ] {
        assert_eq!(AgentName::from_host(host).unwrap().as_str(), name);
    }
    assert!(AgentName::from_host("").is_err());
    assert!(AgentName::from_host(".local").is_err());
}

#[test]
fn runs_are_sixteen_digits() {
    let run = RunId::from_bits(0xab);
    assert_eq!(run.to_string(), "00000000000000ab");
    assert_eq!("00000000000000ab".parse(), Ok(run));
    for text in [
        "",
        "ab",
        "00000000000000AB",
        "+0000000000000ab",
        "00000000000000abc",
    ] {
        assert!(text.parse::<RunId>().is_err(), "{text}");
    }
    assert_ne!(RunId::random(), RunId::random());
}

#[test]
fn subjects_are_those_of_the_specification() {
    let subjects = Subjects::new("f".parse().unwrap());
    let (agent, run) = ("a".parse().unwrap(), RunId::from_bits(7));
    assert_eq!(subjects.clock(&agent), "ph1.f.agent.a.clock");
    assert_eq!(subjects.prepare(&agent), "ph1.f.agent.a.prepare");
    assert_eq!(subjects.arm(&agent), "ph1.f.agent.a.arm");
    assert_eq!(subjects.run(run), "ph1.f.run.0000000000000007");
    assert_eq!(
        subjects.notes(run, &agent),
        "ph1.f.notes.0000000000000007.a"
    );
    assert_eq!(subjects.notes_of_run(run), "ph1.f.notes.0000000000000007.*");
    assert_eq!(subjects.notes_stream(), "PH1_f_NOTES");
    assert_eq!(subjects.files_bucket(), "ph1-f-files");
    assert_eq!(Subjects::note_id(run, &agent, 3), "0000000000000007.a.3");
}

#[test]
fn the_source_of_a_note_is_read_from_its_subject() {
    let subjects = Subjects::new("f".parse().unwrap());
    let (agent, run) = ("a".parse().unwrap(), RunId::from_bits(7));
    let subject = subjects.notes(run, &agent);
    assert_eq!(subjects.note_source(&subject), Some((run, agent)));
    for other in [
        "ph1.g.notes.0000000000000007.a",
        "ph1.f.notes.0000000000000007.a.b",
        "ph1.f.notes.7.a",
        "ph1.f.notes.0000000000000007",
        "ph1.f.run.0000000000000007",
    ] {
        assert_eq!(subjects.note_source(other), None, "{other}");
    }
}
