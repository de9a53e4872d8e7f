//! Maps that people keep, and maps that are frozen for print: `/api/user-maps` and `/api/printable-maps`.

use super::previews::Site;
use crate::sql::{self, MapError, MapPage, PrintableMap, UserMap};
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use jiff::Timestamp;
use ode_http::App;
use ode_http::body;
use ode_http::caller::Caller;
use ode_http::etag;
use ode_http::problem::{Acting, Problem, Reading, Sending};
use ode_http::query::{PAGE_MAX, limit, query};
use ode_http::view::moment;
use ode_job::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// A map with everything in it. Lines that need more can be simplified and look the same on paper.
pub(crate) const MAP_BYTES_MAX: usize = 16 << 20;
/// So much more is read of one that is larger.
pub(crate) const SKIPPED_BYTES_MAX: usize = 64 << 20;
/// Time for a map to arrive.
const ARRIVAL: Duration = Duration::from_secs(60);
const NAME_CHARS_MAX: usize = 200;

/// A map on its way, of a bounded size and in bounded time.
pub(crate) async fn arrived<E>(pieces: impl Stream<Item = Result<Bytes, E>>) -> Result<Bytes, Problem> {
    let whole = tokio::time::timeout(ARRIVAL, gathered(pieces)).await;
    whole.map_err(|_| {
        let seconds = ARRIVAL.as_secs();
        Problem::too_slow(format!("The map did not arrive within {seconds} s. Send it again."))
    })?
}

async fn gathered<E>(pieces: impl Stream<Item = Result<Bytes, E>>) -> Result<Bytes, Problem> {
    let (mut whole, mut skipped) = (BytesMut::new(), 0);
    let mut pieces = std::pin::pin!(pieces);
    while let Some(piece) = pieces.next().await {
        let piece =
            piece.map_err(|_| Problem::invalid("The map ended before all of it was sent. Send it again."))?;
        if skipped == 0 && whole.len() + piece.len() <= MAP_BYTES_MAX {
            whole.extend_from_slice(&piece);
            continue;
        }
        // Who still sends does not listen; what is a little too large is heard out, so that its sender learns why.
        skipped += piece.len();
        if skipped > SKIPPED_BYTES_MAX {
            break;
        }
    }
    if skipped == 0 {
        return Ok(whole.freeze());
    }
    let limit = MAP_BYTES_MAX >> 20;
    let message = format!("A map may have {limit} MiB. Simplify its lines and polygons, then send it again.");
    Err(Problem::new(ErrorCode::PayloadTooLarge, message))
}

/// Reads a body as JSON of this form.
pub(crate) fn read<'a, T: Deserialize<'a>>(body: &'a [u8], form: &str) -> Result<T, Problem> {
    body::parse_outline(body).map_err(|problem| problem.reworded(|detail| format!("{detail} Send {form}.")))
}

/// There is no such map, or it is somebody else's: the answer is the same.
pub(crate) fn no_map() -> Problem {
    Problem::new(ErrorCode::NotFound, "There is no map by that id. List yours to see which there are.")
}

impl From<MapError> for Problem {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Missing(_) => no_map(),
            MapError::Changed(_) => Problem::new(ErrorCode::Conflict, error.to_string()),
            MapError::Store(error) => error.into(),
        }
    }
}

pub(crate) fn map_id(text: &str) -> Result<Uuid, Problem> {
    text.parse().map_err(|_| no_map())
}

/// Which part of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PartQuery {
    /// Where the list goes on: the `next_cursor` of the part before.
    #[param(value_type = Option<String>, format = "uuid")]
    pub cursor: Option<Uuid>,
    /// How many at most; 100 unless said otherwise.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 200)]
    pub limit: Option<String>,
}

impl PartQuery {
    fn read(uri: &Uri) -> Result<(Option<Uuid>, usize), Problem> {
        let part: PartQuery = query(uri, "cursor and limit")?;
        Ok((part.cursor, limit(part.limit.as_deref(), PAGE_MAX)?))
    }
}

/// A map to keep.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeptMap<'a> {
    /// What you call it.
    #[schema(max_length = 200, example = "Our journeys")]
    name: String,
    /// Points, lines and polygons: a GeoJSON `FeatureCollection`.
    #[serde(borrow)]
    #[schema(value_type = Object)]
    data: &'a RawValue,
    /// The version that is replaced, where nobody else's change may be lost.
    version: Option<i64>,
}

const KEPT_FORM: &str = "{\"name\": …, \"data\": a GeoJSON FeatureCollection}";

impl<'a> KeptMap<'a> {
    fn read(body: &'a [u8]) -> Result<Self, Problem> {
        let map: KeptMap<'a> = read(body, KEPT_FORM)?;
        let chars = map.name.trim().chars().count();
        if chars == 0 || chars > NAME_CHARS_MAX {
            return Err(Problem::invalid(format!("name is a text of 1 to {NAME_CHARS_MAX} characters.")));
        }
        Ok(map)
    }
}

/// A map that is kept.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserMap)]
pub(crate) struct UserMapView {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    id: Uuid,
    /// What you call it.
    name: String,
    /// Counts changes, from 1.
    version: i64,
    /// Its features; left out of lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    data: Option<Box<RawValue>>,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "moment")]
    created_at: Timestamp,
    /// When it was last changed.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "moment")]
    updated_at: Timestamp,
}

impl From<UserMap> for UserMapView {
    fn from(map: UserMap) -> Self {
        let UserMap { id, name, version, data, created_at, updated_at } = map;
        let data = data.and_then(|data| RawValue::from_string(data).ok());
        UserMapView { id, name, version, data, created_at, updated_at }
    }
}

/// A part of a list of maps, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserMapList {
    /// The maps.
    user_maps: Vec<UserMapView>,
    /// Where the next part begins, if there is one.
    #[schema(value_type = Option<String>, format = "uuid")]
    next_cursor: Option<Uuid>,
}

/// Your maps, newest first.
#[utoipa::path(get, path = "/api/user-maps", tag = "maps", params(PartQuery),
    responses((status = 200, body = UserMapList), Reading))]
pub(crate) async fn list_user_maps(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Json<UserMapList>, Problem> {
    let (before, limit) = PartQuery::read(&uri)?;
    let MapPage { maps, next_cursor } = sql::user_maps(app.store.sql(), caller.owner, before, limit).await?;
    Ok(Json(UserMapList { user_maps: maps.into_iter().map(UserMapView::from).collect(), next_cursor }))
}

/// Keeps a map: points, lines and polygons with properties.
#[utoipa::path(post, path = "/api/user-maps", tag = "maps", request_body = KeptMap,
    responses((status = 201, body = UserMapView), Sending))]
pub(crate) async fn add_user_map(
    State(app): State<Arc<App>>,
    Extension(site): Site,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, Problem> {
    app.check_disk()?;
    app.limits.upload(&caller).await?;
    let body = arrived(body.into_data_stream()).await?;
    let kept = KeptMap::read(&body)?;
    let data = site.drawer.features(Bytes::copy_from_slice(kept.data.get().as_bytes())).await?.text;
    let map = sql::add_user_map(app.store.sql(), caller.owner, kept.name.trim(), &data).await?;
    let address =
        HeaderValue::from_str(&format!("/api/user-maps/{}", map.id)).map_err(|_| Problem::our_fault())?;
    Ok((StatusCode::CREATED, [(header::LOCATION, address)], Json(UserMapView::from(map))).into_response())
}

/// One of your maps, with its features.
#[utoipa::path(get, path = "/api/user-maps/{id}", tag = "maps",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = UserMapView), Reading))]
pub(crate) async fn user_map(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<UserMapView>, Problem> {
    Ok(Json(sql::user_map(app.store.sql(), caller.owner, map_id(&id)?).await?.into()))
}

/// Replaces the name and the features of a map. What was printed of it stays as it was.
#[utoipa::path(put, path = "/api/user-maps/{id}", tag = "maps", request_body = KeptMap,
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = UserMapView), Sending))]
pub(crate) async fn change_user_map(
    State(app): State<Arc<App>>,
    Extension(site): Site,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<UserMapView>, Problem> {
    app.check_disk()?;
    app.limits.upload(&caller).await?;
    let id = map_id(&id)?;
    let body = arrived(body.into_data_stream()).await?;
    let kept = KeptMap::read(&body)?;
    let data = site.drawer.features(Bytes::copy_from_slice(kept.data.get().as_bytes())).await?.text;
    let change = (kept.name.trim(), data.as_str());
    Ok(Json(sql::change_user_map(app.store.sql(), caller.owner, id, change, kept.version).await?.into()))
}

/// Deletes a map and its features. What was printed of it stays as it was.
#[utoipa::path(delete, path = "/api/user-maps/{id}", tag = "maps",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 204, description = "It is gone"), Acting))]
pub(crate) async fn delete_user_map(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    sql::delete_user_map(app.store.sql(), caller.owner, map_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A map as it is printed. It never changes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PrintableMap)]
pub(crate) struct PrintableMapView {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    id: Uuid,
    /// The map it was made of.
    #[schema(value_type = Option<String>, format = "uuid")]
    user_map_id: Option<Uuid>,
    /// And that one's version then.
    user_map_version: Option<i64>,
    /// What it is called on the paper.
    title: Option<String>,
    /// Its paper: the name of a size, or width and height in millimetres as JSON.
    #[schema(example = "18x24")]
    page_size: Option<String>,
    /// The digest of its specification in canonical form (RFC 8785), hexadecimal.
    sha256: String,
    /// Its specification; left out of lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    data: Option<Box<RawValue>>,
    /// When it was frozen.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "moment")]
    created_at: Timestamp,
    /// Where there is a small picture of it.
    preview: String,
}

impl From<PrintableMap> for PrintableMapView {
    fn from(map: PrintableMap) -> Self {
        let PrintableMap { id, made_of, title, page_size, data, sha256, created_at, .. } = map;
        PrintableMapView {
            id,
            user_map_id: made_of.map(|(map, _)| map),
            user_map_version: made_of.map(|(_, version)| version),
            title,
            page_size,
            sha256,
            data: data.and_then(|data| RawValue::from_string(data).ok()),
            created_at,
            preview: format!("/api/printable-maps/{id}/preview"),
        }
    }
}

/// A part of a list of frozen maps, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PrintableMapList {
    /// The maps.
    printable_maps: Vec<PrintableMapView>,
    /// Where the next part begins, if there is one.
    #[schema(value_type = Option<String>, format = "uuid")]
    next_cursor: Option<Uuid>,
}

/// Your frozen maps, newest first.
#[utoipa::path(get, path = "/api/printable-maps", tag = "maps", params(PartQuery),
    responses((status = 200, body = PrintableMapList), Reading))]
pub(crate) async fn list_printable_maps(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Json<PrintableMapList>, Problem> {
    let (before, limit) = PartQuery::read(&uri)?;
    let MapPage { maps, next_cursor } =
        sql::printable_maps(app.store.sql(), caller.owner, before, limit).await?;
    let printable_maps = maps.into_iter().map(PrintableMapView::from).collect();
    Ok(Json(PrintableMapList { printable_maps, next_cursor }))
}

/// One of your frozen maps, with its specification.
#[utoipa::path(get, path = "/api/printable-maps/{id}", tag = "maps",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = PrintableMapView), Reading))]
pub(crate) async fn printable_map(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<PrintableMapView>, Problem> {
    Ok(Json(sql::printable_map(app.store.sql(), caller.owner, map_id(&id)?).await?.into()))
}

/// How large a picture to look at is.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PreviewQuery {
    /// Its width in pixels; 800 unless said otherwise.
    #[param(minimum = 16, maximum = 2000)]
    width: Option<u32>,
}

impl PreviewQuery {
    pub(crate) fn read(uri: &Uri) -> Result<u32, Problem> {
        let PreviewQuery { width } = query(uri, "width")?;
        let width = width.unwrap_or(800);
        if (16..=2000).contains(&width) {
            Ok(width)
        } else {
            Err(Problem::invalid("width is a number of pixels from 16 to 2000."))
        }
    }
}

/// A small picture of a frozen map.
#[utoipa::path(get, path = "/api/printable-maps/{id}/preview", tag = "maps",
    params(("id" = String, Path, description = "Its id"), PreviewQuery),
    responses(
        (status = 200, content_type = "image/png", body = Vec<u8>),
        (status = 304, description = "It is the picture that is there already"),
        Reading))]
pub(crate) async fn preview(
    State(app): State<Arc<App>>,
    Extension(site): Site,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let width = PreviewQuery::read(request.uri())?;
    let map = sql::printable_map(app.store.sql(), caller.owner, map_id(&id)?).await?;
    let tag = format!("\"{}-{width}\"", map.sha256);
    let cached = [
        (header::ETAG, HeaderValue::from_str(&tag).map_err(|_| Problem::our_fault())?),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=86400")),
    ];
    if etag::is_known(request.headers(), &tag) {
        return Ok((StatusCode::NOT_MODIFIED, cached).into_response());
    }
    let png = site.preview(&map.sha256, map.data.unwrap_or_default(), width).await?;
    Ok((cached, [(header::CONTENT_TYPE, "image/png")], png).into_response())
}
