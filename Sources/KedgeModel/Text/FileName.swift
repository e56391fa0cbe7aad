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
    /// paragraph separators, and bidirectional formatting, which can make `exe` read as `txt`.
    public static func isValid(_ name: String) -> Bool {
        guard !name.isEmpty, name.utf8.count <= maxByteCount, name != ".", name != ".." else {
            return false
        }
        return name.unicodeScalars.allSatisfy { !isForbidden($0) }
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
        switch scalar.value {
        case 0...0x1F, 0x7F...0x9F, 0x2F, 0x5C: true
        case 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
        default: false
        }
    }
}
