//! `--mix FILE`: several kinds of request with their shares, as TOML.
//!
//! ```toml
//! [[request]]
//! name = "page"                 # what reports call it; the URL by default
//! weight = 3                    # share of the mix; 1 by default
//! url = "http://127.0.0.1:8080/page/{{isbn}}"
//! think = "200ms"               # pause after the reply, closed loop only
//!
//! [[request]]
//! method = "POST"
//! url = "http://127.0.0.1:8080/soap"
//! headers = { "Content-Type" = "text/xml", SOAPAction = '""' }
//! body-file = "request.xml"     # beside the mix, or `body = "..."`
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use posthaste_units::Span;
use serde::Deserialize;

use crate::request::RequestSpec;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MixFile {
    request: Vec<MixEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct MixEntry {
    name: Option<String>,
    #[serde(default = "one")]
    weight: f64,
    url: String,
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    body_file: Option<String>,
    #[serde(default)]
    think: Span,
}

const fn one() -> f64 {
    1.0
}

/// Reads a mix. The error names the file and, for invalid TOML, line and column.
pub fn read_mix(path: &Path) -> Result<Vec<RequestSpec>, String> {
    let named = |reason: &dyn std::fmt::Display| format!("{}: {reason}", path.display());
    let text = fs::read_to_string(path).map_err(|error| named(&error))?;
    let file: MixFile = toml::from_str(&text).map_err(|error| match error.message() {
        message if message.contains("expected a sequence") => {
            named(&"write [[request]] with two brackets, once for each request")
        }
        _ => named(&error),
    })?;
    if file.request.is_empty() {
        return Err(named(&"no [[request]] in it"));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    file.request
        .into_iter()
        .map(|entry| entry.into_spec(folder).map_err(|reason| named(&reason)))
        .collect()
}

impl MixEntry {
    fn into_spec(self, folder: &Path) -> Result<RequestSpec, String> {
        if !(self.weight.is_finite() && self.weight > 0.0) {
            return Err(format!(
                "{}: weight {} is not above 0",
                self.url, self.weight
            ));
        }
        let body = match (self.body, self.body_file) {
            (Some(_), Some(_)) => {
                return Err(format!("{}: give body or body-file, not both", self.url));
            }
            (Some(body), None) => body,
            (None, Some(file)) => {
                let path = folder.join(file);
                fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?
            }
            (None, None) => String::new(),
        };
        let method = self
            .method
            .unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.to_owned());
        Ok(RequestSpec {
            name: self.name.unwrap_or_else(|| self.url.clone()),
            weight: self.weight,
            url: self.url,
            method,
            headers: self.headers.into_iter().collect(),
            body,
            grpc: None,
            think: self.think,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<RequestSpec>, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("body.xml"), "<a/>").unwrap();
        let path = folder.path().join("mix.toml");
        fs::write(&path, text).unwrap();
        read_mix(&path)
    }

    #[test]
    fn a_mix_is_read() {
        let mix = read(
            "[[request]]\nurl = 'http://127.0.0.1/a'\nweight = 3\nthink = '200ms'\n\
             [[request]]\nname = 'b'\nurl = 'http://127.0.0.1/b'\nbody-file = 'body.xml'\n\
             headers = { SOAPAction = '\"\"' }\n",
        )
        .unwrap();
        assert_eq!(
            (mix[0].name.as_str(), mix[0].weight),
            ("http://127.0.0.1/a", 3.0)
        );
        assert_eq!(mix[0].think, Span::from_millis(200));
        assert_eq!(
            (mix[1].method.as_str(), mix[1].body.as_str()),
            ("POST", "<a/>")
        );
        assert_eq!(mix[1].headers[0].1, "\"\"");
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let typo = read("[[request]]\nurl = 'http://x/'\nwieght = 3\n").unwrap_err();
        assert!(typo.contains("line 3") && typo.contains("weight"), "{typo}");
        assert!(
            read("[[request]]\nurl = 'x'\nweight = 0\n")
                .unwrap_err()
                .contains("above 0")
        );
        assert!(
            read("[[request]]\nurl = 'x'\nthink = '5'\n")
                .unwrap_err()
                .contains("no unit")
        );
        assert!(
            read("[[request]]\nurl = 'x'\nbody-file = 'none'\n")
                .unwrap_err()
                .contains("none")
        );
        assert!(read("request = []").unwrap_err().contains("[[request]]"));
    }
}
