//! `POST /api/upload`: files in, a job for each.
//!
//! A file goes to the file store piece by piece while it comes, and is looked at and hashed on the way. Jobs are made
//! when the whole form is there, so that its fields may come in any order; each together with its file, in one
//! transaction. What is refused leaves nothing: no job, no file.

use crate::App;
use crate::callers::caller::Caller;
use crate::jobs::intake::{self, Received, Wanted};
use crate::jobs::view::JobView;
use crate::server::door::Door;
use crate::server::form::{Field, Form, UNBOUNDED, Unread};
use crate::server::problem::{Problem, ProblemDocument, Sending, sentence};
use axum::Json;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use ode_job::{ErrorCode, JobId, Phase};
use ode_store::{Accepted, Enqueued, OwnedJob};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use utoipa::ToSchema;

/// Files in one form.
const FILES_MAX: usize = 100;
/// A mapping's name is the longest of the other fields.
const TEXT_BYTES_MAX: usize = 200;
/// Of a name that is not known, so much is repeated.
const NAME_SHOWN_MAX: usize = 40;
/// So much of what is refused in a form is read, and dropped, to reach what comes after it: what is good is taken, and fields may
/// come last.
const SKIPPED_BYTES_MAX: u64 = 256_000_000;
/// Longer names of mappings are none.
const MAPPING_CHARS_MAX: usize = 100;
/// A sender that is silent for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// A file that takes longer is refused. Much longer, and a cleanup would take what came of it for something that was left.
const TAKES_MAX: Duration = Duration::from_hours(2);
/// Names of files are shown, and become part of no path; longer ones are cut.
const FILENAME_CHARS_MAX: usize = 200;
/// File systems take 255, and whoever keeps a result adds an ending of theirs.
const FILENAME_BYTES_MAX: usize = 240;
/// What is longer is no ending.
const ENDING_BYTES_MAX: usize = 16;
const FIELDS: &str = "It takes file, as often as you like, and mapping and output once.";

/// A form with documents.
#[derive(ToSchema)]
#[schema(as = Upload)]
pub struct UploadForm {
    /// The PDFs.
    #[expect(dead_code, reason = "only describes the form")]
    #[schema(value_type = Vec<String>, format = Binary)]
    file: (),
    /// Which mapping makes the XML, or `auto`; `html5` makes a page instead.
    #[expect(dead_code, reason = "only describes the form")]
    mapping: Option<String>,
    /// Which XML: `own`, `ubl` or `cii`.
    #[expect(dead_code, reason = "only describes the form")]
    output: Option<String>,
}

/// What became of an upload.
#[derive(Debug, Serialize, ToSchema)]
pub struct Uploaded {
    /// The job, where one file was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<JobView>,
    /// What became of each file, in the order sent.
    files: Vec<FileOutcome>,
}

/// What became of a file.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileOutcome {
    /// Its name.
    pub filename: String,
    /// 201 for a new job, 202 for a job about the same file that is under way, 200 for one that is done, or the status
    /// of the problem.
    pub status: u16,
    /// Whether the same file was sent before.
    pub is_duplicate: bool,
    /// Its job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobView>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<ProblemDocument>,
}

/// Takes documents and makes a job for each.
#[utoipa::path(post, path = "/api/upload", tag = "jobs",
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 201, body = Uploaded, description = "At least one new job; perhaps not all files were taken"),
        (status = 202, body = Uploaded, description = "The same file is being converted already"),
        (status = 200, body = Uploaded, description = "The same file was converted before"),
        Sending))]
pub async fn upload(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    let (outcomes, problems) = take(&app, &caller, request).await?;
    answer(outcomes, problems)
}

/// Takes what a form holds; what became of each file, and what was wrong with those that were refused.
pub async fn take(
    app: &App,
    caller: &Caller,
    request: Request,
) -> Result<(Vec<FileOutcome>, Vec<Problem>), Problem> {
    app.check_disk()?;
    let form = Form::of(request, UNBOUNDED).ok_or_else(|| {
        Problem::with_status(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorCode::Invalid,
            "Send documents as multipart/form-data with a boundary, each in a field named file.",
        )
    })?;
    let Upload { files, mapping, output } = Upload::read(app, caller, form).await?;
    let wanted = Wanted { mapping: &mapping, output: output.as_deref() };
    // All at once, so that they share a commit.
    let accepted = files.into_iter().map(|(filename, received)| async move {
        let accepted = match received {
            Ok(received) => intake::accept(app, caller, &filename, received, wanted).await,
            Err(problem) => Err(problem),
        };
        (filename, accepted)
    });
    outcomes(app, join_all(accepted).await).await
}

/// What became of each file, and what was wrong with those that were refused.
async fn outcomes(
    app: &App,
    accepted: Vec<(String, Result<Accepted, Problem>)>,
) -> Result<(Vec<FileOutcome>, Vec<Problem>), Problem> {
    let taken = accepted.iter().filter_map(|(_, accepted)| accepted.as_ref().ok());
    let (known, unknown): (Vec<&Accepted>, Vec<&Accepted>) =
        taken.partition(|accepted| accepted.job.is_some());
    let ids = unknown.iter().map(|accepted| accepted.id());
    // How long a new one will take is for the list to say: an upload must not cost more the longer the line is.
    let is_twin = |enqueued: &Enqueued| matches!(enqueued, Enqueued::Existing(_));
    let twins = unknown.iter().map(|accepted| accepted.enqueued).filter(is_twin);
    let twins: Vec<JobId> = twins.map(Enqueued::id).collect();
    let (read, left) = tokio::try_join!(app.store.jobs_by_id(ids), app.kinds.times_left(&app.store, &twins))?;
    let view = |job: &OwnedJob| {
        let (id, kind) = (job.record.id, app.kinds.of(job.record.pipeline));
        (id, JobView::new(kind, job, left.get(&id).copied()))
    };
    let jobs = known.iter().filter_map(|accepted| accepted.job.as_ref()).chain(&read);
    let jobs: HashMap<JobId, JobView> = jobs.map(view).collect();
    let mut problems = Vec::new();
    let outcome = |(filename, accepted): (String, Result<Accepted, Problem>)| match accepted {
        Ok(Accepted { enqueued, .. }) => {
            let job = jobs.get(&enqueued.id()).cloned();
            let is_duplicate = is_twin(&enqueued);
            let status = match job.as_ref().map(|job| job.phase) {
                _ if !is_duplicate => StatusCode::CREATED,
                Some(Phase::Done) => StatusCode::OK,
                _ => StatusCode::ACCEPTED,
            };
            FileOutcome { filename, status: status.as_u16(), is_duplicate, job, problem: None }
        }
        Err(problem) => {
            let (status, document) = (problem.status().as_u16(), problem.document());
            problems.push(problem);
            FileOutcome { filename, status, is_duplicate: false, job: None, problem: Some(document) }
        }
    };
    let outcomes = accepted.into_iter().map(outcome).collect();
    Ok((outcomes, problems))
}

/// One answer for all files: the best that can be said of any of them, or what was wrong with the first.
fn answer(outcomes: Vec<FileOutcome>, problems: Vec<Problem>) -> Result<Response, Problem> {
    let taken = outcomes.iter().filter(|outcome| outcome.job.is_some()).map(|outcome| outcome.status);
    let status = [StatusCode::CREATED, StatusCode::ACCEPTED, StatusCode::OK];
    let taken: Vec<u16> = taken.collect();
    let Some(status) = status.into_iter().find(|status| taken.contains(&status.as_u16())) else {
        return Err(problems.into_iter().next().unwrap_or_else(Problem::our_fault));
    };
    let job = match outcomes.as_slice() {
        [only] => only.job.clone(),
        _ => None,
    };
    let location = job.as_ref().and_then(|job| HeaderValue::from_str(job.address()).ok());
    let mut response = (status, Json(Uploaded { job, files: outcomes })).into_response();
    if let Some(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// What a form held.
struct Upload {
    files: Vec<(String, Result<Received, Problem>)>,
    mapping: String,
    output: Option<String>,
}

impl Upload {
    async fn read(app: &App, caller: &Caller, mut form: Form) -> Result<Self, Problem> {
        let (mut files, mut mapping, mut output) = (Vec::new(), None, None);
        let mut skipped = 0;
        while let Some(mut field) = patient(form.next_field()).await? {
            let name = field.name().to_owned();
            let is_first = match name.as_str() {
                "file" | "files" | "files[]" => {
                    if files.len() == FILES_MAX {
                        return Err(Problem::invalid(format!(
                            "A form may hold {FILES_MAX} files. This one has more, and none was taken: send them in several."
                        )));
                    }
                    let filename = plain_name(field.filename().unwrap_or_default());
                    let received = receive(app, caller, &mut field).await;
                    if let Err(problem) = &received {
                        skip(&mut field, &mut skipped, problem).await?;
                    }
                    files.push((filename, received));
                    true
                }
                "mapping" => mapping.replace(text(&mut field, TEXT_BYTES_MAX).await?).is_none(),
                "output" => output.replace(text(&mut field, TEXT_BYTES_MAX).await?).is_none(),
                _ => return Err(unknown_field(&name, FIELDS)),
            };
            if !is_first {
                return Err(Problem::invalid(format!("The form has the field {name} twice. {FIELDS}")));
            }
        }
        if files.is_empty() {
            return Err(Problem::invalid("The form has no field named file, which holds a PDF."));
        }
        let mapping = mapping.filter(|mapping| !mapping.is_empty());
        let mapping = mapping.or_else(|| app.settings.mapping_default.clone()).ok_or_else(|| {
            Problem::invalid(
                "The form has no field named mapping, and no mapping is used without being named.",
            )
        })?;
        let output = output.filter(|output| !output.is_empty());
        check_mapping(&mapping)?;
        check_output(app, output.as_deref())?;
        Ok(Upload { files, mapping, output })
    }
}

/// Refuses a field of a form by its name; `takes` says which ones there are.
pub fn unknown_field(name: &str, takes: &str) -> Problem {
    let shown: String = name.chars().filter(|c| !c.is_control()).take(NAME_SHOWN_MAX).collect();
    Problem::invalid(format!("The form has a field \"{shown}\" that is not known. {takes}"))
}

/// Which mappings there are is for the conversion to say: the door only asks for a name.
pub fn check_mapping(mapping: &str) -> Result<(), Problem> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if mapping.len() <= MAPPING_CHARS_MAX && mapping.chars().all(is_plain) {
        return Ok(());
    }
    Err(Problem::invalid(format!(
        "A mapping's name has up to {MAPPING_CHARS_MAX} letters and digits, with _ - . between them."
    )))
}

/// Refuses a form of results that no pipeline makes.
pub fn check_output(app: &App, output: Option<&str>) -> Result<(), Problem> {
    let known: Vec<&str> =
        app.kinds.intakes().flat_map(|intake| intake.outputs).map(|output| output.name).collect();
    match (output, known.split_last()) {
        (None, _) => Ok(()),
        (Some(output), _) if known.contains(&output) => Ok(()),
        (Some(_), Some((last, others))) => {
            Err(Problem::invalid(format!("The field output is {} or {last}.", others.join(", "))))
        }
        (Some(_), None) => Err(Problem::invalid("The field output is not used here. Leave it out.")),
    }
}

/// Stores a file while it comes, unless it turns out that it cannot be taken.
async fn receive(app: &App, caller: &Caller, field: &mut Field<'_>) -> Result<Received, Problem> {
    app.limits.upload(caller).await?;
    take_in(app, field).await
}

/// The same, whoever sends it and however often.
pub async fn take_in(app: &App, field: &mut Field<'_>) -> Result<Received, Problem> {
    take_until(app, field, Instant::now() + TAKES_MAX).await
}

async fn take_until(app: &App, field: &mut Field<'_>, deadline: Instant) -> Result<Received, Problem> {
    let bytes_max = app.settings.upload_bytes_max;
    let (mut incoming, mut door) = (app.blobs.receive(), Door::default());
    while let Some(piece) = patient(field.piece()).await? {
        if Instant::now() > deadline {
            let hours = TAKES_MAX.as_secs() / 3600;
            return Err(Problem::too_slow(format!(
                "A file may take {hours} hours to arrive. Send it over a faster connection."
            )));
        }
        if incoming.bytes() + piece.len() as u64 > bytes_max {
            return Err(too_large(bytes_max));
        }
        door.see(&piece).map_err(unfit)?;
        incoming.write(&piece).await?;
    }
    if incoming.bytes() == 0 {
        return Err(empty());
    }
    door.leave().map_err(unfit)?;
    let stored = incoming.finish().await?;
    Ok(Received::new(&app.blobs, stored))
}

/// Reads past the rest of a file that was refused. If there is too much of it, or nothing comes any more, nothing of the form
/// is taken.
async fn skip(field: &mut Field<'_>, skipped: &mut u64, problem: &Problem) -> Result<(), Problem> {
    if problem.status() == StatusCode::REQUEST_TIMEOUT {
        return Err(problem.clone());
    }
    while let Some(piece) = patient(field.piece()).await? {
        *skipped += piece.len() as u64;
        if *skipped > SKIPPED_BYTES_MAX {
            let rest = "The rest of the form was not read, and nothing of it was taken.";
            return Err(problem.clone().reworded(|detail| format!("{detail} {rest}")));
        }
    }
    Ok(())
}

pub async fn text(field: &mut Field<'_>, bytes_max: usize) -> Result<String, Problem> {
    let mut text = Vec::new();
    while let Some(piece) = patient(field.piece()).await? {
        if text.len() + piece.len() > bytes_max {
            return Err(Problem::invalid(format!(
                "A field besides file is longer than {bytes_max} characters. Send less in it."
            )));
        }
        text.extend_from_slice(&piece);
    }
    let text = String::from_utf8(text);
    text.map_err(|_| Problem::invalid("A field besides file is not text in UTF-8."))
}

/// Waits for what comes next, but not for ever.
pub async fn patient<T>(next: impl Future<Output = Result<Option<T>, Unread>>) -> Result<Option<T>, Problem> {
    match tokio::time::timeout(SILENCE_MAX, next).await {
        Ok(Ok(next)) => Ok(next),
        Ok(Err(_)) => Err(Problem::invalid("The form is damaged or ends early. Send it again.")),
        Err(_) => Err(Problem::too_slow(format!(
            "Nothing came for {} seconds. Send it again.",
            SILENCE_MAX.as_secs()
        ))),
    }
}

/// What the door says of a file, with what to do.
fn unfit(code: ErrorCode) -> Problem {
    match code {
        ErrorCode::NotPdf => {
            let what = sentence(code.sentence());
            Problem::new(
                code,
                format!("{what} This file is none, whatever its name says: save it as one and send that."),
            )
        }
        code => code.into(),
    }
}

fn too_large(bytes_max: u64) -> Problem {
    let limit = bytes_max / 1_000_000;
    let detail = format!(
        "This file is larger than {limit} MB ({bytes_max} bytes), which is the limit. Split it, or save it with smaller pictures."
    );
    Problem::new(ErrorCode::TooLarge, detail).titled(format!("File exceeds {limit} MB limit"))
}

fn empty() -> Problem {
    Problem::new(ErrorCode::NotPdf, "This file is empty. Export or download it again.")
}

/// A name that files may have everywhere. Its ending says what it is, and stays.
fn shortened(name: &str) -> String {
    let (stem, ending) = match name.rfind('.').map(|dot| name.split_at(dot)) {
        Some((stem, ending)) if ending.len() <= ENDING_BYTES_MAX => (stem, ending),
        Some(_) | None => (name, ""),
    };
    let chars_max = FILENAME_CHARS_MAX - ending.chars().count();
    let fits = |(at, c): &(usize, char)| at + c.len_utf8() + ending.len() <= FILENAME_BYTES_MAX;
    let kept: String = stem.char_indices().take(chars_max).take_while(fits).map(|(_, c)| c).collect();
    kept.trim_end().to_owned() + ending
}

/// The last part of a file's name, without anything that would change a line or a screen.
pub fn plain_name(name: &str) -> String {
    // Browsers write these three as they stand in a quoted line, and only these.
    let name = name.replace("%22", "\"").replace("%0D", "").replace("%0A", "");
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_odd = |c: &char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let plain: String = name.chars().filter(|c| !is_odd(c)).collect();
    let plain = shortened(plain.trim());
    // A name that is nothing but an ending is none.
    let is_name =
        plain.rsplit_once('.').map_or(plain.as_str(), |(stem, _)| stem).chars().any(|c| c != '.' && c != ' ');
    if is_name { plain.trim_start_matches('.').to_owned() } else { "document.pdf".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[tokio::test]
    async fn a_file_that_takes_too_long_is_refused() {
        let files = tempfile::tempdir().unwrap();
        let app = crate::site::tests::app(files.path(), |_| ()).await;
        for (left, status) in [(Duration::ZERO, Some(StatusCode::REQUEST_TIMEOUT)), (TAKES_MAX, None)] {
            let body = "--B\r\nContent-Disposition: form-data; name=file\r\n\r\n%PDF-1.7\nstartxref\r\n--B--";
            let request = Request::builder().header("content-type", "multipart/form-data; boundary=B");
            let mut form = Form::of(request.body(Body::from(body)).unwrap(), UNBOUNDED).unwrap();
            let mut field = form.next_field().await.unwrap().unwrap();
            let taken = take_until(&app, &mut field, Instant::now() + left).await;
            assert_eq!(taken.err().map(|problem| problem.status()), status);
        }
    }

    #[tokio::test]
    async fn what_is_refused_is_read_past_within_bounds() {
        async fn check(skipped: u64, problem: Problem, expected: Result<(), &str>) {
            let body = "--B\r\nContent-Disposition: form-data; name=file\r\n\r\njust text\r\n--B--";
            let request = Request::builder().header("content-type", "multipart/form-data; boundary=B");
            let mut form = Form::of(request.body(Body::from(body)).unwrap(), UNBOUNDED).unwrap();
            let mut field = form.next_field().await.unwrap().unwrap();
            let told = skip(&mut field, &mut { skipped }, &problem).await;
            assert_eq!(told.map_err(|problem| problem.document().detail), expected.map_err(str::to_owned));
        }
        let refused = Problem::invalid("It is no PDF.");
        check(SKIPPED_BYTES_MAX - 9, refused.clone(), Ok(())).await;
        let rest = "It is no PDF. The rest of the form was not read, and nothing of it was taken.";
        check(SKIPPED_BYTES_MAX - 8, refused, Err(rest)).await;
        check(0, Problem::too_slow("Nothing came."), Err("Nothing came.")).await;
    }

    #[test]
    fn a_name_is_shown_and_leads_nowhere() {
        fn check(name: &str, expected: &str) {
            assert_eq!(plain_name(name), expected, "{name:?}");
        }
        check("Rechnung März.pdf", "Rechnung März.pdf");
        check("../../etc/passwd", "passwd");
        check("C:\\Users\\ada\\a.pdf", "a.pdf");
        check("a\r\nSet-Cookie: x=1.pdf", "aSet-Cookie: x=1.pdf");
        check("\u{202e}fdp.exe", "fdp.exe");
        check("a%22b%0D%0A.pdf", "a\"b.pdf");
        check("100%25.pdf", "100%25.pdf");
        check(".pdf", "document.pdf");
        check("..", "document.pdf");
        check("", "document.pdf");
        check(&"x".repeat(1000), &"x".repeat(FILENAME_CHARS_MAX));
        check(&("x".repeat(300) + ".pdf"), &("x".repeat(FILENAME_CHARS_MAX - 4) + ".pdf"));
        check(&("発".repeat(200) + ".pdf"), &("発".repeat((FILENAME_BYTES_MAX - 4) / 3) + ".pdf"));
        check(
            &("a.".to_owned() + &"x".repeat(1000)),
            &("a.".to_owned() + &"x".repeat(FILENAME_CHARS_MAX - 2)),
        );
    }
}
