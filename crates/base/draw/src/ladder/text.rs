//! Text form of a ladder for a terminal: 80 columns, one line per packet.
//!
//! Lines cannot slope, so both times are written: the departure next to the sender, the arrival next to the receiver.

use super::{Arrow, Ladder, Line, Side, TimeFormat, Wait, folds};

/// Total columns.
const WIDTH: usize = 80;
/// Columns of a time and the space next to it.
const TIME: usize = 11;
/// Columns between the two lines.
const ACROSS: usize = WIDTH - 2 * (TIME + 1);
/// Length of a lost packet's arrow.
const LOST: usize = ACROSS * 3 / 5;
/// Strokes between the sender and a label, and minimum number beyond it.
const LEAD: usize = 2;

impl Line {
    fn stroke(self) -> char {
        match self {
            Self::Data | Self::Control => '─',
            Self::Acknowledgement => '┄',
            Self::Again => '━',
        }
    }
}

/// Renders the ladder as lines of at most 80 characters.
pub(super) fn draw(ladder: &Ladder) -> String {
    let (arrows, notes) = ladder.drawn();
    let (folds, busy) = folds(&arrows);
    let clock = TimeFormat::for_length(busy);
    let mut lines = wrap(&ladder.title);
    lines.push(String::new());
    lines.push(heading(&ladder.ends));
    for arrow in &arrows {
        let fold = folds.iter().find(|fold| fold.until == arrow.departed);
        let folded = fold.filter(|_| starts(&arrows, arrow));
        if let Some(wait) = ladder.waits.iter().find(|wait| ended_by(wait, arrow)) {
            lines.push(row(
                if fold.is_some() { '┊' } else { '│' },
                "",
                &waited(wait),
                "",
            ));
        } else if let Some(fold) = folded {
            lines.push(row(
                '┊',
                "",
                &format!("{:^ACROSS$}", fold.format_length()),
                "",
            ));
        }
        lines.push(packet(arrow, clock));
    }
    lines.push(String::new());
    lines.push("  ─ data   ┄ acknowledgement   ━ sent again   ╳ lost   ┊ idle, folded".to_owned());
    for note in &notes {
        lines.extend(wrap(note));
    }
    let trimmed = lines.iter().map(|line| line.trim_end());
    trimmed.fold(String::new(), |text, line| text + line + "\n")
}

/// Returns true if `arrow` is the first that departs at its time.
fn starts(arrows: &[&Arrow], arrow: &Arrow) -> bool {
    let first = arrows.iter().find(|other| other.departed == arrow.departed);
    first.is_some_and(|first| std::ptr::eq(*first, arrow))
}

fn ended_by(wait: &Wait, arrow: &Arrow) -> bool {
    wait.side == arrow.from && wait.until == arrow.departed
}

fn heading([left, right]: &[String; 2]) -> String {
    let half = ACROSS / 2;
    let (left, right) = (cut(left, half), cut(right, half));
    format!("{:>10} {left:<half$}  {right:>half$} {:<10}", "ms", "ms")
}

/// A row: both times, both lines, and the text between them.
fn row(line: char, left: &str, between: &str, right: &str) -> String {
    format!("{left:>10} {line}{between}{line} {right:<10}")
}

fn packet(arrow: &Arrow, clock: TimeFormat) -> String {
    let departed = clock.format(arrow.departed);
    let ended = match arrow.lost {
        None => clock.format(arrow.ended),
        Some(_) => String::new(),
    };
    let between = across(arrow);
    match arrow.from {
        Side::Left => row('│', &departed, &between, &ended),
        Side::Right => row('│', &ended, &between, &departed),
    }
}

/// The arrow itself, [`ACROSS`] columns wide.
fn across(arrow: &Arrow) -> String {
    let stroke = arrow.line.stroke();
    let strokes = |count: usize| stroke.to_string().repeat(count);
    let (length, tip) = match (&arrow.lost, arrow.from) {
        (Some(_), _) => (LOST, '╳'),
        (None, Side::Left) => (ACROSS, '►'),
        (None, Side::Right) => (ACROSS, '◄'),
    };
    let label = cut(&arrow.label, length - 2 * LEAD - 3);
    let rest = strokes(length - LEAD - 3 - label.chars().count());
    let lead = strokes(LEAD);
    let beyond = ACROSS - length;
    let reason = arrow.lost.as_ref().map(|reason| cut(reason, beyond - 2));
    let reason = reason.map_or_else(String::new, |reason| format!(" {reason} "));
    match arrow.from {
        Side::Left => format!("{lead} {label} {rest}{tip}{reason:<beyond$}"),
        Side::Right => format!("{reason:>beyond$}{tip}{rest} {label} {lead}"),
    }
}

/// Label of a wait, on the side of the waiting end.
fn waited(wait: &Wait) -> String {
    let label = cut(&wait.label, ACROSS - 4);
    match wait.side {
        Side::Left => format!("{:<ACROSS$}", format!("  {label}")),
        Side::Right => format!("{:>ACROSS$}", format!("{label}  ")),
    }
}

/// Shortens `text` to `most` characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    kept + "…"
}

/// Breaks `text` at spaces into lines of the full width.
fn wrap(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(cut(word, WIDTH)),
        }
    }
    lines
}
