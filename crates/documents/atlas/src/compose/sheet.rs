//! How the page is divided: the title, the map, what explains it, and the credit line.

use super::{Area, Canvas, furniture};
use crate::spec::{Page, Spec, TitlePlace};

#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) map: Area,
    /// For the legend and the scale bar, if there are any.
    pub(super) strip: Option<Area>,
    pub(super) title: Option<Area>,
    pub(super) credit: Option<Area>,
    /// The measure of type on this page, in pixels: everything grows with the paper.
    pub(super) unit: f32,
}

/// The room between parts of the page, in units.
const GAP: f32 = 2.8;
/// How high the title, the line below it and the note are, with the room above each, in units.
pub(super) const TITLE: f32 = 5.6;
pub(super) const SUBTITLE: f32 = 3.5;
pub(super) const NOTE: f32 = 2.4;
const CREDIT: f32 = 1.2;

impl Sheet {
    pub(super) fn new(spec: &Spec, page: &Page, canvas: &mut Canvas<'_>) -> Self {
        let [width, height] = page.trimmed_mm().map(|mm| mm as f32 * canvas.mm);
        let inset = (page.bleed_mm + page.margin_mm) as f32 * canvas.mm;
        let trim = page.bleed_mm as f32 * canvas.mm;
        let mut map = Area {
            left: inset,
            top: inset,
            right: trim + width - (inset - trim),
            bottom: trim + height - (inset - trim),
        };
        // An eightieth of the paper's width, 5.7 mm on a poster of 18 by 24 inches; where the paper is low, less of it.
        let unit = (width / 80.0).min(height / 96.0);
        let credit = (!spec.furniture.credit.is_empty()).then(|| {
            let area = Area { top: map.bottom - CREDIT * unit, ..map };
            map.bottom = area.top - 0.6 * GAP * unit;
            area
        });
        let title_height = title_height(spec) * unit;
        let title = (title_height > 0.0).then(|| match spec.title.place {
            TitlePlace::Top => {
                let area = Area { bottom: map.top + title_height, ..map };
                map.top = area.bottom + GAP * unit;
                area
            }
            TitlePlace::Bottom => {
                let area = Area { top: map.bottom - title_height, ..map };
                map.bottom = area.top - GAP * unit;
                area
            }
        });
        let strip_height = furniture::strip_height(canvas, spec, unit, map);
        let strip = (strip_height > 0.0).then(|| {
            let area = Area { top: map.bottom - strip_height, ..map };
            map.bottom = area.top - 0.8 * GAP * unit;
            area
        });
        Self { map, strip, title, credit, unit }
    }
}

fn title_height(spec: &Spec) -> f32 {
    let title = &spec.title;
    let parts = [(&title.text, TITLE), (&title.subtitle, SUBTITLE), (&title.note, NOTE)];
    parts.iter().filter(|(text, _)| !text.is_empty()).map(|(_, height)| height).sum()
}
