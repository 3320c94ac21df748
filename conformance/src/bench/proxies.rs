//! CPU cost of the gateway compared with other proxies: CPU per request, one worker on its own core for each, with the
//! same origin, requests and replies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::pinned::number;
use crate::bench::{Bench, Figure, Measure};
use crate::cores::{generator, real_time, server};
use crate::error::{Outcome, TaskError, check};
use crate::peers::generators::first_isbn;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// A proxy.
#[derive(Clone, Copy)]
pub(super) enum BenchProxy {
    Gateway,
    /// The gateway without a cache, so that repeated replies are compressed each time.
    Anew,
    /// The gateway, which marks replies as requests ask.
    Marking,
    Haproxy,
    Nginx,
    Envoy,
}

/// Replies of the bookshop, of about 3.4 KB and 16 KB.
const OPERATIONS: [(&str, &str); 2] = [("BookLite", "3.4 KB"), ("BookHeavy1", "16 KB")];

/// CPU per request of the gateway compared with HAProxy, nginx and Envoy.
pub(crate) fn proxies(bench: &Bench) -> Outcome<Vec<Figure>> {
    let site = &bench.site;
    let origin = origin(bench)?;
    let mut figures = Vec::new();

    let all = [
        BenchProxy::Gateway,
        BenchProxy::Haproxy,
        BenchProxy::Nginx,
        BenchProxy::Envoy,
    ];
    let plain = StartedProxies::all(site, &origin, all, false)?;
    let [ours, haproxy, nginx, envoy] = costs(bench, &plain, "BookLite")?;
    let bar = ours.value <= 1.15 * haproxy.value && ours.value <= 0.6 * envoy.value;
    figures.push(
        Figure::new(
            "CPU per request, plain, 3.4 KB, header scanned, decided",
            ours,
        )
        .peer("HAProxy", haproxy)
        .peer("nginx", nginx)
        .peer("Envoy", envoy)
        .target("at most 1.15 of HAProxy's, 0.60 of Envoy's", bar),
    );
    drop(plain);

    for ((operation, size), bar) in OPERATIONS.into_iter().zip([1.0, 0.7]) {
        let packing = [
            BenchProxy::Gateway,
            BenchProxy::Anew,
            BenchProxy::Nginx,
            BenchProxy::Haproxy,
        ];
        let stands = StartedProxies::all(site, &origin, packing, true)?;
        let [again, anew, nginx, haproxy] = costs(bench, &stands, operation)?;
        let bytes = stands.iter().map(|stand| stand.bytes(bench, operation));
        let bytes = bytes.collect::<Outcome<Vec<u64>>>()?;
        let ours = [(again, "a reply that repeats"), (anew, "each compressed")];
        for ((ours, which), length) in ours.into_iter().zip(&bytes) {
            let holds = ours.value <= bar * nginx.value;
            let peers = |figure: Figure, nginx: &Measure, haproxy: &Measure| {
                figure
                    .peer("nginx (level 1)", nginx.clone())
                    .peer("HAProxy", haproxy.clone())
            };
            let cost = Figure::new(format!("CPU per request, gzip, {size}, {which}"), ours);
            let length_of = |length: u64| Measure::new(number(length), "B");
            let name = format!("bytes of it, gzip, {size}, {which}");
            let content = Figure::new(name, length_of(*length));
            figures.extend([
                peers(cost, &nginx, &haproxy).target(format!("at most {bar:.2} of nginx's"), holds),
                peers(content, &length_of(bytes[2]), &length_of(bytes[3]))
                    .target("no more than nginx's", *length <= bytes[2]),
            ]);
        }
    }
    Ok(figures)
}

/// A running proxy.
struct StartedProxies {
    server: Server,
    packs: bool,
}

impl StartedProxies {
    fn all<const N: usize>(
        site: &Site,
        origin: &Server,
        proxies: [BenchProxy; N],
        packs: bool,
    ) -> Outcome<[Self; N]> {
        let start = |proxy: BenchProxy| {
            let server = proxy.start(site, origin, packs)?;
            Ok(Self { server, packs })
        };
        let stands: Vec<Self> = proxies.into_iter().map(start).collect::<Outcome<_>>()?;
        Ok(stands.try_into().ok().expect("one for each proxy"))
    }

    /// Microseconds of CPU time per request, in a closed loop of 50 clients.
    fn cost(&self, bench: &Bench, operation: &str) -> Outcome<f64> {
        let body = request(bench, operation)?.display().to_string();
        let mut options = calls(&body, bench.or_quick("3s", "1s"));
        if self.packs {
            options.extend(["--header", "Accept-Encoding: gzip"]);
        }
        let url = self.server.url(&format!("/{operation}.xml"));
        Ok(bench.server_cost(&self.server, &options, &url)?.0)
    }

    /// Bytes of a reply's content.
    fn bytes(&self, bench: &Bench, operation: &str) -> Outcome<u64> {
        let curl = tools::debian(&bench.site.checkout, "curl", "curl")?;
        let url = self.server.url(&format!("/{operation}.xml"));
        let mut command = Command::new(curl);
        command
            .args(["-sS", "--fail", "-o", "/dev/null", "-w", "%{size_download}"])
            .args([
                "-H",
                "Accept-Encoding: gzip",
                "-H",
                "Content-Type: text/xml",
            ])
            .arg("--data-binary")
            .arg(format!("@{}", request(bench, operation)?.display()))
            .arg(url);
        let output = bench.site.run("curl", &mut command, 20)?.stdout;
        output
            .trim()
            .parse()
            .map_err(|_| TaskError::Failed(format!("curl reports {output:?}")))
    }
}

/// The cost of each proxy, measured in turns.
fn costs<const N: usize>(
    bench: &Bench,
    stands: &[StartedProxies; N],
    operation: &str,
) -> Outcome<[Measure; N]> {
    let mut values = [const { Vec::new() }; N];
    for _ in 0..bench.or_quick(7, 2) {
        for (stand, values) in stands.iter().zip(&mut values) {
            values.push(stand.cost(bench, operation)?);
        }
    }
    Ok(values.map(|values| Measure::median(&values, "µs")))
}

impl BenchProxy {
    /// Starts it in front of `origin`, on the server's core.
    pub(super) fn start(self, site: &Site, origin: &Server, packs: bool) -> Outcome<Server> {
        let listen = free_address()?;
        let folder = site.checkout.peer_folder(self.name())?;
        let common = [
            ("listen", listen.to_string()),
            ("port", listen.port().to_string()),
            ("origin", origin.address.to_string()),
            ("origin_port", origin.address.port().to_string()),
        ];
        let own = self.packing(packs).into_iter().chain(self.own());
        let values = common.into_iter().chain(own);
        let file = fill(site, self.configuration(), values, &folder)?;
        let line: Vec<String> = owned(server())
            .chain(self.command_line(site, &folder, &file)?)
            .collect();
        let mut command = Command::new(&line[0]);
        let command = command.args(&line[1..]).current_dir(&folder);
        site.serve(self.name(), command, listen)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Anew => "gateway-without-cache",
            Self::Marking => "gateway-that-marks",
            Self::Haproxy => "haproxy",
            Self::Nginx => "nginx-proxy",
            Self::Envoy => "envoy",
        }
    }

    /// Its file in `conformance/programs/proxies`.
    const fn configuration(self) -> &'static str {
        match self {
            Self::Gateway | Self::Anew | Self::Marking => "gateway.toml",
            Self::Haproxy => "haproxy.cfg",
            Self::Nginx => "nginx.conf",
            Self::Envoy => "envoy.yaml",
        }
    }

    /// The setting for compression in its file.
    fn packing(self, packs: bool) -> Option<(&'static str, String)> {
        let haproxy = "compression algo gzip\n  compression type text/xml";
        let (key, on, off) = match self {
            Self::Gateway | Self::Anew | Self::Marking => ("policy", "always", "threshold"),
            Self::Haproxy => ("compression", haproxy, ""),
            Self::Nginx => ("gzip", "on", "off"),
            Self::Envoy => return None,
        };
        Some((key, if packs { on } else { off }.to_owned()))
    }

    /// Further settings of the gateway. The files of other proxies do not use them.
    fn own(self) -> [(&'static str, String); 2] {
        let (marking, cache) = match self {
            Self::Marking => ("asked", "16MB"),
            Self::Anew => ("never", "0B"),
            _ => ("never", "16MB"),
        };
        [("marking", marking.to_owned()), ("cache", cache.to_owned())]
    }

    /// The command that runs it with `file`.
    fn command_line(self, site: &Site, folder: &Path, file: &Path) -> Outcome<Vec<String>> {
        let checkout = &site.checkout;
        let (program, options): (PathBuf, &[&str]) = match self {
            Self::Gateway | Self::Anew | Self::Marking => {
                (site.binary.clone(), &["gateway", "--config"])
            }
            Self::Haproxy => (
                tools::debian(checkout, "haproxy", "haproxy")?,
                &["-db", "-f"],
            ),
            Self::Nginx => return nginx(site, folder, file),
            Self::Envoy => {
                let requirements = "conformance/programs/proxies/requirements.txt";
                let python = tools::python(checkout, "envoy", requirements)?;
                let quietly = &["--concurrency", "1", "-l", "error", "-c"];
                (python.with_file_name("envoy"), quietly)
            }
        };
        let own = [program.display().to_string()];
        let file = [file.display().to_string()];
        Ok(own.into_iter().chain(owned(options)).chain(file).collect())
    }
}

pub(super) fn owned<'a>(parts: &'a [&str]) -> impl Iterator<Item = String> + use<'a> {
    parts.iter().map(ToString::to_string)
}

/// A file of `conformance/programs/proxies` in `folder`, with each `{{key}}` replaced by its value.
pub(super) fn fill(
    site: &Site,
    name: &str,
    values: impl Iterator<Item = (&'static str, String)>,
    folder: &Path,
) -> Outcome<PathBuf> {
    let from = site
        .checkout
        .path(&format!("conformance/programs/proxies/{name}"));
    let mut text = fs::read_to_string(&from).map_err(|error| TaskError::at(&from, error))?;
    for (key, value) in values {
        text = text.replace(&format!("{{{{{key}}}}}"), &value);
    }
    let to = folder.join(name);
    tools::write(&to, text)?;
    Ok(to)
}

pub(super) fn nginx(site: &Site, folder: &Path, file: &Path) -> Outcome<Vec<String>> {
    let program = tools::debian(&site.checkout, "nginx", "nginx-light")?;
    let parts = [
        program.as_path(),
        "-p".as_ref(),
        folder,
        "-c".as_ref(),
        file,
    ];
    Ok(parts
        .iter()
        .map(|word| word.display().to_string())
        .collect())
}

/// nginx with the bookshop's replies as files, on the generator's core.
pub(super) fn origin(bench: &Bench) -> Outcome<Server> {
    let site = &bench.site;
    let folder = site.checkout.peer_folder("origin")?;
    let pages = folder.join("pages");
    fs::create_dir_all(&pages).map_err(|error| TaskError::at(&pages, error))?;
    let shop = site.bookshop(&[])?;
    let isbn = first_isbn(site, &shop)?;
    let curl = tools::debian(&site.checkout, "curl", "curl")?;
    for (operation, _) in OPERATIONS {
        let envelope = format!(
            "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>\
             <{operation} xmlns=\"urn:posthaste:bookshop\"><isbn>{isbn}</isbn></{operation}>\
             </s:Body></s:Envelope>"
        );
        let file = request(bench, operation)?;
        tools::write(&file, envelope)?;
        let mut command = Command::new(&curl);
        command
            .args([
                "-sS",
                "--fail",
                "-H",
                "Content-Type: text/xml",
                "-H",
                "SOAPAction: \"\"",
            ])
            .arg("--data-binary")
            .arg(format!("@{}", file.display()))
            .arg("-o")
            .arg(pages.join(format!("{operation}.xml")))
            .arg(shop.url("/soap"));
        site.run("curl", &mut command, 20)?;
    }
    let listen = free_address()?;
    let values = [("listen", listen.to_string())];
    let file = fill(site, "origin.conf", values.into_iter(), &folder)?;
    let line = nginx(site, &folder, &file)?;
    // Real-time priority, so that the generator on the same core does not delay it: its time slices are milliseconds.
    // At 21,000/s that lowered p99 from 4.8 to 1.4 ms for HAProxy and from 6.1 to 2.3 ms for the gateway.
    let line: Vec<String> = self::owned(real_time())
        .chain(self::owned(generator()))
        .chain(line)
        .collect();
    let mut command = Command::new(&line[0]);
    let origin = site.serve(
        "origin",
        command.args(&line[1..]).current_dir(&folder),
        listen,
    )?;
    check(pages.join("BookLite.xml").exists(), || {
        "the origin has no page".into()
    })?;
    Ok(origin)
}

/// Options of `posthaste load`: fifty clients that send this body for this time.
pub(super) fn calls<'a>(body: &'a str, length: &'a str) -> Vec<&'a str> {
    [vec!["--clients", "50"], posts(body, length)].concat()
}

/// The same without the clients.
pub(super) fn posts<'a>(body: &'a str, length: &'a str) -> Vec<&'a str> {
    vec![
        "--duration",
        length,
        "--method",
        "POST",
        "--body",
        body,
        "--header",
        "Content-Type: text/xml",
        "--header",
        "SOAPAction: \"\"",
    ]
}

/// The envelope of the request for a book.
pub(super) fn request(bench: &Bench, operation: &str) -> Outcome<PathBuf> {
    let folder = bench.site.checkout.peer_folder("origin")?;
    Ok(folder.join(format!("{operation}-request.xml")))
}
