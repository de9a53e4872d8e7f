//! Groups: what is masked, blended or see-through as a whole.

use super::{Canvas, Item, hash};
use crate::draw::looks::{blend_class, class, fill};
use crate::draw::path::{short, units};
use hayro_interpret::kurbo::Rect;
use hayro_interpret::{BlendMode, CacheKey as _, MaskType, SoftMask};
use std::fmt::Write as _;

impl Canvas<'_> {
    pub(super) fn with_effects(
        &mut self,
        mask: Option<SoftMask<'_>>,
        blend: BlendMode,
        draw: impl FnOnce(&mut Self),
    ) {
        let is_group = mask.is_some() || blend != BlendMode::Normal;
        if is_group {
            self.push_group(1.0, mask, blend);
        }
        draw(self);
        if is_group {
            self.pop_group();
        }
    }

    pub(super) fn push_group(&mut self, opacity: f32, mask: Option<SoftMask<'_>>, blend: BlendMode) {
        self.flush();
        let is_plain = mask.is_none() && blend == BlendMode::Normal && opacity >= 0.999;
        if is_plain {
            self.groups.push((false, self.clips_base));
            return;
        }
        let mut markup = String::from("<g");
        if let Some(clip) = self.clip_for(Rect::new(-1e9, -1e9, 1e9, 1e9)) {
            let _ = write!(markup, " clip-path=\"{}\"", self.url(clip));
        }
        if let Some(mask) = mask {
            let id = self.mask(&mask);
            let _ = write!(markup, " mask=\"{}\"", self.url(id));
        }
        if blend != BlendMode::Normal {
            let _ = write!(markup, " class=\"{}\"", blend_class(blend));
        }
        if opacity < 0.999 {
            let _ = write!(markup, " opacity=\"{}\"", short(opacity.into(), 3));
        }
        markup.push('>');
        self.items.push(Item::Group(markup));
        self.groups.push((true, self.clips_base));
        self.clips_base = self.clips.len();
    }

    pub(super) fn pop_group(&mut self) {
        self.flush();
        if let Some((is_real, base)) = self.groups.pop() {
            if is_real {
                self.items.push(Item::Group("</g>".into()));
            }
            self.clips_base = base.min(self.clips.len());
        }
    }

    pub(super) fn is_in_group(&self) -> bool {
        self.groups.iter().any(|(is_real, _)| *is_real)
    }

    fn mask(&mut self, mask: &SoftMask<'_>) -> u32 {
        let (id, is_new) = self.name(hash(&("mask", mask.cache_key())));
        if !is_new {
            return id;
        }
        let page = self.page;
        let inner = self.apart(|canvas| mask.interpret(canvas));
        let area = if self.depth == 0 { page } else { Rect::new(-1e4, -1e4, 1e4, 1e4) };
        let place = format!(
            "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            units(area.x0),
            units(area.y0),
            units(area.width()),
            units(area.height())
        );
        let back = mask.background_color().to_rgba().to_rgba8();
        let is_alpha = mask.mask_type() == MaskType::Alpha;
        let kind = if is_alpha { " mask-type=\"alpha\"" } else { "" };
        let back = if is_alpha || back[..3] == [0, 0, 0] {
            String::new()
        } else {
            format!("<rect {place}{}/>", class(self.store, &fill(back)))
        };
        let name = self.id(id);
        let filter = mask.transfer_function().map(|function| {
            let mut values: [u8; 17] = std::array::from_fn(|step| (step * 255 / 16) as u8);
            function.apply_to(&mut values);
            let table: Vec<String> = values.iter().map(|value| short(f64::from(*value) / 255.0, 3)).collect();
            let table = table.join(" ");
            let channels = if is_alpha { &["A"][..] } else { &["R", "G", "B"] };
            let functions: String = channels
                .iter()
                .map(|channel| format!("<feFunc{channel} type=\"table\" tableValues=\"{table}\"/>"))
                .collect();
            let _ = write!(
                self.defs,
                "<filter id=\"{name}f\" filterUnits=\"userSpaceOnUse\" {place} \
                 color-interpolation-filters=\"sRGB\"><feComponentTransfer>{functions}</feComponentTransfer></filter>"
            );
            format!(" filter=\"url(#{name}f)\"")
        });
        // A filter changes the black around what is drawn as well, so there must be something to change.
        let (open, close) = match filter {
            Some(filter) => (
                format!("<g{filter}><rect {place} fill=\"{}\"/>", if is_alpha { "none" } else { "#000" }),
                "</g>",
            ),
            None => (String::new(), ""),
        };
        let _ = write!(
            self.defs,
            "<mask id=\"{name}\" maskUnits=\"userSpaceOnUse\" {place}{kind}>{open}{back}{inner}{close}</mask>"
        );
        self.charge(0, inner.len());
        id
    }
}
