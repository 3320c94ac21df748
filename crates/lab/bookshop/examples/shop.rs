//! Runs a bookshop by itself for measurements: `shop ADDRESS CPU LAW`. The default address is 127.0.0.1:8080.

use posthaste_bookshop::{BookshopConfig, start};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut config = BookshopConfig::default();
    if let Some(address) = arguments.next() {
        config.listen = address.parse()?;
    }
    if let Some(cpu) = arguments.next() {
        config.cpus = vec![cpu.parse()?];
    }
    if let Some(law) = arguments.next() {
        config.service = Some(law.parse()?);
    }
    let running = start(config)?;
    let mut signals = posthaste_serve::Signals::take()?;
    println!("http://{}/", running.addr);
    signals.wait();
    running.stop();
    running.join();
    Ok(())
}
