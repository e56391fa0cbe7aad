internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// The text of a link in an address.
enum LinkText {
    /// Name of the query parameter.
    static let parameter = "link"

    /// Returns the link in the query of a request; nil without one.
    ///
    /// - Throws: `BAD_REQUEST` for more than one.
    static func inQuery(of request: Request) throws -> String? {
        let values = request.uri.queryParameters[values: parameter[...]]
        guard values.count < 2 else {
            throw EngineError(.badRequest, "A request may have one link.")
        }
        return values.first.map { String($0) }
    }

    /// Whether the query of a request has a link, valid or not.
    static func isInQuery(of request: Request) -> Bool {
        request.uri.queryParameters.has(parameter[...])
    }

    /// Divides an address that a client names back into the part before its query and its link.
    static func divided(_ address: some StringProtocol) -> (path: String, link: String?) {
        let text = String(address.prefix { $0 != "#" })
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let parameters = parts.count > 1 ? parts[1].split(separator: "&") : []
        let prefix = "\(parameter)="
        let link = parameters.first { $0.hasPrefix(prefix) }
        return (String(parts[0]), link.map { String($0.dropFirst(prefix.count)) })
    }
}
