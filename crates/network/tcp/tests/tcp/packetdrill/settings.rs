//! Settings of a script: options, and shell commands that set up the kernel.
//!
//! A setting that the model has changes the profile. One that the model cannot follow ends the script. Settings without
//! an effect on a single connection are ignored.

use std::fs;
use std::path::Path;

use posthaste_tcp::congestion::Avoidance;
use posthaste_tcp::profile::{self, TailProbe};
use posthaste_tcp::{Profile, TimerClock};
use posthaste_units::Span;

use super::ScriptError;
use super::script::{PacketdrillScript, ShellLines};

/// A timer tick of the kernels for which the scripts are written (CONFIG_HZ=1000 in the folder of the kernel's scripts).
const JIFFY: Span = Span::from_millis(1);

/// Settings without an effect on the segments of one connection in the model.
const IGNORED: [&str; 12] = [
    "tcp_autocorking",
    "tcp_ecn",
    "tcp_ecn_option",
    "tcp_fack",
    "tcp_fastopen",
    "tcp_fastopen_key",
    "tcp_min_tso_segs",
    "tcp_no_metrics_save",
    "tcp_pacing_ca_ratio",
    "tcp_pacing_ss_ratio",
    "tcp_syncookies",
    "tcp_tso_win_divisor",
];

/// Bytes of `tcp_wmem` by default in packetdrill's scripts.
const SEND_MEMORY: u64 = 262_144;

/// Profile and tolerances of a script.
#[derive(Clone, Debug)]
pub(super) struct ScriptSettings {
    pub(super) profile: Profile,
    /// Tolerance of times: `--tolerance_usecs`, 4 ms without it.
    pub(super) tolerance: Span,
    /// Length of a tick of the endpoint's timestamps. None: their values are not compared.
    pub(super) timestamp_tick: Option<Span>,
    /// A pause reduces the window, as in the profile (`tcp_slow_start_after_idle`).
    pub(super) restarts: bool,
}

impl ScriptSettings {
    /// Reads the options and the commands in front of the events. `folder` is that of the script.
    pub(super) fn from_script(
        script: &PacketdrillScript,
        folder: &Path,
    ) -> Result<Self, ScriptError> {
        let mut profile = profile::named("linux-6").expect("a profile with this name exists");
        profile.clock = TimerClock::Wheel(JIFFY);
        profile.timeout.granularity = JIFFY;
        let mut settings = Self {
            profile,
            tolerance: Span::from_millis(4),
            timestamp_tick: None,
            restarts: true,
        };
        for (name, value) in &script.options {
            settings.option(name, value)?;
        }
        for lines in &script.setup {
            settings.shell(lines, folder)?;
        }
        Ok(settings)
    }

    fn option(&mut self, name: &str, value: &str) -> Result<(), ScriptError> {
        let micros = || {
            let number = value.parse().map(Span::from_micros);
            let text = format!("--{name}={value}: expected a number of microseconds");
            number.map_err(|_| ScriptError::malformed(1, text))
        };
        match name {
            "tolerance_usecs" => self.tolerance = micros()?,
            "tcp_ts_tick_usecs" => self.timestamp_tick = Some(micros()?).filter(|t| !t.is_zero()),
            // The model knows no addresses. `mss` is that of packetdrill's own device.
            "ip_version" | "local_ip" | "remote_ip" | "gateway_ip" | "mss" | "send_omit_free" => {}
            _ => return Err(ScriptError::unsupported(1, format!("--{name}"))),
        }
        Ok(())
    }

    /// Runs shell commands in front of the events.
    fn shell(&mut self, lines: &ShellLines, folder: &Path) -> Result<(), ScriptError> {
        for command in commands(&lines.text) {
            self.command(&command, lines.line, folder)?;
        }
        Ok(())
    }

    fn command(
        &mut self,
        tokens: &[String],
        line: usize,
        folder: &Path,
    ) -> Result<(), ScriptError> {
        let name = tokens[0].as_str();
        let unsupported = |reason: String| ScriptError::unsupported(line, reason);
        if name.ends_with("defaults.sh") {
            let path = folder.join(name);
            let text = fs::read_to_string(&path).map_err(|error| {
                let path = path.display();
                ScriptError::malformed(line, format!("cannot read {path}: {error}"))
            })?;
            return self.shell(&ShellLines { line, text }, folder);
        }
        if name == "sysctl" || name.ends_with("set_sysctls.py") {
            // `||`, `&>` and `>` end the settings.
            let until = |word: &&String| !word.contains(['|', '>', '&']);
            for word in tokens[1..].iter().take_while(until) {
                if let Some((path, value)) = word.split_once('=') {
                    let name = path.rsplit(['.', '/']).next().unwrap_or(path);
                    self.sysctl(name, value).map_err(unsupported)?;
                }
            }
            return Ok(());
        }
        self.other_command(tokens).map_err(unsupported)
    }

    fn other_command(&self, tokens: &[String]) -> Result<(), String> {
        let has = |word: &str| tokens.iter().any(|found| found == word);
        let (name, second) = (tokens[0].as_str(), tokens.get(1).map_or("", String::as_str));
        match name {
            "tc" if has("pfifo") && !has("limit") => Ok(()),
            "tc" if has("fq") => Err("pacing (fq)".to_owned()),
            "ip" if second == "tcp_metrics" => Ok(()),
            "ethtool" | "nstat" => Ok(()),
            "echo" if tokens.iter().any(|word| word.ends_with("hystart_detect")) => {
                // Both tests, as without the command.
                if second == "3" {
                    return Ok(());
                }
                Err("HyStart with one of its two tests".to_owned())
            }
            _ if is_restore(name) => Ok(()),
            _ => Err(format!("the command `{}`", tokens.join(" "))),
        }
    }

    /// Applies one setting. An error is the reason for which the model cannot follow.
    fn sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        let profile = &mut self.profile;
        let refuse = || Err(format!("net.ipv4.{name}={value}"));
        match (name, value) {
            ("tcp_timestamps", "0" | "1") => profile.offer.timestamps = value == "1",
            ("tcp_sack", "0" | "1") => profile.offer.sack = value == "1",
            ("tcp_dsack", "0" | "1") => profile.strictness.dsack = value == "1",
            ("tcp_frto", "0" | "2") => profile.recovery.frto = value == "2",
            ("tcp_recovery", "0" | "1") => profile.recovery.rack = value == "1",
            ("tcp_early_retrans", "0") => profile.recovery.tail_probe = None::<TailProbe>,
            ("tcp_early_retrans", "3" | "4") => {}
            ("tcp_congestion_control", "cubic") => {}
            ("tcp_congestion_control", "reno") => profile.control.avoidance = Avoidance::Reno,
            ("tcp_slow_start_after_idle", "0" | "1") => self.restarts = value == "1",
            ("tcp_invalid_ratelimit", "0") => profile.strictness.answers.limit = None,
            ("tcp_rmem", _) => {
                let Some(largest) = value.split_whitespace().nth(2).and_then(product) else {
                    return refuse();
                };
                profile.offer.window_scale = Some(scale_of(largest));
            }
            ("tcp_reordering", _) => match value.parse() {
                Ok(threshold) => profile.recovery.threshold = threshold,
                Err(_) => return refuse(),
            },
            ("tcp_syn_retries", _) => match value.parse::<u32>() {
                Ok(count) => profile.handshake.syn.count = count + profile.handshake.syn.linear,
                Err(_) => return refuse(),
            },
            ("tcp_synack_retries", _) => match value.parse() {
                Ok(count) => profile.handshake.syn_ack.count = count,
                Err(_) => return refuse(),
            },
            ("tcp_notsent_lowat", "4294967295") => {}
            ("tcp_notsent_lowat", _) => return Err("TCP_NOTSENT_LOWAT".to_owned()),
            ("tcp_wmem", _) => {
                // A smaller one than the default of packetdrill's scripts limits a write.
                let size = value.split_whitespace().nth(1).and_then(product);
                if size.is_none_or(|size| size < SEND_MEMORY) {
                    return Err("the kernel's accounting of send memory".to_owned());
                }
            }
            _ if IGNORED.contains(&name) => {}
            _ => return refuse(),
        }
        Ok(())
    }
}

/// Returns true for a command between events that cannot change the endpoint.
pub(super) fn is_harmless(text: &str) -> bool {
    let starts = |tokens: &Vec<String>| tokens[0] == "nstat" || is_restore(&tokens[0]);
    commands(text).iter().all(starts)
}

/// The file that restores the settings at the end.
fn is_restore(name: &str) -> bool {
    name.starts_with("/tmp/sysctl_restore")
}

/// Shift of the windows of a receive buffer (`tcp_select_initial_window`).
fn scale_of(buffer: u64) -> u8 {
    let bits = buffer.max(1).ilog2();
    bits.saturating_sub(15).min(14) as u8
}

/// Evaluates `4096` or `$((15*1024*1024))`.
fn product(text: &str) -> Option<u64> {
    let text = text.trim_start_matches("$((").trim_end_matches("))");
    let mut factors = text
        .split('*')
        .map(|factor| factor.trim().parse::<u64>().ok());
    factors.try_fold(1_u64, |all, factor| all.checked_mul(factor?))
}

/// Splits shell text into commands of at least one word. Quotation marks join words, `#` begins a comment.
fn commands(text: &str) -> Vec<Vec<String>> {
    let text = text.replace("\\\n", " ");
    let lines = text.lines().flat_map(|line| {
        let line = line.find('#').map_or(line, |start| &line[..start]);
        line.split(';')
    });
    let tokens = lines.map(|line| {
        let (mut tokens, mut word, mut quoted) = (Vec::new(), String::new(), false);
        for letter in line.chars() {
            match letter {
                '"' => quoted = !quoted,
                letter if letter.is_whitespace() && !quoted => {
                    tokens.push(std::mem::take(&mut word));
                }
                letter => word.push(letter),
            }
        }
        tokens.push(word);
        tokens.retain(|word| !word.is_empty());
        tokens
    });
    tokens.filter(|tokens| !tokens.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_keep_quoted_words_together() {
        let found = commands("sysctl -q a=\"1 2 $((3*4))\" # why\n\n true; false \\\n more");
        let expected = [
            vec!["sysctl", "-q", "a=1 2 $((3*4))"],
            vec!["true"],
            vec!["false", "more"],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn buffers_give_the_shift_of_windows() {
        assert_eq!(product("$((15*1024*1024))").map(scale_of), Some(8));
        assert_eq!(product("6291456").map(scale_of), Some(7));
        assert_eq!(product("a*2"), None);
    }
}
