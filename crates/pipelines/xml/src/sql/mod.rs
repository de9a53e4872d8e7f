//! The statements of conversions, as functions over the store's SQL. All of them work on both databases.

mod estimate;
mod opinions;
mod revisions;

pub(crate) use estimate::{Speeds, times_left};
pub use opinions::without_opinion;
pub use revisions::{Revised, Revision, TrainingSample, revise, revisions, training_samples};
