//! `rota log`: shared logs.

mod ask;
mod bench;
mod check;
mod demo;
mod load;
mod local;
mod read;
mod replies;
mod report;
mod serve;
mod status;

use std::process::ExitCode;

use clap::Subcommand;

/// What is done with logs.
#[derive(Debug, Subcommand)]
pub enum Logs {
    /// Start three logs on two rings, with real processes on this host, writers, readers and tails, kill a process and start it again, and check what all
    /// were told
    #[command(
        after_help = "Examples:\n  rota log demo --for 10s\n  rota log demo --for 60s --kill-every 4s\n\n\
        It prints where clients of Redis' streams connect. Without --for it runs until Ctrl-C, and then checks.\n\n\
        Exit status: 0 if one order explains everything that clients were told, and all processes have the same logs, 1 if not, \
        2 for wrong use."
    )]
    Demo(demo::DemoOptions),
    /// Run one process
    #[command(
        after_help = "Example:\n  rota log serve --config rota.toml --node 1\n\n\
        It runs until it gets SIGTERM or SIGINT. Its own log goes to standard error.\n\n\
        Exit status: 0 if it was stopped, 1 if it failed, 2 if it could not start."
    )]
    Serve(crate::service::serve::ServeOptions),
    /// Append entries to a log
    #[command(
        after_help = "Examples:\n  rota log append orders 'buy 5' 'sell 3'\n  rota log append orders < lines\n\n\
        It says the position of each. Without values each line of standard input is one.\n\n\
        Exit status: 0 if all are appended, 1 if not, 2 for wrong use."
    )]
    Append(ask::AppendOptions),
    /// Say what a log has
    #[command(
        after_help = "Example:\n  rota log read orders --from 100 --count 10\n\n\
        A line for each entry: its position, a tab, and its value. Where entries were trimmed that were asked for, it says so.\n\n\
        Exit status: 0 if it is done, 1 if not, 2 for wrong use."
    )]
    Read(read::ReadOptions),
    /// Say what is appended to logs, as it comes, in the one order of all of them
    #[command(
        after_help = "Examples:\n  rota log tail orders\n  rota log tail orders trades --from 1\n\n\
        A line for each entry: the log, a tab, its position, a tab, and its value. It runs until Ctrl-C, or --count entries.\n\n\
        Exit status: 0 if it was stopped, 1 if it failed, 2 for wrong use."
    )]
    Tail(read::TailOptions),
    /// Take old entries from a log
    #[command(
        after_help = "Examples:\n  rota log trim orders --before 1000\n  rota log trim orders --keep 100000\n\n\
        It says how many went. Exit status: 0 if it is done, 1 if not, 2 for wrong use."
    )]
    Trim(ask::TrimOptions),
    /// Have nothing appended to a log any more
    #[command(after_help = "Example:\n  rota log seal orders\n\n\
        Exit status: 0 if it is done, 1 if not, 2 for wrong use.")]
    Seal(ask::NameOptions),
    /// Make a log, or say how much it keeps
    #[command(
        after_help = "Example:\n  rota log create orders --bytes 1000000000 --age 7d\n\n\
        A log that is appended to is made by that, and keeps everything. Exit status: 0 if it is done, 1 if not, 2 for wrong use."
    )]
    Create(ask::CreateOptions),
    /// Take a log away
    #[command(after_help = "Example:\n  rota log delete orders\n\n\
        Exit status: 0 if it is gone, 1 if not, or if there is none, 2 for wrong use.")]
    Delete(ask::NameOptions),
    /// List logs
    #[command(after_help = "Example:\n  rota log list 'order*'\n\n\
        A line for each: its name, its first position, the next one, and how many entries it has.\n\n\
        Exit status: 0 if it is done, 1 if not, 2 for wrong use.")]
    List(ask::ListOptions),
    /// Say how all processes are
    #[command(after_help = "Example:\n  rota log status --config rota.toml\n\n\
        Exit status: 0 if all are well, 1 if not, 2 for wrong use.")]
    Status(Box<crate::service::status::StatusOptions>),
    /// Say how the rings below the logs are, and what they keep for whom
    #[command(
        after_help = "Examples:\n  rota log rings --config rota.toml\n  rota log rings --config rota.toml --ring 1 --replace 1 --replicas 1,2,4\n\n\
        A ring keeps what processes need that are away. All of them are replicas of partition 1. --replace says anew which these are,\n\
        --abandon lets go what the ring keeps for them. Both are ordered in that ring,\n\
        unless a replica that is left out is there, or nobody knows: --absent says that one is gone for good.\n\n\
        Exit status: 0 if all answer, 1 if not, 2 for wrong use."
    )]
    Rings(Box<crate::service::rings::RingsOptions>),
    /// Load logs, and measure it: figure 5 of Benz et al. 2014
    #[command(
        after_help = "Examples:\n  rota log bench --writers 200 --size 1000 --storage sync\n  rota log bench --writers 64 --tails 100 --rate 2000 --for 10s\n\n\
        Without --connect it starts three processes on this host. Exit status: 0 if everything was answered well, 1 if not (the report is\nprinted all the same), 2 for wrong use."
    )]
    Bench(Box<bench::BenchOptions>),
    /// Check a history that clients have written: whether what the logs have explains it
    #[command(after_help = "Example:\n  rota log check history.json\n\n\
        The file is what `rota log demo --history` writes. Exit status: 0 if it is explained, 1 if not, 2 for a file that is no history.")]
    Check(check::CheckOptions),
}

/// Does it.
pub fn main(logs: &Logs) -> ExitCode {
    match logs {
        Logs::Demo(options) => demo::main(options),
        Logs::Serve(options) => serve::main(options),
        Logs::Append(options) => ask::append(options),
        Logs::Read(options) => read::read(options),
        Logs::Tail(options) => read::tail(options),
        Logs::Trim(options) => ask::trim(options),
        Logs::Seal(options) => ask::seal(options),
        Logs::Create(options) => ask::create(options),
        Logs::Delete(options) => ask::delete(options),
        Logs::List(options) => ask::list(options),
        Logs::Status(options) => status::main(options),
        Logs::Rings(options) => status::rings(options),
        Logs::Bench(options) => bench::main(options),
        Logs::Check(options) => check::main(options),
    }
}
