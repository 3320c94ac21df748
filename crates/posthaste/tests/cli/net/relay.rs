//! The relay to the outside: to one host, to any host, and to resolvers.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use posthaste_emulator::namespace::own_network;
use posthaste_emulator::relay::ResolvConf;
use rustix::mount::{UnmountFlags, mount_bind, unmount};

use serde_json::Value;

use super::handshakes::certificate;
use super::{folder, net, own, reported, skip, users};
use crate::command::{RunningShop, execute};

#[test]
fn one_port_leads_to_a_host_outside() {
    let shop = RunningShop::open(&[]);
    let target = shop.url.strip_prefix("http://").unwrap();
    let port = target.rsplit_once(':').unwrap().1;
    for user in users() {
        let url = format!("http://10.0.0.2:{port}/");
        let load = [
            &own(*user),
            "load",
            "--allow-late",
            &url,
            "--rate",
            "20/s",
            "--duration",
            "1s",
        ];
        let options = ["--delay", "5ms", "--to", target, "--"];
        let (run, report) = reported(*user, &[&options[..], &load].concat());
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.out.contains("20 ok"), "{}", run.out);
        assert!(
            report["relay"]["connections"].as_u64().unwrap() >= 1,
            "{report}"
        );
    }
}

/// The shop has one address of the two that `localhost` may have.
#[test]
fn one_port_leads_outside_for_http3_too() {
    let folder = folder();
    let secured = certificate(folder.path());
    let options: Vec<&str> = secured.split(' ').chain(["--http3"]).collect();
    let shop = RunningShop::open(&options);
    let port = shop.url.rsplit_once(':').unwrap().1;
    for user in users() {
        let posthaste = own(*user);
        for (host, networks) in [
            ("10.0.0.2", &[][..]),
            ("[fd00::2]", &[]),
            ("192.168.77.2", &["--subnet", "192.168.77.0/24"]),
        ] {
            let url = format!("https://{host}:{port}/");
            let load = "--insecure --http 3 --rate 20/s --duration 500ms --allow-late --connect-timeout 30s";
            let load: Vec<&str> = [&posthaste, "load", &url]
                .into_iter()
                .chain(load.split(' '))
                .collect();
            let target = format!("localhost:{port}");
            let options = ["--delay", "5ms", "--to", &target];
            let (run, report) = reported(*user, &[&options[..], networks, &["--"], &load].concat());
            assert_eq!(run.code, Some(0), "{}", run.err);
            assert!(run.out.contains("10 ok"), "{}", run.out);
            let relay = &report["relay"];
            assert!(relay["flows"].as_u64().unwrap() >= 1, "{report}");
            assert_eq!(relay["connections"], 0, "{report}");
        }
    }
}

#[test]
fn the_network_inside_can_be_moved() {
    for user in users() {
        let networks = ["--subnet", "192.168.77.0/24", "--subnet", "fd12:3456::/64"];
        let posthaste = own(*user);
        let server = format!("{posthaste} bookshop --listen $POSTHASTE_SERVER:80");
        let load = format!(
            "echo $POSTHASTE_SERVER; {posthaste} load http://192.168.77.2/ --rate 5/s --duration 200ms --allow-late"
        );
        let rest = ["--server", &server, "--", "sh", "-c", &load];
        let (run, report) = reported(*user, &[&networks[..], &rest].concat());
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.out.starts_with("192.168.77.2\n"), "{}", run.out);
        assert!(run.out.contains("1 ok"), "{}", run.out);
        assert!(report["up"]["packets"].as_u64().unwrap() > 3, "{report}");
        let run = execute(net(*user, &networks).args(["--", "true"]));
        assert!(
            run.err.contains("use 192.168.77.2 with --to"),
            "{}",
            run.err
        );
    }
}

/// An address of this machine that is not its loopback, and so is outside of every emulation.
fn address_outside() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(198, 41, 0, 4), 53)).ok()?;
    let address = socket.local_addr().ok()?.ip();
    let shadowed = matches!(address, IpAddr::V4(v4) if v4.octets().starts_with(&[10, 0, 0]));
    (!shadowed && !address.is_loopback()).then_some(address)
}

#[test]
fn any_host_outside_is_reached() {
    let Some(address) = address_outside() else {
        return skip("this machine has no address but its loopback's");
    };
    let listener = TcpListener::bind((address, 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).is_ok_and(|length| length > 0) {
                    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    if stream.write_all(reply).is_err() {
                        return;
                    }
                }
            });
        }
    });
    for user in users() {
        let posthaste = own(*user);
        let load = [
            "load",
            "--allow-late",
            &url,
            "--rate",
            "100/s",
            "--duration",
            "500ms",
            "--connection",
            "new",
        ];
        let command = [&["--", &posthaste][..], &load].concat();
        let (run, report) = reported(*user, &command);
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.out.contains("50 ok"), "{}", run.out);
        assert_eq!(report["relay"]["connections"], 50, "{report}");
        assert_eq!(report["relay"]["refused"], 0, "{report}");
    }
}

#[test]
fn a_refusal_outside_is_a_reset_inside() {
    let Some(address) = address_outside() else {
        return skip("this machine has no address but its loopback's");
    };
    let closed = TcpListener::bind((address, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    for user in users() {
        let posthaste = own(*user);
        let url = format!("http://{closed}/");
        let load = [
            "--",
            &posthaste,
            "load",
            "--allow-late",
            &url,
            "--rate",
            "10/s",
            "--duration",
            "500ms",
            "--json",
        ];
        let (run, report) = reported(*user, &load);
        // Depends on whether the reset comes before the request has left.
        let outcomes = &serde_json::from_str::<Value>(&run.out).unwrap()["outcomes"];
        let ended = ["reset", "refused"].map(|name| outcomes[name].as_u64().unwrap());
        assert_eq!(ended.iter().sum::<u64>(), 5, "{outcomes}");
        assert_eq!(report["relay"]["unreachable"], 5, "{report}");
        assert!(
            run.err.contains("5 refused or unreachable outside"),
            "{}",
            run.err
        );
    }
}

/// If the machine has no route for IPv6, the command gets an error at once and tries IPv4.
#[test]
fn without_a_way_for_ipv6_nobody_waits() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can stand up a machine without IPv6");
    }
    for user in users() {
        let posthaste = own(*user);
        let url = "http://[2001:db8::1]:80/";
        let options = "--rate 10/s --duration 300ms --connect-timeout 600s --json";
        let load: Vec<&str> = ["--", &posthaste, "load", url]
            .into_iter()
            .chain(options.split(' '))
            .collect();
        let begin = Instant::now();
        let (run, report) = on_a_machine_with_a_resolver(|| reported(*user, &load));
        assert!(begin.elapsed() < Duration::from_secs(120));
        let outcomes = &serde_json::from_str::<Value>(&run.out).unwrap()["outcomes"];
        assert_eq!(outcomes["connect-aborted"], 3, "{outcomes}");
        assert_eq!(report["up"]["packets"], 0, "{report}");
        assert_eq!(report["unrouted"], 3, "{report}");
        assert!(
            run.err
                .contains("3 connections or datagrams of the command had no route"),
            "{}",
            run.err
        );
    }
}

/// Runs `work` on a machine whose only resolver, on its loopback, knows one answer: 203.0.113.7.
fn on_a_machine_with_a_resolver<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let machine = scope.spawn(|| {
            own_network().unwrap();
            // Moves the thread into a mount namespace of its own, and removes the file placed there.
            ResolvConf::read("").install().unwrap();
            let mut file = tempfile::NamedTempFile::new().unwrap();
            writeln!(file, "nameserver 127.0.0.1").unwrap();
            let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            file.as_file().set_permissions(everybody).unwrap();
            let target = std::fs::canonicalize("/etc/resolv.conf").unwrap();
            unmount(&target, UnmountFlags::DETACH).unwrap();
            mount_bind(file.path(), &target).unwrap();
            let resolver = UdpSocket::bind("127.0.0.1:53").unwrap();
            thread::spawn(move || {
                let mut query = [0; 512];
                while let Ok((length, from)) = resolver.recv_from(&mut query) {
                    let _ = resolver.send_to(&answer(&query[..length]), from);
                }
            });
            work()
        });
        machine.join().unwrap()
    })
}

/// The question and, for an IPv4 address, the answer.
fn answer(query: &[u8]) -> Vec<u8> {
    let name = query[12..].iter().position(|byte| *byte == 0).unwrap();
    let question = &query[..12 + name + 5];
    let wants_v4 = question[question.len() - 4..] == [0, 1, 0, 1];
    let mut answer = question.to_vec();
    answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(wants_v4), 0, 0, 0, 0]);
    if wants_v4 {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 203, 0, 113, 7]);
    }
    answer
}

#[test]
fn names_resolve_inside() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can stand up a machine with a resolver of its own");
    }
    for user in users() {
        let run = on_a_machine_with_a_resolver(|| {
            let asks = [
                "--delay",
                "20ms",
                "--",
                "getent",
                "ahostsv4",
                "some.example.org",
            ];
            execute(&mut net(*user, &asks))
        });
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.out.starts_with("203.0.113.7"), "{}", run.out);
        assert!(run.err.contains("flows of datagrams"), "{}", run.err);
    }
}
