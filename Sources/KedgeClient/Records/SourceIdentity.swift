/// What tells one version of a local file from another.
package struct SourceIdentity: Sendable, Hashable {
    package let byteCount: Int64
    /// Time of the last change of the content, in nanoseconds since 1970. A program can set it.
    package let modifiedNanoseconds: Int64
    /// Time of the last change of content or attributes (ctime), in nanoseconds since 1970. The kernel
    /// alone sets it. Nil in records that were made before it was recorded.
    package let changedNanoseconds: Int64?
    package let inode: UInt64

    package init(
        byteCount: Int64, modifiedNanoseconds: Int64, changedNanoseconds: Int64? = nil,
        inode: UInt64
    ) {
        self.byteCount = byteCount
        self.modifiedNanoseconds = modifiedNanoseconds
        self.changedNanoseconds = changedNanoseconds
        self.inode = inode
    }

    /// Compares the file as it was with the file as it is.
    package func comparison(with now: SourceIdentity) -> SourceComparison {
        guard byteCount == now.byteCount, modifiedNanoseconds == now.modifiedNanoseconds,
            inode == now.inode
        else { return .changed }
        guard let changedNanoseconds, changedNanoseconds == now.changedNanoseconds else {
            return .touched
        }
        return .same
    }
}

/// How a file that was seen before looks now.
package enum SourceComparison: Sendable, Equatable {
    case same
    /// Only the time of change differs, or was not recorded. A change of mode, a hard link, and an
    /// edit whose modification time was set back all look like this: the bytes have to be compared.
    case touched
    case changed
}
