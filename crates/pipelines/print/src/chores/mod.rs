//! What is done about placed orders by the clock, by one process at a time: asking the provider how they stand, confirming
//! those again that fell back to drafts, and comparing both sides once a day.

mod follow;
mod reconcile;
#[cfg(test)]
mod tests;

pub(crate) use follow::{FollowOrders, LOOK_AGAIN};
pub(crate) use reconcile::Reconcile;
pub use reconcile::reconcile;
