/// Address of an upload, with the version of its protocol.
struct UploadAddress: Sendable, Equatable {
    let url: String
    /// Interop number of the IETF draft; nil for the form without one, and for other protocols.
    let interopVersion: Int64?
}
