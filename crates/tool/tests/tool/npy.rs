//! numpy's files, written apart from the tool's own code for them.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// An array: its type and shape as numpy writes them, and its elements.
pub struct Npy<'a>(pub &'a str, pub &'a str, pub Vec<u8>);

/// Floats of 32 bits.
pub fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

/// Writes a compressed file, as `numpy.savez_compressed` does.
pub fn write(path: &Path, arrays: &[(&str, Npy)]) {
    let mut archive = ZipWriter::new(File::create(path).unwrap());
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, Npy(descr, shape, bytes)) in arrays {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(b"\x93NUMPY\x01\x00").unwrap();
        archive.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        archive.write_all(header.as_bytes()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
}

/// Header and elements of an array of a file.
pub fn read(path: &Path, name: &str) -> (String, Vec<u8>) {
    let mut archive = ZipArchive::new(File::open(path).unwrap()).unwrap();
    let mut bytes = Vec::new();
    archive.by_name(&format!("{name}.npy")).unwrap().read_to_end(&mut bytes).unwrap();
    let length = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let data = bytes.split_off(10 + length);
    (String::from_utf8(bytes[10..].to_vec()).unwrap().trim_end().into(), data)
}
