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
use super::numbered::Numbered;
use super::place::Place;
use super::program::{Program, text_by_name, windows_text};
use super::to_unicode::ToUnicode;

/// A font whose size on the page is one unit has a line of about this height.
const ASCENT: f32 = 0.75;
const DESCENT: f32 = 0.22;
/// Pieces of a composite font's table of widths that are kept.
const WIDTH_RANGES_MAX: usize = 100_000;
const FORCE_BOLD: u32 = 1 << 18;

/// All fonts of a document, each read once.
pub(crate) struct Fonts<'a> {
    known: RefCell<HashMap<Place, Rc<Font<'a>>>>,
    tools: Rc<Tools<'a>>,
}

/// What fonts need while they are read, and later for what they read only when asked.
struct Tools<'a> {
    decoder: Rc<Decoder>,
    cache: FontCache<'a>,
    font_resolver: FontResolverFn,
    cmap_resolver: CMapResolverFn,
}

impl<'a> Fonts<'a> {
    pub(crate) fn new(decoder: Rc<Decoder>) -> Self {
        let tools = Tools {
            decoder,
            cache: FontCache::new(),
            font_resolver: Arc::new(|query| match query {
                FontQuery::Standard(standard) => Some(standard.get_font_data()),
                FontQuery::Fallback(fallback) => Some(fallback.pick_standard_font().get_font_data()),
            }),
            cmap_resolver: Arc::new(hayro_cmap::load_embedded),
        };
        Self { known: RefCell::default(), tools: Rc::new(tools) }
    }

    /// The font that a dictionary describes.
    pub(crate) fn font(&self, dict: &Dict<'a>) -> Rc<Font<'a>> {
        let key = Place::of(dict);
        if let Some(font) = self.known.borrow().get(&key) {
            return font.clone();
        }
        let font = Rc::new(Font { number: self.next_number(), ..Font::read(dict, &self.tools) });
        self.known.borrow_mut().insert(key, font.clone());
        font
    }

    fn next_number(&self) -> u32 {
        self.known.borrow().len() as u32
    }

    /// The font used where none is named.
    pub(crate) fn fallback(&self) -> Rc<Font<'a>> {
        let key = Place::NOWHERE;
        if let Some(font) = self.known.borrow().get(&key) {
            return font.clone();
        }
        let font = Rc::new(Font { number: self.next_number(), ..Simple::read(&Dict::empty(), &self.tools) });
        self.known.borrow_mut().insert(key, font.clone());
        font
    }
}

pub(crate) struct Font<'a> {
    /// By which glyphs name it: its turn among the document's fonts.
    pub(crate) number: u32,
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
    Simple(Box<Simple<'a>>),
    Composite(Box<Composite<'a>>),
}

impl<'a> Font<'a> {
    fn new(kind: Kind<'a>, look: Look) -> Self {
        Self { number: 0, kind, look, characters: RefCell::default() }
    }

    fn read(dict: &Dict<'a>, tools: &Rc<Tools<'a>>) -> Self {
        let subtype = dict.get::<Name<'_>>(keys::SUBTYPE);
        match subtype.as_ref().map(AsRef::as_ref) {
            Some(b"Type0") => Composite::read(dict, tools),
            Some(b"Type3") => Simple::read_type3(dict, tools),
            _ => Simple::read(dict, tools),
        }
    }

    /// Reads the next code of a string that is not empty: the code and how many bytes it took.
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

    /// The code that stands for a letter; nothing where there is none, or where codes have several bytes.
    pub(crate) fn code_of(&self, letter: char) -> Option<u8> {
        let is_it = |code: &u8| self.character(u32::from(*code)).text.chars().eq([letter]);
        match &self.kind {
            Kind::Simple(_) => u8::try_from(letter).ok().filter(is_it).or_else(|| (0..=u8::MAX).find(is_it)),
            Kind::Composite(_) => None,
        }
    }

    /// Whether it counts its glyphs but is not in the document.
    pub(crate) fn is_substitute(&self) -> bool {
        matches!(&self.kind, Kind::Composite(composite) if !composite.has_program)
    }

    /// Whether lines run downwards.
    pub(crate) fn is_vertical(&self) -> bool {
        matches!(&self.kind, Kind::Composite(composite) if composite.is_vertical)
    }
}

/// A font with codes of one byte.
struct Simple<'a> {
    dict: Dict<'a>,
    tools: Rc<Tools<'a>>,
    first: u32,
    widths: Vec<f32>,
    missing_width: f32,
    to_unicode: Option<ToUnicode>,
    /// Names of glyphs by code, of a font drawn by content streams: they are the only thing known about it.
    names: Option<HashMap<u32, String>>,
    /// The parser's own view of the font, with its encoding and program; read when it is first needed.
    parsed: OnceCell<Option<hayro_font::Font<'a>>>,
    program: OnceCell<Program>,
    numbered: OnceCell<Option<Numbered>>,
}

impl<'a> Simple<'a> {
    fn read(dict: &Dict<'a>, tools: &Rc<Tools<'a>>) -> Font<'a> {
        let descriptor = dict.get::<Dict<'_>>(keys::FONT_DESC).unwrap_or_default();
        let look = look(dict, &descriptor);
        Font::new(Kind::Simple(Box::new(Self::read_codes(dict, &descriptor, tools))), look)
    }

    fn read_codes(dict: &Dict<'a>, descriptor: &Dict<'_>, tools: &Rc<Tools<'a>>) -> Self {
        let widths = dict.get::<Array<'_>>(keys::WIDTHS);
        Self {
            dict: dict.clone(),
            tools: tools.clone(),
            first: dict.get::<u32>(keys::FIRST_CHAR).unwrap_or(0),
            widths: widths.map(|widths| widths.iter::<f32>().take(256).collect()).unwrap_or_default(),
            missing_width: descriptor.get::<f32>(keys::MISSING_WIDTH).unwrap_or(0.0),
            to_unicode: read_to_unicode(dict, tools),
            names: None,
            parsed: OnceCell::new(),
            program: OnceCell::new(),
            numbered: OnceCell::new(),
        }
    }

    /// A font drawn by content streams: its square is whatever its matrix makes of it.
    fn read_type3(dict: &Dict<'a>, tools: &Rc<Tools<'a>>) -> Font<'a> {
        let mut codes = Self::read_codes(dict, dict, tools);
        codes.names = Some(read_differences(dict));
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
        Font::new(Kind::Simple(Box::new(codes)), Look { ascent: ASCENT, descent: DESCENT, em, is_bold })
    }

    fn advance(&self, code: u32) -> f64 {
        let listed = code.checked_sub(self.first).and_then(|index| self.widths.get(index as usize));
        let width = match listed {
            Some(width) => *width,
            None if self.widths.is_empty() => {
                self.parsed().map_or(0.0, |font| font.code_advance(code).x as f32)
            }
            None => self.missing_width,
        };
        f64::from(width) / 1000.0
    }

    fn text(&self, code: u32) -> String {
        told(self.to_unicode.as_ref(), code)
            .or_else(|| match &self.names {
                Some(names) => names.get(&code).and_then(|name| text_by_name(name)),
                None => self.parsed_text(code),
            })
            .or_else(|| self.counted_text(code))
            .unwrap_or_default()
    }

    /// By the number that its glyph is named by, and where it has none by the code itself.
    fn counted_text(&self, code: u32) -> Option<String> {
        let numbered = self.numbered.get_or_init(|| Numbered::read(&read_differences(&self.dict)));
        match numbered {
            Some(numbered) => numbered.text(code),
            None => char::from_u32(code).filter(|character| !character.is_control()).map(String::from),
        }
    }

    /// By the font's encoding, and where that is silent by its program.
    fn parsed_text(&self, code: u32) -> Option<String> {
        let font = self.parsed()?;
        let glyph = font.map_code(code);
        let by_name = match font.glyph(glyph, code) {
            FontGlyph::Outline(glyph) => glyph.as_unicode(),
            FontGlyph::Type3(glyph) => glyph.as_unicode(),
        };
        by_name.and_then(clean_bf).or_else(|| {
            let descriptor = self.dict.get::<Dict<'_>>(keys::FONT_DESC)?;
            let program = self.program.get_or_init(|| read_program(&descriptor, &self.tools));
            program.text(glyph.to_u32()).filter(|_| glyph.to_u32() != 0)
        })
    }

    fn parsed(&self) -> Option<&hayro_font::Font<'a>> {
        let tools = &self.tools;
        let parse = || {
            if self.dict.is_empty() {
                return tools.cache.standard_font(StandardFont::Helvetica, &tools.font_resolver);
            }
            // The parser makes room for every code before the first one, however far away that is, and unpacks
            // the program without a bound.
            let descriptor = self.dict.get::<Dict<'_>>(keys::FONT_DESC).unwrap_or_default();
            let is_sane = self.first <= 255
                && program_stream(&descriptor).is_none_or(|stream| tools.decoder.is_bounded(&stream));
            is_sane
                .then(|| tools.cache.font(&self.dict, &tools.font_resolver, &tools.cmap_resolver))
                .flatten()
        };
        self.parsed.get_or_init(parse).as_ref()
    }
}

/// A font with codes of several bytes, each naming a numbered character.
struct Composite<'a> {
    encoding: CMap,
    is_vertical: bool,
    widths: Widths,
    default_width: f32,
    heights: Widths,
    default_height: f32,
    to_unicode: Option<ToUnicode>,
    family: Option<CidFamily>,
    collection: OnceCell<Option<CMap>>,
    descriptor: Dict<'a>,
    has_program: bool,
    tools: Rc<Tools<'a>>,
    program: OnceCell<Program>,
    glyph_by_cid: Option<Vec<u8>>,
    codes: Codes,
}

/// What the codes of a composite font are when nothing else explains them.
#[derive(Clone, Copy, PartialEq)]
enum Codes {
    /// Unicode: the font is not there, or says so itself.
    Unicode,
    /// Glyphs of a well-known font that is not there.
    Glyphs,
    /// Glyphs of the embedded font.
    Embedded,
}

impl<'a> Composite<'a> {
    fn read(dict: &Dict<'a>, tools: &Rc<Tools<'a>>) -> Font<'a> {
        let encoding = dict
            .get::<Object<'_>>(keys::ENCODING)
            .and_then(|encoding| read_encoding(&encoding, tools))
            .unwrap_or_else(CMap::identity_h);
        let inner =
            dict.get::<Array<'_>>(keys::DESCENDANT_FONTS).and_then(|fonts| fonts.iter::<Dict<'_>>().next());
        // A font that lacks its inner one may still say what its codes mean.
        let inner = inner.or_else(|| dict.get::<Dict<'_>>(keys::DESCENDANT_FONTS)).unwrap_or_default();
        let descriptor = inner.get::<Dict<'_>>(keys::FONT_DESC).unwrap_or_default();
        let is_vertical = encoding.metadata().writing_mode == Some(WritingMode::Vertical);
        let mut look = look(dict, &descriptor);
        if is_vertical {
            (look.ascent, look.descent) = (0.5, 0.5);
        }
        let composite = Self {
            is_vertical,
            widths: Widths::read(inner.get::<Array<'_>>(keys::W), 1),
            default_width: inner.get::<f32>(keys::DW).unwrap_or(1000.0),
            heights: Widths::read(inner.get::<Array<'_>>(keys::W2).filter(|_| is_vertical), 3),
            default_height: inner.get::<[f32; 2]>(keys::DW2).map_or(-1000.0, |pair| pair[1]),
            to_unicode: read_to_unicode(dict, tools),
            collection: OnceCell::new(),
            program: OnceCell::new(),
            glyph_by_cid: inner
                .get::<Stream<'_>>(keys::CID_TO_GID_MAP)
                .and_then(|stream| tools.decoder.decode(&stream))
                .map(|map| map.into_owned()),
            codes: codes(dict, &descriptor),
            family: read_family(&encoding, &inner),
            encoding,
            has_program: program_stream(&descriptor).is_some(),
            descriptor,
            tools: tools.clone(),
        };
        Font::new(Kind::Composite(Box::new(composite)), look)
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
            self.heights.of(cid).unwrap_or(self.default_height)
        } else {
            self.widths.of(cid).unwrap_or(self.default_width)
        };
        Character { advance: f64::from(advance) / 1000.0, text: self.text(code, cid).unwrap_or_default() }
    }

    fn text(&self, code: u32, cid: u32) -> Option<String> {
        told(self.to_unicode.as_ref(), code).or_else(|| mapped(self.collection(), cid)).or_else(|| match self
            .codes
        {
            Codes::Unicode => clean(char::from_u32(code)?.encode_utf8(&mut [0; 4])),
            Codes::Glyphs => windows_text(cid),
            Codes::Embedded => {
                let program = self.program.get_or_init(|| read_program(&self.descriptor, &self.tools));
                program.text(self.glyph(cid))
            }
        })
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

fn codes(dict: &Dict<'_>, descriptor: &Dict<'_>) -> Codes {
    let names_unicode =
        dict.get::<Name<'_>>(keys::TO_UNICODE).is_some_and(|name| name.as_ref().starts_with(b"Identity"));
    if program_stream(descriptor).is_some() && !names_unicode {
        return Codes::Embedded;
    }
    let name =
        dict.get::<Name<'_>>(keys::BASE_FONT).map(|name| name.as_str().replace(' ', "")).unwrap_or_default();
    let is_known = ["Arial", "TimesNewRoman", "CourierNew", "Verdana", "Tahoma", "Georgia"]
        .iter()
        .any(|known| name.starts_with(known));
    if is_known && !names_unicode { Codes::Glyphs } else { Codes::Unicode }
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

fn read_encoding(encoding: &Object<'_>, tools: &Tools<'_>) -> Option<CMap> {
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

fn read_to_unicode(dict: &Dict<'_>, tools: &Tools<'_>) -> Option<ToUnicode> {
    let stream = dict.get::<Stream<'_>>(keys::TO_UNICODE)?;
    Some(ToUnicode::read(&tools.decoder.decode(&stream)?))
}

/// The names that a font's encoding gives its codes.
fn read_differences(dict: &Dict<'_>) -> HashMap<u32, String> {
    let differences = dict
        .get::<Dict<'_>>(keys::ENCODING)
        .and_then(|encoding| encoding.get::<Array<'_>>(keys::DIFFERENCES));
    let mut names = HashMap::new();
    let mut code = 0_u32;
    for item in differences.iter().flat_map(|differences| differences.iter::<Object<'_>>()).take(1024) {
        match item {
            Object::Number(number) => code = u32::try_from(number.as_i64()).unwrap_or(u32::MAX),
            Object::Name(name) => {
                names.insert(code, name.as_str().to_owned());
                code = code.saturating_add(1);
            }
            _ => {}
        }
    }
    names
}

fn program_stream<'a>(descriptor: &Dict<'a>) -> Option<Stream<'a>> {
    [keys::FONT_FILE2, keys::FONT_FILE3, keys::FONT_FILE]
        .into_iter()
        .find_map(|key| descriptor.get::<Stream<'_>>(key))
}

fn read_program(descriptor: &Dict<'_>, tools: &Tools<'_>) -> Program {
    program_stream(descriptor)
        .and_then(|stream| tools.decoder.decode(&stream))
        .map(|data| Program::read(&data))
        .unwrap_or_default()
}

/// A composite font's table of widths.
#[derive(Default)]
struct Widths {
    single: HashMap<u32, f32>,
    /// First, last, width; by first.
    ranges: Vec<(u32, u32, f32)>,
}

impl Widths {
    /// Reads `first [w …]` and `first last w`, where each entry is `values` numbers of which the first is wanted.
    fn read(array: Option<Array<'_>>, values: usize) -> Self {
        let mut widths = Self::default();
        let mut pending: Vec<f32> = Vec::new();
        for item in array.iter().flat_map(|array| array.iter::<Object<'_>>()) {
            match item {
                Object::Array(list) => {
                    let first = pending.first().copied().unwrap_or(0.0) as u32;
                    pending.clear();
                    for (index, width) in
                        list.iter::<f32>().step_by(values).take(WIDTH_RANGES_MAX).enumerate()
                    {
                        widths.single.insert(first.saturating_add(index as u32), width);
                    }
                }
                Object::Number(number) => {
                    pending.push(number.as_f32());
                    if pending.len() == 2 + values {
                        widths.ranges.push((pending[0] as u32, pending[1] as u32, pending[2]));
                        pending.clear();
                    }
                }
                _ => {}
            }
            if widths.single.len() + widths.ranges.len() > WIDTH_RANGES_MAX {
                break;
            }
        }
        widths.ranges.sort_by_key(|range| range.0);
        widths
    }

    fn of(&self, cid: u32) -> Option<f32> {
        self.single.get(&cid).copied().or_else(|| {
            let after = self.ranges.partition_point(|range| range.0 <= cid);
            self.ranges[..after].last().filter(|range| cid <= range.1).map(|range| range.2)
        })
    }
}

/// What the font's own table says.
fn told(table: Option<&ToUnicode>, code: u32) -> Option<String> {
    clean(&table?.text(code)?)
}

fn mapped(map: Option<&CMap>, code: u32) -> Option<String> {
    clean_bf(map?.lookup_bf_string(code)?)
}

fn clean_bf(text: BfString) -> Option<String> {
    match text {
        BfString::Char(character) => clean(character.encode_utf8(&mut [0; 4])),
        BfString::String(text) => clean(&text),
    }
}

/// Unicode without control characters; nothing when nothing is left.
fn clean(text: &str) -> Option<String> {
    if matches!(text, "\t" | "\n" | "\r") {
        return Some(" ".into());
    }
    let is_wanted =
        |character: &char| !character.is_control() && !matches!(character, '\u{fffd}' | '\u{feff}');
    let text: String = text.chars().filter(is_wanted).collect();
    (!text.is_empty()).then_some(text)
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
