//! What of the layers can be seen on the map, and what its maker is told where it is less than was asked for.

use super::layers::{self, Paths};
use super::view::View;
use super::{Area, Canvas};
use crate::draw::{Path, Pixel};
use crate::spec::geojson::Geometry;
use crate::spec::{Layer, LayerStyle, Spec};

/// Tells of features that are not on the map, and of properties that no feature has.
pub(super) fn tell(canvas: &mut Canvas<'_>, spec: &Spec, view: &View) {
    let (mut placed, mut hidden) = (0, 0);
    for (index, layer) in spec.layers.iter().enumerate() {
        let size = layer.style.size_mm as f32 * canvas.mm;
        for geometry in layer.data.features.iter().filter_map(|feature| feature.geometry.as_ref()) {
            let sight = look(geometry, &layer.style, view, size / 2.0);
            placed += usize::from(sight != Sight::Nowhere);
            hidden += usize::from(sight == Sight::Hidden);
        }
        canvas.warnings.extend(unused_properties(index, layer));
    }
    if hidden > 0 {
        let told = if hidden == placed {
            "Nothing of the layers is on the map: all of it lies".to_owned()
        } else {
            format!("{hidden} of {placed} features are not on the map: they lie")
        };
        canvas.warnings.push(format!(
            "{told} outside of what is shown. Choose another `extent` or `projection.center`, or leave them out."
        ));
    }
}

/// Where a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    Shown,
    Hidden,
    /// It has no positions.
    Nowhere,
}

/// Looks for a geometry whose points are drawn `reach` pixels around their spots.
fn look(geometry: &Geometry, style: &LayerStyle, view: &View, reach: f32) -> Sight {
    let window = view.window_area();
    let near = window.grown(reach);
    let mut sight = Sight::Nowhere;
    geometry.each_position(&mut |position| {
        if sight != Sight::Shown {
            let spot = view.chart.locate(layers::place(position)).map(Area::at);
            sight = if spot.is_some_and(|spot| spot.overlaps(&near)) { Sight::Shown } else { Sight::Hidden };
        }
    });
    if sight != Sight::Hidden || matches!(geometry, Geometry::Point(_) | Geometry::MultiPoint(_)) {
        return sight;
    }
    // A line may cross the map from one side to the other, and a polygon may be all around it.
    let mut paths = Paths::default();
    layers::add_geometry(geometry, style, view, &mut paths);
    let is_crossed = [&paths.lines, &paths.outline].into_iter().any(|path| crosses(path, &window));
    let is_shown = is_crossed || is_inside(&paths.inside, window.middle());
    if is_shown { Sight::Shown } else { Sight::Hidden }
}

/// Whether a line of a path comes into an area.
fn crosses(path: &Path, area: &Area) -> bool {
    path.lines().flat_map(|line| line.points.windows(2)).any(|pair| {
        let [a, b] = [pair[0], pair[1]];
        let side = |corner: Pixel| (b[0] - a[0]) * (corner[1] - a[1]) - (b[1] - a[1]) * (corner[0] - a[0]);
        let sides = area.corners().map(side);
        Area::between(a, b).overlaps(area)
            && sides.iter().any(|side| *side > 0.0)
            && sides.iter().any(|side| *side < 0.0)
    })
}

/// Whether the rings of a path go around a spot.
fn is_inside(path: &Path, [x, y]: Pixel) -> bool {
    let mut turns = 0;
    for line in path.lines() {
        let next = line.points.iter().cycle().skip(1);
        for (&[ax, ay], &[bx, by]) in line.points.iter().zip(next) {
            if (ay <= y) != (by <= y) && ax + (y - ay) / (by - ay) * (bx - ax) > x {
                turns += if ay < by { 1 } else { -1 };
            }
        }
    }
    turns != 0
}

/// Properties that a layer is drawn by and that none of its features has.
fn unused_properties(index: usize, layer: &Layer) -> Vec<String> {
    let style = &layer.style;
    let features = &layer.data.features;
    let told = |field: &str, property: &str, effect: &str| {
        format!(
            "No feature of the layer has the property {property:?}, so {effect}. Mend \
             `layers[{index}].style.{field}`, or the features."
        )
    };
    let is_had = |property: &str| {
        features.is_empty() || features.iter().any(|feature| feature.text(property).is_some())
    };
    let label = style.label.as_deref().filter(|property| !is_had(property));
    let color = style.color_by.as_ref().map(|by| by.property.as_str()).filter(|property| !is_had(property));
    let label = label.map(|property| told("label", property, "nothing is written beside them"));
    let color = color.map(|property| told("color_by", property, "all have one colour"));
    label.into_iter().chain(color).collect()
}
