//! Two readings of a path: the normal form, used for routing, and the path as written.
//!
//! Servers differ in handling empty and dot segments and encoded slashes. A path whose readings lead to different
//! routes is rejected, because an upstream could read it as a path of the other route.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Returns the normal form: percent-decoded, then without segment parameters (RFC 3986, section 3.3), empty segments
/// and dot segments. nginx and servlet containers match this form.
pub fn normalize_path(path: &str) -> Cow<'_, str> {
    let plain = !path.contains(['%', ';']) && !path.contains("//") && !path.contains("/.");
    if plain {
        return Cow::Borrowed(path);
    }
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let mut segments = Vec::new();
    for segment in decoded.split('/') {
        match segment
            .split(';')
            .next()
            .expect("a split has one part at least")
        {
            "" | "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    let end = if decoded.ends_with('/') && !segments.is_empty() {
        "/"
    } else {
        ""
    };
    Cow::Owned(format!("/{}{end}", segments.join("/")))
}

/// Returns the path as written: each segment percent-decoded and without parameters, all segments kept. An encoded
/// slash stays encoded.
pub fn written_path(path: &str) -> Cow<'_, str> {
    if !path.contains(['%', ';']) {
        return Cow::Borrowed(path);
    }
    let segment = |segment: &str| {
        let decoded = percent_decode_str(segment).decode_utf8_lossy();
        let name = decoded
            .split(';')
            .next()
            .expect("a split has one part at least");
        name.replace('/', "%2F")
    };
    Cow::Owned(path.split('/').map(segment).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_paths_keep_their_segments() {
        for (path, wanted) in [
            ("/a/b", "/a/b"),
            ("//a/./b/..", "//a/./b/.."),
            ("/%61;x=1/%2e%2E", "/a/.."),
            ("/a%2f..%2Fb", "/a%2F..%2Fb"),
            ("/%C3%A4", "/ä"),
        ] {
            assert_eq!(written_path(path), wanted, "{path}");
        }
    }

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
            assert_eq!(normalize_path(path), "/account", "{path}");
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
            assert_eq!(normalize_path(path), wanted, "{path}");
        }
    }
}
