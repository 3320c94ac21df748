//! The requests of a plan: from options, a mix file or a WSDL, with the header fields that other options add.

use posthaste_load::{Data, GrpcCall, RequestSpec, TlsOptions};

use super::{Args, Failure, read};

const AUTHORIZATION: &str = "Authorization";
/// Accept-Encoding of a client that decodes: all codings that it can decode.
const DECODED: &str = "gzip, br, zstd";

impl Args {
    /// Makes the requests of the plan from the mix, the WSDL or the options.
    pub(super) fn requests(
        &self,
        data: &Data,
        tls: &TlsOptions,
        call: Option<&GrpcCall>,
    ) -> Result<Vec<RequestSpec>, Failure> {
        let mut requests = match (&self.mix, &self.wsdl, &self.operation) {
            _ if call.is_some() => call
                .map(|call| self.request_of(call))
                .into_iter()
                .collect::<Result<_, _>>()?,
            (Some(path), ..) => posthaste_load::read_mix(path).map_err(Failure::Usage)?,
            (None, Some(wsdl), Some(operation)) => {
                let wanted = posthaste_load::WsdlCall {
                    source: wsdl,
                    operation,
                    version: self.soap,
                    endpoint: self.url.as_deref(),
                };
                vec![
                    wanted
                        .request(data, &self.resolve, tls)
                        .map_err(from_wsdl)?,
                ]
            }
            _ => vec![self.single()?],
        };
        let given = |name: &str| {
            self.header
                .iter()
                .any(|h| h.name.eq_ignore_ascii_case(name))
        };
        let credentials = self.credentials();
        if credentials.is_some() && given(AUTHORIZATION) {
            return Err(Failure::Usage(
                "there can be one Authorization only: leave out -H, or --user and --bearer"
                    .to_owned(),
            ));
        }
        for request in &mut requests {
            request.headers.retain(|(name, _)| !given(name));
            request.headers.extend(
                self.header
                    .iter()
                    .map(|h| (h.name.clone(), h.value.clone())),
            );
            if let Some(credentials) = &credentials {
                let is_other = |name: &str| !name.eq_ignore_ascii_case(AUTHORIZATION);
                request.headers.retain(|(name, _)| is_other(name));
                request
                    .headers
                    .push((AUTHORIZATION.to_owned(), credentials.clone()));
            }
            let asks = |(name, _): &(String, String)| name.eq_ignore_ascii_case("accept-encoding");
            if self.decoding().is_some() && !request.headers.iter().any(asks) {
                let field = ("Accept-Encoding".to_owned(), DECODED.to_owned());
                request.headers.push(field);
            }
            let states = |(name, _): &(String, String)| name.eq_ignore_ascii_case("accept");
            if let (Some(accept), false) =
                (self.events.accept(), request.headers.iter().any(states))
            {
                let field = ("Accept".to_owned(), accept.to_owned());
                request.headers.push(field);
            }
            if let Some(method) = &self.method {
                request.method.clone_from(method);
            }
            request.think = self.think.unwrap_or(request.think);
        }
        Ok(requests)
    }

    /// Header fields that every request has by the options.
    pub(super) fn own_headers(&self) -> Vec<(String, String)> {
        let given = self.header.iter();
        let given = given.map(|h| (h.name.clone(), h.value.clone()));
        let credentials = self.credentials();
        let credentials = credentials.map(|value| (AUTHORIZATION.to_owned(), value));
        given.chain(credentials).collect()
    }

    fn single(&self) -> Result<RequestSpec, Failure> {
        let url = self.url.clone().unwrap_or_default();
        let body = self.body.as_deref().map(|file| {
            read(file).map_err(|error| Failure::usage(format!("--body names a file: {error}")))
        });
        let body = body.transpose()?;
        Ok(match (self.soap, body) {
            (Some(version), body) => {
                let action = self.action.as_deref().unwrap_or_default();
                posthaste_load::soap_request(&url, version, action, &body.unwrap_or_default())
            }
            (None, Some(body)) => RequestSpec::post(url, "application/octet-stream", body),
            (None, None) => RequestSpec::get(url),
        })
    }

    /// Value of the field Authorization.
    fn credentials(&self) -> Option<String> {
        use base64::Engine as _;
        let basic = base64::engine::general_purpose::STANDARD;
        match (&self.user, &self.bearer) {
            (Some(user), _) => Some(format!("Basic {}", basic.encode(user))),
            (None, Some(token)) => Some(format!("Bearer {token}")),
            (None, None) => None,
        }
    }
}

fn from_wsdl(error: posthaste_load::WsdlError) -> Failure {
    match error {
        posthaste_load::WsdlError::Fetch { .. } => Failure::run(error),
        posthaste_load::WsdlError::Content { .. } => Failure::usage(error),
    }
}
