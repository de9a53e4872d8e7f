//! Sizes, moments and events as people read them.

use crate::jobs::view::JobView;
use jiff::Timestamp;
use ode_job::{ErrorCode, Event};
use serde_json::Value;

/// A size with the unit that fits it.
pub fn size(bytes: i64) -> String {
    let bytes = bytes.max(0);
    let in_units = |unit: i64| {
        let tenths = (bytes * 10 + unit / 2) / unit;
        if tenths < 100 { format!("{}.{}", tenths / 10, tenths % 10) } else { (tenths / 10).to_string() }
    };
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", in_units(1_000)),
        _ => format!("{} MB", in_units(1_000_000)),
    }
}

/// A moment to the minute. The script writes it in the reader's own time.
pub fn moment(at: Timestamp) -> String {
    at.strftime("%-d %b %Y, %H:%M UTC").to_string()
}

/// About how long, as one would say it.
pub(super) fn left(seconds: u64) -> String {
    match seconds {
        0..=5 => "a few seconds left".into(),
        6..60 => format!("about {} s left", seconds.div_ceil(5) * 5),
        60..5_400 => format!("about {} min left", (seconds + 30) / 60),
        _ => format!("about {} h left", (seconds + 1_800) / 3_600),
    }
}

/// What people call an end that somebody asked for: it is no failure.
pub(super) fn end(job: &JobView) -> Option<&'static str> {
    match job.error.as_ref()?.code.parse() {
        Ok(ErrorCode::Cancelled) => Some("Cancelled"),
        Ok(ErrorCode::Stopped) => Some("Stopped"),
        _ => None,
    }
}

/// Why a job ended badly and what a visitor can do, where its own message speaks to somebody else.
pub(super) fn why(code: &str, message: &str) -> String {
    let said = match code.parse() {
        Ok(ErrorCode::Cancelled) => "You called it off before it started. Retry it if you still need it.",
        Ok(ErrorCode::Stopped) => "It was stopped on request. Retry it to start over.",
        Ok(ErrorCode::NoMapping) => {
            "No mapping recognises this document. If it is an invoice, convert it again with a mapping that you choose."
        }
        _ => message,
    };
    said.to_owned()
}

/// What happened, as a sentence says it.
pub(super) fn event(event: Event, meta: Option<&Value>) -> &'static str {
    match event {
        Event::Failed if is_asked_for(meta) => "Stopped",
        Event::Created => "Received",
        Event::Queued => "Waiting for its turn",
        Event::Started => "Conversion started",
        Event::Succeeded => "Converted",
        Event::Failed => "Failed",
        Event::TimedOut => "Took too long and was ended",
        Event::Retried => "To be tried again",
        Event::Cancelled => "Cancelled",
        Event::Stopped => "Asked to stop",
        Event::Released => "Given back by a worker that was stopping",
        Event::Rescued => "Taken back from a worker that was lost",
        Event::Advanced => "Went on to its next step",
        Event::Delivered => "Delivered",
        Event::Downloaded => "Downloaded",
        Event::Expired => "File was removed by retention",
    }
}

fn is_asked_for(meta: Option<&Value>) -> bool {
    let code = meta.and_then(|meta| meta["code"].as_str()?.parse().ok());
    matches!(code, Some(ErrorCode::Cancelled | ErrorCode::Stopped))
}

/// Particulars of an event: only what helps who reads it. Addresses of ours do not.
pub(super) fn particulars(meta: &Value) -> Option<String> {
    let text = |name: &str| meta[name].as_str().filter(|_| !is_asked_for(Some(meta))).map(str::to_owned);
    let number = |name: &str| meta[name].as_i64();
    let parts = [
        text("message").map(|message| {
            let message = why(meta["code"].as_str().unwrap_or_default(), &message);
            message.trim_end_matches('.').to_owned()
        }),
        text("code"),
        number("status").map(|status| format!("answered {status}")),
        number("duration_ms").map(duration),
        number("attempt").map(|attempt| format!("attempt {attempt}")),
    ];
    let told: Vec<String> = parts.into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join(" · "))
}

/// A duration that was measured.
fn duration(milliseconds: i64) -> String {
    match milliseconds {
        ..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds % 60_000 / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sizes_have_the_unit_that_fits() {
        let told = [0, 999, 1_000, 1_250, 99_900, 1_000_000, 52_428_800].map(size);
        assert_eq!(told, ["0 bytes", "999 bytes", "1.0 kB", "1.3 kB", "99 kB", "1.0 MB", "52 MB"]);
    }

    #[test]
    fn what_is_left_is_told_roughly() {
        let told = [0, 6, 30, 31, 89, 90, 3_600, 7_200].map(left);
        let expected = [
            "a few seconds left",
            "about 10 s left",
            "about 30 s left",
            "about 35 s left",
            "about 1 min left",
            "about 2 min left",
            "about 60 min left",
            "about 2 h left",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn particulars_are_told_where_they_are_known() {
        let meta =
            json!({ "gateway": "http://gateway:8000", "status": 502, "duration_ms": 1_250, "worker": "x" });
        assert_eq!(particulars(&meta).as_deref(), Some("answered 502 · 1.2 s"));
        assert_eq!(particulars(&json!({})), None);
        let refused = json!({ "code": "NO_MAPPING", "message": "Make one with `ode mapping learn`." });
        assert!(particulars(&refused).unwrap().ends_with("with a mapping that you choose · NO_MAPPING"));
        let stopped = json!({ "code": "STOPPED", "message": "The job was stopped.", "attempt": 1 });
        assert_eq!(event(Event::Failed, Some(&stopped)), "Stopped");
        assert_eq!(particulars(&stopped).as_deref(), Some("attempt 1"));
    }
}
