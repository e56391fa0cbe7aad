package import KedgeModel
internal import KedgeTransport

/// The reason why a redirect is not followed.
package enum RedirectRefusal: Sendable, Equatable {
    /// The answer has no valid `Location`.
    case noTarget
    /// The policy follows no redirect.
    case notFollowed(target: String)
    /// The target is not encrypted, and the redirecting address is.
    case notEncrypted(target: String)
    /// The redirects lead in a circle, or there are too many.
    case endless(target: String)

    package var code: ErrorCode {
        switch self {
        case .noTarget, .notFollowed, .notEncrypted: .redirected
        case .endless: .redirectLoop
        }
    }

    /// Returns the reason as a sentence, without the secrets of addresses.
    ///
    /// - Parameters:
    ///   - url: The address that redirects.
    ///   - home: Address of the server.
    func sentence(from url: String, home: String) -> String {
        let from = URLText.redacted(url)
        switch self {
        case .noTarget:
            return "The server redirects without a valid Location."
        case .notFollowed(let target):
            let advice = Self.newHome(behind: target, from: url, home: home).map {
                " If that is the same server, its address is \(URLText.redacted($0))."
            }
            return "\(from) redirects to \(URLText.redacted(target)), which is not followed."
                + (advice ?? "")
        case .notEncrypted(let target):
            return "\(from) redirects to \(URLText.redacted(target)), which is not encrypted;"
                + " it is not followed."
        case .endless(let target):
            return "\(from) redirects to \(URLText.redacted(target)): too many redirects."
        }
    }

    /// Returns the server's new base URL if the redirect changes only that, as to https.
    private static func newHome(
        behind target: String, from url: String, home: String
    ) -> String? {
        // Some servers leave out the query.
        let (target, url) = (target.prefix { $0 != "?" }, url.prefix { $0 != "?" })
        guard url.hasPrefix(home), url.count > home.count else { return nil }
        let path = url.dropFirst(home.count)
        guard target.hasSuffix(path), target != url else { return nil }
        return URLText.normalizedBase(String(target.dropLast(path.count)))
    }
}
