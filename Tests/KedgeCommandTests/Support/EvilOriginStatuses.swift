import KedgeModel

/// Refusals of an origin.
enum StatusFault: String, OriginFaultKind {
    case unauthorized = "401"
    case forbidden = "403"
    case notFound = "404"
    case gone = "410"
    case tooMany = "429"
    case tooManyNegative = "429 with a negative Retry-After"
    case tooManyPast = "429 with a Retry-After in the past"
    case tooManyInWords = "429 with a Retry-After in words"
    case failing = "500"
    case badGateway = "502"
    case unavailable = "503"
    case unavailableForASecond = "503 with a Retry-After of a second"
    case outOfSpace = "507"
    case loginNeeded = "511 with the page of a captive portal"
    case unknown = "999"
    case foreignCode = "404 with a code that only a client can have"
    case retryableCode = "404 with the code of a busy server"
    case endlessProblem = "404 with a body without end"
    case brokenProblem = "404 with a body that breaks off"
    case deepProblem = "404 with JSON ten thousand arrays deep"
    case refusedHead = "405 to HEAD"
    case failingHead = "501 to HEAD"

    var fault: OriginFault {
        switch self {
        case .unauthorized: refusal(.fails(.unauthenticated), 401)
        case .forbidden: refusal(.fails(.forbidden), 403)
        case .notFound: refusal(.fails(.fileNotFound), 404)
        case .gone: refusal(.fails(.fileGone), 410)
        case .tooMany: refusal(.recovers(.busy), 429)
        case .tooManyNegative: refusal(.recovers(.busy), 429, after: "-5")
        case .tooManyPast: refusal(.recovers(.busy), 429, after: "Fri, 02 Jan 2015 03:04:05 GMT")
        case .tooManyInWords: refusal(.recovers(.busy), 429, after: "soon")
        case .failing: refusal(.recovers(.internalError), 500)
        case .badGateway: refusal(.recovers(.unavailable), 502)
        case .unavailable: refusal(.recovers(.unavailable), 503)
        case .unavailableForASecond: refusal(.recovers(.unavailable), 503, after: "1")
        case .outOfSpace: refusal(.recovers(.storageFull), 507)
        case .loginNeeded: refusal(.recovers(.internalError), 511)
        case .unknown: refusal(.recovers(.protocolViolation), 999)
        case .refusedHead: OriginFault(.completes, .heads) { answer, _, _ in answer.become(405) }
        case .failingHead: OriginFault(.completes, .heads) { answer, _, _ in answer.become(501) }
        default: problem
        }
    }

    private func refusal(
        _ outcome: OriginFault.Outcome, _ status: Int, after: String? = nil
    ) -> OriginFault {
        OriginFault(outcome, .all) { answer, _, _ in
            answer.becomePortal()
            answer.statusLine = "HTTP/1.1 \(status) No"
            answer["Retry-After"] = after
        }
    }

    private var problem: OriginFault {
        // A code has its meaning only if a server may send it.
        let outcome: OriginFault.Outcome =
            self == .retryableCode ? .recovers(.busy) : .fails(.fileNotFound)
        return OriginFault(outcome, .all) { answer, _, _ in
            answer.become(404, type: "application/problem+json", text)
            switch self {
            case .endlessProblem:
                answer.delimitByClose()
                answer.body = [.endless([UInt8](repeating: UInt8(ascii: " "), count: 64 << 10))]
            case .brokenProblem:
                answer["Content-Length"] = "100000"
                answer.ending = .closes
            default:
                break
            }
        }
    }

    private var text: String {
        switch self {
        case .foreignCode: Self.problem(code: "DISK_FULL")
        case .retryableCode: Self.problem(code: "BUSY")
        case .deepProblem: String(repeating: "[", count: 10_000)
        default: "{\"code\":\"BU"
        }
    }

    private static func problem(code: String) -> String {
        """
        {"type":"about:blank","title":"No","status":404,"code":"\(code)","detail":"No",\
        "requestId":"1"}
        """
    }
}
