internal import Foundation
internal import KedgeFiles
internal import KedgeModel

/// One client object as an owner of leases, alive until it is released or its process ends.
///
/// It holds the lock of a file of its own, which the kernel releases when the process dies in any
/// way. A process id proves less: it may belong to another process by now, to another container, or
/// to an unreaped zombie.
package final class LeaseOwner: Sendable {
    /// Random, so that no token is used twice.
    package let token: String
    /// For people who read the records; decides nothing.
    package let processID: Int32
    private let file: any OpenFile
    private let path: String
    private let files: any FileSystem

    fileprivate init(token: String, file: any OpenFile, path: String, files: any FileSystem) {
        self.token = token
        self.processID = ProcessInfo.processInfo.processIdentifier
        self.file = file
        self.path = path
        self.files = files
    }

    deinit { release() }

    /// Releases the lock, so that all leases of the owner are free at once. Idempotent.
    package func release() {
        // The next process removes a file left behind; closing releases the lock in any case.
        _ = try? files.remove(path)
        try? file.close()
    }
}

/// The owners that share one set of records: a directory of locked files.
struct OwnerRegistry: Sendable {
    /// Time that a lease holds without a heartbeat: its owner may be alive but stopped.
    static let leaseExpiry: Duration = .seconds(5)

    let directory: String
    let files: any FileSystem

    /// Creates an owner; blocks.
    func register() throws -> LeaseOwner {
        try files.makeDirectory(directory)
        sweep()
        while true {
            let token = TransferID.random().text
            let path = "\(directory)/\(token)"
            let file = try files.open(path, .createNew)
            guard try takeLock(of: file) else { continue }
            // A sweep between the two calls may have removed the name and so hidden the lock.
            guard try files.status(of: path)?.inode == file.status().inode else { continue }
            return LeaseOwner(token: token, file: file, path: path, files: files)
        }
    }

    /// Whether the owner is alive and has a recent heartbeat; blocks to check one file.
    func isAlive(_ owner: OwnerRow, at now: Timestamp) throws -> Bool {
        let age = now.duration(since: owner.heartbeat)
        // A heartbeat far in the future comes from a clock that was set back since.
        guard age <= Self.leaseExpiry, age >= .zero - Self.leaseExpiry else { return false }
        return try isLocked(owner.token)
    }

    private func isLocked(_ token: String) throws -> Bool {
        let path = "\(directory)/\(token)"
        let file: any OpenFile
        do {
            file = try files.open(path, .readWrite)
        } catch {
            guard error.code == .notFound else { throw error }
            return false
        }
        guard try takeLock(of: file) else { return true }
        try files.remove(path)
        return false
    }

    private func takeLock(of file: any OpenFile) throws -> Bool {
        do {
            try file.lockExclusively()
            return true
        } catch {
            guard error.code == .locked else { throw error }
            return false
        }
    }

    /// Removes files left by killed processes. Best effort: such a file is only a few bytes.
    private func sweep() {
        guard let names = try? files.list(directory) else { return }
        for name in names where TransferID.isWellFormed(name) { _ = try? isLocked(name) }
    }
}
