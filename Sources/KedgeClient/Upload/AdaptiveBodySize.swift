package import KedgeModel

/// Adaptive size of the next request's body.
///
/// The bytes of a broken request may be lost: a server keeps nothing of a body with a checksum, and
/// a buffering proxy forwards nothing of it. Bodies shrink until several get through between two
/// breaks of the link, and grow again where it lasts. A value without a clock, for testing.
package struct AdaptiveBodySize: Sendable, Equatable {
    package static let initial: Int64 = 1 << 20
    /// Upper bound of what is read into memory and hashed at once.
    package static let maximum = UploadSource.maxBufferedChunkSize
    /// Lower bound: below this size, most of a request is its header.
    package static let minimum: Int64 = 16 << 10
    /// Up to this size, a body that breaks without any progress turns checksums off.
    private static let smallByteCount: Int64 = 64 << 10
    /// Bodies that arrive faster than this may grow.
    private static let shortDuration = Duration.seconds(2)
    /// Bodies that take longer risk the timeouts of servers and proxies.
    private static let longDuration = Duration.seconds(10)
    /// Target number of bodies between two breaks if each break loses the body in flight: half a
    /// body on average.
    private static let lossyBodiesPerLife: Int64 = 8
    /// Target number of bodies between two breaks if the server keeps the first bytes of a broken
    /// one. A proxy may still lose the bytes that it buffered.
    private static let lastingBodiesPerLife: Int64 = 3

    private var floor: Int64
    private var ceiling: Int64
    /// Upper bound learned from refusals by the server or an intermediary.
    private var learntCeiling = Int64.max
    package private(set) var byteCount: Int64
    /// Whether requests carry a checksum. False if even small bodies break: a server keeps part of
    /// a body only if it has no checksum to wait for.
    package private(set) var carriesChecksum = true
    /// False if a slow request is no reason to shrink.
    private let shrinksWhenSlow: Bool
    /// Bytes that arrived since the last break.
    private var carriedByteCount: Int64 = 0
    /// Bytes that the link carries between two breaks; nil before the first break.
    private var lifeByteCount: Int64?
    private var bodiesPerLife = lossyBodiesPerLife
    /// Consecutive bodies that an intermediary answered while the server received nothing.
    private var unservedCount = 0
    /// Number of such bodies that mean that this size never arrives.
    private static let maxUnservedCount = 3

    /// Starts with a size inside the server's limits.
    package init(capabilities: ServerCapabilities) {
        (floor, ceiling) = Self.bounds(capabilities, learntCeiling: .max)
        byteCount = min(ceiling, max(floor, Self.initial))
        shrinksWhenSlow = true
    }

    /// Starts with complete chunks, and shrinks only after failures.
    package init(chunkSize: Int64) {
        (floor, ceiling) = (min(chunkSize, Self.minimum), chunkSize)
        byteCount = chunkSize
        shrinksWhenSlow = false
    }

    /// Adopts new limits of the server. Limits learned from refusals stay.
    package mutating func adopt(_ capabilities: ServerCapabilities) {
        (floor, ceiling) = Self.bounds(capabilities, learntCeiling: learntCeiling)
        byteCount = min(ceiling, max(floor, byteCount))
    }

    private static func bounds(
        _ capabilities: ServerCapabilities, learntCeiling: Int64
    ) -> (floor: Int64, ceiling: Int64) {
        let least = max(1, capabilities.minAppendSize ?? 1)
        let most = max(1, capabilities.maxAppendSize ?? Int64.max)
        let floor = min(most, max(minimum, least))
        return (floor, max(floor, min(most, max(maximum, least), learntCeiling)))
    }

    /// Maximum size of a body.
    var maxByteCount: Int64 { ceiling }

    /// Returns the range of the next request, from an offset.
    package func range(from offset: Int64, ofSize size: Int64) -> ByteRange {
        ByteRange(start: offset, end: offset + min(byteCount, size - offset))
    }

    /// Records that a body arrived completely.
    package mutating func recordSuccess(in duration: Duration, byteCount sent: Int64) {
        unservedCount = 0
        carriedByteCount += min(sent, Int64.max - carriedByteCount)
        if duration > Self.longDuration, shrinksWhenSlow {
            byteCount = max(floor, byteCount / 2)
        } else if duration < Self.shortDuration, sent >= byteCount {
            byteCount = min(ceiling, max(byteCount, grownByteCount))
        }
        if byteCount > Self.smallByteCount { carriesChecksum = true }
    }

    /// A link that lasts twice as long as before has improved.
    private var grownByteCount: Int64 {
        guard let life = lifeByteCount else {
            return byteCount > Int64.max / 2 ? ceiling : byteCount * 2
        }
        return max(life, carriedByteCount / 2) / bodiesPerLife
    }

    /// Records a broken request.
    ///
    /// - Parameters:
    ///   - sent: Size of its body.
    ///   - survived: Bytes of it that the server kept.
    ///   - isAnswered: True if an intermediary answered. If nothing survived either, the server was
    ///     probably unreachable, whatever the size.
    /// - Returns: False if the size cannot shrink further.
    @discardableResult
    package mutating func recordBreak(
        of sent: Int64, survived: Int64 = 0, isAnswered: Bool = false
    ) -> Bool {
        unservedCount = isAnswered && survived == 0 ? unservedCount + 1 : 0
        guard unservedCount == 0 || unservedCount >= Self.maxUnservedCount else {
            return byteCount > floor
        }
        let before = byteCount
        let carried = carriedByteCount + min(survived, Int64.max - carriedByteCount)
        carriedByteCount = 0
        guard carried > 0 else {
            if sent <= max(floor, Self.smallByteCount) { carriesChecksum = false }
            lifeByteCount = sent / 4
            byteCount = max(floor, min(before, sent / 4))
            return byteCount < before
        }
        let life = lifeByteCount.map { $0 / 2 + carried / 2 } ?? carried
        lifeByteCount = life
        bodiesPerLife = survived > 0 ? Self.lastingBodiesPerLife : Self.lossyBodiesPerLife
        byteCount = max(floor, min(before, life / bodiesPerLife))
        return byteCount < before
    }

    /// Halves the size on the server's request.
    package mutating func recordCongestion() { byteCount = max(floor, byteCount / 2) }

    /// Records that the server or an intermediary will never accept a body of this size.
    ///
    /// - Returns: False if the size cannot shrink further.
    package mutating func recordRefusal(of sent: Int64) -> Bool {
        guard byteCount > floor else { return false }
        learntCeiling = max(floor, min(byteCount, sent) / 2)
        ceiling = learntCeiling
        byteCount = ceiling
        return true
    }
}
