//! Palette, in a light and a dark theme: six hues that colour-blind readers can distinguish, and a scale of eight steps
//! for ordered series.
//!
//! Elements have classes, never colours. The style sheet gives each class first a literal light colour (for viewers
//! without CSS variables), then the theme's variable. Rules and variables are the same in all charts, so that many fit
//! on one page.

use std::fmt::Write as _;

/// One hue: its colour in each theme, and a muted one for the paper's numbers.
struct Hue {
    light: &'static str,
    light_muted: &'static str,
    dark: &'static str,
    dark_muted: &'static str,
}

/// Number of hues before they repeat.
pub(crate) const HUES: usize = TABLE.len();

const TABLE: [Hue; 6] = [
    hue(["#0067a5", "#4792be", "#5ab4f0", "#4789b6"]),
    hue(["#c2410c", "#d37650", "#ff9663", "#be7451"]),
    hue(["#007a5a", "#479f88", "#35c79a", "#2c9778"]),
    hue(["#a13d85", "#bb73a7", "#e28dc4", "#a96d97"]),
    hue(["#856404", "#a78f4a", "#e0c04c", "#a79240"]),
    hue(["#4a5560", "#7d858d", "#b8c3ce", "#8b949e"]),
];

/// Steps of the scale in the light and dark theme: perceptually equidistant (after viridis), each in contrast to the
/// surface.
const STEPS: [(&str, &str); 8] = [
    ("#20a081", "#25848e"),
    ("#1f968b", "#1f968b"),
    ("#25848e", "#22a884"),
    ("#2d708e", "#3fbc73"),
    ("#365c8d", "#69cc5b"),
    ("#3e4989", "#99d83d"),
    ("#482475", "#cde11d"),
    ("#440154", "#fde725"),
];

/// Name, light and dark colour of everything that is not a series.
const PLAIN: [(&str, &str, &str); 5] = [
    ("surface", "#ffffff", "#161b22"),
    ("text", "#1c2128", "#e6edf3"),
    ("quiet", "#59636e", "#9aa5b1"),
    ("axis", "#7a8490", "#6e7883"),
    ("grid", "#e4e8ec", "#2a313a"),
];

const fn hue([light, light_muted, dark, dark_muted]: [&'static str; 4]) -> Hue {
    Hue {
        light,
        light_muted,
        dark,
        dark_muted,
    }
}

/// Colour class of a series.
pub(crate) fn class(hue: usize, muted: bool) -> String {
    format!("ph-{}{}", if muted { "m" } else { "i" }, hue % HUES)
}

/// Colour class of series `index` of `count` ordered ones.
pub(crate) fn step(index: usize, count: usize) -> String {
    let last = STEPS.len() - 1;
    let places = count.saturating_sub(1).max(1);
    format!("ph-s{}", (index * last).div_ceil(places).min(last))
}

/// Style sheet of all charts.
pub fn chart_style() -> String {
    let (light, dark) = (variables(false), variables(true));
    let mut css = format!(
        ".ph-chart{{{light}display:block;width:100%;height:auto;\
         font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Liberation Sans\",Arial,sans-serif;\
         font-size:12px}}\n\
         @media (prefers-color-scheme:dark){{.ph-chart{{{dark}}}}}\n\
         [data-theme=light] .ph-chart{{{light}}}\n\
         [data-theme=dark] .ph-chart{{{dark}}}\n\
         @media print{{.ph-chart,[data-theme] .ph-chart{{{light}}}}}\n"
    );
    for (name, property) in [
        ("surface", "fill"),
        ("text", "fill"),
        ("quiet", "fill"),
        ("axis", "stroke"),
        ("grid", "stroke"),
    ] {
        let colour = PLAIN
            .iter()
            .find(|plain| plain.0 == name)
            .map_or("", |p| p.1);
        rule(&mut css, name, &[property], name, colour);
    }
    for (index, hue) in TABLE.iter().enumerate() {
        for (kind, colour) in [("i", hue.light), ("m", hue.light_muted)] {
            let name = format!("{kind}{index}");
            rule(&mut css, &name, &["fill", "stroke"], &name, colour);
        }
    }
    for (index, (light, _)) in STEPS.iter().enumerate() {
        let name = format!("s{index}");
        rule(&mut css, &name, &["fill", "stroke"], &name, light);
    }
    css.push_str(include_str!("chart.css"));
    css
}

/// Rule that sets `properties` of a class to a colour: first the literal one, then the theme's.
fn rule(css: &mut String, class: &str, properties: &[&str], variable: &str, colour: &str) {
    let _ = write!(css, ".ph-{class}{{");
    for property in properties {
        let _ = write!(css, "{property}:{colour};{property}:var(--ph-{variable});");
    }
    css.push_str("}\n");
}

fn variables(dark: bool) -> String {
    let mut css = String::new();
    for (name, light, night) in PLAIN {
        let _ = write!(css, "--ph-{name}:{};", if dark { night } else { light });
    }
    for (index, hue) in TABLE.iter().enumerate() {
        let (colour, muted) = if dark {
            (hue.dark, hue.dark_muted)
        } else {
            (hue.light, hue.light_muted)
        };
        let _ = write!(css, "--ph-i{index}:{colour};--ph-m{index}:{muted};");
    }
    for (index, (light, night)) in STEPS.iter().enumerate() {
        let _ = write!(css, "--ph-s{index}:{};", if dark { night } else { light });
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance (WCAG 2.1).
    fn luminance(hex: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.039_28 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn inks_reach_the_contrast_of_wcag_in_both_themes() {
        let [(_, light, dark), text, quiet, axis, _] = PLAIN;
        for (surface, inks) in [(light, [text.1, quiet.1]), (dark, [text.2, quiet.2])] {
            for ink in inks {
                assert!(contrast(ink, surface) >= 4.5, "{ink} on {surface}");
            }
        }
        assert!(contrast(axis.1, light) >= 3.0 && contrast(axis.2, dark) >= 3.0);
        for hue in &TABLE {
            for colour in [hue.light, hue.light_muted] {
                assert!(contrast(colour, light) >= 3.0, "{colour}");
            }
            for colour in [hue.dark, hue.dark_muted] {
                assert!(contrast(colour, dark) >= 3.0, "{colour}");
            }
        }
        for (day, night) in &STEPS {
            assert!(contrast(day, light) >= 3.0, "{day}");
            assert!(contrast(night, dark) >= 3.0, "{night}");
        }
    }

    #[test]
    fn a_sequence_goes_from_the_first_step_to_the_last() {
        let sequence = |count: usize| {
            (0..count)
                .map(|index| step(index, count))
                .collect::<Vec<_>>()
        };
        assert_eq!(sequence(1), ["ph-s0"]);
        assert_eq!(sequence(2), ["ph-s0", "ph-s7"]);
        assert_eq!(sequence(4), ["ph-s0", "ph-s3", "ph-s5", "ph-s7"]);
        let mut eight = sequence(8);
        eight.dedup();
        assert_eq!(eight.len(), 8);
    }

    #[test]
    fn the_style_sheet_asks_for_nothing_from_outside() {
        let css = chart_style();
        assert!(!css.contains("url(") && !css.contains("@import"));
        assert!(css.contains("--ph-i5") && css.contains("prefers-color-scheme:dark"));
    }
}
