package import KedgeEngine
internal import KedgeModel

extension S3Store {
    /// Limits of one removal: pages of a listing, and attempts of an abort. The next removal
    /// continues.
    private static let maxRounds = 100
    private static let maxAbortCount = 5

    package func removeStaging(
        _ key: StagingKey, state: String?, keeping location: String?
    ) async throws {
        try await seeingThrough { [self] in
            let object = keys.assembled(key)
            switch StagingState(state) {
            case .upload(let upload): try await abort(upload.id, of: object)
            case .object(let key) where key != location && keys.isBlob(key):
                // Also for a store that does not list objects.
                try await client.deleteObject(key)
            case .object, nil: break
            }
            for id in try await leakedUploads(of: object) { try await abort(id, of: object) }
            try await removeObjects(below: keys.pieces(of: key), keeping: nil)
            try await removeObjects(below: keys.objects(of: key), keeping: location)
        }
    }

    /// Aborts an upload until it is gone. Some stores keep it when parts are in flight.
    private func abort(_ id: String, of object: String) async throws {
        for _ in 0..<Self.maxAbortCount {
            try await client.abortUpload(of: object, id)
            do throws(S3Failure) {
                _ = try await client.listParts(of: object, id, after: 0)
            } catch {
                guard !error.isAbsence, !error.isUnsupported else { return }
                throw error
            }
        }
        throw ByteStoreError.failed("an aborted upload still exists")
    }

    private func leakedUploads(of object: String) async throws -> [String] {
        var ids: [String] = []
        var marker: (key: String, id: String)?
        for _ in 0..<Self.maxRounds {
            do throws(S3Failure) {
                let page = try await client.listUploads(prefix: object, after: marker)
                ids += page.uploads.filter { $0.key == object }.map(\.id)
                marker = page.next
            } catch {
                guard error.isUnsupported else { throw error }
                return ids
            }
            if marker == nil { break }
        }
        return ids
    }

    private func removeObjects(below prefix: String, keeping kept: String?) async throws {
        var token: String?
        for _ in 0..<Self.maxRounds {
            let page: (keys: [String], next: String?)
            do throws(S3Failure) {
                page = try await client.listObjects(prefix: prefix, after: token)
            } catch {
                guard error.isUnsupported || error.isAbsence else { throw error }
                return
            }
            // Protects files from a store that lists other keys than requested.
            for key in page.keys where key != kept && key.hasPrefix(prefix) {
                try await client.deleteObject(key)
            }
            guard let next = page.next else { return }
            token = next
        }
    }
}
