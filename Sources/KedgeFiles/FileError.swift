internal import Glibc

/// A failed call to the file system.
package struct FileError: Error, Sendable, Equatable {
    /// The kind of failure, as far as callers act on it.
    package enum Code: Sendable, Equatable {
        case notFound
        case exists
        case noSpace
        case permission
        case readOnly
        case tooManyOpen
        case locked
        case io
        case other
    }

    package let code: Code
    /// The operation's label, for example `open` or `fdatasync`.
    package let operation: String
    /// The path; for logs only, never for a client.
    package let path: String
    /// The system's error number.
    package let number: Int32

    package init(operation: String, path: String, number: Int32) {
        self.operation = operation
        self.path = path
        self.number = number
        self.code = Self.code(of: number)
    }

    package static func == (left: FileError, right: FileError) -> Bool { left.code == right.code }

    private static func code(of number: Int32) -> Code {
        switch number {
        case ENOENT: .notFound
        case EEXIST: .exists
        case ENOSPC, EDQUOT, EFBIG: .noSpace
        case EACCES, EPERM: .permission
        case EROFS: .readOnly
        case EMFILE, ENFILE: .tooManyOpen
        case EWOULDBLOCK: .locked
        case EIO: .io
        default: .other
        }
    }
}

extension FileError {
    /// True when a file system has no hard links, or this file has the maximum of them (link(2)).
    package var isUnsupportedLink: Bool {
        [EPERM, EOPNOTSUPP, EMLINK, ENOSYS].contains(number)
    }
}

extension FileError: CustomStringConvertible, CustomDebugStringConvertible {
    package var description: String { "\(operation) failed" }
    package var debugDescription: String {
        "\(operation)(\(path)): \(String(cString: strerror(number))) [\(number)]"
    }
}
