import KedgeModel
import Testing

/// A wrong behaviour of an origin: in which answers, what is wrong, and what the client must make of it.
struct Deed: Sendable {
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

        func contains(_ request: EvilRequest) -> Bool {
            let isFile = !request.path.hasSuffix("/meta") && !request.path.hasSuffix("/chunks")
            let hasRange = request.fields["range"] != nil
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

    /// What the command must come to.
    enum Outcome: Sendable {
        /// The right file, although the origin stays as it is.
        case completes
        /// A failure that no waiting cures.
        case fails(ErrorCode)
        /// More tries, which name this code, until the origin reforms; then the right file.
        case recovers(ErrorCode)
        /// More tries, which name this code: what was learned from the origin stays wrong.
        case persists(ErrorCode)
    }

    typealias Harm = @Sendable (inout EvilAnswer, EvilRequest, EvilFile) -> Void

    let outcome: Outcome
    let targets: Targets
    let harm: Harm
    /// Size of the file.
    var byteCount = EvilFile.usualByteCount
    /// False for an origin that serves no ranges.
    var isRanged = true
    /// What it says to every connection in place of an answer, before it was asked anything.
    var greeting: [UInt8] = []

    /// - Parameters:
    ///   - outcome: What must become of the download.
    ///   - targets: Which answers are wrong.
    ///   - harm: Makes an honest answer wrong.
    init(_ outcome: Outcome, _ targets: Targets, _ harm: @escaping Harm) {
        self.outcome = outcome
        self.targets = targets
        self.harm = harm
    }

    /// The same of an origin that serves no ranges.
    var unranged: Deed {
        var deed = self
        deed.isRanged = false
        return deed
    }

    /// The same with a file of so many bytes.
    func sized(_ byteCount: Int) -> Deed {
        var deed = self
        deed.byteCount = byteCount
        return deed
    }
}

/// A kind of wrong behaviours; the raw values say in plain words what each of them is.
protocol Misdeed: CaseIterable, RawRepresentable<String>, Sendable, CustomTestStringConvertible {
    var deed: Deed { get }
}

extension Misdeed {
    var testDescription: String { rawValue }
}
