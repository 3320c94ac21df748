//! A fake registry with configurable content and behaviour, and a broker that uses it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use posthaste_broker::{Broker, BrokerConfig, StoreUrl, Uddi};
use tempfile::TempDir;

use crate::support::{send, start};

/// Type of all services in these tests.
pub(super) const KIND: &str = "uddi:example.org:books";

/// Behaviour of the registry.
#[derive(Clone, Default)]
pub(super) enum Mood {
    /// Correct answers.
    #[default]
    Well,
    /// Always this answer.
    Says(String),
    /// A reply that never ends.
    Endless,
    /// No reply.
    Hangs,
}

/// Content of the registry.
#[derive(Clone, Default)]
pub(super) struct StandInState {
    /// Key, business, address and document of each service.
    pub(super) services: Vec<(String, String, String, Option<String>)>,
    /// Document that the type names.
    pub(super) overview: Option<String>,
    /// Businesses in the trusted category.
    pub(super) trusted: Vec<String>,
    /// Saved entities: kind, key, name and the reply that contains each.
    pub(super) saved: Vec<[String; 4]>,
    pub(super) mood: Mood,
    /// Received requests, without the envelope.
    pub(super) requested: Vec<String>,
}

#[derive(Clone)]
pub(super) struct Registry {
    pub(super) address: SocketAddr,
    pub(super) version: u8,
    pub(super) state: Arc<Mutex<StandInState>>,
}

impl Registry {
    pub(super) fn open(version: u8) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let registry = Self {
            address: listener.local_addr().unwrap(),
            version,
            state: Arc::default(),
        };
        let serving = registry.clone();
        std::thread::spawn(move || {
            let mut hanging = Vec::new();
            for socket in listener.incoming().map_while(Result::ok) {
                let (request, socket) = read(socket);
                let mood = serving.state.lock().unwrap().mood.clone();
                match mood {
                    Mood::Well => {
                        let answer = serving.answer(&request);
                        serving.reply(socket, &answer);
                    }
                    Mood::Says(text) => serving.reply(socket, &text),
                    Mood::Endless => {
                        std::thread::spawn(move || endless(socket));
                    }
                    Mood::Hangs => hanging.push(socket),
                }
            }
        });
        registry
    }

    /// Replaces the services.
    pub(super) fn holds(&self, services: &[(&str, &str, String, Option<String>)]) {
        let own = |(key, business, at, document): &(&str, &str, String, Option<String>)| {
            (
                key.to_string(),
                business.to_string(),
                at.clone(),
                document.clone(),
            )
        };
        self.state.lock().unwrap().services = services.iter().map(own).collect();
    }

    pub(super) fn is(&self, mood: Mood) {
        self.state.lock().unwrap().mood = mood;
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/inquiry", self.address)
    }

    fn reply(&self, mut socket: TcpStream, message: &str) {
        let namespace = format!("urn:uddi-org:api_v{}", self.version);
        let message = message.replace("NS", &namespace);
        let text = format!(
            "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body>{message}</s:Body></s:Envelope>"
        );
        let status = if message.contains("<s:Fault>") {
            "500 No"
        } else {
            "200 OK"
        };
        let length = text.len();
        let _ = write!(
            socket,
            "HTTP/1.1 {status}\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n\r\n{text}"
        );
    }

    /// Answers by type of request, with two services per page in version 3.
    fn answer(&self, request: &str) -> String {
        let state = &mut *self.state.lock().unwrap();
        state.requested.push(request.to_owned());
        let attribute = |name: &str| {
            let (_, rest) = request.split_once(&format!(" {name}=\""))?;
            Some(rest.split('"').next().unwrap().to_owned())
        };
        let is = |name: &str| request.starts_with(&format!("<{name} "));
        if let Some(entity) = save(state, request) {
            return entity;
        }
        let head: usize = attribute("listHead").map_or(1, |head| head.parse().unwrap());
        let page = if self.version == 3 { 2 } else { usize::MAX };
        if is("find_service") {
            let known: Vec<_> = state
                .services
                .iter()
                .filter(|_| request.contains(KIND))
                .collect();
            let (actual, some) = (known.len(), known.into_iter().skip(head - 1).take(page));
            let infos: String = some
                .map(|(key, business, ..)| {
                    format!("<serviceInfo serviceKey='{key}' businessKey='{business}'/>")
                })
                .collect();
            format!(
                "<serviceList xmlns='NS'><listDescription><actualCount>{actual}</actualCount></listDescription><serviceInfos>{infos}</serviceInfos></serviceList>"
            )
        } else if is("get_serviceDetail") {
            let listed = state
                .services
                .iter()
                .filter(|(key, ..)| request.contains(&format!("<serviceKey>{key}<")));
            let services: String = listed.map(|(key, business, at, document)| {
                let overview = document.as_ref().map(|url| format!("<instanceDetails><overviewDoc><overviewURL>{url}</overviewURL></overviewDoc></instanceDetails>"));
                let overview = overview.unwrap_or_default();
                format!("<businessService serviceKey='{key}' businessKey='{business}'><name>Books</name><bindingTemplates><bindingTemplate><accessPoint>{at}</accessPoint><tModelInstanceDetails><tModelInstanceInfo tModelKey='{KIND}'>{overview}</tModelInstanceInfo></tModelInstanceDetails></bindingTemplate></bindingTemplates></businessService>")
            }).collect();
            if services.is_empty() {
                again(state, request)
            } else {
                format!("<serviceDetail xmlns='NS'>{services}</serviceDetail>")
            }
        } else if is("find_business") {
            let infos: String = state
                .trusted
                .iter()
                .map(|key| format!("<businessInfo businessKey='{key}'/>"))
                .collect();
            format!(
                "<businessList xmlns='NS'><businessInfos>{infos}</businessInfos></businessList>"
            )
        } else if is("get_businessDetail") {
            match state.trusted.iter().find(|key| request.contains(*key)) {
                Some(key) => format!(
                    "<businessDetail xmlns='NS'><businessEntity businessKey='{key}'><name>Another name</name></businessEntity></businessDetail>"
                ),
                None => again(state, request),
            }
        } else if is("get_tModelDetail") {
            if request.contains(KIND) {
                described(state)
            } else {
                again(state, request)
            }
        } else if is("get_authToken") {
            "<authToken xmlns='NS'><authInfo>a-token</authInfo></authToken>".to_owned()
        } else {
            again(state, request)
        }
    }
}

/// The type of all services.
fn described(state: &StandInState) -> String {
    let overview = state.overview.as_ref();
    let overview = overview.map_or(String::new(), |url| {
        format!("<overviewDoc><overviewURL>{url}</overviewURL></overviewDoc>")
    });
    format!(
        "<tModelDetail xmlns='NS'><tModel tModelKey='{KIND}'>{overview}</tModel></tModelDetail>"
    )
}

/// Stores an entity, assigns a missing key, and returns the reply.
fn save(state: &mut StandInState, request: &str) -> Option<String> {
    let kind = request.strip_prefix("<save_")?.split(' ').next()?;
    let key = format!(" {kind}Key=\"");
    let own = format!("{key}uuid:{}\"", state.saved.len());
    let entity = request
        .replace(&format!("save_{kind}"), &format!("{kind}Detail"))
        .replace(&format!("{key}\""), &own);
    let within = |from: &str, to| Some(entity.split_once(from)?.1.split_once(to)?.0.to_owned());
    let (own, name) = (within(&key, "\"")?, within("<name>", "</name>")?);
    state.saved.retain(|[_, key, ..]| *key != own);
    state
        .saved
        .push([kind.to_owned(), own, name, entity.clone()]);
    Some(entity)
}

/// A stored entity by its key, or a list of all with keys and names.
fn again(state: &StandInState, request: &str) -> String {
    if request.starts_with("<get_registeredInfo ") {
        let all = |kind: &str, info: &dyn Fn(&str, &str) -> String| -> String {
            let saved = state.saved.iter().filter(|[saved, ..]| saved == kind);
            saved.map(|[_, key, name, _]| info(key, name)).collect()
        };
        let businesses = all("business", &|key, name| {
            format!("<businessInfo businessKey='{key}'><name>{name}</name></businessInfo>")
        });
        let tmodels = all("tModel", &|key, name| {
            format!("<tModelInfo tModelKey='{key}'><name>{name}</name></tModelInfo>")
        });
        return format!(
            "<registeredInfo xmlns='NS'><businessInfos>{businesses}</businessInfos><tModelInfos>{tmodels}</tModelInfos></registeredInfo>"
        );
    }
    let is_wanted = |[kind, key, ..]: &&[String; 4]| {
        request.starts_with(&format!("<get_{kind}Detail "))
            && request.contains(&format!("<{kind}Key>{key}<"))
    };
    let services = state.saved.iter().filter(|[kind, ..]| kind == "service");
    let services: String = services
        .map(|[.., entity]| {
            let from = entity.find("<businessService ").unwrap();
            entity[from..].replace("</serviceDetail>", "")
        })
        .collect();
    let found = state.saved.iter().find(is_wanted);
    found.map_or_else(unknown_key, |[.., entity]| {
        let all = format!("<businessServices>{services}</businessServices></businessEntity>");
        entity.replace("</businessEntity>", &all)
    })
}

fn unknown_key() -> String {
    "<s:Fault><faultcode>s:Server</faultcode><faultstring>no such key</faultstring><detail><dispositionReport xmlns='NS'><result><errInfo errCode='E_invalidKeyPassed'>no</errInfo></result></dispositionReport></detail></s:Fault>".to_owned()
}

fn read(socket: TcpStream) -> (String, TcpStream) {
    let mut reader = BufReader::new(socket);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap_or_default();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap_or_default();
    let body = String::from_utf8(body).unwrap();
    let request = body.split_once("<soap:Body>").map_or("", |(_, rest)| rest);
    let request = request
        .split_once("</soap:Body>")
        .map_or("", |(request, _)| request);
    (request.to_owned(), reader.into_inner())
}

/// Writes until the client disconnects.
fn endless(mut socket: TcpStream) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'>";
    let mut goes_on = socket.write_all(head.as_bytes()).is_ok();
    while goes_on {
        goes_on = socket.write_all(&[b' '; 1 << 16]).is_ok();
    }
}

/// A broker that uses the registry and trusts "ada" and a category.
pub(super) fn broker(
    registry: &Registry,
    from: &[SocketAddr],
    types: &[&str],
) -> (Broker, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (broker_in(folder.path(), registry, from, types), folder)
}

/// The same, with a store in `folder` that may contain offers.
pub(super) fn broker_in(
    folder: &Path,
    registry: &Registry,
    from: &[SocketAddr],
    types: &[&str],
) -> Broker {
    let text = format!(
        "[uddi]\ninquiry = {:?}\nversion = {}\nbusinesses = [\"uddi:ada\"]\ncategory = {{ tmodel = \"uddi:c\", value = \"yes\" }}\nfrom = {:?}\ntypes = {types:?}\n",
        registry.url(),
        registry.version,
        from.iter()
            .map(|at| format!("http://{at}"))
            .collect::<Vec<_>>(),
    );
    let config = BrokerConfig::read(&text, folder).unwrap();
    let often = "50ms".parse().unwrap();
    let uddi = config.uddi.map(|uddi| Uddi {
        ask_every: often,
        fetch_every: often,
        ..uddi
    });
    let store = StoreUrl::Sqlite(folder.join("offers.db"));
    start(BrokerConfig {
        store,
        uddi,
        ..BrokerConfig::default()
    })
}

/// Waits until this holds.
pub(super) fn until(condition: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "never: {condition}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Names of the offers, cheapest first, each with the address of its service.
pub(super) fn offers(broker: &Broker) -> Vec<(String, String)> {
    let list = send(
        broker.addr,
        "GET",
        &format!("/v1/offers?type={KIND}"),
        &[],
        "",
    )
    .json();
    let offers = list["offers"].as_array().unwrap().iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    offers
        .map(|offer| (text(&offer["name"]), text(&offer["endpoint"])))
        .collect()
}

/// Value of the broker's metric with this name and labels.
pub(super) fn counted(broker: &Broker, name: &str) -> f64 {
    let text = send(broker.addr, "GET", "/metrics", &[], "").body;
    let start = format!("posthaste_broker_{name} ");
    let line = text.lines().find(|line| line.starts_with(&start));
    line.map_or(f64::NAN, |line| line[start.len()..].parse().unwrap())
}
