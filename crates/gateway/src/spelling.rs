//! One spelling of a path, by which routes are found beside the one that came: what a route keeps back must not be had by
//! another spelling.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// A path without percent-encoding, then without parameters of segments (RFC 3986, section 3.3), without empty segments and
/// without dot segments: as nginx matches it, and servlet containers.
pub(crate) fn normal(path: &str) -> Cow<'_, str> {
    let plain = !path.contains(['%', ';']) && !path.contains("//") && !path.contains("/.");
    if plain {
        return Cow::Borrowed(path);
    }
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let mut segments = Vec::new();
    for segment in decoded.split('/') {
        match segment.split(';').next().unwrap_or_default() {
            "" | "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    let end = match decoded.ends_with('/') && !segments.is_empty() {
        true => "/",
        false => "",
    };
    Cow::Owned(format!("/{}{end}", segments.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_path_are_one() {
        for path in [
            "/account",
            "//account",
            "/%61ccount",
            "/./account",
            "/x/../account",
            "/%2e%2E/account",
            "/x%2F..%2faccount",
            "/account;id=1",
            "/x/..;/account",
            "/;a/account%3Bb",
        ] {
            assert_eq!(normal(path), "/account", "{path}");
        }
        for (path, wanted) in [
            ("/", "/"),
            ("//", "/"),
            ("/..", "/"),
            ("/a//", "/a/"),
            ("/a/b", "/a/b"),
            ("/%zz", "/%zz"),
            ("*", "*"),
            ("/%C3%A4", "/ä"),
        ] {
            assert_eq!(normal(path), wanted, "{path}");
        }
    }
}
