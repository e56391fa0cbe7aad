/// Rules for the display name of a file.
///
/// A name is a label: it never becomes a path on the server. It is still checked, because it
/// travels into headers, logs and the disks of those who download it (R47).
public enum FileName {
    /// Longest accepted name in UTF-8 bytes; common file systems take no more.
    public static let maxByteCount = 255

    /// True when the name can be stored and sent to anybody as it is.
    ///
    /// Refused: empty, `.` and `..`, path separators, control characters (C0, DEL, C1), line and
    /// paragraph separators, and bidirectional overrides, embeddings and isolates, which can make `exe`
    /// read as `txt`. Marks of direction (U+200E, U+200F) and joiners (U+200C, U+200D) are ordinary in
    /// names of many languages.
    public static func isValid(_ name: String) -> Bool {
        guard !name.isEmpty, name.utf8.count <= maxByteCount, name != ".", name != ".." else {
            return false
        }
        return name.unicodeScalars.allSatisfy { !isForbidden($0) }
    }

    /// The name with `_` in place of characters that no name has. Separators stay: those are a matter of
    /// what the name is.
    public static func replacingUnfit(_ name: String) -> String {
        guard name.unicodeScalars.contains(where: isUnfit) else { return name }
        var scalars = String.UnicodeScalarView()
        for scalar in name.unicodeScalars { scalars.append(isUnfit(scalar) ? "_" : scalar) }
        return String(scalars)
    }

    /// A valid name close to the given one: the last path component, with forbidden characters
    /// replaced by `_`, cut to the longest accepted length at a character boundary.
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
        SteeringText.steers(scalar) && scalar != "\u{200E}" && scalar != "\u{200F}"
    }
}
