//! Orders at a print provider: the client, what its answers mean, and the handler that places an order exactly once.
//!
//! The handler follows one protocol: intent recorded, draft, number recorded, draft compared with what was asked for,
//! intent recorded again, confirmed, read back. A call of which nobody can say whether it was carried out is looked up
//! under the order's one external id, for as long as it takes. See `docs/orders.md`.

mod handler;
pub(crate) mod money;
mod printful;
pub(crate) mod product;
pub(crate) mod provider;
mod record;
mod remote;

pub(crate) use handler::UNCLEAR;
pub use handler::{ExportUrl, OrderHandler, OrderPolicy};
pub use printful::{
    CALL_TIMEOUT, Outcome, PAGE, PRINTFUL_URL, Printful, PrintfulError, PrintfulSettings, Refusal,
};
pub use product::{Poster, PrintArea, check_area};
pub use provider::{PROVIDER, Pace, Provider};
pub use record::{Attention, Order, OrderPhase, OrderStep};
pub use remote::{Fate, FileStanding, RemoteOrder, Shipment, Status};
