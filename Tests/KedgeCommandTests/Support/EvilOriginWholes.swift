import KedgeModel

/// Wrong bodies of the whole file, from an origin without ranges.
enum WholeMisdeed: String, Misdeed {
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

    var deed: Deed {
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

    private func length(_ value: String) -> Deed {
        Deed(.fails(.protocolViolation), .all) { answer, _, _ in
            answer["Content-Length"] = value
            answer.ending = .closes
        }.unranged
    }

    /// - Parameter missing: Bytes by which each Content-Length is below the size of the file.
    private func lengths(
        _ missing: [Int], _ outcome: Deed.Outcome = .fails(.protocolViolation)
    ) -> Deed {
        Deed(outcome, .all) { answer, _, file in
            answer["Content-Length"] = nil
            for count in missing { answer.add("Content-Length", "\(file.bytes.count - count)") }
            answer.ending = .closes
        }.unranged
    }

    private var ending: Deed {
        let deed =
            switch self {
            case .breaksOff:
                Deed(.recovers(.offline), .wholes) { answer, _, _ in
                    answer.breakOff(after: 1 << 20)
                }
            case .noLength:
                Deed(.completes, .all) { answer, _, _ in answer.delimitByClose() }
            case .shorterThanSaid:
                Deed(.recovers(.lengthMismatch), .wholes) { answer, _, _ in
                    answer.content.removeLast(100)
                    answer.delimitByClose()
                }
            case .longerThanSaid:
                Deed(.recovers(.lengthMismatch), .wholes) { answer, _, _ in
                    answer.content += Array("spare".utf8)
                    answer.delimitByClose()
                }
            default:
                Deed(.recovers(.lengthMismatch), .wholes) { answer, _, _ in
                    answer.delimitByClose()
                    answer.body.append(.endless([UInt8](repeating: 0xEE, count: 64 << 10)))
                }
            }
        return deed.unranged
    }

    private var other: Deed {
        switch self {
        case .coded:
            Deed(.fails(.contentEncoded), .all) { answer, _, _ in
                answer["Content-Encoding"] = "gzip"
            }
        case .partUnasked:
            Deed(.recovers(.protocolViolation), .wholes) { answer, _, file in
                answer.statusLine = "HTTP/1.1 206 Partial Content"
                answer["Content-Range"] = EvilFile.contentRange(0..<1000, of: file.bytes.count)
                answer.setBody(answer.content.prefix(1000))
            }
        case .noContent:
            Deed(.recovers(.protocolViolation), .wholes) { answer, _, _ in
                answer.becomeRaw(Array("HTTP/1.1 204 No\r\n\r\n".utf8))
            }
        case .wrongDigest: digest(.fails(.integrityMismatch), String(repeating: "A", count: 43))
        case .malformedDigest: digest(.completes, "short")
        case .otherTagThanHead:
            Deed(.completes, .wholes) { answer, _, _ in answer["ETag"] = "\"two\"" }
        case .largerInHead:
            Deed(.completes, .heads) { answer, _, file in
                answer["Content-Length"] = "\(file.bytes.count + 1)"
            }
        default:
            Deed(.completes, .wholes) { answer, _, _ in
                answer.body = answer.content.indices.flatMap { index in
                    [.pause(milliseconds: 1000), .bytes(answer.content[index...index])]
                }
            }.sized(3)
        }
    }

    private func digest(_ outcome: Deed.Outcome, _ value: String) -> Deed {
        Deed(outcome, .all) { answer, _, _ in answer["Repr-Digest"] = "sha-256=:\(value)=:" }
    }
}
