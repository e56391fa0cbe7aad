internal import Foundation
package import KedgeModel
internal import Synchronization

/// The right of one process to run one transfer.
package struct Lease: Sendable, Hashable {
    package let id: TransferID
    package let direction: TransferDirection
    /// Names the owner; random, so that a process id that comes around again cannot be mistaken.
    package let token: String
}

/// The transfer has another owner now: stop without touching its record.
package struct LeaseLost: Error, Sendable {
    package init() {}
}

/// One client object as an owner of leases. Alive until it goes away, with or without its process.
package final class LeaseOwner: Sendable {
    /// How long a lease holds without a heartbeat.
    package static let expiry: Duration = .seconds(5)
    /// Owners that exist in this process.
    private static let living = Mutex<Set<String>>([])

    package let token: String
    package let processID: Int32
    package let host: String

    package init() {
        var generator = SystemRandomNumberGenerator()
        token = TransferID.random(using: &generator).text
        processID = ProcessInfo.processInfo.processIdentifier
        host = Self.hostName()
        let own = token
        Self.living.withLock { _ = $0.insert(own) }
    }

    deinit {
        let own = token
        Self.living.withLock { _ = $0.remove(own) }
    }

    static func isLiving(_ token: String) -> Bool { living.withLock { $0.contains(token) } }

    /// The kernel's name of this machine or container; `ProcessInfo.hostName` would ask the network.
    private static func hostName() -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "unknown" }
        return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// Tells whether the owner of a lease still exists.
package struct ProcessLiveness: Sendable {
    private let isProcessAlive: @Sendable (Int32) -> Bool

    /// - Parameter isProcessAlive: Asks the system; replaced in tests.
    package init(
        isProcessAlive: @escaping @Sendable (Int32) -> Bool = { processID in
            // Signal 0 only checks; EPERM means that it exists and is another user's.
            kill(processID, 0) == 0 || errno == EPERM
        }
    ) {
        self.isProcessAlive = isProcessAlive
    }

    /// True while the owner holds its lease: a heartbeat not older than ``LeaseOwner/expiry``, from a
    /// process that was not seen to be gone. A killed owner is so noticed at once on its own machine
    /// and after the expiry elsewhere.
    func isAlive(
        _ owner: OwnerRow, asSeenBy observer: LeaseOwner, at now: Timestamp
    ) -> Bool {
        if owner.host == observer.host {
            if owner.processID == observer.processID { return LeaseOwner.isLiving(owner.token) }
            guard isProcessAlive(owner.processID) else { return false }
        }
        let age = now.duration(since: owner.heartbeat)
        // A heartbeat from the far future comes from a clock that was set back since.
        return age <= LeaseOwner.expiry && age >= .zero - LeaseOwner.expiry
    }
}

/// The owner columns of a record.
struct OwnerRow: Sendable {
    let token: String
    let processID: Int32
    let host: String
    let heartbeat: Timestamp
}
