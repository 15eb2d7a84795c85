//! `rota bench` without the rest of Rota: `bench key=value ...`.

use std::error::Error;
use std::process::ExitCode;

use rota_bench::{BenchOptions, bench_node_main, parse_duration, run_bench};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("bench-node") {
        return bench_node_main();
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut options = BenchOptions::default();
    for word in std::env::args().skip(1) {
        let (key, value) = word.split_once('=').ok_or("write options as key=value")?;
        match key {
            "testbed" => options.place.testbed = value.parse()?,
            "nodes" => options.place.nodes = value.parse()?,
            "link-rate" => options.place.link_rate = Some(value.parse()?),
            "offload" => options.place.offload = value.parse()?,
            "pin" => options.place.pin = value.parse()?,
            "engine" => options.engine = value.parse()?,
            "service" => options.service = value.parse()?,
            "size" => options.size = value.parse()?,
            "rate" => options.load = value.parse()?,
            "senders" => options.senders = value.parse()?,
            "loss" => options.loss = value.parse()?,
            "first-message" => options.first_message = Some(value.parse()?),
            "duration" => options.duration = parse_duration(value)?,
            "warm-up" => options.warm_up = parse_duration(value)?,
            _ => return Err(format!("no option {key}").into()),
        }
    }
    let report = run_bench(&options)?;
    print!("{report}");
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
