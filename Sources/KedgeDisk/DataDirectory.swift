internal import KedgeEngine
internal import KedgeModel

/// Where everything lies in the data directory.
///
///     lock                   held while a process uses the directory
///     identity               random, made when rows are kept elsewhere: tells this directory from others
///     staging/<2 hex>/<key>  bytes of sessions on their way in
///     staging/<2 hex>/<key>.<index>  first bytes of another body for a chunk of that session
///     blobs/ab/cd/<64 hex>   bytes of finished files, named by their SHA-256
///     superseded/<64 hex>.<key>   blobs whose name a later upload of the same bytes has taken
///     quarantine/<key>.<n>   staging files that no session knew
///     **/resync              empty, for a moment: made and removed to change a directory
struct DataDirectory: Sendable {
    /// Name in any directory of a file that is made and removed before a sync. A kill may leave it.
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

    /// For the moment between making a file and removing its name.
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

    /// - Parameter key: The staging area that has taken the name.
    func superseded(_ digest: SHA256Digest, by key: StagingKey) -> String {
        path("superseded", "\(digest.hex).\(key.text)")
    }

    func quarantine(_ key: StagingKey, number: Int) -> String {
        path("quarantine", "\(key.text).\(number)")
    }

    /// The only place that joins names to a path. No name can lead out of the root: each one is
    /// made of letters, digits and inner dots, so there is no separator and no `..` among them.
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
    /// Reads the name of a file beside a staging file; nil for any other name.
    init?(fileName: String) {
        let parts = fileName.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, SessionID.isWellFormed(String(parts[0])), let index = Int(parts[1]),
            index >= 0, String(index) == parts[1]
        else { return nil }
        self.init(key: StagingKey(String(parts[0])), index: index)
    }
}
