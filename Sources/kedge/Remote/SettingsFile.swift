internal import Foundation
internal import KedgeModel

/// A file of the user's settings as text, with the permissions that it had when it was read.
struct SettingsFile {
    let text: String
    /// Whether other users can read it.
    let isPublic: Bool

    /// Reads a file.
    ///
    /// - Returns: Nil if there is no such file.
    /// - Throws: ``CommandFailure`` with the reason for a file that cannot be read: it must not
    ///   count as one that has nothing.
    static func read(_ path: String) throws -> SettingsFile? {
        // Without a wait for the other end of a named pipe, which is refused below.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            // A home such as /dev/null has no settings.
            guard errno != ENOENT, errno != ENOTDIR else { return nil }
            throw failure(path, unsafe String(cString: strerror(errno)))
        }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var facts = stat()
        guard unsafe fstat(descriptor, &facts) == 0 else {
            throw failure(path, unsafe String(cString: strerror(errno)))
        }
        guard facts.st_mode & S_IFMT == S_IFREG else { throw failure(path, "It is not a file") }
        let bytes: Data
        do {
            bytes = try file.readToEnd() ?? Data()
        } catch {
            throw failure(path, error.localizedDescription)
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw failure(path, "It is not UTF-8")
        }
        return SettingsFile(text: text, isPublic: facts.st_mode & 0o077 != 0)
    }

    private static func failure(_ path: String, _ reason: String) -> CommandFailure {
        CommandFailure("kedge: \(path) cannot be read: \(reason).", exitStatus: ExitStatus.usage)
    }
}
