import KedgeEngine
import KedgeFiles
import KedgeModel
import KedgeTesting

/// A body that follows a test's script.
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

    /// Events of a body that a test observes.
    final class Watch: Sendable {
        /// Opened when the reader has nothing more to give and hangs.
        let isHanging = Gate()
        fileprivate let openCount = Shared(0)

        /// Number of readers made.
        var readerCount: Int { openCount.value }
    }

    var bytes: [UInt8]
    var announcedByteCount: Int64?
    var ending: Ending
    /// Whether the body reports its end together with its last bytes, and not with the next call.
    var tellsEndAtOnce = false
    /// Whether the sender waits for `100 Continue`.
    var awaitsContinue = false
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
            // The server's reader reports a lost connection with this error.
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
