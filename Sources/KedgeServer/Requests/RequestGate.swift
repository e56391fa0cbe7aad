internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// The one gate before any route: who asks, and whether such a request is taken at all.
///
/// Today everybody who reaches the loopback address is the same anonymous owner. A web browser on this
/// machine reaches it, too, on behalf of any page it shows. So a page of another origin is refused, and
/// so is a name that is not this machine's: a page can let its own name point here (DNS rebinding).
struct RequestGate: Sendable {
    /// Names besides loopback ones that may stand in `Host`; `*` allows all.
    let allowedHosts: Set<String>

    /// - Throws: `BAD_REQUEST`.
    func principal(of request: Request) throws -> Principal {
        let host = Self.name(in: request.head.authority ?? "")
        guard allowedHosts.contains("*") || allowedHosts.contains(host) || Loopback.contains(host)
        else {
            throw EngineError(.badRequest, "This server does not answer to the name in Host.")
        }
        if let site = request.headers[.secFetchSite], site != "same-origin", site != "none" {
            throw EngineError(.badRequest, "Pages of other sites are not answered.")
        }
        if let origin = request.headers[.origin], Self.name(inOrigin: origin) != host {
            throw EngineError(.badRequest, "Pages of other origins are not answered.")
        }
        return Principal.anonymous
    }

    /// The host of `host:port`, in lower case and without brackets.
    private static func name(in authority: String) -> String {
        var text = authority.lowercased()
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            return String(text[text.index(after: text.startIndex)..<end])
        }
        if let colon = text.lastIndex(of: ":") { text = String(text[..<colon]) }
        return text
    }

    private static func name(inOrigin origin: String) -> String? {
        guard let scheme = origin.firstRange(of: "://") else { return nil }
        return name(in: String(origin[scheme.upperBound...]))
    }
}

/// Names and addresses that only this machine has.
package enum Loopback {
    /// True for `localhost`, `::1` and four numbers that begin with 127.
    package static func contains(_ host: String) -> Bool {
        if host == "localhost" || host == "::1" { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false)
            .map { WireInteger.parse($0) }
        return numbers.count == 4 && numbers[0] == 127
            && numbers.allSatisfy { $0.map { $0 < 256 } ?? false }
    }
}
