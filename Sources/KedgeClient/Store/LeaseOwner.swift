internal import Foundation
internal import KedgeFiles
internal import KedgeModel

/// One client object as an owner of leases, alive until it goes away, with or without its process.
///
/// It holds the lock of a file of its own. The kernel gives that up the moment the process dies,
/// however it dies; a process number, by contrast, may belong to somebody else by now, to another
/// container, or to a zombie that nobody has buried.
package final class LeaseOwner: Sendable {
    /// Random, so that it never comes around again.
    package let token: String
    /// For people who look into the records; nothing is decided by it.
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

    /// Ends the owner: its leases are free at once. Doing it again does nothing.
    func release() {
        // A file left behind is taken away by the next process; the lock goes in any case.
        _ = try? files.remove(path)
        try? file.close()
    }
}

/// The owners that share one set of records: a directory of locked files.
struct OwnerRegistry: Sendable {
    /// How long a lease holds without a heartbeat: its owner may live and still have stopped.
    static let leaseExpiry: Duration = .seconds(5)

    let directory: String
    let files: any FileSystem

    /// Makes an owner; blocks.
    func register() throws -> LeaseOwner {
        try files.makeDirectory(directory)
        sweep()
        while true {
            let token = TransferID.random().text
            let path = "\(directory)/\(token)"
            let file = try files.open(path, .createNew)
            guard try takeLock(of: file) else { continue }
            // Somebody who swept between the two calls has taken the name away: then nobody would
            // find the lock.
            guard try files.status(of: path)?.inode == file.status().inode else { continue }
            return LeaseOwner(token: token, file: file, path: path, files: files)
        }
    }

    /// True while the owner lives and has been heard of lately; blocks for the look at one file.
    func isAlive(_ owner: OwnerRow, at now: Timestamp) throws -> Bool {
        let age = now.duration(since: owner.heartbeat)
        // A heartbeat from the far future comes from a clock that was set back since.
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

    /// Takes away what killed processes left. Best effort: such a file is only a few bytes.
    private func sweep() {
        guard let names = try? files.list(directory) else { return }
        for name in names where TransferID.isWellFormed(name) { _ = try? isLocked(name) }
    }
}
