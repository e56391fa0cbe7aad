internal import KedgeModel

/// How many bytes the next request carries.
///
/// A server that others wrote may lose whatever a broken request brought, so pieces shrink on a link that
/// breaks until one gets through, and grow again where they do. A value without clock, so that it can be
/// tested.
struct PieceSize: Sendable, Equatable {
    static let initial: Int64 = 4 << 20
    /// What is read at once into memory, and hashed there.
    static let maximum = UploadSource.maxBufferedChunkSize
    /// Below this a request is mostly its own head.
    static let minimum: Int64 = 16 << 10
    /// Up to this size a break means that not even little gets through at once.
    private static let smallByteCount: Int64 = 64 << 10
    /// A piece that takes less could have been larger.
    private static let shortDuration = Duration.seconds(2)
    /// A piece that takes longer meets the time limits of servers and proxies.
    private static let longDuration = Duration.seconds(10)

    private var floor: Int64
    private var ceiling: Int64
    /// The most that something on the way takes, as far as it refused more.
    private var learntCeiling = Int64.max
    private(set) var byteCount: Int64
    /// False where the link breaks under small pieces: a server keeps the part of a body that arrived only
    /// when it has no checksum to wait for.
    private(set) var carriesChecksum = true

    /// The first size within what the server offers.
    init(offer: UploadOffer) {
        (floor, ceiling) = Self.bounds(offer, learntCeiling: .max)
        byteCount = min(ceiling, max(floor, Self.initial))
    }

    /// Takes over other limits of the server; what was learnt on the way stays.
    mutating func adopt(_ offer: UploadOffer) {
        (floor, ceiling) = Self.bounds(offer, learntCeiling: learntCeiling)
        byteCount = min(ceiling, max(floor, byteCount))
    }

    private static func bounds(
        _ offer: UploadOffer, learntCeiling: Int64
    ) -> (floor: Int64, ceiling: Int64) {
        let least = max(1, offer.minAppendSize ?? 1)
        let most = max(1, offer.maxAppendSize ?? Int64.max)
        let floor = min(most, max(minimum, least))
        return (floor, max(floor, min(most, max(maximum, least), learntCeiling)))
    }

    /// Bytes that a piece may have at most.
    var maxByteCount: Int64 { ceiling }

    /// The bytes from an offset on that the next request carries.
    func range(from offset: Int64, ofSize size: Int64) -> ByteRange {
        ByteRange(start: offset, end: offset + min(byteCount, size - offset))
    }

    /// A piece of this size arrived whole.
    mutating func recordSuccess(in duration: Duration, byteCount sent: Int64) {
        if duration > Self.longDuration {
            byteCount = max(floor, byteCount / 2)
        } else if duration < Self.shortDuration, sent >= byteCount {
            byteCount = min(ceiling, byteCount > Int64.max / 2 ? ceiling : byteCount * 2)
        }
        if byteCount > Self.smallByteCount { carriesChecksum = true }
    }

    /// A request broke off, or the server asks for less.
    ///
    /// - Returns: False when it cannot be smaller.
    @discardableResult
    mutating func recordBreak() -> Bool {
        if byteCount <= max(floor, Self.smallByteCount) { carriesChecksum = false }
        guard byteCount > floor else { return false }
        byteCount = max(floor, byteCount / 2)
        return true
    }

    /// Something on the way takes no request of this size, and will not take one later.
    ///
    /// - Returns: False when it cannot be smaller.
    mutating func recordRefusal() -> Bool {
        guard byteCount > floor else { return false }
        learntCeiling = max(floor, byteCount / 2)
        ceiling = learntCeiling
        byteCount = ceiling
        return true
    }
}
