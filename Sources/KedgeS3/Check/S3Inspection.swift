package import KedgeEngine
internal import KedgeModel

/// Inspects the objects below the prefix of a bucket, without changing them.
///
/// Objects are looked up with HEAD, or listed. The parts of an unfinished upload can only be
/// listed.
package struct S3Inspection: CheckedBytes {
    let store: S3Store

    package var isShared: Bool { true }

    package func byteCount(of blob: BlobName) async throws -> Int64? {
        guard let location = blob.location, store.keys.isBlob(location) else { return nil }
        return try await head(of: location)?.byteCount
    }

    package func open(_ blob: BlobName) async throws -> any BlobReader {
        do {
            return try await store.openBlob(blob)
        } catch {
            try Task.checkCancellation()
            throw error
        }
    }

    package func staging(of session: SessionRecord) async throws -> any CheckedStaging {
        try await S3StagingCheck(of: session, in: self)
    }

    /// Reports objects first, then unfinished uploads, each as the staging area it belongs to.
    package func forEachEntry(_ body: (StoredEntry) async throws -> Void) async throws {
        var last: ObjectOwner?
        try await forEachObject(below: store.keys.prefix) { object in
            let owner = store.keys.owner(of: object)
            // Pieces of one area are adjacent in the listing.
            defer { last = owner }
            switch owner {
            case .staging(let key):
                if owner != last { try await body(.bytes(.staging(key))) }
            case .probe: try await body(.leftover(object))
            case .unknown: try await body(.unknown(object))
            }
        }
        last = nil
        try await forEachUpload(below: store.keys.prefix) { object in
            let owner = store.keys.owner(of: object)
            defer { last = owner }
            switch owner {
            case .staging(let key) where object == store.keys.assembled(key):
                if owner != last { try await body(.bytes(.staging(key))) }
            case .probe: try await body(.leftover(object))
            case .staging, .unknown: try await body(.unknown(object))
            }
        }
    }

    package func hasEntry(_ bytes: StoredBytes) async throws -> Bool {
        // Blobs have no keys of their own here.
        guard case .staging(let key) = bytes else { return false }
        let keys = store.keys
        for prefix in [keys.objects(of: key), keys.pieces(of: key)] {
            let page = try await seeing { () async throws(S3Failure) in
                try await store.client.listObjects(prefix: prefix, after: nil)
            }
            if !page.keys.isEmpty { return true }
        }
        return try await uploads(below: keys.assembled(key), after: nil).uploads
            .contains { $0.key == keys.assembled(key) }
    }

    /// Returns the size and tag of an object; nil when there is none.
    func head(of object: String) async throws -> ObjectHead? {
        try await seeing { () async throws(S3Failure) in
            try await store.client.headObject(object)
        }
    }

    /// Runs a request and translates its failure.
    ///
    /// - Throws: ``ByteStoreError``, `CancellationError`.
    func seeing<Value: Sendable>(
        _ work: () async throws(S3Failure) -> Value
    ) async throws -> Value {
        do throws(S3Failure) {
            return try await work()
        } catch {
            // A cancelled request fails like any other.
            try Task.checkCancellation()
            throw ByteStoreError(error)
        }
    }
}

extension S3Inspection {
    private typealias UploadMarker = (key: String, id: String)

    private func forEachObject(
        below prefix: String, _ body: (String) async throws -> Void
    ) async throws {
        var token: String?
        while true {
            let page = try await seeing { [token] () async throws(S3Failure) in
                try await store.client.listObjects(prefix: prefix, after: token)
            }
            for key in page.keys { try await body(key) }
            // Guards against a store that returns one token forever.
            guard let next = page.next, next != token else { return }
            token = next
        }
    }

    private func forEachUpload(
        below prefix: String, _ body: (String) async throws -> Void
    ) async throws {
        var marker: UploadMarker?
        while true {
            let page = try await uploads(below: prefix, after: marker)
            for upload in page.uploads { try await body(upload.key) }
            guard let next = page.next, next.key != marker?.key || next.id != marker?.id else {
                return
            }
            marker = next
        }
    }

    /// Returns a page of unfinished uploads; empty if the store does not list them.
    private func uploads(
        below prefix: String, after marker: UploadMarker?
    ) async throws -> (uploads: [UploadMarker], next: UploadMarker?) {
        try await seeing { () async throws(S3Failure) in
            do throws(S3Failure) {
                return try await store.client.listUploads(prefix: prefix, after: marker)
            } catch {
                guard error.isUnsupported else { throw error }
                return ([], nil)
            }
        }
    }
}

extension S3Store {
    /// Checks for the objects of this store.
    package var inspection: S3Inspection { S3Inspection(store: self) }
}
