//! Real bytes beside the offsets: send buffer and reassembly.
