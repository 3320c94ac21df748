//! Compression preference of a client, and the precedence of its sources.

use crate::accept::Accept;
use crate::prefer::Prefer;
use crate::step::{Coding, Codings};
use crate::wish::{Form, Origin, Wish};

/// A preference and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Preference {
    /// The preference.
    pub wish: Wish,
    /// Its source.
    pub origin: Origin,
}

impl Preference {
    /// Applies the order of precedence: the SOAP header, a refusal or a demand in `Accept-Encoding`, `Prefer`,
    /// `Save-Data`, the service's description, the route's default.
    ///
    /// An accepted coding in `Accept-Encoding` alone states no preference, because every browser and library sends it.
    pub fn from_sources(
        soap: Option<Wish>,
        accept: &Accept,
        prefer: &Prefer,
        saves_data: bool,
        described: Option<Wish>,
        route: Wish,
    ) -> Self {
        let by_accept = match accept {
            accept if accept.refuses() => Some(Wish::Never),
            accept if accept.demands() => Some(Wish::Always),
            _ => None,
        };
        let sources = [
            (soap, Origin::SoapHeader),
            (by_accept, Origin::AcceptEncoding),
            (prefer.compression, Origin::Prefer),
            (saves_data.then_some(Wish::Always), Origin::SaveData),
            (described, Origin::Wsdl),
        ];
        let stated = sources.into_iter().find_map(|(wish, origin)| {
            let wish = wish.filter(|wish| *wish != Wish::Unstated)?;
            Some(Self { wish, origin })
        });
        stated.unwrap_or(Self {
            wish: route,
            origin: Origin::Route,
        })
    }

    /// The codings to choose from: those of `offered` that the client ranks highest.
    ///
    /// A SOAP Body is compressed with gzip, regardless of HTTP's fields, which concern whole contents. A client without
    /// Accept-Encoding gets gzip if it asks for compression, because every such client can read it, and none otherwise.
    pub fn codings(&self, form: Form, accept: &Accept, offered: Codings) -> Codings {
        let asks = matches!(self.wish, Wish::Always | Wish::IfPossible)
            && !matches!(self.origin, Origin::Wsdl | Origin::Route);
        let in_body = form == Form::Body;
        if accept.is_present() && !in_body {
            accept.best(offered)
        } else if (asks || in_body) && offered.has(Coding::Gzip) {
            Codings::default().with(Coding::Gzip)
        } else {
            Codings::default()
        }
    }

    /// Returns true if the client leaves compression to the server: it neither asks for it nor refuses it, and accepts
    /// one of the `offered` codings.
    pub fn is_open(&self, form: Form, accept: &Accept, offered: Codings) -> bool {
        let has_choice = matches!(self.wish, Wish::IfPossible | Wish::Unstated);
        has_choice && !self.codings(form, accept, offered).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(soap: Option<Wish>, accept: &str, prefer: &str, saves: bool) -> (Wish, Origin) {
        let accept = Accept::read([accept.as_bytes()]);
        let prefer = Prefer::read([prefer.as_bytes()]);
        let found = Preference::from_sources(soap, &accept, &prefer, saves, None, Wish::IfPossible);
        (found.wish, found.origin)
    }

    #[test]
    fn the_first_place_that_says_something_counts() {
        let always = "compression=always";
        let soap = choose(Some(Wish::IfPossible), "identity", always, true);
        assert_eq!(soap, (Wish::IfPossible, Origin::SoapHeader));
        let refused = choose(None, "identity", always, true);
        assert_eq!(refused, (Wish::Never, Origin::AcceptEncoding));
        let demanded = choose(None, "gzip, identity;q=0", "compression=never", false);
        assert_eq!(demanded, (Wish::Always, Origin::AcceptEncoding));
        let preferred = choose(None, "gzip", "compression=never", true);
        assert_eq!(preferred, (Wish::Never, Origin::Prefer));
        let saving = choose(None, "gzip", "compression=perhaps", true);
        assert_eq!(saving, (Wish::Always, Origin::SaveData));
        let nothing = choose(Some(Wish::Unstated), "gzip, br", "", false);
        assert_eq!(nothing, (Wish::IfPossible, Origin::Route));
        let (accept, prefer) = (Accept::default(), Prefer::default());
        let described = Some(Wish::Never);
        let wsdl = Preference::from_sources(None, &accept, &prefer, false, described, Wish::Always);
        assert_eq!((wsdl.wish, wsdl.origin), (Wish::Never, Origin::Wsdl));
    }

    #[test]
    fn acceptable_but_not_required_compression_is_left_open() {
        let offered = Codings::default().with(Coding::Gzip).with(Coding::Zstd);
        let is_open = |form, accept: Option<&str>, prefer: &str| {
            let accept = Accept::read(accept.map(str::as_bytes));
            let prefer = Prefer::read([prefer.as_bytes()]);
            let preference =
                Preference::from_sources(None, &accept, &prefer, false, None, Wish::Unstated);
            preference.is_open(form, &accept, offered)
        };
        let whole = |accept, prefer| is_open(Form::Content, accept, prefer);
        assert!(whole(Some("gzip"), ""));
        assert!(whole(None, "compression=if-possible"));
        assert!(is_open(Form::Body, None, ""));
        for (accept, prefer) in [
            (None, ""),
            (Some("br"), ""),
            (Some("br"), "compression=if-possible"),
            (Some("identity"), ""),
            (Some("gzip, identity;q=0"), ""),
            (Some("gzip"), "compression=never"),
            (Some("gzip"), "compression=always"),
        ] {
            assert!(!whole(accept, prefer), "{accept:?} {prefer}");
        }
    }
}
