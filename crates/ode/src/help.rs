//! How the help is arranged: commands in groups, and settings only where they mean something.

use clap::{Arg, Command};

/// A heading of the help with the commands below it, before and after those that pipelines bring and that are not named here.
struct Heading(&'static str, &'static [&'static str], &'static [&'static str]);

/// In the order of the help. Other headings of pipelines come after these.
const HEADINGS: &[Heading] = &[
    Heading("Documents", &["convert", "mapping", "client", "export"], &[]),
    Heading("Services", &["serve", "web", "worker", "gateway"], &[]),
    Heading("Maps", &[], &["printful-sim"]),
    Heading("Scripts", &[], &["demo-site"]),
    Heading("Jobs", &["jobs"], &["workers", "webhooks"]),
    Heading("Upkeep", &["keys", "migrate", "cleanup", "doctor"], &[]),
];

/// Commands of the program's own that need no installation, so that its settings say nothing to them. They are still accepted there:
/// the same options may stand before every command.
const ALONE: &[&str] = &["convert", "explain", "completions", "printful-sim", "demo-site"];
/// Settings that mean something everywhere.
const EVERYWHERE: &[&str] = &["log", "log_json"];

/// The command line with the commands that pipelines bring, and its help arranged.
pub(crate) fn arranged(own: Command, brought: &[ode_pipeline::Command]) -> Command {
    let alone = brought.iter().filter(|command| !command.has_settings).map(|command| command.clap.get_name());
    let alone: Vec<&str> = ALONE.iter().copied().chain(alone).collect();
    let command = own.subcommands(brought.iter().map(|command| command.clap.clone()));
    let list = grouped(&command, brought);
    let is_moot = |arg: &&Arg| arg.is_global_set() && !EVERYWHERE.contains(&arg.get_id().as_str());
    let moot: Vec<Arg> = command.get_arguments().filter(is_moot).map(|arg| arg.clone().hide(true)).collect();
    let command = alone.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |subcommand| subcommand.args(moot.clone()))
    });
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    ))
}

/// The list of commands, a paragraph for each heading.
fn grouped(command: &Command, brought: &[ode_pipeline::Command]) -> String {
    let is_there = |name: &&str| command.find_subcommand(name).is_some();
    let is_named = |name: &str| {
        HEADINGS.iter().any(|Heading(_, before, after)| before.contains(&name) || after.contains(&name))
    };
    let there = |names: &[&'static str]| names.iter().copied().filter(is_there).collect::<Vec<&str>>();
    let mut groups: Vec<(&str, Vec<&str>)> =
        HEADINGS.iter().map(|Heading(heading, before, _)| (*heading, there(before))).collect();
    for command in brought.iter().filter(|command| !is_named(command.clap.get_name())) {
        match groups.iter_mut().find(|(heading, _)| *heading == command.heading) {
            Some((_, names)) => names.push(command.clap.get_name()),
            None => groups.push((command.heading, vec![command.clap.get_name()])),
        }
    }
    for ((_, names), Heading(_, _, after)) in groups.iter_mut().zip(HEADINGS) {
        names.extend(there(after));
    }
    groups.push(("Help", vec!["explain", "completions", "help"]));
    let line = |name: &str| {
        let about = command.find_subcommand(name).and_then(Command::get_about);
        let about = about.map_or_else(|| "Print the help of a command".to_owned(), ToString::to_string);
        format!("  {name:<NAME_WIDTH$}  {about}\n")
    };
    let paragraph = |(heading, names): &(&str, Vec<&str>)| {
        let lines: String = names.iter().map(|name| line(name)).collect();
        format!("{heading}:\n{lines}\n")
    };
    groups.iter().map(paragraph).collect()
}

/// Letters of the longest name.
const NAME_WIDTH: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whole_command;

    /// Columns of the narrowest terminal that help is written for.
    const COLUMNS: usize = 100;

    #[test]
    fn every_command_is_listed_once_in_lines_that_fit() {
        let brought = crate::tests::brought();
        let command = whole_command(&brought);
        let list = grouped(&command, &brought);
        for name in command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name) {
            assert_eq!(list.matches(&format!("\n  {name:<NAME_WIDTH$}  ")).count(), 1, "{name}: {list}");
        }
        assert!(list.lines().all(|line| line.chars().count() <= COLUMNS), "{list}");
    }

    #[test]
    fn every_group_and_exception_is_about_a_command_that_exists() {
        let command = whole_command(&crate::tests::brought());
        let named =
            HEADINGS.iter().flat_map(|Heading(_, before, after)| before.iter().chain(*after)).chain(ALONE);
        for name in named {
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
        check(&whole_command(&crate::tests::brought()), "");
    }
}
