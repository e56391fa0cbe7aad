import Foundation
import GRDB
import Glibc

@testable import KedgeClient

extension Scene {
    /// Changes a file in a way that shows in its time of change (ctime) only.
    private func change(_ name: String, _ body: (Int32, stat) -> Void) throws {
        let descriptor = Glibc.open(path(name), O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { throw POSIXError(.ENOENT) }
        defer { Glibc.close(descriptor) }
        var before = stat()
        fstat(descriptor, &before)
        body(descriptor, before)
        // Clocks of file systems are coarse: until it shows.
        var after = stat()
        repeat {
            fchmod(descriptor, 0o600)
            fstat(descriptor, &after)
        } while after.st_ctim.tv_sec == before.st_ctim.tv_sec
            && after.st_ctim.tv_nsec == before.st_ctim.tv_nsec
    }

    /// Another mode, the same bytes.
    func touch(_ name: String) throws { try change(name) { _, _ in } }

    /// Writes one byte of a file in place and sets its modification time back.
    ///
    /// - Returns: The bytes that it has then.
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

    /// Makes the records look as an older kedge left them.
    func forgetProofs() throws {
        try changeRecords(
            "UPDATE upload_transfer SET changed_nanoseconds = NULL; DELETE FROM upload_chunk_digest"
        )
    }

    /// Makes the records look as if the process had been killed before it saved the state of the hash.
    func forgetHash() throws {
        try changeRecords("UPDATE upload_transfer SET hash_state = NULL, hash_offset = 0")
    }

    /// Opens the client's records beside it, as patiently as the client does: one that was just
    /// released may still be closing them, which locks them.
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
