internal import KedgeEngine
internal import KedgeModel

/// Finds out whether the store copies parts and reports the SHA-256 of the copy.
///
/// The trial uses an upload of its own: a store without the operation may take the request for an
/// empty part, and not allow to replace it.
actor CopySupport {
    /// Timeout of each request of the trial. Short, since the bytes can be uploaded instead.
    private static let timeout = Duration.seconds(5)

    private let client: S3Client
    private let keys: ObjectKeys
    private var isSupported: Bool?
    private var running: Task<Bool?, Never>?
    private var pauseEnd: ContinuousClock.Instant?

    init(_ client: S3Client, _ keys: ObjectKeys) {
        self.client = client
        self.keys = keys
    }

    /// Whether to request a copy from the store.
    func copies() async -> Bool {
        if let pauseEnd, ContinuousClock.now < pauseEnd { return false }
        if let isSupported { return isSupported }
        // Awaited by every caller of `copies()`.
        let task = running ?? Task { await self.tried() }
        running = task
        let found = await task.value
        running = nil
        guard let found else {
            pause()
            return false
        }
        isSupported = found
        return found
    }

    /// Stops copies for a while after one failed, since each failure may take as long as many
    /// retries.
    func pause() { pauseEnd = .now + client.configuration.copyPause }

    /// Runs the trial; nil when the result is unclear.
    private func tried() async -> Bool? {
        let (object, target) = (keys.probe(), keys.probe())
        let isSupported: Bool?
        do throws(S3Failure) {
            isSupported = try await triesCopy(of: object, to: target)
        } catch {
            isSupported = Self.cannotCopy.contains(error.code) || error.isUnsupported ? false : nil
        }
        // Best effort: a leftover is recognized as a probe by its key.
        try? await client.deleteObject(object, timeout: Self.timeout)
        return isSupported
    }

    private static let cannotCopy: Set = [
        "NoChecksum", "BadDigest", "MalformedAnswer", "InvalidRequest", "InvalidArgument",
    ]

    private func triesCopy(of object: String, to target: String) async throws(S3Failure) -> Bool {
        let body = S3Body([0])
        let tag = try await client.putObject(object, body, timeout: Self.timeout)
        let upload = try await client.createUpload(target)
        let result: Result<Void, S3Failure>
        do throws(S3Failure) {
            if upload.hasChecksums {
                _ = try await client.copyPart(
                    1, of: target, upload,
                    from: CopySource(name: object, tag: tag, byteCount: 1), 0..<1,
                    digest: body.digest, timeout: Self.timeout)
            }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        // Best effort, as above.
        try? await client.abortUpload(of: target, upload.id)
        try result.get()
        return upload.hasChecksums
    }
}
