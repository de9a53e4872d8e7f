//! The statements of maps, prints and orders, as functions over the store's SQL. All of them work on both databases.

pub(crate) mod caps;
pub(crate) mod following;
pub(crate) mod maps;
mod orders;
mod prints;
mod turns;

pub use caps::{SpendCap, check_raise, raise_cost, set_spend_cap, spend_caps};
pub use following::{
    Seen, delivered, forget_events, note_event, owned_external_ids, saw_order, take_order_due,
};
pub use maps::{
    MapError, MapPage, PrintableMap, UserMap, add_user_map, change_user_map, delete_user_map, printable_map,
    printable_maps, unprinted_maps, user_map, user_maps,
};
pub use orders::{
    Asked, BY_ID_STATEMENTS, NEWEST_STATEMENTS, OrderRecord, OrderStepRecord, ReadyPrint, ask_order,
    check_order, go_on_to_order, held_order, order_of, order_steps, orders, orders_of, orders_placed,
    orders_to_look_at, prints_ready, record_step,
};
pub use prints::{
    FrozenMap, PaidOrder, PrintFacts, Printing, Prints, check_print, check_reprint, export, export_warnings,
    exports, held_map, print_map, prints_of, reprint,
};
pub use turns::take_turn;
