package import KedgeEngine
internal import KedgeHash
package import KedgeModel

extension S3Store {
    package func assemble(_ file: StagedFile) async throws {
        try await seeingThrough { [self] in _ = try await assembled(file) }
    }

    package func promote(_ file: StagedFile, to digest: SHA256Digest) async throws -> String? {
        try await seeingThrough { [self] in
            let object = try await assembled(file)
            let found = try await client.headObject(object)
            guard found?.byteCount == file.byteCount else { throw ByteStoreError.notFound }
            return object
        }
    }

    /// Assembles the chunks into one object and returns its key.
    private func assembled(_ file: StagedFile) async throws -> String {
        let object = keys.blob(of: file)
        let wanted = StagingState.object(key: object).text
        let before = try await records.state(of: file.key)
        guard before != wanted else { return object }
        if file.chunks.isEmpty {
            _ = try await client.putObject(object, S3Body([]))
        } else if object == keys.assembled(file.key) {
            guard case .upload(let upload) = StagingState(before) else {
                throw ByteStoreError.notFound
            }
            try await complete(file, upload, as: object)
        }
        _ = try await records.setState(wanted, of: file.key, replacing: before)
        return object
    }

    private func complete(
        _ file: StagedFile, _ upload: UploadReference, as object: String
    ) async throws {
        let parts = try parts(of: file, upload)
        do throws(S3Failure) {
            return try await client.completeUpload(of: object, upload, parts)
        } catch {
            switch error.code {
            case "NoSuchUpload": return try await checkCompleted(file, object)
            case "InvalidPart", "InvalidPartOrder": break
            default: throw error
            }
        }
        // A repeated part may have a different tag although its bytes are equal.
        let fresh = try await replaced(parts, of: object, upload)
        do throws(S3Failure) {
            try await client.completeUpload(of: object, upload, fresh)
        } catch {
            guard error.isMissingUpload else { throw error }
            try await checkCompleted(file, object)
        }
    }

    /// Checks that an unknown upload was completed, by another node or by an attempt whose answer
    /// was lost.
    private func checkCompleted(_ file: StagedFile, _ object: String) async throws {
        let found = try await client.headObject(object)
        guard found?.byteCount == file.byteCount else { throw ByteStoreError.notFound }
    }

    private func parts(of file: StagedFile, _ upload: UploadReference) throws -> [UploadedPart] {
        try file.chunks.map { chunk in
            guard case .part(let tag) = ChunkLocation(chunk.location) else {
                throw ByteStoreError.notFound
            }
            return UploadedPart(
                number: chunk.index + 1, tag: tag, byteCount: chunk.byteCount,
                checksum: upload.hasChecksums ? Base64.encode(chunk.digest.bytes) : nil)
        }
    }

    /// Returns the parts with their current tags.
    ///
    /// - Throws: `notFound` unless each part is known to contain our bytes.
    private func replaced(
        _ parts: [UploadedPart], of object: String, _ upload: UploadReference
    ) async throws -> [UploadedPart] {
        let found = try await allParts(of: object, upload)
        return try parts.map { part in
            guard let other = found[part.number], other.byteCount == part.byteCount,
                other.tag == part.tag
                    || (part.checksum != nil && other.checksum == part.checksum)
            else { throw ByteStoreError.notFound }
            var part = part
            part.tag = other.tag
            return part
        }
    }

    private func allParts(
        of object: String, _ upload: UploadReference
    ) async throws -> [Int: UploadedPart] {
        var found: [Int: UploadedPart] = [:]
        var last: Int? = 0
        while let number = last {
            let page: (parts: [UploadedPart], next: Int?)
            do throws(S3Failure) {
                page = try await client.listParts(of: object, upload.id, after: number)
            } catch {
                guard error.isUnsupported else { throw error }
                return [:]
            }
            for part in page.parts { found[part.number] = part }
            guard let next = page.next, next > number else { break }
            last = next
        }
        return found
    }
}
