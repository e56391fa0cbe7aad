/// The attributes that distinguish versions of a local file.
package struct SourceIdentity: Sendable, Hashable {
    package let byteCount: Int64
    /// Time of the last change of the content, in nanoseconds since 1970. A program can set it.
    package let modifiedNanoseconds: Int64
    /// Time of the last change of content or attributes (ctime), in nanoseconds since 1970. Only
    /// the kernel sets it. Nil in older records.
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

    /// Compares the recorded file with the present one.
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

/// The result of comparing a recorded file with the present one.
package enum SourceComparison: Sendable, Equatable {
    case same
    /// Only the time of change differs, or was not recorded. The cause may be a change of mode, a
    /// hard link, or an edit with its modification time set back: the bytes have to be compared.
    case touched
    case changed
}
