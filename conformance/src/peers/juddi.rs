//! The broker and Apache jUDDI: services registered in it, found in it with both versions, and known without it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::error::{Outcome, TaskError, check};
use crate::peers::generators::get;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// The type of all services here.
const TYPE: &str = "uddi:peer.test:inventory";

/// Time limit for every wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Common parts of the test.
struct Scene<'s> {
    site: &'s Site,
    folder: PathBuf,
    python: PathBuf,
    address: SocketAddr,
    /// Serves a document of offers.
    provider: Server,
}

/// Runs the whole test.
pub(crate) fn juddi(site: &Site) -> Outcome<()> {
    let scene = Scene::new(site)?;
    let registry = scene.registry()?;
    scene.refused()?;
    for outcome in ["saved", "there"] {
        let done = site.run("register", &mut scene.register("password"), 60)?;
        let lines: Vec<&str> = done.stdout.lines().skip(1).collect();
        let all = !lines.is_empty() && lines.iter().all(|line| line.ends_with(outcome));
        check(all, || format!("not all is {outcome}: {}", done.stdout))?;
    }
    let kind = scene.register_2()?;
    scene.client("registered")?;
    scene.client("fill")?;
    let brokers = [3, 2].map(|version| scene.broker(version));
    let [third, second] = brokers;
    let brokers = [third?, second?];
    for broker in &brokers {
        scene.finds(broker)?;
    }
    until("an offer of what was registered in version 2", || {
        Ok(scene.ask(&brokers[1], &kind).is_ok())
    })?;
    registry.running.signal(Signal::KILL)?;
    drop(registry);
    for broker in &brokers {
        until("a broker that misses the registry", || {
            Ok(get(site, broker, "/")?.contains("It does not answer"))
        })?;
        scene.answers(broker)?;
    }
    println!("  juddi: brokers know what they knew while it is gone");
    // It loses all data with its process.
    let _registry = scene.registry()?;
    for broker in &brokers {
        until("a broker that believes an empty registry", || {
            Ok(get(site, broker, &format!("/v1/offers?type={TYPE}"))?.contains("\"offers\":[]"))
        })?;
    }
    println!("  juddi: services that it stops naming are withdrawn");
    Ok(())
}

impl<'s> Scene<'s> {
    fn new(site: &'s Site) -> Outcome<Self> {
        let python = tools::debian(&site.checkout, "python3", "python3")?;
        let folder = site.checkout.peer_folder("juddi/provider")?;
        let sample = site.checkout.path("examples/offers.wsqos");
        tools::copy(&sample, &folder.join("offers.wsqos"))?;
        tools::write(&folder.join("password"), "count<ess>\n")?;
        tools::write(&folder.join("wrong"), "guessed\n")?;
        let provider = free_address()?;
        let mut serve = Command::new(&python);
        serve.args(["-m", "http.server", "--bind", "127.0.0.1", "--directory"]);
        serve.arg(&folder).arg(provider.port().to_string());
        Ok(Self {
            site,
            folder,
            python,
            address: free_address()?,
            provider: site.serve("provider", &mut serve, provider)?,
        })
    }

    /// Starts an empty jUDDI.
    fn registry(&self) -> Outcome<Server> {
        let checkout = &self.site.checkout;
        let jars = tools::jars(checkout, "juddi", "conformance/programs/juddi/pom.xml")?;
        let classes = checkout.peer_folder("juddi/classes")?;
        for file in ["juddiv3.xml", "juddi-users.xml"] {
            // jUDDI writes into the first of them.
            tools::copy(
                &checkout.path(&format!("conformance/programs/juddi/{file}")),
                &classes.join(file),
            )?;
        }
        let mut compile = Command::new("javac");
        compile.args(["-nowarn", "-cp", &format!("{}/*", jars.display()), "-d"]);
        compile
            .arg(&classes)
            .arg(checkout.path("conformance/programs/juddi/Registry.java"));
        self.site.run("javac", &mut compile, 120)?;
        let mut serve = Command::new("java");
        serve.args(["-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
        // It checks saved categories with a description whose schema has a DTD.
        serve.arg("-Djavax.xml.accessExternalDTD=all");
        serve.arg("-Dderby.stream.error.file=/dev/null");
        serve
            .arg("-cp")
            .arg(format!("{}:{}/*", classes.display(), jars.display()));
        serve
            .arg("Registry")
            .arg(self.address.port().to_string())
            .arg(&classes);
        let server = self.site.serve("juddi", &mut serve, self.address)?;
        until("jUDDI that is ready", || {
            Ok(server.running.output().lines().any(|line| line == "ready"))
        })?;
        Ok(server)
    }

    fn services(&self) -> String {
        format!("http://{}/juddiv3/services", self.address)
    }

    fn register(&self, password: &str) -> Command {
        let mut register = Command::new(&self.site.binary);
        register.args([
            "broker",
            "register",
            "--registry",
            &self.services(),
            "--user",
            "ada",
        ]);
        register
            .arg("--password-file")
            .arg(self.folder.join(password));
        register.args(["--business", "uddi:peer.test:ada=Ada", "--type", TYPE]);
        register.args(["--service", "uddi:peer.test:books=Books & more"]);
        register.args(["--endpoint", &self.endpoint()]);
        register.args(["--wsdl", &self.provider.url("/soap?wsdl")]);
        register.args(["--offers", &self.provider.url("/offers.wsqos")]);
        register
    }

    /// Registers another service of the same business by version 2, which identifies it by name. Returns the key that
    /// its type gets. jUDDI does not list businesses to their publishers, so the business is given by its key.
    fn register_2(&self) -> Outcome<String> {
        let mut register = Command::new(&self.site.binary);
        register.args(["broker", "register", "--uddi", "2", "--user", "ada"]);
        register.args(["--registry", &self.services(), "--password-file"]);
        register.arg(self.folder.join("password"));
        register.args(["--service", "Maps & more"]);
        register.args(["--business", "uddi:peer.test:ada=Ada"]);
        register.args(["--type", "An inventory of maps"]);
        register.args(["--endpoint", &self.endpoint()]);
        register.args(["--wsdl", &self.provider.url("/soap?wsdl")]);
        register.args(["--offers", &self.provider.url("/offers.wsqos")]);
        let mut keys = Vec::new();
        for outcomes in [["saved", "there", "saved"], ["there"; 3]] {
            let done = self.site.run("register-2", &mut register, 60)?;
            let lines = done.stdout.lines().skip(1);
            let (rows, outcome): (Vec<_>, Vec<_>) =
                lines.filter_map(|line| line.rsplit_once(',')).unzip();
            check(outcome == outcomes, || {
                format!("not {outcomes:?}: {}", done.stdout)
            })?;
            keys = rows.into_iter().map(str::to_owned).collect();
        }
        println!("  juddi: by version 2: {}", keys.join("; "));
        let key = keys[0].strip_prefix("tModel,").map(str::to_owned);
        key.ok_or_else(|| TaskError::Failed(format!("no type in {keys:?}")))
    }

    fn endpoint(&self) -> String {
        self.provider.url("/soap?a=1&b=2")
    }

    /// With a wrong password nothing is registered.
    fn refused(&self) -> Outcome<()> {
        match self.site.run("register", &mut self.register("wrong"), 60) {
            Err(TaskError::Failed(message)) if message.contains("E_unknownUser") => Ok(()),
            other => Err(TaskError::Failed(format!(
                "a wrong password is not refused: {:?}",
                other.map(|done| done.stdout)
            ))),
        }
    }

    fn client(&self, verb: &str) -> Outcome<()> {
        let mut client = Command::new(&self.python);
        client.arg(
            self.site
                .checkout
                .path("conformance/programs/juddi/client.py"),
        );
        let done = self
            .site
            .run(verb, client.args([&self.services(), verb]), 120)?;
        for line in done.stdout.lines() {
            println!("  juddi: {verb}: {line}");
        }
        Ok(())
    }

    /// Starts a broker that trusts ada by name and others by a category.
    fn broker(&self, version: u8) -> Outcome<Server> {
        let name = format!("broker-{version}");
        let path = if version == 3 { "inquiry" } else { "inquiryv2" };
        let configuration = format!(
            "store = \"sqlite:{name}.db\"\n[uddi]\nversion = {version}\ninquiry = \"{}/{path}\"\n\
             businesses = [\"uddi:peer.test:ada\"]\nfrom = [\"{}\", \"http://127.0.0.1:9\"]\nask_every = \"1s\"\n\
             category = {{ tmodel = \"uddi:uddi.org:categorization:general_keywords\", name = \"checked\", value = \"yes\" }}\n",
            self.services(),
            self.provider.url(""),
        );
        let file = self.site.logs.join(format!("{name}.toml"));
        tools::write(&file, configuration)?;
        let address = free_address()?;
        let mut serve = Command::new(&self.site.binary);
        serve.args(["broker", "--listen", &address.to_string(), "--config"]);
        self.site.serve(&name, serve.arg(&file), address)
    }

    /// From a client's first request to the answer, over all pages of the registry.
    fn finds(&self, broker: &Server) -> Outcome<()> {
        check(self.ask(broker, TYPE).is_err(), || {
            "an offer before the first request".to_owned()
        })?;
        until("an offer", || Ok(self.ask(broker, TYPE).is_ok()))?;
        self.answers(broker)?;
        let metrics = get(self.site, broker, "/metrics")?;
        // One of ada's, and every 23rd of 230.
        for line in ["{state=\"taken\"} 11.0", "{state=\"untrusted\"} 220.0"] {
            let line = format!("posthaste_broker_uddi_services{line}");
            check(metrics.contains(&line), || {
                format!("no {line} in {metrics}")
            })?;
        }
        Ok(())
    }

    fn answers(&self, broker: &Server) -> Outcome<()> {
        let answer = self.ask(broker, TYPE)?;
        let wanted = format!(", at {}", self.endpoint());
        check(answer.trim_end().ends_with(&wanted), || {
            format!("{answer:?} is not{wanted}")
        })
    }

    fn ask(&self, broker: &Server, kind: &str) -> Outcome<String> {
        let mut ask = Command::new(&self.site.binary);
        ask.args(["offers", "get", kind, "--broker", &broker.url("")]);
        Ok(self.site.run("ask", &mut ask, 30)?.stdout)
    }
}

/// Waits until this holds.
fn until(condition: &str, mut holds: impl FnMut() -> Outcome<bool>) -> Outcome<()> {
    let end = Instant::now() + PATIENCE;
    while !holds()? {
        check(Instant::now() < end, || format!("never: {condition}"))?;
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
