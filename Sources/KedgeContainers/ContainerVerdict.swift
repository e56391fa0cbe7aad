/// A file format that says by itself where it ends.
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

/// What the structure of a file says about its end (R21).
public enum ContainerVerdict: Sendable, Hashable {
    /// Not a format that is known here, or too strange to be judged.
    case unknown
    /// The structure is closed. The content may still be damaged: only a hash tells.
    case complete(ContainerFormat)
    /// The structure goes on after the end of the file.
    case truncated(ContainerFormat, Defect)

    /// What is missing.
    public enum Defect: String, Sendable, Hashable {
        /// A piece is longer than what is left of the file.
        case pieceCutShort = "a part of it is cut short"
        /// The mark that ends every file of the format is not there.
        case endMissing = "its end is missing"
        /// The index, without which nothing can be played or shown, is not there.
        case indexMissing = "its index is missing"
    }

    /// A sentence for a person; nil when there is nothing to say.
    public var complaint: String? {
        guard case .truncated(let format, let defect) = self else { return nil }
        return "This \(format.rawValue) file looks incomplete: \(defect.rawValue)."
    }
}
