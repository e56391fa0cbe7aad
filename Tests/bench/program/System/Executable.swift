internal import Foundation
internal import Glibc

/// Programs by name.
enum Executable {
    /// The caller's search path, and the directories of servers that users' paths often lack.
    static let searchPath: [String] = {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return path.split(separator: ":").map(String.init) + ["/usr/sbin", "/sbin"]
    }()

    /// Returns the program's path; nil when there is none.
    static func find(_ name: String) -> String? {
        searchPath.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }

    /// - Throws: ``BenchFailure`` when there is none.
    static func require(_ name: String) throws -> String {
        guard let path = find(name) else { throw BenchFailure("there is no \(name) here") }
        return path
    }
}
