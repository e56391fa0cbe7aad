import KedgeModel
import KedgeTesting
import Testing

/// An interference between client and server, with the outcomes that upload and download must
/// reach.
struct Interference: Sendable {
    let rule: MessageRule
    let upload: OriginFault.Outcome
    let download: OriginFault.Outcome

    init(
        _ rule: MessageRule, upload: OriginFault.Outcome = .completes,
        download: OriginFault.Outcome = .completes
    ) {
        self.rule = rule
        self.upload = upload
        self.download = download
    }
}

/// Answers that come late, or from an intermediary.
enum Outage: String, CaseIterable, CustomTestStringConvertible {
    case slow = "300 ms on each way"
    case portalAtFirst = "the page of a captive portal at the first contact"
    case portalBetween = "the page of a captive portal in the middle"
    case portalForEver = "the page of a captive portal from then on"
    case badGateway = "502 now and then"
    case unavailable = "503 with a Retry-After now and then"

    var testDescription: String { rawValue }

    var interference: Interference {
        switch self {
        case .slow: Interference(MessageRule(delay: .milliseconds(300)))
        case .portalAtFirst:
            Interference(
                portal { $0 < 3 }, upload: .fails(.notKedge), download: .fails(.notKedge))
        case .portalBetween: Interference(portal { (6..<12).contains($0) })
        case .portalForEver:
            Interference(
                portal { $0 > 3 }, upload: .recovers(.notKedge), download: .recovers(.notKedge))
        case .badGateway: Interference(refusal("502 Bad Gateway"))
        case .unavailable:
            Interference(refusal("503 Service Unavailable", after: "1", every: 12))
        }
    }

    private func portal(_ isDue: @escaping @Sendable (Int) -> Bool) -> MessageRule {
        MessageRule(isDue: isDue, copyCount: 0) { answer, _ in
            answer = HTTPMessage(
                "HTTP/1.1 200 OK", body: Array("<html><title>Log in</title></html>".utf8))
            answer["Content-Type"] = "text/html"
        }
    }

    private func refusal(_ status: String, after: String? = nil, every period: Int = 4)
        -> MessageRule
    {
        let isDue: @Sendable (Int) -> Bool = { $0 % period == 1 }
        return MessageRule(isDue: isDue, copyCount: 0) { answer, _ in
            answer = HTTPMessage("HTTP/1.1 \(status)", body: Array("<html></html>".utf8))
            answer["Retry-After"] = after
        }
    }
}

/// Requests that the server performs without an answer to the client, or more than once.
enum Loss: String, CaseIterable, CustomTestStringConvertible {
    case gatewayTimeout = "504 after the work is done, now and then"
    case lost = "no answer after the work is done, now and then"
    case lostByReset = "a reset after the work is done, now and then"
    case lostFirst = "no answer to the first request"
    case cut = "half an answer now and then"
    case twice = "every request twice, one after the other"
    case twiceAtOnce = "every request three times at once"

    var testDescription: String { rawValue }

    var interference: Interference { Interference(rule) }

    private var rule: MessageRule {
        switch self {
        case .gatewayTimeout:
            MessageRule(isDue: Self.nowAndThen) { answer, _ in
                answer = HTTPMessage("HTTP/1.1 504 Gateway Timeout")
            }
        case .lostFirst: MessageRule(isDue: { $0 == 0 }, delivery: .lost(resetting: false))
        case .lostByReset: MessageRule(isDue: { $0 % 3 == 0 }, delivery: .lost(resetting: true))
        case .cut: MessageRule(isDue: { $0 % 3 == 0 }, delivery: .cut)
        case .twice: MessageRule(copyCount: 2)
        case .twiceAtOnce: MessageRule(copyCount: 3, copiesRace: true)
        case .lost: MessageRule(isDue: { $0 % 3 == 0 }, delivery: .lost(resetting: false))
        }
    }

    private static func nowAndThen(_ number: Int) -> Bool { number % 4 == 1 }
}

extension MessageRule {
    /// Makes a rule that changes answers.
    init(
        isDue: @escaping @Sendable (Int) -> Bool = { _ in true }, copyCount: Int = 1,
        _ changesAnswer: @escaping @Sendable (inout HTTPMessage, HTTPMessage) -> Void
    ) {
        self.init(isDue: isDue, copyCount: copyCount, changesAnswer: changesAnswer)
    }
}
