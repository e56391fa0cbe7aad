import KedgeModel
import KedgeTesting

/// Wrong answers of an origin that speaks Kedge's own interface.
enum KedgeFault: String, OriginFaultKind {
    case truncatedMeta = "meta that breaks off in the middle of JSON"
    case deepMeta = "meta a hundred thousand arrays deep"
    case hugeMeta = "meta of two mebibytes"
    case endlessMeta = "meta without end"
    case listAsMeta = "a list as meta"
    case portalAsMeta = "the page of a captive portal as meta"
    case noMeta = "204 as meta"
    case textAsSize = "meta whose size is text"
    case fractionAsSize = "meta whose size is a fraction"
    case negativeSize = "meta with a negative size"
    case oversize = "meta with a size that no integer holds"
    case noDisk = "meta with a size that no disk holds"
    case largerSize = "meta with a larger size than the file has"
    case smallerSize = "meta with a smaller size than the file has"
    case shortHash = "meta whose SHA-256 is too short"
    case wrongHash = "meta with the SHA-256 of another file"
    case noChunkSize = "meta with a chunk size of zero"
    case negativeChunkSize = "meta with a negative chunk size"
    case tooManyChunks = "meta with more chunks than a file may have"
    case weakTag = "meta with a weak ETag"
    case lineBreakInTag = "meta with a line break in the ETag"
    case noChunks = "404 for the digests of the chunks"
    case fewChunks = "the digests of too few chunks"
    case manyChunks = "the digests of too many chunks"
    case otherChunkSize = "the digests of chunks of another size"
    case brokenChunks = "digests of the chunks that break off"
    case endlessChunks = "digests of the chunks without end"
    case wrongChunk = "a wrong digest of one chunk"
    case damagedChunk = "one chunk with a flipped bit, each time"
    case damagedFile = "every chunk with a flipped bit, and digests to match"

    var fault: OriginFault {
        let fault =
            switch self {
            case .largerSize, .smallerSize, .wrongHash, .noDisk, .weakTag, .lineBreakInTag:
                plausible
            case .noChunks, .fewChunks, .manyChunks, .otherChunkSize, .brokenChunks,
                .endlessChunks, .wrongChunk:
                chunks
            case .damagedChunk:
                OriginFault(.fails(.chunkHashMismatch), .parts) { answer, request, _ in
                    if request.range?.contains(2 * EvilFile.chunkByteCount) == true {
                        answer.flipBit()
                    }
                }
            case .damagedFile: damagedFile
            case .truncatedMeta, .deepMeta, .listAsMeta, .portalAsMeta, .noMeta, .hugeMeta,
                .endlessMeta:
                formless
            default: malformed
            }
        return fault.sized(5 * EvilFile.chunkByteCount + 1000)
    }

    /// Answers that are no metadata at all.
    private var formless: OriginFault {
        // The answer is as large at every attempt.
        let isTooMuch = self == .hugeMeta || self == .endlessMeta
        let outcome: OriginFault.Outcome =
            .fails(isTooMuch ? .protocolViolation : .notKedge)
        return OriginFault(outcome, .meta) { answer, _, file in
            let text = file.meta()
            switch self {
            case .truncatedMeta: answer.setBody(answer.content.prefix(40))
            case .deepMeta: answer.become(200, String(repeating: "[", count: 100_000))
            case .listAsMeta: answer.become(200, "[\(text)]")
            case .portalAsMeta: answer.becomePortal()
            case .noMeta: answer.becomeRaw(Array("HTTP/1.1 204 No\r\n\r\n".utf8))
            case .hugeMeta: answer.become(200, text + String(repeating: " ", count: 2 << 20))
            default:
                answer.delimitByClose()
                answer.body = [.endless([UInt8](repeating: UInt8(ascii: "["), count: 64 << 10))]
            }
        }
    }

    /// Metadata with an impossible value.
    private var malformed: OriginFault {
        // A number may be wrong once; another type means another interface.
        let isNumber = ![.textAsSize, .fractionAsSize, .oversize, .shortHash].contains(self)
        let outcome: OriginFault.Outcome =
            isNumber ? .recovers(.protocolViolation) : .fails(.notKedge)
        return OriginFault(outcome, .meta) { answer, _, file in
            let text =
                switch self {
                case .textAsSize: file.meta(size: "\"\(file.bytes.count)\"")
                case .fractionAsSize: file.meta(size: "\(file.bytes.count).5")
                case .negativeSize: file.meta(size: "-1")
                case .oversize: file.meta(size: "18446744073709551616")
                case .shortHash: file.meta(sha256: "0123")
                case .noChunkSize: file.meta(chunkSize: "0")
                case .negativeChunkSize: file.meta(chunkSize: "-65536")
                default: file.meta(size: "\(Int64.max)", chunkSize: "1")
                }
            answer.become(200, type: "application/json", text)
        }
    }

    /// Metadata that are plausible but not the file's.
    private var plausible: OriginFault {
        let outcome: OriginFault.Outcome =
            switch self {
            case .wrongHash: .fails(.integrityMismatch)
            case .noDisk: .fails(.diskFull)
            // There is no validator for ranges, so the hash of the file decides.
            case .weakTag, .lineBreakInTag: .completes
            default: .persists(.protocolViolation)
            }
        return OriginFault(outcome, .meta) { answer, _, file in
            let text =
                switch self {
                case .largerSize: file.meta(size: "\(file.bytes.count + 1)")
                case .smallerSize: file.meta(size: "\(file.bytes.count - 1)")
                case .wrongHash: file.meta(sha256: String(repeating: "0", count: 64))
                case .noDisk: file.meta(size: "\(Int64.max)", chunkSize: "\(Int64.max / 2)")
                case .lineBreakInTag: file.meta(etag: "\"one\\r\\nX-Injected: 1\"")
                default: file.meta(etag: "W/\"one\"")
                }
            answer.become(200, type: "application/json", text)
        }
    }

    private var chunks: OriginFault {
        let outcome: OriginFault.Outcome =
            switch self {
            case .brokenChunks: .recovers(.protocolViolation)
            // The bytes may be right, but the client cannot know which of the two is wrong.
            case .wrongChunk: .fails(.chunkHashMismatch)
            default: .completes
            }
        return OriginFault(outcome, .chunks) { answer, _, file in
            switch self {
            case .noChunks: answer.become(404)
            case .brokenChunks: answer.setBody(answer.content.prefix(100))
            case .endlessChunks:
                answer.delimitByClose()
                answer.body.append(.endless([UInt8](repeating: 32, count: 64 << 10)))
            default: answer.become(200, type: "application/json", digests(of: file))
            }
        }
    }

    private func digests(of file: EvilFile) -> String {
        let other = String(repeating: "0", count: 64)
        return switch self {
        case .fewChunks: file.chunks { $0.removeLast() }
        case .manyChunks: file.chunks { $0.append(other) }
        case .otherChunkSize: file.chunks(size: EvilFile.chunkByteCount / 2)
        default: file.chunks { $0[2] = other }
        }
    }

    /// Only the hash of the whole file shows the damage.
    private var damagedFile: OriginFault {
        OriginFault(.fails(.integrityMismatch), .all) { answer, request, _ in
            if request.path.hasSuffix("/chunks") { answer.become(404) }
            if OriginFault.Targets.parts.contains(request) { answer.flipBit() }
        }
    }
}

extension EvilAnswer {
    /// Damages the first byte of the body.
    mutating func flipBit() {
        var bytes = content
        guard let first = bytes.indices.first else { return }
        bytes[first] ^= 1
        content = bytes
    }
}
