/// A file format whose structure shows where it ends.
public enum ContainerFormat: String, Sendable, Hashable, CaseIterable {
    /// JPEG (ITU-T T.81).
    case jpeg = "JPEG"
    /// PNG (W3C PNG, third edition).
    case png = "PNG"
    /// PDF (ISO 32000).
    case pdf = "PDF"
    /// MP4, QuickTime, HEIC and their relatives (ISO/IEC 14496-12).
    case isoBaseMedia = "MP4"
}

/// The result of checking a file's structure.
public enum ContainerCheckResult: Sendable, Hashable {
    /// The format is unknown, or the file is too unusual to check.
    case unknown
    /// The structure is complete. The content may still be damaged: only a hash proves it.
    case complete(ContainerFormat)
    /// The structure extends beyond the end of the file.
    case truncated(ContainerFormat, Defect)

    /// The missing part.
    public enum Defect: String, Sendable, Hashable {
        /// A part is longer than the rest of the file.
        case pieceCutShort = "a part of it is cut short"
        /// The end marker of the format is missing.
        case endMissing = "its end is missing"
        /// The index is missing, so nothing can be played or shown.
        case indexMissing = "its index is missing"
    }

    /// A sentence for the user; nil when nothing is wrong.
    public var complaint: String? {
        guard case .truncated(let format, let defect) = self else { return nil }
        return "This \(format.rawValue) file looks incomplete: \(defect.rawValue)."
    }
}

/// The earlier name of ``ContainerCheckResult``.
public typealias ContainerVerdict = ContainerCheckResult
