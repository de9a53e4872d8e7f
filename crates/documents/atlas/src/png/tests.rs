use super::*;
use proptest::prelude::*;

/// A file of these rows, as another program reads it.
fn read_back(rows: &[Vec<u32>], band_rows: usize) -> Vec<u32> {
    let width = rows[0].len() as u32;
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, [width, rows.len() as u32], 300.0).unwrap();
    let mut packer = Packer::new(width);
    for band in rows.chunks(band_rows) {
        for (index, row) in band.iter().enumerate() {
            if index > 0 && band[index - 1] == *row { packer.row_again() } else { packer.row(row) }
        }
        writer.band(&packer.finish()).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), file.len() as u64);
    let mut reader = ::png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    let dimensions = reader.info().pixel_dims.expect("pHYs is there");
    assert_eq!((dimensions.xppu, dimensions.unit), (11_811, ::png::Unit::Meter));
    assert!(reader.info().srgb.is_some(), "sRGB is there");
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    let pixels = pixels.chunks_exact(3);
    pixels.map(|pixel| u32::from(pixel[0]) << 16 | u32::from(pixel[1]) << 8 | u32::from(pixel[2])).collect()
}

#[test]
fn every_length_of_a_run_comes_back() {
    for width in (1..1200).step_by(7).chain([85, 86, 87, 88, 172, 173]) {
        let mut rows = vec![vec![0x102030; width]; 4];
        rows[2][width / 2] = 0xFF00FF;
        assert_eq!(read_back(&rows, 64), rows.concat(), "{width} pixels wide");
    }
}

#[test]
fn rare_bytes_do_not_make_codes_too_long() {
    // Bytes as frequent as the numbers of Fibonacci make the deepest tree there is.
    let mut row = Vec::new();
    let (mut a, mut b) = (1_u32, 1_u32);
    for byte in 1..24 {
        row.extend((0..a).map(|_| byte * 0x10101));
        (a, b) = (b, a + b);
    }
    let rows: Vec<Vec<u32>> =
        vec![row.iter().enumerate().map(|(index, pixel)| pixel * (index as u32 % 2)).collect()];
    assert_eq!(read_back(&rows, 64), rows.concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_written_comes_back(
        (rows, band_rows) in (1_usize..80, 1_usize..12).prop_flat_map(|(width, height)| {
            let pixel = prop_oneof![8 => Just(0xFAF6EE_u32), 2 => Just(0xCDE0EB), 1 => 0_u32..0x1000000];
            (prop::collection::vec(prop::collection::vec(pixel, width), height), 1_usize..6)
        })
    ) {
        prop_assert_eq!(read_back(&rows, band_rows), rows.concat());
    }
}
