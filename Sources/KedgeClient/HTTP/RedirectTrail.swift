/// The redirects of one request: decides about each answer, and remembers the addresses.
package struct RedirectTrail: Sendable {
    /// Limit of redirects followed for one request.
    private static let maxRedirectCount = 5

    private let policy: RedirectPolicy
    /// Address of the next request.
    package private(set) var url: String
    private var visited: Set<String>

    /// The decision about an answer.
    package enum Decision: Sendable, Equatable {
        /// No redirect: the answer counts.
        case accept
        /// Request ``RedirectTrail/url``, which is now the target.
        case follow
        case refuse(RedirectRefusal)
    }

    package init(_ policy: RedirectPolicy, from url: String) {
        self.policy = policy
        self.url = url
        self.visited = [url]
    }

    /// Decides about the answer to a request to ``url``.
    package mutating func decide(status: Int, location: String?) -> Decision {
        guard [301, 302, 303, 307, 308].contains(status) else { return .accept }
        guard let target = LinkedAddress(location, from: url) else { return .refuse(.noTarget) }
        if let refusal = policy.refusal(of: target) { return .refuse(refusal) }
        guard visited.insert(target.url).inserted, visited.count <= Self.maxRedirectCount + 1
        else { return .refuse(.endless(target: target.url)) }
        url = target.url
        return .follow
    }
}
