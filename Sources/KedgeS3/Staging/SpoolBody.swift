internal import KedgeTransport

/// A range of a spool as the body of a request. Mostly read from the page cache; can be sent again.
package final class SpoolBody: TransportBodySource {
    let byteCount: Int64
    private let start: Int64
    private let spool: Spool
    private let pin: Int

    /// Pins a range that the spool holds, for the lifetime of this body.
    package init(_ range: Range<Int64>, of spool: Spool) {
        byteCount = Int64(range.count)
        start = range.lowerBound
        self.spool = spool
        pin = spool.pin(range)
    }

    deinit { spool.unpin(pin) }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
        let count = min(buffer.count, Int(byteCount - offset))
        try spool.read(
            into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), at: start + offset)
        return count
    }
}
