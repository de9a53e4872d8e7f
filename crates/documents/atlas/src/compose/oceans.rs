//! The names of the oceans, and where they are written.

/// Name, longitude, latitude, and its share of the largest letters.
pub(super) const OCEANS: [(&str, f64, f64, f32); 7] = [
    ("Pacific Ocean", -145.0, 8.0, 1.0),
    ("Pacific Ocean", 165.0, 14.0, 0.8),
    ("Atlantic Ocean", -40.0, 28.0, 0.8),
    ("Atlantic Ocean", -16.0, -22.0, 0.8),
    ("Indian Ocean", 79.0, -22.0, 0.9),
    ("Southern Ocean", 80.0, -57.0, 0.65),
    ("Arctic Ocean", -150.0, 78.0, 0.5),
];
