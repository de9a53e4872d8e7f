//! Features that nobody should draw, drawn all the same: nothing panics, hangs or takes the page.

use ode_atlas::projection::NAMES;
use ode_atlas::{Error, Options, Rendered, Spec};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Longer than any of these takes without optimisation.
const PATIENCE: Duration = Duration::from_secs(60);

fn map(geometries: &[Value], projection: &Value, extent: &Value) -> Value {
    let feature =
        |geometry: &Value| json!({ "type": "Feature", "properties": { "name": "x" }, "geometry": geometry });
    let features: Vec<Value> = geometries.iter().map(feature).collect();
    json!({
        "schema": 1, "page": { "size": "A6", "dpi": 72 }, "projection": projection, "extent": extent,
        "base": { "land": false, "borders": false, "graticule_deg": 0 },
        "layers": [{ "style": { "label": "name", "fill": "#ff0000" },
            "data": { "type": "FeatureCollection", "features": features } }],
    })
}

fn draw(spec: &Value) -> Result<Rendered, Error> {
    let spec = Spec::parse(spec.to_string().as_bytes())?;
    ode_atlas::render(&spec, &Options::default(), std::io::sink())
}

/// Numbers without end from a seed, the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    /// Places where geometry goes wrong more often than elsewhere.
    fn position(&mut self) -> Value {
        const LON: [f64; 9] =
            [-180.0, 180.0, 0.0, 360.0, -360.0, 90.0, 179.999_999_999, -179.999_999_999, 1e-300];
        const LAT: [f64; 7] = [90.0, -90.0, 0.0, 89.999_999_999, -89.999_999_999, 85.05, 1e-300];
        let lon = match self.roll(3) {
            0 => LON[self.roll(LON.len() as u64) as usize],
            _ => self.roll(72_001) as f64 / 100.0 - 360.0,
        };
        let lat = match self.roll(3) {
            0 => LAT[self.roll(LAT.len() as u64) as usize],
            _ => self.roll(18_001) as f64 / 100.0 - 90.0,
        };
        json!([lon, lat])
    }

    fn positions(&mut self, least: u64) -> Vec<Value> {
        (0..least + self.roll(12)).map(|_| self.position()).collect()
    }

    fn ring(&mut self) -> Value {
        let mut ring = self.positions(3);
        // Now and then it is left open.
        if self.roll(8) > 0 {
            ring.push(ring[0].clone());
        } else {
            ring.push(self.position());
        }
        json!(ring)
    }

    fn geometry(&mut self) -> Value {
        match self.roll(4) {
            0 => json!({ "type": "MultiPoint", "coordinates": self.positions(1) }),
            1 => json!({ "type": "LineString", "coordinates": self.positions(2) }),
            2 => json!({ "type": "Polygon", "coordinates": [self.ring(), self.ring()] }),
            _ => {
                json!({ "type": "MultiPolygon", "coordinates": [[self.ring()], [self.ring(), self.ring()]] })
            }
        }
    }
}

#[test]
fn whatever_lies_anywhere_is_drawn_in_every_projection() {
    let began = Instant::now();
    let mut dice = Dice(20_261_115);
    for round in 0..12 {
        for name in NAMES {
            let geometries: Vec<Value> = (0..3).map(|_| dice.geometry()).collect();
            let center = dice.position();
            let projection = json!({ "name": name, "center": center, "roll": dice.roll(361) as f64 - 180.0 });
            let extent = match dice.roll(3) {
                0 => json!({ "show": "world" }),
                1 => json!({ "show": "features" }),
                _ => json!({ "show": "around", "place": dice.position(), "radius_km": 10 + dice.roll(8990) }),
            };
            let spec = map(&geometries, &projection, &extent);
            draw(&spec).unwrap_or_else(|error| panic!("round {round}: {error}\n{spec}"));
            assert!(began.elapsed() < PATIENCE, "round {round}, {name:?}: {spec}");
        }
    }
}

#[test]
fn degenerate_shapes_are_drawn_or_refused_with_their_place() {
    let pole: Vec<Value> = (0..6).map(|lon| json!([lon * 60, 90])).collect();
    let same = vec![json!([10, 10]); 5];
    let crossing = json!([[0, 0], [10, 10], [10, 0], [0, 10], [0, 0]]);
    let around = json!([
        [-180, -60],
        [-60, -60],
        [60, -60],
        [180, -60],
        [180, 60],
        [60, 60],
        [-60, 60],
        [-180, 60],
        [-180, -60]
    ]);
    let geometries = [
        json!({ "type": "Polygon", "coordinates": [pole] }),
        json!({ "type": "Polygon", "coordinates": [same] }),
        json!({ "type": "Polygon", "coordinates": [crossing, crossing, crossing] }),
        json!({ "type": "Polygon", "coordinates": [around] }),
        json!({ "type": "Polygon", "coordinates": [] }),
        json!({ "type": "MultiPolygon", "coordinates": [] }),
        json!({ "type": "MultiPoint", "coordinates": [] }),
        json!({ "type": "LineString", "coordinates": [[0, 0], [180, 0]] }),
        json!({ "type": "LineString", "coordinates": [[0, 90], [0, -90]] }),
        json!({ "type": "LineString", "coordinates": same }),
    ];
    for name in NAMES {
        for geometry in &geometries {
            let spec =
                map(std::slice::from_ref(geometry), &json!({ "name": name }), &json!({ "show": "world" }));
            draw(&spec).unwrap_or_else(|error| panic!("{name:?}: {error}\n{geometry}"));
        }
    }
    let features = json!({ "show": "features" });
    for geometry in &geometries[4..7] {
        let spec = map(std::slice::from_ref(geometry), &json!({ "name": "mercator" }), &features);
        // There is nothing to show; that is no reason to fall over.
        let _ = draw(&spec);
    }
}

/// A specification with one feature, as text: JSON that is none can be put into it.
fn wrapped(geometry: &str, properties: &str) -> String {
    format!(
        r#"{{"schema": 1, "page": {{"size": "A6", "dpi": 72}}, "base": {{"land": false, "borders": false}}, "layers": [{{"data":
            {{"type": "FeatureCollection", "features": [
                {{"type": "Feature", "properties": {properties}, "geometry": {geometry}}}]}}}}]}}"#
    )
}

#[test]
fn what_is_no_geometry_is_refused_and_not_followed_into_the_depths() {
    let nested = format!("{}0{}", "[".repeat(100), "]".repeat(100));
    let properties = format!("{}0{}", "{\"a\":".repeat(100), "}".repeat(100));
    let refused = [
        wrapped(&format!(r#"{{"type": "Polygon", "coordinates": {nested}}}"#), "{}"),
        wrapped(r#"{"type": "GeometryCollection", "geometries": []}"#, "{}"),
        wrapped(r#"{"type": "Point", "coordinates": [NaN, 0]}"#, "{}"),
        wrapped(r#"{"type": "Point", "coordinates": [1e999, 0]}"#, "{}"),
        wrapped(r#"{"type": "Point", "coordinates": [null, 0]}"#, "{}"),
        wrapped(r#"{"type": "Point", "coordinates": [1e308, 0]}"#, "{}"),
        wrapped(r#"{"type": "Point", "coordinates": []}"#, "{}"),
        wrapped(r#"{"type": "Point", "coordinates": "0,0"}"#, "{}"),
        wrapped("7", "{}"),
        "[".repeat(1_000_000),
    ];
    for text in refused {
        let refusal = Spec::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(refusal.ends_with('.'), "{refusal}");
    }
    let deep =
        Spec::parse(wrapped(r#"{"type": "Point", "coordinates": [0, 0]}"#, &properties).as_bytes()).unwrap();
    deep.frozen().unwrap();
}

#[test]
fn a_line_of_very_many_positions_is_drawn_in_bounded_time() {
    let began = Instant::now();
    // Down the globe in a spiral, across the antimeridian at every turn.
    let position = |n: u32| {
        format!("[{:.4},{:.5}]", f64::from(n) * 0.0685 % 360.0 - 180.0, 85.0 - f64::from(n) * 0.000_85)
    };
    let line: Vec<String> = (0..200_000).map(position).collect();
    let geometry = format!(r#"{{"type": "LineString", "coordinates": [{}]}}"#, line.join(","));
    let spec = Spec::parse(wrapped(&geometry, "{}").as_bytes()).unwrap();
    ode_atlas::render(&spec, &Options::default(), std::io::sink()).unwrap();
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

/// Positions that jump a quarter of the globe each, in JSON.
fn jumps(count: u32) -> String {
    let mut dice = Dice(7);
    let position = |n: u32| format!("[{},{}]", f64::from(n % 4) * 90.0 - 180.0, dice.roll(120) as f64 - 60.0);
    (0..count).map(position).collect::<Vec<_>>().join(",")
}

#[test]
fn positions_that_jump_around_the_world_without_end_are_refused() {
    let many = jumps(45_000);
    let shapes = [
        format!(r#"{{"type": "LineString", "coordinates": [{many}]}}"#),
        format!(r#"{{"type": "Polygon", "coordinates": [[{many}]]}}"#),
        format!(r#"{{"type": "MultiPolygon", "coordinates": [[[{many}]]]}}"#),
    ];
    for shape in shapes {
        let refusal = Spec::parse(wrapped(&shape, "{}").as_bytes()).unwrap_err().to_string();
        assert!(refusal.contains("times around the globe; 10000 is the limit. Leave some out"), "{refusal}");
    }
}

#[test]
fn thousands_of_jumps_around_the_world_are_drawn() {
    let some = jumps(5_000);
    for (kind, [open, close]) in [("LineString", ["[", "]"]), ("Polygon", ["[[", "]]"])] {
        let shape = format!(r#"{{"type": "{kind}", "coordinates": {open}{some}{close}}}"#);
        let spec = Spec::parse(wrapped(&shape, "{}").as_bytes()).unwrap();
        ode_atlas::render(&spec, &Options::default(), std::io::sink()).unwrap();
    }
}
