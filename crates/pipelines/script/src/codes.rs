//! The codes that scripts fail with: ours for what they do not tell themselves, and those of the types that come with ODE.
//! A script of somebody else's may tell any other.

use crate::order::code;
use ode_pipeline::{Codes, KnownCode};
use std::sync::LazyLock;

macro_rules! codes {
    ($($name:expr, $retried:ident, $sentence:literal, $advice:literal;)+) => {
        /// The codes as `ode explain` lists them.
        pub(crate) static CODES: LazyLock<Codes> = LazyLock::new(|| Codes {
            heading: "SCRIPT",
            codes: vec![$(known_code($name, codes!(@ $retried), $sentence, $advice)),+],
        });
    };
    (@ again) => { true };
    (@ final) => { false };
}

/// A code with its page, in the form of the pages of errors.
fn known_code(name: &'static str, is_retried: bool, sentence: &'static str, advice: &str) -> KnownCode {
    let retried = if is_retried { "yes" } else { "no" };
    let page = format!(
        "# {name}\n\n> {sentence}\n\nRetried automatically: {retried}\n\n## What it means\n\nThis is a script's own code. \
         A job that failed with it has it in `error.script_code`, beside `SCRIPT_FAILED` in `error.code`. docs/script-types.md \
         lists the codes of the scripts that come with ODE, docs/scripts.md those that any script may end with; a script of \
         your own may tell others.\n\n## What to do\n\n{advice}\n"
    );
    KnownCode { name, sentence, is_retried: Some(is_retried), page }
}

codes! {
    code::NO_RESULT, final, "The script ended and told no result",
        "Have it tell exactly one line with \"t\": \"result\" before it ends.";
    code::CRASHED, again, "The script ended with an error, or by a signal",
        "Its log and `error.stack` say what it wrote last. Mend that.";
    code::OUT_OF_MEMORY, again, "The script used more memory than it may",
        "Give it less to do, or raise `max_memory_mb` in its manifest.";
    code::PROTOCOL, final, "The script did not keep to the protocol",
        "The message and the log say which line was wrong. docs/scripts.md lists the lines there are.";
    code::BAD_RESULT, final, "The result is not what the script's manifest promises",
        "Mend the script, or its result.json. The work itself was done: look at the site before it is run again.";
    code::MANY_SECRETS, final, "There are more secrets than can be hidden in what the script tells",
        "Send, mask and return fewer of them: a megabyte of keys or some ten thousand passwords at most.";
    code::NOT_INSTALLED, final, "A program that the script needs is not on the worker",
        "Install it there, or mend `command` in the manifest. Scripts with a browser need `ode scripts setup`.";
    "login_rejected", final, "The e-mail address or the password is wrong",
        "Send the job again with the right ones: POST …/retry with {\"secrets\": {\"email\": …, \"password\": …}}.";
    "two_factor_required", final, "The account asks for a two-factor code",
        "Use an account without it for automations.";
    "restaurant_not_found", final, "The account has no restaurant of this name, or several",
        "Give restaurantName exactly as the site shows it.";
    "already_registered", final, "There is already an account with this address and password",
        "Go on with the next job of the sequence, or use another address.";
    "already_exists", final, "There is already a key of this name that is not ours",
        "Choose another keyName, or revoke that key.";
    "rejected", final, "The site refused everything",
        "The message and `result.data.details` say why. Correct the input and send it again.";
    "onboarding_incomplete", final, "Something that is required is not set up yet",
        "The message says what. Set it up, then try the job again.";
    "file_refused", final, "The CSV file is missing, too large, or not below the directory for files",
        "Put it there (--script-files), or send the text itself as `csv`.";
    "element_missing", final, "A button or a field is not on the page",
        "The site has changed. Compare the picture among the job's artifacts with scripts/pages, and mend that.";
    "payload_wrong", final, "No site is named",
        "Put siteUrl into the input, or start the worker with --script-site.";
    "setup_missing", final, "There is no browser, or no playwright-core",
        "Run `ode scripts setup` on the worker, and install chromium there.";
    "script_error", final, "The script has a mistake",
        "`error.stack` says where. Mend it.";
    "session_expired", again, "The site ended the session twice in one attempt",
        "Try again when nobody else signs in with this account.";
    "server_error", again, "The site answered with an error of its own",
        "Try it later.";
    "site_timeout", again, "The site did not answer in time",
        "Try it later.";
    "site_unreachable", again, "The site cannot be reached",
        "Look whether its address is right and it is running.";
    "browser_lost", again, "The browser ended before the script did",
        "Try it again. If it stays so, the worker has too little memory.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_documents() {
        let read = |name: &str| {
            std::fs::read_to_string(format!("{}/../../../docs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
        };
        let documents = read("scripts.md") + &read("script-types.md");
        let mut names = std::collections::HashSet::new();
        for code in &CODES.codes {
            assert!(names.insert(code.name), "{} is there twice", code.name);
            assert!(documents.contains(&format!("`{}`", code.name)), "{} is in no document", code.name);
            assert!(!code.sentence.ends_with('.') && code.page.ends_with(".\n"), "{}", code.name);
        }
    }
}
