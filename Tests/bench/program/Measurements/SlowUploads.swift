/// Very many clients that each send a little at a time, as over bad links, in one thread.
struct SlowUploads {
    private let bench: Bench
    private let content: Content
    /// Number of rounds in a second. Each connection sends its share in every tenth round.
    private static let ticksPerSecond = 100
    private static let groupCount = 10

    static func measure(_ bench: Bench) throws -> Measured {
        let scale = bench.scale
        // One chunk for each client lasts for the whole time.
        let content = try Content(
            bench.source, byteCount: scale.slowSeconds * scale.slowBytesPerSecond,
            chunkByteCount: 4 << 20)
        let slow = SlowUploads(bench: bench, content: content)
        let server = try KedgeServer(
            bench, options: ["--limits-max-concurrent-writes", "\(scale.slowUploadCount)"])
        let uploads = try slow.begin(server)
        let probe = try StatusProbe(server, content)
        try slow.send(uploads)
        let alive = uploads.filter { $0.end() }.count
        let delays = try probe.stop()
        let peak = Double(server.usage.peakKiB) / 1024
        try server.discard()
        guard alive == uploads.count else {
            let reason = uploads.compactMap(\.failure).first ?? ""
            throw BenchFailure("only \(alive) of \(uploads.count) slow uploads lived: \(reason)")
        }
        let title = "\(uploads.count) slow uploads"
        return Measured(rows: [
            Row("slow-uploads.memory", "\(title): server", .mebibytes, [peak]),
            Row("slow-uploads.alive", "\(title): acknowledged", .count, [Double(alive)]),
            Row(
                "slow-uploads.status-p99", "\(title): 99th percentile of a status", .milliseconds,
                [Series.percentile(0.99, of: delays)]),
        ])
    }

    private func begin(_ server: KedgeServer) throws -> [SlowUpload] {
        try (0..<bench.scale.slowUploadCount).map { _ in
            let connection = try server.connect()
            let session = try UploadSession.create(for: content, on: connection)
            return try SlowUpload(session, connection)
        }
    }

    /// Sends the bytes of every upload when they are due.
    private func send(_ uploads: [SlowUpload]) throws {
        let share = bench.scale.slowBytesPerSecond / Self.ticksPerSecond * Self.groupCount
        let rounds = bench.scale.slowSeconds * Self.ticksPerSecond
        // A slow server gets ten seconds to catch up.
        let limit = rounds + 10 * Self.ticksPerSecond
        let began = ContinuousClock.now
        for round in 0..<limit {
            let due = (round / Self.groupCount + 1) * share
            for index in stride(from: round % Self.groupCount, to: uploads.count, by: 10) {
                uploads[index].send(upTo: due)
            }
            if round >= rounds, uploads.allSatisfy(\.isSent) { return }
            let next = Double(round + 1) / Double(Self.ticksPerSecond)
            pause(seconds: next - elapsedSeconds(since: began))
        }
    }
}

/// One slow client.
private final class SlowUpload {
    private let connection: BenchConnection
    private let chunk: Content.Chunk
    private let source: SourceFile
    private var sent = 0
    private(set) var failure: String?

    init(_ session: UploadSession, _ connection: BenchConnection) throws {
        self.connection = connection
        chunk = session.content.chunk(0)
        source = session.content.source
        try connection.sendHead(
            "PUT", session.path(of: chunk), fields: session.fields(of: chunk),
            bodyByteCount: chunk.byteCount)
        connection.isBlocking = false
    }

    /// Whether nothing is left to send.
    var isSent: Bool { failure != nil || sent == chunk.byteCount }

    /// Sends the due bytes, as far as the socket takes them.
    func send(upTo due: Int) {
        let count = min(due, chunk.byteCount) - sent
        guard failure == nil, count > 0 else { return }
        do {
            sent += try connection.sendPart(
                source.file, at: chunk.sourceOffset + sent, atMost: count)
        } catch {
            failure = "\(error) after \(sent) bytes"
        }
    }

    /// Waits for the answer, and returns whether the chunk was acknowledged.
    func end() -> Bool {
        connection.isBlocking = true
        do {
            let answer = try connection.receive()
            try answer.require(201, of: "a slow chunk")
            return true
        } catch {
            failure = "\(error), after \(sent) bytes; \(failure ?? "")"
            return false
        }
    }
}
