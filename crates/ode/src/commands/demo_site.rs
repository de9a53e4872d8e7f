//! `ode demo-site`: a restaurant's admin site of one's own, to try scripts on and to see what happens when things go
//! wrong.

use crate::output::WrongUse;
use clap::Args;
use ode_cli::process::{Signals, announce, listen};
use ode_demo_site::{Fault, Options, Owner, Site};
use std::process::ExitCode;
use std::time::Duration;

/// How it behaves.
#[derive(Debug, Args)]
pub(crate) struct DemoSite {
    /// Address of the admin; port 0 takes any that is free
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8092")]
    listen: String,
    /// Address of the payments company, which is another origin
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8093")]
    payments: String,
    /// Sign out whoever does nothing for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    session: u64,
    /// Let this go wrong, as JSON, such as {"kind":"error","path":"/tags"}; may be given often
    #[arg(long = "fault", value_name = "FAULT")]
    faults: Vec<String>,
}

/// Shown after the long help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  ode demo-site                                       a restaurant with an owner, in memory
  ode demo-site --fault '{\"kind\":\"slow\",\"milliseconds\":800}'
  curl http://127.0.0.1:8092/__state                  what is stored, for tests
  curl --json '{\"kind\":\"error\",\"path\":\"/tags\"}' http://127.0.0.1:8092/__faults
                                                      the next tag is answered with status 500
Faults: slow (milliseconds), error, error-after, expire, rename, reject-row (row), refuse (value),
two-factor, endless; each may name an owner, a part of a path, times, and how many to spare (after).";

pub(crate) async fn run(args: DemoSite) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let read = |text: &String| {
        serde_json::from_str::<Fault>(text).map_err(|error| {
            WrongUse(format!("The fault {text} cannot be read: {error}. See ode demo-site --help."))
        })
    };
    let faults = args.faults.iter().map(read).collect::<Result<_, _>>()?;
    let admin = listen(&args.listen, "--listen").await?;
    let payments = listen(&args.payments, "--payments").await?;
    let options = Options { session_ttl: Duration::from_secs(args.session), faults, ..Options::default() };
    let site = Site::start(admin, payments, options)?;
    let Owner { email, password, restaurant, .. } = Owner::default();
    announce(format!("A demo restaurant is listening on http://{}", site.admin()));
    announce(format!("Its payments company is listening on http://{}", site.payments()));
    announce(format!("Sign in as {email} with {password}; the restaurant is called {restaurant}."));
    let Owner { email, restaurant, .. } = Owner::ready();
    announce(format!("{email} has {restaurant}, where everything is set up; the password is the same."));
    announce("What it stores is at /__state, its faults at /__faults. Stop it with ctrl-C.".into());
    tokio::select! {
        () = signals.asked() => {}
        () = site.run() => {}
    }
    Ok(ExitCode::SUCCESS)
}
