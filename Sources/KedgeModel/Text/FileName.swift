/// Rules for the display name of a file.
///
/// A name is a label and never becomes a path on the server. It is still checked, because it ends
/// up in headers, logs and the file systems of downloading clients.
public enum FileName {
    /// Maximum length of a name in UTF-8 bytes, the limit of common file systems.
    public static let maxByteCount = 255

    /// Returns true when the name can be stored and sent unchanged.
    ///
    /// Refuses empty names, `.` and `..`, path separators, control characters (C0, DEL, C1), and
    /// line and paragraph separators. Also refuses bidirectional overrides, embeddings and
    /// isolates, which can make `exe` read as `txt`. Direction marks (U+200E, U+200F) and joiners
    /// (U+200C, U+200D) are allowed: names in many languages need them.
    public static func isValid(_ name: String) -> Bool {
        guard !name.isEmpty, name.utf8.count <= maxByteCount, name != ".", name != ".." else {
            return false
        }
        return name.unicodeScalars.allSatisfy { !isForbidden($0) }
    }

    /// Returns the name with `_` in place of characters that no name may have. Keeps path
    /// separators.
    public static func replacingUnfit(_ name: String) -> String {
        guard name.unicodeScalars.contains(where: isUnfit) else { return name }
        var scalars = String.UnicodeScalarView()
        for scalar in name.unicodeScalars { scalars.append(isUnfit(scalar) ? "_" : scalar) }
        return String(scalars)
    }

    /// Returns a valid name close to the given one: the last path component, with `_` in place of
    /// forbidden characters, cut to the maximum length at a character boundary.
    public static func sanitized(_ name: String) -> String {
        let last = name.split(separator: "/").last.map(String.init) ?? ""
        var scalars = String.UnicodeScalarView()
        for scalar in last.unicodeScalars {
            scalars.append(isForbidden(scalar) ? "_" : scalar)
        }
        var result = String(scalars)
        while result.utf8.count > maxByteCount { result.removeLast() }
        return isValid(result) ? result : "file"
    }

    private static func isForbidden(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "/" || scalar == "\\" || isUnfit(scalar)
    }

    private static func isUnfit(_ scalar: Unicode.Scalar) -> Bool {
        ControlCharacters.steers(scalar) && scalar != "\u{200E}" && scalar != "\u{200F}"
    }
}
