//! Whether the database keeps its promises: settings that would let an accepted job be lost.

use crate::Store;
use crate::database::db::params;
use crate::database::dialect::Dialect;
use crate::error::Error;
use jiff::Timestamp;

/// One thing that was checked.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Finding {
    pub name: String,
    /// Whether it is as it should be.
    pub is_ok: bool,
    pub found: String,
    /// What to do, where it is not.
    pub advice: Option<String>,
}

impl Finding {
    /// A check that went well.
    pub fn ok(name: impl Into<String>, found: impl Into<String>) -> Self {
        Finding { name: name.into(), is_ok: true, found: found.into(), advice: None }
    }

    /// A check that did not.
    pub fn bad(name: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Finding { name: name.into(), is_ok: false, found: found.into(), advice: Some(advice.into()) }
    }
}

const SETTING: &str = "SELECT current_setting($1) AS value";
const CLOCK: &str = "SELECT {now} AS now";
/// More than this between our clock and the database's makes dates on the page look wrong.
const SKEW_MAX_SECONDS: i64 = 5;

/// A setting, whether its value is good, and what to do where it is not.
type Wanted = (&'static str, fn(&str) -> bool, &'static str);

impl Store {
    /// Checks what durability rests on, and the clock.
    pub async fn health(&self) -> Result<Vec<Finding>, Error> {
        let mut findings = match self.dialect() {
            Dialect::Postgres => self.postgres_health().await?,
            Dialect::Sqlite => self.sqlite_health().await?,
        };
        findings.push(self.clock_health().await?);
        Ok(findings)
    }

    async fn postgres_health(&self) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        let wanted: [Wanted; 4] = [
            (
                "fsync",
                |value| value == "on",
                "Set fsync = on: without it a power cut can destroy the database.",
            ),
            (
                "synchronous_commit",
                |value| value != "off",
                "Set synchronous_commit = on: with off, a crash loses jobs that were accepted.",
            ),
            (
                "full_page_writes",
                |value| value == "on",
                "Set full_page_writes = on: a torn page cannot be repaired without.",
            ),
            (
                "transaction_read_only",
                |value| value == "off",
                "Point --database at the primary: this server takes no writes.",
            ),
        ];
        for (name, is_good, advice) in wanted {
            let rows = self.db().read(SETTING, params![name]).await?;
            let value = rows.first().map_or_else(|| Ok(String::new()), |row| row.text("value"))?;
            findings.push(if is_good(&value) {
                Finding::ok(name, value)
            } else {
                Finding::bad(name, value, advice)
            });
        }
        Ok(findings)
    }

    async fn sqlite_health(&self) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        let mut tx = self.db().begin().await?;
        for (sql, name, column, wanted, advice) in [
            (
                "PRAGMA journal_mode",
                "journal_mode",
                "journal_mode",
                "wal",
                "Move the file to a local disk: WAL needs one.",
            ),
            (
                "PRAGMA synchronous",
                "synchronous",
                "synchronous",
                "2",
                "This build of ode is broken: it must set FULL.",
            ),
            (
                "PRAGMA quick_check",
                "quick_check",
                "quick_check",
                "ok",
                "The file is damaged: restore it from a backup.",
            ),
        ] {
            let rows = tx.run(sql, params![]).await?;
            let value = match rows.first() {
                Some(row) => row.text(column).or_else(|_| row.int(column).map(|value| value.to_string()))?,
                None => String::new(),
            };
            let shown = if name == "synchronous" && value == "2" { "full".to_owned() } else { value.clone() };
            findings.push(if value == wanted {
                Finding::ok(name, shown)
            } else {
                Finding::bad(name, shown, advice)
            });
        }
        // Undone with the transaction, which begins on a file that cannot be written as well.
        findings.push(match tx.run("PRAGMA user_version = 0", params![]).await {
            Ok(_) => Finding::ok("writable", "yes"),
            Err(error) => Finding::bad("writable", error.to_string(), "Check the permissions and the disk."),
        });
        Ok(findings)
    }

    async fn clock_health(&self) -> Result<Finding, Error> {
        let rows = self.db().read(CLOCK, params![]).await?;
        let theirs = rows.first().map_or(Ok(Timestamp::UNIX_EPOCH), |row| row.moment("now"))?;
        let skew = (Timestamp::now().as_millisecond() - theirs.as_millisecond()).abs();
        let found = format!("{skew} ms from the database's");
        Ok(if skew <= SKEW_MAX_SECONDS * 1000 {
            Finding::ok("clock", found)
        } else {
            Finding::bad(
                "clock",
                found,
                "Synchronise both machines with NTP; leases go by the database's clock.",
            )
        })
    }
}
