/// Uploads by a client that hashed everything beforehand: the maximum speed of the server.
struct RawUpload {
    private let bench: Bench
    private let content: Content
    private let fileDigest: String

    private init(_ bench: Bench) throws {
        self.bench = bench
        content = try Content(
            bench.source, byteCount: bench.scale.rawByteCount,
            chunkByteCount: bench.scale.chunkByteCount)
        fileDigest = try bench.source.digest(at: 0, byteCount: content.byteCount)
    }

    /// Samples of one way to upload, by number of connections where it matters.
    private struct Samples {
        var ours: [Int: [TransferSample]] = [1: [], 4: []]
        var nginx: [Int: [TransferSample]] = [1: [], 4: []]
        /// nginx over four connections, in MiB a second until its files are synced.
        var nginxSynced: [Double] = []
        var rclone: [TransferSample] = []
        /// One PATCH of tus, and four of a quarter each at once.
        var tus: [Int: [TransferSample]] = [1: [], 4: []]
        var withoutDurability: [TransferSample] = []
        var withSlowSyncs: [TransferSample] = []
        var digests: [Double] = []
    }

    static func measure(_ bench: Bench) throws -> Measured {
        let upload = try RawUpload(bench)
        let hasSwitch = try KedgeServer.hasOption("--durability", bench)
        let hasSlowSyncs = SlowSyncs.areAvailable
        var samples = Samples()
        for _ in 0..<bench.scale.runs {
            for count in [1, 4] {
                samples.ours[count]?.append(try upload.ours(count, .plain))
                let (put, synced) = try upload.nginx(count)
                samples.nginx[count]?.append(put)
                if count == 4 { samples.nginxSynced.append(synced) }
            }
            for count in [1, 4] { samples.tus[count]?.append(try upload.tus(count)) }
            if hasSwitch {
                samples.withoutDurability.append(try upload.ours(4, .withoutDurability))
            }
            if hasSlowSyncs { samples.withSlowSyncs.append(try upload.ours(4, .withSlowSyncs)) }
            if let rclone = bench.settings.rclone {
                samples.rclone.append(try upload.rclone(rclone))
            }
            samples.digests.append(try DigestSpeed.measure(threads: Machine.coreCount))
        }
        var notes: [String] = []
        if !hasSwitch { notes.append("this kedge has no option --durability, so not measured") }
        if !hasSlowSyncs { notes.append("there is no C compiler to delay syncs, so not measured") }
        if bench.settings.rclone == nil { notes.append("there is no rclone to compare with") }
        return Measured(rows: upload.rows(samples), notes: notes)
    }

    private func ours(_ connectionCount: Int, _ manner: KedgeServer.Manner) throws
        -> TransferSample
    {
        bench.scratch.settle()
        let server = try KedgeServer(bench, manner: manner)
        let sample = try Self.sample(
            of: content, digest: fileDigest, to: server, connectionCount: connectionCount)
        try server.discard()
        return sample
    }

    /// Uploads a file and compares the server's digest.
    ///
    /// - Parameter fields: Fields of every request.
    static func sample(
        of content: Content, digest: String, to server: KedgeServer, connectionCount: Int,
        fields: [String] = []
    ) throws -> TransferSample {
        var answer: UploadSession.Finalized?
        let sample = try TransferSample.measure(server, byteCount: content.byteCount) {
            let connection = try server.connect(fields: fields)
            let session = try UploadSession.create(for: content, on: connection)
            try session.putAll(to: server, connectionCount: connectionCount, fields: fields)
            answer = try session.finalize(on: connection)
        }
        guard answer?.fileHashSha256 == digest else {
            throw BenchFailure("the server has another SHA-256 of the file")
        }
        return sample
    }

    /// Sends a file of tus over each connection, in one PATCH.
    private func tus(_ uploadCount: Int) throws -> TransferSample {
        bench.scratch.settle()
        let server = try KedgeServer(bench)
        let part = content.byteCount / uploadCount
        let source = bench.source
        let sample = try TransferSample.measure(server, byteCount: part * uploadCount) {
            _ = try concurrently(uploadCount) { index in
                let connection = try server.connect()
                try TusUpload.create(byteCount: part, on: connection)
                    .patch(source, at: index * part, on: connection)
            }
        }
        let digests = try (0..<uploadCount).map { index in
            try source.digest(at: index * part, byteCount: part)
        }
        guard try TusUpload.digests(uploadCount, on: server.connect()) == Set(digests) else {
            throw BenchFailure("the server has another SHA-256 of a tus upload")
        }
        try server.discard()
        return sample
    }

    /// Uploads to nginx, which answers before anything is durable. The second value includes a
    /// sync.
    private func nginx(_ connectionCount: Int) throws
        -> (put: TransferSample, syncedMebibytesPerSecond: Double)
    {
        let nginx = try Nginx(bench)
        let put = try put(to: nginx, connectionCount)
        let syncing = try elapsedSeconds {
            _ = try concurrently(connectionCount) { index in
                try Descriptor(reading: "\(nginx.root)/file-\(index)").sync()
            }
        }
        try nginx.discard()
        let share = put.seconds / (put.seconds + syncing)
        return (put, put.mebibytesPerSecond * share)
    }

    private func rclone(_ executable: String) throws -> TransferSample {
        let rclone = try Rclone(bench, executable: executable)
        let sample = try put(to: rclone, 1)
        try rclone.discard()
        return sample
    }

    /// Sends the same bytes as one file for each connection.
    private func put(to server: any Server, _ connectionCount: Int) throws -> TransferSample {
        bench.scratch.settle()
        let part = content.byteCount / connectionCount
        let source = bench.source
        return try TransferSample.measure(server, byteCount: part * connectionCount) {
            _ = try concurrently(connectionCount) { index in
                try server.connect().request(
                    "PUT", "/file-\(index)",
                    body: .file(source.file, offset: index * part, byteCount: part)
                ).require(201, of: "PUT to \(server.name)")
            }
        }
    }

    private func rows(_ samples: Samples) -> [Row] {
        let floor = Row.Floor.digests(
            byteCount: content.byteCount, passes: DigestPasses.serverOfUpload,
            speeds: samples.digests)
        var rows: [Row] = []
        for count in [1, 4] {
            rows += (samples.ours[count] ?? []).rows(
                "upload-\(count)", "upload, \(count) conn.",
                peer: ("nginx PUT", samples.nginx[count] ?? []), floor: floor)
        }
        func speeds(_ samples: [TransferSample]?) -> [Double] {
            (samples ?? []).map(\.mebibytesPerSecond)
        }
        func compare(_ id: String, _ title: String, _ values: [Double], with peer: Series) {
            guard !values.isEmpty, !peer.values.isEmpty else { return }
            rows.append(Row(id, title, .mebibytesPerSecond, values, peer: peer))
        }
        let many = speeds(samples.ours[4])
        for (count, title) in [(1, "tus, one PATCH"), (4, "tus, 4 files at once")] {
            rows += (samples.tus[count] ?? []).rows(
                "tus-\(count)", title, peer: ("native, 4 conn.", samples.ours[4] ?? []))
        }
        compare(
            "upload-4.synced", "upload, 4 conn.", many,
            with: Series(name: "nginx PUT, fsync", values: samples.nginxSynced))
        compare(
            "upload-1.rclone", "upload, 1 conn.", speeds(samples.ours[1]),
            with: Series(name: "rclone webdav", values: speeds(samples.rclone)))
        compare(
            "upload-4.durability", "upload, 4 conn.", many,
            with: Series(name: "durability off", values: speeds(samples.withoutDurability)))
        compare(
            "upload-4.slow-sync", "upload, 4 conn., syncs 5 ms longer",
            speeds(samples.withSlowSyncs), with: Series(name: "syncs as they are", values: many))
        return rows
    }
}
