internal import KedgeModel

/// How many bytes the next request carries.
///
/// What a broken request brought may be lost: a server keeps none of a body with a checksum, and a
/// proxy that gathers bodies passes none of it on. So pieces shrink on a link that breaks until
/// several get through between two breaks, and grow again where the link lasts. A value without clock,
/// so that it can be tested.
struct PieceSize: Sendable, Equatable {
    static let initial: Int64 = 1 << 20
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
    /// Pieces that fit between two breaks of a link, where each break loses the piece under way: on
    /// average half of one.
    private static let lossyPiecesPerLife: Int64 = 8
    /// The same where the server keeps the first bytes of the piece under way; a proxy may still lose
    /// what it held.
    private static let lastingPiecesPerLife: Int64 = 3

    private var floor: Int64
    private var ceiling: Int64
    /// The most that something on the way takes, as far as it refused more.
    private var learntCeiling = Int64.max
    private(set) var byteCount: Int64
    /// False where the link breaks under small pieces: a server keeps the part of a body that arrived only
    /// when it has no checksum to wait for.
    private(set) var carriesChecksum = true
    /// False where a request that takes long is as good as any other.
    private let shrinksWhenSlow: Bool
    /// Bytes that arrived since the last break.
    private var carriedByteCount: Int64 = 0
    /// Bytes that the link carries from one break to the next; nil while there was none.
    private var lifeByteCount: Int64?
    private var piecesPerLife = lossyPiecesPerLife
    /// Bodies in a row of which the server got nothing, while something before it answered.
    private var unservedCount = 0
    /// How many of them say that none of this size ever gets there.
    private static let maxUnservedCount = 3

    /// The first size within what the server offers.
    init(offer: UploadOffer) {
        (floor, ceiling) = Self.bounds(offer, learntCeiling: .max)
        byteCount = min(ceiling, max(floor, Self.initial))
        shrinksWhenSlow = true
    }

    /// Whole chunks as long as all goes well.
    init(chunkSize: Int64) {
        (floor, ceiling) = (min(chunkSize, Self.minimum), chunkSize)
        byteCount = chunkSize
        shrinksWhenSlow = false
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
        unservedCount = 0
        carriedByteCount += min(sent, Int64.max - carriedByteCount)
        if duration > Self.longDuration, shrinksWhenSlow {
            byteCount = max(floor, byteCount / 2)
        } else if duration < Self.shortDuration, sent >= byteCount {
            byteCount = min(ceiling, max(byteCount, grownByteCount))
        }
        if byteCount > Self.smallByteCount { carriesChecksum = true }
    }

    /// A link that has lasted for twice its life has become better.
    private var grownByteCount: Int64 {
        guard let life = lifeByteCount else {
            return byteCount > Int64.max / 2 ? ceiling : byteCount * 2
        }
        return max(life, carriedByteCount / 2) / piecesPerLife
    }

    /// A request broke off.
    ///
    /// - Parameters:
    ///   - sent: Bytes of its body.
    ///   - survived: Bytes of it that the server has all the same.
    ///   - isAnswered: True when something before the server answered. When the server has nothing of
    ///     the body, it was likely away, whatever the size.
    /// - Returns: False when it cannot be smaller.
    @discardableResult
    mutating func recordBreak(
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
        piecesPerLife = survived > 0 ? Self.lastingPiecesPerLife : Self.lossyPiecesPerLife
        byteCount = max(floor, min(before, life / piecesPerLife))
        return byteCount < before
    }

    /// The server asks for less.
    mutating func recordCongestion() { byteCount = max(floor, byteCount / 2) }

    /// Something on the way takes no request of this size, and will not take one later.
    ///
    /// - Returns: False when it cannot be smaller.
    mutating func recordRefusal(of sent: Int64) -> Bool {
        guard byteCount > floor else { return false }
        learntCeiling = max(floor, min(byteCount, sent) / 2)
        ceiling = learntCeiling
        byteCount = ceiling
        return true
    }
}
