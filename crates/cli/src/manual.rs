//! `rota completions` and `rota man`: what shells and `man` know of the commands.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

use crate::say::{complain, print};

/// The section of the manual for commands of users.
const SECTION: &str = "1";

/// Options of `rota completions`.
#[derive(Clone, Debug, clap::Args)]
pub struct CompletionsOptions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Options of `rota man`.
#[derive(Clone, Debug, clap::Args)]
pub struct ManOptions {
    /// The directory for the pages: one for each command
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

/// Prints the completions for a shell.
pub fn completions(whole: &Command, options: &CompletionsOptions) -> ExitCode {
    let mut command = for_people(whole);
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, name, &mut script);
    print(&String::from_utf8_lossy(&script).trim_end());
    ExitCode::SUCCESS
}

/// Writes the pages of all commands.
pub fn pages(whole: &Command, options: &ManOptions) -> ExitCode {
    let directory = &options.output;
    let mut command = for_people(whole);
    command.build();
    let written = fs::create_dir_all(directory).and_then(|()| write(&command, directory));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{}: {error}", directory.display()));
            ExitCode::FAILURE
        }
    }
}

/// The command without the commands that are only for other processes of it.
fn for_people(whole: &Command) -> Command {
    let commands = whole.get_subcommands();
    let commands = commands.filter(|command| !command.is_hide_set()).cloned();
    let mut visible = Command::new("rota")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .subcommands(commands);
    if let Some(about) = whole.get_about() {
        visible = visible.about(about.clone());
    }
    if let Some(examples) = whole.get_after_help() {
        visible = visible.after_help(examples.clone());
    }
    visible
}

/// Writes the page of a command, and those of the commands in it.
fn write(command: &Command, directory: &Path) -> io::Result<()> {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let page = clap_mangen::Man::new(command.clone())
        .title(name.to_uppercase())
        .section(SECTION)
        .manual("Rota");
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(directory.join(format!("{name}.{SECTION}")), text)?;
    let mut commands = command.get_subcommands();
    // `rota help` explains itself.
    commands.try_for_each(
        |command| match command.get_name() == "help" || command.is_hide_set() {
            true => Ok(()),
            false => write(command, directory),
        },
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    #[test]
    fn there_is_a_page_for_each_command_and_none_for_those_of_other_processes() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = ManOptions {
            output: dir.path().join("man1"),
        };
        assert_eq!(pages(&Cli::command(), &options), ExitCode::SUCCESS);
        let text = |name: &str| fs::read_to_string(options.output.join(name));
        let top = text("rota.1").expect("the first page");
        assert!(
            top.contains(".TH ROTA 1") && top.contains("rota\\-daemon(1)"),
            "{top}"
        );
        for name in [
            "rota-daemon.1",
            "rota-config-check.1",
            "rota-kv-serve.1",
            "rota-init.1",
        ] {
            let page = text(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            // Its first line is about it, and its examples are there.
            assert!(
                page.contains(".SH NAME") && page.contains("Exit status"),
                "{page}"
            );
        }
        for name in ["rota-demo-node.1", "rota-help.1"] {
            assert!(text(name).is_err(), "{name}");
        }
        assert!(!top.contains("node\\-"), "{top}");
    }

    #[test]
    fn every_shell_completes_commands_and_their_options_and_no_hidden_ones() {
        for shell in [
            Shell::Bash,
            Shell::Zsh,
            Shell::Fish,
            Shell::Elvish,
            Shell::PowerShell,
        ] {
            let mut command = for_people(&Cli::command());
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "rota", &mut script);
            let script = String::from_utf8(script).expect("text");
            for word in ["explain", "reload", "one-host", "completions"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
            for word in ["demo-node", "raw-node", "live-node"] {
                assert!(!script.contains(word), "{shell}: {word}");
            }
        }
    }
}
