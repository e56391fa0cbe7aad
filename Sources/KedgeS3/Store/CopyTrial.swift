internal import KedgeEngine
internal import KedgeModel

/// Finds out whether the store copies parts, and tells the SHA-256 of what it has copied.
///
/// It tries that with an upload of its own: a store that does not know the operation may take the request for a
/// part without bytes, and not let it be replaced.
actor CopyTrial {
    /// How long each request of a try may be repeated: whoever waits for it can send the bytes.
    private static let patience = Duration.seconds(5)

    private let client: S3Client
    private let keys: ObjectKeys
    private var verdict: Bool?
    private var running: Task<Bool?, Never>?
    private var pauseEnd: ContinuousClock.Instant?

    init(_ client: S3Client, _ keys: ObjectKeys) {
        self.client = client
        self.keys = keys
    }

    /// True when it is worth asking the store for a copy.
    func copies() async -> Bool {
        if let pauseEnd, ContinuousClock.now < pauseEnd { return false }
        if let verdict { return verdict }
        // Awaited by all who want to know.
        let task = running ?? Task { await self.tried() }
        running = task
        let found = await task.value
        running = nil
        guard let found else {
            pause()
            return false
        }
        verdict = found
        return found
    }

    /// A copy has failed: for a while none is asked for, since each may cost the time of many tries.
    func pause() { pauseEnd = .now + client.configuration.copyPause }

    /// What the store can do; nil when it has not become clear.
    private func tried() async -> Bool? {
        let (object, target) = (keys.probe(), keys.probe())
        let verdict: Bool?
        do throws(S3Failure) {
            verdict = try await triesCopy(of: object, to: target)
        } catch {
            verdict = Self.cannotCopy.contains(error.code) || error.isUnsupported ? false : nil
        }
        // Best effort: what stays is known by its name as a probe's.
        try? await client.deleteObject(object, patience: Self.patience)
        return verdict
    }

    private static let cannotCopy: Set = [
        "NoChecksum", "BadDigest", "MalformedAnswer", "InvalidRequest", "InvalidArgument",
    ]

    private func triesCopy(of object: String, to target: String) async throws(S3Failure) -> Bool {
        let body = S3Body([0])
        let tag = try await client.putObject(object, body, patience: Self.patience)
        let upload = try await client.createUpload(target)
        let result: Result<Void, S3Failure>
        do throws(S3Failure) {
            if upload.hasChecksums {
                _ = try await client.copyPart(
                    1, of: target, upload,
                    from: CopySource(name: object, tag: tag, byteCount: 1), 0..<1,
                    digest: body.digest, patience: Self.patience)
            }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        // Best effort, too.
        try? await client.abortUpload(of: target, upload.id)
        try result.get()
        return upload.hasChecksums
    }
}
