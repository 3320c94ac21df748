//! CPU cost of unary gRPC calls through the gateway compared with Envoy: one worker on its own core for each, the same
//! origin and calls, driven by h2load and by ghz.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::bench::pinned::{micros, number};
use crate::bench::proxies::{fill, nginx, owned};
use crate::bench::{Bench, Figure, Measure, in_turns, pair_ratio};
use crate::cores::{generator, real_time, server};
use crate::error::{Outcome, TaskError, check};
use crate::site::{Server, free_address};
use crate::tools;

/// The method, as a path.
const METHOD: &str = "/helloworld.Greeter/SayHello";

/// The service in the interface language of Protocol Buffers, for ghz.
const PROTO: &str = "syntax = \"proto3\";\npackage helloworld;\n\
    service Greeter { rpc SayHello (HelloRequest) returns (HelloReply); }\n\
    message HelloRequest { string name = 1; }\nmessage HelloReply { string message = 1; }\n";

/// ghz, as a Go module.
pub(super) const GHZ: &str = "github.com/bojand/ghz/cmd/ghz@v0.121.0";

/// Highest permitted ratio to Envoy's CPU time.
const BAR: f64 = 0.8;

/// CPU time per unary call, beside Envoy.
pub(crate) fn grpc(bench: &Bench) -> Outcome<Vec<Figure>> {
    let folder = bench.site.checkout.peer_folder("grpc-origin")?;
    let origin = origin(bench)?;
    let ours = start(bench, &origin, false)?;
    let envoy = start(bench, &origin, true)?;
    let clients = Clients {
        h2load: tools::debian(&bench.site.checkout, "h2load", "nghttp2-client")?,
        ghz: tools::go(&bench.site.checkout, "ghz", GHZ)?,
        folder,
    };
    let mut figures = Vec::new();
    for client in [Clients::h2load, Clients::ghz] {
        let (name, _) = client(&clients, bench, &ours)?;
        let cost = |server: &Server| {
            let before = server.running.cpu()?;
            let (_, calls) = client(&clients, bench, server)?;
            Ok(micros(server.running.cpu()? - before) / number(calls))
        };
        let turns = bench.or_quick(7, 2);
        let [ours, theirs] = in_turns(turns, [&mut || cost(&ours), &mut || cost(&envoy)])?;
        let ratio = pair_ratio(&ours, &theirs);
        figures.push(
            Figure::new(
                format!("CPU per unary gRPC call, driven by {name}"),
                Measure::median(&ours, "µs"),
            )
            .paired("Envoy", Measure::median(&theirs, "µs"), ratio)
            .target(format!("at most {BAR:.2} of Envoy's"), ratio <= BAR),
        );
    }
    Ok(figures)
}

/// The foreign clients, and the folder with their files.
struct Clients {
    h2load: PathBuf,
    ghz: PathBuf,
    folder: PathBuf,
}

impl Clients {
    /// Ten connections with ten calls at a time each. Returns the client's name and the number of its calls.
    fn h2load(&self, bench: &Bench, server: &Server) -> Outcome<(&'static str, u64)> {
        let count = bench.or_quick("60000", "5000");
        let [wrapper, core, cpu] = generator() else {
            return Err(TaskError::Failed("no way to pin a client".into()));
        };
        let mut command = Command::new(wrapper);
        command
            .args([core, cpu])
            .arg(&self.h2load)
            .args(["-n", count, "-c", "10", "-m", "10", "-H", "te: trailers"])
            .args(["-H", "content-type: application/grpc", "-d"])
            .arg(self.folder.join("request.bin"))
            .arg(server.url(METHOD));
        let output = bench.site.run("h2load", &mut command, 120)?.stdout;
        check(output.contains(&format!("{count} succeeded")), || {
            format!("h2load: not every call succeeded:\n{output}")
        })?;
        Ok(("h2load", count.parse().expect("a number")))
    }

    /// Ten connections with fifty workers.
    fn ghz(&self, bench: &Bench, server: &Server) -> Outcome<(&'static str, u64)> {
        let count = bench.or_quick("20000", "2000");
        let [wrapper, core, cpu] = generator() else {
            return Err(TaskError::Failed("no way to pin a client".into()));
        };
        let mut command = Command::new(wrapper);
        command
            .args([core, cpu])
            .arg(&self.ghz)
            .args(["--insecure", "--call", "helloworld.Greeter.SayHello"])
            .arg("--proto")
            .arg(self.folder.join("greeter.proto"))
            .args(["--data", "{\"name\":\"world\"}", "--format", "json"])
            .args(["--connections", "10", "--concurrency", "50"])
            .args(["--total", count])
            .arg(server.address.to_string());
        let output = bench.site.run("ghz", &mut command, 120)?.stdout;
        let report: Value = serde_json::from_str(&output)
            .map_err(|error| TaskError::Failed(format!("ghz: {error} in:\n{output}")))?;
        let ok = report["statusCodeDistribution"]["OK"].as_u64().unwrap_or(0);
        check(ok.to_string() == count, || {
            format!(
                "ghz: {ok} of {count} calls are OK: {}",
                report["errorDistribution"]
            )
        })?;
        Ok(("ghz", ok))
    }
}

/// nginx with a fixed reply message, on the generator's core.
fn origin(bench: &Bench) -> Outcome<Server> {
    let site = &bench.site;
    let folder = site.checkout.peer_folder("grpc-origin")?;
    let service = folder.join("pages/helloworld.Greeter");
    std::fs::create_dir_all(&service).map_err(|error| TaskError::at(&service, error))?;
    tools::write(&service.join("SayHello"), message("hello world"))?;
    tools::write(&folder.join("request.bin"), message("world"))?;
    tools::write(&folder.join("greeter.proto"), PROTO)?;
    let listen = free_address()?;
    let values = [("listen", listen.to_string())];
    let file = fill(site, "grpc-origin.conf", values.into_iter(), &folder)?;
    let own = nginx(site, &folder, &file)?;
    let line: Vec<String> = owned(real_time())
        .chain(owned(generator()))
        .chain(own)
        .collect();
    let mut command = Command::new(&line[0]);
    let command = command.args(&line[1..]).current_dir(&folder);
    site.serve("grpc-origin", command, listen)
}

/// A message with one text as field 1 (Protocol Buffers), behind the prefix of gRPC: no compression, and its length.
fn message(text: &str) -> Vec<u8> {
    let length = |length: usize| u8::try_from(length).expect("a short text");
    let mut message = vec![0, 0, 0, 0, length(text.len() + 2)];
    message.extend([0x0a, length(text.len())]);
    message.extend(text.as_bytes());
    message
}

/// Starts the gateway or Envoy in front of `origin`, on the server's core.
fn start(bench: &Bench, origin: &Server, is_envoy: bool) -> Outcome<Server> {
    let site = &bench.site;
    let listen = free_address()?;
    let (name, configuration) = if is_envoy {
        ("grpc-envoy", "grpc-envoy.yaml")
    } else {
        ("grpc-gateway", "grpc-gateway.toml")
    };
    let folder = site.checkout.peer_folder(name)?;
    let values = [
        ("listen", listen.to_string()),
        ("port", listen.port().to_string()),
        ("origin", origin.address.to_string()),
        ("origin_port", origin.address.port().to_string()),
    ];
    let file = fill(site, configuration, values.into_iter(), &folder)?;
    let file = file.display().to_string();
    let own: Vec<String> = if is_envoy {
        let requirements = "conformance/programs/proxies/requirements.txt";
        let python = tools::python(&site.checkout, "envoy", requirements)?;
        let program = python.with_file_name("envoy").display().to_string();
        let options = ["--concurrency", "1", "-l", "error", "-c", &file];
        std::iter::once(program).chain(owned(&options)).collect()
    } else {
        let program = site.binary.display().to_string();
        let options = ["gateway", "--config", &file];
        std::iter::once(program).chain(owned(&options)).collect()
    };
    let line: Vec<String> = owned(server()).chain(own).collect();
    let mut command = Command::new(&line[0]);
    let command = command.args(&line[1..]).current_dir(&folder);
    site.serve(name, command, listen)
}
