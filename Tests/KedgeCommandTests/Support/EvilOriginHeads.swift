import KedgeModel

/// Wrong response heads.
enum HeadFault: String, OriginFaultKind {
    case fewInterims = "a few interim answers"
    case interimFlood = "interim answers by the thousand"
    case switching = "an unsolicited 101"
    case fieldFlood = "header fields by the thousand"
    case longField = "a header field of a mebibyte"
    case endlessField = "a header field without end"
    case nul = "a NUL in a header field"
    case bareLineFeeds = "lines that end in a bare line feed"
    case folded = "a folded header field"
    case lineWithoutColon = "a line that is no field"
    case spaceInName = "a space before the colon of Content-Length"
    case noReason = "a status line without words"
    case http10 = "HTTP/1.0"
    case unknownVersion = "an unknown version of HTTP"
    case statusInWords = "a status that is no number"
    case statusOf4Digits = "a status of four digits"
    case noStatusLine = "bytes without a head"
    case secureGarbage = "a TLS alert on a plain connection"
    case endOfConnection = "the end of the connection"
    case reset = "a reset"
    case halfHead = "half a head, and the end of the connection"

    var fault: OriginFault {
        switch self {
        case .fewInterims: preamble(.completes, count: 3)
        case .interimFlood: preamble(.fails(.protocolViolation), count: 10_000)
        case .fieldFlood, .longField, .endlessField, .nul, .lineWithoutColon: fields
        case .bareLineFeeds, .folded, .spaceInName, .noReason, .http10: oddities
        // No final answer came, so the client takes it for a lost connection.
        case .switching: raw(.recovers(.offline), rawText)
        case .endOfConnection: raw(.recovers(.offline), "")
        case .reset: raw(.recovers(.offline), "", .resets)
        case .halfHead: raw(.recovers(.offline), "HTTP/1.1 200 OK\r\nETag: \"o")
        default: raw(.fails(.protocolViolation), rawText)
        }
    }

    private func preamble(_ outcome: OriginFault.Outcome, count: Int) -> OriginFault {
        OriginFault(outcome, .all) { answer, _, _ in
            let interim = "HTTP/1.1 103 Early\r\nLink: </style.css>\r\n\r\n"
            answer.preamble = Array(String(repeating: interim, count: count).utf8)
        }
    }

    private var fields: OriginFault {
        OriginFault(.fails(.protocolViolation), .all) { answer, _, _ in
            switch self {
            case .fieldFlood:
                for number in 0..<5000 { answer.add("X-\(number)", "some value or other") }
            case .longField:
                answer.add("X-Long", String(repeating: "x", count: 1 << 20))
            case .endlessField:
                answer.becomeRaw(Array("HTTP/1.1 200 OK\r\nX-Long: ".utf8))
                answer.hasBodyAlways = true
                answer.body = [.endless([UInt8](repeating: UInt8(ascii: "x"), count: 64 << 10))]
            case .lineWithoutColon:
                answer.add("no field here\r\nX-Next", "1")
            default:
                answer.add("X-Nul", "a\0b")
            }
        }
    }

    private var oddities: OriginFault {
        OriginFault(.completes, .all) { answer, _, _ in
            switch self {
            case .bareLineFeeds: answer.lineEnd = "\n"
            case .folded: answer.add("X-Folded", "one\r\n two")
            case .spaceInName:
                let length = answer["Content-Length"] ?? ""
                answer["Content-Length"] = nil
                answer.add("Content-Length ", length)
                answer.ending = .closes
            case .noReason: answer.statusLine = String(answer.statusLine.prefix(12))
            default:
                answer.statusLine.replace("HTTP/1.1", with: "HTTP/1.0")
                answer.ending = .closes
            }
        }
    }

    private var rawText: String {
        switch self {
        case .switching: "HTTP/1.1 101 Switching\r\nUpgrade: other\r\n\r\nother words"
        case .unknownVersion: "HTTP/7.3 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
        case .statusInWords: "HTTP/1.1 two hundred\r\nContent-Length: 5\r\n\r\nwrong"
        case .statusOf4Digits: "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nwrong"
        case .secureGarbage: "\u{15}\u{03}\u{03}\u{00}\u{02}\u{02}\u{28}"
        default: "just some bytes\n"
        }
    }

    private func raw(
        _ outcome: OriginFault.Outcome, _ text: String, _ ending: EvilAnswer.Ending = .closes
    ) -> OriginFault {
        OriginFault(outcome, .all) { answer, _, _ in
            answer.becomeRaw(Array(text.utf8), ending: ending)
        }
    }
}
