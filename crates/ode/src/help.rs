//! How the help is arranged: commands in groups, and settings only where they mean something.

use clap::{Arg, Command};

/// The commands by what people come for. One that is in no group is shown after them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Documents", &["convert", "mapping"]),
    ("Services", &["serve", "web", "worker", "gateway"]),
    ("Jobs", &["jobs", "workers"]),
    ("Upkeep", &["migrate", "doctor", "bench"]),
];

/// Commands that need no installation, so that its settings say nothing to them. They are still accepted there: the
/// same options may stand before every command.
const ALONE: &[&str] = &["convert", "mapping", "gateway", "explain", "bench", "completions"];
/// Settings that mean something everywhere.
const EVERYWHERE: &[&str] = &["log", "log_json"];

/// The command line with its help arranged.
pub(crate) fn arranged(command: Command) -> Command {
    let list = grouped(&command);
    let is_moot = |arg: &&Arg| arg.is_global_set() && !EVERYWHERE.contains(&arg.get_id().as_str());
    let moot: Vec<Arg> = command.get_arguments().filter(is_moot).map(|arg| arg.clone().hide(true)).collect();
    let known: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let alone = known.into_iter().filter(|name| ALONE.contains(&name.as_str()));
    let command = alone.fold(command, |command, name| {
        command.mut_subcommand(name, |subcommand| subcommand.args(moot.clone()))
    });
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    ))
}

/// The list of commands, a paragraph for each group.
fn grouped(command: &Command) -> String {
    let all: Vec<&Command> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let width = all.iter().map(|command| command.get_name().len()).max().unwrap_or_default();
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let line = |command: &&Command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        format!("  {:width$}  {about}\n", command.get_name())
    };
    let mut text = String::new();
    for (title, names) in GROUPS {
        let members = names.iter().filter_map(|name| all.iter().find(|command| command.get_name() == *name));
        text.push_str(&format!("{title}:\n{}\n", members.map(line).collect::<String>()));
    }
    let others: String = all.iter().filter(|command| !is_grouped(command.get_name())).map(line).collect();
    text.push_str(&format!("Help:\n{others}  {:width$}  Print the help of a command\n\n", "help"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    /// Columns of the narrowest terminal that help is written for.
    const COLUMNS: usize = 100;

    #[test]
    fn every_command_is_listed_once_in_lines_that_fit() {
        let command = crate::Cli::command();
        let list = grouped(&command);
        for name in command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name) {
            assert_eq!(list.matches(&format!("\n  {name} ")).count(), 1, "{name}: {list}");
        }
        assert!(list.lines().all(|line| line.chars().count() <= COLUMNS), "{list}");
    }

    #[test]
    fn every_group_and_exception_is_about_a_command_that_exists() {
        let command = crate::Cli::command();
        for name in GROUPS.iter().flat_map(|(_, names)| *names).chain(ALONE) {
            assert!(command.find_subcommand(name).is_some(), "there is no command {name}");
        }
        for id in EVERYWHERE {
            assert!(command.get_arguments().any(|arg| arg.get_id() == id), "there is no setting {id}");
        }
    }

    #[test]
    fn examples_fit_and_are_of_this_program() {
        fn check(command: &Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let text = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines() {
                assert!(line.chars().count() <= COLUMNS, "{path}: {line}");
            }
            command.get_subcommands().for_each(|command| check(command, &path));
        }
        check(&arranged(crate::Cli::command()), "");
    }
}
