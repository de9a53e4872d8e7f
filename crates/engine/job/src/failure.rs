//! What can go wrong, in words: the error codes, the sentence a person reads for each, and the
//! [`Failure`] that ends an attempt.
//!
//! This module says what a failure is and whether trying again can help. It does not say when
//! (that is [`crate::retry`]), and it knows nothing of HTTP statuses or exit codes: the edges map
//! codes to those.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A message is one line on a page or in a terminal. Longer than this, it is not a message but
/// output, and output belongs in the detail.
pub const MESSAGE_CHARS_MAX: usize = 500;

/// A detail holds a stack trace or the error output of a child process. Whole logs are artifacts;
/// this much fits in a row without slowing down everyone who reads the table.
pub const DETAIL_BYTES_MAX: usize = 64 * 1024;

/// Makes [`ErrorCode`] from one line per code, so that nothing about a code can be forgotten.
/// A code also needs its page, `docs/errors/<CODE>.md`; without it the crate does not compile.
macro_rules! error_codes {
    ($($variant:ident $name:literal $class:ident $sentence:literal;)*) => {
        /// The name of a failure, as stored, shown and looked up with `ode explain`.
        ///
        /// Codes are kept for good: they are in databases and in the scripts of others. New ones
        /// may come, so code that reads them from outside falls back to [`ErrorCode::Unknown`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ErrorCode {
            $(
                #[doc = concat!("`", $name, "`: ", $sentence, ".")]
                #[serde(rename = $name)]
                $variant,
            )*
        }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The code as it is stored and shown, such as `NOT_PDF`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// What a person is told when nothing more exact is known. Without a full stop, since
            /// it may stand in a table or be followed by the code.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence),* }
            }

            /// Whether the same attempt may succeed later without anyone changing anything. This
            /// is the code's usual class; a [`Failure`] knows better and carries its own.
            #[must_use]
            pub const fn is_retryable(self) -> bool {
                match self { $(Self::$variant => Class::$class.is_retryable()),* }
            }

            /// The code's page from `docs/errors`, in Markdown: what it means and what to do.
            #[must_use]
            pub const fn page(self) -> &'static str {
                match self {
                    $(Self::$variant => {
                        include_str!(concat!("../../../../docs/errors/", $name, ".md"))
                    })*
                }
            }
        }
    };
}

// The sentences of NOT_PDF to FORBIDDEN are fixed copy that the pages promise word for word.
error_codes! {
    NotPdf              "NOT_PDF"              Final "Only PDF files are supported";
    TooLarge            "TOO_LARGE"            Final "File exceeds 50 MB limit";
    Gw4xx               "GW_4XX"               Final "Couldn't convert with this mapping";
    Gw5xx               "GW_5XX"               Retry "Converter is having an issue. We'll retry";
    GwTimeout           "GW_TIMEOUT"           Retry "Conversion is taking too long. We'll retry";
    IoError             "IO_ERROR"             Retry "Temporary storage issue. We'll retry";
    Unreadable          "UNREADABLE"           Final "This PDF can't be read. Export it again from the program that made it";
    Truncated           "TRUNCATED"            Final "This PDF ends early: a part of it is missing. Download or export it again";
    Encrypted           "ENCRYPTED"            Final "This PDF is protected by a password. Save a copy without one and upload that";
    NoPages             "NO_PAGES"             Final "This PDF has no pages. Export it again from the program that made it";
    UnknownMapping      "UNKNOWN_MAPPING"      Final "There is no mapping by that name. See which there are with ode mapping list";
    NoMapping           "NO_MAPPING"           Final "No mapping fits this document. Name one, or teach a new one with ode mapping learn";
    NoText              "NO_TEXT"              Final "The pages hold pictures of text, not text. Send the original, or a scan that was read with OCR";
    BadMap              "BAD_MAP"              Final "This map can't be drawn as it is described. Mend its specification where the message says";
    Busy                "BUSY"                 Retry "Too much is being converted right now. Try again in a moment";
    Expired             "EXPIRED"              Final "File was removed by retention. Re-upload to regenerate";
    NotReady            "NOT_READY"            Final "Conversion not finished yet";
    Forbidden           "FORBIDDEN"            Final "This file isn't yours";
    Unauthorized        "UNAUTHORIZED"         Final "This API key isn't valid. Check it, or ask for a new one";
    CrossSite           "CROSS_SITE"           Final "This request came from another site and was not carried out. Open ODE itself and try again";
    Unknown             "UNKNOWN"              Retry "Something went wrong that we didn't expect. We'll retry";
    GatewayUnavailable  "GATEWAY_UNAVAILABLE"  Final "The converter has been away for too long. Retry once it is back";
    TimedOut            "TIMED_OUT"            Retry "The job took longer than its time limit and was ended. Make it smaller, or raise the limit";
    Stopped             "STOPPED"              Final "The job was stopped while it was running. Retry it to start over";
    Cancelled           "CANCELLED"            Final "The job was cancelled before it started. Submit it again if you still need it";
    Poison              "POISON"               Final "The job crashed its worker too often and was set aside. Check the input before you retry";
    NotFound            "NOT_FOUND"            Final "There is nothing here by that name. Check the id";
    Conflict            "CONFLICT"             Final "The job's state doesn't allow this. Reload to see where it stands";
    Duplicate           "DUPLICATE"            Final "Another job already has this external id. Use that job, or choose another id";
    Invalid             "INVALID"              Final "Part of the request isn't valid. Correct it and send it again";
    PayloadTooLarge     "PAYLOAD_TOO_LARGE"    Final "The request carries more data than is allowed. Send less";
    RateLimited         "RATE_LIMITED"         Final "Too many requests in a short time. Wait a moment and try again";
    SchemaMismatch      "SCHEMA_MISMATCH"      Final "The database and this version of ODE don't match. Run ode migrate up, or update ODE";
    DatabaseUnavailable "DATABASE_UNAVAILABLE" Retry "The database can't be reached. We'll retry";
    DatabaseReadOnly    "DATABASE_READ_ONLY"   Final "The database accepts no changes right now. Nothing was saved, so try again later";
    OrderUnclear        "ORDER_UNCLEAR"        Retry "It isn't clear yet whether the order was placed. We'll look it up and go on from there";
    OrderFailed         "ORDER_FAILED"         Retry "The print provider gave the order up. We'll confirm it again";
    OrderRefused        "ORDER_REFUSED"        Final "The print provider refuses this order. Read its reason, correct the order and ask for it again";
    OrderMismatch       "ORDER_MISMATCH"       Final "The provider's order isn't the one that was asked for, so it was not confirmed. Compare the two";
    OrderCancelled      "ORDER_CANCELLED"      Final "The order was cancelled at the provider. Reprint the map if you still want it";
    CostAboveCap        "COST_ABOVE_CAP"       Final "The order costs more than it may, so it was not confirmed. Raise the limit and retry, or leave it";
    FileRefused         "FILE_REFUSED"         Final "The print provider could not use the file. Export the map again as a new print";
    SpendCap            "SPEND_CAP"            Final "This organisation may not spend that much on prints. Ask the operator to raise its limit";
    ProviderAway        "PROVIDER_AWAY"        Retry "The print provider can't be reached right now. The order waits until it is back";
    ScriptFailed        "SCRIPT_FAILED"        Final "The script did not do what it was asked to. Read its reason, mend that and try it again";
    ScriptMemory        "SCRIPT_MEMORY"        Final "The script needed more memory than it may have. Give it less to do, or raise its limit";
    SecretsSealed       "SECRETS_SEALED"       Final "The secrets of this job can't be opened. Send them again, or bring the worker its keys";
    DiskFull            "DISK_FULL"            Final "Storage is full. Nothing was saved, so try again later";
}

/// The column of the table above that says whether to try again.
enum Class {
    Retry,
    Final,
}

impl Class {
    const fn is_retryable(&self) -> bool {
        match self {
            Self::Retry => true,
            Self::Final => false,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A mistyped code is shown back to the person, but not more of it than fits on a line.
const NAME_SHOWN_MAX: usize = 60;

/// Somebody named a code that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("There is no code {0:?}. Codes are written like NOT_PDF; `ode explain` lists them all.")]
pub struct UnknownErrorCode(String);

impl FromStr for ErrorCode {
    type Err = UnknownErrorCode;

    /// Reads a code as [`ErrorCode::as_str`] writes it, in capitals.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.as_str() == name)
            .ok_or_else(|| UnknownErrorCode(name.chars().take(NAME_SHOWN_MAX).collect()))
    }
}

/// What to do after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// This input will never work. Tell the person what to change.
    Rejected,
    /// The same input may work later.
    Retryable {
        /// Not before this long from now, if the failing side said so (`Retry-After`); else the
        /// retry policy decides.
        after: Option<Duration>,
    },
    /// Something that the attempt needs is away. The input was not tried, so no try of its is used up.
    Away {
        /// Not before this long from now.
        after: Duration,
    },
}

/// Why an attempt failed: a line for the person, and a detail for the operator.
///
/// Made only by its constructors, which keep the texts within bounds and fit to be stored and
/// shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
#[non_exhaustive]
pub struct Failure {
    /// Which failure it is.
    pub code: ErrorCode,
    /// What happened, where, and what to do next: one line, at most [`MESSAGE_CHARS_MAX`] long.
    pub message: String,
    /// What an operator needs to find the cause, at most [`DETAIL_BYTES_MAX`] long. Never shown
    /// to the person who owns the job.
    pub detail: Option<String>,
    /// Whether to try again.
    pub kind: FailureKind,
    /// How long to wait before the first retry, where the work itself says so; else the policy does.
    pub pace: Option<Duration>,
}

impl Failure {
    /// A failure that no retry can mend.
    #[must_use]
    pub fn rejected(code: ErrorCode, message: impl AsRef<str>) -> Self {
        Self::new(code, message.as_ref(), FailureKind::Rejected)
    }

    /// A failure that may pass. The retry policy says when to try again.
    #[must_use]
    pub fn retryable(code: ErrorCode, message: impl AsRef<str>) -> Self {
        Self::new(code, message.as_ref(), FailureKind::Retryable { after: None })
    }

    /// A failure that may pass, from a peer that said how long it wants to be left alone.
    #[must_use]
    pub fn retryable_after(code: ErrorCode, message: impl AsRef<str>, after: Duration) -> Self {
        Self::new(code, message.as_ref(), FailureKind::Retryable { after: Some(after) })
    }

    /// Something that the attempt needs is away: to be tried again as if this try had not been.
    #[must_use]
    pub fn away(code: ErrorCode, message: impl AsRef<str>, after: Duration) -> Self {
        Self::new(code, message.as_ref(), FailureKind::Away { after })
    }

    /// Adds what an operator needs to find the cause. The start is kept if it is too long.
    #[must_use]
    pub fn with_detail(mut self, detail: impl AsRef<str>) -> Self {
        self.detail = Some(bounded_detail(detail.as_ref()));
        self
    }

    /// The same, tried again at the work's own pace: the first time after this long, then after twice as long each time.
    #[must_use]
    pub fn paced(mut self, first: Duration) -> Self {
        self.pace = Some(first);
        self
    }

    /// The same when no try follows: what promises one tells what to do instead.
    #[must_use]
    pub fn given_up(mut self) -> Self {
        if let Some(what) = self.message.strip_suffix(PROMISE) {
            self.message = format!("{what}{ADVICE}");
        }
        self
    }

    fn new(code: ErrorCode, message: &str, kind: FailureKind) -> Self {
        Self {
            code,
            message: one_line(message).unwrap_or_else(|| code.sentence().to_owned()),
            detail: None,
            kind,
            pace: None,
        }
    }
}

/// How the sentences of failures that pass by themselves end, and what is true when they did not pass.
const PROMISE: &str = "We'll retry";
const ADVICE: &str = "Retry it later";

impl From<ErrorCode> for Failure {
    /// The failure in its code's own words and usual class, for when nothing more exact is known.
    fn from(code: ErrorCode) -> Self {
        if code.is_retryable() {
            Self::retryable(code, code.sentence())
        } else {
            Self::rejected(code, code.sentence())
        }
    }
}

/// The first line that says anything, or `None`. What follows it in an error text is a stack trace
/// or a dump, which a person must never be shown.
fn one_line(text: &str) -> Option<String> {
    let is_line_end = |c| matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}');
    let line = text
        .split(is_line_end)
        .map(|line| line.trim_matches(|c: char| c.is_whitespace() || c.is_control()))
        .find(|line| !line.is_empty())?;
    // Control characters could drive the terminal of whoever reads it, and PostgreSQL refuses NUL
    // in text, so that the failure itself could not be recorded.
    let printable = |c: char| if c.is_control() { ' ' } else { c };

    if line.chars().nth(MESSAGE_CHARS_MAX).is_none() {
        return Some(line.chars().map(printable).collect());
    }
    let kept = line.chars().take(MESSAGE_CHARS_MAX - 1).map(printable);
    Some(kept.chain(['…']).collect())
}

/// The start of `text`, up to the limit, without NUL (see [`one_line`]). Lines and colours stay:
/// a detail is read as a document.
fn bounded_detail(text: &str) -> String {
    text[..text.floor_char_boundary(DETAIL_BYTES_MAX)].replace('\0', " ")
}

/// The causes of an error, without the error itself: that of an HTTP client names the address, which may hold a password.
pub fn causes(error: &dyn std::error::Error) -> String {
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    if causes.is_empty() { "the connection failed".to_owned() } else { causes.join(": ") }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn codes_are_unique() {
        let names: HashSet<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), ErrorCode::ALL.len());
    }

    #[test]
    fn codes_survive_text_and_json() {
        for &code in ErrorCode::ALL {
            assert_eq!(code.to_string().parse(), Ok(code));
            let json = serde_json::to_string(&code).unwrap();
            assert_eq!(json, format!("\"{}\"", code.as_str()));
            assert_eq!(serde_json::from_str::<ErrorCode>(&json).unwrap(), code);
        }
    }

    #[test]
    fn text_that_is_no_code_is_refused_and_named() {
        for name in ["", "not_pdf", "NOT_PDF ", "ODE-1004"] {
            let refused = name.parse::<ErrorCode>();
            assert_eq!(refused, Err(UnknownErrorCode(name.to_owned())));
        }
    }

    #[test]
    fn promised_copy_is_word_for_word() {
        fn check(name: &str, expected: &str) {
            let code: ErrorCode = name.parse().unwrap();
            assert_eq!(code.sentence(), expected, "{name}");
        }
        check("NOT_PDF", "Only PDF files are supported");
        check("TOO_LARGE", "File exceeds 50 MB limit");
        check("GW_4XX", "Couldn't convert with this mapping");
        check("GW_5XX", "Converter is having an issue. We'll retry");
        check("GW_TIMEOUT", "Conversion is taking too long. We'll retry");
        check("IO_ERROR", "Temporary storage issue. We'll retry");
        check("EXPIRED", "File was removed by retention. Re-upload to regenerate");
        check("NOT_READY", "Conversion not finished yet");
        check("FORBIDDEN", "This file isn't yours");
    }

    #[test]
    fn sentences_fit_a_message_and_leave_the_full_stop_to_the_page() {
        for code in ErrorCode::ALL {
            let sentence = code.sentence();
            assert!(!sentence.ends_with('.'), "{code}: {sentence}");
            assert_eq!(Failure::from(*code).message, sentence);
        }
    }

    #[test]
    fn only_passing_trouble_is_retried() {
        let retryable: Vec<_> =
            ErrorCode::ALL.iter().filter(|code| code.is_retryable()).map(|code| code.as_str()).collect();
        assert_eq!(
            retryable,
            [
                "GW_5XX",
                "GW_TIMEOUT",
                "IO_ERROR",
                "BUSY",
                "UNKNOWN",
                "TIMED_OUT",
                "DATABASE_UNAVAILABLE",
                "ORDER_UNCLEAR",
                "ORDER_FAILED",
                "PROVIDER_AWAY"
            ]
        );
    }

    #[test]
    fn failure_from_a_code_takes_the_usual_class() {
        let passing = Failure::from(ErrorCode::Gw5xx);
        assert_eq!(passing.kind, FailureKind::Retryable { after: None });
        let lasting = Failure::from(ErrorCode::NotPdf);
        assert_eq!(lasting.kind, FailureKind::Rejected);
    }

    #[test]
    fn wait_asked_for_by_the_peer_is_kept() {
        let wait = Duration::from_secs(7);
        let failure = Failure::retryable_after(ErrorCode::Gw5xx, "busy", wait);
        assert_eq!(failure.kind, FailureKind::Retryable { after: Some(wait) });
    }

    #[test]
    fn failure_reads_as_its_message_and_its_code() {
        let failure = Failure::rejected(ErrorCode::TooLarge, "This file is 312 MB.")
            .with_detail("content-length: 327155712");
        assert_eq!(failure.to_string(), "This file is 312 MB. (TOO_LARGE)");
    }

    #[test]
    fn message_is_one_printable_line() {
        fn check(message: &str, expected: &str) {
            let failure = Failure::rejected(ErrorCode::Unknown, message);
            assert_eq!(failure.message, expected, "from {message:?}");
        }
        let sentence = ErrorCode::Unknown.sentence();
        check("Page 7 ends early.", "Page 7 ends early.");
        check("  boom\n    at main.rs:3\n    at std", "boom");
        check("\r\n\n boom\r\nrest", "boom");
        check("boom\u{2028}rest", "boom");
        check("a\tb\0c\u{1b}[31m", "a b c [31m");
        check("\0boom\u{7f} ", "boom");
        check("", sentence);
        check(" \n\0\n ", sentence);
    }

    #[test]
    fn long_message_is_cut_between_characters_and_shows_it() {
        fn check(chars: usize, expected_end: char) {
            let failure = Failure::rejected(ErrorCode::Unknown, "ü".repeat(chars));
            assert_eq!(failure.message.chars().count(), chars.min(500));
            assert_eq!(failure.message.chars().last(), Some(expected_end));
        }
        check(499, 'ü');
        check(500, 'ü');
        check(501, '…');
        check(100_000, '…');
    }

    #[test]
    fn detail_keeps_its_lines_and_its_start() {
        fn check(detail: &str, expected: &str) {
            let failure = Failure::from(ErrorCode::Unknown).with_detail(detail);
            assert_eq!(failure.detail.as_deref(), Some(expected));
        }
        check("boom\n  at main.rs:3\0", "boom\n  at main.rs:3 ");
        check(&"x".repeat(65_537), &"x".repeat(65_536));
        // The limit falls inside the last character here, which is then left out whole.
        check(&format!("x{}", "ü".repeat(40_000)), &format!("x{}", "ü".repeat(32_767)));
    }

    proptest! {
        #[test]
        fn any_text_becomes_a_message_and_detail_within_bounds(text in "(?s).{0,600}") {
            let failure = Failure::retryable(ErrorCode::Unknown, &text).with_detail(&text);
            prop_assert!(!failure.message.is_empty());
            prop_assert!(failure.message.chars().count() <= MESSAGE_CHARS_MAX);
            prop_assert!(!failure.message.contains(char::is_control));
            let detail = failure.detail.unwrap();
            prop_assert!(detail.len() <= DETAIL_BYTES_MAX);
            prop_assert!(!detail.contains('\0'));
        }
    }

    #[test]
    fn every_code_has_a_page_and_every_page_a_code() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/errors");
        let pages: HashSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let expected: HashSet<String> = ErrorCode::ALL.iter().map(|code| format!("{code}.md")).collect();
        assert_eq!(pages, expected);
    }

    #[test]
    fn every_page_says_what_the_code_says_and_what_to_do() {
        for &code in ErrorCode::ALL {
            let retried = if code.is_retryable() { "yes" } else { "no" };
            let head = format!(
                "# {code}\n\n> {}\n\nRetried automatically: {retried}\n\n## What it means\n\n",
                code.sentence()
            );
            let page = code.page();
            assert!(page.starts_with(&head), "{code}.md should begin:\n{head}");
            assert!(page.contains("\n\n## What to do\n\n"), "{code}.md");
        }
    }
}
