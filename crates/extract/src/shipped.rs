//! The mappings that come with the program, built into it. A new one is a file and a line here.

/// File names and texts.
pub(crate) const MAPPINGS: &[(&str, &str)] = &[
    ("amazon_web_services_v1.toml", include_str!("../../../mappings/amazon_web_services_v1.toml")),
    ("awv_stylesheet_v1.toml", include_str!("../../../mappings/awv_stylesheet_v1.toml")),
    ("dwc_stylesheet_v1.toml", include_str!("../../../mappings/dwc_stylesheet_v1.toml")),
    ("ferd1_boxes_v1.toml", include_str!("../../../mappings/ferd1_boxes_v1.toml")),
    ("ferd1_goods_v1.toml", include_str!("../../../mappings/ferd1_goods_v1.toml")),
    ("ferd22_stylesheet_v1.toml", include_str!("../../../mappings/ferd22_stylesheet_v1.toml")),
    ("fleet_lease_v1.toml", include_str!("../../../mappings/fleet_lease_v1.toml")),
    ("fnfe_v1.toml", include_str!("../../../mappings/fnfe_v1.toml")),
    ("fournisseur_v1.toml", include_str!("../../../mappings/fournisseur_v1.toml")),
    ("generic_invoice_v1.toml", include_str!("../../../mappings/generic_invoice_v1.toml")),
    ("invoice_generator_v1.toml", include_str!("../../../mappings/invoice_generator_v1.toml")),
    ("mustang_v1.toml", include_str!("../../../mappings/mustang_v1.toml")),
    ("premium_letter_v1.toml", include_str!("../../../mappings/premium_letter_v1.toml")),
    ("pt_simon_invoice_v1.toml", include_str!("../../../mappings/pt_simon_invoice_v1.toml")),
    ("quality_hosting_v1.toml", include_str!("../../../mappings/quality_hosting_v1.toml")),
    ("stylesheet_base_v1.toml", include_str!("../../../mappings/stylesheet_base_v1.toml")),
];
