internal import HTTPTypes
internal import KedgeLocks
internal import KedgeModel
internal import KedgeTransport

/// An object's size and tag.
package struct ObjectHead: Hashable, Sendable {
    let byteCount: Int64
    /// Opaque: it identifies a state of the object and is no hash.
    let tag: String?
}

/// A response with bytes of an object.
struct ObjectBytes: Sendable {
    /// The range of the object that the body contains.
    let range: ByteRange
    let tag: String?
    let body: TransportResponseBody
}

extension S3Client {
    private static let checksumField = "x-amz-checksum-sha256"

    /// Stores an object. Idempotent; durable when it returns.
    ///
    /// - Returns: Its tag.
    package func putObject(_ key: String, _ body: S3Body, timeout: Duration? = nil)
        async throws(S3Failure)
        -> String
    {
        var call = S3Call("PutObject", .put, key: key)
        call.timeout = timeout
        return try await put(call, body, withChecksum: learned.withLock { $0.takesChecksums })
    }

    /// Sends bytes with their checksum, unless the store refuses checksums. Remembers such a
    /// refusal.
    func put(
        _ call: S3Call, _ body: S3Body, withChecksum: Bool
    ) async throws(S3Failure) -> String {
        var call = call
        call.body = body
        guard withChecksum else { return try await tag(ofSent: call, body.digest) }
        var checked = call
        checked.fields.append((Self.checksumField, Base64.encode(body.digest.bytes)))
        do throws(S3Failure) {
            return try await tag(ofSent: checked, body.digest)
        } catch {
            guard Self.isRefusalOfChecksum(error) else { throw error }
            let tag = try await tag(ofSent: call, body.digest)
            learned.withLock { $0.takesChecksums = false }
            return tag
        }
    }

    static func isRefusalOfChecksum(_ failure: S3Failure) -> Bool {
        failure.isUnsupported
            || ["InvalidArgument", "InvalidRequest", "UnsupportedHeader", "HTTP400"]
                .contains(failure.code)
    }

    private func tag(ofSent call: S3Call, _ digest: SHA256Digest) async throws(S3Failure) -> String
    {
        try await perform(call) { (response) throws(S3Failure) in
            let fields = response.headerFields
            if let echo = fields[.named(Self.checksumField)],
                echo != Base64.encode(digest.bytes)
            {
                throw S3Failure(
                    code: "BadDigest", status: 200,
                    detail: "\(call.operation): the stored bytes differ from those sent")
            }
            guard let tag = fields[.eTag] else {
                throw S3Failure(
                    code: "NoTag", status: 200,
                    detail: "\(call.operation): a response without ETag")
            }
            return tag
        }
    }

    /// Begins to read bytes of an object.
    ///
    /// - Parameter tag: The expected state of the object; nil for any.
    /// - Throws: A failure of status 412 when the object has changed.
    func getObject(
        _ key: String, _ range: ByteRange, tag: String?
    ) async throws(S3Failure) -> ObjectBytes {
        var call = S3Call("GetObject", .get, key: key)
        call.success = 206
        call.fields.append(("range", "bytes=\(range.start)-\(range.end - 1)"))
        if let tag { call.fields.append(("if-match", tag)) }
        return try await perform(call) { (response) throws(S3Failure) in
            let fields = response.headerFields
            guard let found = Self.range(in: fields), found.start == range.start else {
                throw S3Failure(
                    code: "InvalidRange", status: response.status,
                    detail: "GetObject: the response has another range")
            }
            let foundTag = fields[.eTag]
            // Not every store evaluates the condition.
            if let tag, let foundTag, foundTag != tag {
                throw S3Failure(
                    code: "PreconditionFailed", status: 412, detail: "GetObject: another object")
            }
            return ObjectBytes(range: found, tag: foundTag, body: response.body)
        }
    }

    /// Returns the range that the answer contains. A store may ignore the range and send the whole
    /// object, and some send the range with status 200.
    private static func range(in fields: HTTPFields) -> ByteRange? {
        if let range = fields[.contentRange] { return ContentRange(range)?.range }
        return fields[.contentLength].flatMap { WireInteger.parse($0) }
            .map { ByteRange(start: 0, end: $0) }
    }

    /// Returns the size and tag of an object; nil when there is none.
    func headObject(_ key: String) async throws(S3Failure) -> ObjectHead? {
        do throws(S3Failure) {
            let (fields, _) = try await answer(S3Call("HeadObject", .head, key: key))
            guard let count = fields[.contentLength].flatMap({ WireInteger.parse($0) }) else {
                throw S3Failure(
                    code: "NoLength", status: 200, detail: "HeadObject: a response without length")
            }
            return ObjectHead(byteCount: count, tag: fields[.eTag])
        } catch {
            guard error.isUnexplainedAbsence else { throw error }
            try await confirmAbsence(of: key)
            return nil
        }
    }

    /// Confirms that an object is absent, with a request whose answer has a body. A misdirected
    /// request also gets a 404, and must not make present bytes look lost.
    ///
    /// - Throws: Unless the store itself reports that there is no such object.
    private func confirmAbsence(of key: String) async throws(S3Failure) {
        do throws(S3Failure) {
            _ = try await getObject(key, ByteRange(start: 0, end: 1), tag: nil)
        } catch {
            guard error.isAbsence else { throw error }
            return
        }
        throw S3Failure(
            code: "Contradiction", detail: "HeadObject: not found, but GetObject finds it",
            isTransient: true)
    }

    /// Deletes an object. Idempotent: an absent one is not an error.
    package func deleteObject(_ key: String, timeout: Duration? = nil) async throws(S3Failure) {
        var call = S3Call("DeleteObject", .delete, key: key)
        call.success = 204
        call.timeout = timeout
        do throws(S3Failure) {
            _ = try await answer(call)
        } catch {
            guard error.isAbsence else { throw error }
        }
    }

    /// Lists a page of the keys with a prefix.
    ///
    /// - Returns: The keys, and the token of the next page; nil after the last.
    package func listObjects(
        prefix: String, after token: String?
    ) async throws(S3Failure) -> (keys: [String], next: String?) {
        var call = S3Call("ListObjectsV2", .get)
        call.query = [QueryItem("list-type", "2"), QueryItem("prefix", prefix)]
        if let token { call.query.append(QueryItem("continuation-token", token)) }
        let list = try await list(call)
        return (
            list.all("Contents").compactMap { $0.text(of: "Key") },
            list.text(of: "IsTruncated") == "true" ? list.text(of: "NextContinuationToken") : nil
        )
    }

    /// Sends the call and returns the root element of the answer.
    func list(_ call: S3Call) async throws(S3Failure) -> XMLElement {
        let (_, body) = try await answer(call)
        guard let root = XMLElement(document: body) else {
            throw S3Failure(
                code: "MalformedAnswer", status: 200,
                detail: "\(call.operation): a malformed response")
        }
        return root
    }
}
