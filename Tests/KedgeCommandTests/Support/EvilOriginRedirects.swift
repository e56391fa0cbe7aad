import KedgeModel
import KedgeTesting

/// Redirects of an origin.
enum RedirectFault: String, OriginFaultKind {
    case relative = "to a relative path"
    case absolutePath = "to an absolute path"
    case sameURL = "to itself"
    case chain = "to a new place each time"
    case localFile = "to a local file"
    case otherScheme = "to another scheme"
    case nowhere = "without a Location"
    case malformed = "to something that is no URL"
    case empty = "to nothing"
    case deadHost = "to a port without a listener"
    case portal = "to the page of a captive portal, for ranges only"

    var fault: OriginFault {
        switch self {
        case .relative: redirect(.completes) { "./there/../there.bin?\($0.path.count)" }
        case .absolutePath: redirect(.completes) { _ in "/there.bin" }
        case .sameURL: always(.fails(.redirectLoop)) { _ in "/file.bin" }
        case .chain: always(.fails(.redirectLoop)) { "\($0.path)x" }
        case .localFile: always { _ in "file:///etc/passwd" }
        case .otherScheme: always { _ in "ftp://127.0.0.1/file.bin" }
        case .nowhere: always { _ in nil }
        case .malformed: always { _ in "http://[" }
        case .empty: always { _ in "" }
        case .deadHost: always(.recovers(.offline)) { _ in "http://127.0.0.1:1/file.bin" }
        case .portal:
            OriginFault(.recovers(.protocolViolation), .parts) { answer, request, _ in
                if request.path == "/login" {
                    answer.becomePortal()
                } else {
                    answer.redirect(to: "/login")
                }
            }
        }
    }

    /// Redirects only from the URL that the command was given.
    private func redirect(
        _ outcome: OriginFault.Outcome, _ location: @escaping @Sendable (HTTPMessage) -> String?
    ) -> OriginFault {
        OriginFault(outcome, .all) { answer, request, _ in
            if request.path == "/file.bin" { answer.redirect(to: location(request)) }
        }
    }

    private func always(
        _ outcome: OriginFault.Outcome = .fails(.redirected),
        _ location: @escaping @Sendable (HTTPMessage) -> String?
    ) -> OriginFault {
        OriginFault(outcome, .all) { answer, request, _ in answer.redirect(to: location(request)) }
    }
}
