import KedgeModel

/// Wrong bodies of the whole file, from an origin without ranges.
enum WholeFault: String, OriginFaultKind {
    case breaksOff = "a body that breaks off"
    case noLength = "no length anywhere, and a body that ends with the connection"
    case shorterThanSaid = "a body that ends with the connection before the size from HEAD"
    case longerThanSaid = "a body that ends with the connection after the size from HEAD"
    case endless = "a body without end after a size from HEAD"
    case negativeLength = "a negative Content-Length"
    case lengthOf63Bits = "a Content-Length of 2^63"
    case lengthOf64Bits = "a Content-Length of 2^64"
    case lengthWithSign = "a Content-Length with a plus sign"
    case lengthInWords = "a Content-Length in words"
    case smallThenLargeLength = "two Content-Lengths, the smaller one first"
    case largeThenSmallLength = "two Content-Lengths, the larger one first"
    case sameLengthTwice = "the same Content-Length twice"
    case coded = "an unsolicited content coding"
    case partUnasked = "an unsolicited 206"
    case noContent = "204"
    case wrongDigest = "a Repr-Digest of another file"
    case malformedDigest = "a malformed Repr-Digest"
    case otherTagThanHead = "another ETag to GET than to HEAD"
    case largerInHead = "a larger size to HEAD than to GET"
    case trickle = "a byte a second"

    var fault: OriginFault {
        switch self {
        case .negativeLength: length("-5")
        case .lengthOf63Bits: length("9223372036854775808")
        case .lengthOf64Bits: length("18446744073709551616")
        case .lengthWithSign: length("+5")
        case .lengthInWords: length("many")
        case .smallThenLargeLength: lengths([1000, 0])
        case .largeThenSmallLength: lengths([0, 1000])
        case .sameLengthTwice: lengths([0, 0], .completes)
        case .noLength, .shorterThanSaid, .longerThanSaid, .endless, .breaksOff: ending
        default: other.unranged
        }
    }

    private func length(_ value: String) -> OriginFault {
        OriginFault(.fails(.protocolViolation), .all) { answer, _, _ in
            answer["Content-Length"] = value
            answer.ending = .closes
        }.unranged
    }

    /// - Parameter missing: Bytes by which each Content-Length is below the size of the file.
    private func lengths(
        _ missing: [Int], _ outcome: OriginFault.Outcome = .fails(.protocolViolation)
    ) -> OriginFault {
        OriginFault(outcome, .all) { answer, _, file in
            answer["Content-Length"] = nil
            for count in missing { answer.add("Content-Length", "\(file.bytes.count - count)") }
            answer.ending = .closes
        }.unranged
    }

    private var ending: OriginFault {
        let fault =
            switch self {
            case .breaksOff:
                OriginFault(.recovers(.offline), .wholes) { answer, _, _ in
                    answer.breakOff(after: 1 << 20)
                }
            case .noLength:
                OriginFault(.completes, .all) { answer, _, _ in answer.delimitByClose() }
            case .shorterThanSaid:
                OriginFault(.recovers(.lengthMismatch), .wholes) { answer, _, _ in
                    answer.content.removeLast(100)
                    answer.delimitByClose()
                }
            case .longerThanSaid:
                OriginFault(.recovers(.lengthMismatch), .wholes) { answer, _, _ in
                    answer.content += Array("spare".utf8)
                    answer.delimitByClose()
                }
            default:
                OriginFault(.recovers(.lengthMismatch), .wholes) { answer, _, _ in
                    answer.delimitByClose()
                    answer.body.append(.endless([UInt8](repeating: 0xEE, count: 64 << 10)))
                }
            }
        return fault.unranged
    }

    private var other: OriginFault {
        switch self {
        case .coded:
            OriginFault(.fails(.contentEncoded), .all) { answer, _, _ in
                answer["Content-Encoding"] = "gzip"
            }
        case .partUnasked:
            OriginFault(.recovers(.protocolViolation), .wholes) { answer, _, file in
                answer.statusLine = "HTTP/1.1 206 Partial Content"
                answer["Content-Range"] = EvilFile.contentRange(0..<1000, of: file.bytes.count)
                answer.setBody(answer.content.prefix(1000))
            }
        case .noContent:
            OriginFault(.recovers(.protocolViolation), .wholes) { answer, _, _ in
                answer.becomeRaw(Array("HTTP/1.1 204 No\r\n\r\n".utf8))
            }
        case .wrongDigest: digest(.fails(.integrityMismatch), String(repeating: "A", count: 43))
        case .malformedDigest: digest(.completes, "short")
        case .otherTagThanHead:
            OriginFault(.completes, .wholes) { answer, _, _ in answer["ETag"] = "\"two\"" }
        case .largerInHead:
            OriginFault(.completes, .heads) { answer, _, file in
                answer["Content-Length"] = "\(file.bytes.count + 1)"
            }
        default:
            OriginFault(.completes, .wholes) { answer, _, _ in
                answer.body = answer.content.indices.flatMap { index in
                    [.pause(milliseconds: 1000), .bytes(answer.content[index...index])]
                }
            }.sized(3)
        }
    }

    private func digest(_ outcome: OriginFault.Outcome, _ value: String) -> OriginFault {
        OriginFault(outcome, .all) { answer, _, _ in answer["Repr-Digest"] = "sha-256=:\(value)=:" }
    }
}
