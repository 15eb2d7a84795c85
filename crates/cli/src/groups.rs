//! `rota groups` and `rota members`: who is where, as a daemon says it.

use std::process::ExitCode;

use rota_client::{Client, GroupName};
use serde::Serialize;

use crate::client::{ClientOptions, Failure};
use crate::say::{print, print_json};

/// Options of `rota groups`.
#[derive(Clone, Debug, clap::Args)]
pub struct GroupsOptions {
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientOptions,
}

/// Options of `rota members`.
#[derive(Clone, Debug, clap::Args)]
pub struct MembersOptions {
    /// The group
    #[arg(value_name = "GROUP", value_parser = GroupName::new)]
    group: GroupName,
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientOptions,
}

#[derive(Debug, Serialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Debug, Serialize)]
struct Group {
    group: String,
    members: u32,
}

#[derive(Debug, Serialize)]
struct Members {
    group: String,
    members: Vec<String>,
}

/// Prints a line for each group: how many clients are in it, and its name.
pub fn groups(options: &GroupsOptions) -> ExitCode {
    let asked = ask(&options.client, |client| client.groups());
    let print_all = |list: Vec<(GroupName, u32)>| {
        if options.json {
            let group = |(group, members): (GroupName, u32)| Group {
                group: group.to_string(),
                members,
            };
            let groups = list.into_iter().map(group).collect();
            print_json(&Groups { groups });
        } else {
            for (group, members) in list {
                print(&format!("{members:>6} {group}"));
            }
        }
    };
    ended(asked.map(print_all))
}

/// Prints a line for each client in a group.
pub fn members(options: &MembersOptions) -> ExitCode {
    let group = options.group.as_str();
    let asked = ask(&options.client, |client| client.members(group));
    let print_all = |list: Vec<rota_client::PrivateName>| {
        if options.json {
            let members = list.iter().map(ToString::to_string).collect();
            let group = group.to_owned();
            print_json(&Members { group, members });
        } else {
            list.iter().for_each(print);
        }
    };
    ended(asked.map(print_all))
}

/// Connects, and asks one question.
fn ask<T>(
    options: &ClientOptions,
    question: impl FnOnce(&mut Client) -> Result<T, rota_client::RequestError>,
) -> Result<T, Failure> {
    let mut client = options.connect(&Client::builder())?;
    let answer = question(&mut client).map_err(Failure::failed)?;
    client.close().map_err(Failure::failed)?;
    Ok(answer)
}

fn ended(done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit(),
    }
}
