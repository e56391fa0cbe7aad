internal import KedgeModel

/// A configured path for uploads, such as `/tus/`.
package struct EndpointPath: Hashable, Sendable {
    /// First path segments of the native API.
    private static let taken: Set = [
        "files", "healthz", "links", "me", "metrics", "openapi.yaml", "owners", "readyz", "tokens",
        "uploads",
    ]

    private let parts: [Substring]

    /// The default path of the tus endpoint.
    package static let tus = EndpointPath(parts: ["tus"])

    private init(parts: [Substring]) { self.parts = parts }

    /// Reads a path that begins with a slash. Returns nil for a path that is empty, that needs URL
    /// encoding, or that is below a path of the native API.
    package init?(text: String) {
        let parts = text.split(separator: "/")
        guard text.hasPrefix("/"), let first = parts.first, !Self.taken.contains(String(first)),
            parts.allSatisfy({ Self.isPlain($0) })
        else { return nil }
        self.parts = parts
    }

    /// Reads paths separated by commas; nil when one of them is invalid or repeated.
    package static func list(_ text: String) -> [EndpointPath]? {
        let texts = text.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
        let paths = texts.compactMap { EndpointPath(text: $0) }
        return paths.count == texts.count && Set(paths).count == paths.count ? paths : nil
    }

    /// Whether the path is the endpoint's own or below it.
    func contains(_ path: String) -> Bool { path.split(separator: "/").starts(with: parts) }

    /// Whether the other path is this one, or that of an upload created here.
    func takes(_ other: EndpointPath) -> Bool {
        contains(other.description) && other.parts.count <= parts.count + 1
    }

    func path(of id: SessionID) -> String { "\(self)\(id)" }

    /// Whether a path segment needs no URL encoding and is neither `.` nor `..`.
    static func isPlain(_ part: Substring) -> Bool {
        part != "." && part != ".."
            && part.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "."),
                    UInt8(ascii: "_"), UInt8(ascii: "~"):
                    true
                default: false
                }
            }
    }
}

extension EndpointPath: CustomStringConvertible {
    /// The path with a leading and a trailing slash.
    package var description: String { "/" + parts.joined(separator: "/") + "/" }
}
