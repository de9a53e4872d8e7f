//! What a form sends: names and values, in order, some names more than once.

use axum::Form;
use axum::extract::{FromRequest, Multipart, Request};
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

    /// All values.
    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, value)| value.trim())
    }
}

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("multipart/")) {
            let form =
                Multipart::from_request(request, state).await.map_err(|error| error.into_response())?;
            return parts(form).await.map_err(|_| StatusCode::BAD_REQUEST.into_response());
        }
        let form = Form::<Vec<(String, String)>>::from_request(request, state).await;
        form.map(|Form(fields)| Fields(fields)).map_err(|error| error.into_response())
    }
}

async fn parts(mut form: Multipart) -> Result<Fields, axum::extract::multipart::MultipartError> {
    let mut fields = Vec::new();
    while let Some(part) = form.next_field().await? {
        let name = part.name().unwrap_or_default().to_owned();
        fields.push((name, String::from_utf8_lossy(&part.bytes().await?).into_owned()));
    }
    Ok(Fields(fields))
}
