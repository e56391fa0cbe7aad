import Foundation
import KedgeModel
import KedgeTesting

/// A third-party tus server in its own process; `Tests/clients/foreign.py` runs it.
struct ForeignServer: Sendable {
    private struct Reply: Decodable {
        struct About: Decodable {
            var tus: String
            var directory: String
        }
        var answer: About?
        var error: String?
    }

    /// The URL at which uploads begin.
    let url: String
    /// The directory in which the server keeps uploads.
    let directory: String

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The interpreter that has the servers; nil when they are not installed.
    static let python: String? = {
        let path = root.appendingPathComponent(".build-clients-venv/bin/python3").path
        return access(path, X_OK) == 0 ? path : nil
    }()

    var port: UInt16 { UInt16(URLComponents(string: url)?.port ?? 0) }

    /// The URL of the server through a proxy.
    func url(through proxy: FaultyProxy) -> String {
        proxy.url + (URLComponents(string: url)?.path ?? "/")
    }

    static func start(_ name: String, in fixture: CommandEnvironment) async throws -> ForeignServer
    {
        let program = root.appendingPathComponent("Tests/clients/foreign.py").path
        let process = try fixture.start(
            program: python ?? "python3", [program, name, "--while-parent"], endsGently: true)
        let line: String = try await eventually("\(name) serves") {
            if process.output.hasSuffix("\n") { return process.output }
            guard process.isRunning else { throw TestFailure("no server: \(process.errors)") }
            return nil
        }
        let reply = try JSONDecoder().decode(Reply.self, from: Data(line.utf8))
        guard let about = reply.answer else {
            throw TestFailure("no server: \(reply.error ?? line)")
        }
        return ForeignServer(url: about.tus, directory: about.directory)
    }

    /// Paths and sizes of the files that the server keeps.
    var files: [String: Int] {
        let names = FileManager.default.enumerator(atPath: directory)?.allObjects as? [String]
        var files: [String: Int] = [:]
        for name in names ?? [] {
            let path = "\(directory)/\(name)"
            // The server may remove a file meanwhile.
            let attributes = try? FileManager.default.attributesOfItem(atPath: path)
            guard attributes?[.type] as? FileAttributeType == .typeRegular else { continue }
            files[path] = attributes?[.size] as? Int
        }
        return files
    }

    /// Digests of the files of this size.
    func digests(ofFilesWith byteCount: Int) throws -> [SHA256Digest] {
        try files.filter { $0.value == byteCount }.map { try SampleFile.digest(of: $0.key) }
    }
}
