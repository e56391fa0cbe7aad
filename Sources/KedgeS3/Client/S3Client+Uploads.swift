internal import HTTPTypes
internal import KedgeCurl
internal import KedgeLocks
internal import KedgeModel
internal import KedgeTransport

/// A multipart upload.
package struct UploadReference: Hashable, Sendable {
    package let id: String
    /// True for an upload begun with checksums: every part and the completion carry one.
    let hasChecksums: Bool

    package init(
        id: String,
        hasChecksums: Bool
    ) {
        self.id = id
        self.hasChecksums = hasChecksums
    }
}

/// One part of a multipart upload.
struct UploadedPart: Hashable, Sendable {
    let number: Int
    /// The part's `ETag`; opaque.
    var tag: String
    let byteCount: Int64
    /// Base64; nil if the store keeps none.
    let checksum: String?
}

extension S3Client {
    /// Longest silence of a store while it assembles parts.
    static let completionTimeout = Duration.seconds(300)

    /// Begins a multipart upload. If the answer is lost, the upload stays and is found by listing.
    package func createUpload(_ key: String) async throws(S3Failure) -> UploadReference {
        guard learned.withLock({ $0.takesChecksums }) else {
            return try await createUpload(key, withChecksums: false)
        }
        do throws(S3Failure) {
            return try await createUpload(key, withChecksums: true)
        } catch {
            guard Self.isRefusalOfChecksum(error) else { throw error }
            let upload = try await createUpload(key, withChecksums: false)
            learned.withLock { $0.takesChecksums = false }
            return upload
        }
    }

    private func createUpload(
        _ key: String, withChecksums: Bool
    ) async throws(S3Failure) -> UploadReference {
        var call = S3Call("CreateMultipartUpload", .post, key: key)
        call.query = [QueryItem("uploads")]
        if withChecksums { call.fields.append(("x-amz-checksum-algorithm", "SHA256")) }
        guard let id = try await list(call).text(of: "UploadId"), !id.isEmpty else {
            throw S3Failure(
                code: "NoUploadID", status: 200, detail: "CreateMultipartUpload: no upload id")
        }
        return UploadReference(id: id, hasChecksums: withChecksums)
    }

    /// Stores a part. Idempotent; durable when it returns.
    ///
    /// - Returns: Its tag.
    package func uploadPart(
        _ number: Int, of key: String, _ upload: UploadReference, _ body: S3Body
    ) async throws(S3Failure) -> String {
        var call = S3Call("UploadPart", .put, key: key)
        call.query = [
            QueryItem("partNumber", String(number)), QueryItem("uploadId", upload.id),
        ]
        return try await put(call, body, withChecksum: upload.hasChecksums)
    }

    /// Assembles the parts into an object. After a failure the outcome is unknown.
    func completeUpload(
        of key: String, _ upload: UploadReference, _ parts: [UploadedPart]
    ) async throws(S3Failure) {
        var call = S3Call("CompleteMultipartUpload", .post, key: key)
        call.query = [QueryItem("uploadId", upload.id)]
        call.fields.append(("content-type", "application/xml"))
        call.stallTimeout = Self.completionTimeout
        // A retry may have to wait until the store has finished the first attempt.
        call.timeout = configuration.timeout * 5
        call.body = S3Body(Array(Self.completion(of: parts).utf8))
        _ = try await late(
            call, "CompleteMultipartUploadResult", repeatsMalformed: true,
            finalCodes: [
                "NoSuchUpload", "InvalidPart", "InvalidPartOrder", "EntityTooSmall",
                "AccessDenied", "InvalidRequest", "MalformedXML",
            ])
    }

    /// Sends a call whose status arrives before the work is done, and returns the answer's root
    /// element. Only the body shows the outcome.
    ///
    /// - Parameters:
    ///   - repeatsMalformed: Whether to retry after a body that is no document.
    ///   - finalCodes: Error codes that are not retried. Others with status 200 do not show the
    ///     outcome.
    func late(
        _ call: S3Call, _ name: String, repeatsMalformed: Bool, finalCodes: Set<String>
    ) async throws(S3Failure) -> XMLElement {
        try await perform(call) { (response) async throws(S3Failure) in
            let body: [UInt8]
            do throws(TransportError) {
                body = try await response.body.collect(upTo: 1 << 20)
            } catch {
                throw S3Failure(
                    code: "closedEarly", detail: "\(call.operation): \(error.code)",
                    isTransient: true)
            }
            guard let root = XMLElement(document: body) else {
                throw S3Failure(
                    code: "MalformedAnswer", status: 200, detail: call.operation,
                    isTransient: repeatsMalformed)
            }
            guard root.name == name else {
                let code = root.text(of: "Code") ?? "InternalError"
                throw S3Failure(
                    code: code, status: 200,
                    detail: "\(call.operation): 200 \(code) \(root.text(of: "Message") ?? "")",
                    isTransient: !finalCodes.contains(code))
            }
            return root
        }
    }

    private static func completion(of parts: [UploadedPart]) -> String {
        var text = #"<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">"#
        for part in parts {
            text += "<Part><PartNumber>\(part.number)</PartNumber>"
            text += "<ETag>\(XMLElement.escape(part.tag))</ETag>"
            if let checksum = part.checksum {
                text += "<ChecksumSHA256>\(checksum)</ChecksumSHA256>"
            }
            text += "</Part>"
        }
        return text + "</CompleteMultipartUpload>"
    }

    /// Aborts an upload. Idempotent: an absent one is not an error. Parts in flight may still
    /// arrive.
    package func abortUpload(of key: String, _ id: String) async throws(S3Failure) {
        var call = S3Call("AbortMultipartUpload", .delete, key: key)
        call.query = [QueryItem("uploadId", id)]
        call.success = 204
        do throws(S3Failure) {
            _ = try await answer(call)
        } catch {
            guard error.isAbsence else { throw error }
        }
    }

    /// Lists a page of an upload's parts.
    ///
    /// - Returns: The parts, and the number after which the next page begins; nil after the last.
    func listParts(
        of key: String, _ id: String, after number: Int
    ) async throws(S3Failure) -> (parts: [UploadedPart], next: Int?) {
        var call = S3Call("ListParts", .get, key: key)
        call.query = [QueryItem("uploadId", id)]
        if number > 0 { call.query.append(QueryItem("part-number-marker", String(number))) }
        let list = try await list(call)
        let parts = list.all("Part").compactMap { part -> UploadedPart? in
            guard let number = part.text(of: "PartNumber").flatMap({ Int($0) }),
                let tag = part.text(of: "ETag"),
                let count = part.text(of: "Size").flatMap({ WireInteger.parse($0) })
            else { return nil }
            return UploadedPart(
                number: number, tag: tag, byteCount: count,
                checksum: part.text(of: "ChecksumSHA256"))
        }
        let hasMore = list.text(of: "IsTruncated") == "true"
        return (parts, hasMore ? parts.last?.number : nil)
    }

    /// Lists a page of the uploads whose key has the prefix.
    ///
    /// - Returns: The uploads, and the marker of the next page; nil after the last.
    package func listUploads(
        prefix: String, after marker: (key: String, id: String)?
    ) async throws(S3Failure) -> (
        uploads: [(key: String, id: String)], next: (key: String, id: String)?
    ) {
        var call = S3Call("ListMultipartUploads", .get)
        call.query = [QueryItem("uploads"), QueryItem("prefix", prefix)]
        if let marker {
            call.query += [
                QueryItem("key-marker", marker.key), QueryItem("upload-id-marker", marker.id),
            ]
        }
        let list = try await list(call)
        let uploads = list.all("Upload").compactMap { upload -> (key: String, id: String)? in
            guard let key = upload.text(of: "Key"), let id = upload.text(of: "UploadId") else {
                return nil
            }
            return (key, id)
        }
        guard list.text(of: "IsTruncated") == "true", let key = list.text(of: "NextKeyMarker"),
            let id = list.text(of: "NextUploadIdMarker")
        else { return (uploads, nil) }
        return (uploads, (key, id))
    }
}
