//! Forms with files in them (`multipart/form-data`, RFC 7578), read while they come. What a field holds is handed on as it
//! came from the connection, without a buffer in between.

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, header};
use bytes::{Buf as _, Bytes};
use futures_util::{Stream, StreamExt as _, stream};
use memchr::memmem::{self, Finder};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// What is written above a field: its name, that of a file, and its type. The longest name that a file system takes, each
/// byte of it as three characters, needs a tenth.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// An empty line.
const HEAD_END: &[u8] = b"\r\n\r\n";
/// Looked at in one step. Above a field there are rarely more.
const HEAD_STEP: usize = 512;
/// As RFC 2046 has it.
const BOUNDARY_BYTES_MAX: usize = 70;

/// The size of a form each of whose fields has a bound of its own.
pub const UNBOUNDED: u64 = u64::MAX;

/// A form that is being read.
pub struct Form {
    body: BodyDataStream,
    /// How much of the body may still come.
    bytes_left: u64,
    /// What ends a field: the end of a line, two dashes and the boundary.
    delimiter: Finder<'static>,
    /// What came and was not handed on yet.
    pending: Bytes,
    /// Whether what comes next belongs to a field, or to what may stand before the first.
    is_inside: bool,
}

/// Why a form cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// It is no form, or it ends early.
    Damaged,
    /// There is more of it than may be.
    TooLarge,
}

impl Form {
    /// Begins to read the form that a request brings, up to so many bytes. None if it brings something else.
    pub fn of(request: Request<Body>, bytes_max: u64) -> Option<Self> {
        let kind = request.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
        let is_form = kind.split(';').next()?.trim().eq_ignore_ascii_case("multipart/form-data");
        let boundary = parameter(kind, "boundary").filter(|_| is_form)?;
        if boundary.is_empty() || boundary.len() > BOUNDARY_BYTES_MAX {
            return None;
        }
        Some(Form {
            body: request.into_body().into_data_stream(),
            bytes_left: bytes_max,
            delimiter: Finder::new(format!("\r\n--{boundary}").as_bytes()).into_owned(),
            // Before the first boundary there need be no line.
            pending: Bytes::from_static(b"\r\n"),
            is_inside: true,
        })
    }

    /// The next field, if there is one. What was not read of the one before is left out.
    pub async fn next_field(&mut self) -> Result<Option<Field<'_>>, Unread> {
        while self.is_inside {
            self.piece().await?;
        }
        let Some(head) = self.head().await? else { return Ok(None) };
        self.is_inside = true;
        let head = String::from_utf8_lossy(&head);
        let about = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-disposition").then_some(value)
        });
        let about = about.unwrap_or_default();
        let filename = parameter(about, "filename*").and_then(|name| extended(&name));
        Ok(Some(Field {
            name: parameter(about, "name"),
            filename: filename.or_else(|| parameter(about, "filename")),
            form: self,
        }))
    }

    /// The next piece of a field; none at its end.
    async fn piece(&mut self) -> Result<Option<Bytes>, Unread> {
        while self.is_inside {
            let delimiter = self.delimiter.needle();
            let found = self.delimiter.find(&self.pending);
            // What may be the beginning of the end waits for what comes after it.
            let sure = found.unwrap_or_else(|| self.pending.len() - begun(&self.pending, delimiter));
            if sure > 0 {
                return Ok(Some(self.pending.split_to(sure)));
            }
            if found.is_some() {
                self.pending.advance(delimiter.len());
                self.is_inside = false;
                break;
            }
            let next = self.next_bytes().await?;
            let begun = std::mem::replace(&mut self.pending, next);
            let rest = &self.delimiter.needle()[begun.len()..];
            if begun.is_empty() {
                continue;
            }
            if self.pending.len() < rest.len() {
                // Too little to tell, and so little to copy.
                self.pending = [begun, std::mem::take(&mut self.pending)].concat().into();
            } else if self.pending.starts_with(rest) {
                self.pending.advance(rest.len());
                self.is_inside = false;
            } else {
                return Ok(Some(begun));
            }
        }
        Ok(None)
    }

    /// What stands between a boundary and the content of its field; none after the last boundary.
    async fn head(&mut self) -> Result<Option<Vec<u8>>, Unread> {
        let mut head = Vec::new();
        loop {
            if self.pending.is_empty() {
                self.pending = self.next_bytes().await?;
            }
            let looked_at = head.len();
            head.extend_from_slice(&self.pending[..self.pending.len().min(HEAD_STEP)]);
            let from = looked_at.saturating_sub(HEAD_END.len() - 1);
            let end = memmem::find(&head[from..], HEAD_END).map(|end| from + end + HEAD_END.len());
            head.truncate(end.unwrap_or(head.len()));
            self.pending.advance(head.len() - looked_at);
            if head.starts_with(b"--") {
                // So it stays, however often somebody asks.
                self.pending = Bytes::from_static(b"--");
                return Ok(None);
            }
            let line = memmem::find(&head, b"\r\n").map_or(&[][..], |end| &head[..end]);
            if head.len() > HEAD_BYTES_MAX || !line.iter().all(|byte| b" \t".contains(byte)) {
                return Err(Unread::Damaged);
            }
            if end.is_some() {
                return Ok(Some(head));
            }
        }
    }

    async fn next_bytes(&mut self) -> Result<Bytes, Unread> {
        let Some(Ok(bytes)) = self.body.next().await else { return Err(Unread::Damaged) };
        let left = self.bytes_left.checked_sub(bytes.len() as u64);
        self.bytes_left = left.ok_or(Unread::TooLarge)?;
        Ok(bytes)
    }
}

/// How many of the last bytes may be the beginning of a delimiter. It has but one end of a line in it, its first, so that
/// there is one place to look at.
fn begun(bytes: &[u8], delimiter: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(delimiter.len() - 1)..];
    let begun = memchr::memrchr(b'\r', last).map_or(&[][..], |at| &last[at..]);
    if delimiter.starts_with(begun) { begun.len() } else { 0 }
}

/// A field of a form.
pub struct Field<'a> {
    form: &'a mut Form,
    name: Option<String>,
    filename: Option<String>,
}

impl<'a> Field<'a> {
    /// What it is called.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// What the file in it is called, where it says so. Anybody may write anything here.
    pub fn filename(&self) -> Option<&str> {
        self.filename.as_deref()
    }

    /// The next piece of what it holds; none at its end.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, Unread> {
        self.form.piece().await
    }

    /// All that it holds, piece by piece.
    pub fn pieces(self) -> impl Stream<Item = Result<Bytes, Unread>> + use<'a> {
        stream::try_unfold(self, async |mut field: Field<'a>| {
            Ok(field.piece().await?.map(|piece| (piece, field)))
        })
    }
}

/// A parameter of a header: what stands behind `name=`, with or without quotes.
fn parameter(header: &str, wanted: &str) -> Option<String> {
    let (_, mut rest) = header.split_once(';')?;
    loop {
        let (name, after) = rest.split_once('=')?;
        let (value, after) = value(after.trim_start());
        // A word without a value may stand before it.
        let name = name.rsplit(';').next().unwrap_or(name).trim();
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = after;
    }
}

/// A value, and what comes after it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_at(text.find(';').unwrap_or(text.len()));
        return (value.trim().to_owned(), rest);
    };
    let mut from = 0;
    while let Some(at) = quoted[from..].find('"').map(|at| from + at) {
        if !quoted[..at].ends_with('\\') {
            // Only quotes are marked: other programs write the path of a file as it is.
            return (quoted[..at].replace("\\\"", "\""), &quoted[at + 1..]);
        }
        from = at + 1;
    }
    (quoted.to_owned(), "")
}

/// A value that names its encoding (RFC 8187), if it is the one that everybody writes.
fn extended(value: &str) -> Option<String> {
    let mut parts = value.splitn(3, '\'');
    let is_utf8 = parts.next()?.eq_ignore_ascii_case("utf-8");
    decoded(parts.nth(1).filter(|_| is_utf8)?)
}

/// Decodes percent-encoded text (`%C3%A4`); `None` if the result is not UTF-8. A `%` without two digits stays.
pub fn decoded(encoded: &str) -> Option<String> {
    percent_decode_str(encoded).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "multipart/form-data; boundary=B";

    /// A form that comes in pieces of this size.
    fn form(kind: &str, body: &[u8], size: usize) -> Option<Form> {
        let pieces: Vec<_> =
            body.chunks(size).map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))).collect();
        let body = Body::from_stream(stream::iter(pieces));
        Form::of(Request::builder().header("content-type", kind).body(body).unwrap(), 10_000)
    }

    /// Each field by its name, that of its file, if there is one, and its content.
    async fn read(body: &[u8], size: usize) -> Result<Vec<[String; 3]>, Unread> {
        let mut form = form(KIND, body, size).unwrap();
        let mut fields = Vec::new();
        while let Some(mut field) = form.next_field().await? {
            let (name, filename) = (field.name().to_owned(), field.filename().unwrap_or("-").to_owned());
            let mut content = Vec::new();
            while let Some(piece) = field.piece().await? {
                assert!(!piece.is_empty());
                content.extend_from_slice(&piece);
            }
            fields.push([name, filename, String::from_utf8(content).unwrap()]);
        }
        assert!(form.next_field().await?.is_none(), "the end stays the end");
        Ok(fields)
    }

    /// However a form is cut into pieces, it says the same.
    #[track_caller]
    fn check(body: &str, expected: Result<&[[&str; 3]], Unread>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let expected =
            expected.map(|fields| fields.iter().map(|field| field.map(str::to_owned)).collect::<Vec<_>>());
        for size in (1..=body.len().min(200)).chain([body.len().max(1)]) {
            assert_eq!(runtime.block_on(read(body.as_bytes(), size)), expected, "pieces of {size} bytes");
        }
    }

    fn part(about: &str, content: &str) -> String {
        format!("--B\r\nContent-Disposition: form-data; {about}\r\n\r\n{content}\r\n")
    }

    #[test]
    fn fields_are_told_by_name_and_content() {
        let form =
            part("name=\"a\"", "one") + &part("name=b; filename=\"c d.pdf\"", "two\r\nlines") + "--B--\r\n";
        check(&form, Ok(&[["a", "-", "one"], ["b", "c d.pdf", "two\r\nlines"]]));
        check("--B--", Ok(&[]));
        check(&(part("name=\"a\"", "") + "--B--"), Ok(&[["a", "-", ""]]));
    }

    #[test]
    fn what_looks_like_an_end_and_is_none_belongs_to_the_field() {
        for content in [
            "\r",
            "\r\n",
            "\r\n-",
            "\r\n--",
            "\r\n\r\n--",
            "\r\r\n--A",
            "--B",
            "\r\n --B",
            "\n--B\r",
            "\r\n\r",
        ] {
            check(&(part("name=a", content) + "--B--\r\n"), Ok(&[["a", "-", content]]));
        }
    }

    #[test]
    fn what_stands_before_the_first_field_and_after_the_last_is_left_out() {
        let form = "For those\r\nwho cannot read it\r\n".to_owned()
            + &part("name=a", "one")
            + "--B--\r\nEnd\r\n--B\r\n\r\n";
        check(&form, Ok(&[["a", "-", "one"]]));
        check(
            "--B \t\r\nContent-Type: text/plain\r\ncontent-disposition:form-data;name=a\r\n\r\none\r\n--B--",
            Ok(&[["a", "-", "one"]]),
        );
        check("--B\r\n\r\none\r\n--B--", Ok(&[["", "-", "one"]]));
    }

    #[test]
    fn a_form_that_ends_early_is_damaged() {
        let whole = part("name=a", "one") + "--B--";
        for end in 0..whole.len() {
            check(&whole[..end], Err(Unread::Damaged));
        }
        check("", Err(Unread::Damaged));
        check("just text", Err(Unread::Damaged));
        check("--B3\r\n\r\none\r\n--B--", Err(Unread::Damaged));
    }

    #[test]
    fn what_stands_above_a_field_has_a_size() {
        let form = |bytes: usize| format!("--B\r\nname: {}\r\n\r\none\r\n--B--", "x".repeat(bytes));
        check(&form(HEAD_BYTES_MAX - 500), Ok(&[["", "-", "one"]]));
        check(&form(HEAD_BYTES_MAX + 500), Err(Unread::Damaged));
    }

    #[test]
    fn a_form_has_a_size() {
        check(&(part("name=a", &"x".repeat(10_000)) + "--B--"), Err(Unread::TooLarge));
    }

    #[tokio::test]
    async fn a_field_that_is_not_read_is_left_out() {
        let body = part("name=a", &"one\r\n".repeat(100)) + &part("name=b", "two") + "--B--";
        let mut form = form(KIND, body.as_bytes(), 7).unwrap();
        assert_eq!(form.next_field().await.unwrap().unwrap().name(), "a");
        let field = form.next_field().await.unwrap().unwrap();
        assert_eq!(field.name(), "b");
        let pieces: Vec<_> = field.pieces().collect().await;
        assert_eq!(pieces.into_iter().flat_map(Result::unwrap).collect::<Vec<u8>>(), b"two");
    }

    #[test]
    fn a_boundary_is_found_and_other_types_are_no_forms() {
        for kind in
            [KIND, "Multipart/Form-Data;charset=utf-8; Boundary=\"B\"", "multipart/form-data;boundary = B ;x"]
        {
            assert!(form(kind, b"", 1).is_some_and(|form| form.delimiter.needle() == b"\r\n--B"), "{kind}");
        }
        let long = format!("{KIND}{}", "B".repeat(BOUNDARY_BYTES_MAX));
        for kind in [
            "multipart/form-data",
            "multipart/mixed; boundary=B",
            "text/plain",
            "multipart/form-data; boundary=",
            &long,
        ] {
            assert!(form(kind, b"", 1).is_none(), "{kind}");
        }
    }

    #[test]
    fn names_are_read_as_programs_write_them() {
        fn check(about: &str, expected: &str) {
            let name = parameter(about, "filename*").and_then(|name| extended(&name));
            let name = name.or_else(|| parameter(about, "filename"));
            assert_eq!(name.as_deref(), Some(expected), "{about}");
        }
        check("form-data; name=\"a;filename=b\"; filename=\"c;d.pdf\"", "c;d.pdf");
        check("form-data; filename=\"C:\\dir\\a.pdf\"; name=x", "C:\\dir\\a.pdf");
        check("form-data; filename=\"a \\\"b\\\".pdf\"", "a \"b\".pdf");
        check("form-data; filename=\"März.pdf\"", "März.pdf");
        check("form-data; filename=a.pdf; filename*=UTF-8''M%C3%A4rz%20%zz.pdf", "März %zz.pdf");
        check("form-data; filename=a.pdf; filename*=latin1''b.pdf", "a.pdf");
        check("form-data; filename=\"never ends", "never ends");
        check("form-data; filename=\"\"", "");
    }
}
