//! `rota bench raw` without the rest of Rota: `raw [netns|loopback] NODES [key=value ...]`.

use std::error::Error;
use std::process::ExitCode;

use rota_bench::{RawOptions, parse_duration, raw_node_main, run_raw};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("raw-node") {
        return raw_node_main();
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("raw: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut options = RawOptions::default();
    for word in std::env::args().skip(1) {
        let (key, value) = word.split_once('=').ok_or("write options as key=value")?;
        match key {
            "testbed" => options.place.testbed = value.parse()?,
            "nodes" => options.place.nodes = value.parse()?,
            "link-rate" => options.place.link_rate = Some(value.parse()?),
            "offload" => options.place.offload = value.parse()?,
            "pin" => options.place.pin = value.parse()?,
            "pattern" => options.pattern = value.parse()?,
            "tcp" => options.tcp = value.parse()?,
            "size" => options.size = value.parse()?,
            "senders" => options.senders = value.parse()?,
            "burst" => options.burst = Some(value.parse()?),
            "duration" => options.duration = parse_duration(value)?,
            _ => return Err(format!("no option {key}").into()),
        }
    }
    let report = run_raw(&options)?;
    print!("{report}");
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
