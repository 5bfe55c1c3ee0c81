//! Small PNG files from those that a browser makes: with the 256 most frequent colours, as pictures of pages have few.

use std::collections::HashMap;

use miniz_oxide::{deflate::compress_to_vec_zlib, inflate::decompress_to_vec_zlib};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// The effort of the compression; 10 is the most.
const EFFORT: u8 = 10;
const MOST_COLOURS: usize = 256;

type Colour = [u8; 3];

/// Writes a picture with few colours.
pub(crate) fn smaller(png: &[u8]) -> Vec<u8> {
    let (width, rows) = read(png);
    let mut counts = HashMap::<Colour, usize>::new();
    for colour in rows.iter().flatten() {
        *counts.entry(*colour).or_default() += 1;
    }
    let mut palette: Vec<Colour> = counts.keys().copied().collect();
    // The same picture is the same file.
    palette.sort_by_key(|colour| (std::cmp::Reverse(counts[colour]), *colour));
    palette.truncate(MOST_COLOURS);
    let nearest = |colour: &Colour| {
        let distance = |other: &Colour| -> u32 {
            colour.iter().zip(other).map(|(one, other)| u32::from(one.abs_diff(*other)).pow(2)).sum()
        };
        (0..palette.len()).min_by_key(|index| distance(&palette[*index])).unwrap() as u8
    };
    let indices: HashMap<Colour, u8> = counts.keys().map(|colour| (*colour, nearest(colour))).collect();
    let mut lines = Vec::new();
    for row in &rows {
        // No filter: indices of colours have nothing in common with their neighbours.
        lines.push(0);
        lines.extend(row.iter().map(|colour| indices[colour]));
    }
    let mut head = [width, rows.len() as u32].map(u32::to_be_bytes).concat();
    // 8 bits, with a palette, in the usual order.
    head.extend([8, 3, 0, 0, 0]);
    let mut small = SIGNATURE.to_vec();
    chunk(&mut small, b"IHDR", &head);
    chunk(&mut small, b"PLTE", &palette.concat());
    chunk(&mut small, b"IDAT", &compress_to_vec_zlib(&lines, EFFORT));
    chunk(&mut small, b"IEND", &[]);
    small
}

/// The width and the rows of a picture with 8 bits for each colour.
fn read(png: &[u8]) -> (u32, Vec<Vec<Colour>>) {
    let mut rest = png.strip_prefix(SIGNATURE).expect("a PNG file");
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap());
    let (mut head, mut data) = (&[][..], Vec::new());
    while !rest.is_empty() {
        let (name, length) = (&rest[4..8], number(rest) as usize);
        let content = &rest[8..8 + length];
        match name {
            b"IHDR" => head = content,
            b"IDAT" => data.extend_from_slice(content),
            _ => {}
        }
        rest = &rest[12 + length..];
    }
    let (width, colours) = (number(head), head[9]);
    assert!(head[8] == 8 && [2, 6].contains(&colours) && head[12] == 0, "{head:?}");
    let (pixel, data) = (if colours == 2 { 3 } else { 4 }, decompress_to_vec_zlib(&data).unwrap());
    let length = width as usize * pixel;
    let (mut rows, mut above) = (Vec::new(), vec![0; length]);
    for line in data.chunks(length + 1) {
        let mut row = line[1..].to_vec();
        unfilter(line[0], &mut row, &above, pixel);
        rows.push(row.chunks(pixel).map(|it| [it[0], it[1], it[2]]).collect());
        above = row;
    }
    (width, rows)
}

/// Undoes the filter of a row.
fn unfilter(filter: u8, row: &mut [u8], above: &[u8], pixel: usize) {
    for index in 0..row.len() {
        let left = if index >= pixel { row[index - pixel] } else { 0 };
        let (up, corner) = (above[index], if index >= pixel { above[index - pixel] } else { 0 });
        let predicted = match filter {
            0 => 0,
            1 => left,
            2 => up,
            3 => left.midpoint(up),
            4 => {
                let estimate = i16::from(left) + i16::from(up) - i16::from(corner);
                // The first one of the nearest.
                [left, up, corner].into_iter().min_by_key(|it| (estimate - i16::from(*it)).abs()).unwrap()
            }
            _ => panic!("there is no filter {filter}"),
        };
        row[index] = row[index].wrapping_add(predicted);
    }
}

fn chunk(png: &mut Vec<u8>, name: &[u8; 4], content: &[u8]) {
    png.extend((content.len() as u32).to_be_bytes());
    let begin = png.len();
    png.extend_from_slice(name);
    png.extend_from_slice(content);
    let checksum = checksum(&png[begin..]);
    png.extend(checksum.to_be_bytes());
}

/// CRC-32, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _: u32| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0_u32, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

#[test]
fn a_small_picture_looks_the_same() {
    // Two pixels, blue and white, in one row without a filter, with transparency.
    let mut head = [2_u32, 1].map(u32::to_be_bytes).concat();
    head.extend([8, 6, 0, 0, 0]);
    let mut png = SIGNATURE.to_vec();
    chunk(&mut png, b"IHDR", &head);
    chunk(&mut png, b"IDAT", &compress_to_vec_zlib(&[0, 0, 0, 255, 255, 255, 255, 255, 255], 1));
    chunk(&mut png, b"IEND", &[]);
    let blue_and_white = vec![vec![[0, 0, 255], [255, 255, 255]]];
    assert_eq!(read(&png), (2, blue_and_white));
    let small = smaller(&png);
    assert!(small.starts_with(SIGNATURE) && small.windows(4).any(|it| it == b"PLTE"));
    assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
}
