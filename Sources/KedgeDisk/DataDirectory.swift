internal import KedgeEngine
internal import KedgeModel

/// The layout of the data directory.
///
///     lock                   held while a process uses the directory
///     identity               random; identifies this directory when the rows are stored elsewhere
///     probe                  created and removed by a health check
///     staging/<2 hex>/<key>  received bytes of a session
///     staging/<2 hex>/<key>.<index>  rival of a partial: first bytes of another body for the chunk
///     blobs/ab/cd/<64 hex>   bytes of finished files, named by their SHA-256
///     superseded/<64 hex>.<key>   blobs whose name a later upload of the same bytes has taken
///     quarantine/<name>.<n>  staging files, by key, and blobs, by SHA-256, that no row knew
///     **/resync              empty; created and removed to change a directory before a sync
struct DataDirectory: Sendable {
    /// Name, in any directory, of a file that is created and removed before a sync. A killed
    /// process may leave it behind.
    static let scratchName = "resync"

    let root: String

    var lock: String { path("lock") }
    var identity: String { path("identity") }
    var probe: String { path("probe") }
    var staging: String { path("staging") }
    var blobs: String { path("blobs") }
    var quarantine: String { path("quarantine") }
    var superseded: String { path("superseded") }

    func stagingDirectory(of key: StagingKey) -> String {
        path("staging", String(key.text.prefix(2)))
    }

    func stagingDirectory(named name: String) -> String? {
        Self.isSafe(name) ? path("staging", name) : nil
    }

    func staging(_ key: StagingKey) -> String {
        path("staging", String(key.text.prefix(2)), key.text)
    }

    func rival(_ name: RivalName) -> String {
        path("staging", String(name.key.text.prefix(2)), "\(name.key.text).\(name.index)")
    }

    /// Path of a rival's file between its creation and the removal of its name.
    func unnamedRival(_ name: RivalName) -> String {
        path("staging", String(name.key.text.prefix(2)), "\(name.key.text).\(name.index).new")
    }

    func blobDirectory(of digest: SHA256Digest) -> String {
        let hex = digest.hex
        return path("blobs", String(hex.prefix(2)), String(hex.dropFirst(2).prefix(2)))
    }

    func blob(_ digest: SHA256Digest) -> String {
        let hex = digest.hex
        return path("blobs", String(hex.prefix(2)), String(hex.dropFirst(2).prefix(2)), hex)
    }

    /// - Parameter key: The staging area that took the name.
    func superseded(_ digest: SHA256Digest, by key: StagingKey) -> String {
        path("superseded", "\(digest.hex).\(key.text)")
    }

    func quarantine(_ key: StagingKey, number: Int) -> String {
        path("quarantine", "\(key.text).\(number)")
    }

    /// Joins names to a path below the root. No path can leave the root: a name consists of
    /// lowercase letters, digits and dots, and does not start with a dot.
    private func path(_ names: String...) -> String {
        precondition(names.allSatisfy(Self.isSafe), "a name would lead out of the data directory")
        return ([root] + names).joined(separator: "/")
    }

    private static func isSafe(_ name: String) -> Bool {
        let bytes = name.utf8
        return bytes.first != UInt8(ascii: ".") && !bytes.isEmpty
            && bytes.allSatisfy { byte in
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || byte == UInt8(ascii: ".")
            }
    }
}

extension RivalName {
    /// Parses the name of a file beside a staging file; nil for any other name.
    init?(fileName: String) {
        let parts = fileName.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, SessionID.isWellFormed(String(parts[0])), let index = Int(parts[1]),
            index >= 0, String(index) == parts[1]
        else { return nil }
        self.init(key: StagingKey(String(parts[0])), index: index)
    }
}
