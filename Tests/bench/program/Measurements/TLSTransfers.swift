/// Transfers with TLS and the memory of its connections. The client is curl on all sides, because
/// this program has no TLS.
struct TLSTransfers {
    private let bench: Bench
    private let certificate: Certificate

    private static let uploadCount = 4

    static func measure(_ bench: Bench) throws -> Measured {
        let tls = TLSTransfers(bench: bench, certificate: try Certificate(bench))
        var measured = Measured(rows: try tls.uploads() + tls.downloads())
        if let scripts = bench.settings.identityScripts {
            measured.rows.append(try tls.idleConnections(scripts))
        } else {
            measured.notes = ["TLS connections are not measured: --identity names no scripts"]
        }
        return measured
    }

    /// A quarter of the bytes.
    private struct Part: Sendable {
        let path: String
        let digest: String
    }

    private func uploads() throws -> [Row] {
        let directory = try bench.scratch.makeDirectory("parts")
        defer { Scratch.remove(directory) }
        let size = bench.scale.rawByteCount / Self.uploadCount
        let parts = try (0..<Self.uploadCount).map { index in
            let part = Part(
                path: "\(directory)/\(index)",
                digest: try bench.source.digest(at: index * size, byteCount: size))
            try bench.source.copy(at: index * size, byteCount: size, to: part.path)
            return part
        }
        var encrypted: [TransferSample] = []
        var plain: [TransferSample] = []
        for _ in 0..<bench.scale.runs {
            encrypted.append(try upload(parts, of: size, certificate))
            plain.append(try upload(parts, of: size, nil))
        }
        return encrypted.rows(
            "tls-upload-4", "curl with TLS, 4 uploads at once", peer: ("without TLS", plain))
    }

    private func upload(
        _ parts: [Part], of size: Int, _ certificate: Certificate?
    ) throws -> TransferSample {
        bench.scratch.settle()
        let server = try KedgeServer(bench, certificate: certificate)
        var answers: [UploadSession.Finalized] = []
        let sample = try TransferSample.measure(server, byteCount: size * parts.count) {
            answers = try concurrently(parts.count) { [bench] index in
                try Curl.post(bench, parts[index].path, to: server)
            }
        }
        guard answers.map(\.fileHashSha256) == parts.map(\.digest) else {
            throw BenchFailure("the server has another SHA-256 of an upload by curl")
        }
        try server.discard()
        return sample
    }

    private func downloads() throws -> [Row] {
        let byteCount = bench.scale.rawByteCount
        let stored = try StoredFile(bench, byteCount: byteCount, certificate: certificate)
        let nginx = try Nginx(bench, certificate: certificate)
        try bench.source.copy(at: 0, byteCount: byteCount, to: "\(nginx.root)/file")
        try check(stored.path, of: stored.server)
        try check("/file", of: nginx)
        var ours: [TransferSample] = []
        var theirs: [TransferSample] = []
        for _ in 0..<bench.scale.runs {
            ours.append(try download(stored.path, from: stored.server))
            theirs.append(try download("/file", from: nginx))
        }
        try stored.server.discard()
        try nginx.discard()
        return ours.rows(
            "tls-download", "curl with TLS to /dev/null", peer: ("nginx GET, TLS", theirs))
    }

    private func check(_ path: String, of server: any Server) throws {
        let copy = "\(bench.scratch.path)/copy"
        defer { Scratch.remove(copy) }
        try Curl.fetch(bench, path, from: server, to: copy)
        guard try bench.source.isEqual(toFile: copy, byteCount: bench.scale.rawByteCount) else {
            throw BenchFailure("what curl got from \(server.name) are other bytes")
        }
    }

    private func download(_ path: String, from server: any Server) throws -> TransferSample {
        bench.scratch.settle()
        return try TransferSample.measure(server, byteCount: bench.scale.rawByteCount) {
            try Curl.fetch(bench, path, from: server, to: "/dev/null")
        }
    }

    private func idleConnections(_ scripts: String) throws -> Row {
        let count = bench.scale.idleTLSConnectionCount
        let server = try KedgeServer(
            bench, options: ["--timeouts-idle-seconds", "600"], certificate: certificate)
        func open(_ count: Int) throws -> IdleConnections {
            try IdleConnections(bench, to: server, certificate, count: count, scripts: scripts)
        }
        // Threads and pools are made with the first connections and are not measured here.
        try open(bench.scale.parallelConnectionCount).end()
        let before = server.settledResidentMiB()
        let connections = try open(count)
        let after = server.settledResidentMiB()
        try connections.end()
        try server.discard()
        return Row(
            "tls-idle.memory", "server, for each of \(count) idle TLS connections", .kibibytes,
            [(after - before) * 1024 / Double(count)])
    }
}
