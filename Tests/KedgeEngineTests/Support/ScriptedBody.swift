import KedgeEngine
import KedgeFiles
import KedgeModel

/// A body that a test wrote the script of.
struct ScriptedBody: ByteBody {
    enum Ending: Sendable {
        case ends
        /// The connection is gone after the bytes.
        case breaksOff
        /// Nothing comes any more, until the reading task is cancelled.
        case hangs
        /// More bytes come for ever.
        case goesOn
    }

    /// What a test sees of a body's fate.
    final class Watch: Sendable {
        /// Opened when the reader has nothing more to give and hangs.
        let isHanging = Gate()
        fileprivate let openCount = Shared(0)

        /// How many readers were made.
        var readerCount: Int { openCount.value }
    }

    var bytes: [UInt8]
    var announcedByteCount: Int64?
    var ending: Ending
    /// True for a body that says that it is over together with its last bytes, not when asked again.
    var tellsEndAtOnce = false
    /// True for a body whose sender waits to be told that it is wanted.
    var isHeldBack = false
    /// Called before each part of the bytes comes, for example to let time pass.
    var beforePart: @Sendable () -> Void = {}
    let watch = Watch()

    init(
        _ bytes: some Sequence<UInt8>, announcing count: Int? = nil, ending: Ending = .ends
    ) {
        self.bytes = Array(bytes)
        announcedByteCount = count.map { Int64($0) }
        self.ending = ending
    }

    func makeReader() async throws -> any ByteReader {
        _ = watch.openCount.increment()
        return Reader(self)
    }

    private final class Reader: ByteReader {
        private var rest: ArraySlice<UInt8>
        private let ending: Ending
        private let tellsEndAtOnce: Bool
        private let beforePart: @Sendable () -> Void
        private let watch: Watch

        init(_ body: ScriptedBody) {
            rest = body.bytes[...]
            ending = body.ending
            tellsEndAtOnce = body.tellsEndAtOnce
            beforePart = body.beforePart
            watch = body.watch
        }

        func fill(_ buffer: IOBuffer, limit: Int) async throws -> Bool {
            beforePart()
            let wanted = min(limit, buffer.freeCount)
            var count = rest.withUnsafeBytes { buffer.append($0, limit: wanted) }
            rest = rest.dropFirst(count)
            if count == wanted { return !(tellsEndAtOnce && rest.isEmpty) }
            switch ending {
            case .ends: return false
            // The server's reader reports a lost connection so.
            case .breaksOff: throw EngineError(.lengthMismatch)
            case .hangs:
                watch.isHanging.open()
                await untilCancelled()
                throw CancellationError()
            case .goesOn:
                let filler = [UInt8](repeating: 0xEE, count: wanted - count)
                count += filler.withUnsafeBytes { buffer.append($0, limit: wanted) }
                try Task.checkCancellation()
                return count == wanted
            }
        }
    }
}
