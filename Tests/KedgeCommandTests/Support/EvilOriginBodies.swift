import KedgeModel

/// Wrong bodies of a range.
enum PartFault: String, OriginFaultKind {
    case breaksOff = "a body that breaks off after a mebibyte"
    case breaksOffWithReset = "a body that breaks off with a reset"
    case breaksOffAtOnce = "a head, and then the end of the connection"
    case shortLength = "a short body with its own Content-Length"
    case longLength = "a long body with its own Content-Length"
    case noBytes = "a body of no bytes"
    case longChunked = "a chunked body with bytes to spare"
    case endlessChunked = "a chunked body without end"
    case endless = "a body without length and without end"
    case chunked = "a chunked body with extensions and trailers"
    case lyingTrailers = "trailers that say another ETag, range and length"
    case noLastChunk = "a chunked body without its last chunk"
    case chunkedAndOtherLength = "a chunked body with another Content-Length"
    case wordAsChunkSize = "a chunk size that is no number"
    case hugeChunkSize = "a chunk size that no integer holds"
    case negativeChunkSize = "a negative chunk size"
    case closeDelimited = "a body that ends with the connection"
    case secondAnswer = "an unsolicited second answer with other bytes"
    case headWithBody = "a body after the answer to HEAD"
    case otherLengthInHead = "a larger size to HEAD than the file has"
    case smallerLengthInHead = "a smaller size to HEAD than the file has"
    case hugeLengthInHead = "a size to HEAD that no disk holds"

    var fault: OriginFault {
        switch self {
        case .breaksOff, .breaksOffWithReset, .breaksOffAtOnce, .noLastChunk, .closeDelimited:
            early
        case .shortLength, .longLength, .noBytes, .longChunked, .chunkedAndOtherLength: otherLength
        case .endlessChunked, .endless: withoutEnd
        case .headWithBody, .otherLengthInHead, .smallerLengthInHead, .hugeLengthInHead: heads
        case .wordAsChunkSize: chunkSize("word")
        case .hugeChunkSize: chunkSize(String(repeating: "f", count: 17))
        case .negativeChunkSize: chunkSize("-5")
        case .chunked, .lyingTrailers, .secondAnswer: harmless
        }
    }

    private var early: OriginFault {
        switch self {
        case .breaksOff:
            OriginFault(.completes, .parts) { answer, _, _ in answer.breakOff(after: 1 << 20) }
        case .breaksOffWithReset:
            OriginFault(.completes, .parts) { answer, _, _ in
                answer.breakOff(after: 1 << 20, .resets)
                // The client has to read the sent bytes before the reset discards them.
                answer.body.append(.pause(milliseconds: 100))
            }
        case .breaksOffAtOnce:
            OriginFault(.recovers(.offline), .parts) { answer, _, _ in answer.breakOff(after: 0) }
        case .noLastChunk:
            OriginFault(.completes, .parts) { answer, _, _ in
                answer.chunk(ending: "\r\n", closes: true)
            }
        default:
            OriginFault(.completes, .parts) { answer, _, _ in answer.delimitByClose() }
        }
    }

    private var otherLength: OriginFault {
        OriginFault(.recovers(.protocolViolation), .parts) { answer, _, _ in
            let spare = answer.content + Array("spare".utf8)
            switch self {
            case .shortLength: answer.setBody(answer.content.dropLast(100))
            case .longLength: answer.setBody(spare)
            case .noBytes: answer.setBody([])
            case .longChunked:
                answer.content = spare
                answer.chunk()
            default:
                answer.chunk()
                answer["Content-Length"] = "5"
            }
        }
    }

    private var withoutEnd: OriginFault {
        OriginFault(.recovers(.protocolViolation), .parts) { answer, _, _ in
            let block = [UInt8](repeating: 0xEE, count: 64 << 10)
            let isChunked = self == .endlessChunked
            if isChunked { answer["Transfer-Encoding"] = "chunked" }
            answer.delimitByClose()
            answer.body = [
                .endless(isChunked ? Array("10000\r\n".utf8) + block + Array("\r\n".utf8) : block)
            ]
        }
    }

    private func chunkSize(_ size: String) -> OriginFault {
        OriginFault(.recovers(.offline), .parts) { answer, _, _ in
            answer.chunk(size, closes: true)
        }
    }

    private var harmless: OriginFault {
        OriginFault(.completes, .parts) { answer, _, file in
            switch self {
            case .chunked:
                let size = String(answer.content.count, radix: 16, uppercase: true)
                answer.chunk("000\(size);name=\"value\"", ending: "\r\n0;last\r\nX-End: 1\r\n\r\n")
            case .lyingTrailers:
                answer.chunk(
                    ending: "\r\n0\r\nETag: \"two\"\r\nContent-Length: 5\r\n"
                        + "Content-Range: \(EvilFile.contentRange(0..<5, of: 5))\r\n\r\n")
            default:
                var second = answer
                second.content = [UInt8](repeating: 0xEE, count: answer.content.count)[...]
                answer.body += [.bytes(second.head[...])] + second.body
            }
        }
    }

    private var heads: OriginFault {
        switch self {
        case .headWithBody:
            OriginFault(.completes, .heads) { answer, _, _ in answer.hasBodyAlways = true }
        case .otherLengthInHead:
            OriginFault(.persists(.protocolViolation), .heads) { answer, _, file in
                answer["Content-Length"] = "\(file.bytes.count + 1)"
            }
        case .smallerLengthInHead:
            OriginFault(.persists(.protocolViolation), .heads) { answer, _, file in
                answer["Content-Length"] = "\(file.bytes.count - 70_000)"
            }
        default:
            OriginFault(.fails(.diskFull), .heads) { answer, _, _ in
                answer["Content-Length"] = "\(Int64.max)"
            }
        }
    }
}
