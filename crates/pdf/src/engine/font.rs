//! Fonts as text needs them: codes, widths and Unicode, with every fallback there is.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use hayro_cmap::{BfString, CMap, CMapName, CidFamily, WritingMode};
use hayro_font::{CMapResolverFn, FontCache, FontGlyph, FontQuery, FontResolverFn, StandardFont};
use hayro_syntax::object::dict::keys;
use hayro_syntax::object::{Array, Dict, Name, Object, Stream, String as PdfString};

use super::decode::Decoder;
use super::program::{Program, is_private};

/// A font whose size on the page is one unit has a line of about this height.
const ASCENT: f32 = 0.75;
const DESCENT: f32 = 0.22;
/// Pieces of a composite font's table of widths that are kept.
const WIDTH_RANGES_MAX: usize = 100_000;
const FORCE_BOLD: u32 = 1 << 18;

/// All fonts of a document, each read once.
pub(crate) struct Fonts<'r, 'a> {
    known: RefCell<HashMap<(usize, usize), Option<Rc<Font<'a>>>>>,
    tools: Tools<'r, 'a>,
}

struct Tools<'r, 'a> {
    decoder: &'r Decoder,
    cache: FontCache<'a>,
    font_resolver: FontResolverFn,
    cmap_resolver: CMapResolverFn,
}

impl<'r, 'a> Fonts<'r, 'a> {
    pub(crate) fn new(decoder: &'r Decoder) -> Self {
        Self {
            known: RefCell::default(),
            tools: Tools {
                decoder,
                cache: FontCache::new(),
                font_resolver: Arc::new(|query| match query {
                    FontQuery::Standard(standard) => Some(standard.get_font_data()),
                    FontQuery::Fallback(fallback) => Some(fallback.pick_standard_font().get_font_data()),
                }),
                cmap_resolver: Arc::new(hayro_cmap::load_embedded),
            },
        }
    }

    /// The font that a dictionary describes.
    pub(crate) fn font(&self, dict: &Dict<'a>) -> Option<Rc<Font<'a>>> {
        // A dictionary is known by where it lies: its object number would be that of whatever contains it.
        let key = (dict.data().as_ptr() as usize, dict.data().len());
        if let Some(font) = self.known.borrow().get(&key) {
            return font.clone();
        }
        let font = Font::read(dict, &self.tools).map(Rc::new);
        self.known.borrow_mut().insert(key, font.clone());
        font
    }

    /// The font used where none is named.
    pub(crate) fn fallback(&self) -> Option<Rc<Font<'a>>> {
        let key = (0, 0);
        if let Some(font) = self.known.borrow().get(&key) {
            return font.clone();
        }
        let standard = self.tools.cache.standard_font(StandardFont::Helvetica, &self.tools.font_resolver);
        let font = standard.map(|standard| {
            let simple = Simple {
                first: 0,
                widths: Vec::new(),
                missing_width: 0.0,
                standard: Some(standard),
                to_unicode: None,
            };
            Rc::new(Font::new(
                Kind::Simple(simple),
                Look { ascent: ASCENT, descent: DESCENT, em: 1.0, is_bold: false },
            ))
        });
        self.known.borrow_mut().insert(key, font.clone());
        font
    }
}

/// A font.
pub(crate) struct Font<'a> {
    kind: Kind<'a>,
    pub(crate) look: Look,
    characters: RefCell<HashMap<u32, Rc<Character>>>,
}

/// What a font's glyphs look like as far as boxes are concerned.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) ascent: f32,
    pub(crate) descent: f32,
    /// Height of the font's square in text units: 1 but for fonts drawn by content streams.
    pub(crate) em: f32,
    pub(crate) is_bold: bool,
}

/// What one code of a font stands for.
pub(crate) struct Character {
    /// How far it moves the pen, in text units: to the right, or downwards in vertical writing.
    pub(crate) advance: f64,
    /// Its Unicode, empty when nobody knows.
    pub(crate) text: String,
}

enum Kind<'a> {
    Simple(Simple<'a>),
    Composite(Box<Composite>),
}

impl<'a> Font<'a> {
    fn new(kind: Kind<'a>, look: Look) -> Self {
        Self { kind, look, characters: RefCell::default() }
    }

    fn read(dict: &Dict<'a>, tools: &Tools<'_, 'a>) -> Option<Self> {
        let subtype = dict.get::<Name<'_>>(keys::SUBTYPE)?;
        match subtype.as_ref() {
            b"Type0" => Composite::read(dict, tools),
            b"Type3" => Some(Simple::read_type3(dict, tools)),
            _ => Some(Simple::read(dict, tools)),
        }
    }

    /// Reads the next code of a string: the code and how many bytes it took.
    pub(crate) fn next_code(&self, bytes: &[u8]) -> (u32, usize) {
        match &self.kind {
            Kind::Simple(_) => (u32::from(bytes[0]), 1),
            Kind::Composite(composite) => composite.next_code(bytes),
        }
    }

    /// What a code stands for.
    pub(crate) fn character(&self, code: u32) -> Rc<Character> {
        if let Some(character) = self.characters.borrow().get(&code) {
            return character.clone();
        }
        let character = Rc::new(match &self.kind {
            Kind::Simple(simple) => Character { advance: simple.advance(code), text: simple.text(code) },
            Kind::Composite(composite) => composite.character(code),
        });
        self.characters.borrow_mut().insert(code, character.clone());
        character
    }

    /// Whether lines run downwards.
    pub(crate) fn is_vertical(&self) -> bool {
        matches!(&self.kind, Kind::Composite(composite) if composite.is_vertical)
    }
}

/// A font with codes of one byte.
struct Simple<'a> {
    first: u32,
    widths: Vec<f32>,
    missing_width: f32,
    to_unicode: Option<CMap>,
    /// The parser's own view of the font, with its encoding and program.
    standard: Option<hayro_font::Font<'a>>,
}

impl<'a> Simple<'a> {
    fn read(dict: &Dict<'a>, tools: &Tools<'_, 'a>) -> Font<'a> {
        let descriptor = dict.get::<Dict<'_>>(keys::FONT_DESC).unwrap_or_default();
        let look = look(dict, &descriptor);
        Font::new(Kind::Simple(Self::read_codes(dict, &descriptor, tools)), look)
    }

    fn read_codes(dict: &Dict<'a>, descriptor: &Dict<'_>, tools: &Tools<'_, 'a>) -> Self {
        let first = dict.get::<u32>(keys::FIRST_CHAR).unwrap_or(0);
        let widths = dict.get::<Array<'_>>(keys::WIDTHS);
        let widths = widths.map(|widths| widths.iter::<f32>().take(256).collect()).unwrap_or_default();
        // The parser makes room for every code before the first one, however far away that is.
        let is_sane = first <= 255;
        Self {
            first,
            widths,
            missing_width: descriptor.get::<f32>(keys::MISSING_WIDTH).unwrap_or(0.0),
            to_unicode: read_to_unicode(dict, tools),
            standard: is_sane
                .then(|| tools.cache.font(dict, &tools.font_resolver, &tools.cmap_resolver))
                .flatten(),
        }
    }

    /// A font drawn by content streams: its square is whatever its matrix makes of it.
    fn read_type3(dict: &Dict<'a>, tools: &Tools<'_, 'a>) -> Font<'a> {
        let mut codes = Self::read_codes(dict, dict, tools);
        let matrix = dict.get::<[f32; 6]>(keys::FONT_MATRIX).unwrap_or([0.001, 0.0, 0.0, 0.001, 0.0, 0.0]);
        let (across, up) = (matrix[0].abs(), matrix[3].abs());
        for width in &mut codes.widths {
            *width *= across * 1000.0;
        }
        let bounds = dict.get::<[f32; 4]>(keys::FONT_BBOX).unwrap_or_default();
        let height = (bounds[3] - bounds[1]).abs() * up;
        let shown: Vec<f32> = codes.widths.iter().copied().filter(|width| *width > 0.0).collect();
        let mean_width = shown.iter().sum::<f32>() / shown.len().max(1) as f32 / 1000.0;
        // Where the font gives no box, letters are about half as wide as their line is high.
        let em =
            if (0.2 * mean_width..=8.0 * mean_width).contains(&height) { height } else { mean_width * 2.0 };
        let em = if em.is_finite() && em > 0.0 { em } else { 1.0 };
        let is_bold = is_bold_name(dict);
        Font::new(Kind::Simple(codes), Look { ascent: ASCENT, descent: DESCENT, em, is_bold })
    }

    fn advance(&self, code: u32) -> f64 {
        let listed = code.checked_sub(self.first).and_then(|index| self.widths.get(index as usize));
        let width = match (listed, &self.standard) {
            (Some(width), _) => *width,
            (None, Some(standard)) if self.widths.is_empty() => standard.code_advance(code).x as f32,
            _ => self.missing_width,
        };
        f64::from(width) / 1000.0
    }

    fn text(&self, code: u32) -> String {
        mapped(self.to_unicode.as_ref(), code)
            .or_else(|| {
                let standard = self.standard.as_ref()?;
                clean(match standard.glyph(standard.map_code(code), code) {
                    FontGlyph::Outline(glyph) => glyph.as_unicode(),
                    FontGlyph::Type3(glyph) => glyph.as_unicode(),
                }?)
            })
            .or_else(|| char::from_u32(code).filter(|character| !character.is_control()).map(String::from))
            .unwrap_or_default()
    }
}

/// A font with codes of several bytes, each naming a numbered character.
struct Composite {
    encoding: CMap,
    is_vertical: bool,
    widths: HashMap<u32, f32>,
    width_ranges: Vec<(u32, u32, f32)>,
    default_width: f32,
    heights: HashMap<u32, f32>,
    height_ranges: Vec<(u32, u32, f32)>,
    default_height: f32,
    to_unicode: Option<CMap>,
    to_unicode_is_identity: bool,
    family: Option<CidFamily>,
    collection: OnceCell<Option<CMap>>,
    program: Program,
    glyph_by_cid: Option<Vec<u8>>,
}

impl Composite {
    fn read<'a>(dict: &Dict<'a>, tools: &Tools<'_, 'a>) -> Option<Font<'a>> {
        let encoding = dict
            .get::<Object<'_>>(keys::ENCODING)
            .and_then(|encoding| read_encoding(&encoding, tools))
            .unwrap_or_else(CMap::identity_h);
        let inner =
            dict.get::<Array<'_>>(keys::DESCENDANT_FONTS).and_then(|fonts| fonts.iter::<Dict<'_>>().next());
        let inner = inner.or_else(|| dict.get::<Dict<'_>>(keys::DESCENDANT_FONTS))?;
        let descriptor = inner.get::<Dict<'_>>(keys::FONT_DESC).unwrap_or_default();
        let is_vertical = encoding.metadata().writing_mode == Some(WritingMode::Vertical);
        let (widths, width_ranges) = read_widths(inner.get::<Array<'_>>(keys::W), 1);
        let (heights, height_ranges) =
            read_widths(inner.get::<Array<'_>>(keys::W2).filter(|_| is_vertical), 3);
        let to_unicode = read_to_unicode(dict, tools);
        let family = read_family(&encoding, &inner);
        let needs_program = to_unicode.is_none() && ucs2(family.as_ref()).is_none();
        let mut look = look(dict, &descriptor);
        if is_vertical {
            (look.ascent, look.descent) = (0.5, 0.5);
        }
        let composite = Self {
            is_vertical,
            widths,
            width_ranges,
            default_width: inner.get::<f32>(keys::DW).unwrap_or(1000.0),
            heights,
            height_ranges,
            default_height: inner.get::<[f32; 2]>(keys::DW2).map_or(-1000.0, |pair| pair[1]),
            to_unicode_is_identity: to_unicode.is_none()
                && dict
                    .get::<Name<'_>>(keys::TO_UNICODE)
                    .is_some_and(|name| name.as_ref().starts_with(b"Identity")),
            to_unicode,
            collection: OnceCell::new(),
            program: if needs_program { read_program(&descriptor, tools) } else { Program::default() },
            glyph_by_cid: inner
                .get::<Stream<'_>>(keys::CID_TO_GID_MAP)
                .and_then(|stream| tools.decoder.decode(&stream))
                .map(|map| map.into_owned()),
            family,
            encoding,
        };
        Some(Font::new(Kind::Composite(Box::new(composite)), look))
    }

    fn next_code(&self, bytes: &[u8]) -> (u32, usize) {
        let mut code = 0;
        for (index, byte) in bytes.iter().take(4).enumerate() {
            code = code << 8 | u32::from(*byte);
            if self.encoding.lookup_cid_code(code, index as u8 + 1).is_some() {
                return (code, index + 1);
            }
        }
        (0, bytes.len().min(2))
    }

    fn cid(&self, code: u32) -> u32 {
        (1..=4).find_map(|length| self.encoding.lookup_cid_code(code, length)).unwrap_or(0)
    }

    fn character(&self, code: u32) -> Character {
        let cid = self.cid(code);
        let advance = if self.is_vertical {
            width_of(cid, &self.heights, &self.height_ranges).unwrap_or(self.default_height)
        } else {
            width_of(cid, &self.widths, &self.width_ranges).unwrap_or(self.default_width)
        };
        Character { advance: f64::from(advance) / 1000.0, text: self.text(code, cid) }
    }

    fn text(&self, code: u32, cid: u32) -> String {
        mapped(self.to_unicode.as_ref(), code)
            .or_else(|| {
                let character = char::from_u32(code).filter(|_| self.to_unicode_is_identity)?;
                clean(BfString::Char(character))
            })
            .or_else(|| mapped(self.collection(), cid))
            .or_else(|| self.program.character(self.glyph(cid)).map(String::from))
            .unwrap_or_default()
    }

    fn glyph(&self, cid: u32) -> u32 {
        let Some(map) = &self.glyph_by_cid else {
            return cid;
        };
        let index = cid as usize * 2;
        map.get(index..index + 2).map_or(0, |pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
    }

    /// Unicode by character number, as the publisher of the character collection lists it.
    fn collection(&self) -> Option<&CMap> {
        self.collection
            .get_or_init(|| {
                let data = hayro_cmap::load_embedded(ucs2(self.family.as_ref())?)?;
                CMap::parse(data, hayro_cmap::load_embedded)
            })
            .as_ref()
    }
}

fn ucs2(family: Option<&CidFamily>) -> Option<CMapName<'static>> {
    family.and_then(CidFamily::ucs2_cmap)
}

fn read_family(encoding: &CMap, inner: &Dict<'_>) -> Option<CidFamily> {
    let by_encoding =
        encoding.metadata().character_collection.as_ref().map(|collection| collection.family.clone());
    by_encoding.filter(|family| ucs2(Some(family)).is_some()).or_else(|| {
        let info = inner.get::<Dict<'_>>(keys::CIDSYSTEMINFO)?;
        let registry = info.get::<PdfString<'_>>(keys::REGISTRY)?;
        let ordering = info.get::<PdfString<'_>>(keys::ORDERING)?;
        Some(CidFamily::from_registry_ordering(registry.as_bytes(), ordering.as_bytes()))
    })
}

fn read_encoding(encoding: &Object<'_>, tools: &Tools<'_, '_>) -> Option<CMap> {
    match encoding {
        Object::Name(name) => match CMapName::from_bytes(name.as_ref()) {
            CMapName::IdentityH => Some(CMap::identity_h()),
            CMapName::IdentityV => Some(CMap::identity_v()),
            name => CMap::parse(hayro_cmap::load_embedded(name)?, hayro_cmap::load_embedded),
        },
        Object::Stream(stream) => CMap::parse(&tools.decoder.decode(stream)?, hayro_cmap::load_embedded),
        _ => None,
    }
}

fn read_to_unicode(dict: &Dict<'_>, tools: &Tools<'_, '_>) -> Option<CMap> {
    let stream = dict.get::<Stream<'_>>(keys::TO_UNICODE)?;
    CMap::parse(&tools.decoder.decode(&stream)?, hayro_cmap::load_embedded)
}

fn read_program(descriptor: &Dict<'_>, tools: &Tools<'_, '_>) -> Program {
    [keys::FONT_FILE2, keys::FONT_FILE3, keys::FONT_FILE]
        .into_iter()
        .find_map(|key| descriptor.get::<Stream<'_>>(key))
        .and_then(|stream| tools.decoder.decode(&stream))
        .map(|data| Program::read(&data))
        .unwrap_or_default()
}

type Widths = (HashMap<u32, f32>, Vec<(u32, u32, f32)>);

/// Reads a composite font's widths: `first [w …]` or `first last w`, where each entry is `values` numbers of which
/// the first is the one wanted.
fn read_widths(array: Option<Array<'_>>, values: usize) -> Widths {
    let (mut single, mut ranges) = (HashMap::new(), Vec::new());
    let Some(array) = array else {
        return (single, ranges);
    };
    let mut pending: Vec<f32> = Vec::new();
    for item in array.iter::<Object<'_>>() {
        match item {
            Object::Array(list) => {
                let first = pending.first().copied().unwrap_or(0.0) as u32;
                pending.clear();
                for (index, width) in list.iter::<f32>().step_by(values).take(WIDTH_RANGES_MAX).enumerate() {
                    single.insert(first.saturating_add(index as u32), width);
                }
            }
            Object::Number(number) => {
                pending.push(number.as_f32());
                if pending.len() == 2 + values {
                    ranges.push((pending[0] as u32, pending[1] as u32, pending[2]));
                    pending.clear();
                }
            }
            _ => {}
        }
        if single.len() + ranges.len() > WIDTH_RANGES_MAX {
            break;
        }
    }
    ranges.sort_by_key(|range| range.0);
    (single, ranges)
}

fn width_of(cid: u32, single: &HashMap<u32, f32>, ranges: &[(u32, u32, f32)]) -> Option<f32> {
    single.get(&cid).copied().or_else(|| {
        let after = ranges.partition_point(|range| range.0 <= cid);
        ranges[..after].last().filter(|range| cid <= range.1).map(|range| range.2)
    })
}

fn mapped(map: Option<&CMap>, code: u32) -> Option<String> {
    clean(map?.lookup_bf_string(code)?)
}

/// Unicode without control characters; nothing when nothing is left.
fn clean(text: BfString) -> Option<String> {
    let is_wanted =
        |character: &char| !character.is_control() && *character != '\u{fffd}' && *character != '\u{feff}';
    let text: String = match text {
        BfString::Char('\t' | '\n' | '\r') => " ".into(),
        BfString::Char(character) => Some(character).filter(is_wanted)?.into(),
        BfString::String(text) => text.chars().filter(is_wanted).collect(),
    };
    (!text.is_empty() && !text.chars().all(is_private)).then_some(text)
}

fn look(dict: &Dict<'_>, descriptor: &Dict<'_>) -> Look {
    let measure = |key, low: f32, high: f32| {
        let value = descriptor.get::<f32>(key).map_or(0.0, f32::abs) / 1000.0;
        (low..=high).contains(&value).then_some(value)
    };
    let is_heavy = descriptor.get::<f32>(keys::FONT_WEIGHT).is_some_and(|weight| weight >= 600.0)
        || descriptor.get::<u32>(keys::FLAGS).is_some_and(|flags| flags & FORCE_BOLD != 0);
    Look {
        ascent: measure(keys::ASCENT, 0.5, 1.1).unwrap_or(ASCENT),
        descent: measure(keys::DESCENT, 0.05, 0.5).unwrap_or(DESCENT),
        em: 1.0,
        is_bold: is_heavy || is_bold_name(dict),
    }
}

fn is_bold_name(dict: &Dict<'_>) -> bool {
    let name = dict.get::<Name<'_>>(keys::BASE_FONT).or_else(|| dict.get::<Name<'_>>(keys::NAME));
    let name = name.map(|name| name.as_str().to_ascii_lowercase()).unwrap_or_default();
    ["bold", "black", "heavy", "demi"].iter().any(|weight| name.contains(weight))
}
