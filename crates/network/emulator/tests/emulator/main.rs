//! The emulator between two real kernels, judged by their counters and by the received data.
//!
//! Needs root or user namespaces. If a kernel forbids both, every test is reported as ignored, and the reason is
//! printed. The harness is not the usual one, since a user namespace must be entered before the first thread starts.

mod author;
mod control;
mod duplicate_acks;
mod echo;
mod ecn;
mod hosts;
mod inside;
mod links;
mod mtu;
mod outside;
mod positions;
mod record;
mod router;
mod stacks;
mod strange;
mod traces;

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use posthaste_emulator::namespace;

/// An ordinary user: "nobody" on all systems.
const NOBODY: u32 = 65_534;

fn main() -> ExitCode {
    let allowed = namespace::enter();
    let mut trials = trials();
    if allowed == Ok(()) && rustix::process::geteuid().is_root() {
        trials.push(trial("the_same_as_an_ordinary_user", as_nobody));
    }
    if let Err(error) = &allowed {
        assert!(!in_ci(), "{error}");
        eprintln!("skipped: {error}");
        for trial in &mut trials {
            let skipped = std::mem::replace(trial, Trial::test("", || Ok(())));
            *trial = skipped.with_ignored_flag(true);
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// All tests except those that only root can run.
fn trials() -> Vec<Trial> {
    let mut trials = packets();
    trials.extend(hosts_and_links());
    trials.extend(middleboxes());
    trials
}

/// Tests of single packets, and of traces and records of them.
fn packets() -> Vec<Trial> {
    vec![
        trial("tcp_passes_in_both_versions", echo::tcp),
        trial("udp_passes_in_both_versions", echo::udp),
        trial("ping_passes_in_both_versions", echo::ping),
        trial("fragments_pass_together", echo::fragments),
        trial("groups_are_refused_by_name", echo::multicast),
        trial("frames_that_are_no_packets_are_refused", strange::frames),
        trial("jumbo_frames_are_refused", strange::jumbo),
        trial(
            "packets_left_to_a_device_to_finish_are_refused",
            strange::offloads,
        ),
        trial(
            "exactly_the_eighth_packet_of_each_connection",
            positions::drop_8,
        ),
        trial(
            "a_port_that_is_used_again_has_another_connection",
            positions::same_ports,
        ),
        trial("a_record_replays_to_the_same_decisions", record::replays),
        trial("a_running_link_changes_and_replays", control::changes),
        trial("kernels_count_the_marks_of_queues", ecn::marked),
        trial("kernels_discover_the_path_mtu", mtu::discovered),
        trial("a_black_hole_stalls_a_transfer", mtu::black_hole),
        trial("nothing_is_marked_without_ecn", ecn::not_negotiated),
        trial(
            "a_lossless_transaction_takes_what_is_computed",
            author::lossless,
        ),
        trial("a_trace_has_every_packet", traces::every_packet),
        trial(
            "why_segments_came_again_is_what_the_kernel_counts",
            traces::why_again,
        ),
        needing_tshark(trial("a_capture_is_read_by_tshark", traces::read_by_tshark)),
        trial(
            "response_times_are_what_the_client_saw",
            traces::response_times,
        ),
    ]
}

/// Tests of links and of the kernels at their ends.
fn hosts_and_links() -> Vec<Trial> {
    vec![
        trial("connections_have_links_of_their_own", links::own),
        trial("connections_share_a_link_when_asked", links::shared),
        trial("classes_get_what_they_are_guaranteed", router::shares),
        trial("the_edge_marks_by_connection", router::edge),
        trial(
            "a_port_leads_outside_in_both_versions",
            outside::both_protocols,
        ),
        trial("networks_can_be_moved", outside::moved_networks),
        trial("cubic_by_route_whatever_the_machine_has", hosts::cubic),
        trial("routes_set_the_initial_window", hosts::initial_window),
        trial("routes_set_the_smallest_timeout", hosts::smallest_timeout),
        trial("settings_are_kept_or_refused", hosts::sysctls),
        trial("commands_are_inside_and_unprivileged", hosts::commands),
        trial("work_that_panics_does_not_end_a_host", hosts::panics),
        trial("a_late_emulator_says_so", links::late),
    ]
}

/// Tests of the agent and of the TCP profiles between link and host.
fn middleboxes() -> Vec<Trial> {
    vec![
        trial(
            "duplicates_do_not_help_one_late_loss",
            duplicate_acks::one_loss,
        ),
        trial(
            "duplicates_help_two_late_losses",
            duplicate_acks::two_losses,
        ),
        trial("duplicates_change_nothing_with_sack", duplicate_acks::sack),
        trial(
            "profiles_carry_bytes_both_ways_through_hell",
            stacks::both_ways,
        ),
        trial("profiles_keep_connections_alive", stacks::keep_alive),
        trial("profiles_serve_many_short_ones", stacks::short_ones),
        trial(
            "profiles_pass_on_refusals_and_resets",
            stacks::refusals_and_resets,
        ),
    ]
}

/// True if no test may be skipped.
fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// Ignored if tshark is missing and may be. `cargo xtask test` installs it first.
fn needing_tshark(trial: Trial) -> Trial {
    let is_ignored = !in_ci() && !traces::has_tshark();
    if is_ignored {
        eprintln!(
            "ignored: {} needs tshark; cargo xtask test installs it",
            trial.name()
        );
    }
    trial.with_ignored_flag(is_ignored)
}

fn trial(name: &'static str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok::<(), Failed>(())
    })
}

/// Runs the shorter of these tests again, in a process without any privilege.
fn as_nobody() {
    let mut again = Command::new("/proc/self/exe");
    again.uid(NOBODY).gid(NOBODY).arg("passes");
    let output = again.output().expect("this program starts");
    let listed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{listed}");
    let skipped = String::from_utf8_lossy(&output.stderr);
    if skipped.starts_with("skipped: ") {
        eprintln!("as an ordinary user: {skipped}");
    } else {
        assert!(listed.contains("3 passed"), "{listed}");
    }
}
