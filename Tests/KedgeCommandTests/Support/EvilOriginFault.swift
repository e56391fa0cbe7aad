import KedgeModel
import KedgeTesting
import Testing

/// A wrong behaviour of an origin: the affected requests, the fault, and the outcome that the
/// client must reach.
struct OriginFault: Sendable {
    /// Requests that get a wrong answer.
    enum Targets: Sendable {
        case all
        case heads
        /// GET of a range of the file.
        case parts
        /// GET of the file as a whole.
        case wholes
        case meta
        case chunks

        func contains(_ request: HTTPMessage) -> Bool {
            let isFile = !request.path.hasSuffix("/meta") && !request.path.hasSuffix("/chunks")
            let hasRange = request["range"] != nil
            switch self {
            case .all: return true
            case .heads: return request.method == "HEAD"
            case .parts: return request.method == "GET" && isFile && hasRange
            case .wholes: return request.method == "GET" && isFile && !hasRange
            case .meta: return request.path.hasSuffix("/meta")
            case .chunks: return request.path.hasSuffix("/chunks")
            }
        }
    }

    /// The outcome that the command must reach.
    enum Outcome: Sendable {
        /// The right file, although the origin does not reform.
        case completes
        /// A failure that does not pass.
        case fails(ErrorCode)
        /// More attempts that report this code until the origin reforms; then the right file.
        case recovers(ErrorCode)
        /// More attempts that report this code, because the data learned from the origin stay
        /// wrong.
        case persists(ErrorCode)
    }

    typealias Harm = @Sendable (inout EvilAnswer, HTTPMessage, EvilFile) -> Void

    let outcome: Outcome
    let targets: Targets
    let harm: Harm
    /// Size of the file.
    var byteCount = EvilFile.usualByteCount
    /// Whether the origin serves ranges.
    var isRanged = true
    /// Bytes that are sent on every connection before any request, in place of an answer.
    var greeting: [UInt8] = []

    /// - Parameters:
    ///   - outcome: Outcome that the download must reach.
    ///   - targets: Requests that get a wrong answer.
    ///   - harm: Makes an honest answer wrong.
    init(_ outcome: Outcome, _ targets: Targets, _ harm: @escaping Harm) {
        self.outcome = outcome
        self.targets = targets
        self.harm = harm
    }

    /// A copy for an origin that serves no ranges.
    var unranged: OriginFault {
        var fault = self
        fault.isRanged = false
        return fault
    }

    /// A copy with a file of so many bytes.
    func sized(_ byteCount: Int) -> OriginFault {
        var fault = self
        fault.byteCount = byteCount
        return fault
    }
}

/// A kind of wrong behaviour; the raw values describe each case in plain words.
protocol OriginFaultKind: CaseIterable, RawRepresentable<String>, Sendable,
    CustomTestStringConvertible
{
    var fault: OriginFault { get }
}

extension OriginFaultKind {
    var testDescription: String { rawValue }
}
