internal import Foundation

/// Metadata of an upload as JSON text, the form in which a record keeps it.
enum UploadMetadata {
    /// Returns nil for no metadata.
    static func encode(_ metadata: [String: String]) -> String? {
        guard !metadata.isEmpty else { return nil }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        do {
            return String(decoding: try encoder.encode(metadata), as: UTF8.self)
        } catch {
            preconditionFailure("text can be encoded as JSON: \(error)")
        }
    }

    /// Returns nil unless the text is a JSON object with text values.
    static func decode(_ text: String) -> [String: String]? {
        try? JSONDecoder().decode([String: String].self, from: Data(text.utf8))
    }
}
