//! Evaluation of the Python between events, as far as it compares fields of `tcp_info` with numbers.

use std::collections::BTreeMap;

use posthaste_tcp::{ConnectionEnd, Endpoint, RecoveryPhase, TcpState};

/// Result of the statements of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Evaluation {
    /// Every assertion holds. The number of statements that could not be evaluated.
    Holds(usize),
    /// An assertion fails, with the values.
    Fails(String),
}

/// Variables that earlier statements have set.
pub(super) type Variables = BTreeMap<String, i64>;

/// Evaluates the statements of one event.
pub(super) fn evaluate(
    code: &str,
    variables: &mut Variables,
    endpoint: Option<&Endpoint>,
) -> Evaluation {
    let mut unknown = 0;
    for statement in statements(code) {
        let value = |name: &str| match variables.get(name) {
            Some(value) => Some(*value),
            None => constant(name).or_else(|| field(endpoint?, name)),
        };
        if let Some(rest) = statement.strip_prefix("assert") {
            match compare(rest, &value) {
                Some(Ok(())) => {}
                Some(Err(values)) => return Evaluation::Fails(values),
                None => unknown += 1,
            }
        } else if let Some((name, text)) = statement.split_once("+=") {
            match (variables.get(name.trim()), text.trim().parse::<i64>()) {
                (Some(old), Ok(more)) => {
                    let sum = old.saturating_add(more);
                    variables.insert(name.trim().to_owned(), sum);
                }
                _ => unknown += 1,
            }
        } else if let Some((name, text)) = statement.split_once('=') {
            match integer(text.trim()) {
                Some(number) => {
                    variables.insert(name.trim().to_owned(), number);
                }
                None => unknown += 1,
            }
        } else if !statement.starts_with("print") {
            unknown += 1;
        }
    }
    Evaluation::Holds(unknown)
}

/// Parses a decimal or hexadecimal number.
fn integer(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn statements(code: &str) -> Vec<String> {
    let code = code.replace("\\\n", " ");
    let lines = code.lines().flat_map(|line| {
        let line = line.find('#').map_or(line, |start| &line[..start]);
        line.split(';').map(|statement| statement.trim().to_owned())
    });
    lines.filter(|statement| !statement.is_empty()).collect()
}

/// Compares `10 <= tcpi_snd_cwnd <= 12, message`. None if a part is unknown.
fn compare(text: &str, value: &dyn Fn(&str) -> Option<i64>) -> Option<Result<(), String>> {
    const RELATIONS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];
    let (text, _message) = text.split_once(',').unwrap_or((text, ""));
    let spaced = text.replace(['(', ')'], " ( ");
    let mut tokens = spaced.split_whitespace();
    let operand = |word: &str| integer(word).or_else(|| value(word));
    let mut left = operand(tokens.next()?)?;
    let mut compared = false;
    while let Some(relation) = tokens.next() {
        if !RELATIONS.contains(&relation) {
            return None;
        }
        let right = operand(tokens.next()?)?;
        let holds = match relation {
            "==" => left == right,
            "!=" => left != right,
            "<=" => left <= right,
            ">=" => left >= right,
            "<" => left < right,
            _ => left > right,
        };
        if !holds {
            let text = text.trim();
            return Some(Err(format!(
                "{text}: {left} {relation} {right} does not hold"
            )));
        }
        (left, compared) = (right, true);
    }
    compared.then_some(Ok(()))
}

/// Constants of linux/tcp.h and packetdrill.
fn constant(name: &str) -> Option<i64> {
    Some(match name {
        "TCP_CA_Open" => 0,
        "TCP_CA_Disorder" => 1,
        "TCP_CA_CWR" => 2,
        "TCP_CA_Recovery" => 3,
        "TCP_CA_Loss" => 4,
        "TCP_INFINITE_SSTHRESH" => 0x7fff_ffff,
        "TCP_ESTABLISHED" => 1,
        "TCP_SYN_SENT" => 2,
        "TCP_SYN_RECV" => 3,
        "TCP_FIN_WAIT1" => 4,
        "TCP_FIN_WAIT2" => 5,
        "TCP_TIME_WAIT" => 6,
        "TCP_CLOSE" => 7,
        "TCP_CLOSE_WAIT" => 8,
        "TCP_LAST_ACK" => 9,
        "TCP_LISTEN" => 10,
        "TCP_CLOSING" => 11,
        _ => return None,
    })
}

/// Value of a field of `tcp_info`. None for those that the model does not have.
fn field(endpoint: &Endpoint, name: &str) -> Option<i64> {
    let look = endpoint.look();
    let segments = |bytes: u64| (bytes / u64::from(look.mss).max(1)) as i64;
    Some(match name {
        "tcpi_snd_cwnd" => segments(look.window),
        "tcpi_snd_ssthresh" if look.threshold == u64::MAX => 0x7fff_ffff,
        "tcpi_snd_ssthresh" => segments(look.threshold),
        "tcpi_snd_mss" => look.mss.into(),
        "tcpi_advmss" => endpoint.profile().offer.mss.into(),
        "tcpi_rtt" => (look.smoothed?.as_nanos() / 1000) as i64,
        "tcpi_unacked" => look.board.outstanding.into(),
        "tcpi_sacked" => look.board.sacked.into(),
        "tcpi_lost" => look.board.lost.into(),
        "tcpi_retrans" => look.board.repeated.into(),
        "tcpi_reordering" => look.reordering.into(),
        "tcpi_bytes_received" => endpoint.received() as i64,
        "tcpi_ca_state" => match look.phase {
            RecoveryPhase::Open => 0,
            RecoveryPhase::Disorder => 1,
            RecoveryPhase::Recovery => 3,
            RecoveryPhase::Loss => 4,
        },
        "tcpi_state" => state(endpoint.state()),
        _ => return None,
    })
}

fn state(state: TcpState) -> i64 {
    match state {
        TcpState::Established => 1,
        TcpState::SynSent => 2,
        TcpState::SynReceived => 3,
        TcpState::FinWait1 => 4,
        TcpState::FinWait2 => 5,
        TcpState::TimeWait => 6,
        TcpState::Closed(
            ConnectionEnd::Finished
            | ConnectionEnd::Reset
            | ConnectionEnd::TimedOut
            | ConnectionEnd::Aborted,
        ) => 7,
        TcpState::CloseWait => 8,
        TcpState::LastAck => 9,
        TcpState::Listen => 10,
        TcpState::Closing => 11,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_evaluated_in_order() {
        let mut variables = Variables::new();
        let code = "print(1); cwnd = 0x4 # set\ncwnd += 2\nassert 5 <= cwnd <= 6, cwnd";
        assert_eq!(evaluate(code, &mut variables, None), Evaluation::Holds(0));
        let fails = evaluate("assert cwnd == 7, cwnd", &mut variables, None);
        let expected = "cwnd == 7: 6 == 7 does not hold".to_owned();
        assert_eq!(fails, Evaluation::Fails(expected));
    }

    #[test]
    fn unknown_names_are_counted() {
        let code = "assert tcpi_snd_cwnd == 1\nassert (tcpi_options & 1) != 0\nassert 3";
        let found = evaluate(code, &mut Variables::new(), None);
        assert_eq!(found, Evaluation::Holds(3));
    }
}
