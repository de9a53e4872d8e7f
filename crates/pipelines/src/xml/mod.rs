//! PDF to XML: what is asked for, the conversion itself, and the child process it runs in.
//!
//! [`convert`] is the whole conversion as a function of bytes. Nobody calls it on a document from outside but the
//! child, which [`Converter`] starts for each one and [`serve`] is inside.

mod ask;
mod client;
mod conversion;
mod converter;
mod study;

pub use ask::{Ask, Converted, Finding, Output, Summary, To};
pub use client::{ClientLimits, GatewayAddressError, GatewayClient};
pub use conversion::{convert, serve};
pub use converter::{Converter, Options, too_large};
pub use study::{Differences, Study};
