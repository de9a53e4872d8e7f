//! How the help is arranged: commands in groups, and settings only where they mean something.

use clap::{Arg, Command};

/// The commands by what people come for. Those in no group are shown after these, under a heading of their own.
const GROUPS: &[(&str, &[&str])] = &[
    ("Documents", &["convert", "mapping", "client", "export"]),
    ("Services", &["serve", "web", "worker", "gateway"]),
    ("Maps", &["maps", "print", "export:queue", "print:queue", "printful-sim"]),
    ("Scripts", &["scripts", "seal", "demo-site"]),
    ("Jobs", &["jobs", "job:status", "workers", "webhooks"]),
    ("Upkeep", &["keys", "migrate", "cleanup", "doctor", "bench"]),
    ("Help", &["explain", "completions", "help"]),
];

/// Commands that need no installation, so that its settings say nothing to them. They are still accepted there: the
/// same options may stand before every command.
const ALONE: &[&str] = &[
    "convert",
    "mapping",
    "gateway",
    "explain",
    "bench",
    "client",
    "completions",
    "printful-sim",
    "demo-site",
];
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
    let line = |name: &str, about: String| format!("  {name:<NAME_WIDTH$}  {about}\n");
    let mut others: Vec<(&str, String)> = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| (command.get_name(), command.get_about().map(ToString::to_string).unwrap_or_default()))
        .chain([("help", "Print the help of a command".to_owned())])
        .collect();
    let mut groups = Vec::new();
    for (title, names) in GROUPS {
        let members: String = names
            .iter()
            .filter_map(|name| Some(others.remove(others.iter().position(|(other, _)| other == name)?)))
            .map(|(name, about)| line(name, about))
            .collect();
        groups.push(format!("{title}:\n{members}\n"));
    }
    if !others.is_empty() {
        let members: String = others.into_iter().map(|(name, about)| line(name, about)).collect();
        groups.insert(groups.len() - 1, format!("More:\n{members}\n"));
    }
    groups.concat()
}

/// Letters of the longest name.
const NAME_WIDTH: usize = 12;

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
            assert_eq!(list.matches(&format!("\n  {name:<NAME_WIDTH$}  ")).count(), 1, "{name}: {list}");
        }
        assert!(list.lines().all(|line| line.chars().count() <= COLUMNS), "{list}");
    }

    #[test]
    fn every_group_and_exception_is_about_a_command_that_exists() {
        let command = crate::Cli::command();
        let named = GROUPS.iter().flat_map(|(_, names)| *names).chain(ALONE);
        for name in named.filter(|name| **name != "help") {
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
