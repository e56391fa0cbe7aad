package import KedgeModel
internal import KedgeTransport

/// A link of a Kedge service: a URL that permits one upload, or the download of one file.
///
/// The whole URL is a secret. Its text is sent as `Authorization: Bearer`, which stays out of the
/// logs of servers, and no other credential is sent beside it.
public struct ServiceLink: Sendable, Hashable {
    /// The resource that the URL of a link names.
    package enum Target: Sendable, Hashable {
        /// A new upload.
        case newUpload
        /// An upload session that exists.
        case session(SessionID)
        case file(FileID)
    }

    /// Name of the parameter in the query of URLs.
    private static let parameter = "link="
    /// Beginning of the text of every link.
    private static let prefix = "kl1."
    /// Longer texts are no links.
    private static let maxByteCount = 8 << 10
    /// Paths at which uploads are created.
    private static let creationPaths: [[Substring]] = [
        ["uploads", "sessions"], ["files"], ["tus"],
    ]
    /// Paths below which a session has its own.
    private static let sessionPaths: [[Substring]] = [
        ["uploads", "sessions"], ["uploads", "resumable"], ["tus"],
    ]

    /// Base URL of the service, without the link.
    public let serverURL: String
    /// The whole URL without query and trailing slashes.
    let address: String
    /// The signed text.
    package let text: String
    package let target: Target

    /// Reads a URL as the service gives it; nil for a URL without a link.
    public init?(_ url: String) {
        guard url.utf8.count <= Self.maxByteCount, URLText.origin(of: url) != nil,
            let text = Self.text(in: url), let start = url.firstRange(of: "://")?.upperBound
        else { return nil }
        let plain = url.prefix { $0 != "?" }
        let authority = plain[start...].prefix { $0 != "/" }
        var parts = plain[authority.endIndex...].split(separator: "/")
        let origin = plain[..<authority.endIndex]
        self.text = text
        self.address = ([origin] + parts).joined(separator: "/")
        self.target = Self.takeTarget(from: &parts)
        self.serverURL = ([origin] + parts).joined(separator: "/")
    }

    /// Removes the path of the target from the end of an address.
    private static func takeTarget(from parts: inout [Substring]) -> Target {
        if let last = parts.last, let id = SessionID(last) {
            let parents = parts.dropLast()
            if let path = sessionPaths.first(where: { parents.suffix($0.count) == $0[...] }) {
                parts.removeLast(path.count + 1)
                return .session(id)
            }
            if parents.last == "files" {
                parts.removeLast(2)
                return .file(FileID(wellFormed: id.text))
            }
        }
        if let path = creationPaths.first(where: { parts.suffix($0.count) == $0[...] }) {
            parts.removeLast(path.count)
        }
        return .newUpload
    }

    /// Whether the URL has a link.
    static func isIn(_ url: String) -> Bool { text(in: url) != nil }

    /// Returns the URL without its link, and otherwise as written.
    package static func removed(from url: String) -> String {
        guard isIn(url), let mark = url.firstIndex(of: "?") else { return url }
        let query = url[url.index(after: mark)...].prefix { $0 != "#" }
        let rest = query.split(separator: "&", omittingEmptySubsequences: false)
            .filter { !$0.hasPrefix(parameter) }.joined(separator: "&")
        return "\(url[..<mark])\(rest.isEmpty ? "" : "?\(rest)")\(url[query.endIndex...])"
    }

    /// Returns the text of a link that a service gave as a text or as a URL; nil for anything else.
    static func text(of answer: String) -> String? {
        isText(answer[...]) ? answer : text(in: answer)
    }

    /// Whether the credential is the text of a link.
    static func isText(_ credential: Substring) -> Bool {
        credential.hasPrefix(prefix) && credential.utf8.count <= maxByteCount
            && credential.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    private static func text(in url: String) -> String? {
        guard let mark = url.firstIndex(of: "?"), !url[..<mark].contains("#") else { return nil }
        let query = url[url.index(after: mark)...].prefix { $0 != "#" }
        let value = query.split(separator: "&").first { $0.hasPrefix(parameter) }?
            .dropFirst(parameter.count)
        return value.flatMap { isText($0) ? String($0) : nil }
    }
}
