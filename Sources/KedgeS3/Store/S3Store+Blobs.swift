package import KedgeEngine
package import KedgeModel

extension S3Store {
    /// Lifetime of a presigned URL. A download that has begun continues.
    private static let publicSeconds = 900
    private static let replaceableFields: Set = [
        "content-type", "content-disposition", "content-language", "content-encoding",
        "cache-control", "expires",
    ]

    package func openBlob(_ name: BlobName) async throws -> any BlobReader {
        let object = try object(of: name)
        let found = try await seeing { [client] () async throws(S3Failure) in
            try await client.headObject(object)
        }
        guard let found, found.byteCount == name.byteCount else { throw ByteStoreError.notFound }
        return S3BlobReader(object, byteCount: name.byteCount, tag: found.tag, client: client)
    }

    /// Does nothing: blobs have a location here, and are removed with their staging area.
    package func removeBlob(_ digest: SHA256Digest) async throws {}

    package func publicURL(
        of name: BlobName, responseFields: [String: String]
    ) async throws -> String? {
        guard redirectsReaders else { return nil }
        let object = try object(of: name)
        let query = responseFields.compactMap { field in
            let name = field.key.lowercased()
            return Self.replaceableFields.contains(name)
                ? QueryItem("response-\(name)", field.value) : nil
        }
        do {
            return try await client.presignedURL(
                of: object, query: query, expiresAfterSeconds: Self.publicSeconds)
        } catch {
            throw ByteStoreError.unavailable("\(error)")
        }
    }

    private func object(of name: BlobName) throws(ByteStoreError) -> String {
        guard let location = name.location, keys.isBlob(location) else { throw .notFound }
        return location
    }
}
