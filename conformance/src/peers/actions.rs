//! The GitHub action: actionlint checks its workflows, and its steps are run unchanged.

mod install;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::error::{Outcome, TaskError, check};
use crate::process::Running;
use crate::site::Site;
use crate::tools::{self, copy, first_in_path, write};

const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";

/// The page with an example of a workflow, and the name of the action in it.
const PAGE: &str = "docs/guides/ci-threshold.md";
const NAMED: &str = "OWNER/posthaste@v0.1.0";

/// The workflows are valid, their inputs are the action's, only posthaste is installed, and a bound decides the result of
/// the step that loads a service.
pub(crate) fn action(site: &Site) -> Outcome<()> {
    let program = tools::go(&site.checkout, "actionlint", ACTIONLINT)?;
    let lint = |project: &Path| {
        let mut lint = Command::new(&program);
        // The result must not depend on an installed shellcheck.
        lint.args(["-no-color", "-shellcheck=", "-pyflakes="])
            .current_dir(project);
        site.run("actionlint", &mut lint, 60)
    };
    lint(site.checkout.root())?;
    lint(&example(site)?)?;
    install::installs(site)?;
    let shop = site.bookshop(&[])?;
    let url = shop.url("/json/3727677562");
    for (bounds, code) in [("p99<20s\nerrors<1%\n", 0), ("errors<1%\n  p99<1ns\n", 1)] {
        let ended = load(site, &url, bounds)?;
        check(ended == Some(code), || {
            format!("with the bounds {bounds:?} the action's step ended with {ended:?}")
        })?;
    }
    Ok(())
}

/// A project with the page's workflow and this checkout's action, so that actionlint compares their inputs.
fn example(site: &Site) -> Outcome<std::path::PathBuf> {
    let page = site.checkout.path(PAGE);
    let text = std::fs::read_to_string(&page).map_err(|error| TaskError::at(&page, error))?;
    let workflow = text
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .find(|block| block.contains(NAMED))
        .ok_or_else(|| TaskError::at(&page, format!("has no workflow that uses {NAMED}")))?;
    let workflow = workflow.replace(NAMED, "./");
    let project = site.checkout.peer_folder("actions")?;
    let workflows = site.checkout.peer_folder("actions/.github/workflows")?;
    // actionlint takes the nearest folder with a repository as the project.
    site.checkout.peer_folder("actions/.git")?;
    write(&workflows.join("example.yml"), workflow)?;
    copy(
        &site.checkout.path("action.yml"),
        &project.join("action.yml"),
    )?;
    Ok(project)
}

/// Exit code of the step that loads a service, with the variables from action.yml.
fn load(site: &Site, url: &str, bounds: &str) -> Outcome<Option<i32>> {
    let summary = site.logs.join("summary.md");
    let programs = site.binary.parent().unwrap_or(Path::new(""));
    let mut step = Command::new(tools::debian(&site.checkout, "bash", "bash")?);
    step.arg(site.checkout.path("packaging/action/load.sh"))
        .env("PATH", first_in_path(programs)?)
        .env("URL", url)
        .env("RATE", "200/s")
        .env("DURATION", "2s")
        .env("ASSERT", bounds)
        .env("ARGS", "--allow-late --timeout 10s")
        .env("GITHUB_STEP_SUMMARY", &summary);
    let ended = Running::start("step", &mut step, &site.logs)?.finish(Duration::from_secs(60))?;
    let text = std::fs::read_to_string(&summary).map_err(|error| TaskError::at(&summary, error))?;
    check(text.contains("errors"), || {
        format!(
            "the summary of the job has no row for the bound:\n{text}\n{}",
            ended.stderr
        )
    })?;
    Ok(ended.code)
}
