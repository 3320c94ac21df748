//! Choice of agents.

use posthaste_fleet::conductor::discovery::{AgentRequirements, FoundAgent, WantedAgents, choose};
use posthaste_fleet::message::AgentInfo;
use posthaste_fleet::names::RunId;

const REQUIREMENTS: AgentRequirements<'static> = AgentRequirements {
    build: "0123456789abcdef",
    version: "0.1.0",
    numerics: Some("n"),
};

fn agent(name: &str) -> FoundAgent {
    let info = AgentInfo {
        name: name.parse().unwrap(),
        fleet: "f".parse().unwrap(),
        build: REQUIREMENTS.build.into(),
        version: "0.1.0".into(),
        numerics: "n".into(),
        loops: 1,
        processor: "EPYC".into(),
        descriptors: 1024,
        allow: "::1".into(),
        machine: name.into(),
    };
    FoundAgent { info, busy: None }
}

fn names(wanted: &WantedAgents, found: &[FoundAgent]) -> Result<Vec<String>, String> {
    let chosen = choose(wanted, found, REQUIREMENTS).map_err(|error| error.to_string())?;
    Ok(chosen
        .iter()
        .map(|agent| agent.info.name.to_string())
        .collect())
}

fn named(names: &[&str]) -> WantedAgents {
    WantedAgents::Names(names.iter().map(|name| name.parse().unwrap()).collect())
}

#[test]
fn the_first_agents_by_name_are_chosen() {
    let found = [agent("c"), agent("a"), agent("b")];
    assert_eq!(
        names(&WantedAgents::Count(2), &found),
        Ok(vec!["a".into(), "b".into()])
    );
    assert_eq!(
        names(&named(&["c", "a"]), &found),
        Ok(vec!["a".into(), "c".into()])
    );
    assert!(names(&WantedAgents::Count(0), &found).is_err());
    assert!(!WantedAgents::Count(4).is_met_by(&found, REQUIREMENTS));
}

#[test]
fn agents_that_cannot_be_used_are_named_with_the_reason() {
    let mut old = agent("old");
    old.info.build = "fedcba9876543210".into();
    old.info.version = "0.0.9".into();
    let mut busy = agent("busy");
    busy.busy = Some(RunId::from_bits(9));
    let mut arm = agent("arm");
    arm.info.numerics = "m".into();
    let found = [
        agent("ready"),
        old,
        busy,
        arm,
        agent("twice"),
        agent("twice"),
    ];
    let error = names(&named(&["absent", "ready"]), &found).unwrap_err();
    let expected = "\
1 of 2 agents can be used
  arm: its mathematical functions differ in the last bit (EPYC): use constant arrivals or a trace
  busy: busy with run 0000000000000009
  old: another build: it runs 0.0.9 (fedcba987654), and this is 0.1.0 (0123456789ab)
  ready: usable
  twice: 2 agents have this name: give each another --name
  twice: 2 agents have this name: give each another --name
  absent: no reply
start more with `posthaste agent --nats URL`";
    assert_eq!(error, expected);
    assert_eq!(
        names(&WantedAgents::Count(1), &found),
        Ok(vec!["ready".into()])
    );
}

#[test]
fn schedules_without_functions_of_libm_accept_any_processor() {
    let mut arm = agent("arm");
    arm.info.numerics = "m".into();
    let requirements = AgentRequirements {
        numerics: None,
        ..REQUIREMENTS
    };
    assert!(choose(&WantedAgents::Count(1), &[arm], requirements).is_ok());
}
