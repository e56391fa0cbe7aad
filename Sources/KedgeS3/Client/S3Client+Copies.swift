internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel

// Parts that the store copies from objects of the bucket.
extension S3Client {
    /// The slowest expected rate of a copy, in bytes per second.
    private static let slowestCopyRate = 4 << 20

    /// Makes the store copy a range of an object of the bucket into a part. Durable when it
    /// returns.
    ///
    /// - Returns: The part's tag.
    /// - Throws: Also when the copy's digest is wrong or missing. The part must then be uploaded
    ///   again.
    /// - Precondition: The upload has checksums.
    func copyPart(
        _ number: Int, of key: String, _ upload: UploadReference, from source: CopySource,
        _ range: Range<Int64>, digest: SHA256Digest, timeout: Duration? = nil
    ) async throws(S3Failure) -> String {
        var call = S3Call("UploadPartCopy", .put, key: key)
        call.query = [
            QueryItem("partNumber", String(number)), QueryItem("uploadId", upload.id),
        ]
        let name = PercentEncoding.encode(source.name, keepingSlashes: true)
        call.fields = [
            ("x-amz-copy-source", "/\(configuration.bucket)/\(name)"),
            ("x-amz-copy-source-if-match", source.tag),
        ]
        // Only objects of more than 5 MiB allow a range.
        if range != 0..<source.byteCount {
            call.fields.append(
                ("x-amz-copy-source-range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)"))
        }
        call.stallTimeout = Self.completionTimeout
        call.timeout =
            (timeout ?? configuration.timeout) + .seconds(range.count / Self.slowestCopyRate)
        call.body = S3Body([])
        let root = try await late(
            call, "CopyPartResult", repeatsMalformed: false,
            finalCodes: [
                "NoSuchUpload", "NoSuchKey", "PreconditionFailed", "AccessDenied", "InvalidRequest",
                "InvalidArgument", "InvalidRange", "NotImplemented",
            ])
        guard let checksum = root.text(of: "ChecksumSHA256"), let tag = root.text(of: "ETag") else {
            throw S3Failure(
                code: "NoChecksum", status: 200,
                detail: "UploadPartCopy: a response without checksum")
        }
        guard checksum == Base64.encode(digest.bytes) else {
            throw S3Failure(
                code: "BadDigest", status: 200, detail: "UploadPartCopy: the copied bytes differ")
        }
        return tag
    }
}
