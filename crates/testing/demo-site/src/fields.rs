//! What a form sends: names and values, in order, some names more than once.

use axum::Form;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// The fields of a form; files are taken as text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The first value of this name, without the space around it.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.trim())
    }

    /// A password is taken as it is.
    pub(crate) fn exact(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// All values of this name.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.trim()).collect()
    }

    /// Whether a box was ticked.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, value)| value.trim())
    }
}

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if let Some(kind) = kind.filter(|kind| kind.starts_with("multipart/")).map(str::to_owned) {
            let body = Bytes::from_request(request, state).await.map_err(|error| error.into_response())?;
            return parts(&kind, &body).ok_or_else(|| StatusCode::BAD_REQUEST.into_response());
        }
        let form = Form::<Vec<(String, String)>>::from_request(request, state).await;
        form.map(|Form(fields)| Fields(fields)).map_err(|error| error.into_response())
    }
}

/// The fields of a `multipart/form-data` body as browsers write it. There is one such form, for a small text file, so
/// the body is read as text at once.
fn parts(kind: &str, body: &[u8]) -> Option<Fields> {
    let boundary = kind.split(';').find_map(|part| part.trim().strip_prefix("boundary="))?.trim_matches('"');
    let text = format!("\r\n{}", String::from_utf8_lossy(body));
    let (parts, _) = text.rsplit_once(&format!("\r\n--{boundary}--"))?;
    let field = |part: &str| {
        let (head, value) = part.split_once("\r\n\r\n")?;
        let (name, _) = head.split_once(" name=\"")?.1.split_once('"')?;
        Some((name.to_owned(), value.to_owned()))
    };
    parts.split(&format!("\r\n--{boundary}\r\n")).skip(1).map(field).collect::<Option<Vec<_>>>().map(Fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "multipart/form-data; boundary=----B";

    fn check(kind: &str, body: &str, expected: Option<&[(&str, &str)]>) {
        let found = parts(kind, body.as_bytes()).map(|fields| fields.0);
        let expected = expected.map(|fields| {
            fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect::<Vec<_>>()
        });
        assert_eq!(found, expected, "{body:?}");
    }

    #[test]
    fn a_form_with_a_file_is_read() {
        let file = "------B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\n\
                    Content-Type: text/csv\r\n\r\nname,price\r\nTea --- B,1\r\n\r\n";
        let field = "------B\r\nContent-Disposition: form-data; name=\"mode\"\r\n\r\n\r\n";
        let values: [(&str, &str); 2] = [("file", "name,price\r\nTea --- B,1\r\n"), ("mode", "")];
        check(KIND, &format!("{file}{field}------B--\r\n"), Some(&values));
        check(KIND, &format!("{field}------B--"), Some(&values[1..]));
        check(KIND, "------B--\r\n", Some(&[]));
    }

    #[test]
    fn what_is_no_form_is_refused() {
        check(KIND, "", None);
        check(KIND, "------B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n", None);
        check(KIND, "------B\r\nname=1\r\n\r\n1\r\n------B--\r\n", None);
        check("multipart/form-data", "------B--\r\n", None);
    }
}
