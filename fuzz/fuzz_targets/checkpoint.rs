//! Whatever comes from a peer, or from a disk, as the manifest of a checkpoint: refused, or one that is written again as it came.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rota_storage::checkpoint::Manifest;

fuzz_target!(|data: &[u8]| {
    if let Ok(manifest) = Manifest::decode(data) {
        assert_eq!(manifest.encode(), data);
    }
    // Past the sum, which few inputs have.
    let sum = crc_fast::crc32_iscsi(data).to_le_bytes();
    let summed = [data, &sum].concat();
    if let Ok(manifest) = Manifest::decode(&summed) {
        assert_eq!(manifest.encode(), summed);
        let chunks = (0..=manifest.sums.len()).filter_map(|index| manifest.chunk(index));
        let bytes: u64 = chunks.map(|(_, length)| length as u64).sum();
        assert_eq!(bytes, manifest.bytes);
    }
});
