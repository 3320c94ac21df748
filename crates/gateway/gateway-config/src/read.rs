//! From a file's text to a [`GatewayConfig`], or to the place that is wrong.

use http::header::HeaderName;
use posthaste_http::path::normalize_path;
use posthaste_serve::{ConfigError, read_config};
use posthaste_units::Span;

use crate::names::check_host;
use crate::{GatewayConfig, Process, ProtectionPolicy, RouteConfig, Timeouts, Watch, tier};

/// A shorter time limit would refuse what is not there already.
pub(crate) const SHORTEST: Span = Span::from_millis(1);

/// Bytes of a process's name (proc_pid_comm(5)).
const COMM: usize = 15;

impl GatewayConfig {
    /// Reads a `gateway.toml`.
    pub fn read(text: &str) -> Result<Self, ConfigError> {
        let config: Self = read_config(text)?;
        config.check()?;
        Ok(config)
    }

    /// Refuses what the types allow and no gateway can do.
    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |reason: String| ConfigError::new(reason);
        if self.threads == 0 {
            return Err(wrong("threads must be at least 1".to_owned()));
        }
        if self.connections == Some(0) {
            return Err(wrong("connections must be at least 1".to_owned()));
        }
        if !(1..=1000).contains(&self.limits.fields) {
            return Err(wrong("limits.fields must be 1 to 1000".to_owned()));
        }
        let (release, threshold) = (self.compression.release, self.compression.threshold);
        if release > threshold {
            return Err(wrong(format!(
                "compression.release, {release}, is above compression.threshold, {threshold}: write a release that is not"
            )));
        }
        for name in &self.admin_hosts {
            check_host("admin_hosts", name).map_err(&wrong)?;
            if name.contains('*') {
                return Err(wrong(format!("admin_hosts has {name:?}: write each name")));
            }
        }
        self.timeouts.check()?;
        self.resolver.check()?;
        if let Some(http) = &self.http {
            http.check(self.listen, self.tls.is_some())?;
        }
        self.protection.check()?;
        if self.protection.client.is_some() && self.trust.forwarded.is_empty() {
            return Err(wrong(
                "protection.client needs trust.forwarded: name the networks of the proxies that set the field, such as \"10.0.0.0/8\""
                    .to_owned(),
            ));
        }
        tier::check(self).map_err(|reason| wrong(format!("protection.tier: {reason}")))?;
        match &self.prices {
            Some(_) if self.protection.policy != ProtectionPolicy::Prices => {
                let remedy = "protection.policy = \"prices\"";
                return Err(wrong(format!("[prices] does nothing without {remedy}")));
            }
            Some(prices) => prices.check()?,
            None => {}
        }
        if let Some(accounts) = &self.accounts {
            accounts.check(self.protection.policy == ProtectionPolicy::Prices)?;
        }
        self.check_demand()?;
        self.check_routes()
    }

    fn check_demand(&self) -> Result<(), ConfigError> {
        let wrong = |reason: String| ConfigError::new(reason);
        match &self.demand.watch {
            Watch::Cores(cores) if cores.is_empty() => {
                return Err(wrong("demand.watch names no core".to_owned()));
            }
            Watch::Process(Process::Name(name)) if name.len() > COMM => {
                return Err(wrong(format!(
                    "demand.watch: {name:?} is longer than the {COMM} bytes that the kernel keeps of a process's name, write what `ps -o comm` shows"
                )));
            }
            Watch::Upstream(field) if field.parse::<HeaderName>().is_err() => {
                return Err(wrong(format!(
                    "{field:?} is not the name of a header field"
                )));
            }
            _ => {}
        }
        Ok(())
    }

    fn check_routes(&self) -> Result<(), ConfigError> {
        let wrong = |reason: String| ConfigError::new(reason);
        if self.routes.is_empty() {
            return Err(wrong(
                "there is no route: add [[route]] with path = \"/\" and upstream = [\"HOST:PORT\"]"
                    .to_owned(),
            ));
        }
        for (index, route) in self.routes.iter().enumerate() {
            route.check().map_err(|reason| {
                wrong(format!("route {} ({:?}): {reason}", index + 1, route.path))
            })?;
            let location = |route: &RouteConfig| {
                let path = normalize_path(&route.path).trim_end_matches('/').to_owned();
                (route.normal_host(), path)
            };
            if self.routes[..index]
                .iter()
                .any(|r| location(r) == location(route))
            {
                let host = route.host.as_ref();
                let host = host.map_or(String::new(), |host| format!(" of the host {host}"));
                return Err(wrong(format!(
                    "there are two routes for {:?}{host}: give one of them another path",
                    route.path
                )));
            }
        }
        Ok(())
    }
}

impl Timeouts {
    fn check(&self) -> Result<(), ConfigError> {
        let all = [
            ("idle", self.idle),
            ("head", self.head),
            ("body", self.body),
            ("write", self.write),
            ("connect", self.connect),
            ("reply", self.reply),
            ("reply_body", self.reply_body),
            ("upstream_idle", self.upstream_idle),
            ("tunnel", self.tunnel),
        ];
        match all.iter().find(|(_, limit)| *limit < SHORTEST) {
            Some((name, limit)) => Err(ConfigError::new(format!(
                "timeouts.{name}, {limit}, leaves no time: write 1ms or more; there is no word for no limit"
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: &str = "\n[[route]]\npath = \"/\"\nupstream = [\"127.0.0.1:9000\"]";

    fn wrong(text: &str) -> String {
        GatewayConfig::read(text).unwrap_err().to_string()
    }

    #[test]
    fn configuration_errors_name_the_location_and_the_remedy() {
        let listen = "listen = \"127.0.0.1:8080\"\n";
        for (text, message) in [
            (
                format!("{listen}[compresion]\npolicy = \"never\""),
                "line 2, column 2: ",
            ),
            (
                format!("{listen}[compresion]"),
                "did you mean `compression`?",
            ),
            (
                format!("{listen}[compression]\npolicy = \"treshold\""),
                "line 3, column 10: ",
            ),
            (
                format!("{listen}[compression]\npolicy = \"treshold\""),
                "never, always, threshold",
            ),
            (
                format!("{listen}[compression]\nthreshold = \"50%\"{ROUTE}"),
                "release, 70%, is above compression.threshold, 50%",
            ),
            (
                format!("listen = \"localhost\"{ROUTE}"),
                "such as 127.0.0.1:8080",
            ),
            (listen.to_owned(), "add [[route]]"),
            (format!("{listen}{ROUTE}{ROUTE}"), "two routes for \"/\""),
            (
                format!("{listen}threads = 0{ROUTE}"),
                "threads must be at least 1",
            ),
            (
                format!(
                    "{listen}{}{}",
                    ROUTE.replace("\"/\"", "\"/a\""),
                    ROUTE.replace("\"/\"", "\"/a/\"")
                ),
                "two routes for \"/a/\"",
            ),
            (
                format!(
                    "{listen}{}",
                    ROUTE.replace("9000\"", "9000\", \"127.0.0.1:9000\"")
                ),
                "upstream names \"127.0.0.1:9000\" twice",
            ),
        ] {
            let error = wrong(&text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let listen = "listen = \"127.0.0.1:8080\"\n";
        for (text, message) in [
            (
                format!("{listen}{ROUTE}\n[route.health]\npath = \"/a b\""),
                "health.path is \"/a b\"",
            ),
            (
                format!("{listen}[timeouts]\nreply = \"0s\"{ROUTE}"),
                "timeouts.reply, 0s, leaves no time",
            ),
            (
                format!("{listen}[demand]\nwatch = {{ process = \"a-very-long-process\" }}{ROUTE}"),
                "is longer than the 15 bytes",
            ),
            (
                format!("{listen}[protection]\npolicy = \"rate\"\nrate = \"0/s\"{ROUTE}"),
                "protection.rate is above 0",
            ),
            (
                format!(
                    "{listen}[protection]\npolicy = \"prices\"\n[prices]\nmost_rate = \"0/s\"{ROUTE}"
                ),
                "nothing is quoted otherwise",
            ),
            (
                format!("{listen}{ROUTE}\n[route.health]\nevery = \"1ms\""),
                "health.every is at least 10ms",
            ),
        ] {
            let error = wrong(&text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn keys_of_listeners_and_trust_are_checked() {
        let listen = "listen = \"127.0.0.1:8080\"\n";
        let tls = "[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n";
        for (text, message) in [
            (
                format!("{listen}[http]\nlisten = \":80\"{ROUTE}"),
                "does nothing without [tls]",
            ),
            (
                format!("{listen}{tls}[http]\nlisten = \"127.0.0.1:8080\"{ROUTE}"),
                "are the same address",
            ),
            (
                format!("{listen}[trust]\nforwarded = [\"10.0.0.0/33\"]{ROUTE}"),
                "\"10.0.0.0/33\" is no network",
            ),
            (
                format!("{listen}[protection]\nclient = \"X-Client\"{ROUTE}"),
                "needs trust.forwarded",
            ),
            (
                format!("{listen}[resolver]\nmin_ttl = \"10ms\"{ROUTE}"),
                "resolver.min_ttl is at least",
            ),
            (
                format!("{listen}[resolver]\nmax_ttl = \"500ms\"{ROUTE}"),
                "at least resolver.min_ttl",
            ),
        ] {
            let error = wrong(&text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn keys_of_routes_are_checked() {
        for (keys, message) in [
            ("host = \"shop.example:80\"", "a name without a port"),
            ("host = \"a..b\"", "a name without a port"),
            ("rewrite = \"v2\"", "rewrite begins with /"),
            ("upgrade = [\"h2c\"]", "unchecked"),
            ("upgrade = [\"a b\"]", "no name of a protocol"),
            ("protocol = \"http3\"", "http1"),
            ("request_headers = { remove = [\"a b\"] }", "not the name"),
            (
                "request_headers = { set = { Content-Length = \"1\" } }",
                "written by the gateway",
            ),
            (
                "reply_headers = { set = { X-A = \"\\n\" } }",
                "no value of X-A",
            ),
            (
                "timeouts = { reply = \"0s\" }",
                "timeouts.reply, 0s, leaves",
            ),
            ("retry = { attempts = 11 }", "at most 10"),
            ("retry = { statuses = [200] }", "from 400 to 599"),
            ("ejection = { slow = 1.0 }", "ejection.slow is above 1"),
            ("ejection = { time = \"1ms\" }", "at least 100ms"),
        ] {
            let error = wrong(&format!("listen = \":80\"{ROUTE}\n{keys}"));
            assert!(error.contains(message), "{keys}: {error}");
        }
    }

    #[test]
    fn hosts_have_routes_of_their_own() {
        let host = |host: &str| format!("{ROUTE}\nhost = \"{host}\"");
        let listen = "listen = \":80\"".to_owned();
        let two = listen.clone() + ROUTE + &host("a.example") + &host("*.example");
        assert!(GatewayConfig::read(&two).is_ok());
        let error = wrong(&(listen + &host("a.example") + &host("A.example")));
        assert!(error.contains("of the host A.example"), "{error}");
    }
}
