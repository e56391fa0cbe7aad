internal import KedgeEngine
internal import KedgeModel

/// The multipart upload of one session. Begins it with the first part, or finds the one of another
/// node.
actor MultipartUpload {
    private let key: StagingKey
    private let objectKey: String
    private let client: S3Client
    private let records: SafeRecords
    private var known: UploadReference?
    private var finding: Task<UploadReference, any Error>?

    init(_ key: StagingKey, objectKey: String, client: S3Client, records: SafeRecords) {
        self.key = key
        self.objectKey = objectKey
        self.client = client
        self.records = records
    }

    /// Returns the upload for the next part.
    func upload() async throws -> UploadReference {
        if let known { return known }
        if let finding { return try await finding.value }
        // Awaited by every part that needs the upload.
        let task = Task { try await self.find() }
        finding = task
        defer { finding = nil }
        let found = try await task.value
        known = found
        return found
    }

    /// Returns the upload that replaces one unknown to the store.
    ///
    /// - Throws: `notFound` when there is none, and all saved chunks are lost.
    func replacement(for lost: UploadReference) async throws -> UploadReference {
        if known == lost { known = nil }
        switch StagingState(try await records.state(of: key)) {
        case .upload(let other) where other != lost: return try await upload()
        case .object:
            // Another node has completed it; the writer of this part was replaced.
            throw ByteStoreError.failed("the staging area is already an object")
        case .upload, nil:
            // The record stays: it is invalidated together with the chunks.
            throw ByteStoreError.notFound
        }
    }

    private func find() async throws -> UploadReference {
        let text = try await records.state(of: key)
        if let upload = try Self.upload(in: text) { return upload }
        let made = try await client.createUpload(objectKey)
        let recorded: String?
        do {
            recorded = try await records.setState(
                StagingState.upload(made).text, of: key, replacing: text)
        } catch {
            await discard(made)
            throw error
        }
        if let upload = try Self.upload(in: recorded) {
            if upload != made { await discard(made) }
            return upload
        }
        await discard(made)
        throw ByteStoreError.failed("the staging area has lost its state")
    }

    private static func upload(in text: String?) throws -> UploadReference? {
        switch StagingState(text) {
        case .upload(let upload): return upload
        case .object: throw ByteStoreError.failed("the staging area is already an object")
        case nil: return nil
        }
    }

    private func discard(_ upload: UploadReference) async {
        // The removal of the area finds the upload by listing.
        try? await client.abortUpload(of: objectKey, upload.id)
    }
}

/// Staging records whose errors are translated to ``ByteStoreError``.
struct SafeRecords: Sendable {
    let records: any StagingRecords

    func state(of key: StagingKey) async throws -> String? {
        do {
            return try await records.stagingState(of: key)
        } catch {
            throw Self.translated(error)
        }
    }

    func setState(
        _ state: String?, of key: StagingKey, replacing expected: String?
    ) async throws -> String? {
        do {
            return try await records.setStagingState(state, of: key, replacing: expected)
        } catch {
            throw Self.translated(error)
        }
    }

    private static func translated(_ error: any Error) -> ByteStoreError {
        switch error {
        case let error as ByteStoreError: error
        case MetadataError.notFound: .notFound
        default: .unavailable("staging records: \(error)")
        }
    }
}
