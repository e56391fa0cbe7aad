import KedgeModel
import KedgeTesting

/// Wrong answers to a request for a range.
enum RangeFault: String, OriginFaultKind {
    case wholeOfSameTag = "200 with the whole file and the same ETag"
    case wholeOfOtherTag = "200 with other bytes and another ETag, each time"
    case wholeWithoutTag = "200 with the whole file and no ETag"
    case portal = "200 with the page of a captive portal"
    case laterStart = "206 that starts a byte later than asked"
    case earlierStart = "206 that starts at the file's first byte, whatever was asked"
    case earlierEnd = "206 that ends a byte earlier than asked"
    case laterEnd = "206 that ends a byte later than asked"
    case otherTotal = "206 of a file of another size"
    case unknownTotal = "206 of a file of unknown size"
    case noContentRange = "206 without Content-Range"
    case malformedContentRange = "206 with a Content-Range of words"
    case reversedContentRange = "206 with a Content-Range whose end is before its start"
    case hugeContentRange = "206 with numbers in Content-Range that no integer holds"
    case otherUnit = "206 of items instead of bytes"
    case twoContentRanges = "206 with two different Content-Ranges"
    case multipart = "206 with multipart/byteranges for a single range"
    case coded = "206 with an unsolicited content coding"
    case notSatisfiable = "416 for a valid range, with the right size"
    case notSatisfiableOfOther = "416 for a valid range, with another size"
    case notSatisfiableAlone = "416 for a valid range, and no size"
    case notModified = "an unsolicited 304"
    case noContent = "204"
    case accepted = "202 with the right bytes"
    case choices = "300 with the right bytes"
    case failedPrecondition = "412 for the right ETag"

    var fault: OriginFault {
        switch self {
        case .wholeOfSameTag, .wholeOfOtherTag, .wholeWithoutTag, .portal: whole
        case .notSatisfiable, .notSatisfiableOfOther, .notSatisfiableAlone, .notModified,
            .noContent, .accepted, .choices, .failedPrecondition:
            otherStatus
        case .multipart, .coded, .twoContentRanges: otherForm
        default: otherContentRange
        }
    }

    private var whole: OriginFault {
        switch self {
        case .wholeOfSameTag:
            OriginFault(.completes, .parts) { answer, _, file in
                answer.statusLine = "HTTP/1.1 200 OK"
                answer["Content-Range"] = nil
                answer.setBody(file.bytes[...])
            }
        case .wholeOfOtherTag:
            OriginFault(.fails(.remoteChanged), .parts) { answer, _, file in
                answer.become(200, String(repeating: "x", count: file.bytes.count))
                answer["ETag"] = "\"two\""
            }
        case .wholeWithoutTag:
            OriginFault(.recovers(.protocolViolation), .parts) { answer, _, file in
                answer.become(200)
                answer.setBody(file.bytes[...])
            }
        default:
            // A page without the file's tag is no newer version of it.
            OriginFault(.recovers(.protocolViolation), .parts) { answer, _, _ in
                answer.becomePortal()
            }
        }
    }

    private var otherContentRange: OriginFault {
        OriginFault(.recovers(.protocolViolation), .parts) { answer, request, file in
            answer["Content-Range"] = contentRange(
                request.range ?? 0..<1, of: file.bytes.count)
        }
    }

    private func contentRange(_ asked: Range<Int>, of total: Int) -> String? {
        let (first, end) = (asked.lowerBound, asked.upperBound)
        let digits = String(repeating: "9", count: 20)
        return switch self {
        case .laterStart: EvilFile.contentRange(first + 1..<end, of: total)
        // The first chunk starts at byte 0, so its answer ends elsewhere instead.
        case .earlierStart:
            EvilFile.contentRange(0..<(first == 0 ? end - 7 : end - first), of: total)
        case .earlierEnd: EvilFile.contentRange(first..<end - 1, of: total)
        case .laterEnd: EvilFile.contentRange(first..<end + 1, of: total)
        case .otherTotal: EvilFile.contentRange(asked, of: total + 1)
        case .unknownTotal: "bytes \(first)-\(end - 1)/*"
        case .malformedContentRange: "bytes first-last/all"
        case .reversedContentRange: "bytes \(end)-\(first)/\(total)"
        case .hugeContentRange: "bytes \(first)-\(digits)/\(digits)"
        case .otherUnit: "items \(first)-\(end - 1)/\(total)"
        default: nil
        }
    }

    private var otherForm: OriginFault {
        let outcome: OriginFault.Outcome =
            self == .coded ? .fails(.contentEncoded) : .recovers(.protocolViolation)
        return OriginFault(outcome, .parts) { answer, _, file in
            switch self {
            case .multipart:
                let part = "--cut\r\nContent-Range: \(answer["Content-Range"] ?? "")\r\n\r\n"
                answer["Content-Range"] = nil
                answer["Content-Type"] = "multipart/byteranges; boundary=cut"
                answer.setBody(
                    (Array(part.utf8) + answer.content + Array("\r\n--cut--\r\n".utf8))[...])
            case .coded:
                answer["Content-Encoding"] = "gzip"
            default:
                answer.add("Content-Range", EvilFile.contentRange(0..<1, of: file.bytes.count))
            }
        }
    }

    private var otherStatus: OriginFault {
        switch self {
        case .notSatisfiable:
            OriginFault(.recovers(.protocolViolation), .parts) { answer, _, file in
                answer.become(416)
                answer["Content-Range"] = "bytes */\(file.bytes.count)"
            }
        case .notSatisfiableOfOther:
            OriginFault(.fails(.remoteChanged), .parts) { answer, _, _ in
                answer.become(416)
                answer["Content-Range"] = "bytes */7"
            }
        case .notSatisfiableAlone:
            OriginFault(.fails(.remoteChanged), .parts) { answer, _, _ in answer.become(416) }
        case .failedPrecondition:
            OriginFault(.fails(.remoteChanged), .parts) { answer, _, _ in
                answer.become(412)
                answer["ETag"] = EvilFile.tag
            }
        case .notModified:
            OriginFault(.recovers(.protocolViolation), .parts) { answer, _, _ in
                answer.becomeRaw(Array("HTTP/1.1 304 No\r\nETag: \(EvilFile.tag)\r\n\r\n".utf8))
            }
        case .noContent:
            OriginFault(.recovers(.protocolViolation), .parts) { answer, _, _ in
                answer.becomeRaw(Array("HTTP/1.1 204 No\r\n\r\n".utf8))
            }
        case .accepted:
            OriginFault(.recovers(.protocolViolation), .parts) { answer, _, _ in
                answer.statusLine = "HTTP/1.1 202 Accepted"
            }
        default:
            OriginFault(.recovers(.protocolViolation), .parts) { answer, _, _ in
                answer.statusLine = "HTTP/1.1 300 Choose"
            }
        }
    }
}
