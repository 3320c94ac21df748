//! Fuzzes captures as pcap and pcapng files; what must hold is in `posthaste_fuzz::capture`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(capture);
