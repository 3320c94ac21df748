//! `posthaste doctor --nats URL`: the NATS server and the agents of a fleet.

use posthaste_fleet::allot::loops_in_words;
use posthaste_fleet::conductor::examination::{AgentState, FleetState, examine};

use super::fleet::NatsArgs;
use super::{Failure, print};

/// Prints the state of a fleet.
pub(super) fn show(nats: &NatsArgs, is_json: bool) -> Result<(), Failure> {
    let options = nats.options("conductor")?;
    let state = examine(&options, &nats.fleet).map_err(Failure::run)?;
    if is_json {
        let json = serde_json::to_string_pretty(&state).map_err(Failure::run)?;
        return print(&(json + "\n"));
    }
    print(&text(&state))
}

fn text(state: &FleetState) -> String {
    let encrypted = if state.is_encrypted { "TLS" } else { "no TLS" };
    let mut lines = vec![
        format!("NATS server {}, {encrypted}", state.server),
        match &state.storage_error {
            None => "storage     notes and files are stored".to_owned(),
            Some(error) => format!("storage     {error}"),
        },
    ];
    if state.agents.is_empty() {
        lines.push(
            "agents      none answered; start one with `posthaste agent --nats URL`".to_owned(),
        );
    }
    lines.extend(state.agents.iter().map(agent));
    lines.join("\n") + "\n"
}

fn agent(agent: &AgentState) -> String {
    let AgentState {
        name,
        loops,
        allow,
        version,
        ..
    } = agent;
    let loops = loops_in_words(*loops as usize);
    let clock = match (agent.round_trip_ms, agent.clock_bound_ms) {
        (Some(round_trip), Some(bound)) => {
            format!("round trip {round_trip:.3} ms, clock within {bound:.3} ms")
        }
        _ => "its clock does not answer".to_owned(),
    };
    let doubts = [
        (!agent.has_same_build, format!("another build ({version})")),
        (
            !agent.has_same_numerics,
            "other results of ln: no Poisson arrivals".to_owned(),
        ),
        (agent.is_busy, "busy".to_owned()),
    ];
    let present = doubts.into_iter().filter(|(is_there, _)| *is_there);
    let doubts: String = present.map(|(_, doubt)| format!(", {doubt}")).collect();
    format!("agent       {name}: {loops}, {clock}, permits {allow}{doubts}")
}
