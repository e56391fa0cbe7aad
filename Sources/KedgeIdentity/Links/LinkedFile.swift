package import KedgeModel

/// The file that a `get` link reads, and how it is presented.
package struct LinkedFile: Hashable, Sendable {
    /// Whether a browser shows the file or saves it.
    package enum Disposition: String, Codable, Sendable {
        case inline
        case attachment
    }

    package let file: FileID
    package var disposition = Disposition.attachment
    /// The name under which a browser saves the file; nil for the file's own.
    package var fileName: String?
    /// Origins of pages that may use the link; empty for pages of the service alone.
    package var origins: [String] = []
    /// Networks from which the link may be used; empty for all.
    package var networks: [String] = []

    package init(file: FileID) { self.file = file }
}
