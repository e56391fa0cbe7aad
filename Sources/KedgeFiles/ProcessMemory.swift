internal import CMalloc

/// The memory of the process as the system sees it.
package enum ProcessMemory {
    /// Gives pages back that the allocator keeps and nobody uses.
    ///
    /// glibc returns by itself only what is free at the very end of its main arena. The other arenas, one or more
    /// for each thread, keep every page they ever had, so a rush of connections would stay for good
    /// (malloc_trim(3)). Takes a moment for each megabyte: for threads that may block.
    package static func giveBack() { malloc_trim(0) }

    /// Lets all threads share a few arenas, one for each processor; to be called before there are threads.
    ///
    /// By default there are eight for each, and in each of them some small thing that lives on keeps pages from
    /// being given back.
    package static func shareArenas(processorCount: Int) {
        mallopt(M_ARENA_MAX, Int32(clamping: max(2, processorCount)))
    }
}
