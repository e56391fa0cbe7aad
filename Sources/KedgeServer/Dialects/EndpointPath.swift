internal import KedgeModel

/// A configured path at which uploads are made, such as `/tus/`.
package struct EndpointPath: Hashable, Sendable {
    /// First parts of the native interface's own paths.
    private static let taken: Set = ["files", "uploads", "healthz", "readyz"]

    private let parts: [Substring]

    /// Where tus uploads are unless the settings say otherwise.
    package static let tus = EndpointPath(parts: ["tus"])

    private init(parts: [Substring]) { self.parts = parts }

    /// Reads a path that begins with a slash; nil for one that is empty, that would have to be encoded in a
    /// URL, or that is below a path of the native interface.
    package init?(text: String) {
        let parts = text.split(separator: "/")
        guard text.hasPrefix("/"), let first = parts.first, !Self.taken.contains(String(first)),
            parts.allSatisfy({ Self.isPlain($0) })
        else { return nil }
        self.parts = parts
    }

    /// Reads paths, separated by commas; nil when one of them is none, or two are the same.
    package static func list(_ text: String) -> [EndpointPath]? {
        let texts = text.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
        let paths = texts.compactMap { EndpointPath(text: $0) }
        return paths.count == texts.count && Set(paths).count == paths.count ? paths : nil
    }

    /// True for the endpoint's own path and for everything below.
    func contains(_ path: String) -> Bool { path.split(separator: "/").starts(with: parts) }

    /// True when the other path is this one, or one of an upload made at this one.
    func takes(_ other: EndpointPath) -> Bool {
        contains(other.description) && other.parts.count <= parts.count + 1
    }

    /// The path of an upload.
    func path(of id: SessionID) -> String { "\(self)\(id)" }

    /// True for a part of a path that stands in a URL as it is, and leads nowhere else.
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
    /// The path with a slash at each end.
    package var description: String { "/" + parts.joined(separator: "/") + "/" }
}
