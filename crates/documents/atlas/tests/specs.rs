//! What specifications may say, and what people are told where they may not.

use ode_atlas::Spec;
use std::path::Path;

fn refusal(json: &str) -> String {
    match Spec::parse(json.as_bytes()) {
        Ok(_) => panic!("accepted: {json}"),
        Err(error) => error.to_string(),
    }
}

/// A specification with one part of it as given.
fn with(part: &str) -> String {
    format!(r#"{{"schema": 1, {part}}}"#)
}

fn with_layer(layer: &str) -> String {
    with(&format!(r#""layers": [{layer}]"#))
}

fn feature(geometry: &str) -> String {
    with_layer(&format!(
        r#"{{"data": {{"type": "FeatureCollection", "features": [{{"type": "Feature", "properties": {{}}, "geometry": {geometry}}}]}}}}"#
    ))
}

fn check(json: &str, parts: &[&str]) {
    let message = refusal(json);
    for part in parts {
        assert!(message.contains(part), "{json}\nsays: {message}\nwithout: {part}");
    }
    assert!(message.ends_with('.'), "{message}");
}

#[test]
fn what_is_of_another_kind_or_beyond_all_measure_is_refused_in_plain_words() {
    check("[]", &["Here is a list, and an object with named fields belongs here."]);
    check("7", &["Here is integer `7`, and an object with named fields belongs here."]);
    check(&with(r#""page": "A4""#), &["At page:", "an object with named fields belongs here"]);
    check(&with(r#""page": {"dpi": 1e300}"#), &["At page.dpi: 1e300 is out of range"]);
    check(
        &with(r#""page": {"size": {"width_mm": 5000, "height_mm": 100}}"#),
        &["width_mm: 5000 is out of range"],
    );
}

#[test]
fn refusals_name_the_place_and_what_to_do() {
    check("{", &["not JSON", "line 1"]);
    check("{}", &["`schema` is missing. Add it."]);
    check(r#"{"schema": 2}"#, &["At schema:", "form 2", "Write 1."]);
    check(&with(r#""pgae": {}"#), &["Nothing here is called `pgae`", "`page`", "take it out"]);
    check(
        &with(r#""page": {"size": "A9"}"#),
        &["At page.size:", "\"A9\" is not a size of paper", "A4", "width_mm"],
    );
    check(&with(r#""page": {"size": {"width_mm": 100}}"#), &["At page.size:", "`height_mm` is missing"]);
    check(&with(r#""page": {"dpi": 5000}"#), &["At page.dpi:", "5000 is out of range", "36 to 600"]);
    check(&with(r#""page": {"size": "A0", "dpi": 600}"#), &["At page.dpi:", "28087 pixels", "at most 427"]);
    check(&with(r#""page": {"dpi": "300"}"#), &["At page.dpi:", "string \"300\"", "belongs here"]);
    check(&with(r#""page": {"size": "A6", "margin_mm": 60}"#), &["At page.margin_mm:", "at most 35.0"]);
    check(
        &with(r#""projection": {"name": "mercater"}"#),
        &["At projection.name:", "`mercater`", "`mercator`"],
    );
    check(
        &with(r#""projection": {"name": "albers", "parallels": [-30, 30]}"#),
        &["At projection.parallels:", "cylinder", "Move one"],
    );
    check(
        &with(r#""projection": {"name": "equal-earth", "parallels": [20, 50]}"#),
        &[
            "At projection.parallels: \"equal-earth\" has no parallels.",
            "\"albers\" or \"lambert-conformal\" or",
        ],
    );
    check(&with(r#""extent": {"show": "bbox"}"#), &["At extent.bbox:", "needed"]);
    check(
        &with(r#""extent": {"bbox": [0, 0, 10, 10]}"#),
        &["At extent.bbox:", "only where `show` is \"bbox\""],
    );
    check(
        &with(r#""extent": {"show": "bbox", "bbox": [0, 50, 10, 40]}"#),
        &["At extent.bbox:", "Mend the order"],
    );
    check(&with(r#""extent": {"show": "features"}"#), &["At extent.show:", "Add features"]);
    check(
        &with(r#""style": {"colors": {"sea": "blue"}}"#),
        &["At style.colors.sea:", "\"blue\" is not a colour", "#rrggbb"],
    );
    check(&with(r#""style": {"theme": "neon"}"#), &["At style.theme:", "`neon`", "`vintage`"]);
    check(&with_layer(r#"{"data": {"features": []}}"#), &["At layers[0].data:", "`type` is missing"]);
    check(
        &with_layer(
            r#"{"data": {"type": "FeatureCollection", "features": []}, "style": {"marker": "hexagon"}}"#,
        ),
        &["At layers[0].style.marker:", "`hexagon`", "`star`"],
    );
    check(
        &feature(r#"{"type": "Point", "coordinates": [200000, 5000000]}"#),
        &["At layers[0].data.features[0].geometry.coordinates:", "latitudes go from -90 to 90", "WGS 84"],
    );
    check(
        &feature(r#"{"type": "Point", "coordinates": [370, 45]}"#),
        &["[370, 45] is not a position", "longitudes go from -360 to 360"],
    );
    check(
        &feature(r#"{"type": "Point", "coordinates": [8]}"#),
        &["At layers[0].data.features[0].geometry", "less than that"],
    );
    check(&feature(r#"{"type": "LineString", "coordinates": [[8, 50]]}"#), &["at least 2 positions"]);
    check(&feature(r#"{"type": "Circle", "coordinates": [8, 50]}"#), &["`Circle`", "`MultiPolygon`"]);
    check(
        &with(&format!(r#""title": {{"text": "{}"}}"#, "x".repeat(300))),
        &["At title.text:", "at most 200"],
    );
}

#[test]
fn the_shortest_specification_has_everything() {
    let spec = Spec::parse(br#"{"schema": 1}"#).unwrap();
    assert_eq!(spec, Spec::default());
}

#[test]
fn a_specification_is_written_as_it_is_read() {
    let json = r##"{"schema": 1, "page": {"size": {"width_mm": 300, "height_mm": 200}}, "base": {"detail": "10m"},
        "style": {"colors": {"sea": "#abc", "land": "#11223344"}},
        "layers": [{"data": {"type": "FeatureCollection", "features": [{"type": "Feature", "id": 7, "properties": {"a": [1]},
            "geometry": {"coordinates": [[1, 2, 3], [4, 5]], "type": "LineString"}}]}}]}"##;
    let spec = Spec::parse(json.as_bytes()).unwrap();
    let again = Spec::parse(&serde_json::to_vec(&spec).unwrap()).unwrap();
    assert_eq!(spec, again);
}

#[test]
fn a_frozen_specification_is_one_text_with_every_default_in_it() {
    let short = Spec::parse(br#"{"title": {"text": "A\u0000B"}, "schema": 1}"#).unwrap();
    let frozen = short.frozen().unwrap();
    assert!(
        frozen.contains(
            r#""page":{"bleed_mm":0,"dpi":300,"margin_mm":12.7,"orientation":"portrait","size":"18x24"}"#
        ),
        "{frozen}"
    );
    assert!(frozen.contains(r#""text":"A B""#), "{frozen}");
    let again = Spec::parse(frozen.as_bytes()).unwrap();
    assert_eq!(again.frozen().unwrap(), frozen);
}

#[test]
fn features_from_elsewhere_go_where_there_are_none() {
    let features = || ode_atlas::spec::geojson::Collection::parse(FEATURES.as_bytes()).unwrap();
    let styled = with(r#""layers": [{"name": "Ours", "style": {"marker": "pin"}}]"#);
    let spec = Spec::parse_with(styled.as_bytes(), "Theirs", features()).unwrap();
    assert_eq!((spec.layers.len(), spec.layers[0].name.as_str()), (1, "Ours"));
    assert_eq!(spec.layers[0].data.features.len(), 1);
    let full = feature(r#"{"type": "Point", "coordinates": [1, 2]}"#);
    let spec = Spec::parse_with(full.as_bytes(), "Theirs", features()).unwrap();
    assert_eq!((spec.layers.len(), spec.layers[1].name.as_str()), (2, "Theirs"));
    let shown = with(r#""extent": {"show": "features"}"#);
    Spec::parse_with(shown.as_bytes(), "Theirs", features()).unwrap();
}

const FEATURES: &str = r#"{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"name": "Here"},
    "geometry": {"type": "Point", "coordinates": [13.4, 52.5]}}]}"#;

#[test]
fn the_example_of_the_documentation_can_be_drawn() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/maps.md");
    let text = std::fs::read_to_string(path).unwrap();
    let examples: Vec<&str> =
        text.split("```json").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        let spec = Spec::parse(example.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{example}"));
        let options = ode_atlas::Options { preview_width: Some(200), ..Default::default() };
        let rendered = ode_atlas::render(&spec, &options, std::io::sink()).unwrap();
        assert!(rendered.warnings.is_empty(), "{:?}", rendered.warnings);
    }
}

#[test]
fn too_much_is_refused_before_anything_is_drawn() {
    let points = format!(r#"{{"type": "MultiPoint", "coordinates": [{}]}}"#, ["[1,2]"; 50_001].join(","));
    assert!(refusal(&feature(&points)).contains("50001 points"));
}

#[test]
fn the_schema_in_the_documentation_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/map.schema.json");
    let schema = format!("{:#}\n", Spec::json_schema());
    if std::env::var_os("ATLAS_UPDATE").is_some() {
        std::fs::write(&path, &schema).unwrap();
    }
    let documented = std::fs::read_to_string(&path).unwrap();
    assert!(
        documented == schema,
        "docs/map.schema.json is not what the code says; ATLAS_UPDATE=1 writes it anew"
    );
}
