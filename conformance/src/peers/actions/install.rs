//! The step of the action that installs posthaste, with wheels whose command is a script.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::error::{Outcome, TaskError, check};
use crate::process::Running;
use crate::site::{Site, free_address};
use crate::tools::{self, first_in_path, write};

/// File name of the wheel that `conformance/programs/actions/wheel.py` makes.
const WHEEL: &str = "posthaste_http-0.1.0-py3-none-any.whl";

/// Answer of another program named posthaste.
const STRANGER: &str = "#!/bin/sh\necho 'usage: posthaste [-h]'\n";

/// The inputs of one run of the step.
struct Inputs<'a> {
    package: &'a str,
    sha256: &'a str,
    path: &'a OsString,
}

/// The step installs a file or a URL with the right SHA-256, refuses everything else, and accepts only posthaste.
pub(super) fn installs(site: &Site) -> Outcome<()> {
    let python = tools::debian(&site.checkout, "python3", "python3-venv")?;
    tools::debian(&site.checkout, "curl", "curl")?;
    let mut has_venv = Command::new(&python);
    has_venv.args(["-c", "import ensurepip"]);
    if site.run("ensurepip", &mut has_venv, 20).is_err() {
        tools::install(&site.checkout, "python3-venv")?;
    }
    let ours = format!("#!/bin/sh\nexec '{}' \"$@\"\n", site.binary.display());
    let (good, bad) = (wheel(site, "ours", &ours)?, wheel(site, "other", STRANGER)?);
    let folder = site.checkout.peer_folder("actions/ours")?;
    let address = free_address()?;
    let mut server = Command::new(&python);
    server
        .args(["-m", "http.server", "--bind", "127.0.0.1", "--directory"])
        .arg(folder)
        .arg(address.port().to_string());
    let _server = site.serve("wheels", &mut server, address)?;
    let url = format!("http://{address}/{WHEEL}");
    let sum = sha256(site, Path::new(&good))?;

    let programs = site.checkout.peer_folder("actions/programs")?;
    let stranger = programs.join("posthaste");
    write(&stranger, STRANGER)?;
    executable(&stranger)?;
    let strange = first_in_path(&programs)?;
    let found = first_in_path(site.binary.parent().unwrap_or(Path::new("")))?;
    let nothing = OsString::from(site.checkout.peer_folder("actions/nothing")?);
    for (package, sha256, path, refusal) in [
        (good.as_str(), "", &strange, None),
        (&good, &sum, &strange, None),
        (&good, "00", &strange, Some("the SHA-256 of")),
        (&bad, "", &found, Some("is another program")),
        (&url, &sum, &strange, None),
        (&url, "00", &strange, Some("the SHA-256 of")),
        (&url, "", &strange, Some("with the input sha256")),
        ("posthaste-http", "", &found, Some("names of a registry")),
        ("absent.whl", "", &found, Some("there is no file")),
        ("", "", &found, None),
        ("", "", &strange, Some("is another program")),
        ("", "", &nothing, Some("with the input package")),
    ] {
        let inputs = Inputs {
            package,
            sha256,
            path,
        };
        step(site, &inputs, refusal)?;
    }
    Ok(())
}

/// Runs the step. Without a refusal it succeeds, and later steps find the command of a given package.
fn step(site: &Site, inputs: &Inputs<'_>, refusal: Option<&str>) -> Outcome<()> {
    let Inputs {
        package,
        sha256,
        path,
    } = inputs;
    let temporary = site.checkout.peer_folder("actions/temporary")?;
    let added = temporary.join("path");
    write(&added, "")?;
    let mut step = Command::new(tools::debian(&site.checkout, "bash", "bash")?);
    step.arg(site.checkout.path("packaging/action/install.sh"))
        .env("PATH", path)
        .env("RUNNER_TEMP", &temporary)
        .env("GITHUB_PATH", &added)
        .env("PACKAGE", package)
        .env("SHA256", sha256);
    let ended =
        Running::start("install", &mut step, &site.logs)?.finish(Duration::from_secs(120))?;
    let added = std::fs::read_to_string(&added).map_err(|error| TaskError::at(&added, error))?;
    let is_right = match refusal {
        None => ended.code == Some(0) && added.is_empty() == package.is_empty(),
        Some(message) => {
            ended.code == Some(2)
                && added.is_empty()
                && ended.stdout.starts_with("::error::")
                && ended.stdout.contains(message)
        }
    };
    check(is_right, || {
        format!(
            "with package {package:?}, sha256 {sha256:?} and PATH {path:?} the action's step ended with {:?}:\n{}{}",
            ended.code, ended.stdout, ended.stderr
        )
    })
}

/// Makes a wheel whose command is this script, and returns its path.
fn wheel(site: &Site, name: &str, script: &str) -> Outcome<String> {
    let folder = site.checkout.peer_folder(&format!("actions/{name}"))?;
    let mut make = Command::new(tools::debian(&site.checkout, "python3", "python3")?);
    make.arg(site.checkout.path("conformance/programs/actions/wheel.py"))
        .arg(&folder)
        .arg(script);
    site.run("wheel", &mut make, 20)?;
    Ok(folder.join(WHEEL).display().to_string())
}

fn sha256(site: &Site, file: &Path) -> Outcome<String> {
    let mut sum = Command::new("sha256sum");
    sum.arg(file);
    let output = site.run("sha256sum", &mut sum, 20)?.stdout;
    Ok(output.split(' ').next().unwrap_or_default().to_owned())
}

fn executable(file: &Path) -> Outcome<()> {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
        .map_err(|error| TaskError::at(file, error))
}
