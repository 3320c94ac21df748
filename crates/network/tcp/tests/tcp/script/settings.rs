//! Head of a script: its purpose, source, profiles and peer.

use posthaste_tcp::Profile;
use posthaste_tcp::profile::InitialWindow;
use posthaste_tcp::remedy::Remedy;
use posthaste_units::Span;

use super::tokens::Tokens;

/// Head of a script.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// Tested behaviour, and its source.
    pub(super) checks: String,
    pub(super) source: String,
    pub(super) profiles: Vec<String>,
    pub(super) remedies: Vec<Remedy>,
    pub(super) changes: Vec<ProfileChange>,
    pub(super) peer: PeerOffer,
    /// Tolerance of times.
    pub(super) tolerance: Span,
    pub(super) isn: u32,
    /// The application reads all data, after every segment caused by the arrival has been sent.
    pub(super) reads: bool,
    /// Nagle's algorithm is off.
    pub(super) no_delay: bool,
}

/// Offer of the peer's SYN, and its later window.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerOffer {
    pub(super) mss: Option<u16>,
    pub(super) window: u64,
    pub(super) scale: Option<u8>,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    pub(super) isn: u32,
}

impl Default for PeerOffer {
    fn default() -> Self {
        Self {
            mss: None,
            window: 65_535,
            scale: None,
            sack: false,
            timestamps: false,
            isn: 77_000,
        }
    }
}

/// One change of the profile.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProfileChange {
    ReceiveBuffer(u64),
    SendBuffer(u64),
    InitialWindow(u32),
}

impl Settings {
    /// Reads one line of the head. Returns false for other lines.
    pub(super) fn read(&mut self, line: &str) -> Result<bool, String> {
        let mut tokens = Tokens::split(line);
        let Some(key) = tokens.next() else {
            return Ok(true);
        };
        let rest = || line.trim().trim_start_matches(key).trim();
        match key {
            // Long texts continue on another line with the same key.
            "checks" => self.checks += rest(),
            "source" => self.source += rest(),
            "profiles" => {
                while let Some(word) = tokens.next() {
                    self.profiles.push(word.to_owned());
                }
            }
            "with" => {
                while !tokens.is_empty() {
                    self.remedies.push(tokens.value("the name of a remedy")?);
                }
            }
            "change" => self.changes.push(change(&mut tokens)?),
            "peer" => self.peer = offer(&mut tokens)?,
            "tolerance" => self.tolerance = tokens.span()?,
            "isn" => self.isn = tokens.value("a number")?,
            "reads" => self.reads = true,
            "no-delay" => self.no_delay = true,
            _ => return Ok(false),
        }
        if !matches!(key, "checks" | "source" | "reads") {
            tokens.end()?;
        }
        Ok(true)
    }

    /// Checks that the required keys are present.
    pub(super) fn check(&self) -> Result<(), String> {
        for (key, missing) in [
            ("checks", self.checks.is_empty()),
            ("source", self.source.is_empty()),
            ("profiles", self.profiles.is_empty()),
        ] {
            if missing {
                return Err(format!("the head does not say {key:?}"));
            }
        }
        Ok(())
    }

    /// Returns the profile with the changes of this script.
    pub(super) fn applied(&self, profile: Profile) -> Result<Profile, String> {
        let mut profile = profile.with(&self.remedies);
        for change in &self.changes {
            match *change {
                ProfileChange::ReceiveBuffer(bytes) => profile.receive_buffer = bytes,
                ProfileChange::SendBuffer(bytes) => profile.send_buffer = bytes,
                ProfileChange::InitialWindow(count) => {
                    profile.initial_window = InitialWindow::Segments(count);
                }
            }
        }
        Ok(profile)
    }
}

fn change(tokens: &mut Tokens) -> Result<ProfileChange, String> {
    Ok(match tokens.next().unwrap_or_default() {
        "receive-buffer" => ProfileChange::ReceiveBuffer(tokens.value("bytes")?),
        "send-buffer" => ProfileChange::SendBuffer(tokens.value("bytes")?),
        "initial-window" => ProfileChange::InitialWindow(tokens.value("segments")?),
        other => return Err(format!("{other:?} cannot be changed")),
    })
}

fn offer(tokens: &mut Tokens) -> Result<PeerOffer, String> {
    let mut offer = PeerOffer::default();
    while let Some(word) = tokens.next() {
        match word {
            "mss" => offer.mss = Some(tokens.value("bytes")?),
            "window" => offer.window = tokens.value("bytes")?,
            "scale" => offer.scale = Some(tokens.value("a shift")?),
            "sack" => offer.sack = true,
            "timestamps" => offer.timestamps = true,
            "isn" => offer.isn = tokens.value("a number")?,
            other => return Err(format!("{other:?} is nothing that a peer offers")),
        }
    }
    Ok(offer)
}
