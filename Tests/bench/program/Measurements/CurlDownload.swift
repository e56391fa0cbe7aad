/// Downloads with curl, from the page cache: the maximum speed of the server.
struct CurlDownload {
    private let bench: Bench
    private let byteCount: Int

    static func measure(_ bench: Bench) throws -> Measured {
        let download = CurlDownload(bench: bench, byteCount: bench.scale.rawByteCount)
        let stored = try StoredFile(bench, byteCount: download.byteCount)
        let nginx = try download.nginxWithFile()
        var ours: [[TransferSample]] = [[], []]
        var theirs: [[TransferSample]] = [[], []]
        for _ in 0..<bench.scale.runs {
            for (kind, isKept) in [false, true].enumerated() {
                ours[kind].append(try download.fetch(stored.server, stored.path, isKept: isKept))
                theirs[kind].append(try download.fetch(nginx, "/file", isKept: isKept))
            }
        }
        try stored.server.discard()
        try nginx.discard()
        return Measured(
            rows: ours[0].rows("download-null", "curl to /dev/null", peer: ("nginx GET", theirs[0]))
                + ours[1].rows("download-file", "curl to a file", peer: ("nginx GET", theirs[1])))
    }

    private func nginxWithFile() throws -> Nginx {
        let nginx = try Nginx(bench)
        try nginx.connect().request(
            "PUT", "/file", body: .file(bench.source.file, offset: 0, byteCount: byteCount)
        ).require(201, of: "PUT to nginx")
        return nginx
    }

    /// Downloads once. A kept file is compared with the source and removed.
    private func fetch(_ server: any Server, _ path: String, isKept: Bool) throws
        -> TransferSample
    {
        bench.scratch.settle()
        let destination = isKept ? "\(bench.scratch.path)/copy" : "/dev/null"
        defer { if isKept { Scratch.remove(destination) } }
        let sample = try TransferSample.measure(server, byteCount: byteCount) {
            try Curl.fetch(bench, path, from: server, to: destination)
        }
        guard try !isKept || bench.source.isEqual(toFile: destination, byteCount: byteCount) else {
            throw BenchFailure("what curl got from \(server.name) are other bytes")
        }
        return sample
    }
}
