internal import ArgumentParser
internal import KedgeModel

/// The name of an owner as typed.
enum OwnerArgument {
    /// - Throws: `ValidationError` for text that names no owner.
    static func parse(_ text: String) throws -> OwnerID {
        guard let owner = OwnerID(checking: text) else {
            throw ValidationError(
                "An owner must be 1 to \(OwnerID.maxByteCount) printable ASCII characters.")
        }
        return owner
    }
}
