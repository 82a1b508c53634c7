//! The allocator of every program that links this crate, and how it is set.
//!
//! Requests are allocated by one thread and freed by another, in bursts. With glibc's heaps what a burst left between
//! other things was kept for good, and a soak grew by 180 MB an hour.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Read by jemalloc when it begins; `_RJEM_MALLOC_CONF` in the environment comes after it. Its own settings are for
/// machines with memory to spare: four arenas for each processor, and up to twenty freed buffers of 32 kB kept by each
/// thread: 6.6 MB in a busy scanner, and 1.4 with these.
#[used]
#[expect(
    unsafe_code,
    reason = "the name is jemalloc's own, so nothing else has it"
)]
#[unsafe(export_name = "_rjem_malloc_conf")]
static SETTINGS: &[u8; 52] = b"narenas_ratio:1,tcache_max:4096,dirty_decay_ms:2000\0";

#[cfg(test)]
mod tests {
    use tikv_jemalloc_ctl::opt;

    #[test]
    fn the_allocator_is_set_as_we_say() {
        assert_eq!(opt::tcache_max::read().unwrap(), 4_096);
    }
}
