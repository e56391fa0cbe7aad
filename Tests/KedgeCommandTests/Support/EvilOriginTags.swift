import KedgeModel
import KedgeTesting

/// Wrong validators, under which a client would combine ranges.
enum TagFault: String, OriginFaultKind {
    case newEachTime = "another ETag with every answer"
    case otherInHead = "another ETag to HEAD than to GET"
    case weak = "a weak ETag"
    case none = "no ETag"
    case unquoted = "an ETag without quotes"
    case quotesInside = "an ETag with quotes inside"
    case two = "two different ETags"
    case dateOnly = "Last-Modified and no ETag"
    case empty = "an ETag of no characters"
    case long = "an ETag of 8 KiB"
    case huge = "an ETag of 80 KiB"
    case weakWithParts = "an ETag that is weak with ranges only"
    case noneWithParts = "an ETag that is missing with ranges"

    var fault: OriginFault {
        switch self {
        case .newEachTime:
            OriginFault(.fails(.remoteChanged), .all) { answer, _, file in
                answer.statusLine = "HTTP/1.1 200 OK"
                answer.setBody(file.bytes[...])
                answer["Content-Range"] = nil
                answer["ETag"] = "\"\(UInt64.random(in: 0 ... .max))\""
            }
        case .otherInHead: tag(.fails(.remoteChanged), .heads, "\"other\"")
        case .weak: tag(.completes, .all, "W/\"one\"")
        case .none: tag(.completes, .all, nil)
        case .unquoted: tag(.completes, .all, "one")
        case .quotesInside: tag(.completes, .all, "\"o\"ne\"")
        case .two: OriginFault(.completes, .all) { answer, _, _ in answer.add("ETag", "\"two\"") }
        case .dateOnly:
            OriginFault(.completes, .all) { answer, _, _ in
                answer["ETag"] = nil
                answer["Last-Modified"] = "Fri, 02 Jan 2026 03:04:05 GMT"
            }
        case .empty: tag(.completes, .all, "\"\"")
        case .long: tag(.completes, .all, "\"\(String(repeating: "e", count: 8 << 10))\"")
        case .huge:
            tag(.fails(.protocolViolation), .all, "\"\(String(repeating: "e", count: 80 << 10))\"")
        case .weakWithParts: tag(.recovers(.protocolViolation), .parts, "W/\"one\"")
        case .noneWithParts: tag(.recovers(.protocolViolation), .parts, nil)
        }
    }

    /// An origin that sends this tag and recognizes it in conditions.
    private func tag(_ outcome: OriginFault.Outcome, _ targets: OriginFault.Targets, _ tag: String?)
        -> OriginFault
    {
        OriginFault(outcome, targets) { answer, request, file in
            if let range = request.range, let tag, request["if-match"] == tag {
                answer.statusLine = "HTTP/1.1 206 Partial Content"
                answer["Content-Range"] = EvilFile.contentRange(range, of: file.bytes.count)
                answer.setBody(file.bytes[range])
            }
            answer["ETag"] = tag
        }
    }
}
