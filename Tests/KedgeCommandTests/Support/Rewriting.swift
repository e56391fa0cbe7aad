import KedgeModel
import KedgeTesting
import Testing

/// Messages that an intermediary rewrites.
enum Rewriting: String, CaseIterable, CustomTestStringConvertible {
    case gzip = "every answer coded with gzip"
    case gzipNowAndThen = "answers coded with gzip now and then"
    case noETag = "no ETag"
    case noContentRange = "no Content-Range in answers"
    case noContentRangeNowAndThen = "no Content-Range in answers now and then"
    case noContentRangeUp = "no Content-Range in requests"
    case noLength = "no Content-Length, but the connection's end"
    case noChunkHash = "no X-Chunk-Hash"
    case noIdempotencyKey = "no Idempotency-Key, and no answer to the first request"
    case noRange = "no Range"
    case noPreconditions = "no If-Range and no If-Match"
    case noTalk = "no informational fields"
    case shiftedRange = "another Content-Range, always"
    case shiftedRangeNowAndThen = "another Content-Range now and then"
    case olderVersion = "HTTP/1.0"

    var testDescription: String { rawValue }

    var interference: Interference {
        switch self {
        case .gzip:
            Interference(
                MessageRule(Self.code), upload: .fails(.notKedge), download: .fails(.notKedge))
        case .gzipNowAndThen: Interference(MessageRule(isDue: Self.nowAndThen, Self.code))
        case .noETag:
            Interference(Self.without("ETag"), download: .recovers(.protocolViolation))
        case .noContentRange:
            Interference(Self.without("Content-Range"), download: .recovers(.protocolViolation))
        case .shiftedRange:
            Interference(MessageRule(Self.shift), download: .recovers(.protocolViolation))
        case .shiftedRangeNowAndThen: Interference(MessageRule(isDue: Self.nowAndThen, Self.shift))
        case .noContentRangeNowAndThen:
            Interference(
                MessageRule(isDue: Self.nowAndThen) { answer, _ in answer["Content-Range"] = nil })
        case .noLength, .olderVersion: Interference(undelimited)
        case .noTalk:
            Interference(
                Self.without(
                    "Location", "Retry-After", "Content-Digest", "Repr-Digest", "X-Request-Id",
                    "Accept-Ranges", "Content-Disposition", "Content-Type", "Date", "Server"))
        default: requests
        }
    }

    private var requests: Interference {
        switch self {
        case .noChunkHash:
            Interference(
                Self.withoutUp("X-Chunk-Hash"), upload: .fails(.chunkHashRequired))
        case .noContentRangeUp:
            Interference(Self.withoutUp("Content-Range"), upload: .fails(.rangeMismatch))
        case .noRange: Interference(Self.withoutUp("Range"))
        case .noPreconditions: Interference(Self.withoutUp("If-Range", "If-Match"))
        default:
            Interference(
                MessageRule(
                    isDue: { $0 == 0 }, changesRequest: { $0["Idempotency-Key"] = nil },
                    delivery: .lost(resetting: false)))
        }
    }

    private var undelimited: MessageRule {
        var rule = MessageRule { answer, _ in
            answer["Content-Length"] = nil
            answer["Connection"] = "close"
            if self == .olderVersion {
                answer.firstLine = "HTTP/1.0" + answer.firstLine.dropFirst(8)
                answer["Connection"] = nil
            }
        }
        rule.delimitsItself = true
        return rule
    }

    private static func nowAndThen(_ number: Int) -> Bool { number % 4 == 1 }

    private static func code(_ answer: inout HTTPMessage, _ request: HTTPMessage) {
        guard !answer.body.isEmpty else { return }
        answer.body = GzipText.encode(answer.body)
        answer["Content-Encoding"] = "gzip"
    }

    private static func shift(_ answer: inout HTTPMessage, _ request: HTTPMessage) {
        guard let value = answer["Content-Range"],
            let range = ContentRange(value), let bytes = range.range
        else { return }
        let shifted = ByteRange(start: bytes.start + 1, end: bytes.end + 1)
        answer["Content-Range"] = ContentRange(range: shifted, total: range.total).description
    }

    private static func without(_ names: String...) -> MessageRule {
        MessageRule { answer, _ in for name in names { answer[name] = nil } }
    }

    private static func withoutUp(_ names: String...) -> MessageRule {
        var rule = MessageRule()
        rule.changesRequest = { request in for name in names { request[name] = nil } }
        return rule
    }
}
