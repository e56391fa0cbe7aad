extension ContainerCheck {
    /// Searches for the end marker, which readers expect in the last kilobyte.
    ///
    /// A file that was saved several times has one after each revision: only the last one counts.
    func pdf() throws(Failure) -> ContainerCheckResult {
        let tailByteCount: Int64 = 1024
        let tail = try bytes(at: max(0, byteCount - tailByteCount), count: Int(tailByteCount))
        let mark = Array("%%EOF".utf8)
        let isEnded = tail.indices.contains { tail[$0...].starts(with: mark) }
        return isEnded ? .complete(.pdf) : .truncated(.pdf, .endMissing)
    }
}
