internal import CMalloc

/// The memory of the process.
package enum ProcessMemory {
    /// Returns free pages of the allocator to the system.
    ///
    /// By itself, glibc returns only free memory at the end of its main arena. The other arenas
    /// keep every page, so a rush of connections would occupy memory forever (malloc_trim(3)).
    /// Takes a moment per megabyte: call it on threads that may block.
    package static func release() { malloc_trim(0) }

    /// Limits the allocator to one arena per processor, and at least two. Call it before any thread
    /// starts.
    ///
    /// By default glibc creates up to eight arenas per processor. In each of them, a small
    /// long-lived allocation can keep pages from being returned.
    package static func shareArenas(processorCount: Int) {
        mallopt(M_ARENA_MAX, Int32(clamping: max(2, processorCount)))
    }
}
