import Foundation
import GRDB
import Glibc
import KedgeClient

extension TransferEnvironment {
    /// Changes a file so that only its ctime shows the change.
    private func change(_ name: String, _ body: (Int32, stat) -> Void) throws {
        let descriptor = Glibc.open(path(name), O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { throw POSIXError(.ENOENT) }
        defer { Glibc.close(descriptor) }
        var before = stat()
        fstat(descriptor, &before)
        body(descriptor, before)
        // Clocks of file systems are coarse, so this repeats until the ctime has changed.
        var after = stat()
        repeat {
            fchmod(descriptor, 0o600)
            fstat(descriptor, &after)
        } while after.st_ctim.tv_sec == before.st_ctim.tv_sec
            && after.st_ctim.tv_nsec == before.st_ctim.tv_nsec
    }

    /// Changes the ctime of a file and keeps its bytes.
    func touch(_ name: String) throws { try change(name) { _, _ in } }

    /// Writes one byte of a file in place and sets its modification time back.
    ///
    /// - Returns: The bytes of the file afterwards.
    @discardableResult
    func edit(_ name: String, at offset: Int) throws -> [UInt8] {
        try change(name) { descriptor, before in
            var byte: UInt8 = 0
            pread(descriptor, &byte, 1, off_t(offset))
            byte ^= 1
            pwrite(descriptor, &byte, 1, off_t(offset))
            let times = [before.st_atim, before.st_mtim]
            futimens(descriptor, times)
        }
        return read(name) ?? []
    }

    /// Makes the records look as if an older kedge had left them.
    func forgetProofs() throws {
        try changeRecords(
            "UPDATE upload_transfer SET changed_nanoseconds = NULL; DELETE FROM upload_chunk_digest"
        )
    }

    /// Makes the records look as if the process was killed before it saved the state of the hash.
    func forgetHash() throws {
        try changeRecords("UPDATE upload_transfer SET hash_state = NULL, hash_offset = 0")
    }

    /// Opens the client's records beside the client, with the client's busy timeout: a client that
    /// was just released may still be closing them, which locks them.
    func openRecords() throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.busyMode = .timeout(5)
        return try DatabaseQueue(
            path: path("state/transfers.sqlite"), configuration: configuration)
    }

    private func changeRecords(_ sql: String) throws {
        let queue = try openRecords()
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
    }
}
