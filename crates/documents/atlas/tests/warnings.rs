//! What whoever made a map is told of it where it shows less than was asked for.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

use ode_atlas::Spec;
use serde_json::{Value, json};

/// A map of layers, each with one geometry or more.
fn map(projection: &Value, extent: &Value, layers: &[Vec<Value>]) -> Value {
    let layer = |geometries: &Vec<Value>| {
        let feature = |geometry: &Value| json!({ "type": "Feature", "properties": { "name": "x" }, "geometry": geometry });
        let features: Vec<Value> = geometries.iter().map(feature).collect();
        json!({ "data": { "type": "FeatureCollection", "features": features } })
    };
    let layers: Vec<Value> = layers.iter().map(layer).collect();
    json!({ "schema": 1, "page": { "size": "A6", "dpi": 72 }, "base": { "detail": "110m" }, "projection": projection,
        "extent": extent, "layers": layers })
}

fn warnings(spec: &Value) -> Vec<String> {
    ode_atlas::warnings(&Spec::parse(spec.to_string().as_bytes()).unwrap()).unwrap()
}

#[track_caller]
fn check(spec: &Value, words: &[&str]) {
    let told = warnings(spec);
    assert_eq!(told.len(), words.len(), "{spec}\nsays: {told:?}");
    for (told, words) in told.iter().zip(words) {
        assert!(told.contains(words) && told.ends_with('.'), "{spec}\nsays: {told}\nwithout: {words}");
    }
}

#[test]
fn features_that_are_not_on_the_map_are_told() {
    let point = |lon: f64, lat: f64| json!({ "type": "Point", "coordinates": [lon, lat] });
    let globe = json!({ "name": "orthographic", "center": [0, 0] });
    let (flat, world) = (json!({ "name": "equirectangular" }), json!({ "show": "world" }));
    let alps = json!({ "show": "bbox", "bbox": [5, 44, 16, 48] });
    let (here, there) = (point(8.0, 46.0), point(179.0, -40.0));
    let none = "Nothing of the layers is on the map: all of it lies outside";
    check(&map(&globe, &world, &[vec![here.clone()]]), &[]);
    check(&map(&globe, &world, &[vec![there.clone()], vec![there.clone()]]), &[none]);
    check(
        &map(&globe, &world, &[vec![here.clone()], vec![there.clone()]]),
        &["1 of 2 features are not on the map"],
    );
    check(&map(&flat, &alps, &[vec![there.clone(), there.clone()]]), &[none]);
    check(&map(&flat, &alps, &[vec![here]]), &[]);
    // Nothing was asked for where nothing has a place.
    check(&map(&flat, &alps, &[vec![Value::Null, json!({ "type": "MultiPoint", "coordinates": [] })]]), &[]);
    let mercator = json!({ "name": "mercator" });
    check(&map(&mercator, &world, &[vec![point(0.0, 90.0), there]]), &["1 of 2 features"]);
}

#[test]
fn what_only_crosses_or_surrounds_the_map_is_on_it() {
    let flat = json!({ "name": "equirectangular" });
    let alps = json!({ "show": "bbox", "bbox": [5, 44, 16, 48] });
    let line = |from: [f64; 2], to: [f64; 2]| json!({ "type": "LineString", "coordinates": [from, to] });
    let square = |west: f64, south: f64, east: f64, north: f64| json!({ "type": "Polygon", "coordinates": [[[west, south], [east, south], [east, north], [west, north], [west, south]]] });
    check(&map(&flat, &alps, &[vec![line([-30.0, 46.0], [50.0, 45.0])]]), &[]);
    check(&map(&flat, &alps, &[vec![square(-40.0, 10.0, 60.0, 70.0)]]), &[]);
    // Around a corner of the map, or beside it: the box of the line reaches into the map, the line does not.
    check(&map(&flat, &alps, &[vec![line([-60.0, 30.0], [30.0, -60.0])]]), &["Nothing of the layers"]);
    check(&map(&flat, &alps, &[vec![square(40.0, 10.0, 60.0, 70.0)]]), &["Nothing of the layers"]);
    let globe = json!({ "name": "orthographic", "center": [0, 0] });
    let world = json!({ "show": "world" });
    check(&map(&globe, &world, &[vec![square(170.0, -10.0, 175.0, 10.0)]]), &["Nothing of the layers"]);
}

#[test]
fn an_extent_on_the_far_side_of_the_globe_is_told() {
    let far = json!({ "name": "orthographic", "center": [180, 0] });
    let near = json!({ "name": "orthographic" });
    for extent in [
        json!({ "show": "bbox", "bbox": [5, 44, 16, 48] }),
        json!({ "show": "around", "place": [8, 46], "radius_km": 500 }),
    ] {
        check(&map(&far, &extent, &[]), &["Nothing of the extent is on the map"]);
        check(&map(&near, &extent, &[]), &[]);
    }
}

#[test]
fn a_property_that_no_feature_has_is_told_with_its_place() {
    let point = vec![json!({ "type": "Point", "coordinates": [8, 46] })];
    let mut spec = map(&json!({}), &json!({}), &[point]);
    spec["layers"][0]["style"] = json!({ "label": "name" });
    check(&spec, &[]);
    spec["layers"][0]["style"] =
        json!({ "label": "nmae", "color_by": { "property": "kind", "colors": { "a": "#f00" } } });
    check(&spec, &["property \"nmae\", so nothing is written", "layers[0].style.color_by"]);
}

#[test]
fn a_legend_without_end_leaves_room_for_the_map() {
    let colors: serde_json::Map<String, Value> =
        (0..500).map(|value| (format!("value {value}"), json!("#f00"))).collect();
    let point = vec![json!({ "type": "Point", "coordinates": [8, 46] })];
    let mut spec = map(&json!({}), &json!({}), &[point]);
    spec["furniture"] = json!({ "legend": true, "scale_bar": true });
    spec["layers"][0]["style"] = json!({ "color_by": { "property": "name", "colors": colors } });
    check(&spec, &["of its 500 entries"]);
}

#[test]
fn letters_that_no_font_has_are_told() {
    let mut spec = map(&json!({}), &json!({}), &[]);
    spec["title"] = json!({ "text": "東京 Tokyo" });
    check(&spec, &["京東"]);
}
