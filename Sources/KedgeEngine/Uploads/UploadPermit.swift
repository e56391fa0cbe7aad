/// The permission by which a session is created, with its limits.
package struct UploadPermit: Hashable, Sendable {
    /// The token or principal that creates the session, such as `token:<id>`; nil for none.
    package var createdBy: String?
    /// Maximum size of the file; nil for that of the service.
    package var maxByteCount: Int64?
    /// Minimum size of the file; nil for none. Checked when the size is known.
    package var minByteCount: Int64?
    /// The link whose use the session is; nil for none.
    package var link: LinkUse?

    /// A permission without limits.
    package init() {}

    /// The limits on the size of the file.
    var sizeLimits: SizeLimits { SizeLimits(max: maxByteCount, min: minByteCount) }
}
