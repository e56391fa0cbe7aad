internal import Foundation

/// An upload with tus 1.0.0: created, and then sent as one PATCH.
struct TusUpload {
    private let path: String
    private let byteCount: Int

    /// The answer to a list of files.
    private struct Files: Decodable {
        let files: [File]
    }

    private struct File: Decodable {
        let sha256: String
    }

    static func create(byteCount: Int, on connection: BenchConnection) throws -> TusUpload {
        let created = try connection.request(
            "POST", "/tus", fields: ["Tus-Resumable: 1.0.0", "Upload-Length: \(byteCount)"]
        ).require(201, of: "creating a tus upload")
        guard let location = created.location, let slash = location.range(of: "/tus/") else {
            throw BenchFailure("a tus upload has no Location")
        }
        return TusUpload(path: String(location[slash.lowerBound...]), byteCount: byteCount)
    }

    /// Sends all bytes in one request and waits until they are acknowledged, with which the file is
    /// there.
    func patch(_ source: SourceFile, at offset: Int, on connection: BenchConnection) throws {
        try connection.request(
            "PATCH", path,
            fields: [
                "Tus-Resumable: 1.0.0", "Upload-Offset: 0",
                "Content-Type: application/offset+octet-stream",
            ], body: .file(source.file, offset: offset, byteCount: byteCount)
        ).require(204, of: "a PATCH of tus")
    }

    /// Returns the digests of the newest files.
    static func digests(_ count: Int, on connection: BenchConnection) throws -> Set<String> {
        let files = try connection.request("GET", "/files?limit=\(count)")
            .require(200, of: "the list of files").decode(Files.self).files
        return Set(files.map(\.sha256))
    }
}
