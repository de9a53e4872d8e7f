//! Unpacks streams within bounds: a few kilobytes can unpack to gigabytes.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use hayro_syntax::Filter;
use hayro_syntax::object::Stream;
use hayro_syntax::object::dict::keys;

use super::filters::unpack;
use super::place::Place;
use crate::limits::Limits;

/// Deflate never grows data by more than this factor.
const FLATE_RATIO_MAX: usize = 1032;
/// A code of twelve bits stands for a string of at most 4,095 bytes.
const LZW_RATIO_MAX: usize = 2731;
/// Two bytes stand for at most 128.
const RUN_LENGTH_RATIO_MAX: usize = 64;

/// Unpacked forms that are kept for their next use, in bytes.
const FORM_BYTES_MAX: usize = 16 << 20;

/// A form's bytes, or nothing when they are damaged or too many.
type Form = Option<Rc<[u8]>>;

/// Unpacks a document's streams and keeps count.
pub(crate) struct Decoder {
    stream_bytes_max: usize,
    bytes_left: Cell<usize>,
    has_left_out: Cell<bool>,
    forms: RefCell<HashMap<Place, Form>>,
    form_bytes: Cell<usize>,
}

impl Decoder {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            stream_bytes_max: limits.stream_bytes_max,
            bytes_left: Cell::new(limits.decoded_bytes_max),
            has_left_out: Cell::new(false),
            forms: RefCell::default(),
            form_bytes: Cell::new(0),
        }
    }

    /// Whether a stream was left out because it was too large.
    pub(crate) fn has_left_out(&self) -> bool {
        self.has_left_out.get()
    }

    /// The bytes of a form, which a document may use again and again.
    pub(crate) fn decode_form(&self, stream: &Stream<'_>) -> Form {
        let key = Place::of(stream.dict());
        if let Some(form) = self.forms.borrow().get(&key) {
            return form.clone();
        }
        let form: Form = self.decode(stream).map(|bytes| bytes.into());
        let bytes = self.form_bytes.get() + form.as_ref().map_or(0, |form| form.len());
        if bytes <= FORM_BYTES_MAX {
            self.form_bytes.set(bytes);
            self.forms.borrow_mut().insert(key, form.clone());
        }
        form
    }

    /// Whether a stream may be unpacked by somebody else.
    pub(crate) fn is_bounded(&self, stream: &Stream<'_>) -> bool {
        let bytes_max = self.stream_bytes_max.min(self.bytes_left.get());
        worst_size(stream) <= bytes_max || unpack(&stream.raw_data(), &stream.filters(), bytes_max).is_some()
    }

    /// The stream's bytes, or nothing when they are damaged or too many.
    pub(crate) fn decode<'a>(&self, stream: &Stream<'a>) -> Option<Cow<'a, [u8]>> {
        let bytes_max = self.stream_bytes_max.min(self.bytes_left.get());
        let decoded = if worst_size(stream) <= bytes_max {
            stream.decoded_data().ok()?
        } else {
            let decoded = decode_bounded(stream, bytes_max);
            if decoded.is_none() {
                self.has_left_out.set(true);
            }
            decoded?
        };
        self.bytes_left.set(self.bytes_left.get().saturating_sub(decoded.len()));
        Some(decoded)
    }
}

/// The most bytes a stream can unpack to, by its filters alone.
fn worst_size(stream: &Stream<'_>) -> usize {
    stream.filters().iter().fold(stream.raw_data().len(), |size, filter| {
        size.saturating_mul(match filter {
            Filter::FlateDecode => FLATE_RATIO_MAX,
            Filter::LzwDecode => LZW_RATIO_MAX,
            Filter::RunLengthDecode => RUN_LENGTH_RATIO_MAX,
            _ => 1,
        })
    })
}

/// Unpacks a stream that could grow too large.
fn decode_bounded<'a>(stream: &Stream<'a>, bytes_max: usize) -> Option<Cow<'a, [u8]>> {
    let unpacked = unpack(&stream.raw_data(), &stream.filters(), bytes_max)?;
    // Predictors and other parameters change the bytes, not how many there may be.
    let has_parameters =
        stream.dict().contains_key(keys::DECODE_PARMS) || stream.dict().contains_key(keys::DP);
    if has_parameters { stream.decoded_data().ok() } else { Some(Cow::Owned(unpacked)) }
}
