//! The base map: water, net, land, borders and coasts.

use super::Canvas;
use super::view::View;
use crate::base::{BaseMap, Country};
use crate::draw::{Brush, Color, Path};
use crate::projection::Place;
use crate::spec::{Countries, Spec};
use crate::theme::Shore;
use std::collections::HashMap;
use std::sync::Arc;

pub(super) fn draw(canvas: &mut Canvas<'_>, spec: &Spec, view: &View, base: &BaseMap) {
    let look = canvas.look;
    let window = view.window;
    let mut outline = Path::default();
    view.chart.add_outline(&mut outline);
    let outline = Arc::new(outline.finish());
    canvas.add(&outline, Brush::Fill, paint(look.sea), window);
    if spec.base.graticule_deg > 0.0 {
        let net = graticule(view, spec.base.graticule_deg);
        canvas.add(&net, Brush::Stroke(look.graticule_mm as f32 * canvas.mm), paint(look.graticule), window);
    }
    if spec.base.land {
        draw_land(canvas, spec, view, base);
    }
    if view.is_world {
        trim(canvas, &outline);
    }
}

/// Covers what wide lines drew beyond the rim of the world.
fn trim(canvas: &mut Canvas<'_>, outline: &Path) {
    let page = canvas.page();
    let mut around = Path::default();
    let (right, bottom) = (page.right as f32, page.bottom as f32);
    // Against the outline's direction, which leaves a hole where the world is.
    around.add([[0.0, 0.0], [0.0, bottom], [right, bottom], [right, 0.0]], true);
    outline.lines().for_each(|line| around.add(line.points.iter().copied(), true));
    canvas.add(&Arc::new(around.finish()), Brush::Fill, paint(canvas.look.paper), page);
}

fn draw_land(canvas: &mut Canvas<'_>, spec: &Spec, view: &View, base: &BaseMap) {
    let (look, window) = (canvas.look, view.window);
    let coast = lines(view, base, false);
    shore(canvas, view, &coast);
    let mut land = Path::default();
    base.land().for_each(|rings| view.chart.add_polygon(&rings, &mut land));
    canvas.add(&Arc::new(land.finish()), Brush::Fill, paint(look.land), window);
    if spec.base.countries == Countries::Tinted {
        tint(canvas, view, base);
    }
    if spec.base.borders {
        let borders = lines(view, base, true);
        canvas.add(&borders, Brush::Stroke(look.border_mm as f32 * canvas.mm), paint(look.border), window);
    }
    canvas.add(&coast, Brush::Stroke(look.coast_mm as f32 * canvas.mm), paint(look.coast), window);
}

/// A colour of a specification as the brush takes it.
pub(super) fn paint(color: crate::spec::Color) -> Color {
    Color { rgb: color.rgb, alpha: color.alpha }
}

/// Coasts or borders.
fn lines(view: &View, base: &BaseMap, is_border: bool) -> Arc<Path> {
    let mut path = Path::default();
    for arc in base.arcs.iter().filter(|arc| arc.is_border == is_border) {
        view.chart.add_line(&arc.places, &mut path);
    }
    Arc::new(path.finish())
}

/// The water along the coasts. Land is drawn over the half of each line that lies on it.
fn shore(canvas: &mut Canvas<'_>, view: &View, coast: &Arc<Path>) {
    match canvas.look.shore {
        Shore::Plain => {}
        Shore::Glow(color, width_mm) => {
            const STEPS: usize = 3;
            let coast = &thinned(coast, width_mm as f32 * canvas.mm / STEPS as f32);
            for step in 0..STEPS {
                let share = (STEPS - step) as f32 / STEPS as f32;
                let width = 2.0 * width_mm as f32 * share * canvas.mm;
                canvas.add(coast, Brush::Stroke(width), paint(color), view.window);
            }
        }
        Shore::Waterlines(color) => {
            // Each line is a wide band with a slightly narrower band of water over it, from the outermost in.
            const OUT_MM: [f32; 3] = [2.1, 1.3, 0.65];
            const LINE_MM: f32 = 0.09;
            for out in OUT_MM {
                let coast = &thinned(coast, out * canvas.mm);
                canvas.add(coast, Brush::Stroke(2.0 * out * canvas.mm), paint(color), view.window);
                let inner = 2.0 * (out - LINE_MM) * canvas.mm;
                canvas.add(coast, Brush::Stroke(inner), paint(canvas.look.sea), view.window);
            }
        }
    }
}

/// A coast for lines that run this far from it, which round off what is smaller than an eighth of that.
fn thinned(coast: &Path, distance: f32) -> Arc<Path> {
    Arc::new(coast.thinned(distance / 8.0))
}

/// Meridians and parallels every so many degrees. Meridians end one step before the poles, where they would run
/// together; only every quarter goes on.
fn graticule(view: &View, step: f64) -> Arc<Path> {
    const QUARTER: f64 = 90.0;
    const ALONG: f64 = 2.0;
    let mut path = Path::default();
    let count = (360.0 / step).round() as i32;
    let last = (QUARTER - step).max(0.0) + 1e-6;
    for index in 0..count {
        let lon = -180.0 + f64::from(index) * step;
        let reach = if (lon / QUARTER).fract().abs() < 1e-9 { QUARTER } else { last };
        view.chart.add_line(&run(-reach, reach, ALONG, |lat| Place::from_degrees(lon, lat)), &mut path);
    }
    let mut lat = -((last / step).floor() * step);
    while lat <= last {
        view.chart.add_line(&run(-180.0, 180.0, ALONG, |lon| Place::from_degrees(lon, lat)), &mut path);
        lat += step;
    }
    Arc::new(path.finish())
}

/// Places from one value to another, both included, about `step` apart.
fn run(from: f64, to: f64, step: f64, place: impl Fn(f64) -> Place) -> Vec<Place> {
    let count = ((to - from) / step).ceil().max(1.0) as usize;
    (0..=count).map(|index| place(from + (to - from) * index as f64 / count as f64)).collect()
}

/// Countries in the theme's tints.
fn tint(canvas: &mut Canvas<'_>, view: &View, base: &BaseMap) {
    let tints = canvas.look.tints;
    let chosen = tints_of(base, tints.len());
    for (tint, rgb) in tints.into_iter().enumerate() {
        let mut path = Path::default();
        let countries = base.countries.iter().zip(&chosen).filter(|(_, own)| **own == tint);
        for rings in countries.flat_map(|(country, _)| base.land_of(country)) {
            view.chart.add_polygon(&rings, &mut path);
        }
        canvas.add(&Arc::new(path.finish()), Brush::Fill, Color { rgb, alpha: 255 }, view.window);
    }
}

/// A tint for each country, other than those of its neighbours: the largest choose first, each the one that is used least
/// so far.
fn tints_of(base: &BaseMap, count: usize) -> Vec<usize> {
    let neighbours = neighbours(&base.countries);
    let mut order: Vec<usize> = (0..base.countries.len()).collect();
    order.sort_by(|a, b| base.countries[*b].area.total_cmp(&base.countries[*a].area));
    let mut chosen: Vec<Option<usize>> = vec![None; base.countries.len()];
    let mut used = vec![0; count];
    for index in order {
        let taken: Vec<usize> = neighbours[index].iter().filter_map(|other| chosen[*other]).collect();
        let tint = (0..count).min_by_key(|tint| (taken.contains(tint), used[*tint])).unwrap_or(0);
        used[tint] += 1;
        chosen[index] = Some(tint);
    }
    chosen.into_iter().map(|tint| tint.unwrap_or(0)).collect()
}

/// For each country, those that share a border with it.
fn neighbours(countries: &[Country]) -> Vec<Vec<usize>> {
    let mut owners: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, country) in countries.iter().enumerate() {
        country.arcs().for_each(|arc| owners.entry(arc).or_default().push(index));
    }
    let mut neighbours = vec![Vec::new(); countries.len()];
    for (index, country) in countries.iter().enumerate() {
        let others = country.arcs().flat_map(|arc| &owners[&arc]).copied().filter(|other| *other != index);
        neighbours[index].extend(others);
    }
    neighbours
}
