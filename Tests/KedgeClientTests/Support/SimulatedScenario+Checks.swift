import KedgeClient
import KedgeLocks
import KedgeModel
import KedgeTesting

/// Checks that return a sentence for each violation.
extension SimulatedScenario {
    /// Checks at any time that no unfinished file has the destination's name, and that the file
    /// there before is replaced only by the complete one.
    func violations(onViewOf image: DiskImage) -> [String] {
        var found: [String] = []
        let destination = image.content(at: SimulatedHost.destination)
        if destination != before, destination != after {
            found.append("at the destination are \(destination?.count ?? 0) wrong bytes")
        }
        if image.content(at: SimulatedHost.source) != Self.content {
            found.append("the source is another one")
        }
        return found
    }

    /// Checks that a reported success holds on a disk after a power cut.
    func violations(ofSuccessOn moment: SimulatedMoment) -> [String] {
        let isThere =
            request.isUpload
            ? moment.server.files.values.map(\.bytes) == [Self.content]
            : moment.image.content(at: SimulatedHost.destination) == Self.content
        return isThere ? [] : ["a success was told and is not there"]
    }

    /// Checks at any time that the records are true on a disk after a power cut.
    func violations(of records: [TransferRecord], on moment: SimulatedMoment) -> [String] {
        records.flatMap { record in
            if record.status.state == .completed {
                return violations(ofSuccessOn: moment).map { "by the records \($0)" }
            }
            switch record {
            case .download(let download): return Self.lostChunks(of: download, in: moment.image)
            case .upload(let upload): return Self.lostChunks(of: upload, at: moment.server)
            }
        }
    }

    /// Checks that chunks are recorded after their bytes are durable, never before (R92).
    private static func lostChunks(of download: DownloadTransfer, in image: DiskImage) -> [String] {
        guard let layout = download.layout else { return [] }
        let bytes =
            image.content(at: download.tempPath)
            ?? image.content(at: download.destinationPath) ?? []
        return download.downloadedChunks.indexes.filter { index in
            guard let range = layout.range(ofChunk: index), range.end <= bytes.count else {
                return true
            }
            let places = Int(range.start)..<Int(range.end)
            return bytes[places] != content[places]
        }.map { "chunk \($0) is recorded and lost" }
    }

    /// Checks that synced bytes of an unfinished chunk are recorded after they are durable.
    func violations(
        of partials: [DownloadPartial], of download: DownloadTransfer,
        on moment: SimulatedMoment
    ) -> [String] {
        guard let layout = download.layout else { return [] }
        let bytes = moment.image.content(at: download.tempPath) ?? []
        return partials.filter { partial in
            // A partial that was only noted promises nothing, not even that its file has a length.
            guard let count = (partial.synced?.offsetBytes).map({ Int($0) }) else { return false }
            guard let range = layout.range(ofChunk: partial.index) else { return true }
            let start = Int(range.start)
            guard start + count <= bytes.count else { return true }
            return bytes[start..<start + count] != Self.content[start..<start + count]
        }.map { "synced bytes of chunk \($0.index) are recorded and lost" }
    }

    private static func lostChunks(
        of upload: UploadTransfer, at server: FakeServer.State
    ) -> [String] {
        let session = upload.sessionID.flatMap { server.sessions[$0] }
        return upload.uploadedChunks.indexes.filter { session?.chunks[$0] == nil }
            .map { "chunk \($0) is recorded and was never acknowledged" }
    }

    /// Checks after an undisturbed run that the command's effect is durable and nothing is left
    /// over.
    func violations(
        atEnd end: SimulatedEnd, of host: SimulatedHost, expecting expected: SimulatedEnd
    ) async throws -> [String] {
        var found = end == expected ? [] : ["it ended as \(end), not as \(expected)"]
        let image = host.disk.image
        let durable = image.surviving(.losesAll)
        if durable.content(at: SimulatedHost.destination) != after {
            found.append("the destination is not durably as it should be")
        }
        // A temporary file that returns after a cut has no owner any more.
        let left = Set(image.paths + durable.paths).filter { $0.hasSuffix(".kedge-part") }
        found += left.sorted().map { "left: \($0)" }
        if request.isUpload { found += Self.violations(ofUploadTo: host.server) }
        return found + (try await leaks(of: host))
    }

    /// Checks that the server has the file once, in one session, and got no acknowledged byte
    /// twice.
    private static func violations(ofUploadTo server: FakeServer) -> [String] {
        let state = server.state.withLock { $0 }
        var found: [String] = []
        if state.files.values.map(\.bytes) != [content] {
            found.append("the server has \(state.files.count) files")
        }
        if state.sessions.count != 1 {
            found.append("there are \(state.sessions.count) sessions")
        }
        if state.repeatedByteCount != 0 {
            found.append("\(state.repeatedByteCount) acknowledged bytes were sent again")
        }
        return found
    }

    /// Checks that no descriptor stays open after the client was closed. Ending threads release
    /// theirs a moment later.
    func leaks(of host: SimulatedHost) async throws -> [String] {
        if try await eventually({ host.disk.openFileCount == 0 }) { return [] }
        return ["\(host.disk.openFileCount) descriptors stay open"]
    }
}
