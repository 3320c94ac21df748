//! JSON Schema of quantities in configurations: strings with a pattern and a description.
//!
//! The names appear in generated references as the types of keys. Patterns come from the tables of units that `FromStr`
//! uses, so an editor accepts the same spellings.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{Dscp, Rate, Ratio, Size, Span};

/// A string with the description `about` that matches `pattern`.
fn text(about: &str, pattern: &str) -> Schema {
    json_schema!({ "type": "string", "description": about, "pattern": pattern })
}

/// A number followed by one of `units`.
fn quantity(about: &str, example: &str, units: &[(&str, f64)]) -> Schema {
    let units: Vec<&str> = units.iter().map(|(unit, _)| *unit).collect();
    let number = r"[0-9._]*[0-9][0-9._]*";
    text(
        &format!("{about}: {example}."),
        &format!(r"^\s*{number}\s*({})\s*$", units.join("|")),
    )
}

/// Implements `JsonSchema` with a name and a schema.
macro_rules! schema {
    ($type:ty, $name:literal, $schema:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

schema!(
    Span,
    "time",
    quantity("Length of time", Self::EXAMPLE, Self::UNITS)
);
schema!(
    Size,
    "size",
    quantity("Number of bytes", Self::EXAMPLE, Self::UNITS)
);
schema!(
    Rate,
    "rate",
    quantity("Events per time", Self::EXAMPLE, Self::UNITS)
);
schema!(
    Ratio,
    "share",
    quantity("Share of a whole", Self::EXAMPLE, Self::UNITS)
);
schema!(
    Dscp,
    "mark",
    text(
        "DiffServ code point (RFC 2474): `af11` to `af43`, `cs0` to `cs7`, `ef`, `va`, `le`, `default`, or a number \
         up to `0x3f`.",
        r"^\s*([aA][fF][1-4][1-3]|[cC][sS][0-7]|[eE][fF]|[vV][aA]|[lL][eE]|[dD][eE][fF][aA][uU][lL][tT]|0x[0-9a-fA-F]+|[0-9]+)\s*$"
    )
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_that_are_read() {
        let schema = Size::json_schema(&mut SchemaGenerator::default());
        let pattern = schema.get("pattern").and_then(|pattern| pattern.as_str());
        assert_eq!(
            pattern,
            Some(r"^\s*[0-9._]*[0-9][0-9._]*\s*(B|kB|MB|GB|KiB|MiB|GiB)\s*$")
        );
        let about = schema.get("description").and_then(|about| about.as_str());
        assert!(about.is_some_and(|about| about.contains("64KiB")));
    }
}
