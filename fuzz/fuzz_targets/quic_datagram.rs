//! Fuzzes UDP datagrams as QUIC packets; what must hold is in `posthaste_fuzz::quic_datagram`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(quic_datagram);
