/// The media types that a link may show in a browser instead of saving them.
enum InlineTypes {
    private static let groups = ["video/", "audio/", "image/"]
    private static let types: Set = ["application/pdf", "text/plain"]
    /// An SVG image can have scripts.
    private static let scripted: Set = ["image/svg+xml", "image/svg"]

    static func contains(_ mimeType: String?) -> Bool {
        guard let mimeType else { return false }
        let type = mimeType.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased()
        guard !scripted.contains(type) else { return false }
        return types.contains(type) || groups.contains { type.hasPrefix($0) }
    }
}
