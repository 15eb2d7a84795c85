//! `rota kv`: the key-value store.

mod ask;
mod bench;
mod check;
mod demo;
mod load;
mod moves;
mod report;
mod serve;
mod shifts;
mod status;
mod watch;

use std::process::ExitCode;

use clap::Subcommand;

/// What is done with the store.
#[derive(Debug, Subcommand)]
pub enum Kv {
    /// Start a store of real processes on this host, put it under load, kill one and start it again, and check what all were told
    #[command(
        after_help = "Examples:\n  rota kv demo --for 10s\n  rota kv demo --for 60s --kill-every 4s\n\n\
        It prints where clients of Redis' protocol connect. Without --for it runs until Ctrl-C, and then checks.\n\n\
        Exit status: 0 if one order explains everything that clients were told, and all replicas have the same keys, 1 if not, \
        2 for wrong use."
    )]
    Demo(demo::DemoOptions),
    /// Run one process of a store
    #[command(
        after_help = "Example:\n  rota kv serve --config rota.toml --node 1\n\n\
        It runs until it gets SIGTERM or SIGINT. The log goes to standard error.\n\n\
        Exit status: 0 if it was stopped, 1 if it failed, 2 if it could not start."
    )]
    Serve(crate::service::serve::ServeOptions),
    /// Say what a key has
    #[command(
        after_help = "Example:\n  rota kv get user:1 --connect 127.0.0.1:6379\n\n\
        Exit status: 0 if there is such a key, 1 if not, or if there is no answer, 2 for wrong use."
    )]
    Get(ask::GetOptions),
    /// Give a key a value
    #[command(
        after_help = "Example:\n  rota kv put user:1 alice --connect 127.0.0.1:6379\n\n\
        Exit status: 0 if it is done, 1 if not, 2 for wrong use."
    )]
    Put(ask::PutOptions),
    /// Take keys away
    #[command(after_help = "Example:\n  rota kv del user:1 user:2\n\n\
        It says how many there were. Exit status: 0 if it is done, 1 if not, 2 for wrong use.")]
    Del(ask::DelOptions),
    /// List keys with their values, in order
    #[command(after_help = "Example:\n  rota kv scan user: user\\; --limit 100\n\n\
        A line for each: the key, a tab, and its value. Exit status: 0 if it is done, 1 if not, 2 for wrong use.")]
    Scan(ask::ScanOptions),
    /// Print what changes of keys that begin so, in all partitions, a line for each change
    #[command(
        after_help = "Examples:\n  rota kv watch user: --config rota.toml\n  rota kv watch user: --config rota.toml --from 1=5.1.5.0,2=7.3.7.0\n\n\
        A line has, with tabs between: the partition, the place in the order, what has happened (set, deleted, expired, cleared, left,\n\
        arrived), the key, and its value unless it is larger than 16 KiB. Control characters, backslashes and what is no text are\n\
        written as \\n, \\t, \\\\ or \\x1b. Where a process is lost, another one is asked, and nothing is left\n\
        out or printed twice. It goes on until it is stopped; to go on later, give it the last place of each partition.\n\n\
        Exit status: 0 after --count changes, 1 if no process has all changes from there on any more, 2 for wrong use."
    )]
    Watch(Box<watch::WatchOptions>),
    /// Do the commands of standard input, a line each, at one place of the order
    #[command(
        after_help = "Example:\n  printf 'SET a 1\\nSET b 2\\nGET c\\n' | rota kv batch\n\n\
        A line for what each is answered. All of them are ordered, or none; what cannot be done to a key says so, and the others are.\n\n\
        Exit status: 0 if they are done, 1 if not, 2 for wrong use."
    )]
    Batch(ask::BatchOptions),
    /// Give slots of keys to another partition, while clients go on
    #[command(
        after_help = "Example:\n  rota kv move --config rota.toml --slots 0-4095 --to 2\n\n\
        A group of slots at a time: what fails leaves those of its group where they are, and can be run again.\n\n\
        Exit status: 0 if the partition has them all, 1 if not, 2 for wrong use."
    )]
    Move(Box<moves::MoveOptions>),
    /// Say how all processes of a store are
    #[command(after_help = "Example:\n  rota kv status --config rota.toml\n\n\
        Exit status: 0 if all are well, 1 if not, 2 for wrong use.")]
    Status(Box<crate::service::status::StatusOptions>),
    /// Say how the rings below a store are, and what they keep for whom
    #[command(
        after_help = "Examples:\n  rota kv rings --config rota.toml\n  rota kv rings --config rota.toml --ring 4 --abandon 2\n\n\
        A ring keeps what replicas need that are away. --abandon lets go what it keeps for a partition whose replicas do not come back,\n\
        --replace says anew which replicas a partition has. Both are ordered in that ring,\n\
        unless a replica that is left out is there, or nobody knows: --absent says that one is gone for good.\n\n\
        Exit status: 0 if all answer, 1 if not, 2 for wrong use."
    )]
    Rings(Box<crate::service::rings::RingsOptions>),
    /// Load a store, or any server of Redis' protocol, and measure it: YCSB's workloads
    #[command(
        after_help = "Examples:\n  rota kv bench --workload put --clients 200 --connect 127.0.0.1:6379,127.0.0.1:6380\n  \
        rota kv bench --workload b --cluster --connect 127.0.0.1:7000\n\n\
        Keys are user and twenty digits; they are written first. Exit status: 0 if everything was answered well, 1 if not \
        (the report is\nprinted all the same), 2 for wrong use."
    )]
    Bench(Box<bench::KvBench>),
    /// Check histories that clients have written: whether one order explains them
    #[command(after_help = "Example:\n  rota kv check history.jsonl\n\n\
        A line is a JSON object with client, began, ended (nanoseconds; without it there was no answer), place \
        ([round, ring,\ninstance, message]), reads and writes ([[key, value or null], ...]). No value is written twice to a key.\n\n\
        Exit status: 0 if one order explains it, 1 if not, 2 for a file that is no history.")]
    Check(check::CheckOptions),
}

/// Does it.
pub fn main(kv: &Kv) -> ExitCode {
    match kv {
        Kv::Demo(options) => demo::main(options),
        Kv::Serve(options) => serve::main(options),
        Kv::Get(options) => ask::get(options),
        Kv::Put(options) => ask::put(options),
        Kv::Del(options) => ask::del(options),
        Kv::Scan(options) => ask::scan(options),
        Kv::Watch(options) => watch::main(options),
        Kv::Batch(options) => ask::batch(options),
        Kv::Move(options) => moves::main(options),
        Kv::Status(options) => status::main(options),
        Kv::Rings(options) => status::rings(options),
        Kv::Bench(options) => bench::main(options),
        Kv::Check(options) => check::main(options),
    }
}
