//! The specification of a map: everything that decides how it looks, as one JSON document that never changes once it is
//! kept. The same document gives the same picture for as long as the renderer's version is the same.

mod check;
mod color;
mod furniture;
pub mod geojson;
mod layer;
mod page;
mod style;
mod view;

pub use color::Color;
pub use furniture::{Furniture, Title, TitlePlace};
pub use layer::{ColorBy, Edges, Layer, LayerStyle, Marker};
pub use page::{Orientation, Page, Size};
pub use style::{Base, Colors, Countries, DetailChoice, Font, Style, Widths};
pub use view::{Extent, Show, View};

use crate::Error;
use geojson::Collection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the form of specifications; a document of another form is refused.
pub const SCHEMA: u32 = 1;

/// A map to draw. Only `schema` must be there; everything else has a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "ODE map", example = example())]
pub struct Spec {
    /// The version of this form: 1.
    #[schemars(range(min = 1, max = 1))]
    pub schema: u32,
    /// The paper.
    #[serde(default)]
    pub page: Page,
    /// The projection and how the globe is turned.
    #[serde(default)]
    pub projection: View,
    /// Which part of the world is shown.
    #[serde(default)]
    pub extent: Extent,
    /// Colours, widths of lines and type.
    #[serde(default)]
    pub style: Style,
    /// What of the base map is drawn.
    #[serde(default)]
    pub base: Base,
    /// What is written in large letters.
    #[serde(default)]
    pub title: Title,
    /// What explains the map: legend, scale bar, credit.
    #[serde(default)]
    pub furniture: Furniture,
    /// What is drawn on top, from the bottom up: points, lines and polygons with properties.
    #[serde(default)]
    pub layers: Vec<Layer>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            page: Page::default(),
            projection: View::default(),
            extent: Extent::default(),
            style: Style::default(),
            base: Base::default(),
            title: Title::default(),
            furniture: Furniture::default(),
            layers: Vec::new(),
        }
    }
}

impl Spec {
    /// Reads a specification and checks it: what it gives can be drawn.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        let spec: Self = read(json)?;
        spec.check()?;
        Ok(spec)
    }

    /// The same with features from elsewhere. They go into the first layer that has none, and are drawn as it says; where
    /// there is no such layer, they become one on top, under this name.
    pub fn parse_with(json: &[u8], name: &str, features: Collection) -> Result<Self, Error> {
        let mut spec: Self = read(json)?;
        match spec.layers.iter_mut().find(|layer| layer.data.features.is_empty()) {
            Some(layer) => layer.data = features,
            None => spec.layers.push(Layer {
                name: name.to_owned(),
                data: features,
                style: LayerStyle::default(),
            }),
        }
        spec.check()?;
        Ok(spec)
    }

    /// The whole specification with every default written out, in canonical form (RFC 8785): the same map is the same
    /// text, and stays the same when a default changes.
    pub fn frozen(&self) -> Result<String, Error> {
        let value = serde_json::to_value(self).map_err(|error| Error::spec("", error.to_string()))?;
        Ok(crate::canonical::text(&value))
    }

    /// Checks what the form alone does not say: bounds, and fields that need each other.
    pub fn check(&self) -> Result<(), Error> {
        check::check(self)
    }

    /// The JSON Schema of this form.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}

/// Reads a document, and says where it is not what it should be.
fn read<T: serde::de::DeserializeOwned>(json: &[u8]) -> Result<T, Error> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let document = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        Error::spec(&path, plain(error.inner()))
    })?;
    reader.end().map_err(|error| Error::spec(".", plain(&error)))?;
    Ok(document)
}

fn example() -> Spec {
    Spec {
        page: Page { size: Size::named("18x24"), ..Page::default() },
        title: Title { text: "The World".into(), ..Title::default() },
        ..Spec::default()
    }
}

/// What serde found wrong, as a sentence.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // Where in the text is told by the path already; for broken JSON, line and column are all there is.
    let (what, place) = text.rsplit_once(" at line ").unwrap_or((&text, ""));
    if error.is_syntax() || error.is_eof() {
        return format!("This is not JSON: {what} at line {place}. Mend the text there.");
    }
    if let Some((field, rest)) = what.strip_prefix("unknown field ").and_then(|rest| rest.split_once(", ")) {
        let known = rest.trim_start_matches("expected one of ").trim_start_matches("expected ");
        return format!("Nothing here is called {field}. Use {known}, or take it out.");
    }
    if let Some((value, rest)) = what.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", "))
    {
        let known = rest.trim_start_matches("expected one of ").trim_start_matches("expected ");
        return format!("{value} is not one of the choices. Use {known}.");
    }
    if let Some(field) = what.strip_prefix("missing field ") {
        return format!("{field} is missing. Add it.");
    }
    if let Some((found, wanted)) =
        what.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
    {
        let wanted = if wanted.starts_with("struct ") { "an object with named fields" } else { wanted };
        return format!("Here is {found}, and {wanted} belongs here. Write that instead.");
    }
    if what.starts_with("invalid length ") && what.contains("expected struct ") {
        return "Here is a list, and an object with named fields belongs here. Write that instead."
            .to_owned();
    }
    let mut sentence = what.to_owned();
    if !sentence.ends_with('.') {
        sentence.push('.');
    }
    sentence
}
