//! Response times in the emulator.

use std::collections::HashMap;

use posthaste_emulator::transaction::{Course, Transaction, TransactionClient, TransactionServer};
use posthaste_emulator::{Emulation, EmulationVerdict, Flow, SERVER, preset, response};
use posthaste_link::Direction;
use posthaste_units::Span;

use crate::cell::{Cell, PROCESSING, REPLY, REQUEST, StackPair};

/// Port of the first transaction.
const FIRST_PORT: u16 = 10_000;
/// Records of packets that wait to be read: all of a run.
const RECORDS: usize = 1 << 16;
/// Emulations after which a machine counts as too busy.
const TRIES: u64 = 12;
/// Connections that are open at the same time.
const AT_ONCE: usize = 256;
/// Time between two transactions in the first emulation. Each further one is slower by as much. The runs of a cell, 70
/// transactions apart, begin at different phases of a clock that ticks each 10 ms.
const SPACING: Span = Span::from_micros(2_330);

/// Emulates each of `cells` `runs` times. Returns the response times of each in ms. Repeats a run whose emulator was
/// late, with fewer transactions per second.
pub(crate) fn emulate(pair: &StackPair, cells: &[Cell], runs: usize) -> Vec<Vec<f64>> {
    for number in 1..=TRIES {
        match emulate_once(pair, cells, runs, SPACING * number) {
            Ok(times) => return times,
            Err(verdict) => println!("{pair}, try {number} of {TRIES}: {verdict}"),
        }
    }
    panic!("{pair}: the machine is too busy: all {TRIES} emulations were late");
}

fn emulate_once(
    pair: &StackPair,
    cells: &[Cell],
    runs: usize,
    spacing: Span,
) -> Result<Vec<Vec<f64>>, EmulationVerdict> {
    let kernel = preset::named("default").expect("a preset").setup();
    let plans: Vec<_> = cells.iter().map(|cell| cell.plans()).collect();
    let count = plans.len();
    let cell_of = move |port: u16| usize::from(port.wrapping_sub(FIRST_PORT)) % count;
    let choose = move |flow: &Flow| plans[cell_of(flow.client.port())].clone();
    let mut running = Emulation::choosing(choose)
        .client(kernel.clone())
        .server(kernel)
        .tcp(Direction::Up, pair.client.replacement())
        .tcp(Direction::Down, pair.server.replacement())
        .real_time(true)
        .packet_records(RECORDS)
        .start()
        .expect("an emulation");
    let packet_records = running.packet_records.take().expect("asked for");
    let server = TransactionServer::start(&running.server).expect("a server");
    let transactions = (FIRST_PORT..).take(count * runs).map(|port| Transaction {
        port,
        request: REQUEST,
        reply: REPLY,
        processing: PROCESSING,
        fin_on_data: false,
    });
    let course = Course {
        at_once: AT_ONCE,
        spacing,
        timeout: Span::from_secs(60),
    };
    let client = TransactionClient::start(&running.client, SERVER, transactions.collect(), course);
    client.finish().expect("a client");
    drop(server);
    let outcome = running.finish().expect("an outcome");
    if outcome.verdict() != EmulationVerdict::OnTime || outcome.unseen > 0 {
        return Err(outcome.verdict());
    }
    let mut times: HashMap<usize, Vec<f64>> = HashMap::new();
    for response in response::read(packet_records.drain()).responses {
        let time = response.time;
        // The time of the programs is the nominal one.
        let total = time.t_conn + time.t_req + PROCESSING + time.t_resp;
        let cell = cell_of(response.flow.client.port());
        times.entry(cell).or_default().push(total.as_millis_f64());
    }
    let of_cell = |cell| times.remove(&cell).unwrap_or_default();
    Ok((0..count).map(of_cell).collect())
}
